// One step of one direction, for the sequences that still run:
//   for each group of panels (in tasks) and pair of sequences:
//     for its panels p and sequences b:
//       acc[b, p, g, :] = gates[t, b, p, g, :] + sum over k of h[b, k] * R[p, k, g, :]
//     then the cell's formulas on whole vectors, panel by panel, into next[b, p] (and c[b, p])
//   for each sequence b:  h[b] = next[b], which is a row of the result too
// The accumulators are small local tiles of constant indices, that is, registers. A group has as many panels as make
// enough of them: a sum waits for its last addition, so a processor needs several sums at a time. The last group may
// overlap the one before, whose results it computes again; a cell whose state changes in place has groups of one panel.
// The weights of a panel are read in order, once per step and pair of sequences (of known equal lengths, else for each).
// On CUDA, the loop over steps stays around launches, one for each round over the panels; a block of threads has a panel of a
// few sequences, whose products its threads share by parts of the previous state.
// A GRU that resets before the product takes two rounds over the panels. Where the recurrence is of bytes, each step
// begins with h as bytes, and acc are integers, which the input's part is added to when they are floats again.
#include "compiler/op/topi/recurrent.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "compiler/op/topi/byte_products.h"
#include "compiler/op/topi/recurrent_build.h"
#include "compiler/target/cuda.h"

namespace ingot::op::topi {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

constexpr int64_t kUnroll = 4;                       // of the loop over the previous state's units
constexpr int64_t kTaskProducts = int64_t{1} << 17;  // multiplications that are worth a task
constexpr int64_t kAccumulatorBytes = 256;           // sums at a time that keep multiply-adds busy
constexpr int64_t kMostAccumulatorBytes = 384;       // sums that fit in registers
constexpr int64_t kScale = 0, kZeroPoint = 1;        // places in the range of a state of bytes

// The scan of one direction. Buffers of the state have whole panels, [B, P * L].
class DirectionScan {
 public:
  // `by_blocks`: for CUDA.
  DirectionScan(const Recurrence& r, const Buffers& inputs, const Buffers& outputs, int64_t direction, bool by_blocks)
      : r_(r),
        by_blocks_(by_blocks),
        direction_(direction),
        gates_(inputs[0]),
        recurrence_(inputs[1]),
        initial_h_(inputs[2]),
        initial_c_(r.cell == Cell::kLstm ? inputs[3] : nullptr),
        lengths_(r.lengths ? inputs[*r.lengths] : nullptr),
        extra_(r.extra ? inputs[*r.extra] : nullptr),
        scales_(r.scales ? inputs[*r.scales] : nullptr),
        outputs_(outputs),
        steps_(gates_->shape[0]),
        batch_(gates_->shape[1]),
        dtype_(gates_->dtype.bits == 16 ? DataType::Float(32) : gates_->dtype) {
    const auto state = [&](const char* name) { return MakeBuffer(name, dtype_, {batch_, Int64(Padded())}); };
    h_ = state("h");
    next_ = state("next");
    if (by_blocks_) {  // steps take turns in reading from one half and writing to the other
      h_ = MakeBuffer("h", dtype_, {batch_ * 2, Int64(Padded())});
      next_ = h_;
    }
    if (r.cell == Cell::kLstm) c_ = state("c");
    if (ResetsFirst()) {
      update_ = state("update");
      reset_ = state("reset");
    }
    if (r.has_bytes()) {
      bytes_ = MakeBuffer("bytes", DataType::UInt(8), {batch_, Int64(Padded())});
      range_ = MakeBuffer("range", dtype_, {Int64(2)});
    }
  }

  Stmt Run() {
    std::vector<Stmt> body;
    body.push_back(Start(h_, initial_h_));
    if (c_) body.push_back(Start(c_, initial_c_));
    body.push_back(SerialLoop("s", steps_, [&](const PrimExpr& s) { return by_blocks_ ? StepByBlocks(s) : Step(s); }));
    step_ = steps_;
    const PrimExpr d = Int64(direction_);
    const auto last = [&](const Buffer& from, const Buffer& to) {
      return SerialLoop("b", batch_, [&](const PrimExpr& b) {
        const PrimExpr row = from.same_as(h_) ? RowOfState(b) : b;
        Stmt taken = Row([&](const PrimExpr& j) { return StoreAt(to, {d, b, j}, LoadAt(from, {row, j})); });
        if (!lengths_) return taken;
        Stmt nothing = Row([&](const PrimExpr& j) { return StoreAt(to, {d, b, j}, MakeConst(to->dtype, 0)); });
        return Stmt(Make<IfStmtNode>(Int64(0) < LengthOf(b), std::move(taken), std::move(nothing)));
      });
    };
    body.push_back(last(h_, outputs_[1]));
    if (c_) body.push_back(last(c_, outputs_[2]));
    Stmt scan = MakeSeq(std::move(body));
    for (const Buffer& buffer : {h_, by_blocks_ ? Buffer() : next_, c_, update_, reset_, bytes_, range_}) {
      if (buffer) scan = Make<AllocateNode>(buffer, std::move(scan));
    }
    return scan;
  }

