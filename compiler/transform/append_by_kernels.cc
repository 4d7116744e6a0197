// append_by_kernels
//   Before: R.kv_cache.append is a routine of the host, which keeps the cache there.
//   After:  where kernels run on a GPU, it is a call of a tensor function that writes the part into the cache, so that
//           the cache may lie on the GPU. Where it is not proved that the part fits, the function asserts it.
//   After read_caches_in_place, which looks for the operator.
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using ir::PrimExpr;

namespace {

class AppendRewriter : public ir::ExprMutator {
 public:
  AppendRewriter(ir::IRModule& module, const ir::Attrs& attrs) : attrs_(attrs), shared_(module) {}

 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const ir::Call& call) override {
    if (!op::IsCallOf(call, op::names::kAppendToCache)) return ExprMutator::Mutate(call);
    const std::vector<Expr> tensors = {MutateExpr(call->args.at(0)), MutateExpr(call->args.at(1))};
    const op::Dims *cache = TypedDimsOf(tensors[0]), *part = TypedDimsOf(tensors[1]);
    const auto* position = As<ir::PrimValueNode>(call->args.at(2));
    if (cache == nullptr || part == nullptr || position == nullptr) return ExprMutator::Mutate(call);
    const int64_t axis = call->attrs.GetInt("axis"), rank = static_cast<int64_t>(cache->size());
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    const PrimExpr end = position->value + (*part)[at];
    const bool fits = AnalyzerOf(attrs_, ir::FreePrimVars(end)).ProveLessEqual(end, (*cache)[at]);
    const DataType dtype = *As<ir::TensorTypeNode>(tensors[0]->type)->dtype;
    const ir::Call written = op::MakeCallTIR(shared_.Add(Write(dtype, *cache, *part, at, fits), "cache_append"),
                                             tensors, {call->type}, {position->value});
    ir::CallNode made(op::GetOp(op::names::kCallTirInplace), written->args,
                      {{"inplace_indices", ir::AttrValue::Ints({0})}}, {call->type}, call->type);
    made.span = call->span;
    return ir::Make<ir::CallNode>(std::move(made));
  }

 private:
  // cache[.., position + i, ..] = part[.., i, ..]. Dims that are no numbers become the function's own.
  static ir::PrimFunc Write(DataType dtype, const op::Dims& cache_dims, const op::Dims& part_dims, size_t axis,
                            bool fits) {
    const ir::PrimVar position = ir::MakePrimVar("position");
    const auto own = [](const PrimExpr& dim) { return ir::AsConstInt(dim) ? dim : PrimExpr(ir::MakePrimVar("n")); };
    std::vector<PrimExpr> extents, whole;
    for (size_t d = 0; d < part_dims.size(); ++d) {
      extents.push_back(own(part_dims[d]));
      whole.push_back(d == axis ? own(cache_dims[d]) : extents.back());
    }
    const ir::Buffer cache = ir::MakeBuffer("cache", dtype, whole), part = ir::MakeBuffer("part", dtype, extents);
    std::vector<ir::PrimVar> loops;
    std::vector<PrimExpr> from, to;
    for (size_t d = 0; d < extents.size(); ++d) {
      loops.push_back(ir::MakePrimVar("i" + std::to_string(d)));
      from.emplace_back(loops.back());
      to.push_back(d == axis ? PrimExpr(position) + from.back() : from.back());
    }
    ir::Stmt body = ir::Make<ir::BufferStoreNode>(cache, ir::Make<ir::BufferLoadNode>(part, from), to);
    for (size_t d = extents.size(); d-- > 0;)
      body = ir::Make<ir::ForNode>(loops[d], ir::Int64(0), extents[d], ir::ForKind::kParallel, std::move(body));
    if (!fits) {
      body = ir::Make<ir::AssertStmtNode>(PrimExpr(position) + extents[axis] <= whole[axis],
                                          "what is appended does not fit the cache", std::move(body));
    }
    ir::BlockNode root("root", {}, {}, {}, std::move(body));
    std::vector<ir::PrimFuncParam> params = {{cache->data, cache}, {part->data, part}, {position, nullptr}};
    return ir::Make<ir::PrimFuncNode>(std::move(params),
                                      ir::Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{}, ir::BoolImm(true),
                                                                     ir::Make<ir::BlockNode>(std::move(root))),
                                      /*priv=*/true, ir::Attrs{{"tirx.noalias", ir::AttrValue(true)}});
  }

  const ir::Attrs& attrs_;
  SharedFunctions shared_;
};

}  // namespace

Result<ir::IRModule> AppendByKernels(ir::IRModule module, PassContext& context) {
  if (context.options.target.kind != Target::Kind::kCuda) return module;
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function);
    if (!function) continue;
    AppendRewriter rewriter(module, function->attrs);
    module.Set(entry.var, rewriter.MutateFunction(function));
  }
  return module;
}

}  // namespace ingot::transform
