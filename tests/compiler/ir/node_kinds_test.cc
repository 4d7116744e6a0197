// A node of every kind: what it hashes to, in which order its parts are visited, and what mutators make of it. All of
// this follows from the lists of fields of the nodes, so a change of a list shows here.
#include <doctest/doctest.h>

#include <set>

#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

constexpr size_t kNumPrimKinds = 0
#define INGOT_PRIM_NODE(enumerator, Node) +1
#include "compiler/ir/nodes.def"
    ;
constexpr size_t kNumStmtKinds = 0
#define INGOT_STMT_NODE(enumerator, Node) +1
#include "compiler/ir/nodes.def"
    ;
constexpr size_t kNumTypeKinds = 0
#define INGOT_TYPE_NODE(enumerator, Node) +1
#include "compiler/ir/nodes.def"
    ;
constexpr size_t kNumExprKinds = 0
#define INGOT_EXPR_NODE(enumerator, Node) +1
#include "compiler/ir/nodes.def"
    ;

template <typename T>
std::vector<T> List(std::initializer_list<T> items) {
  return items;
}

// What the samples are made of; names tell the parts apart in the traces of visits.
struct Parts {
  PrimVar n = MakePrimVar("n"), m = MakePrimVar("m"), i = MakePrimVar("i"), v = MakePrimVar("v");
  PrimVar f = MakePrimVar("f", DataType::Float(32)), g = MakePrimVar("g", DataType::Float(32));
  PrimVar condition = MakePrimVar("condition", DataType::Bool());
  Buffer buffer = MakeBuffer("buffer", DataType::Float(32), {n, Int64(7)});
  Buffer other = MakeBuffer("other", DataType::Float(32), {m}, "local");
  PrimExpr load = Make<BufferLoadNode>(buffer, List<PrimExpr>({n, m}));
  Stmt store = Make<BufferStoreNode>(buffer, f, List<PrimExpr>({n, Int64(7)}));

  std::vector<PrimExpr> Prims() const {
    const IterVar axis = Make<IterVarNode>(Range{n, m}, i, IterType::kReduce);
    const CommReducer sum{{f}, {g}, {f + g}, {FloatImm(DataType::Float(32), 0)}};
    return {Int64(7),
            FloatImm(DataType::Float(32), 1.5),
            StringImm("text"),
            n,
            Make<BinaryNode>(BinaryOp::kSub, n, Int64(7)),
            Make<NotNode>(condition),
            Make<SelectNode>(condition, n, m),
            Make<CastNode>(DataType::Int(32), n),
            load,
            Make<RampNode>(n, Int64(7), 4),
            Make<BroadcastNode>(n, 4),
            Make<ShuffleNode>(List<PrimExpr>({n, m}), List<int64_t>({1, 0})),
            Make<LetNode>(v, n, v + m),
            CallIntrinsic(Intrinsic::kExp, {f}),
            Make<ReduceNode>(sum, List<PrimExpr>({load}), List<IterVar>({axis}), condition, 0, List<PrimExpr>({g})),
            Make<ProducerLoadNode>(DataType::Float(32), nullptr, List<PrimExpr>({n, m}))};
  }

  std::vector<Stmt> Stmts() const {
    const Attrs attrs{{"key", 7}};
    const IterVar axis = Make<IterVarNode>(Range{Int64(0), n}, v, IterType::kSpatial);
    const IterVar thread = Make<IterVarNode>(Range{n, m}, i, IterType::kThread, "threadIdx.x");
    const BufferRegion region{buffer, {{v, Int64(1)}, {m, Int64(7)}}};
    BlockNode block("block", {axis}, {region}, {{other, {{n, m}}}}, store, store);
    block.alloc_buffers = {other};
    BufferNode view = *MakeBuffer("view", DataType::Float(32), {Int64(7)});
    view.strides = {MakePrimVar("stride")};
    view.elem_offset = MakePrimVar("offset");
    block.match_buffers = {{Make<BufferNode>(std::move(view)), {buffer, {{f, g}, {n, m}}}}};
    block.annotations = attrs;
    const Block made = Make<BlockNode>(std::move(block));
    return {store,
            Make<EvaluateNode>(f),
            Make<SeqNode>(List<Stmt>({store, Make<EvaluateNode>(f)})),
            Make<IfStmtNode>(condition, store, nullptr),
            Make<IfStmtNode>(condition, store, Make<EvaluateNode>(f)),
            Make<ForNode>(i, n, m, ForKind::kParallel, Make<EvaluateNode>(i), "", attrs),
            Make<WhileNode>(condition, store),
            Make<LetStmtNode>(v, n, Make<EvaluateNode>(v)),
            Make<AssertStmtNode>(condition, "message", store),
            Make<AllocateNode>(other, store, attrs),
            Make<AttrStmtNode>(thread, "thread_extent", PrimExpr(n + m), Make<EvaluateNode>(i)),
            Make<AttrStmtNode>(buffer, "key", "value", store),
            Make<AttrStmtNode>(nullptr, "key", 7, store),
            made,
            Make<BlockRealizeNode>(List<PrimExpr>({n}), condition, made)};
  }

