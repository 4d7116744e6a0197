// Each step is a nest of independent iterations, which the default schedule gives threads, but those of the sort: they
// stand in a loop over rounds of launches, and are bound to threads here.
#include "compiler/op/cuda_ordering.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compiler/ir/count_nodes.h"
#include "compiler/op/place_heap.h"
#include "compiler/op/statements.h"
#include "compiler/target/cuda.h"

namespace ingot::op {
namespace {

constexpr int64_t kSortThreads = 256;  // of a block

ir::PrimExpr CeilDiv(const ir::PrimExpr& a, int64_t b) { return ir::FloorDiv(a + (b - 1), ir::Int64(b)); }

}  // namespace

Stmt OverElements(const Dims& dims, const std::function<Stmt(const Places&)>& body) {
  PrimExpr total = ir::Int64(1);
  for (const PrimExpr& dim : dims) total = total * dim;
  const ir::PrimVar block = ir::MakePrimVar("b"), thread = ir::MakePrimVar("t");
  const Stmt each = Let("element", block * kSortThreads + PrimExpr(thread), [&](const PrimExpr& element) {
    Places places(dims.size());
    PrimExpr rest = element;
    for (size_t i = dims.size(); i-- > 0;) {
      places[i] = i == 0 ? rest : ir::FloorMod(rest, dims[i]);
      rest = ir::FloorDiv(rest, dims[i]);
    }
    return If(element < total, body(places));
  });
  const Stmt threads = ir::Make<ir::ForNode>(thread, ir::Int64(0), ir::Int64(kSortThreads), ir::ForKind::kThreadBinding,
                                             each, "threadIdx.x");
  return ir::Make<ir::ForNode>(block, ir::Int64(0), CeilDiv(total, kSortThreads), ir::ForKind::kThreadBinding, threads,
                               "blockIdx.x");
}

namespace {

using ir::Int64;

// The elements of the call's first argument along its axis, if that is known.
std::optional<int64_t> LengthOf(const ir::Call& call) {
  const Result<ir::TensorType> x = TensorArg(call, 0);
  if (!x.ok() || !(*x)->dims) return std::nullopt;
  const Result<int> axis = AxisOf(call, (*x)->rank);
  return axis.ok() ? ir::AsConstInt((*x)->dims->at(static_cast<size_t>(*axis))) : std::nullopt;
}
// The number of rows, if that is known.
std::optional<int64_t> NumKnownRows(const Dims& others) {
  int64_t rows = 1;
  for (const PrimExpr& dim : others) {
    const std::optional<int64_t> extent = ir::AsConstInt(dim);
    if (!extent || __builtin_mul_overflow(rows, *extent, &rows)) return std::nullopt;
  }
  return rows;
}

bool IsForCuda(const ir::Call& call, const Target& target) {
  const Result<ir::TensorType> x = TensorArg(call, 0);
  return target.kind == Target::Kind::kCuda && x.ok() && (*x)->dims && (*x)->dtype;
}
double HalfOfInput(const ir::Call& call, const Target& target) { return InputElements(call, target) / 2; }

// ---- sort

constexpr int64_t kUsualRounds = 13;                // rows of 2^31 elements
constexpr int64_t kMostRounds = 16;                 // of 2^37, more than a GPU has memory for
constexpr int64_t kFewNodes = 10, kManyNodes = 24;  // of the formula of a length
constexpr int64_t kRun = 32;                        // elements that find their ranks among each other
constexpr int64_t kFewElements = 2 * kRun;          // that one thread sorts as quickly

bool SortsOnCuda(const ir::Call& call, const Target& target) {
  if (!IsForCuda(call, target) || (*TensorArg(call, 0))->dtype->bits < 8) return false;
  return LengthOf(call).value_or(kFewElements + 1) > kFewElements;
}

// Elements and their places change between two halves, in which rows lie one after the other.
class RankSort {
 public:
  RankSort(const Buffer& x, size_t axis, bool descending)
      : x_(x), axis_(axis), descending_(descending), rows_(Others(x->shape, axis)), n_(x->shape[axis]) {
    const std::optional<int64_t> length = ir::AsConstInt(n_);
    place_ = length && *length <= INT32_MAX ? DataType::Int(32) : DataType::Int(64);
    Dims dims = {Int64(2)};
    dims.insert(dims.end(), rows_.begin(), rows_.end());
    dims.push_back(n_);
    keys_ = ir::MakeBuffer("keys", x->dtype, dims);
    order_ = ir::MakeBuffer("order", place_, dims);
  }

