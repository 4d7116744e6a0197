// Element-wise stages that read along another axis than they write (transpositions, layout conversions, also with
// arithmetic). The axes fall into runs through which every access moves by constant steps; the run along which it
// stores, x, and the one along which it loads, y, are cut into squares of one vector register's lanes, which are
// transposed in registers (vectorize.cc), in strips of y. What is left over at the borders is cut into smaller squares, and
// the last few rows run in vectors along either axis.
//
// A run that is shorter than a square takes in the run beside it: x the one through which the stores go on, y the one
// through which its loads go on. The other accesses divide to find their rows, once per square and row. Where a symbol
// tells whether it is (a batch is often 1), there is a version of the loops for either case.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

struct TransposeRuns {
  std::vector<std::vector<int>> runs;
  size_t y = 0;            // position in runs; x is the last run
  bool is_wide_x = false;  // x took in another run
};

std::vector<int> AllDimensions(const BlockSite& site) {
  std::vector<int> iters;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) iters.push_back(iter);
  }
  return iters;
}

// Joins the runs `outer` and `inner`; the result stands where `inner` stood.
void JoinRuns(TransposeRuns& runs, size_t outer, size_t inner) {
  std::vector<int>& joined = runs.runs[inner];
  joined.insert(joined.begin(), runs.runs[outer].begin(), runs.runs[outer].end());
  runs.runs.erase(runs.runs.begin() + static_cast<std::ptrdiff_t>(outer));
  if (runs.y > outer) --runs.y;
}

// x takes in the run before it, where all go on that move along x. Returns whether it did.
bool WidenX(TransposeRuns& runs, Contiguity& contiguity) {
  const size_t x = runs.runs.size() - 1;
  if (x == 0 || runs.y == x - 1) return false;
  const int innermost = contiguity.Innermost(runs.runs[x]);
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, innermost);
    if (!step || (*step != 0 && *step != 1)) continue;  // it moves along y
    if (!contiguity.Continues(access, runs.runs[x - 1], runs.runs[x])) return false;
  }
  JoinRuns(runs, x - 1, x);
  return runs.is_wide_x = true;
}

// y takes in the run through which all go on that move along y. Returns whether it did.
bool WidenY(TransposeRuns& runs, Contiguity& contiguity) {
  const std::vector<int> y = runs.runs[runs.y];
  const int x = contiguity.Innermost(runs.runs.back());
  for (size_t r = 0; r + 1 < runs.runs.size(); ++r) {
    if (r == runs.y) continue;
    const bool joins = std::ranges::all_of(contiguity.accesses(), [&](const LinearAccess& access) {
      const std::optional<int64_t> step = contiguity.Step(access, x);
      return (step && (*step == 0 || *step == 1)) || contiguity.Continues(access, runs.runs[r], y);
    });
    if (!joins) continue;
    JoinRuns(runs, r, runs.y);
    return true;
  }
  return false;
}

bool IsKnown(const BlockSite& site, const std::vector<int>& run) {
  return std::ranges::all_of(run, [&](int iter) { return ConstantExtent(*site.block().iter_vars[iter]).has_value(); });
}

// The known part of a run's length, a symbol counting as 1.
int64_t KnownLength(const BlockSite& site, const std::vector<int>& run) {
  int64_t length = 1;
  for (int iter : run) length *= ConstantExtent(*site.block().iter_vars[iter]).value_or(1);
  return length;
}

// Runs that are known to be shorter than a square become wider until they are as long or have taken in a symbol.
void WidenShort(TransposeRuns& runs, const BlockSite& site, Contiguity& contiguity, int64_t side) {
  const auto is_short = [&](const std::vector<int>& run) {
    return IsKnown(site, run) && KnownLength(site, run) < side;
  };
  while (is_short(runs.runs.back()) && WidenX(runs, contiguity)) continue;
  while (is_short(runs.runs[runs.y]) && WidenY(runs, contiguity)) continue;
}

// Smaller squares are not worth their code.
constexpr int64_t kLeastSquare = 4;
constexpr int64_t kLineBits = 512;

struct Squares {
  int64_t side = 1;
  int64_t strip = 1;       // width of a strip: squares beside each other
  bool has_pairs = false;  // along the strip go pairs of squares, where its length is whole pairs
  int64_t lanes = 1;       // of vectors outside of squares

  Squares OneWide() const { return {side, side, has_pairs, lanes}; }
  Squares Smaller() const { return {side / 2, side / 2, false, lanes}; }
};

