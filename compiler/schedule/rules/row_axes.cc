// Follows the results of reductions to the stages that read them: these read at their rows.
#include "compiler/schedule/rules/row_axes.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

const IterVarNode& IterAt(const BlockSite& site, int axis) {
  return *site.block().iter_vars[static_cast<size_t>(axis)];
}

PrimExpr ExtentOf(const PrimExpr& whole, int64_t part) {
  if (part == 0) return Cast(DataType::Int(64), whole);
  return part > 0 ? FloorDiv(whole, Int64(part)) : Int64(-part);
}

// The variable of the block, or the quotient of it, that the index is.
std::optional<AxisPart> PartAt(const BlockSite& site, const PrimExpr& index) {
  const auto iter_of = [&](const PrimExpr& expr) -> std::optional<int> {
    for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
      if (site.block().iter_vars[i]->var.get() == expr.get()) return static_cast<int>(i);
    }
    return {};
  };
  if (const auto iter = iter_of(index)) return AxisPart{*iter};
  const auto* binary = As<BinaryNode>(index);
  const auto divisor = binary != nullptr ? AsConstInt(binary->b) : std::nullopt;
  if (!divisor || *divisor < 2 || binary->op != BinaryOp::kFloorDiv) return {};
  const auto iter = iter_of(binary->a);
  if (!iter) return {};
  const auto extent = ConstantExtent(IterAt(site, *iter));
  if (!extent || *extent % *divisor != 0) return {};
  return AxisPart{*iter, *divisor};
}

class Finder {
 public:
  explicit Finder(const ScheduleState& state) : state_(state) {}

  std::optional<StageAxes> Find(const std::vector<BlockSite>& sites) {
    StageAxes axes;
    for (const BlockSite& site : sites) {
      const bool is_reduction = IsReduction(state_, site);
      if (!is_reduction && !IsInjective(state_, site)) return {};
      RowAxes found;
      std::optional<std::vector<AxisPart>> rows = RowsRead(site);
      if (!rows) return {};
      if (is_reduction) {
        std::vector<AxisPart> results;
        for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
          const int iter = IterOfDimension(site, d);
          if (iter >= 0 && ConstantExtent(IterAt(site, iter)) != 1) results.push_back({iter});
        }
        if (!rows->empty() && *rows != results) return {};
        rows = results;
        for (const int iter : ReduceIters(site)) found.own.push_back({iter});
      }
      if (rows->empty() && !is_reduction) return {};
      if (!HasRows(site, *rows)) return {};
      found.rows = *rows;
      // What is left: places of an element-wise stage, and axes of one place.
      for (const int iter : SpatialIters(site)) {
        const auto used = std::ranges::find_if(*rows, [&](const AxisPart& part) { return part.axis == iter; });
        if (used == rows->end()) {
          const bool is_unit = ConstantExtent(IterAt(site, iter)) == 1;
          (is_reduction || is_unit ? found.rows : found.own).push_back({iter});
          if (is_reduction && !is_unit) return {};
        } else if (used->part > 0) {
          if (is_reduction) return {};
          found.own.push_back({iter, -used->part});
        }
      }
      if (found.own.empty() || is_reduction) {
        std::vector<int> positions;  // of the result's dimensions among the rows; -1: of one place
        for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
          const auto at = std::ranges::find(*rows, AxisPart{IterOfDimension(site, d)});
          positions.push_back(at == rows->end() ? -1 : static_cast<int>(at - rows->begin()));
        }
        results_.emplace_back(StoreOf(site).buffer, std::move(positions));
      }
      axes.emplace(site.block().name, std::move(found));
    }
    return axes;
  }

 private:
  // The rows at which the stage reads results; none where it reads no result.
  std::optional<std::vector<AxisPart>> RowsRead(const BlockSite& site) const {
    std::optional<std::vector<AxisPart>> rows;
    for (const LoadUse& use : LoadsOf(site)) {
      for (const auto& [buffer, positions] : results_) {
        if (!use.load->buffer.same_as(buffer)) continue;
        std::vector<AxisPart> own(extents_->size(), AxisPart{-1});
        for (size_t d = 0; d < positions.size(); ++d) {
          if (positions[d] < 0) continue;
          const std::optional<AxisPart> part = PartAt(site, use.load->indices[d]);
          if (!part) return {};
          own[static_cast<size_t>(positions[d])] = *part;
        }
        if (std::ranges::any_of(own, [](const AxisPart& part) { return part.axis < 0; })) return {};
        if (rows && *rows != own) return {};
        rows = std::move(own);
      }
    }
    return rows ? rows : std::vector<AxisPart>();
  }
  // Whether the rows have the extents of the first reduction's.
  bool HasRows(const BlockSite& site, const std::vector<AxisPart>& rows) {
    std::vector<PrimExpr> extents;
    for (const AxisPart& part : rows) extents.push_back(ExtentOf(IterAt(site, part.axis).domain.extent, part.part));
    if (!extents_) extents_ = extents;
    if (extents.size() != extents_->size()) return false;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (!analyzer_.ProveEqual(extents[i], (*extents_)[i])) return false;
    }
    return true;
  }

  const ScheduleState& state_;
  arith::Analyzer analyzer_;
  std::optional<std::vector<PrimExpr>> extents_;
  std::vector<std::pair<Buffer, std::vector<int>>> results_;
};

}  // namespace