  Buffers workspace() const { return {keys_, order_}; }
  std::vector<Stmt> Sort() const {
    const ir::PrimVar round = ir::MakePrimVar("round");
    const PrimExpr run = ir::CallIntrinsic(ir::Intrinsic::kShiftLeft, {Int64(kRun), PrimExpr(round) * 2});
    const Stmt passes = ir::MakeSeq({Merge(run, 0), Merge(run * 2, 1)});
    return {Rank(), ir::Make<ir::ForNode>(round, Int64(0), Rounds(), ir::ForKind::kSerial, passes)};
  }
  // Of a vector.
  PrimExpr Element(const PrimExpr& i) const { return Load(keys_, In(0, {}, i)); }
  PrimExpr PlaceOf(const PrimExpr& i) const { return ir::Cast(DataType::Int(64), Load(order_, In(0, {}, i))); }
  // write(row, i, element, place) for each i < count.
  Stmt Write(const PrimExpr& count,
             const std::function<Stmt(const Places&, const PrimExpr&, const PrimExpr&, const PrimExpr&)>& write) const {
    return OverElements(Of(count), [&](const Places& at) {
      const auto [row, i] = RowOf(at);
      return write(row, i, Load(keys_, In(0, row, i)), Load(order_, In(0, row, i)));
    });
  }

 private:
  Dims Of(const PrimExpr& count) const {
    Dims dims = rows_;
    dims.push_back(count);
    return dims;
  }
  static std::pair<Places, PrimExpr> RowOf(const Places& at) { return {Places(at.begin(), at.end() - 1), at.back()}; }
  static Places In(int64_t half, const Places& row, const PrimExpr& i) {
    Places places = {Int64(half)};
    places.insert(places.end(), row.begin(), row.end());
    places.push_back(i);
    return places;
  }
  PrimExpr IsBefore(const PrimExpr& a, const PrimExpr& b) const { return descending_ ? IsLess(b, a) : IsLess(a, b); }
  // Each has two passes, runs of 32 * 4^round and of twice as many, and none is needed once a run is the whole row. A file's
  // formula has few steps: where the length is one itself, some rounds are there at once.
  PrimExpr Rounds() const {
    const int64_t nodes = ir::CountNodes(n_);
    const int64_t at_once = nodes == 1 ? 1 : nodes <= kFewNodes ? 4 : nodes <= kManyNodes ? kUsualRounds : kMostRounds;
    PrimExpr rounds = Int64(0);
    for (int64_t round = 0, count = 0; round < kMostRounds; round += count) {
      count = round < kUsualRounds ? std::min(at_once, kMostRounds - round) : kMostRounds - round;
      const PrimExpr is_needed = ir::Cast(DataType::Int(64), Int64(kRun << (2 * round)) < n_);
      rounds = rounds + is_needed * count;
    }
    return SimplifyDim(rounds);
  }