 private:
  int64_t Padded() const { return r_.panels * r_.lanes; }
  bool ResetsFirst() const { return r_.cell == Cell::kGru && !r_.linear_before_reset; }

  // A loop over the H units of a row, in vectors as far as whole vectors go.
  Stmt Row(const BodyFn& element) const {
    const int64_t whole = r_.hidden / r_.lanes, rest = r_.hidden % r_.lanes;
    std::vector<Stmt> parts;
    if (whole > 0) {
      parts.push_back(SerialLoop("p", Int64(whole), [&](const PrimExpr& p) {
        return Lanes([&](const PrimExpr& l) { return element(p * r_.lanes + l); });
      }));
    }
    if (rest > 0) {
      parts.push_back(
          SerialLoop("j", Int64(rest), [&](const PrimExpr& j) { return element(j + Int64(whole * r_.lanes)); }));
    }
    return MakeSeq(std::move(parts));
  }
  // For a lane: all of them in a vector, or that of the thread.
  Stmt Lanes(const BodyFn& element) const {
    return lane_ ? element(lane_) : LoopOver("l", Int64(r_.lanes), ForKind::kVectorized, element);
  }

  // The rows of the state before the step and behind it.
  PrimExpr RowOfState(const PrimExpr& b) const { return by_blocks_ ? b + FloorMod(step_, Int64(2)) * batch_ : b; }
  PrimExpr RowOfNext(const PrimExpr& b) const { return by_blocks_ ? b + FloorMod(step_ + 1, Int64(2)) * batch_ : b; }

  // The state before the first step; lanes that fill up the last panel are 0.
  Stmt Start(const Buffer& state, const Buffer& initial) const {
    return SerialLoop("b", batch_, [&](const PrimExpr& b) {
      std::vector<Stmt> parts;
      if (Padded() != r_.hidden) {
        parts.push_back(Lanes([&](const PrimExpr& l) {
          return StoreAt(state, {b, l + Int64(Padded() - r_.lanes)}, MakeConst(dtype_, 0));
        }));
      }
      parts.push_back(Row([&](const PrimExpr& j) {
        return StoreAt(state, {b, j}, LoadAt(initial, {Int64(direction_), b, j}));
      }));
      return MakeSeq(std::move(parts));
    });
  }

  PrimExpr LengthOf(const PrimExpr& b) const {
    if (!lengths_) return steps_;
    return Min(Max(ir::Cast(DataType::Int(64), LoadAt(lengths_, {b})), Int64(0)), steps_);
  }
  // The step of sequence b that is computed in round s.
  PrimExpr TimeOf(const PrimExpr& s, const PrimExpr& b) const {
    return r_.IsReversed(direction_) ? LengthOf(b) - 1 - s : s;
  }
  // The body where the sequence still runs, else the other statement.
  Stmt Guarded(const PrimExpr& s, const PrimExpr& b, Stmt body, Stmt otherwise = nullptr) const {
    if (!lengths_) return body;
    return Make<IfStmtNode>(s < LengthOf(b), std::move(body), std::move(otherwise));
  }

  // h as bytes, and their scale and zero point. The range holds 0 and the H units; what an activation leaves in the
  // lanes that fill up the last panel is no part of it.
  Stmt QuantiseState() const {
    const Buffer low = MakeBuffer("low", dtype_, {Int64(r_.lanes)}, "local");
    const Buffer high = MakeBuffer("high", dtype_, {Int64(r_.lanes)}, "local");
    const auto number = [&](double value) { return MakeConst(dtype_, value); };
    const auto in_vectors = [&](const std::function<Stmt(const PrimExpr& b, const PrimExpr& first)>& body) {
      return SerialLoop("b", batch_, [&](const PrimExpr& b) {
        return SerialLoop("p", Int64(r_.panels), [&](const PrimExpr& p) { return body(b, p * r_.lanes); });
      });
    };
    const auto joined = [&](const Buffer& bound, PrimExpr (*join)(PrimExpr, PrimExpr), const PrimExpr& l, PrimExpr x) {
      return StoreAt(bound, {l}, join(LoadAt(bound, {l}), std::move(x)));
    };
    std::vector<Stmt> stmts;
    for (const Buffer& bound : {low, high}) {
      stmts.push_back(Lanes([&](const PrimExpr& l) { return StoreAt(bound, {l}, number(0)); }));
    }
    stmts.push_back(in_vectors([&](const PrimExpr& b, const PrimExpr& first) {
      const auto x = [&](const PrimExpr& l) {
        const PrimExpr unit = LoadAt(h_, {b, first + l});
        return Padded() == r_.hidden ? unit : Select(first + l < Int64(r_.hidden), unit, number(0));
      };
      return MakeSeq({Lanes([&](const PrimExpr& l) { return joined(low, &ir::Min, l, x(l)); }),
                      Lanes([&](const PrimExpr& l) { return joined(high, &ir::Max, l, x(l)); })});
    }));
    for (int64_t half = r_.lanes / 2; half >= 1; half /= 2) {
      for (const auto& [bound, join] : {std::pair(low, &ir::Min), std::pair(high, &ir::Max)}) {
        stmts.push_back(LoopOver("l", Int64(half), half > 1 ? ForKind::kVectorized : ForKind::kSerial,
                                 [&](const PrimExpr& l) { return joined(bound, join, l, LoadAt(bound, {l + half})); }));
      }
    }
    const PrimExpr first = Int64(0);
    const PrimExpr scale = LoadAt(range_, {Int64(kScale)}), zero = LoadAt(range_, {Int64(kZeroPoint)});
    const PrimExpr step = (LoadAt(high, {first}) - LoadAt(low, {first})) / number(255);
    stmts.push_back(StoreAt(range_, {Int64(kScale)}, Select(step > number(0), step, number(1))));
    const auto in_bytes = [&](const PrimExpr& x) { return Min(Max(x, number(0)), number(255)); };
    const auto rounded = [&](const PrimExpr& x) { return Call(Intrinsic::kNearbyInt, x); };
    stmts.push_back(
        StoreAt(range_, {Int64(kZeroPoint)}, rounded(in_bytes((number(0) - LoadAt(low, {first})) / scale))));
    stmts.push_back(in_vectors([&](const PrimExpr& b, const PrimExpr& at) {
      return Lanes([&](const PrimExpr& l) {
        return StoreAt(bytes_, {b, at + l}, in_bytes(rounded(LoadAt(h_, {b, at + l}) / scale) + zero));
      });
    }));
    return Make<AllocateNode>(low, Make<AllocateNode>(high, MakeSeq(std::move(stmts))));
  }