std::optional<StageAxes> FindRowAxes(const ScheduleState& state, const std::vector<BlockSite>& sites) {
  return Finder(state).Find(sites);
}

std::optional<int64_t> LengthOfParts(const BlockSite& site, const std::vector<AxisPart>& parts) {
  int64_t length = 1;
  for (const AxisPart& part : parts) {
    const auto whole = ConstantExtent(IterAt(site, part.axis));
    if (!whole) return {};
    const int64_t extent = part.part == 0 ? *whole : part.part > 0 ? *whole / part.part : -part.part;
    if (__builtin_mul_overflow(length, extent, &length)) return {};
  }
  return length;
}

IndexMap MapToRows(const RowAxes& dimensions, const std::vector<PrimExpr>& shape) {
  return MakeIndexMap(static_cast<int64_t>(shape.size()), [&](const std::vector<PrimExpr>& i) {
    std::vector<PrimExpr> places;
    for (const std::vector<AxisPart>* parts : {&dimensions.rows, &dimensions.own}) {
      PrimExpr place = Int64(0);
      for (const AxisPart& part : *parts) {
        const auto d = static_cast<size_t>(part.axis);
        PrimExpr digit = i[d];
        if (part.part > 0) digit = FloorDiv(digit, Int64(part.part));
        if (part.part < 0) digit = FloorMod(digit, Int64(-part.part));
        place = place * ExtentOf(shape[d], part.part) + digit;
      }
      places.push_back(place);
    }
    return places;
  });
}

std::optional<RowAxes> DimensionsOf(const BlockSite& site, const RowAxes& axes, const std::vector<PrimExpr>& indices) {
  RowAxes dimensions;
  for (const auto& [from, to] : {std::pair(&axes.rows, &dimensions.rows), std::pair(&axes.own, &dimensions.own)}) {
    for (const AxisPart& part : *from) {
      const auto at = std::ranges::find_if(
          indices, [&](const PrimExpr& index) { return index.get() == IterAt(site, part.axis).var.get(); });
      if (at == indices.end()) {
        if (ConstantExtent(IterAt(site, part.axis)) == 1) continue;
        return {};
      }
      to->push_back({static_cast<int>(at - indices.begin()), part.part});
    }
  }
  return dimensions;
}

void FuseRows(Schedule& schedule, BlockRV block, const RowAxes& axes) {
  std::vector<int64_t> iters, parts, sizes;
  for (const std::vector<AxisPart>* group : {&axes.rows, &axes.own}) {
    if (group->empty()) continue;
    for (const AxisPart& part : *group) {
      iters.push_back(part.axis);
      parts.push_back(part.part);
    }
    sizes.push_back(static_cast<int64_t>(group->size()));
  }
  schedule.FuseIters(block, iters, parts, sizes);
}

}  // namespace ingot::schedule
