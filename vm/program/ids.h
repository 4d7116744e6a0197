// Ids of the things that a Program holds in tables: small integers with a type, so that a register cannot be passed
// where a kernel is meant. An id is an index into the table of its kind; the file stores the same number.
#pragma once

#include <cstdint>

namespace ingot::vm {

template <typename Tag>
struct Id {
  uint32_t value = 0;
  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;  // NOLINT(modernize-use-nullptr): none is there
};

using RegisterId = Id<struct RegisterTag>;    // of a function
using LabelId = Id<struct LabelTag>;          // of a FunctionBuilder; an instruction index once finished
using PlanEntryId = Id<struct PlanEntryTag>;  // of a function's memory plan
using FunctionId = Id<struct FunctionTag>;
using KernelId = Id<struct KernelTag>;
using ExternalId = Id<struct ExternalTag>;
using ConstantId = Id<struct ConstantTag>;
using StateId = Id<struct StateTag>;

}  // namespace ingot::vm