  Stmt Step(const PrimExpr& s) {
    std::vector<Stmt> rounds;
    if (bytes_) rounds.push_back(QuantiseState());
    const auto add_round = [&](int64_t first, int64_t count, const Buffer& state, const FinishFn& finish) {
      rounds.push_back(Panels(s, count, [&](const Place& place, const Extent& tile) {
        return Gated(place, tile, first, count, state, finish);
      }));
    };
    if (ResetsFirst()) {
      add_round(0, 2, h_, [&](Tile& tile, const Place& at) { ResetGates(tile, at.p, at.b); });
      add_round(2, 1, reset_, [&](Tile& tile, const Place& at) { Candidate(tile, at.p, at.b); });
    } else {
      add_round(0, r_.gates, h_, [&](Tile& tile, const Place& at) { Formulas(tile, at.t, at.p, at.b); });
    }
    rounds.push_back(SerialLoop("b", batch_, [&](const PrimExpr& b) {
      const PrimExpr d = Int64(direction_);
      std::vector<Stmt> taken{SerialLoop("p", Int64(r_.panels), [&](const PrimExpr& p) {
        return Lanes([&](const PrimExpr& l) {
          return StoreAt(h_, {b, p * r_.lanes + l}, LoadAt(next_, {b, p * r_.lanes + l}));
        });
      })};
      taken.push_back(Row([&](const PrimExpr& j) {
        return StoreAt(outputs_[0], {TimeOf(s, b), d, b, j}, LoadAt(next_, {b, j}));
      }));
      // Steps after the end of a sequence are padding, in either direction.
      Stmt padding = !lengths_ ? nullptr : Row([&](const PrimExpr& j) {
        return StoreAt(outputs_[0], {s, d, b, j}, MakeConst(outputs_[0]->dtype, 0));
      });
      return Guarded(s, b, MakeSeq(std::move(taken)), std::move(padding));
    }));
    return MakeSeq(std::move(rounds));
  }

  // The step as launches (StepByBlocks): in each, a block of threads has a panel of `sequences` sequences. Its threads are
  // parts of the previous state's units times gates and lanes; they add up products, then the parts are joined, then a thread
  // has a unit.
  Stmt StepByBlocks(const PrimExpr& s) {
    step_ = s;
    std::vector<Stmt> launches;
    if (ResetsFirst()) {
      launches.push_back(Blocks(0, 2, h_, false, [&](Tile& tile, const Place& at) { ResetGates(tile, at.p, at.b); }));
      launches.push_back(Blocks(2, 1, reset_, true, [&](Tile& tile, const Place& at) { Candidate(tile, at.p, at.b); }));
    } else {
      launches.push_back(
          Blocks(0, r_.gates, h_, true, [&](Tile& tile, const Place& at) { Formulas(tile, at.t, at.p, at.b); }));
    }
    return MakeSeq(std::move(launches));
  }

  struct Place {
    PrimExpr t, p, b;  // step, panel, sequence
  };
  struct Extent {
    int64_t panels, sequences;
  };
  // The panels whose sums of `count` gates are computed at a time, for so many sequences.
  Extent AtOnce(int64_t count, int64_t sequences) const {
    if (c_) return {1, sequences};
    const int64_t bytes = count * sequences * r_.lanes * dtype_.bits / 8;
    return {std::clamp<int64_t>((kAccumulatorBytes + bytes - 1) / bytes, 1, r_.panels), sequences};
  }

