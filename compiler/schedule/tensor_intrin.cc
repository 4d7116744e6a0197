// Checks an intrinsic's two functions, and builds the micro-kernels that need no registration.
#include "compiler/schedule/tensor_intrin.h"

#include <functional>

#include "compiler/arith/block_util.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/widen_indices.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

Status Bad(const std::string& intrin, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "tensor intrinsic \"" + intrin + "\": " + what);
}

class Finder : public StmtVisitor {
 public:
  bool has_block = false, has_other = false;
  std::vector<PrimVar> handles;  // of the parameters
  bool uses_handle = false;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BlockRealizeNode& node) override {
    has_block = true;
    StmtVisitor::Visit(node);
  }
  void Visit(const EvaluateNode& node) override {
    has_other = true;
    StmtVisitor::Visit(node);
  }
  void Visit(const PrimVarNode& var) override {
    for (const PrimVar& handle : handles) uses_handle |= handle.get() == &var;
  }
};

const BlockNode* RootOf(const PrimFunc& function) {
  const auto* realize = As<BlockRealizeNode>(function->body);
  const bool is_root = realize != nullptr && realize->block->iter_vars.empty() && !realize->block->init;
  return is_root ? realize->block.get() : nullptr;
}

bool OnlyStores(const Stmt& stmt) {
  const auto* seq = As<SeqNode>(stmt);
  if (seq == nullptr) return As<BufferStoreNode>(stmt) != nullptr;
  for (const Stmt& child : seq->stmts) {
    if (As<BufferStoreNode>(child) == nullptr) return false;
  }
  return true;
}

Status CheckParams(const TensorIntrinNode& intrin) {
  const auto& described = intrin.description->params;
  const auto& implemented = intrin.implementation->params;
  if (described.size() != implemented.size()) return Bad(intrin.name, "its functions have other numbers of parameters");
  for (size_t i = 0; i < described.size(); ++i) {
    const Buffer &a = described[i].buffer, &b = implemented[i].buffer;
    const std::string which = "parameter " + std::to_string(i);
    if (!a || !b) return Bad(intrin.name, which + " is no buffer");
    if (a->dtype != b->dtype || a->shape.size() != b->shape.size()) {
      return Bad(intrin.name, which + " has another dtype or rank in the implementation");
    }
    for (size_t d = 0; d < a->shape.size(); ++d) {
      const auto x = AsConstInt(a->shape[d]), y = AsConstInt(b->shape[d]);
      const bool symbolic = As<PrimVarNode>(a->shape[d]) != nullptr && As<PrimVarNode>(b->shape[d]) != nullptr;
      if (x && y ? *x == *y : symbolic) continue;
      return Bad(intrin.name, which + " has another extent in the implementation, or one that is an expression");
    }
  }
  return Status();
}

}  // namespace

Result<DescribedBlock> FindDescribedBlock(const PrimFunc& description) {
  const BlockNode* root = RootOf(description);
  if (root == nullptr) return Status(StatusCode::kInvalidArgument, "the description has no root block");
  DescribedBlock found;
  Stmt stmt = root->body;
  while (const auto loop = AsRef<ForNode>(stmt)) {
    found.loops.push_back(loop);
    stmt = loop->body;
  }
  found.realize = AsRef<BlockRealizeNode>(stmt);
  if (!found.realize) return Status(StatusCode::kInvalidArgument, "the description is not one nest around one block");
  return found;
}

