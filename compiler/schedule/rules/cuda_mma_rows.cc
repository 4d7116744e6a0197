// Products of matrices by matrix instructions whose rows are of any number, as those of a layer of which batch and length
// of the sequence are free: out[.., i, j, n] = sum over k of a[.., i, j, k] * b[k, n], n and k known. All of the rows are
// one axis, so that tiles go across the ends of inner ones; of a number of them that is not known there is a version
// for few and one for many, of which one is launched:
//
//   for version:                                          a launch, of no blocks where another one takes the rows
//     for block = (rows, columns):                        as cuda_mma or cuda_wgmma have it
//
// Factors are read where they are (fuse_einsum, whose copies become those to shared memory): rows that lie one behind
// the other do so as one axis, too.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_mma.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kChunkBytes = 16;
// There are tiles of so many. Where the last one is not whole, versions of unknown numbers of rows have too few registers.
constexpr int64_t kWholeColumns = 64;

Match<CudaProduct> FindRows(const ScheduleState& state, const BlockSite& site) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction.declined();
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  const Match<MmaProduct> product = FindMmaProduct(site);
  if (!product) return product.declined();
  if (product->dtype == DataType::Float(32) && state.function()->attrs.Find(kTf32Attr) == nullptr)
    return Declined{"it is of float32, whose factors may not be rounded (--fast-math=tf32)"};
  const Match<CudaProduct> axes = FindCudaProduct(site);
  if (!axes) return axes.declined();
  if (!axes->batch.empty() || axes->sum.size() != 1 || axes->columns.size() != 1 ||
      axes->columns[0].iter != product->n) {
    return Declined{"both of its factors have a batch, or it has other columns"};
  }
  const auto& iters = site.block().iter_vars;
  const auto extent = [&](int iter) { return ConstantExtent(*iters[static_cast<size_t>(iter)]); };
  if (!extent(product->n) || !extent(product->k)) return Declined{"its columns or summands are not known"};
  if (*extent(product->n) % kWholeColumns != 0) return Declined{"its columns make no whole tiles"};
  const BufferRegion& a = site.block().reads[static_cast<size_t>(product->a_read)];
  const BufferRegion& b = site.block().reads[static_cast<size_t>(product->b_read)];
  if (a.region.back().min.get() != iters[static_cast<size_t>(product->k)]->var.get()) {
    return Declined{"its summands are not next to each other"};
  }
  for (const BufferRegion* factor : {&a, &b}) {
    const int64_t bytes = AsConstInt(factor->buffer->shape.back()).value_or(1) * (product->dtype.bits / 8);
    if (bytes % kChunkBytes != 0) return Declined{"rows of one of its factors are not aligned"};
  }
  if (CountValues(site, axes->rows) && axes->rows.size() == 1) return Declined{"its rows are known"};
  return axes;
}

class CudaMmaRowsBuilder {
 public:
  CudaMmaRowsBuilder(Schedule& schedule, const BlockSite& site, const CudaProduct& axes)
      : s_(schedule), axes_(axes), product_(*FindMmaProduct(site)), handled_{site.block().name} {
    const auto& iters = site.block().iter_vars;
    const auto var_of = [&](int iter) { return iters[static_cast<size_t>(iter)]->var; };
    for (const ProductAxis& axis : axes_.rows) {
      num_rows_ = num_rows_ * iters[static_cast<size_t>(axis.iter)]->domain.extent;
      iters_.push_back(axis.iter);
    }
    // The copy of a factor has its axes in the order in which the factor lies.
    const BufferRegion& b = site.block().reads[static_cast<size_t>(product_.b_read)];
    ends_with_sum_ = b.region.back().min.get() == var_of(product_.k).get();
    iters_.push_back(ends_with_sum_ ? product_.n : product_.k);
    iters_.push_back(ends_with_sum_ ? product_.k : product_.n);
    panel_ = MmaPanelsOf(b, var_of(product_.n)).width;
  }

