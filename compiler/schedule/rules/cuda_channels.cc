// The copies are launches of their own: a thread writes the channels of a chunk at once, and threads that follow each other
// read places that do. A factor that has whole chunks of places, as the images of convolutions of one tap do, is read where
// it is.
#include "compiler/schedule/rules/cuda_channels.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_mma.h"
#include "compiler/schedule/rules/epilogue.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kThreadsOfCopy = 256;

// Elements of 16 bytes.
int64_t ChunkOf(const DataType& dtype) { return 16 * 8 / dtype.bits; }

// The only dimension that the variable moves along, where it is the index; -1: there is none.
int64_t ChannelDimension(const BufferLoadNode& load, const PrimVar& var) {
  int64_t dimension = -1;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!UsesVar(load.indices[d], var)) continue;
    if (dimension >= 0 || load.indices[d].get() != var.get()) return -1;
    dimension = static_cast<int64_t>(d);
  }
  return dimension;
}

// Whether whole chunks of a factor lie along an axis of its own, so that it is read where it is.
bool HasPlacesInChunks(const BlockSite& site, const BufferLoadNode& load) {
  arith::Analyzer analyzer;
  for (const IterVar& iter : site.block().iter_vars) analyzer.Bind(iter->var, iter->domain);
  const PrimExpr last = analyzer.Simplify(load.indices.back());
  const auto row = AsConstInt(load.buffer->shape.back());
  const auto iter = std::ranges::find_if(site.block().iter_vars,
                                         [&](const IterVar& candidate) { return candidate->var.get() == last.get(); });
  return iter != site.block().iter_vars.end() && (*iter)->type == IterType::kSpatial && row &&
         *row % ChunkOf(load.buffer->dtype) == 0 && ConstantExtent(**iter) == row;
}

// Copies a factor with its channels last; what only moves elements before goes into the copy.
void CopyChannelsLast(Schedule& s, BlockRV product, int64_t read, int64_t channel, std::vector<BlockName>& handled) {
  const auto rank =
      static_cast<int64_t>(s.Block(product).block().reads[static_cast<size_t>(read)].buffer->shape.size());
  const int64_t chunk_size = ChunkOf(s.Block(product).block().reads[static_cast<size_t>(read)].buffer->dtype);
  const BlockRV copy = s.CacheRead(product, read, "global");
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != channel) axes.push_back(d);
  }
  axes.push_back(channel);
  s.TransformLayout(copy, 0, PermutingMap(axes));
  InlineMoves(s, copy);
  if (!s.status().ok()) return;
  const LoopRVs loops = s.GetLoops(copy);  // over the dimensions as they were: places are neighbours of places
  std::vector<LoopRV> around(loops.begin(), loops.end());
  const LoopRVs chunk = s.Split(around[static_cast<size_t>(channel)], {kRest, chunk_size});
  around[static_cast<size_t>(channel)] = chunk[0];
  std::vector<LoopRV> order = around;
  order.push_back(chunk[1]);
  s.Reorder(order);
  const LoopRVs parts = s.Split(around.size() > 1 ? s.Fuse(around) : around[0], {kRest, kThreadsOfCopy});
  s.Vectorize(chunk[1]);
  s.Bind(parts[0], "blockIdx.x");
  s.Bind(parts[1], "threadIdx.x");
  handled.push_back(s.Block(copy).block().name);
}

}  // namespace