Result<TensorIntrin> MakeTensorIntrin(std::string name, PrimFunc description, PrimFunc implementation) {
  TensorIntrinNode intrin;
  intrin.name = std::move(name);
  const std::optional<PrimFunc> wide_description = WidenIndices(description);
  const std::optional<PrimFunc> wide_implementation = WidenIndices(implementation);
  if (!wide_description || !wide_implementation) return Bad(intrin.name, "its dimensions are not counted in int64");
  intrin.description = *wide_description;
  intrin.implementation = *wide_implementation;
  INGOT_RETURN_IF_ERROR(CheckParams(intrin));
  Result<DescribedBlock> described = FindDescribedBlock(intrin.description);
  if (!described.ok()) return Bad(intrin.name, described.status().message());
  const BlockNode& block = *described->realize->block;
  bool simple = IsConstInt(described->realize->predicate, 1) && block.iter_vars.size() == described->loops.size();
  for (size_t i = 0; simple && i < block.iter_vars.size(); ++i) {
    simple = described->realize->iter_values[i].get() == described->loops[i]->var.get() &&
             IsConstInt(described->loops[i]->min, 0);
  }
  if (!simple) return Bad(intrin.name, "the description's block is not bound to its loops, in their order");
  if (!OnlyStores(block.body)) return Bad(intrin.name, "the description's block holds more than stores");
  const BlockNode* root = RootOf(intrin.implementation);
  if (root == nullptr) return Bad(intrin.name, "the implementation has no root block");
  Finder finder;
  for (const PrimFuncParam& param : intrin.implementation->params) finder.handles.push_back(param.var);
  finder.VisitStmt(root->body);
  if (finder.has_block) return Bad(intrin.name, "the implementation holds blocks; write plain loops");
  if (finder.uses_handle || finder.has_other) return Bad(intrin.name, "the implementation calls functions");
  return Make<TensorIntrinNode>(std::move(intrin));
}