  std::vector<BlockName> Build(const std::vector<MmaVersion>& versions) {
    const BlockRV reduction = s_.GetBlock(handled_[0]);
    BlockRV out = InlineEpilogue(s_, reduction, handled_);
    if (s_.IsVoid(out)) {
      out = s_.CacheWrite(reduction, 0, "global");
      if (s_.status().ok()) handled_.push_back(s_.Block(out).block().name);
    }
    FuseResult(s_, out, axes_);
    if (versions.size() == 1) {
      BuildOne(versions[0].form, reduction, out);
    } else {
      const LoopRVs loops = s_.GetLoops(out);
      const LoopRV once = s_.AddUnitLoop(out);
      if (s_.status().ok()) s_.Reorder({once, loops[0], loops[1]});
      BuildAll(versions, reduction, out, once);
    }
    return handled_;
  }

 private:
  // Cuts the versions in halves, the loop of one iteration around `out` with them.
  void BuildAll(std::span<const MmaVersion> versions, BlockRV reduction, BlockRV out, LoopRV once) {
    if (!s_.status().ok()) return;
    if (versions.size() == 1) return BuildOne(versions[0].form, reduction, out);
    const size_t half = versions.size() / 2;
    const PrimExpr are_few = num_rows_ < Int64(*versions[half - 1].most_rows + 1);
    const Schedule::Parts cut = s_.PartitionAt(once, Select(are_few, Int64(1), Int64(0)));
    if (!s_.status().ok()) return;
    const BlockRV of_many = s_.GetChildBlocks(cut.tail)[0];
    const BlockRV reduction_of_many = s_.RecomputeFor(reduction, {of_many});
    if (!s_.status().ok()) return;
    for (const BlockRV block : {of_many, reduction_of_many}) handled_.push_back(s_.Block(block).block().name);
    BuildAll(versions.first(half), reduction, out, cut.main);
    BuildAll(versions.subspan(half), reduction_of_many, of_many, cut.tail);
  }

  void BuildOne(MmaForm form, BlockRV reduction, BlockRV out) {
    form.panel = panel_;
    const int64_t depth = form.depth * form.parts * 8 / product_.dtype.bits;
    const std::vector<int64_t> groups = {static_cast<int64_t>(axes_.rows.size()), 1, 1}, parts(iters_.size(), 0);
    s_.FuseEinsum(reduction, iters_, parts, groups,
                  {form.rows, ends_with_sum_ ? form.columns : depth, ends_with_sum_ ? depth : form.columns});
    if (!s_.status().ok()) return;
    const BlockSite fused = s_.Block(reduction);
    for (const BlockSite& reader : s_.state().Readers(StoreOf(fused).buffer)) {
      if (reader.block().name != fused.block().name) s_.ComputeInline(s_.GetBlock(reader.block().name));
    }
    s_.SetScope(reduction, 0, "local");
    (form.by_groups ? BuildWgmmaTiles : BuildMmaTiles)(s_, reduction, out, form, handled_);
  }

  Schedule& s_;
  const CudaProduct axes_;
  const MmaProduct product_;
  std::vector<BlockName> handled_;
  PrimExpr num_rows_ = Int64(1);
  std::vector<int64_t> iters_;  // rows, then columns and summands as the second factor has them
  bool ends_with_sum_ = false;
  int64_t panel_ = 0;
};

}  // namespace

Match<> MatchesCudaMmaRows(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<CudaProduct> axes = FindRows(state, site);
  if (!axes) return axes.declined();
  return Taken{};
}

std::vector<BlockName> ApplyCudaMmaRows(Schedule& s, const BlockSite& site, const Target& target) {
  const CudaProduct axes = *FindRows(s.state(), site);
  const MmaProduct product = *FindMmaProduct(site);
  const auto extent = [&](int iter) { return *ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]); };
  const CudaArch* arch = FindCudaArch(target);
  MmaSizes sizes{.columns = extent(product.n), .summands = extent(product.k), .element_bytes = product.dtype.bits / 8};
  sizes.allows_groups = arch != nullptr && arch->is_exact;
  sizes.has_whole_tiles = true;
  std::vector<MmaVersion> versions;
  if (const std::optional<int64_t> rows = CountValues(site, axes.rows)) {
    sizes.rows = std::max<int64_t>(*rows, 1);
    versions.push_back({ChooseMmaForm(sizes), std::nullopt});
  } else {
    versions = ChooseMmaVersions(sizes);
  }
  return CudaMmaRowsBuilder(s, site, axes).Build(versions);
}

}  // namespace ingot::schedule
