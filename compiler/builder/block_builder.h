// BlockBuilder: graph functions written in C++. Scopes (function, dataflow block, branch, local function) are
// callbacks, so that none is left open; what is emitted is brought into A-normal form and typed at once, by the
// operators' type inference. The result is a verified IRModule. Nothing is optimised here.
//
//     builder::BlockBuilder b;
//     ir::Var x = builder::TensorVar("x", {n, 784}), w = builder::TensorVar("w", {784, 10});
//     b.Function("main", {x, w}, [&]() -> ir::Expr {
//       ir::Var out;
//       b.Dataflow([&] {
//         ir::Var product = b.EmitOp("matmul", {x, w});
//         out = b.EmitOutput(b.Call("nn.softmax", {product}));
//       });
//       return out;
//     });
//     Result<ir::IRModule> module = b.Finish();
//
// After a refused step nothing happens any more: later steps give variables of type Object, and Finish gives the first
// error, so that a model is written as a sequence of calls and checked once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/te/tensor.h"
#include "runtime/status.h"

namespace ingot::builder {

// A variable of a tensor type, for parameters.
ir::Var TensorVar(std::string name, std::vector<ir::PrimExpr> dims, DataType dtype = DataType::Float(32));

struct FunctionOptions {
  ir::Attrs attrs;
  bool is_pure = true;
  bool is_private = false;
  ir::Type result_type;  // null: the body's; needed by functions that call themselves
};

class BlockBuilder {
 public:
  // Adds to the functions that are there already.
  explicit BlockBuilder(ir::IRModule module = {}) : module_(std::move(module)) {}

  // The first error.
  const Status& status() const { return status_; }
  // The module as far as it is made; not verified.
  const ir::IRModule& module() const { return module_; }
  // The verified module, or the first error.
  Result<ir::IRModule> Finish() const;

  // ---- Scopes. A body emits bindings and gives its result, any expression.
  using Body = std::function<ir::Expr()>;
  // A function of the module under exactly this name.
  ir::GlobalVar Function(const std::string& name, std::vector<ir::Var> params, const Body& body,
                         FunctionOptions options = {});
  // The same in two steps, so that functions can call themselves and each other: the variable now, the function later.
  ir::GlobalVar Declare(const std::string& name, const std::vector<ir::Var>& params, ir::Type result_type,
                        bool is_pure = true);
  void Define(const ir::GlobalVar& var, std::vector<ir::Var> params, const Body& body, FunctionOptions options = {});
  // A closure, bound to a variable. The body gets that variable for recursion: null unless options.result_type is set.
  ir::Var LocalFunction(const std::string& name, std::vector<ir::Var> params,
                        const std::function<ir::Expr(const ir::Var& self)>& body, FunctionOptions options = {});
  // A pure, straight-line block. Only variables that EmitOutput gives are visible after it.
  void Dataflow(const std::function<void()>& body);
  // A branch, bound to a variable; not allowed within a dataflow block.
  ir::Var If(ir::Expr condition, const Body& then_branch, const Body& else_branch, std::string name = "");

  // ---- Bindings, in the innermost scope. An empty name is "lv" in a dataflow block and "gv" elsewhere.
  // The value may nest calls, and types may be absent.
  ir::Var Emit(ir::Expr value, std::string name = "");
  // A dataflow block's result.
  ir::Var EmitOutput(ir::Expr value, std::string name = "");
  ir::Var EmitOp(std::string_view op, std::vector<ir::Expr> args, ir::Attrs attrs = {}, std::string name = "");
  // Binds the new symbolic variables of a type to the extents of a value, checked at run time.
  ir::Var MatchCast(ir::Expr value, ir::Type type, std::string name = "");
  // A call of a tensor function of the module, which writes new tensors. shape_vars are its scalar parameters.
  ir::Var EmitCallTIR(const ir::GlobalVar& function, std::vector<ir::Expr> inputs, std::vector<ir::Type> out_types,
                      std::vector<ir::PrimExpr> shape_vars = {}, std::string name = "");
  // A call of a private tensor function that computes define(inputs), named after the hint and shared with equal ones.
  // The tensors have symbolic variables of their own, one for each of the inputs'. Several results are a tuple. An
  // error unless the inputs are tensors of known shape and dtype.
  using Definition = std::function<std::vector<te::Tensor>(std::span<const te::Tensor> inputs)>;
  ir::Var EmitTe(const std::string& hint, std::vector<ir::Expr> inputs, const Definition& define,
                 std::string name = "");

  // ---- Parts.
  // An operator's call that is not bound yet, for nesting; checked when it is emitted.
  ir::Expr Call(std::string_view op, std::vector<ir::Expr> args, ir::Attrs attrs = {});
  // Adds a function under the name hint, or hint1, hint2, ... where it is taken.
  ir::GlobalVar AddFunction(std::string_view hint, ir::Expr function) { return module_.Add(hint, std::move(function)); }

 private:
  struct Scope {
    std::vector<ir::BindingBlock> blocks;
    bool in_dataflow = false;
  };

  ir::Var Fail(Status status);
  ir::Var Fail(std::string message);
  bool CanEmit(const char* what);
  ir::BindingBlock& CurrentBlock();
  ir::Var Bind(ir::Expr value, ir::Type match_cast, std::string name, bool is_dataflow);
  Result<ir::Expr> Normalize(const ir::Expr& expr);
  Result<ir::Expr> Atom(const ir::Expr& expr);
  Result<ir::Expr> NormalizeCall(const ir::CallNode& call);
  // The bindings of a body and its result; null after a failure.
  ir::SeqExpr RunBody(const Body& body);
  ir::Function MakeFunction(std::vector<ir::Var> params, const Body& body, FunctionOptions options);
  ir::GlobalVar Share(std::string_view hint, const ir::PrimFunc& function);

  ir::IRModule module_;
  std::vector<Scope> scopes_;
  Status status_;
};

}  // namespace ingot::builder
