// The operator table: one home per operator. A row (OpRow) holds everything that is known of an operator, and passes
// ask it for traits; a pass that is about particular operators looks them up by name. Rows stand in one explicit table
// per family (compiler/op/*.cc), joined in registry.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::te {
class Tensor;
}

namespace ingot::op {

class TeArgs;  // build.h

// How an operator combines with its neighbours: TVM's pattern kinds with their numbers, from free to rigid. Passes move
// views, permutations and blocks of channels past g, so g must not depend on an element's place
// (tests/compiler/op/traits_test.cc checks that).
enum class FusionClass : uint8_t {
  kElementwise = 0,  // out[i] = g(in[i])
  kBroadcast = 1,    // out[i] = g(in[f(i)], ...), f drops or repeats axes as NumPy broadcasts
  kInjective = 2,    // out[i] from in[f(i)], any f
  kReduction = 3,    // many inputs to one output; takes element-wise producers
  kOutFusible = 4,   // conv, matmul: element-wise consumers join its epilogue
  kTuple = 7,        // makes or takes apart tuples
  kOpaque = 8,       // stays alone
};
enum class Effect : uint8_t { kPure, kReadsState, kWritesInPlace, kEffect };

enum class AttrType : uint8_t { kBool, kInt, kFloat, kString, kDataType, kInts, kStrings, kAny };
struct AttrSpec {
  const char* name;
  AttrType type;
  ir::AttrValue default_value = {};  // of an optional attribute; None is a legal default
  bool required = false;
};

// A whole tensor on the host for the reference evaluation: floats as double, everything else as int64.
struct ReferenceTensor {
  DataType dtype;
  std::vector<int64_t> dims;
  std::vector<double> floats;  // of floating dtypes
  std::vector<int64_t> ints;   // of integers and bool
};

// One argument of a VM builtin, after its result: a tensor argument of the call (its place among InputTensors), a
// number, or a list of integers (a shape).
struct InputIndex {
  size_t index;
};
using PrepareArgument = std::variant<InputIndex, int64_t, double, std::vector<int64_t>>;
// The builtin, and its arguments, with which a host routine of runtime/host_ops.h computes a call.
struct PrepareCall {
  std::string_view builtin;  // its name in vm/program/builtins.def
  std::vector<PrepareArgument> arguments;
};

// Builds the kernel of an implementation.
struct Builder {
  // The unscheduled PrimFunc: InputTensors in order, outputs last, then the scalars of UnboundShapeVars.
  Result<ir::PrimFunc> (*function)(const ir::Call& call, const Target& target);
  // The results as tensor expressions of the arguments; null where the kernel is made of statements.
  std::vector<te::Tensor> (*tensors)(const TeArgs& args) = nullptr;
  Result<ir::PrimFunc> operator()(const ir::Call& call, const Target& target) const { return function(call, target); }
};

// One way of computing an operator. Of the implementations whose predicate holds the cheapest one is taken, of equally
// cheap ones the first.
struct Implementation {
  const char* name;  // "direct", "blocked", "winograd", ...
  bool (*predicate)(const ir::Call& call, const Target& target);
  double (*cost)(const ir::Call& call, const Target& target);  // in operations; only compared with each other
  // The layouts that this implementation takes, "NCHW" and the like: arguments in order, then the result; empty: plain
  // row-major.
  std::vector<std::string> layouts;
  Builder build;
  // For an operator with DataExtents: builds the function that counts, from a CountCall; `build` takes a FillCall then.
  Builder count = {nullptr};
};

// Operators with dynamic output shapes (data-dependent, as of nonzero and unique): a call becomes two tensor functions.
// The first one counts: it writes the unknown extents as one tensor, int64[count], and the tensors that it carries over
// to the second one. The VM reads the extents and allocates the results; the second one fills them. Type inference of
// the call itself gives no more than the results' ranks where dims are dynamic.
struct DataExtents {
  int count = 0;  // 0: dims follow from the arguments' types
  // The call's type when its extents are these.
  Result<ir::Type> (*type)(const ir::Call& call, const std::vector<ir::PrimExpr>& extents) = nullptr;
  // The types of the tensors that counting carries over to filling, of known dims; null: there are none.
  Result<std::vector<ir::Type>> (*carried)(const ir::Call& call) = nullptr;
};

// Which special test cases apply to an operator: tests/compiler/op demands a case for each of them.
struct CaseTraits {
  bool rank0 = true;                  // takes tensors of rank 0
  bool empty = true;                  // takes tensors without elements
  bool broadcast = false;             // combines tensors of different dims
  bool non_finite = true;             // NaN and infinities have a defined result
  std::vector<DataType> dtypes = {};  // of the first tensor (or the result, without one); each needs a case
};

// The parts of a call besides its operator.
struct CallParts {
  std::vector<ir::Expr> args;
  ir::Attrs attrs;
};

// What is known of the sign bit of a floating result's elements that are not NaN.
enum class SignBit : uint8_t {
  kUnknown,
  kClear,        // never set
  kOfFirst,      // clear where it is in all elements of the first argument
  kOfArguments,  // clear where it is in all elements of all arguments
};

// One operator.
struct OpRow {
  const char* name;                         // as after "R."
  const char* summary;                      // one line
  std::vector<const char*> arg_names = {};  // tensors, shapes and tuples, in order
  int num_optional_args = 0;                // the last ones may be absent
  bool variadic = false;                    // the last one repeats
  std::vector<AttrSpec> attrs = {};
  FusionClass fusion = FusionClass::kOpaque;
  Effect effect = Effect::kPure;
  // The result has the elements of the first argument in the same row-major order under other dims (reshape, squeeze,
  // expand_dims, flatten): legalising leaves it alone, and lowering makes it a view of the same memory.
  bool is_view = false;
  // The call computes no tensor elements (shape_of), or calls something that does (call_tir): lowering handles the
  // operator itself, and legalising leaves it alone.
  bool is_primitive = false;
  SignBit sign_bit = SignBit::kUnknown;
  // Integers are divided by the last argument: kernels fail where it is zero, though the reference gives a number.
  bool divides = false;
  // Rewrites short forms to their full forms (padding=1 to [1, 1, 1, 1], a -1 in a shape to the extent); null: there
  // are none. The attributes are complete already.
  Result<CallParts> (*normalize)(CallParts parts) = nullptr;
  // The type of a call whose arguments have types; errors name the operator, what was expected and got.
  Result<ir::Type> (*infer)(const ir::Call& call) = nullptr;
  DataExtents extents = {};
  // Slow float64 evaluation, independent of every kernel: the tests' oracle. inputs are the values of InputTensors;
  // arguments that are no tensors (shapes, scalars) are read from the call and must be constant.
  Result<std::vector<ReferenceTensor>> (*reference)(const ir::Call& call,
                                                    std::span<const ReferenceTensor> inputs) = nullptr;
  // Folding by the host routines in runtime/host_ops.h; null: not foldable. inputs are the values of InputTensors, and
  // the call's type has constant dims.
  Result<std::shared_ptr<const ir::ConstantData>> (*fold)(
      const ir::Call& call, std::span<const std::shared_ptr<const ir::ConstantData>> inputs) = nullptr;
  // The one builtin that computes the call in a `prepare` function that stays in the file; null: there is none, and the
  // operator stays outside of prepare.
  Result<PrepareCall> (*prepare)(const ir::Call& call) = nullptr;
  std::vector<Implementation> implementations = {};
  // The name that legalising gives its tensor functions; null: the part of the operator's name after the last dot.
  const char* function_name = nullptr;
  CaseTraits cases = {};
};

// The rows of all operators, ordered by name.
std::span<const OpRow* const> AllOps();
// Null when there is no such operator.
const OpRow* FindOp(std::string_view name);
// The nearest known name, for messages, or "" when none is near.
std::string SuggestOp(std::string_view name);
// The operator's one node; INGOT_CHECKs that the name exists.
ir::Expr GetOp(std::string_view name);
const OpRow* RowOf(const ir::Call& call);  // null when the callee is no Op
// The cheapest implementation whose predicate takes the operator's call (with of_tensors: of those that are tensor
// expressions); null when none takes it.
const Implementation* CheapestImplementation(const ir::Call& call, const Target& target, bool of_tensors = false);

// A checked call: attributes completed from the operator's defaults, in its order; unknown names, missing required ones
// and wrong types are errors with a suggestion; the type is inferred. Arguments have types.
Result<ir::Call> MakeCall(std::string_view name, std::vector<ir::Expr> args, ir::Attrs attrs = {},
                          std::vector<ir::Type> type_args = {});
// Arity checked, attributes completed and converted, short forms rewritten: the call as MakeCall stores it, without
// its type.
Result<CallParts> CompleteCall(const OpRow& row, CallParts parts);
// Infers the type of a call of any callee (operator, call_tir with its out_ty, GlobalVar with its type, closure).
Result<ir::Type> InferCallType(const ir::IRModule& module, const ir::Call& call);

// R.call_tir(function, inputs, out_ty); shape_vars become its third argument when there are any.
ir::Call MakeCallTIR(const ir::GlobalVar& function, std::vector<ir::Expr> inputs, std::vector<ir::Type> out_types,
                     std::vector<ir::PrimExpr> shape_vars = {});

// The halves of a call of an operator with DataExtents. CountCall takes the call's arguments; its results are the
// extents and then the carried tensors. FillCall takes the carried tensors as further arguments and has the type that
// the extents give.
Result<ir::Call> CountCall(const ir::Call& call);
Result<ir::Call> FillCall(const ir::Call& call, const std::vector<ir::Expr>& carried,
                          const std::vector<ir::PrimExpr>& extents);

// The tensor arguments of an operator's call in order, the fields of tuples one by one.
std::vector<ir::Expr> InputTensors(const ir::Call& call);
// The symbolic variables in a call's arguments and result that are not by themselves a dimension of one of these
// tensors, by first occurrence: no buffer's shape binds them, so a kernel takes them as scalars.
std::vector<ir::PrimVar> UnboundShapeVars(const ir::Call& call);

}  // namespace ingot::op

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::op::OpRow>;
extern template class std::vector<ingot::op::Implementation>;
extern template class std::vector<ingot::op::ReferenceTensor>;
extern template class std::vector<ingot::op::AttrSpec>;
