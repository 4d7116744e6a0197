// PrimExpr: scalar and vector expressions: symbolic dimensions of the graph level and the arithmetic of the tensor
// level are the same nodes. Integer dimensions are int64. Expressions nest at most kMaxNesting deep (builders of
// deeper ones report it), so walking them may recurse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/node.h"
#include "runtime/data_type.h"

namespace ingot::ir {

inline constexpr int kMaxNesting = 1000;

enum class PrimKind : uint8_t {
#define INGOT_PRIM_NODE(enumerator, Node) enumerator,
#include "compiler/ir/nodes.def"
};

struct PrimExprNode : Node {
  INGOT_NODE_MEMBERS(PrimExprNode);
  PrimKind kind;
  DataType dtype;

 protected:
  PrimExprNode(PrimKind k, DataType t) : kind(k), dtype(t) {}
};
using PrimExpr = Ref<PrimExprNode>;

struct IntImmNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kIntImm;
  INGOT_NODE_MEMBERS(IntImmNode);
  int64_t value;  // of bool: 0 or 1; of uint64: the bits
  IntImmNode(DataType dtype, int64_t v) : PrimExprNode(kKind, dtype), value(v) {}
  static constexpr void Fields(auto&& walk) { walk(&IntImmNode::value); }
};
struct FloatImmNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kFloatImm;
  INGOT_NODE_MEMBERS(FloatImmNode);
  double value;
  FloatImmNode(DataType dtype, double v) : PrimExprNode(kKind, dtype), value(v) {}
  static constexpr void Fields(auto&& walk) { walk(&FloatImmNode::value); }
};
struct StringImmNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kStringImm;
  INGOT_NODE_MEMBERS(StringImmNode);
  std::string value;
  explicit StringImmNode(std::string v) : PrimExprNode(kKind, DataType::Handle()), value(std::move(v)) {}
  static constexpr void Fields(auto&& walk) { walk(&StringImmNode::value); }
};
// A scalar variable: a symbolic dimension, a loop variable, a parameter, a buffer's data pointer (handle). Identity
// counts, the name is a hint.
struct PrimVarNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kPrimVar;
  INGOT_NODE_MEMBERS(PrimVarNode);
  std::string name;
  PrimVarNode(std::string n, DataType dtype = DataType::Int(64)) : PrimExprNode(kKind, dtype), name(std::move(n)) {}
  static constexpr void Fields(auto&& walk) { walk(IdentityOf(&PrimVarNode::name)); }
};
using PrimVar = Ref<PrimVarNode>;

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,       // floats: a / b; integers: rounds towards zero (T.truncdiv)
  kTruncMod,  // integers: the remainder of kDiv (T.truncmod)
  kFloorDiv,
  kFloorMod,
  kMin,  // of floats: NaN when either is NaN
  kMax,
  kEQ,
  kNE,
  kLT,
  kLE,
  kGT,
  kGE,  // bool
  kAnd,
  kOr,  // bool, both sides evaluated without effect
};
struct BinaryNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kBinary;
  INGOT_NODE_MEMBERS(BinaryNode);
  BinaryOp op;
  PrimExpr a, b;                                   // of equal dtype
  BinaryNode(BinaryOp o, PrimExpr x, PrimExpr y);  // dtype: that of a, or bool with a's lanes
  static constexpr void Fields(auto&& walk) { walk(&BinaryNode::op, &BinaryNode::a, &BinaryNode::b); }
};
struct NotNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kNot;
  INGOT_NODE_MEMBERS(NotNode);
  PrimExpr a;
  explicit NotNode(PrimExpr x) : PrimExprNode(kKind, x->dtype), a(std::move(x)) {}
  static constexpr void Fields(auto&& walk) { walk(&NotNode::a); }
};
// Both values are evaluated; T.if_then_else (an intrinsic) evaluates only the chosen one.
struct SelectNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kSelect;
  INGOT_NODE_MEMBERS(SelectNode);
  PrimExpr condition, true_value, false_value;
  SelectNode(PrimExpr c, PrimExpr t, PrimExpr f)
      : PrimExprNode(kKind, t->dtype), condition(std::move(c)), true_value(std::move(t)), false_value(std::move(f)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&SelectNode::condition, &SelectNode::true_value, &SelectNode::false_value);
  }
};
struct CastNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kCast;
  INGOT_NODE_MEMBERS(CastNode);
  PrimExpr value;
  CastNode(DataType dtype, PrimExpr v) : PrimExprNode(kKind, dtype), value(std::move(v)) {}
  static constexpr void Fields(auto&& walk) { walk(&CastNode::value); }
};
// base, base + stride, ...: lanes values.
struct RampNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kRamp;
  INGOT_NODE_MEMBERS(RampNode);
  PrimExpr base, stride;
  int lanes;
  RampNode(PrimExpr b, PrimExpr s, int l)
      : PrimExprNode(kKind, b->dtype.with_lanes(l)), base(std::move(b)), stride(std::move(s)), lanes(l) {}
  static constexpr void Fields(auto&& walk) { walk(&RampNode::base, &RampNode::stride); }
};
struct BroadcastNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kBroadcast;
  INGOT_NODE_MEMBERS(BroadcastNode);
  PrimExpr value;
  int lanes;
  BroadcastNode(PrimExpr v, int l) : PrimExprNode(kKind, v->dtype.with_lanes(l)), value(std::move(v)), lanes(l) {}
  static constexpr void Fields(auto&& walk) { walk(&BroadcastNode::value); }
};
// The lanes of the concatenated vectors at the given constant positions.
struct ShuffleNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kShuffle;
  INGOT_NODE_MEMBERS(ShuffleNode);
  std::vector<PrimExpr> vectors;
  std::vector<int64_t> indices;
  ShuffleNode(std::vector<PrimExpr> v, std::vector<int64_t> i)
      : PrimExprNode(kKind, v.at(0)->dtype.with_lanes(static_cast<int>(i.size()))),
        vectors(std::move(v)),
        indices(std::move(i)) {}
  static constexpr void Fields(auto&& walk) { walk(&ShuffleNode::vectors, &ShuffleNode::indices); }
};
struct LetNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kLet;
  INGOT_NODE_MEMBERS(LetNode);
  PrimVar var;
  PrimExpr value, body;
  LetNode(PrimVar x, PrimExpr v, PrimExpr b)
      : PrimExprNode(kKind, b->dtype), var(std::move(x)), value(std::move(v)), body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) { walk(&LetNode::value, Defines(&LetNode::var), &LetNode::body); }
};