  std::vector<Type> Types() const {
    const Type tensor = Make<TensorTypeNode>(List<PrimExpr>({n, Int64(7)}), DataType::Float(32), "cuda:0");
    const Type result = Make<ShapeTypeNode>(List<PrimExpr>({n, m}));
    return {Make<ObjectTypeNode>(),
            Make<PrimTypeNode>(DataType::Int(32)),
            Make<PrimTypeNode>(n),
            Make<ShapeTypeNode>(2),
            result,
            tensor,
            Make<TensorTypeNode>(-1, std::nullopt),
            Make<TupleTypeNode>(List<Type>({tensor, result})),
            Make<CallableTypeNode>(List<Type>({tensor}), result, true),
            Make<CallableTypeNode>(std::nullopt, tensor, false)};
  }

  std::vector<Expr> Exprs() const {
    const Type tensor = Make<TensorTypeNode>(List<PrimExpr>({n}), DataType::Float(32));
    const Var x = Make<VarNode>("x", tensor), y = Make<VarNode>("y", tensor, true), z = Make<VarNode>("z", tensor);
    const Expr constant = Make<ConstantNode>(
        ConstantData::FromBytes(DataType::Int(8), {2}, {static_cast<std::byte>(1), static_cast<std::byte>(2)}), "c");
    const GlobalVar callee = Make<GlobalVarNode>("callee");
    const Expr call =
        Make<CallNode>(callee, List<Expr>({x, constant}), Attrs{{"key", 7}}, List<Type>({tensor}), tensor);
    const BindingBlock dataflow{{{y, call, nullptr, {}}, {z, y, nullptr, {}}}, true};
    const Var w = Make<VarNode>("w", nullptr), a = Make<VarNode>("a", tensor);
    const BindingBlock plain{{{w, z, Make<TensorTypeNode>(List<PrimExpr>({m}), DataType::Float(32)), {}}}, false};
    const SeqExpr seq = Make<SeqExprNode>(List<BindingBlock>({dataflow, plain}), Expr(w), tensor);
    const SeqExpr leaf = Make<SeqExprNode>(List<BindingBlock>({}), Expr(x), tensor);
    return {x,
            constant,
            call,
            Make<TupleNode>(List<Expr>({x, constant})),
            Make<TupleGetItemNode>(x, 1),
            Make<IfNode>(constant, leaf, seq, tensor),
            Make<ShapeExprNode>(List<PrimExpr>({n, m})),
            Make<PrimValueNode>(n),
            Make<StringValueNode>("text"),
            Make<DataTypeValueNode>(DataType::Float(16)),
            Make<OpNode>("add", nullptr),
            callee,
            Make<ExternFuncNode>("extern"),
            seq,
            Make<FunctionNode>(List<Var>({x}), seq, tensor, true, false, Attrs{{"key", "value"}}),
            Make<PrimFuncNode>(List<PrimFuncParam>({{n, nullptr}, {buffer->data, buffer}}), store, true,
                               Attrs{{"key", 7}})};
  }
};

// Names of variables and numbers in the order in which they are visited.
class Trace : public StmtVisitor {
 public:
  std::string Text() const { return text_.substr(0, text_.size() - !text_.empty()); }
  void VisitPrim(const PrimExpr& expr) override {
    if (const auto* var = As<PrimVarNode>(expr)) text_ += var->name + " ";
    if (const auto value = AsConstInt(expr)) text_ += std::to_string(*value) + " ";
    StmtVisitor::VisitPrim(expr);
  }

 private:
  std::string text_;
};
class GraphTrace : public ExprVisitor {
 public:
  std::string Text() const { return text_.substr(0, text_.size() - !text_.empty()); }
  void VisitExpr(const Expr& expr) override {
    if (const auto* var = As<VarNode>(expr)) text_ += var->name + " ";
    if (As<ConstantNode>(expr) != nullptr) text_ += "c ";
    if (const auto* callee = As<GlobalVarNode>(expr)) text_ += callee->name + " ";
    ExprVisitor::VisitExpr(expr);
  }

 private:
  std::string text_;
};

// Replace some of the variables, and constants.
class Changer : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    if (var->name == "m") return Int64(5);
    return var->name == "f" ? FloatImm(var->dtype, 2) : PrimExpr(var);
  }
};
class GraphChanger : public ExprMutator {
 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const Ref<ConstantNode>&) override { return Make<StringValueNode>("changed"); }
};