  Stmt Rank() const {
    const Buffer count = ir::MakeBuffer("count", DataType::Int(64), {Int64(1)}, "local");
    const Places first = {Int64(0)};
    return OverElements(Of(n_), [&](const Places& at) {
      const auto [row, i] = RowOf(at);
      return Let("key", Load(x_, At(row, axis_, i)), [&, row = row, i = i](const PrimExpr& key) {
        return Let("begin", ir::FloorDiv(i, Int64(kRun)) * kRun, [&](const PrimExpr& begin) {
          const Stmt add = Loop(ir::Min(Int64(kRun), n_ - begin), [&](const PrimExpr& j) {
            return Let("other", Load(x_, At(row, axis_, begin + j)), [&](const PrimExpr& other) {
              const PrimExpr is_before = ir::Select(begin + j < i, ir::Not(IsBefore(key, other)), IsBefore(other, key));
              return Store(count, Load(count, first) + ir::Cast(DataType::Int(64), is_before), first);
            });
          });
          const PrimExpr to = begin + Load(count, first);
          const Stmt all = ir::MakeSeq({Store(count, Int64(0), first), add, Store(keys_, key, In(0, row, to)),
                                        Store(order_, ir::Cast(place_, i), In(0, row, to))});
          return Stmt(ir::Make<ir::AllocateNode>(count, all));
        });
      });
    });
  }

  Stmt Merge(const PrimExpr& run, int64_t half) const {
    // The places below the first one hold elements that come before the key, those from the second one on none.
    const Buffer bounds = ir::MakeBuffer("bounds", DataType::Int(64), {Int64(2)}, "local");
    const Places low = {Int64(0)}, high = {Int64(1)};
    return OverElements(Of(n_), [&](const Places& at) {
      const auto [row, i] = RowOf(at);
      return Let("key", Load(keys_, In(half, row, i)), [&, row = row, i = i](const PrimExpr& key) {
        return Let("begin", ir::FloorDiv(i, run * 2) * (run * 2), [&](const PrimExpr& begin) {
          return Let("middle", ir::Min(begin + run, n_), [&](const PrimExpr& middle) {
            const PrimExpr is_left = i < middle;
            const Stmt search =
                Let("at", ir::FloorDiv(Load(bounds, low) + Load(bounds, high), Int64(2)), [&](const PrimExpr& at) {
                  return Let("other", Load(keys_, In(half, row, at)), [&](const PrimExpr& other) {
                    const PrimExpr is_before = ir::Select(is_left, IsBefore(other, key), ir::Not(IsBefore(key, other)));
                    return Stmt(
                        ir::Make<ir::IfStmtNode>(is_before, Store(bounds, at + 1, low), Store(bounds, at, high)));
                  });
                });
            const Stmt find = ir::MakeSeq({Store(bounds, ir::Select(is_left, middle, begin), low),
                                           Store(bounds, ir::Select(is_left, ir::Min(middle + run, n_), middle), high),
                                           While(Load(bounds, low) < Load(bounds, high), search)});
            const Stmt move = Let("to", i + Load(bounds, low) - middle, [&](const PrimExpr& to) {
              return ir::MakeSeq({Store(keys_, key, In(1 - half, row, to)),
                                  Store(order_, Load(order_, In(half, row, i)), In(1 - half, row, to))});
            });
            return Stmt(ir::Make<ir::AllocateNode>(bounds, ir::MakeSeq({find, move})));
          });
        });
      });
    });
  }

  Buffer x_;
  size_t axis_;
  bool descending_;
  Dims rows_;
  PrimExpr n_;
  DataType place_;
  Buffer keys_, order_;
};

// The stores of the i-th element of a row to the results that there are.
Stmt WriteSorted(const SortKind& kind, const Buffers& outputs, const Places& to, const PrimExpr& element,
                 const PrimExpr& place) {
  std::vector<Stmt> stores;
  if (kind.values) stores.push_back(Store(outputs.front(), element, to));
  if (kind.indices) stores.push_back(Store(outputs.back(), ir::Cast(outputs.back()->dtype, place), to));
  return ir::MakeSeq(std::move(stores));
}

Statements DefineSortOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const size_t axis = ArgAxisOf(args);
  const SortKind kind = SortKindOf(args.call());
  const RankSort sort(inputs[0], axis, kind.descending);
  const PrimExpr& count = outputs[0]->shape[axis];
  std::vector<Stmt> nests = sort.Sort();
  const Stmt write =
      sort.Write(count, [&](const Places& row, const PrimExpr& i, const PrimExpr& element, const PrimExpr& place) {
        return WriteSorted(kind, outputs, At(row, axis, i), element, place);
      });
  const PrimExpr enough = HasElements(count, inputs[0]->shape[axis]);
  nests.push_back(Assert(enough, "top-k of fewer than k elements", write));
  return {std::move(nests), sort.workspace()};
}

}  // namespace