namespace {

using Body = std::function<Stmt(const std::vector<PrimExpr>&)>;

// Loops of these kinds around a body over their variables.
struct LoopSpec {
  const char* name;
  PrimExpr extent;
  ForKind kind;
};
Stmt Loops(const std::vector<LoopSpec>& specs, const Body& body) {
  std::vector<PrimVar> vars;
  for (const LoopSpec& spec : specs) vars.push_back(MakePrimVar(spec.name));
  Stmt stmt = body({vars.begin(), vars.end()});
  for (size_t i = specs.size(); i-- > 0;) {
    stmt = Make<ForNode>(vars[i], Int64(0), specs[i].extent, specs[i].kind, std::move(stmt));
  }
  return stmt;
}

PrimExpr Load(const Buffer& buffer, std::vector<PrimExpr> indices) {
  return Make<BufferLoadNode>(buffer, std::move(indices));
}
Stmt Store(const Buffer& buffer, PrimExpr value, std::vector<PrimExpr> indices) {
  return Make<BufferStoreNode>(buffer, std::move(value), std::move(indices));
}

// The buffers A, B and C of one of the two functions.
struct Operands {
  PrimExpr depth = MakePrimVar("k");
  Buffer a, b, c;
  Operands(int64_t rows, int64_t columns) {
    const DataType f32 = DataType::Float(32);
    a = MakeBuffer("A", f32, {Int64(rows), depth});
    b = MakeBuffer("B", f32, {depth, Int64(columns)});
    c = MakeBuffer("C", f32, {Int64(rows), Int64(columns)});
  }
  PrimFunc Function(Stmt body, std::vector<Buffer> allocated) const {
    BlockNode root("root", {}, {}, {}, std::move(body));
    root.alloc_buffers = std::move(allocated);
    std::vector<PrimFuncParam> params;
    for (const Buffer& buffer : {a, b, c}) params.push_back({buffer->data, buffer});
    return Make<PrimFuncNode>(
        std::move(params),
        Make<BlockRealizeNode>(std::vector<PrimExpr>{}, BoolImm(true), Make<BlockNode>(std::move(root))), false,
        Attrs{{"tirx.noalias", AttrValue(true)}});
  }
};

PrimFunc DescribeGemm(int64_t rows, int64_t columns, bool starts) {
  const Operands o(rows, columns);
  const std::vector<LoopSpec> loops{
      {"i", Int64(rows), ForKind::kSerial}, {"j", Int64(columns), ForKind::kSerial}, {"k", o.depth, ForKind::kSerial}};
  const std::vector<IterType> types{IterType::kSpatial, IterType::kSpatial, IterType::kReduce};
  Stmt nest = Loops(loops, [&](const std::vector<PrimExpr>& values) -> Stmt {
    std::vector<IterVar> iters;
    std::vector<PrimExpr> v;
    for (size_t i = 0; i < loops.size(); ++i) {
      const PrimVar var = MakePrimVar(std::string("v") + loops[i].name);
      iters.push_back(Make<IterVarNode>(Range{Int64(0), loops[i].extent}, var, types[i]));
      v.push_back(var);
    }
    const PrimExpr product = Load(o.a, {v[0], v[2]}) * Load(o.b, {v[2], v[1]});
    Stmt update = Store(o.c, Load(o.c, {v[0], v[1]}) + product, {v[0], v[1]});
    const Stmt init = starts ? Store(o.c, FloatImm(o.c->dtype, 0), {v[0], v[1]}) : nullptr;
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(update, init);
    return Make<BlockRealizeNode>(values, BoolImm(true),
                                  Make<BlockNode>("update", iters, regions.reads, regions.writes, update, init));
  });
  return o.Function(std::move(nest), {});
}

PrimFunc ImplementGemm(int64_t rows, int64_t columns, int64_t lanes, bool starts) {
  const Operands o(rows, columns);
  const Buffer acc = MakeBuffer("acc", DataType::Float(32), {Int64(rows), Int64(columns)}, "local");
  // A loop nest over the elements of the tile, in vectors.
  const auto tile = [&](const std::function<Stmt(PrimExpr, PrimExpr)>& element) {
    return Loops({{"i", Int64(rows), ForKind::kUnrolled},
                  {"j", Int64(columns / lanes), ForKind::kUnrolled},
                  {"l", Int64(lanes), ForKind::kVectorized}},
                 [&](const std::vector<PrimExpr>& v) { return element(v[0], v[1] * lanes + v[2]); });
  };
  const Stmt steps = Loops({{"k", o.depth, ForKind::kSerial}}, [&](const std::vector<PrimExpr>& k) {
    return tile([&](PrimExpr i, PrimExpr j) {
      return Store(acc, Load(acc, {i, j}) + Load(o.a, {i, k[0]}) * Load(o.b, {k[0], j}), {i, j});
    });
  });
  const auto first = [&](PrimExpr i, PrimExpr j) {
    return Store(acc, starts ? FloatImm(o.c->dtype, 0) : Load(o.c, {i, j}), {i, j});
  };
  Stmt body = MakeSeq({tile(first), steps, tile([&](PrimExpr i, PrimExpr j) {
                         return Store(o.c, Load(acc, {i, j}), {i, j});
                       })});
  return o.Function(std::move(body), {acc});
}

struct GemmFamily {
  int64_t most_rows, columns, lanes;
};
constexpr GemmFamily kGemmFamilies[] = {{6, 16, 8}, {14, 32, 16}};

std::string GemmName(int64_t rows, int64_t columns, int64_t lanes, bool starts) {
  return "gemm_f32_" + std::to_string(rows) + "x" + std::to_string(columns) + "_v" + std::to_string(lanes) +
         (starts ? "_init" : "");
}

}  // namespace

TensorIntrin GemmMicroKernel(int64_t rows, int64_t columns, int64_t lanes, bool starts) {
  INGOT_CHECK(rows >= 1 && lanes >= 2 && columns >= lanes && columns % lanes == 0, "whole vectors");
  Result<TensorIntrin> intrin =
      MakeTensorIntrin(GemmName(rows, columns, lanes, starts), DescribeGemm(rows, columns, starts),
                       ImplementGemm(rows, columns, lanes, starts));
  INGOT_CHECK(intrin.ok(), "a micro-kernel describes itself");
  return *intrin;
}

TensorIntrin FindBuiltinIntrin(std::string_view name) {
  for (const GemmFamily& family : kGemmFamilies) {
    for (int64_t rows = 1; rows <= family.most_rows; ++rows) {
      for (bool starts : {false, true}) {
        if (name == GemmName(rows, family.columns, family.lanes, starts)) {
          return GemmMicroKernel(rows, family.columns, family.lanes, starts);
        }
      }
    }
  }
  return nullptr;
}

}  // namespace ingot::schedule
