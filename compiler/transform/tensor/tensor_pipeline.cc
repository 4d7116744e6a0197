// The table of the tensor pipeline, and the function that runs it. Each pass says in its file what holds before and
// after.
#include <algorithm>
#include <array>
#include <vector>

#include "compiler/transform/tensor/join_views.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {
namespace {

constexpr std::array kPipeline = {
    TensorPassRow{"separate_inits", "reductions over what may be empty start in front of their loops", SeparateInits},
    TensorPassRow{"lower_blocks", "blocks become loops, conditions and allocations", LowerBlocks},
    TensorPassRow{"fuse_parallel", "nested parallel loops become one", FuseParallelLoops},
    TensorPassRow{"split_broadcasts", "operands that may repeat have loops of their own where they do not",
                  SplitBroadcasts},
    TensorPassRow{"simplify", "canonical indices; no loop of one iteration, no constant condition", SimplifyTensor},
    TensorPassRow{"join_views", "an allocation and the views of its memory become one buffer", JoinViews},
    TensorPassRow{"jam_loops", "iterations that share what they read run together where registers hold them", JamLoops},
    TensorPassRow{"bind_threads", "on CUDA, what no schedule bound becomes loops over threads and blocks", BindThreads},
    TensorPassRow{"place_buffers", "each buffer at its place, as small as what is touched there", PlaceBuffers},
    TensorPassRow{"partition_loops", "ranges in which a condition holds become loops without it", PartitionLoops},
    TensorPassRow{"flatten_accesses", "rows that a fused loop runs through become one", FlattenAccesses},
    TensorPassRow{"vectorize", "vectorized loops become vector expressions", VectorizeLoops},
    TensorPassRow{"load_first", "on CUDA, unrolled copies load all of their elements before they store one", LoadFirst},
    TensorPassRow{"unroll", "unrolled loops become straight code", UnrollLoops},
    TensorPassRow{"simplify", "once more, over constant indices and partitioned ranges", SimplifyTensor},
    TensorPassRow{"chunk_tasks", "a task runs as many iterations as make it worth its start at the sizes of the call",
                  ChunkTasks},
    TensorPassRow{"unfuse_loops", "loops whose variable symbols divide become loops over quotients and remainders",
                  UnfuseLoops},
    TensorPassRow{"hoist_conditions", "conditions that a loop does not change stand around it", HoistConditions},
};

}  // namespace

std::span<const TensorPassRow> TensorPipeline() { return kPipeline; }

const TensorPassRow* FindTensorPass(std::string_view name) {
  for (const TensorPassRow& row : kPipeline) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

Result<ir::PrimFunc> LowerPrimFunc(const ir::PrimFunc& function, const Target& target, AfterTensorPass after,
                                   void* context) {
  ir::PrimFunc current = function;
  for (const TensorPassRow& row : kPipeline) {
    Result<ir::PrimFunc> next = row.run(current, target);
    if (!next.ok()) return std::move(next).status().WithContext(row.name);
    current = *next;
    if (after != nullptr) INGOT_RETURN_IF_ERROR(after(context, row, current));
  }
  INGOT_RETURN_IF_ERROR(VerifyLowered(current, target));
  return current;
}

ir::PrimFunc WithBody(const ir::PrimFunc& function, ir::Stmt body) {
  ir::PrimFuncNode copy = *function;
  copy.body = std::move(body);
  return ir::Make<ir::PrimFuncNode>(std::move(copy));
}

bool IsEmptyStmt(const ir::Stmt& stmt) {
  const auto* evaluate = ir::As<ir::EvaluateNode>(stmt);
  return evaluate != nullptr && ir::AsConstInt(evaluate->value);
}

bool MayDivideByZero(const ir::PrimExpr& expr, arith::Analyzer& analyzer) {
  struct Finder : ir::PrimVisitor {
    std::vector<ir::PrimExpr> divisors;
    using PrimVisitor::Visit;
    void Visit(const ir::BinaryNode& node) override {
      const bool divides = node.op == ir::BinaryOp::kDiv || node.op == ir::BinaryOp::kFloorDiv ||
                           node.op == ir::BinaryOp::kTruncMod || node.op == ir::BinaryOp::kFloorMod;
      if (divides) divisors.push_back(node.b);
      PrimVisitor::Visit(node);
    }
  } finder;
  finder.VisitPrim(expr);
  return std::any_of(finder.divisors.begin(), finder.divisors.end(), [&](const ir::PrimExpr& divisor) {
    const arith::Interval bounds = analyzer.Bounds(divisor);
    return bounds.min <= 0 && bounds.max >= 0;
  });
}

}  // namespace ingot::transform