// In the order of Parts: the hash, what is visited, and the hash of what a mutator makes of it. Tuning keys contain
// hashes, so a number here changes with kStructuralHashVersion alone.
struct Row {
  uint64_t hash;
  const char* visited;
  uint64_t mutated;
};
const std::vector<Row> kPrims = {
    {0xf689bf8d37710f00, "7", 0xf689bf8d37710f00},
    {0x6e4255cabda3e291, "", 0x6e4255cabda3e291},
    {0xfc2138078769de7e, "", 0xfc2138078769de7e},
    {0x997c5ed4cbc1fc7c, "n", 0x997c5ed4cbc1fc7c},
    {0xf4ba4c42caaaa641, "n 7", 0xf4ba4c42caaaa641},
    {0x7d60b725aacbff54, "condition", 0x7d60b725aacbff54},
    {0x0240055b138e4eb5, "condition n m", 0x5e7b26090bb0c9f2},
    {0x532825782941450c, "n", 0x532825782941450c},
    {0xa4bb4c06e84a2e59, "n m", 0xc11cc6b63eea0e3f},
    {0x4ffee1c191f6e429, "n 7", 0x4ffee1c191f6e429},
    {0x658ad85fe0a01cdc, "n", 0x658ad85fe0a01cdc},
    {0x06436ae8abae5ab4, "n m", 0x6a6e80e433169f21},
    {0x25f4dd4388913489, "n v m", 0x8121dd16bdeb7a13},
    {0x7f9e42d0b3666937, "f", 0x00b7e6733c35c0af},
    {0xfb18260122c4c6cf, "n m g condition n m", 0x625a749a49c033ed},
    {0xdf141891fcbb0663, "n m", 0x04d404726f1d4e88},
};
const std::vector<Row> kStmts = {
    {0xed057a6cd49d4d5d, "f n 7", 0xa0c99cf3d2a5dc75},
    {0xce1269a8c1b7e525, "f", 0xa68ffebaa6ad6687},
    {0xfa059de8ba20d5dd, "f n 7 f", 0xe72f0a410bac039f},
    {0x9bf24647db5b9ef2, "condition f n 7", 0x63e02aa1919e9bdf},
    {0x9aae4e94c93df0dd, "condition f n 7 f", 0xb77c4921d63f1198},
    {0x1e2415f3ddb8aaae, "n m i", 0x4388f2428947427d},
    {0x8ad59ef72e6bb349, "condition f n 7", 0xb8f4bfd3b897f19e},
    {0x79f574efba5e0ecd, "n v", 0x79f574efba5e0ecd},
    {0xb1a9759516722093, "condition f n 7", 0x92fc47aca6de5bf0},
    {0xcab168536170735c, "f n 7", 0x5d9e28f872e86aef},
    {0xeb1cec2f466d3fb1, "n m i", 0x75600f267244ad8f},
    {0x0461b8413a432348, "f n 7", 0x77dc2b8bd5c34052},
    {0x44f29fa01971cfc1, "f n 7", 0x54c3f69b9d0ab355},
    {0x570ada12e19b7b63, "0 n f g n m v 1 m 7 n m f n 7 f n 7", 0x72be08bcbca28222},
    {0xfeadc550099d899b, "n condition 0 n f g n m v 1 m 7 n m f n 7 f n 7", 0xbd94146be1b4d495},
};
const std::vector<Row> kExprs = {
    {0x7669403b5a8a5155, "x", 0x7669403b5a8a5155},
    {0xa9ee22312820405b, "c", 0xd812da2c257cf6b1},
    {0x5a3a9368edba2057, "callee x c", 0x2a69e781db9be100},
    {0x630bd60349983e84, "x c", 0x33d6e59260ce30da},
    {0x3f101c2ca94cebb7, "x", 0x3f101c2ca94cebb7},
    {0x33df9530e7892c04, "c x callee x c y z w", 0x0c04c8571ead1add},
    {0x216407315f8592af, "", 0x216407315f8592af},
    {0xe9d6bf03e321dfa3, "", 0xe9d6bf03e321dfa3},
    {0x8f9377f543b998a6, "", 0x8f9377f543b998a6},
    {0xdbd282f4f830dd8c, "", 0xdbd282f4f830dd8c},
    {0x4f8e541d3803175f, "", 0x4f8e541d3803175f},
    {0x119c62bd517cd85b, "callee", 0x119c62bd517cd85b},
    {0xeb674030c0d63662, "", 0xeb674030c0d63662},
    {0x5404465716b21080, "callee x c y z w", 0x48b4880c96b69d7a},
    {0xae46a3349ca4428a, "callee x c y z w", 0x782bb45da9c711ed},
    {0x0b3ea90f1997105a, "", 0x0b3ea90f1997105a},
};
const std::vector<std::pair<uint64_t, uint64_t>> kTypes = {
    // and with m + 1 in the place of n
    {0x558d61ed2fcc3963, 0x558d61ed2fcc3963}, {0xc8c46cc5ecaf9f03, 0xc8c46cc5ecaf9f03},
    {0xc1b9b1448fbad303, 0x18d0c4ae56202985}, {0xb843b59d1dd99f91, 0xb843b59d1dd99f91},
    {0x9070d007ca436994, 0x82f8cd2733e47a82}, {0xa7568a9f09284d82, 0xe390c356d0d909cf},
    {0x3c5f1e42a09c2c4f, 0x3c5f1e42a09c2c4f}, {0xdade02fde1f414aa, 0x44ec2faac2f1ec05},
    {0x25b664dd5b91c1e7, 0x1fd6b42e72617894}, {0x805e9eb6ba7be615, 0x27d637a0375d3871},
};