int BitsOfWidest(const BlockSite& site) {
  int bits = std::max(static_cast<int>(StoreOf(site).buffer->dtype.bits), 8);
  for (const LoadUse& use : LoadsOf(site)) bits = std::max(bits, static_cast<int>(use.load->buffer->dtype.bits));
  return bits;
}

// Rows of this many bits are enough for a square.
constexpr int64_t kRowBits = 256;
int64_t UsefulSide(const BlockSite& site, const Target& target) {
  const int bits = BitsOfWidest(site);
  return std::min(SquareSide(bits, target), kRowBits / bits);
}

// Whether each access moves by multiples of so many elements along each run, or goes through it element by element.
bool MovesByMultiples(const BlockSite& site, const TransposeRuns& runs, int64_t elements) {
  Contiguity contiguity(site);
  return std::ranges::all_of(contiguity.accesses(), [&](const LinearAccess& access) {
    return std::ranges::all_of(runs.runs, [&](const std::vector<int>& run) {
      const std::optional<int64_t> step = contiguity.Step(access, contiguity.Innermost(run));
      return step && (*step == 1 || *step % elements == 0);
    });
  });
}

// Rows of 512 bits are worth it where each is a cache line. Others cross a line with almost each load and store, half as
// many of 256 bits do. A strip is as wide as two squares, so that lines that come from memory are used up; but narrow
// elements, whose squares have more rows, are in the caches, and where distances of rows are symbols, the addresses of
// two squares fill the registers.
Squares ChooseSquares(const BlockSite& site, const TransposeRuns& runs, const Target& target) {
  const int bits = BitsOfWidest(site);
  const int64_t lanes = SquareSide(bits, target), side = UsefulSide(site, target);
  if (MovesByMultiples(site, runs, kLineBits / bits)) return {lanes, 2 * lanes, true, lanes};
  return {side, bits >= 32 || MovesByMultiples(site, runs, 1) ? 2 * side : side, false, lanes};
}

Match<TransposeRuns> FindRuns(const BlockSite& site, const Target& target) {
  Contiguity contiguity(site);
  TransposeRuns result{contiguity.Runs(AllDimensions(site)), 0};
  if (result.runs.size() < 2) return Declined{"every access moves through all of its axes by constant steps"};
  const int x = contiguity.Innermost(result.runs.back());
  bool found = false;
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, x);
    if (access.load == nullptr) {
      if (step != 1) return Declined{"it does not store side by side"};
      continue;
    }
    if (step && (*step == 0 || *step == 1)) continue;  // a single element, or contiguous along x as the store is
    size_t y = result.runs.size();
    for (size_t r = 0; r + 1 < result.runs.size(); ++r) {
      if (contiguity.Step(access, contiguity.Innermost(result.runs[r])) == 1) y = r;
    }
    if (y == result.runs.size()) return Declined{"an input is contiguous along none of its axes"};
    if (found && y != result.y) return Declined{"its inputs are contiguous along different axes"};
    result.y = y;
    found = true;
  }
  if (!found) return Declined{"its inputs lie along the axis along which it stores"};
  WidenShort(result, site, contiguity, UsefulSide(site, target));
  for (size_t r : {result.y, result.runs.size() - 1}) {
    const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[contiguity.Innermost(result.runs[r])]);
    if (result.runs[r].size() == 1 && extent && *extent < 4) return Declined{"an axis has fewer than 4 elements"};
  }
  return result;
}

// Other runs, and a formula over symbols that is 1 where they are to be preferred, 0 elsewhere.
struct Version {
  TransposeRuns runs;
  PrimExpr is_better;
};

// Versions for sizes at which a run of symbolic length is shorter than a square while the other one is worth the
// divisions.
std::vector<Version> Versions(const BlockSite& site, const TransposeRuns& runs, int64_t side) {
  Contiguity contiguity(site);
  const auto length = [&](const std::vector<int>& run) {
    PrimExpr product = Int64(1);
    for (int iter : run) product = product * Cast(DataType::Int(64), site.block().iter_vars[iter]->domain.extent);
    return product;
  };
  const auto at_least = [](const PrimExpr& size, int64_t least) { return Min(FloorDiv(size, Int64(least)), Int64(1)); };
  const std::vector<int>&x = runs.runs.back(), &y = runs.runs[runs.y];
  std::vector<Version> versions;
  const auto add = [&](const std::vector<int>& run, const std::vector<int>& other, auto widen) {
    TransposeRuns wide = runs;
    if (IsKnown(site, run) || KnownLength(site, run) >= side || !widen(wide, contiguity)) return;
    versions.push_back({std::move(wide), (Int64(1) - at_least(length(run), side)) * at_least(length(other), 4)});
  };
  add(x, y, WidenX);
  add(y, x, WidenY);
  return versions;
}