  // body(place, tile) for groups of panels from place.p on, of all panels, and for groups of sequences from place.b on,
  // of all that run in round s.
  Stmt Panels(const PrimExpr& s, int64_t count,
              const std::function<Stmt(const Place& place, const Extent& tile)>& body) {
    const auto sequences = AsConstInt(batch_);
    const bool has_pairs = !lengths_ && sequences.value_or(2) >= 2;
    const Extent pairs = AtOnce(count, 2), single = AtOnce(count, 1);
    const int64_t width = has_pairs ? std::lcm(pairs.panels, single.panels) : single.panels;
    const int64_t products = r_.hidden * Padded() * r_.gates * std::max<int64_t>(sequences.value_or(1), 1);
    const int64_t wanted = std::clamp<int64_t>(products / kTaskProducts, 1, r_.panels);
    const int64_t per_task = ((r_.panels + wanted - 1) / wanted + width - 1) / width * width;
    const int64_t tasks = std::max<int64_t>(r_.panels / per_task, 1);  // the last one takes the rest as well
    // The sequences from `first` on, for groups of the panels [from, from + panels), at least one whole.
    const auto groups = [&](const Extent& tile, const PrimExpr& first, const PrimExpr& from, const PrimExpr& panels,
                            int64_t known_rest) {
      return SerialLoop("group", FloorDiv(panels + (tile.panels - 1), Int64(tile.panels)), [&](const PrimExpr& index) {
        PrimExpr p = index * tile.panels;
        if (known_rest % tile.panels != 0) p = Min(p, panels - tile.panels);
        return SerialLoop("b", FloorDiv(batch_ - first, Int64(tile.sequences)), [&](const PrimExpr& i) {
          const PrimExpr b = first + i * tile.sequences;
          return Guarded(s, b, body({TimeOf(s, b), from + p, b}, tile));
        });
      });
    };
    const auto task = [&](const PrimExpr& from, const PrimExpr& panels, int64_t known_rest) {
      if (!has_pairs) return groups(single, Int64(0), from, panels, known_rest);
      std::vector<Stmt> parts = {groups(pairs, Int64(0), from, panels, known_rest)};
      if (sequences.value_or(1) % 2 != 0) {
        parts.push_back(groups(single, FloorDiv(batch_, Int64(2)) * 2, from, panels, known_rest));
      }
      return MakeSeq(std::move(parts));
    };
    if (tasks == 1) return task(Int64(0), Int64(r_.panels), r_.panels);
    return LoopOver("task", Int64(tasks), ForKind::kParallel, [&](const PrimExpr& index) {
      const int64_t rest = r_.panels - tasks * per_task;
      PrimExpr panels = Int64(per_task);
      if (rest != 0) panels = Select(index < Int64(tasks - 1), panels, Int64(per_task + rest));
      return task(index * per_task, panels, rest);
    });
  }

  // Statements on the vectors of one panel of one sequence.
  struct Tile {
    const DirectionScan& scan;
    Buffer acc;      // [sequences, panels and gates of this round, L]
    PrimExpr first;  // the first row of this sequence and panel
    int64_t first_gate;
    std::vector<Stmt> stmts = {};

    PrimExpr Get(int64_t gate, const PrimExpr& l) const { return LoadAt(acc, {first + (gate - first_gate), l}); }
    // acc[gate] = value(l), lane by lane.
    void Set(int64_t gate, const std::function<PrimExpr(const PrimExpr& l)>& value) {
      stmts.push_back(scan.Lanes([&](const PrimExpr& l) {
        return StoreAt(acc, {first + (gate - first_gate), l}, value(l));
      }));
    }
    // Denormal values become 0: each step would multiply them by all weights, which takes processors a hundred times as
    // long as normal ones. Cells whose gates are shut have many.
    void SetState(const Buffer& state, const PrimExpr& p, const PrimExpr& b,
                  const std::function<PrimExpr(const PrimExpr& l)>& value) {
      const PrimExpr smallest_normal = MakeConst(state->dtype, state->dtype.bits == 64 ? 0x1p-1022 : 0x1p-126);
      stmts.push_back(scan.Lanes([&](const PrimExpr& l) {
        return StoreAt(state, {b, p * scan.r_.lanes + l}, value(l));
      }));
      stmts.push_back(scan.Lanes([&](const PrimExpr& l) {
        const PrimExpr x = scan.State(state, p, b, l);
        return StoreAt(state, {b, p * scan.r_.lanes + l},
                       Select(Call(Intrinsic::kFabs, x) < smallest_normal, MakeConst(state->dtype, 0), x));
      }));
    }
  };
  using FinishFn = std::function<void(Tile& tile, const Place& place)>;

