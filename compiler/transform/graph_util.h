// What several graph passes ask of bindings: effects by the traits of operators and functions, the parts of a call_tir,
// and the variables and functions that an expression refers to. Passes ask for traits where they can; a pass that means
// one operator compares its table entry (op::FindOp) or name.
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

// Attributes of graph functions by which passes inform each other and lowering.
inline constexpr const char* kPrimitiveAttr = "Primitive";  // 1: a group of fuse_ops, one PrimFunc after fuse_tir
inline constexpr const char* kPrepareAttr = "prepare";      // true: computes packed weights, by host routines only
inline constexpr const char* kPackedByAttr = "packed_by";   // the function whose results are the last parameters

// Whether the type is a tensor of known dims (they may be symbolic) and known dtype.
bool HasKnownShape(const ir::Type& type);

// Returns the effect of evaluating a binding's value once: the strongest effect inside of it.
op::Effect EffectOf(const ir::IRModule& module, const ir::Expr& value);

// R.call_tir(callee, (args...), [tir_vars,] out_ty=...).
struct CallTir {
  ir::GlobalVar callee;
  std::vector<ir::Expr> args;
  ir::Expr tir_vars;  // null: none
  std::vector<ir::Type> results;
};
std::optional<CallTir> AsCallTir(const ir::Expr& value);

// Calls `use` for every variable that an expression uses, repeats included, also in nested functions and branches.
void ForEachUse(const ir::Expr& expr, const std::function<void(const ir::Var&)>& use);
void ForEachGlobalVar(const ir::Expr& expr, const std::function<void(const ir::GlobalVar&)>& use);

// Returns the function with `rewrite` applied to the bindings of each dataflow block of its body; `rewrite` returns
// whether it changed them. Returns the same function if none changed.
Result<ir::Function> MapDataflowBlocks(const ir::Function& function,
                                       const std::function<Result<bool>(std::vector<ir::Binding>&)>& rewrite);

// Returns the dims of a tensor of known shape; null otherwise. TypedDimsOf: only if the dtype is known, too.
const op::Dims* DimsOf(const ir::Expr& expr);
const op::Dims* TypedDimsOf(const ir::Expr& expr);
bool EqualDims(const op::Dims& a, const op::Dims& b);

// Adds tensor functions to a module for a pass; equal ones are added once.
class SharedFunctions {
 public:
  explicit SharedFunctions(ir::IRModule& module) : module_(module) {}
  // Returns the function that was added here and equals this one; otherwise adds this one under a new name.
  ir::GlobalVar Add(const ir::PrimFunc& function, std::string_view hint);

 private:
  ir::IRModule& module_;
  std::unordered_map<uint64_t, std::vector<ir::GlobalVar>> made_;
};

// Returns the module with `rewrite` applied to its graph functions, in order.
Result<ir::IRModule> MapFunctions(
    ir::IRModule module, const std::function<Result<ir::Function>(const ir::GlobalVar&, const ir::Function&)>& rewrite);

}  // namespace ingot::transform
