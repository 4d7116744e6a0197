// Follows the result from consumer to consumer while each one is the only reader and reads at the place that it writes,
// and inlines each into the next.
#include "compiler/schedule/rules/epilogue.h"

#include <algorithm>

#include "compiler/schedule/rules/analysis.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

BlockRV InlineEpilogue(Schedule& s, BlockRV reduction, std::vector<BlockName>& handled) {
  BlockRV last;
  Buffer current = StoreOf(s.Block(reduction)).buffer;
  while (s.status().ok()) {  // else no reader goes, and a cycle of them would never end
    const std::vector<BlockSite> readers = s.state().Readers(current);
    if (readers.size() != 1 || !s.state().IsAllocated(current)) break;
    const BlockSite& reader = readers[0];
    if (!IsInjective(s.state(), reader)) break;
    // Every load of the result must be at the indices of the reader's store.
    const BufferStoreNode& store = StoreOf(reader);
    const std::vector<LoadUse> loads = LoadsOf(reader);
    const bool same_place = std::all_of(loads.begin(), loads.end(), [&](const LoadUse& use) {
      if (!use.load->buffer.same_as(current)) return true;
      if (use.load->indices.size() != store.indices.size()) return false;
      for (size_t d = 0; d < store.indices.size(); ++d) {
        if (use.load->indices[d].get() != store.indices[d].get() && !IsConstInt(current->shape[d], 1)) return false;
      }
      return true;
    });
    const bool inputs_ready = std::all_of(reader.block().reads.begin(), reader.block().reads.end(), [&](const auto& r) {
      return r.buffer.same_as(current) || !s.state().IsAllocated(r.buffer) || s.state().OnlyWriter(r.buffer);
    });
    if (!same_place || !inputs_ready || ReadsUnderCondition(reader)) break;
    const Buffer next = store.buffer;
    if (last.id >= 0) s.ComputeInline(last);
    last = s.GetBlock(reader.block().name);
    handled.push_back(reader.block().name);
    current = next;
  }
  return last;
}

BlockRV WriteBack(Schedule& s, BlockRV reduction, std::vector<BlockName>& handled) {
  const BlockRV last = InlineEpilogue(s, reduction, handled);
  if (!s.IsVoid(last)) {
    s.SetScope(reduction, 0, "local");
    return last;
  }
  const BlockRV copy = s.CacheWrite(reduction, 0, "local");
  handled.push_back(s.Block(copy).block().name);
  return copy;
}

}  // namespace ingot::schedule
