// Inputs for a validation: values of the symbols of "main" within their bounds, edge sizes first, and elements by
// chance from a seed: finite ones, whole ones (whose sums are exact), special ones (infinities, NaN, -0, denormals
// among them), and hostile ones (numbers whose products overflow and constants that rounding tricks use, too).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/ir/visitor.h"
#include "compiler/validate/value.h"
#include "runtime/status.h"

namespace ingot::validate {

enum class DrawKind : uint8_t { kFinite, kHostile, kSpecial, kWhole };
const char* DrawKindName(DrawKind kind);

// How integers are drawn: as indices, lengths and axes most of them are legal as small numbers alone.
enum class IntDraw : uint8_t { kAny, kBelowThree, kBelowTwo, kZero, kOne };

struct Assignment {
  ir::PrimVarMap values;
  std::string text;  // "n=2, m=17"; "fixed dims" without symbols
};

// The parameters of "main" that a caller gives: all but those that "prepare" fills.
std::vector<ir::Var> InputsOfMain(const ir::IRModule& module);

// Every symbol 2, 17, 1 and 0, then unlike ones, then larger powers of two; each within the symbol's bounds, none twice.
std::vector<Assignment> DrawAssignments(const ir::IRModule& module);

// kUnsupportedModel for parameters that are no tensors, shapes or integers, kBadInput for dims below 0.
Result<std::vector<Value>> DrawInputs(const ir::IRModule& module, const Assignment& assignment, DrawKind kind,
                                      IntDraw ints, uint64_t seed);

}  // namespace ingot::validate
