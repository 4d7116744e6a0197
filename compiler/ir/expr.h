// The graph level: expressions in A-normal form, bindings, functions; and PrimFunc, the function of the tensor level.
// A block of bindings is a vector, so a model of 100,000 operations is wide, not deep. Every expression carries its
// type once inference has run (importers and the parser leave it null where it must be inferred).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/node.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/type.h"

namespace ingot::op {
struct OpRow;  // one row of the operator table, compiler/op/registry.h
}

namespace ingot::ir {

enum class ExprKind : uint8_t {
#define INGOT_EXPR_NODE(enumerator, Node) enumerator,
#include "compiler/ir/nodes.def"
};
struct ExprNode : Node {
  INGOT_NODE_MEMBERS(ExprNode);
  ExprKind kind;
  Type type;  // null: not inferred yet

 protected:
  explicit ExprNode(ExprKind k, Type t = nullptr) : kind(k), type(std::move(t)) {}
};
using Expr = Ref<ExprNode>;

// Identity counts, the name is a hint. A dataflow variable lives in its dataflow block alone.
struct VarNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kVar;
  INGOT_NODE_MEMBERS(VarNode);
  std::string name;
  bool is_dataflow;
  VarNode(std::string n, Type t, bool dataflow = false)
      : ExprNode(kKind, std::move(t)), name(std::move(n)), is_dataflow(dataflow) {}
  static constexpr void Fields(auto&& walk) { walk(IdentityOf(&VarNode::name)); }
};
using Var = Ref<VarNode>;

// The bytes of a constant, with dtype and dims: a span of a mapped file or of a buffer, which `owner` keeps alive.
// Compact, row-major, little-endian. Shared, never copied on the way to the file. The content hash is computed once,
// when asked for.
class ConstantData {
 public:
  // owner keeps the bytes alive; bytes.size() must be what dtype and dims say.
  ConstantData(DataType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes,
               std::shared_ptr<const void> owner);
  static std::shared_ptr<const ConstantData> FromBytes(DataType dtype, std::vector<int64_t> dims,
                                                       std::vector<std::byte> bytes);
  DataType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  int64_t num_elements() const;
  uint64_t ContentHash() const;  // xxh3 over dtype, dims and bytes; thread-safe
  // Compares dtype, dims and bytes: NaNs are equal when their bits are.
  bool Equals(const ConstantData& other) const;

 private:
  DataType dtype_;
  std::vector<int64_t> dims_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  mutable std::atomic<uint64_t> hash_{0};
};
struct ConstantNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kConstant;
  INGOT_NODE_MEMBERS(ConstantNode);
  std::shared_ptr<const ConstantData> data;
  std::string name;  // a hint: the parameter's name in the source; may be empty
  explicit ConstantNode(std::shared_ptr<const ConstantData> d, std::string n = "");  // sets the tensor type
  static constexpr void Fields(auto&& walk) { walk(&ConstantNode::data); }
};
using Constant = Ref<ConstantNode>;

struct OpNode : ExprNode {  // made by the operator table alone, one node per operator
  static constexpr ExprKind kKind = ExprKind::kOp;
  INGOT_NODE_MEMBERS(OpNode);
  std::string name;  // "nn.conv2d", "add", "call_tir", ...
  const op::OpRow* row;
  OpNode(std::string n, const op::OpRow* r) : ExprNode(kKind), name(std::move(n)), row(r) {}
  static constexpr void Fields(auto&& walk) { walk(&OpNode::name); }
};
struct GlobalVarNode : ExprNode {  // unique by name within a module
  static constexpr ExprKind kKind = ExprKind::kGlobalVar;
  INGOT_NODE_MEMBERS(GlobalVarNode);
  std::string name;
  explicit GlobalVarNode(std::string n, Type t = nullptr) : ExprNode(kKind, std::move(t)), name(std::move(n)) {}
  static constexpr void Fields(auto&& walk) { walk(&GlobalVarNode::name); }
};
using GlobalVar = Ref<GlobalVarNode>;
struct ExternFuncNode : ExprNode {  // a function that the embedding program registers, by name
  static constexpr ExprKind kKind = ExprKind::kExternFunc;
  INGOT_NODE_MEMBERS(ExternFuncNode);
  std::string name;
  explicit ExternFuncNode(std::string n, Type t = nullptr) : ExprNode(kKind, std::move(t)), name(std::move(n)) {}
  static constexpr void Fields(auto&& walk) { walk(&ExternFuncNode::name); }
};