Match<CudaChannels> FindCudaChannels(const BlockSite& site) {
  const Match<CudaProduct> product = FindCudaProduct(site);
  if (!product) return product.declined();
  const auto loads = FactorsOfProduct(MatchReduction(site.block())->source);
  const DataType dtype = (*loads)[0]->buffer->dtype;
  const bool takes_dtypes =
      IsMmaDtype(dtype) && (*loads)[1]->buffer->dtype == dtype && StoreOf(site).buffer->dtype == DataType::Float(32);
  if (!takes_dtypes) return Declined{"it is no float32 sum of products of float32 or of 16-bit floats"};
  if ((*loads)[0]->buffer.same_as((*loads)[1]->buffer)) return Declined{"its factors are one tensor"};
  if (product->rows.empty() || product->columns.empty()) return Declined{"it has no rows and columns"};
  CudaChannels channels;
  channels.dtype = dtype;
  for (const ProductAxis& axis : product->sum) {
    const IterVarNode& iter = *site.block().iter_vars[static_cast<size_t>(axis.iter)];
    const bool are_channels =
        axis.part == 0 && ConstantExtent(iter).value_or(1) % ChunkOf(dtype) == 0 &&
        std::ranges::all_of(*loads, [&](const BufferLoadNode* load) { return ChannelDimension(*load, iter.var) >= 0; });
    if (are_channels) channels.iter = axis.iter;
  }
  if (channels.iter < 0) return Declined{"its factors have no channels in whole chunks that are summed over"};
  channels.batch = CountValues(site, product->batch);
  channels.rows = CountValues(site, product->rows);
  channels.columns = CountValues(site, product->columns);
  channels.sum = CountValues(site, product->sum);
  return channels;
}

BlockRV MakeChannelMatrices(Schedule& s, BlockRV product, const CudaChannels& channels,
                            const ProductMultiples& multiples, bool makes_loops, std::vector<BlockName>& handled) {
  BlockRV out = InlineEpilogue(s, product, handled);
  if (!s.status().ok()) return out;
  const PrimVar var = s.Block(product).block().iter_vars[static_cast<size_t>(channels.iter)]->var;
  const size_t num_reads = s.Block(product).block().reads.size();
  std::vector<Buffer> in_place;  // factors whose chunks are of places
  for (size_t read = 0; read < num_reads && s.status().ok(); ++read) {
    const BlockSite site = s.Block(product);
    const Buffer buffer = site.block().reads[read].buffer;
    const auto loads = *FactorsOfProduct(MatchReduction(site.block())->source);
    const BufferLoadNode& load = loads[0]->buffer.same_as(buffer) ? *loads[0] : *loads[1];
    const int64_t channel = ChannelDimension(load, var);
    const bool is_argument = !s.state().OnlyWriter(buffer);
    if (is_argument && channel + 1 == std::ssize(load.indices)) continue;
    if (is_argument && HasPlacesInChunks(site, load)) {
      in_place.push_back(buffer);
    } else {
      CopyChannelsLast(s, product, static_cast<int64_t>(read), channel, handled);
    }
  }
  if (!s.status().ok()) return out;
  const CudaProduct axes = *FindCudaProduct(s.Block(product));
  out = FuseProduct(s, product, axes, multiples, out);
  if (!s.status().ok()) return out;
  const auto loads = *FactorsOfProduct(MatchReduction(s.Block(product).block())->source);
  std::vector<Buffer> matrices;
  for (const BufferLoadNode* load : loads) matrices.push_back(load->buffer);
  for (const Buffer& matrix : matrices) {  // [.., sum, rows], which becomes [.., rows, sum]
    const BlockSite writer = *s.state().OnlyWriter(matrix);
    const Buffer source = LoadsOf(writer)[0].load->buffer;
    if (std::ranges::any_of(in_place, [&](const Buffer& factor) { return factor.same_as(source); })) continue;
    const auto rank = static_cast<int64_t>(matrix->shape.size());
    std::vector<int64_t> turned;
    for (int64_t d = 0; d < rank - 2; ++d) turned.push_back(d);
    turned.insert(turned.end(), {rank - 1, rank - 2});
    s.TransformLayout(s.GetBlock(writer.block().name), 0, PermutingMap(turned));
  }
  s.SetScope(product, 0, "local");
  if (makes_loops) FuseResult(s, out, axes);
  return out;
}

}  // namespace ingot::schedule