SortedVector SortOnCuda(const Buffer& vector) {
  const RankSort sort(vector, 0, /*descending=*/false);
  return {sort.Sort(), sort.workspace(), [sort](const PrimExpr& i) { return sort.Element(i); },
          [sort](const PrimExpr& i) { return sort.PlaceOf(i); }};
}

namespace {

// ---- top k

constexpr int64_t kMostInHeap = 128;  // of a thread
constexpr int64_t kHeapsOfPart = 8;   // elements of a part, in heaps
constexpr int64_t kLeastOfPart = 64;
constexpr int64_t kStagesOfSymbol = 4;  // of rows of unknown length

int64_t PartOf(int64_t k) { return std::max(kHeapsOfPart * k, kLeastOfPart); }

bool SelectsInParts(const ir::Call& call, const Target& target) {
  if (!IsForCuda(call, target)) return false;
  const int64_t k = call->attrs.GetInt("k");
  if (k < 1 || k > kMostInHeap) return false;
  if (PlaceHeap::LocalBytes(k, *(*TensorArg(call, 0))->dtype) > target.max_stack_bytes / 2) return false;
  return LengthOf(call).value_or(2 * PartOf(k)) >= 2 * PartOf(k);
}

Statements DefineTopkInParts(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const Buffer& x = inputs[0];
  const size_t axis = ArgAxisOf(args);
  const SortKind kind = SortKindOf(args.call());
  const int64_t k = args.call()->attrs.GetInt("k"), part = PartOf(k);
  const Dims rows = Others(x->shape, axis);
  const PrimExpr enough = HasElements(Int64(k), x->shape[axis]);
  std::vector<Stmt> nests;
  Buffers workspace;
  Buffer found;  // the places that the last stage found; null: all
  PrimExpr count = x->shape[axis];
  int64_t length = part;  // of the row, in a part
  for (int64_t stage = 0;; ++stage, length *= kHeapsOfPart) {
    const auto known = ir::AsConstInt(count);
    const bool is_last = known ? *known < 2 * part : stage == kStagesOfSymbol;
    // Parts of equal length, so that each has k elements. Each stage has an eighth of the parts of the one before it.
    const PrimExpr parts =
        is_last ? Int64(1) : SimplifyDim(ir::Max(ir::FloorDiv(x->shape[axis], Int64(length)), Int64(1)));
    Dims dims = rows;
    if (!is_last) dims.push_back(parts);
    // By parts, which shows that they do not wait for each other.
    Dims kept = rows;
    kept.insert(kept.end(), {parts, Int64(k)});
    const Buffer next = is_last ? Buffer() : ir::MakeBuffer("found", DataType::Int(64), kept);
    const PlaceHeap heap(k, x->dtype, kind.descending);
    nests.push_back(SpatialNest(
        "top", dims,
        [&](const Places& at) {
          const Places row(at.begin(), at.begin() + std::ssize(rows));
          const auto under = [](Places places, const PrimExpr& number, const PrimExpr& i) {
            places.insert(places.end(), {number, i});
            return places;
          };
          const PrimExpr number = is_last ? Int64(0) : at.back();
          return Let("first", ir::FloorDiv(number * count, parts), [&](const PrimExpr& first) {
            const auto place = [&](const PrimExpr& i) {
              if (!found) return first + i;
              return Load(found, under(row, ir::FloorDiv(first + i, Int64(k)), ir::FloorMod(first + i, Int64(k))));
            };
            const auto element = [&](const PrimExpr& i) { return Load(x, At(row, axis, place(i))); };
            const auto write = [&](const PrimExpr& i, const PrimExpr& from) {
              return Let("from", place(from), [&](const PrimExpr& at_from) {
                if (next) return Store(next, at_from, under(row, number, i));
                return WriteSorted(kind, outputs, At(row, axis, i), Load(x, At(row, axis, at_from)), at_from);
              });
            };
            const PrimExpr size = ir::FloorDiv((number + 1) * count, parts) - first;
            const Stmt steps = ir::MakeSeq({heap.Select(size, element), heap.Drain(write)});
            return Assert(enough, "top-k of fewer than k elements", steps);
          });
        },
        heap.local()));
    if (is_last) return {std::move(nests), std::move(workspace)};
    workspace.push_back(next);
    found = next;
    count = SimplifyDim(parts * k);
  }
}

// ---- sums

constexpr int64_t kAtOnce = 8;                          // elements that are on their way to a thread
constexpr int64_t kThreadsThatFill = int64_t{1} << 17;  // a device
constexpr int64_t kLeastOfSums = 32, kMostOfSums = 512, kSumsOfSymbol = 128;
constexpr int64_t kFewSums = 512;  // that a thread adds up by itself

bool SumsOnCuda(const ir::Call& call, const Target& target) {
  return IsForCuda(call, target) && LengthOf(call).value_or(kLeastOfSums) >= kLeastOfSums;
}

// The elements of a part of a row, or 0 where the whole row is one.
int64_t PartOfSums(const PrimExpr& length, const Dims& others) {
  const std::optional<int64_t> known = ir::AsConstInt(length), rows = NumKnownRows(others);
  if (!known) return kSumsOfSymbol;
  if (!rows) return *known < 2 * kSumsOfSymbol ? 0 : kSumsOfSymbol;
  if (*rows >= kThreadsThatFill / 4) return 0;
  const double share = static_cast<double>(*known) * static_cast<double>(*rows) / kThreadsThatFill;
  const auto part = static_cast<int64_t>(std::clamp<double>(share, kLeastOfSums, kMostOfSums));
  return *known < 2 * part ? 0 : (part + kAtOnce - 1) / kAtOnce * kAtOnce;
}

// visit(i, element) for each i below count, in order, of which several are loaded before the first one is used.
Stmt VisitInChunks(const PrimExpr& count, DataType dtype, const std::function<PrimExpr(const PrimExpr&)>& element,
                   const std::function<Stmt(const PrimExpr& i, const PrimExpr& element)>& visit) {
  const Buffer loaded = ir::MakeBuffer("loaded", dtype, {Int64(kAtOnce)}, "local");
  const auto unrolled = [](const std::function<Stmt(const PrimExpr&)>& body) {
    const ir::PrimVar var = ir::MakePrimVar("u");
    return Stmt(ir::Make<ir::ForNode>(var, Int64(0), Int64(kAtOnce), ir::ForKind::kUnrolled, body(var)));
  };
  const Stmt whole = Loop(ir::FloorDiv(count, Int64(kAtOnce)), [&](const PrimExpr& chunk) {
    const Stmt load = unrolled([&](const PrimExpr& u) { return Store(loaded, element(chunk * kAtOnce + u), {u}); });
    const Stmt use = unrolled([&](const PrimExpr& u) { return visit(chunk * kAtOnce + u, Load(loaded, {u})); });
    return Stmt(ir::Make<ir::AllocateNode>(loaded, ir::MakeSeq({load, use})));
  });
  const PrimExpr begin = SimplifyDim(ir::FloorDiv(count, Int64(kAtOnce)) * kAtOnce);
  if (DimsEqual(begin, count)) return whole;
  return ir::MakeSeq({whole, Loop(count - begin, [&](const PrimExpr& i) {
                        return Let("alone", element(begin + i), [&](const PrimExpr& x) { return visit(begin + i, x); });
                      })});
}

// to[i] := the sum of from[j] for j < i, or j <= i. The sums of parts are summed in the same way, up to a few.
void AddSums(std::vector<Stmt>& nests, Buffers& workspace, const Buffer& from, const Buffer& to, size_t axis,
             DataType wide, bool exclusive) {
  const PrimExpr& length = from->shape[axis];
  const Dims others = Others(from->shape, axis);
  const bool is_first = from->dtype != wide || !from.same_as(to);
  const int64_t part = is_first || ir::AsConstInt(length).value_or(0) > kFewSums ? PartOfSums(length, others) : 0;
  const Places zero = {Int64(0)};
  const auto element = [&](const Places& at, const PrimExpr& i) { return ir::Cast(wide, Load(from, At(at, axis, i))); };
  const auto local = [&] { return ir::MakeBuffer("total", wide, {Int64(1)}, "local"); };
  const auto add = [&](const Buffer& total, const PrimExpr& x) { return Store(total, Load(total, zero) + x, zero); };
  Buffer sums;
  Dims dims = others;
  const auto in_parts =
      [&](const Places& at,
          const std::function<Stmt(const Places& row, const PrimExpr& begin, const PrimExpr& count)>& body) {
        Places row = at;
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(axis));
        const PrimExpr begin = at[axis] * part;
        return body(row, begin,
                    ir::IsConstInt(SimplifyDim(ir::FloorMod(length, Int64(part))), 0)
                        ? Int64(part)
                        : ir::Min(Int64(part), length - begin));
      };
  if (part > 0) {
    dims = At(others, axis, CeilDiv(length, part));
    sums = ir::MakeBuffer("sums", wide, dims);
    workspace.push_back(sums);
    const Buffer total = local();
    nests.push_back(SpatialNest(
        "sums", dims,
        [&](const Places& at) {
          return in_parts(at, [&](const Places& row, const PrimExpr& begin, const PrimExpr& count) {
            const Stmt all = VisitInChunks(
                count, wide, [&](const PrimExpr& i) { return element(row, begin + i); },
                [&](const PrimExpr&, const PrimExpr& x) { return add(total, x); });
            return ir::MakeSeq({Store(total, ir::MakeConst(wide, 0), zero), all, Store(sums, Load(total, zero), at)});
          });
        },
        {total}));
    AddSums(nests, workspace, sums, sums, axis, wide, /*exclusive=*/true);
  }
  const Buffer total = local();
  nests.push_back(SpatialNest(
      "scan", dims,
      [&](const Places& at) {
        const auto steps = [&](const Places& row, const PrimExpr& begin, const PrimExpr& count) {
          const Stmt all = VisitInChunks(
              count, wide, [&](const PrimExpr& i) { return element(row, begin + i); },
              [&](const PrimExpr& i, const PrimExpr& x) {
                const Stmt write = Store(to, ir::Cast(to->dtype, Load(total, zero)), At(row, axis, begin + i));
                return ir::MakeSeq(exclusive ? std::vector<Stmt>{write, add(total, x)}
                                             : std::vector<Stmt>{add(total, x), write});
              });
          return ir::MakeSeq({Store(total, part > 0 ? Load(sums, at) : ir::MakeConst(wide, 0), zero), all});
        };
        return part > 0 ? in_parts(at, steps) : steps(at, Int64(0), length);
      },
      {total}));
}

Statements DefineSumsOnCuda(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  // Narrow floats add up in float32.
  const DataType dtype = outputs[0]->dtype;
  const DataType wide = dtype.is_floating() && dtype.bits < 32 ? DataType::Float(32) : dtype;
  std::vector<Stmt> nests;
  Buffers workspace;
  AddSums(nests, workspace, inputs[0], outputs[0], ArgAxisOf(args), wide, args.call()->attrs.GetBool("exclusive"));
  return {std::move(nests), std::move(workspace)};
}

}  // namespace

Implementation CudaSort() { return {"cuda_ranks", SortsOnCuda, HalfOfInput, {}, BuildStatements<DefineSortOnCuda>}; }
Implementation CudaTopk() {
  return {"cuda_parts", SelectsInParts, HalfOfInput, {}, BuildStatements<DefineTopkInParts>};
}
Implementation CudaSums() { return {"cuda_sums", SumsOnCuda, HalfOfInput, {}, BuildStatements<DefineSumsOnCuda>}; }

}  // namespace ingot::op