struct CallNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kCall;
  INGOT_NODE_MEMBERS(CallNode);
  Expr callee;  // Op, GlobalVar, ExternFunc or Var (a closure)
  std::vector<Expr> args;
  Attrs attrs;
  std::vector<Type> type_args;  // out_ty of call_tir and call_packed
  CallNode(Expr c, std::vector<Expr> a, Attrs at = {}, std::vector<Type> ta = {}, Type t = nullptr)
      : ExprNode(kKind, std::move(t)),
        callee(std::move(c)),
        args(std::move(a)),
        attrs(std::move(at)),
        type_args(std::move(ta)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&CallNode::callee, &CallNode::args, &CallNode::attrs, &CallNode::type_args);
  }
};
using Call = Ref<CallNode>;
struct TupleNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kTuple;
  INGOT_NODE_MEMBERS(TupleNode);
  std::vector<Expr> fields;
  explicit TupleNode(std::vector<Expr> f, Type t = nullptr) : ExprNode(kKind, std::move(t)), fields(std::move(f)) {}
  static constexpr void Fields(auto&& walk) { walk(&TupleNode::fields); }
};
struct TupleGetItemNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kTupleGetItem;
  INGOT_NODE_MEMBERS(TupleGetItemNode);
  Expr tuple;
  int64_t index;
  TupleGetItemNode(Expr e, int64_t i, Type t = nullptr)
      : ExprNode(kKind, std::move(t)), tuple(std::move(e)), index(i) {}
  static constexpr void Fields(auto&& walk) { walk(&TupleGetItemNode::index, &TupleGetItemNode::tuple); }
};
struct ShapeExprNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kShapeExpr;
  INGOT_NODE_MEMBERS(ShapeExprNode);
  std::vector<PrimExpr> dims;
  explicit ShapeExprNode(std::vector<PrimExpr> d);  // sets the type
  static constexpr void Fields(auto&& walk) { walk(&ShapeExprNode::dims); }
};
struct PrimValueNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kPrimValue;
  INGOT_NODE_MEMBERS(PrimValueNode);
  PrimExpr value;
  explicit PrimValueNode(PrimExpr v);  // sets the type
  static constexpr void Fields(auto&& walk) { walk(&PrimValueNode::value); }
};
struct StringValueNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kStringValue;
  INGOT_NODE_MEMBERS(StringValueNode);
  std::string value;
  explicit StringValueNode(std::string v);
  static constexpr void Fields(auto&& walk) { walk(&StringValueNode::value); }
};
struct DataTypeValueNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kDataTypeValue;
  INGOT_NODE_MEMBERS(DataTypeValueNode);
  DataType value;
  explicit DataTypeValueNode(DataType v);
  static constexpr void Fields(auto&& walk) { walk(&DataTypeValueNode::value); }
};

// var = value, or var = R.match_cast(value, type) which checks at run time and binds new symbolic variables.
struct Binding {
  Var var;
  Expr value;
  Type match_cast;  // null: a plain binding
  Span span;
  bool is_match_cast() const { return match_cast.get() != nullptr; }
};
struct BindingBlock {
  std::vector<Binding> bindings;
  bool is_dataflow = false;  // pure and straight-line
  static constexpr void Fields(auto&& walk) { walk(&BindingBlock::is_dataflow, &BindingBlock::bindings); }
};
struct SeqExprNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kSeqExpr;
  INGOT_NODE_MEMBERS(SeqExprNode);
  std::vector<BindingBlock> blocks;
  Expr body;  // a Var, Constant, Tuple, ShapeExpr, ... : no call
  SeqExprNode(std::vector<BindingBlock> b, Expr e, Type t = nullptr)
      : ExprNode(kKind, t ? std::move(t) : e->type), blocks(std::move(b)), body(std::move(e)) {}
  static constexpr void Fields(auto&& walk) { walk(&SeqExprNode::blocks, &SeqExprNode::body); }
};
using SeqExpr = Ref<SeqExprNode>;
struct IfNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kIf;
  INGOT_NODE_MEMBERS(IfNode);
  Expr condition;  // a scalar bool tensor or Prim value
  SeqExpr then_branch, else_branch;
  IfNode(Expr c, SeqExpr t, SeqExpr e, Type type = nullptr)
      : ExprNode(kKind, std::move(type)),
        condition(std::move(c)),
        then_branch(std::move(t)),
        else_branch(std::move(e)) {}
  static constexpr void Fields(auto&& walk) { walk(&IfNode::condition, &IfNode::then_branch, &IfNode::else_branch); }
};
struct FunctionNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kFunction;
  INGOT_NODE_MEMBERS(FunctionNode);
  std::vector<Var> params;
  SeqExpr body;
  Type result_type;
  bool is_pure;
  bool is_private;  // not an entry point
  Attrs attrs;
  FunctionNode(std::vector<Var> p, SeqExpr b, Type r, bool pure = true, bool priv = false, Attrs a = {})
      : ExprNode(kKind),
        params(std::move(p)),
        body(std::move(b)),
        result_type(std::move(r)),
        is_pure(pure),
        is_private(priv),
        attrs(std::move(a)) {}
  static constexpr void Fields(auto&& walk) {
    walk(Defines(&FunctionNode::params), BindsSymbols(&FunctionNode::result_type), &FunctionNode::is_pure,
         &FunctionNode::is_private, &FunctionNode::attrs, &FunctionNode::body);
  }
};
using Function = Ref<FunctionNode>;

// Parameters are scalars or handles with a buffer; destination passing: outputs are the last buffers. A symbolic
// variable that occurs in a buffer's shape is bound by it.
struct PrimFuncParam {
  PrimVar var;    // a scalar, or the handle of the buffer
  Buffer buffer;  // null for a scalar
};
struct PrimFuncNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kPrimFunc;
  INGOT_NODE_MEMBERS(PrimFuncNode);
  std::vector<PrimFuncParam> params;
  Stmt body;  // a BlockRealize of the block "root" until blocks are lowered
  bool is_private;
  Attrs attrs;  // "tirx.noalias": true, "op_pattern", ...
  PrimFuncNode(std::vector<PrimFuncParam> p, Stmt b, bool priv = false, Attrs a = {})
      : ExprNode(kKind), params(std::move(p)), body(std::move(b)), is_private(priv), attrs(std::move(a)) {}
  static constexpr void Fields(auto&& walk) {
    walk(Defines(&PrimFuncNode::params), &PrimFuncNode::is_private, &PrimFuncNode::attrs, &PrimFuncNode::body);
  }
};
using PrimFunc = Ref<PrimFuncNode>;

}  // namespace ingot::ir

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::ir::Expr>;
extern template class std::vector<ingot::ir::Var>;
extern template class std::vector<ingot::ir::Binding>;
extern template class std::vector<ingot::ir::BindingBlock>;