  // Gates [first, first + count) of a group of panels and sequences: their input's part plus the product with `state`,
  // then finish.
  Stmt Gated(const Place& place, const Extent& extent, int64_t first, int64_t count, const Buffer& state,
             const FinishFn& finish) {
    const int64_t tiles = extent.panels * extent.sequences;
    const auto buffer = [&](const char* name, int64_t gates, DataType dtype) {
      return MakeBuffer(name, dtype, {Int64(tiles * gates), Int64(r_.lanes)}, "local");
    };
    const DataType sum_dtype = bytes_ ? DataType::Int(32) : dtype_;
    const auto finished = [&](const Buffer& sums, const PrimExpr& row, const Place& at) {
      Tile tile{*this, sums, row, first};
      finish(tile, at);
      return MakeSeq(std::move(tile.stmts));
    };
    if (tiles == 1 && !bytes_) {
      const Buffer acc = buffer("acc", count, sum_dtype);
      return Make<AllocateNode>(
          acc, MakeSeq({Sums(acc, place, extent, first, count, state), finished(acc, Int64(0), place)}));
    }
    // As many gates at a time as registers hold. The formulas are one loop, over sums that are in memory for that.
    const Buffer sums = buffer("sums", count, dtype_);
    const int64_t bytes = tiles * count * r_.lanes * dtype_.bits / 8;
    const int64_t rounds = std::min((bytes + kMostAccumulatorBytes - 1) / kMostAccumulatorBytes, count);
    std::vector<Stmt> parts;
    for (int64_t round = 0, done = 0; round < rounds; ++round) {
      const int64_t gates = (count - done + rounds - round - 1) / (rounds - round);
      const Buffer acc = buffer("acc", gates, sum_dtype);
      std::vector<Stmt> stmts = {Sums(acc, place, extent, first + done, gates, state)};
      for (int64_t i = 0; i < tiles * gates; ++i) {
        const int64_t tile = i / gates, gate = done + i % gates;
        const Place at{place.t, place.p + tile % extent.panels, place.b + tile / extent.panels};
        stmts.push_back(Lanes([&](const PrimExpr& l) {
          const PrimExpr sum = LoadAt(acc, {Int64(i), l});
          return StoreAt(sums, {Int64(tile * count + gate), l}, bytes_ ? Dequantised(first + gate, at, sum, l) : sum);
        }));
      }
      parts.push_back(Make<AllocateNode>(acc, MakeSeq(std::move(stmts))));
      done += gates;
    }
    parts.push_back(SerialLoop("sequence", Int64(extent.sequences), [&](const PrimExpr& sequence) {
      return SerialLoop("panel", Int64(extent.panels), [&](const PrimExpr& panel) {
        return finished(sums, (sequence * extent.panels + panel) * count,
                        {place.t, place.p + panel, place.b + sequence});
      });
    }));
    return Make<AllocateNode>(sums, MakeSeq(std::move(parts)));
  }

