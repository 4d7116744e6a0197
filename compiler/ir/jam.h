// An annotation of a loop whose iterations share what they read: unroll and jam. It is for loops of statements that are
// the same for every target, such as those of attention (op/topi/attention.cc), which no rule schedules.
#pragma once

namespace ingot::ir {

// The bits of vector registers that all iterations together need. Where a target has as many, they run at once
// (transform/tensor/jam_loops.cc); elsewhere one after the other.
inline constexpr const char* kJamRegisterBits = "jam_register_bits";

}  // namespace ingot::ir