template <typename T, typename Visit, typename Mutate>
void Check(const std::vector<T>& samples, const std::vector<Row>& rows, Visit visit, Mutate mutate) {
  REQUIRE(samples.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(StructuralHash(samples[i]) == rows[i].hash);
    CHECK(visit(samples[i]) == std::string(rows[i].visited));
    CHECK(StructuralHash(mutate(samples[i])) == rows[i].mutated);
  }
}

TEST_CASE("every kind of scalar expression: its hash, the order of visits, what mutators make of it") {
  const auto visit = [](const PrimExpr& expr) {
    Trace trace;
    trace.VisitPrim(expr);
    return trace.Text();
  };
  Check(Parts().Prims(), kPrims, visit, [](const PrimExpr& expr) { return Changer().MutatePrim(expr); });
}

TEST_CASE("every kind of statement: its hash, the order of visits, what mutators make of it") {
  const auto visit = [](const Stmt& stmt) {
    Trace trace;
    trace.VisitStmt(stmt);
    return trace.Text();
  };
  Check(Parts().Stmts(), kStmts, visit, [](const Stmt& stmt) { return Changer().MutateStmt(stmt); });
}

TEST_CASE("every kind of graph expression: its hash, the order of visits, what mutators make of it") {
  const auto visit = [](const Expr& expr) {
    GraphTrace trace;
    trace.VisitExpr(expr);
    return trace.Text();
  };
  Check(Parts().Exprs(), kExprs, visit, [](const Expr& expr) { return GraphChanger().MutateExpr(expr); });
}

TEST_CASE("every kind of type: its hash, and what a substitution makes of it") {
  const Parts parts;
  const std::vector<Type> types = parts.Types();
  REQUIRE(types.size() == kTypes.size());
  for (size_t i = 0; i < types.size(); ++i) {
    CAPTURE(i);
    CHECK(StructuralHash(types[i]) == kTypes[i].first);
    CHECK(StructuralHash(Substitute(types[i], {{parts.n, parts.m + 1}})) == kTypes[i].second);
    CHECK(Substitute(types[i], {{MakePrimVar("unused"), Int64(0)}}).same_as(types[i]));
  }
}

TEST_CASE("the samples have every kind") {
  const Parts parts;
  const auto num_kinds = [](const auto& samples) {
    std::set<int> kinds;
    for (const auto& sample : samples) kinds.insert(static_cast<int>(sample->kind));
    return kinds.size();
  };
  CHECK(num_kinds(parts.Prims()) == kNumPrimKinds);
  CHECK(num_kinds(parts.Stmts()) == kNumStmtKinds);
  CHECK(num_kinds(parts.Types()) == kNumTypeKinds);
  CHECK(num_kinds(parts.Exprs()) == kNumExprKinds);
}

TEST_CASE("a mutator that changes nothing returns the same node") {
  const Parts parts;
  struct Nothing : StmtMutator {
  } nothing;
  for (const PrimExpr& expr : parts.Prims()) CHECK(nothing.MutatePrim(expr).same_as(expr));
  for (const Stmt& stmt : parts.Stmts()) CHECK(nothing.MutateStmt(stmt).same_as(stmt));
  struct NothingInGraphs : ExprMutator {
  } nothing_in_graphs;
  for (const Expr& expr : parts.Exprs()) CHECK(nothing_in_graphs.MutateExpr(expr).same_as(expr));
}

TEST_CASE("a fresh copy has definitions of its own") {
  class Definitions : public StmtVisitor {
   public:
    std::set<const Node*> found;
    void VisitDefinition(const PrimVar& var) override { found.insert(var.get()); }
  };
  for (const Stmt& stmt : Parts().Stmts()) {
    const Stmt copy = CopyFresh(stmt);
    CHECK(StructuralEqual(copy, stmt));
    Definitions before, after;
    before.VisitStmt(stmt);
    after.VisitStmt(copy);
    CHECK(before.found.size() == after.found.size());
    for (const Node* var : after.found) CHECK(!before.found.contains(var));
  }
}

}  // namespace
}  // namespace ingot::ir