  // A launch for gates [first, first + count) of all panels and sequences: products with `state`, then finish, then, of the
  // last launch of a step, what follows of the new state.
  Stmt Blocks(int64_t first, int64_t count, const Buffer& state, bool is_last, const FinishFn& finish) {
    constexpr int64_t kMostSequences = 8, kMostSharedBytes = 32 << 10, kLeastUnits = 8;
    const int64_t columns = count * r_.lanes, bytes = dtype_.bits / 8;
    int64_t parts = 1;
    while (parts * 2 * columns <= kCudaMaxBlockThreads && parts * 2 * kLeastUnits <= r_.hidden) parts *= 2;
    const int64_t threads = parts * columns, num_sequences = lengths_ ? 1 : AsConstInt(batch_).value_or(1);
    int64_t sequences = kMostSequences;
    while (num_sequences % sequences != 0 || threads * sequences * bytes > kMostSharedBytes) sequences /= 2;
    const Buffer shares = MakeBuffer("shares", dtype_, {Int64(parts * sequences), Int64(columns)}, "shared");
    const Buffer sums = MakeBuffer("sums", dtype_, {Int64(sequences * count), Int64(r_.lanes)}, "shared");
    const auto over_threads = [&](const BodyFn& body) { return ThreadLoop("threadIdx.x", Int64(threads), body); };
    // For `many` elements.
    const auto spread = [&](int64_t many, const BodyFn& body) {
      return over_threads([&](const PrimExpr& t) {
        return UnrolledLoop("round", (many + threads - 1) / threads, [&](const PrimExpr& round) {
          const PrimExpr e = round * threads + t;
          return many % threads == 0 ? body(e) : Stmt(Make<IfStmtNode>(e < Int64(many), body(e), nullptr));
        });
      });
    };
    return ThreadLoop("blockIdx.x", FloorDiv(batch_, Int64(sequences)) * r_.panels, [&](const PrimExpr& block) {
      const PrimExpr p = FloorMod(block, Int64(r_.panels)), b = FloorDiv(block, Int64(r_.panels)) * sequences;
      std::vector<Stmt> steps{over_threads([&](const PrimExpr& t) {
        const PrimExpr part = FloorDiv(t, Int64(columns)), column = FloorMod(t, Int64(columns));
        return Guarded(step_, b, Shares(shares, {nullptr, p, b}, sequences, parts, part, column, first, state));
      })};
      steps.push_back(spread(sequences * columns, [&](const PrimExpr& e) {
        const PrimExpr i = FloorDiv(e, Int64(columns)), column = FloorMod(e, Int64(columns));
        PrimExpr sum = LoadAt(shares, {i, column});
        for (int64_t part = 1; part < parts; ++part) sum = sum + LoadAt(shares, {i + part * sequences, column});
        const PrimExpr gate = FloorDiv(column, Int64(r_.lanes));
        return Guarded(step_, b, StoreAt(sums, {i * count + gate, FloorMod(column, Int64(r_.lanes))}, sum));
      }));
      steps.push_back(spread(sequences * r_.lanes, [&](const PrimExpr& e) {
        const PrimExpr i = FloorDiv(e, Int64(r_.lanes));
        const PrimExpr own = b + i;
        lane_ = FloorMod(e, Int64(r_.lanes));
        Tile tile{*this, sums, i * count, first};
        const Place at{TimeOf(step_, own), p, own};
        for (int64_t gate = first; gate < first + count; ++gate) {
          tile.Set(gate, [&](const PrimExpr& l) { return StartOf(gate, at.t, p, own, l) + tile.Get(gate, l); });
        }
        finish(tile, at);
        const PrimExpr j = p * r_.lanes + lane_, d = Int64(direction_);
        Stmt padding;
        if (is_last) {
          tile.stmts.push_back(IfUnit(j, StoreAt(outputs_[0], {at.t, d, own, j}, LoadAt(next_, {RowOfNext(own), j}))));
          padding = MakeSeq({StoreAt(next_, {RowOfNext(own), j}, LoadAt(h_, {RowOfState(own), j})),
                             IfUnit(j, StoreAt(outputs_[0], {step_, d, own, j}, MakeConst(outputs_[0]->dtype, 0)))});
        }
        lane_ = nullptr;
        return Guarded(step_, own, MakeSeq(std::move(tile.stmts)), std::move(padding));
      }));
      return Make<AllocateNode>(shares, Make<AllocateNode>(sums, MakeSeq(std::move(steps))));
    });
  }
  // The statement where j is one of the H units.
  Stmt IfUnit(const PrimExpr& j, Stmt body) const {
    return Padded() == r_.hidden ? body : Stmt(Make<IfStmtNode>(j < Int64(r_.hidden), std::move(body), nullptr));
  }
  // shares[part, i, column] = the products of the units part, part + parts, ... for sequences b + i.
  Stmt Shares(const Buffer& shares, const Place& at, int64_t sequences, int64_t parts, const PrimExpr& part,
              const PrimExpr& column, int64_t first, const Buffer& state) const {
    const Buffer acc = MakeBuffer("acc", dtype_, {Int64(sequences)}, "local");
    std::vector<Stmt> stmts;
    for (int64_t i = 0; i < sequences; ++i) stmts.push_back(StoreAt(acc, {Int64(i)}, MakeConst(dtype_, 0)));
    const PrimExpr gate = FloorDiv(column, Int64(r_.lanes)) + first, l = FloorMod(column, Int64(r_.lanes));
    const auto products = [&](const PrimExpr& k) {
      std::vector<Stmt> sums;
      const PrimExpr weight = ir::Cast(dtype_, LoadAt(recurrence_, {Int64(direction_), at.p, k, gate, l}));
      for (int64_t i = 0; i < sequences; ++i) {
        const PrimExpr b = at.b + i, row = state.same_as(h_) ? RowOfState(b) : b;
        sums.push_back(
            StoreAt(acc, {Int64(i)},
                    CallIntrinsic(Intrinsic::kFma, {weight, LoadAt(state, {row, k}), LoadAt(acc, {Int64(i)})})));
      }
      return MakeSeq(std::move(sums));
    };
    constexpr int64_t kUnitsAtOnce = 8;
    const int64_t at_once = parts * kUnitsAtOnce, whole = r_.hidden / at_once, rest = r_.hidden % at_once;
    if (whole > 0) {
      stmts.push_back(SerialLoop("k", Int64(whole), [&](const PrimExpr& k) {
        return UnrolledLoop("u", kUnitsAtOnce,
                            [&](const PrimExpr& u) { return products((k * kUnitsAtOnce + u) * parts + part); });
      }));
    }
    if (rest > 0) {
      stmts.push_back(SerialLoop("k", Int64((rest + parts - 1) / parts), [&](const PrimExpr& k) {
        const PrimExpr unit = k * parts + part + Int64(whole * at_once);
        if (rest % parts == 0) return products(unit);
        return Stmt(Make<IfStmtNode>(unit < Int64(r_.hidden), products(unit), nullptr));
      }));
    }
    for (int64_t i = 0; i < sequences; ++i) {
      stmts.push_back(StoreAt(shares, {part * sequences + i, column}, LoadAt(acc, {Int64(i)})));
    }
    return Make<AllocateNode>(acc, MakeSeq(std::move(stmts)));
  }

