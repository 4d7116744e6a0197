// The places are the PTX manual's ("Matrix Fragments for mma.m16n8k16"): a lane has four registers of two neighbours for
// 16 rows and 16 columns, for the upper rows and the lower ones of the first 8 columns, then of the next 8.
#include "compiler/codegen/cuda_warp_memory.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kFragmentSide = 16, kFragmentHalf = 8, kFragmentLanes = 4, kFragmentNeighbours = 2;

class FragmentKeeper : public StmtMutator {
 public:
  std::string error;

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (loop->annotations.Find(kCudaWarpProduct) != nullptr) {
      const bool outside = std::exchange(in_product_, true);
      Stmt mutated = StmtMutator::Mutate(loop);
      in_product_ = outside;
      return mutated;
    }
    if (loop->thread_tag != "threadIdx.x") return StmtMutator::Mutate(loop);
    const ForNode* outside = std::exchange(threads_, loop.get());
    Stmt mutated = StmtMutator::Mutate(loop);
    threads_ = outside;
    return mutated;
  }
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    const Buffer& buffer = allocate->buffer;
    if (buffer->scope != "warp") return StmtMutator::Mutate(allocate);
    const auto rows = buffer->shape.size() == 2 ? AsConstInt(buffer->shape[0]) : std::nullopt;
    const auto columns = rows ? AsConstInt(buffer->shape[1]) : std::nullopt;
    if (!columns || *rows % kFragmentSide != 0 || *columns % kFragmentSide != 0 || buffer->dtype.bits != 16) {
      return Fail(*buffer, "is no matrix of whole fragments");
    }
    kept_.push_back({buffer, nullptr, *rows, *columns});
    const size_t number = kept_.size() - 1;
    Stmt body = MutateStmt(allocate->body);
    if (!kept_[number].own) return Fail(*buffer, "is stored by no thread");
    return Make<AllocateNode>(kept_[number].own, std::move(body), allocate->annotations);
  }
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    for (const Kept& kept : kept_) {
      if (kept.buffer.same_as(load->buffer) && !in_product_) Fail(*load->buffer, "is read by no product of warps");
    }
    return StmtMutator::Mutate(load);
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    for (Kept& kept : kept_) {
      if (kept.buffer.same_as(store->buffer)) return StoreInFragment(*store, kept);
    }
    return StmtMutator::Mutate(store);
  }

 private:
  struct Kept {
    Buffer buffer, own;
    int64_t rows, columns;
  };

  Stmt Fail(const BufferNode& buffer, const std::string& what) {
    if (error.empty()) error = "buffer \"" + buffer.name + "\" lies in \"warp\", and " + what;
    return MakeSeq({});
  }

  Stmt StoreInFragment(const BufferStoreNode& store, Kept& kept) {
    const int64_t threads = threads_ != nullptr ? AsConstInt(threads_->extent).value_or(0) : 0;
    if (threads == 0 || threads % kCudaWarpThreads != 0) return Fail(*store.buffer, "is not stored by whole warps");
    const int64_t warps = threads / kCudaWarpThreads, of_warp = kept.rows / warps;
    if (kept.rows % warps != 0 || of_warp % kFragmentSide != 0) return Fail(*store.buffer, "has no rows for each warp");
    if (!kept.own) {
      BufferNode own = *kept.buffer;  // the same memory
      own.scope = "local";
      own.shape = {Int64(of_warp * kept.columns / kCudaWarpThreads)};
      kept.own = Make<BufferNode>(std::move(own));
    }
    arith::Analyzer analyzer;
    const auto at = [&](size_t d, int64_t thread) {
      return AsConstInt(analyzer.Simplify(Substitute(store.indices[d], {{threads_->var, Int64(thread)}}))).value_or(-1);
    };
    const int64_t row = at(0, 0), column = at(1, 0);
    bool fits = row >= 0 && row < of_warp && row % kFragmentHalf == 0 && column >= 0 && column < kept.columns &&
                column % kFragmentHalf < kFragmentNeighbours;
    for (int64_t t = 0; fits && t < threads; ++t) {
      const int64_t lane = t % kCudaWarpThreads;
      fits = at(0, t) == row + t / kCudaWarpThreads * of_warp + lane / kFragmentLanes &&
             at(1, t) == column + lane % kFragmentLanes * kFragmentNeighbours;
    }
    if (!fits) return Fail(*store.buffer, "a lane stores an element of another one's registers");
    const int64_t i = row / kFragmentHalf, n = column / kFragmentHalf;
    const int64_t number = ((i / 2 * (kept.columns / kFragmentSide) + n / 2) * 2 + n % 2) * 2 + i % 2;
    return Make<BufferStoreNode>(kept.own, MutatePrim(store.value),
                                 std::vector<PrimExpr>{Int64(number * kFragmentNeighbours + column % kFragmentHalf)});
  }

  std::vector<Kept> kept_;
  const ForNode* threads_ = nullptr;
  bool in_product_ = false;
};

}  // namespace

Result<Stmt> KeepInFragments(const Stmt& body) {
  FragmentKeeper keeper;
  Stmt kept = keeper.MutateStmt(body);
  if (!keeper.error.empty()) return Status(StatusCode::kUnsupportedModel, keeper.error);
  return kept;
}

}  // namespace ingot::codegen