// One number per row of intrinsics.def.
enum class Intrinsic : uint8_t {
#define INGOT_INTRINSIC(id, name, arity, result, traits, expansion, operations) k##id,
#include "compiler/ir/intrinsics.def"
};
struct IntrinsicRow {
  Intrinsic id;
  const char* name;  // as after "T."
  int arity;         // -1: any number
  enum Result { kSameAsFirst, kSameAsSecond, kBoolLanes, kGiven } result;
  enum Traits { kPure, kReads, kEffect } traits;
  enum Expansion { kPlain, kElementary, kWideElementary } expansion;
};
const IntrinsicRow& GetIntrinsicRow(Intrinsic id);
const IntrinsicRow* FindIntrinsic(std::string_view name);

struct PrimCallNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kPrimCall;
  INGOT_NODE_MEMBERS(PrimCallNode);
  Intrinsic op;
  std::vector<PrimExpr> args;
  PrimCallNode(DataType dtype, Intrinsic o, std::vector<PrimExpr> a)
      : PrimExprNode(kKind, dtype), op(o), args(std::move(a)) {}
  static constexpr void Fields(auto&& walk) { walk(&PrimCallNode::op, &PrimCallNode::args); }
};

struct BufferNode;
using Buffer = Ref<BufferNode>;
struct BufferLoadNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kBufferLoad;
  INGOT_NODE_MEMBERS(BufferLoadNode);
  Buffer buffer;
  std::vector<PrimExpr> indices;  // one per dimension; the last may be a Ramp (a vector load)
  BufferLoadNode(Buffer b, std::vector<PrimExpr> i);
  static constexpr void Fields(auto&& walk) { walk(&BufferLoadNode::buffer, &BufferLoadNode::indices); }
};

// [min, min + extent)
struct Range {
  PrimExpr min, extent;
  static constexpr void Fields(auto&& walk) { walk(&Range::min, &Range::extent); }
};
enum class IterType : uint8_t {
  kSpatial,  // S: data-parallel
  kReduce,   // R: commutative reduction
  kScan,     // ordered
  kOpaque,   // O
  kThread,   // bound to a GPU axis
};
struct IterVarNode : Node {
  INGOT_NODE_MEMBERS(IterVarNode);
  Range domain;
  PrimVar var;
  IterType type;
  std::string thread_tag;  // "threadIdx.x", ...; else empty
  IterVarNode(Range d, PrimVar v, IterType t, std::string tag = "")
      : domain(std::move(d)), var(std::move(v)), type(t), thread_tag(std::move(tag)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&IterVarNode::domain, &IterVarNode::type, &IterVarNode::thread_tag, Defines(&IterVarNode::var));
  }
};
using IterVar = Ref<IterVarNode>;