// The loops of each run, side by side.
std::vector<std::vector<LoopRV>> LoopsOfRuns(Schedule& s, BlockRV block, const std::vector<std::vector<int>>& runs) {
  const HandleList<InnerLoop> loops = InnerLoops(s, block, LoopRV{});
  std::vector<std::vector<LoopRV>> result;
  std::vector<LoopRV> order;
  std::vector<size_t> places;
  for (const std::vector<int>& run : runs) {
    result.emplace_back();
    for (int iter : run) {
      for (size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].iter != iter) continue;
        result.back().push_back(loops[i].loop);
        order.push_back(loops[i].loop);
        places.push_back(i);
      }
    }
  }
  if (!std::ranges::is_sorted(places)) s.Reorder(order);
  return result;
}

// A strip: loops over its squares, and the one along a square's side.
struct SquareStrip {
  std::vector<LoopRV> squares;
  LoopRV inner;
};

// Squares of a strip and of `side` iterations of the other loop, which are nested in this order.
void Transpose(Schedule& s, const SquareStrip& strip, const SquareStrip& other, bool is_y_first) {
  std::vector<LoopRV> order = strip.squares;
  order.insert(order.end(), other.squares.begin(), other.squares.end());
  const LoopRV y = is_y_first ? strip.inner : other.inner, x = is_y_first ? other.inner : strip.inner;
  order.push_back(y);
  order.push_back(x);
  s.Reorder(order);
  s.Vectorize(x);
  s.Vectorize(y);
}

// The loops below a part that a loop around one block was cut in.
HandleList<InnerLoop> LoopsOfPart(Schedule& s, LoopRV part) { return InnerLoops(s, s.GetChildBlocks(part)[0], part); }

// Cuts the loop `along`, around the loops of a strip, in squares, what is left over in smaller ones, and that in
// vectors along the strip, as long as the first squares' side.
void CutAlong(Schedule& s, LoopRV along, SquareStrip strip, const Squares& squares, bool is_y_first) {
  const Schedule::Parts parts = s.LoopPartition(along, squares.side);
  if (!s.IsVoid(parts.main)) {
    const auto extent = AsConstInt(s.Loop(parts.main).loop->extent);
    const bool has_pairs = squares.has_pairs && extent && *extent % (2 * squares.side) == 0;
    const LoopRVs loops =
        has_pairs ? s.Split(parts.main, {kRest, int64_t{2}, squares.side}) : s.Split(parts.main, {kRest, squares.side});
    SquareStrip other{{}, loops.back()};
    if (has_pairs) other.squares.push_back(loops[1]);
    if (!IsConstInt(s.Loop(strip.inner).loop->extent, squares.side)) {
      const LoopRVs parts_of_side = s.Split(strip.inner, {kRest, squares.side});
      strip.squares.push_back(parts_of_side[0]);
      strip.inner = parts_of_side[1];
    }
    Transpose(s, strip, other, is_y_first);
  }
  if (s.IsVoid(parts.tail)) return;
  const HandleList<InnerLoop> inside = LoopsOfPart(s, parts.tail);
  const Squares smaller = squares.Smaller();
  const auto left = AsConstInt(s.Loop(parts.tail).loop->extent);
  if (smaller.side < kLeastSquare || (left && *left < kLeastSquare)) return s.Vectorize(inside.back().loop);
  SquareStrip rest{{}, inside.back().loop};
  for (size_t i = 0; i + 1 < inside.size(); ++i) rest.squares.push_back(inside[i].loop);
  CutAlong(s, parts.tail, std::move(rest), smaller, is_y_first);
}