  // The input's part of a gate plus a sum of products of bytes.
  PrimExpr Dequantised(int64_t gate, const Place& at, const PrimExpr& sum, const PrimExpr& l) const {
    const auto of_columns = [&](int64_t row) { return LoadAt(scales_, {Int64(direction_), at.p, Int64(row), l}); };
    const auto whole = [&](const PrimExpr& x) { return ir::Cast(DataType::Int(32), x); };
    const PrimExpr product =
        ir::Cast(dtype_, sum - whole(LoadAt(range_, {Int64(kZeroPoint)})) * whole(of_columns(r_.gates + gate)));
    return CallIntrinsic(Intrinsic::kFma, {product, LoadAt(range_, {Int64(kScale)}) * of_columns(gate),
                                           InputOf(gate, at.t, at.p, at.b, l)});
  }

  // acc = the product with `state`, and unless the state is of bytes the input's part, for gates [first, first + count)
  // of all panels of all sequences.
  Stmt Sums(const Buffer& acc, const Place& place, const Extent& extent, int64_t first, int64_t count,
            const Buffer& state) {
    const auto for_all = [&](const std::function<void(Tile & tile, const Place& at, int64_t gate)>& set) {
      std::vector<Stmt> stmts;
      for (int64_t i = 0; i < extent.panels * extent.sequences; ++i) {
        const Place at{place.t, place.p + i % extent.panels, place.b + i / extent.panels};
        Tile tile{*this, acc, Int64(i * count), first};
        for (int64_t gate = first; gate < first + count; ++gate) set(tile, at, gate);
        std::ranges::move(tile.stmts, std::back_inserter(stmts));
      }
      return MakeSeq(std::move(stmts));
    };
    std::vector<Stmt> parts = {for_all([&](Tile& tile, const Place& at, int64_t gate) {
      tile.Set(gate, [&](const PrimExpr& l) {
        return bytes_ ? MakeConst(acc->dtype, 0) : StartOf(gate, at.t, at.p, at.b, l);
      });
    })};
    const auto word_of = [&](const PrimExpr& b, const PrimExpr& k) {
      std::vector<PrimExpr> bytes;
      for (int64_t i = 0; i < kBytesPerWord; ++i) bytes.push_back(LoadAt(bytes_, {b, k * kBytesPerWord + i}));
      return WordOfBytes(bytes);
    };
    const auto products = [&](const PrimExpr& k) {
      return for_all([&](Tile& tile, const Place& at, int64_t gate) {
        tile.Set(gate, [&](const PrimExpr& l) {
          const PrimExpr own = LoadAt(recurrence_, {Int64(direction_), at.p, k, Int64(gate), l});
          if (bytes_) return tile.Get(gate, l) + CallIntrinsic(Intrinsic::kDotBytes, {word_of(at.b, k), own});
          const PrimExpr weight = ir::Cast(dtype_, own);
          return CallIntrinsic(Intrinsic::kFma, {weight, LoadAt(state, {at.b, k}), tile.Get(gate, l)});
        });
      });
    };
    const int64_t whole = r_.depth() / kUnroll, rest = r_.depth() % kUnroll;
    if (whole > 0) {
      parts.push_back(SerialLoop("k", Int64(whole), [&](const PrimExpr& k) {
        return UnrolledLoop("u", kUnroll, [&](const PrimExpr& u) { return products(k * kUnroll + u); });
      }));
    }
    if (rest > 0) {
      parts.push_back(UnrolledLoop("k", rest, [&](const PrimExpr& k) { return products(k + Int64(whole * kUnroll)); }));
    }
    return MakeSeq(std::move(parts));
  }

  PrimExpr InputOf(int64_t gate, const PrimExpr& t, const PrimExpr& p, const PrimExpr& b, const PrimExpr& l) const {
    const PrimExpr column = ((p + Int64(direction_ * r_.panels)) * r_.gates + Int64(gate)) * r_.lanes + l;
    return ir::Cast(dtype_, LoadAt(gates_, {t, b, column}));
  }
  // The value to which the product is added. A GRU that resets after the product keeps the input's part separate.
  PrimExpr StartOf(int64_t gate, const PrimExpr& t, const PrimExpr& p, const PrimExpr& b, const PrimExpr& l) const {
    if (r_.cell != Cell::kGru || !r_.linear_before_reset || gate != 2) return InputOf(gate, t, p, b, l);
    if (!extra_) return MakeConst(dtype_, 0);
    return ir::Cast(dtype_, LoadAt(extra_, {Int64(direction_), p, l}));
  }

  PrimExpr Activate(int64_t which, PrimExpr x) const {
    if (r_.clip) x = Min(Max(std::move(x), MakeConst(dtype_, -*r_.clip)), MakeConst(dtype_, *r_.clip));
    return Apply(r_.activation(direction_, which), x);
  }
  PrimExpr State(const Buffer& state, const PrimExpr& p, const PrimExpr& b, const PrimExpr& l) const {
    return LoadAt(state, {b, p * r_.lanes + l});
  }

