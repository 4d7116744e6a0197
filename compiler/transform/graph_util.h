// What several graph passes ask of bindings: effects by the traits of rows and functions, call_tir taken apart, and the
// variables and functions that an expression names. No pass compares operator names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "runtime/status.h"

namespace ingot::transform {

// Attributes of graph functions that passes leave for each other and for lowering.
inline constexpr const char* kPrimitiveAttr = "Primitive";  // 1: a group made by fuse_ops, one PrimFunc after fuse_tir
inline constexpr const char* kPrepareAttr = "prepare";      // true: computes packed weights, by host routines alone
inline constexpr const char* kPackedByAttr = "packed_by";   // the function whose results are the last parameters

// A tensor of known dims, symbolic ones included, and known dtype.
bool HasKnownShape(const ir::Type& type);

// The effect of evaluating a binding's value once: the strongest of everything inside.
op::Effect EffectOf(const ir::IRModule& module, const ir::Expr& value);

// R.call_tir(callee, (args...), [tir_vars,] out_ty=...).
struct CallTir {
  ir::GlobalVar callee;
  std::vector<ir::Expr> args;
  ir::Expr tir_vars;  // null: none
  std::vector<ir::Type> results;
};
std::optional<CallTir> AsCallTir(const ir::Expr& value);

// Every variable that an expression uses, repeats included; below nested functions and branches too.
void ForEachUse(const ir::Expr& expr, const std::function<void(const ir::Var&)>& use);
void ForEachGlobalVar(const ir::Expr& expr, const std::function<void(const ir::GlobalVar&)>& use);

// The function with `rewrite` applied to the bindings of each dataflow block of its body; it says whether it changed
// them. The same function when none changed.
Result<ir::Function> MapDataflowBlocks(const ir::Function& function,
                                       const std::function<Result<bool>(std::vector<ir::Binding>&)>& rewrite);

// The dims of a tensor of known shape; null otherwise. TypedDimsOf: of known dtype, too.
const op::Dims* DimsOf(const ir::Expr& expr);
const op::Dims* TypedDimsOf(const ir::Expr& expr);
bool EqualDims(const op::Dims& a, const op::Dims& b);

// Tensor functions that a pass adds to a module: equal ones are added once.
class SharedFunctions {
 public:
  explicit SharedFunctions(ir::IRModule& module) : module_(module) {}
  // The function of the module that was added here and is equal to this one, else this one under a new name.
  ir::GlobalVar Add(const ir::PrimFunc& function, std::string_view hint);

 private:
  ir::IRModule& module_;
  std::unordered_map<uint64_t, std::vector<ir::GlobalVar>> made_;
};

// The module with `rewrite` applied to its graph functions, in order.
Result<ir::IRModule> MapFunctions(
    ir::IRModule module, const std::function<Result<ir::Function>(const ir::GlobalVar&, const ir::Function&)>& rewrite);

}  // namespace ingot::transform