// result[i] = combine(lhs[i], rhs[i]) from identity[i]; sum, prod, min and max are the common ones.
struct CommReducer {
  std::vector<PrimVar> lhs, rhs;
  std::vector<PrimExpr> result, identity;
};
struct ReduceNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kReduce;
  INGOT_NODE_MEMBERS(ReduceNode);
  CommReducer combiner;
  std::vector<PrimExpr> source;
  std::vector<PrimExpr> init;  // empty: the identity
  std::vector<IterVar> axes;
  PrimExpr condition;
  int value_index;
  ReduceNode(CommReducer c, std::vector<PrimExpr> s, std::vector<IterVar> a, PrimExpr cond, int index,
             std::vector<PrimExpr> i)
      : PrimExprNode(kKind, s.at(index)->dtype),
        combiner(std::move(c)),
        source(std::move(s)),
        init(std::move(i)),
        axes(std::move(a)),
        condition(std::move(cond)),
        value_index(index) {}
  static constexpr void Fields(auto&& walk) {
    walk(Defines(&ReduceNode::axes), &ReduceNode::combiner, &ReduceNode::init, &ReduceNode::condition,
         &ReduceNode::source, &ReduceNode::value_index);
  }
};
struct ProducerLoadNode : PrimExprNode {
  static constexpr PrimKind kKind = PrimKind::kProducerLoad;
  INGOT_NODE_MEMBERS(ProducerLoadNode);
  Ref<Node> producer;  // a te::TensorNode
  std::vector<PrimExpr> indices;
  ProducerLoadNode(DataType dtype, Ref<Node> p, std::vector<PrimExpr> i)
      : PrimExprNode(kKind, dtype), producer(std::move(p)), indices(std::move(i)) {}
  static constexpr void Fields(auto&& walk) { walk(&ProducerLoadNode::producer, &ProducerLoadNode::indices); }
};

// ---- Building. Constants fold where nothing overflows; x + 0, x * 1 and the like simplify; nothing else does (that
// is arith's work). Operands are matched: an IntImm adapts to the other side's dtype, otherwise dtypes must be equal.
PrimExpr IntImm(DataType dtype, int64_t value);
PrimExpr Int64(int64_t value);
PrimExpr Int32(int64_t value);
PrimExpr BoolImm(bool value);
PrimExpr FloatImm(DataType dtype, double value);
PrimExpr StringImm(std::string value);
PrimVar MakePrimVar(std::string name, DataType dtype = DataType::Int(64));
// A constant of any arithmetic dtype (broadcast when it has lanes).
PrimExpr MakeConst(DataType dtype, double value);
PrimExpr MinValue(DataType dtype);
PrimExpr MaxValue(DataType dtype);
PrimExpr MakeBinary(BinaryOp op, PrimExpr a, PrimExpr b);
PrimExpr Cast(DataType dtype, PrimExpr value);
PrimExpr Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value);
PrimExpr IfThenElse(PrimExpr condition, PrimExpr true_value, PrimExpr false_value);  // the lazy intrinsic
PrimExpr CallIntrinsic(Intrinsic op, std::vector<PrimExpr> args);                    // dtype by intrinsics.def
PrimExpr Not(PrimExpr a);
PrimExpr FloorDiv(PrimExpr a, PrimExpr b);
PrimExpr FloorMod(PrimExpr a, PrimExpr b);
PrimExpr Min(PrimExpr a, PrimExpr b);
PrimExpr Max(PrimExpr a, PrimExpr b);
PrimExpr operator+(PrimExpr a, PrimExpr b);
PrimExpr operator-(PrimExpr a, PrimExpr b);
PrimExpr operator*(PrimExpr a, PrimExpr b);
PrimExpr operator/(PrimExpr a, PrimExpr b);  // kDiv: only for floats, or integers that truncate on purpose
PrimExpr operator<(PrimExpr a, PrimExpr b);
PrimExpr operator<=(PrimExpr a, PrimExpr b);
PrimExpr operator>(PrimExpr a, PrimExpr b);
PrimExpr operator>=(PrimExpr a, PrimExpr b);
PrimExpr Equal(PrimExpr a, PrimExpr b);
PrimExpr NotEqual(PrimExpr a, PrimExpr b);
PrimExpr And(PrimExpr a, PrimExpr b);
PrimExpr Or(PrimExpr a, PrimExpr b);
inline PrimExpr operator+(PrimExpr a, int64_t b) { return a + IntImm(a->dtype, b); }
inline PrimExpr operator-(PrimExpr a, int64_t b) { return a - IntImm(a->dtype, b); }
inline PrimExpr operator*(PrimExpr a, int64_t b) { return a * IntImm(a->dtype, b); }

// The value of an integer constant, or none.
std::optional<int64_t> AsConstInt(const PrimExpr& expr);
bool IsConstInt(const PrimExpr& expr, int64_t value);

}  // namespace ingot::ir

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::ir::PrimExpr>;
extern template class std::vector<ingot::ir::PrimVar>;
extern template class std::vector<ingot::ir::IterVar>;
