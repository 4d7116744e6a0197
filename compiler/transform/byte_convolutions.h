// Convolutions of int16 that are convolutions of bytes: the data is bytes less their zero point, and the weights are
// numbers that int8 holds. convert_layout makes nn.conv2d_bytes of them, which multiplies four bytes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "compiler/transform/pattern.h"

namespace ingot::transform {

struct ByteConvolution {
  ir::Expr bytes;                    // of the data's dims, int8 or uint8
  ir::Expr zero;                     // their zero point: one number of int16; null: 0
  std::vector<int64_t> weight_sums;  // per output channel
};

// Whether any CPU of the target adds products of four bytes by one instruction. Other x86-64 CPUs take about a sixth
// longer for bytes than for pairs of 16 bits, those twice as long for pairs.
bool AnyHasByteProducts(const TargetFamily& target);

// Nothing where the call is none, or no CPU of the target has instructions for bytes.
std::optional<ByteConvolution> AsByteConvolution(const ir::Call& call, const Definitions& definitions,
                                                 const TargetFamily& target);

}  // namespace ingot::transform
