// The operator table: one home per operator. A row holds everything that is known of it; passes ask rows for traits and
// never compare names. Rows stand in one explicit table per family (compiler/op/*.cc), joined in registry.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::op {

// How FuseOps may combine an operator with its neighbours (TVM's pattern kinds, from free to rigid).
enum class FusionClass : uint8_t {
  kElementwise,  // out[i] from in[i]
  kBroadcast,    // out[i] from in[f(i)], f drops or repeats axes
  kInjective,    // out[i] from in[f(i)], any f
  kReduction,    // many inputs to one output; takes element-wise producers
  kOutFusible,   // conv, matmul: element-wise consumers join its epilogue
  kTuple,        // makes or takes apart tuples
  kOpaque,       // stays alone
};
enum class Effect : uint8_t { kPure, kReadsState, kWritesInPlace, kEffect };

enum class AttrType : uint8_t { kBool, kInt, kFloat, kString, kDataType, kInts, kStrings, kAny };
struct AttrSpec {
  const char* name;
  AttrType type;
  ir::AttrValue default_value;  // of an optional attribute; None is a legal default
  bool required = false;
};

// A whole tensor on the host for the reference evaluation: floats as double, everything else as int64.
struct ReferenceTensor {
  DataType dtype;
  std::vector<int64_t> dims;
  std::vector<double> floats;  // of floating dtypes
  std::vector<int64_t> ints;   // of integers and bool
};

// One way of computing an operator. The first row whose predicate holds and whose cost is least is taken.
struct Implementation {
  const char* name;  // "direct", "blocked", "winograd", ...
  bool (*predicate)(const ir::Call& call, const Target& target);
  double (*cost)(const ir::Call& call, const Target& target);  // in operations; only compared with each other
  // The operator's layouts here, "NCHW" and the like, in order of arguments then result; empty: plain row-major.
  std::vector<std::string> layouts;
  // Builds the unscheduled PrimFunc: tensor arguments in order, symbolic scalars as needed by shapes, outputs last.
  Result<ir::PrimFunc> (*build)(const ir::Call& call, const Target& target);
};

struct OpRow {
  const char* name;                    // as after "R."
  const char* summary;                 // one line
  std::vector<const char*> arg_names;  // tensors, shapes and tuples, in order
  int num_optional_args = 0;           // the last ones may be absent
  bool variadic = false;               // the last one repeats
  std::vector<AttrSpec> attrs;
  FusionClass fusion = FusionClass::kOpaque;
  Effect effect = Effect::kPure;
  // The result has the elements of the first argument in the same row-major order under other dims (reshape, squeeze,
  // expand_dims, flatten): legalising leaves it alone, and lowering makes it a view of the same memory.
  bool is_view = false;
  // The type of a call whose arguments have types; errors name the operator, what was expected and got.
  Result<ir::Type> (*infer)(const ir::Call& call) = nullptr;
  // Slow float64 evaluation, independent of every kernel: the tests' oracle. Arguments that are no tensors (shapes,
  // scalars) are read from the call.
  Result<std::vector<ReferenceTensor>> (*reference)(const ir::Call& call,
                                                    std::span<const ReferenceTensor> inputs) = nullptr;
  // Folding by the host routines in runtime/host_ops.h (the same that a kept `prepare` function calls in the VM); null:
  // not foldable. `prepare_builtin` is the VM builtin's name then.
  Result<std::shared_ptr<const ir::ConstantData>> (*fold)(
      const ir::Call& call, std::span<const std::shared_ptr<const ir::ConstantData>> inputs) = nullptr;
  const char* prepare_builtin = nullptr;
  std::vector<Implementation> implementations;
};

// Every row, ordered by name.
std::span<const OpRow* const> AllOps();
// Null when there is none.
const OpRow* FindOp(std::string_view name);
// The nearest known name, or "" when none is near.
std::string SuggestOp(std::string_view name);
// The one node for a row; INGOT_CHECKs that the name exists.
ir::Expr GetOp(std::string_view name);
const OpRow* RowOf(const ir::Call& call);  // null when the callee is no Op

// A checked call: attributes completed from the row's defaults, in its order; unknown names, missing required ones and
// wrong types are errors with a suggestion; the type is inferred.
Result<ir::Call> MakeCall(std::string_view name, std::vector<ir::Expr> args, ir::Attrs attrs = {});
// Infers the type of a call of any callee (operator, call_tir with its out_ty, GlobalVar with its type, closure).
Result<ir::Type> InferCallType(const ir::IRModule& module, const ir::Call& call);

}  // namespace ingot::op