// The loops outer { inner }: strips of the outer one, which are cut in squares; what is left over in narrower strips,
// and that in vectors along the inner one. Returns the loop over the widest strips (void: there is none).
LoopRV CutInStrips(Schedule& s, LoopRV outer, LoopRV inner, const Squares& squares, bool is_y_first) {
  LoopRV widest;
  const Schedule::Parts parts = s.LoopPartition(outer, squares.strip);
  if (!s.IsVoid(parts.main)) {
    const int64_t beside = squares.strip / squares.side;
    const LoopRVs loops =
        beside > 1 ? s.Split(parts.main, {kRest, beside, squares.side}) : s.Split(parts.main, {kRest, squares.side});
    widest = loops[0];
    std::vector<LoopRV> order{loops[0], inner};
    SquareStrip strip{{}, loops.back()};
    if (beside > 1) strip.squares.push_back(loops[1]);
    order.insert(order.end(), strip.squares.begin(), strip.squares.end());
    order.push_back(strip.inner);
    s.Reorder(order);
    CutAlong(s, inner, std::move(strip), squares, is_y_first);
  }
  if (s.IsVoid(parts.tail)) return widest;
  const LoopRV rest = LoopsOfPart(s, parts.tail).back().loop;
  const Squares narrower = squares.strip > squares.side ? squares.OneWide() : squares.Smaller();
  if (narrower.side < kLeastSquare) {
    VectorizeRun(s, rest, {squares.lanes, 1});
    return widest;
  }
  const LoopRV strips = CutInStrips(s, parts.tail, rest, narrower, is_y_first);
  return s.IsVoid(widest) ? strips : widest;
}

// Schedules the block, a copy of the site's, in squares of these runs.
void ScheduleRuns(Schedule& s, BlockRV block, const BlockSite& site, const TransposeRuns& runs,
                  const Squares& squares) {
  std::vector<LoopRV> order, others;
  LoopRV x, y;
  const std::vector<std::vector<LoopRV>> loops = LoopsOfRuns(s, block, runs.runs);
  for (size_t r = 0; r < runs.runs.size(); ++r) {
    const LoopRV loop = loops[r].size() > 1 ? s.Fuse(loops[r]) : LoopRVs(loops[r]).front();
    if (r == runs.y) {
      y = loop;
    } else if (r + 1 == runs.runs.size()) {
      x = loop;
    } else {
      others.push_back(loop);
    }
  }
  order = others;
  order.push_back(y);
  order.push_back(x);
  s.Reorder(order);
  const LoopRV around = others.size() > 1 ? s.Fuse(others) : others.empty() ? LoopRV{} : others[0];
  LoopRV strips;
  if (runs.is_wide_x) {  // the rows which a square divides to find serve all of y
    s.Reorder({x, y});
    strips = CutInStrips(s, x, y, squares.OneWide(), false);
  } else {
    strips = CutInStrips(s, y, x, squares, true);
  }
  const LoopRV parallel = !s.IsVoid(around) && !IsConstInt(s.Loop(around).loop->extent, 1) ? around : strips;
  if (s.IsVoid(parallel)) return;
  const auto extent = AsConstInt(s.Loop(parallel).loop->extent);
  const int64_t cost = CostOfInstance(site) * KnownInstances(site);
  ParallelizeByCost(s, parallel, cost / std::max<int64_t>(extent ? *extent : 1, 1));
}

}  // namespace

Match<> MatchesTranspose(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (ReadsUnderCondition(site)) return Declined{"it reads under conditions"};
  return FindRuns(site, target).As(Taken{});
}

std::vector<BlockName> ApplyTranspose(Schedule& s, const BlockSite& site, const Target& target) {
  const TransposeRuns runs = *FindRuns(site, target);
  BlockRV block = s.GetBlock(site.block().name);
  const std::vector<Version> versions = Versions(site, runs, UsefulSide(site, target));
  if (!versions.empty()) {
    LoopRV once = s.AddUnitLoop(block);
    std::vector<LoopRV> order{once};
    for (const InnerLoop& entry : InnerLoops(s, block, LoopRV{})) {
      if (entry.iter >= 0) order.push_back(entry.loop);
    }
    s.Reorder(order);
    for (const Version& version : versions) {
      const Schedule::Parts parts = s.PartitionAt(once, version.is_better);
      if (s.IsVoid(parts.tail)) break;
      const BlockRV rest = s.GetChildBlocks(parts.tail)[0];
      if (!s.IsVoid(parts.main)) ScheduleRuns(s, block, site, version.runs, ChooseSquares(site, version.runs, target));
      block = rest;
      once = parts.tail;
    }
  }
  ScheduleRuns(s, block, site, runs, ChooseSquares(site, runs, target));
  return {site.block().name};
}

}  // namespace ingot::schedule