  // The cell's formulas after the products, for cells of one round.
  void Formulas(Tile& tile, const PrimExpr& t, const PrimExpr& p, const PrimExpr& b) const {
    switch (r_.cell) {
      case Cell::kRnn:
        tile.SetState(next_, p, RowOfNext(b), [&](const PrimExpr& l) { return Activate(0, tile.Get(0, l)); });
        return;
      case Cell::kLstm:
        return LstmFormulas(tile, p, b);
      case Cell::kGru:
        for (int64_t gate : {0, 1}) {
          tile.Set(gate, [&](const PrimExpr& l) { return Activate(0, tile.Get(gate, l)); });
        }
        tile.Set(2, [&](const PrimExpr& l) {
          return Activate(1, InputOf(2, t, p, b, l) + tile.Get(1, l) * tile.Get(2, l));
        });
        tile.SetState(next_, p, RowOfNext(b),
                      [&](const PrimExpr& l) { return Mixed(tile.Get(0, l), tile.Get(2, l), p, b, l); });
        return;
    }
    INGOT_UNREACHABLE();
  }

  void LstmFormulas(Tile& tile, const PrimExpr& p, const PrimExpr& b) const {
    enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };
    const auto peeped = [&](int64_t gate, const PrimExpr& l) {
      const PrimExpr x = tile.Get(gate, l);
      if (!extra_) return x;
      const PrimExpr weight = ir::Cast(dtype_, LoadAt(extra_, {Int64(direction_), p, Int64(gate), l}));
      return x + weight * State(c_, p, b, l);
    };
    tile.Set(kInput, [&](const PrimExpr& l) { return Activate(0, peeped(kInput, l)); });
    tile.Set(kForget, [&](const PrimExpr& l) {
      return r_.input_forget ? MakeConst(dtype_, 1) - tile.Get(kInput, l) : Activate(0, peeped(kForget, l));
    });
    tile.Set(kCandidate, [&](const PrimExpr& l) { return Activate(1, tile.Get(kCandidate, l)); });
    tile.SetState(c_, p, b, [&](const PrimExpr& l) {
      return tile.Get(kForget, l) * State(c_, p, b, l) + tile.Get(kInput, l) * tile.Get(kCandidate, l);
    });
    tile.Set(kOutput, [&](const PrimExpr& l) { return Activate(0, peeped(kOutput, l)); });
    tile.SetState(next_, p, RowOfNext(b), [&](const PrimExpr& l) {
      return tile.Get(kOutput, l) * Apply(r_.activation(direction_, 2), State(c_, p, b, l));
    });
  }

  // z * h + (1 - z) * candidate
  PrimExpr Mixed(const PrimExpr& z, const PrimExpr& candidate, const PrimExpr& p, const PrimExpr& b,
                 const PrimExpr& l) const {
    return z * State(h_, p, RowOfState(b), l) + (MakeConst(dtype_, 1) - z) * candidate;
  }
  void ResetGates(Tile& tile, const PrimExpr& p, const PrimExpr& b) const {
    tile.SetState(update_, p, b, [&](const PrimExpr& l) { return Activate(0, tile.Get(0, l)); });
    tile.SetState(reset_, p, b,
                  [&](const PrimExpr& l) { return Activate(0, tile.Get(1, l)) * State(h_, p, RowOfState(b), l); });
  }
  void Candidate(Tile& tile, const PrimExpr& p, const PrimExpr& b) const {
    tile.Set(2, [&](const PrimExpr& l) { return Activate(1, tile.Get(2, l)); });
    tile.SetState(next_, p, RowOfNext(b),
                  [&](const PrimExpr& l) { return Mixed(State(update_, p, b, l), tile.Get(2, l), p, b, l); });
  }

  const Recurrence& r_;
  const bool by_blocks_;
  const int64_t direction_;
  const Buffer gates_, recurrence_, initial_h_, initial_c_, lengths_, extra_, scales_;
  const Buffers& outputs_;
  const PrimExpr steps_, batch_;
  const DataType dtype_;  // of sums and states
  Buffer h_, next_, c_;
  Buffer bytes_, range_;   // of a recurrence of bytes: the state as bytes, and their scale and zero point
  Buffer update_, reset_;  // between the two rounds of a GRU
  PrimExpr step_, lane_;   // of launches: the round of the step, the lane of the thread
};

}  // namespace

std::vector<Stmt> Scan(const Recurrence& recurrence, const Buffers& inputs, const Buffers& outputs,
                       const Target& target) {
  const bool by_blocks = target.kind == Target::Kind::kCuda && !recurrence.has_bytes();
  std::vector<Stmt> stmts;
  for (int64_t d = 0; d < recurrence.directions; ++d) {
    stmts.push_back(DirectionScan(recurrence, inputs, outputs, d, by_blocks).Run());
  }
  return stmts;
}

}  // namespace ingot::op::topi
