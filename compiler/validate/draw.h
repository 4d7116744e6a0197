// Inputs for a validation: values of the symbols of "main" within their bounds, edge sizes first, and random elements
// from a seed: finite ones, whole ones (whose sums are exact), special ones (among them infinities, NaN, -0 and
// denormals), and hostile ones (also numbers whose products overflow, and constants of rounding tricks).
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

// How integers are drawn: as indices, lengths and axes, most integers are legal only as small numbers.
enum class IntDraw : uint8_t { kAny, kBelowThree, kBelowTwo, kZero, kOne };

struct Assignment {
  ir::PrimVarMap values;
  std::string text;  // "n=2, m=17"; "fixed dims" without symbols
};

// The parameters of "main" that a caller gives: all except those that the function "prepare" computes.
std::vector<ir::Var> InputsOfMain(const ir::IRModule& module);

// The assignments in order: every symbol 2, 17, 1 and 0, then unlike values, then larger powers of two, each clamped to
// the symbol's bounds, without duplicates.
std::vector<Assignment> DrawAssignments(const ir::IRModule& module);

// Draws one value per input of "main". kUnsupportedModel for parameters that are no tensors, shapes or integers,
// kBadInput for dims below 0.
Result<std::vector<Value>> DrawInputs(const ir::IRModule& module, const Assignment& assignment, DrawKind kind,
                                      IntDraw ints, uint64_t seed);

}  // namespace ingot::validate
