// The fused kernel for CUDA is a PrimFunc that is built scheduled, as that for CPUs (attention.cc) and for the same
// reason: no primitive derives sums that are rescaled from the stages. It is "FlashAttention" (Dao et al., 2022):
//
//   for (head, tile of queries):                         blockIdx.x
//     for thread:  copies of the queries and of the first keys to shared memory
//     for tile of keys that some query of the tile sees:
//       for thread:  copies of the tile's values begin;
//                    scores, their masks, the greatest of the thread's
//       for thread:  the greatest of the rows so far; exponentials into shared memory, in the operands' dtype; sums and
//                    results so far are rescaled; the values have arrived
//       for thread:  copies of the next tile's keys begin;
//                    adds exponentials times values to the results; the keys have arrived
//     for thread:    sums of the rows; results
//
// A thread has `own_rows` rows, which it shares with the row_threads - 1 threads beside it; each of them has every
// row_threads-th group of neighbours of the keys and of the values. With operands of 16 bits these are the places that
// mma.sync leaves to a lane (codegen/cuda_tiles), otherwise squares whose elements come out of shared memory four at a
// time. Threads keep scores, results, the greatest score and the sum in registers (transform/tensor/place_buffers).
//
// Positions after the last key have the score -inf, and queries after the last one are not written. The causal mask ends
// the loop over keys, unless something that is not finite may show behind it: a launch before finds that out, by heads.
#include "compiler/op/topi/cuda_attention.h"

#include <algorithm>
#include <numbers>

#include "compiler/op/topi/attention_scores.h"
#include "compiler/op/topi/attention_statements.h"
#include "compiler/target/cuda.h"

namespace ingot::op::topi {

using namespace statements;  // NOLINT
using te::Indices;

namespace {

const DataType kFloat32 = DataType::Float(32);
constexpr int64_t kChunk = 4, kMatrixLanes = 4;
// Into so many parts the keys and values of a head are shared out that are searched for what is not finite. Fewer keys
// than a few tiles are multiplied all, whatever the causal mask hides.
constexpr int64_t kSearches = 16, kFewTiles = 4;

class CudaKernel {
 public:
  CudaKernel(const std::vector<Buffer>& inputs, const Buffer& out, const AttentionConfig& config)
      : query_(inputs[0]), key_(inputs[1]), value_(inputs[2]), out_(out), config_(config), dtype_(out->dtype) {
    if (inputs.size() > 3) bias_ = inputs[3];
    tile_ = *ChooseCudaAttentionTile(config, dtype_);
    depth_ = *ir::AsConstInt(config.depth);
    value_depth_ = *ir::AsConstInt(config.value_depth);
    const auto keys = ir::AsConstInt(config.num_keys), queries = ir::AsConstInt(config.num_queries);
    keys_are_ragged_ = !keys || *keys % tile_.keys != 0;
    queries_are_ragged_ = !queries || *queries % tile_.rows != 0;
    takes_all_keys_ = config.hidden_values_show() && keys && *keys <= kFewTiles * tile_.keys;
  }

  std::vector<Stmt> Build() {
    if (!config_.hidden_values_show() || takes_all_keys_) return {Tiles()};
    poison_ = ir::MakeBuffer("poison", kFloat32, {config_.batch * config_.num_key_heads, Int64(kSearches)});
    return {Allocate(poison_, Seq({Poison(), Tiles()}))};
  }

 private:
  Stmt Bound(const char* axis, const PrimExpr& extent, const Body& body, ir::Attrs notes = {}) const {
    const PrimVar var = ir::MakePrimVar(axis[0] == 'b' ? "b" : "t");
    ir::ForNode loop(var, Int64(0), extent, ForKind::kThreadBinding, body(var), axis);
    loop.annotations = std::move(notes);
    return Make<ir::ForNode>(std::move(loop));
  }
  Stmt Threads(const Body& body, bool awaits_copies = false) const {
    ir::Attrs notes;
    if (awaits_copies) notes = ir::Attrs{{kCudaAwaitCopies, int64_t{1}}};
    return Bound("threadIdx.x", Int64(tile_.threads), body, std::move(notes));
  }
  Stmt Note(Stmt loop, const char* note, int64_t value) const {
    ir::ForNode copy = *ir::As<ir::ForNode>(loop);
    copy.annotations = ir::Attrs{{note, value}};
    return Make<ir::ForNode>(std::move(copy));
  }
  Stmt If(const PrimExpr& condition, Stmt then_case) const {
    return Make<ir::IfStmtNode>(condition, std::move(then_case), nullptr);
  }
  Buffer Shared(const char* name, DataType dtype, Indices shape) const {
    return ir::MakeBuffer(name, dtype, std::move(shape), "shared");
  }
  // What each thread has for itself.
  Buffer Own(const char* name, Indices shape) const {
    shape.insert(shape.begin(), Int64(tile_.threads));
    return Local(name, std::move(shape));
  }

  // The places of thread t. In squares, threads beside each other have one place in a row and two rows, the next two the
  // next place: then shared memory gives 16 bytes to half of a warp at once, of rows and of columns.
  PrimExpr Lane(const PrimExpr& t) const {
    return ir::FloorMod(tile_.multiplies_by_warps ? t : ir::FloorDiv(t, Int64(2)), Int64(tile_.row_threads));
  }
  PrimExpr Row(const PrimExpr& t, const PrimExpr& i) const {
    if (!tile_.multiplies_by_warps) {
      const PrimExpr row = ir::FloorDiv(t, Int64(2 * tile_.row_threads)) * 2 + ir::FloorMod(t, Int64(2));
      return i * (tile_.threads / tile_.row_threads) + row;
    }
    constexpr int64_t kRowsOfLanes = kCudaWarpThreads / kMatrixLanes;
    const PrimExpr warp = ir::FloorDiv(t, Int64(kCudaWarpThreads)), lane = ir::FloorMod(t, Int64(kCudaWarpThreads));
    return warp * (tile_.own_rows * kRowsOfLanes) + i * kRowsOfLanes + ir::FloorDiv(lane, Int64(kMatrixLanes));
  }
  PrimExpr Key(const PrimExpr& t, const PrimExpr& n, const PrimExpr& y) const {
    return (n * tile_.row_threads + Lane(t)) * tile_.key_lanes + y;
  }
  PrimExpr Element(const PrimExpr& t, const PrimExpr& c, const PrimExpr& z) const {
    return (c * tile_.row_threads + Lane(t)) * tile_.value_lanes + z;
  }
  // Straight code over what a thread has.
  Stmt OwnRows(const Body& body) const { return Unrolled("i", tile_.own_rows, body); }
  using PairBody = std::function<Stmt(const PrimExpr&, const PrimExpr&)>;
  Stmt OwnKeys(const PairBody& body) const {
    return Unrolled("n", tile_.own_keys(), [&](const PrimExpr& n) {
      return Unrolled("y", tile_.key_lanes, [&](const PrimExpr& y) { return body(n, y); });
    });
  }
  Stmt OwnElements(const PairBody& body) const {
    return Unrolled("c", tile_.own_values(), [&](const PrimExpr& c) {
      return Unrolled("z", tile_.value_lanes, [&](const PrimExpr& z) { return body(c, z); });
    });
  }
  // exp(x) of what is at most 0. Powers of 2 are an instruction, and the error of the product, |x| * 2^-24 of the result,
  // is less than 2^-24 of the row's greatest exponential, which is 1.
  static PrimExpr ExpByPowers(const PrimExpr& x) {
    return ir::CallIntrinsic(ir::Intrinsic::kExp2, {x * ir::MakeConst(kFloat32, std::numbers::log2e)});
  }
  PrimExpr Zero() const { return ir::MakeConst(kFloat32, 0); }

  // poison[head, part] := 0, or NaN where a value of this part of the head's keys is not finite, or where hidden keys show
  // and a key is not.
  Stmt Poison() const {
    const Buffer partial = Shared("partial", kFloat32, {Int64(tile_.threads)});
    const Buffer groups = Shared("groups", kFloat32, {Int64(tile_.row_threads)});
    const PrimExpr count = CeilDiv(config_.num_keys, kSearches);
    return Bound("blockIdx.x", config_.batch * config_.num_key_heads * kSearches, [&](const PrimExpr& block) {
      const PrimExpr part = ir::FloorMod(block, Int64(kSearches)), head = ir::FloorDiv(block, Int64(kSearches));
      const Stmt search = Threads([&](const PrimExpr& t) {
        const PrimExpr first = part * count, end = ir::Min(first + count, config_.num_keys);
        std::vector<Stmt> stmts = {Store(partial, Zero(), {t}),
                                   Search(partial, value_, 2, value_depth_, first, end, head, t)};
        if (config_.hidden_keys_show()) stmts.push_back(Search(partial, key_, 1, depth_, first, end, head, t));
        return Seq(std::move(stmts));
      });
      const int64_t of_group = tile_.threads / tile_.row_threads;
      const Stmt join_groups = Threads([&](const PrimExpr& t) {
        PrimExpr sum = Zero();
        for (int64_t i = 0; i < of_group; ++i) sum = sum + Load(partial, {t * of_group + i});
        return If(t < Int64(tile_.row_threads), Store(groups, sum, {t}));
      });
      const Stmt join = Threads([&](const PrimExpr& t) {
        PrimExpr sum = Zero();
        for (int64_t i = 0; i < tile_.row_threads; ++i) sum = sum + Load(groups, {Int64(i)});
        return If(t < Int64(1), Store(poison_, sum, {head, part}));
      });
      return Allocate(partial, Allocate(groups, Seq({search, join_groups, join})));
    });
  }
  // Adds 0 * element to the thread's sum, of its share of the elements at the positions from `first` to `end`.
  Stmt Search(const Buffer& partial, const Buffer& from, size_t operand, int64_t depth, const PrimExpr& first,
              const PrimExpr& end, const PrimExpr& head, const PrimExpr& t) const {
    const int64_t lanes = config_.layouts[operand].back() == 'H' && depth % kChunk == 0 ? kChunk : 1;
    const Buffer sums = Local("sums", {Int64(lanes)});
    const PrimExpr rounds = CeilDiv((end - first) * (depth / lanes) - t, tile_.threads);
    const Stmt add = Serial("round", ir::Max(rounds, Int64(0)), [&](const PrimExpr& round) {
      const PrimExpr piece = round * tile_.threads + t;
      const PrimExpr position = first + ir::FloorDiv(piece, Int64(depth / lanes));
      const PrimExpr h = ir::FloorMod(piece, Int64(depth / lanes)) * lanes;
      return Vector(lanes, [&](const PrimExpr& x) {
        const PrimExpr element =
            Load(from, AttentionIndices(config_.layouts[operand], ir::FloorDiv(head, config_.num_key_heads), position,
                                        ir::FloorMod(head, config_.num_key_heads), h + x));
        return Store(sums, Load(sums, {x}) + ir::Cast(kFloat32, element) * Zero(), {x});
      });
    });
    PrimExpr all = Load(partial, {t});
    for (int64_t x = 0; x < lanes; ++x) all = all + Load(sums, {Int64(x)});
    return Allocate(sums, Seq({Vector(lanes, [&](const PrimExpr& x) { return Store(sums, Zero(), {x}); }), add,
                               Store(partial, all, {t})}));
  }

  Stmt Tiles() {
    const PrimExpr num_tiles = CeilDiv(config_.num_queries, tile_.rows);
    return Bound("blockIdx.x", config_.batch * config_.num_heads * num_tiles, [&](const PrimExpr& block) {
      PrimExpr number = ir::FloorMod(block, num_tiles);
      // Those that see the most keys begin first.
      if (config_.causal != CausalMask::kNone) number = num_tiles - 1 - number;
      const PrimExpr of_head = ir::FloorDiv(block, num_tiles);
      return Let("row", number * tile_.rows, [&](const PrimExpr& row) {
        return Let("head", ir::FloorMod(of_head, config_.num_heads), [&](const PrimExpr& head) {
          return Let("batch", ir::FloorDiv(of_head, config_.num_heads), [&](const PrimExpr& batch) {
            row_ = row;
            head_ = head;
            batch_ = batch;
            return Tile();
          });
        });
      });
    });
  }

  Stmt Tile() {
    const int64_t row_length = tile_.RowLength(tile_.depth, dtype_),
                  value_length = tile_.RowLength(tile_.value_depth, dtype_);
    queries_ = Shared("queries", dtype_, {Int64(tile_.rows), Int64(row_length)});
    keys_ = Shared("keys", dtype_, {Int64(tile_.keys), Int64(row_length)});
    values_ = Shared("values", dtype_, {Int64(tile_.keys), Int64(value_length)});
    exponentials_ = Shared("exponentials", dtype_, {Int64(tile_.rows), Int64(tile_.ExponentialsLength())});
    parts_ = Shared("parts", kFloat32, {Int64(tile_.rows), Int64(tile_.row_threads)});
    greatest_ = Own("greatest", {Int64(tile_.own_rows)});
    sum_ = Own("sum", {Int64(tile_.own_rows)});
    result_ = Own("result", {Int64(tile_.own_rows), Int64(tile_.own_values()), Int64(tile_.value_lanes)});
    scores_ = Own("scores", {Int64(tile_.own_rows), Int64(tile_.own_keys()), Int64(tile_.key_lanes)});
    PrimExpr end = config_.num_keys;
    if (config_.causal != CausalMask::kNone && !takes_all_keys_) {
      end = ir::Max(ir::Min(end, CausalEnd(config_, row_ + (tile_.rows - 1))), Int64(0));
      if (poison_) {
        PrimExpr poison = Zero();
        for (int64_t part = 0; part < kSearches; ++part) {
          poison = poison + Load(poison_, {batch_ * config_.num_key_heads + KeyHead(), Int64(part)});
        }
        end = ir::Select(ir::Equal(poison, Zero()), end, config_.num_keys);
      }
    }
    std::vector<Stmt> steps = {Threads([&](const PrimExpr& t) { return Start(t); }, /*awaits_copies=*/true)};
    if (config_.may_mask(bias_ != nullptr)) {
      visible_ = Own("visible", {Int64(tile_.own_rows)});
      for (Stmt& step : MostVisible()) steps.push_back(std::move(step));
    }
    steps.push_back(Let("num_blocks", CeilDiv(end, tile_.keys), [&](const PrimExpr& num_blocks) {
      return Serial("key_block", num_blocks, [&](const PrimExpr& block) { return Step(block, num_blocks); });
    }));
    steps.push_back(Threads([&](const PrimExpr& t) {
      return OwnRows([&](const PrimExpr& i) { return Store(parts_, Load(sum_, {t, i}), {Row(t, i), Lane(t)}); });
    }));
    steps.push_back(Threads([&](const PrimExpr& t) { return Finish(t); }));
    Stmt body = Seq(std::move(steps));
    for (const Buffer& buffer :
         {scores_, result_, sum_, greatest_, visible_, parts_, exponentials_, values_, keys_, queries_}) {
      if (buffer) body = Allocate(buffer, std::move(body));
    }
    return body;
  }

  PrimExpr KeyHead() const { return ir::FloorDiv(head_, Int64(config_.group)); }
  PrimExpr Query(const PrimExpr& t, const PrimExpr& i) const { return row_ + Row(t, i); }
  PrimExpr ReadableQuery(const PrimExpr& t, const PrimExpr& i) const {
    return queries_are_ragged_ ? ir::Min(Query(t, i), config_.num_queries - 1) : Query(t, i);
  }

  Stmt Start(const PrimExpr& t) const {
    const Stmt rows = OwnRows([&](const PrimExpr& i) {
      return Seq({Store(greatest_, MinusInfinity(kFloat32), {t, i}), Store(sum_, Zero(), {t, i}),
                  OwnElements([&](const PrimExpr& c, const PrimExpr& z) {
                    return Store(result_, Zero(), {t, i, c, z});
                  })});
    });
    const Stmt queries = CopyTile(query_, 0, queries_, tile_.rows, depth_, tile_.depth, row_, config_.num_queries,
                                  queries_are_ragged_, head_, t);
    return Seq({rows, queries, CopyKeys(Int64(0), t)});
  }
  Stmt CopyKeys(const PrimExpr& block, const PrimExpr& t) const {
    return CopyTile(key_, 1, keys_, tile_.keys, depth_, tile_.depth, block * tile_.keys, config_.num_keys,
                    keys_are_ragged_, KeyHead(), t);
  }
  Stmt CopyValues(const PrimExpr& block, const PrimExpr& t) const {
    return CopyTile(value_, 2, values_, tile_.keys, value_depth_, tile_.value_depth, block * tile_.keys,
                    config_.num_keys, keys_are_ragged_, KeyHead(), t);
  }

  // Thread t's share of to[row, h] := from(first + row, h), and 0 beyond the operand. Where neighbours along the
  // depth lie next to each other they are copied by 16 bytes, which may be on their way for a while.
  Stmt CopyTile(const Buffer& from, size_t operand, const Buffer& to, int64_t rows, int64_t depth, int64_t whole_depth,
                const PrimExpr& first, const PrimExpr& count, bool is_ragged, const PrimExpr& head,
                const PrimExpr& t) const {
    const std::string& layout = config_.layouts[operand];
    const auto element = [&](const PrimExpr& row, const PrimExpr& h) {
      PrimExpr value = Load(from, AttentionIndices(layout, batch_, first + row, head, h));
      PrimExpr is_there;
      if (is_ragged) is_there = first + row < count;
      if (depth != whole_depth) {
        const PrimExpr inside = h < Int64(depth);
        is_there = is_there ? ir::And(is_there, inside) : inside;
      }
      if (is_there) value = ir::IfThenElse(is_there, value, ir::MakeConst(dtype_, 0));
      return Store(to, std::move(value), {row, h});
    };
    const bool is_turned = layout.back() != 'H';
    const int64_t lanes = is_turned ? 1 : kCudaAttentionChunkBytes * 8 / dtype_.bits;
    const int64_t pieces = rows * whole_depth / lanes;
    return Serial("round", Int64((pieces + tile_.threads - 1) / tile_.threads), [&](const PrimExpr& round) {
      const PrimExpr piece = round * tile_.threads + t;
      Stmt copy;
      if (is_turned) {
        copy = element(ir::FloorMod(piece, Int64(rows)), ir::FloorDiv(piece, Int64(rows)));
      } else {
        const PrimExpr row = ir::FloorDiv(piece, Int64(whole_depth / lanes));
        const PrimExpr chunk = ir::FloorMod(piece, Int64(whole_depth / lanes));
        copy = Note(Serial("x", Int64(lanes), [&](const PrimExpr& x) { return element(row, chunk * lanes + x); }),
                    kCudaChunkCopy, kCudaIsAwaited);
      }
      return pieces % tile_.threads == 0 ? copy : If(piece < Int64(pieces), std::move(copy));
    });
  }

  // visible[i] := the maximum of what the masks add to the scores of a row; -inf says that its query is masked.
  std::vector<Stmt> MostVisible() const {
    const Buffer most = Local("most", {Int64(1)});
    const Stmt parts = Threads([&](const PrimExpr& t) {
      return OwnRows([&](const PrimExpr& i) {
        const Stmt blocks = Serial("mask_block", CeilDiv(config_.num_keys, tile_.keys), [&](const PrimExpr& block) {
          return OwnKeys([&](const PrimExpr& n, const PrimExpr& y) {
            const PrimExpr position = block * tile_.keys + Key(t, n, y);
            PrimExpr mask =
                MaskOf(config_, kFloat32, bias_ ? Bias(t, i, position) : PrimExpr(nullptr), Query(t, i), position);
            if (keys_are_ragged_) mask = ir::Select(position < config_.num_keys, mask, MinusInfinity(kFloat32));
            return Store(most, ir::Max(Load(most, {Int64(0)}), mask), {Int64(0)});
          });
        });
        return Allocate(most, Seq({Store(most, MinusInfinity(kFloat32), {Int64(0)}), blocks,
                                   Store(parts_, Load(most, {Int64(0)}), {Row(t, i), Lane(t)})}));
      });
    });
    const Stmt join = Threads([&](const PrimExpr& t) {
      return OwnRows([&](const PrimExpr& i) {
        return Store(visible_, JoinParts(t, i, ir::BinaryOp::kMax, MinusInfinity(kFloat32)), {t, i});
      });
    });
    return {parts, join};
  }
  PrimExpr IsMasked(const PrimExpr& t, const PrimExpr& i) const {
    if (!visible_) return nullptr;
    return ir::Equal(Load(visible_, {t, i}), MinusInfinity(kFloat32));
  }
  // `with`, joined with what the threads of the row left in `parts`.
  PrimExpr JoinParts(const PrimExpr& t, const PrimExpr& i, ir::BinaryOp op, PrimExpr with) const {
    for (int64_t lane = 0; lane < tile_.row_threads; ++lane) {
      with = ir::MakeBinary(op, std::move(with), Load(parts_, {Row(t, i), Int64(lane)}));
    }
    return with;
  }

  // The bias of a row's query and the key at a position; 0 for positions after the last key.
  PrimExpr Bias(const PrimExpr& t, const PrimExpr& i, const PrimExpr& position) const {
    PrimExpr bias = Load(bias_, BiasIndices(bias_->shape, config_, {batch_, head_, ReadableQuery(t, i), position}));
    if (!keys_are_ragged_ || !VariesByKey(bias_->shape, config_)) return bias;
    return ir::IfThenElse(position < config_.num_keys, bias, ir::MakeConst(bias_->dtype, 0));
  }

  // Rounds to the operands' dtype where the single steps would store the number.
  PrimExpr Stored(PrimExpr x) const {
    return config_.stepwise && dtype_ != kFloat32 ? ir::Cast(kFloat32, ir::Cast(dtype_, std::move(x))) : x;
  }
  PrimExpr Score(PrimExpr product, const PrimExpr& t, const PrimExpr& i, const PrimExpr& position) const {
    if (config_.stores_products()) product = Stored(std::move(product));
    PrimExpr score = Stored(Softcap(product * ir::MakeConst(kFloat32, config_.scale), config_.softcap));
    if (bias_) {
      const PrimExpr bias = Bias(t, i, position);
      score = bias_->dtype.is_bool() ? ir::Select(bias, score, Replacement(config_, kFloat32))
                                     : Stored(score + ir::Cast(kFloat32, bias));
    }
    if (config_.causal != CausalMask::kNone) {
      score = ir::Select(position < CausalEnd(config_, Query(t, i)), score, CausallyHidden(config_, score));
    }
    const PrimExpr masked = IsMasked(t, i);
    if (masked != nullptr) score = ir::Select(masked, MinusInfinity(kFloat32), score);
    if (!keys_are_ragged_) return score;
    return ir::Select(position < config_.num_keys, score, MinusInfinity(kFloat32));
  }

  // A tile of keys.
  Stmt Step(const PrimExpr& block, const PrimExpr& num_blocks) const {
    const Stmt scores = Threads([&](const PrimExpr& t) {
      const Stmt clear = OwnRows([&](const PrimExpr& i) {
        return OwnKeys([&](const PrimExpr& n, const PrimExpr& y) { return Store(scores_, Zero(), {t, i, n, y}); });
      });
      const Stmt mask = OwnRows([&](const PrimExpr& i) { return MaskScores(block * tile_.keys, t, i); });
      return Seq(
          {CopyValues(block, t), clear, tile_.multiplies_by_warps ? ScoresByWarps(t) : ScoresBySquares(t), mask});
    });
    const auto exponentials = [&](const PrimExpr& t) {
      return OwnRows([&](const PrimExpr& i) { return Exponentials(t, i); });
    };
    const Stmt mix = Threads(
        [&](const PrimExpr& t) {
          return Seq({If(block + 1 < num_blocks, CopyKeys(block + 1, t)),
                      tile_.multiplies_by_warps ? MixByWarps(t) : MixBySquares(t)});
        },
        /*awaits_copies=*/true);
    return Seq({scores, Threads(exponentials, /*awaits_copies=*/true), mix});
  }

  // scores := the masked scores of row i; parts := the greatest one of the thread's.
  Stmt MaskScores(const PrimExpr& first_key, const PrimExpr& t, const PrimExpr& i) const {
    const Buffer most = Local("most", {Int64(1)});
    const Stmt scores = OwnKeys([&](const PrimExpr& n, const PrimExpr& y) {
      const Indices place = {t, i, n, y};
      const Stmt mask = Store(scores_, Score(Load(scores_, place), t, i, first_key + Key(t, n, y)), place);
      return Seq({mask, Store(most, ir::Max(Load(most, {Int64(0)}), Load(scores_, place)), {Int64(0)})});
    });
    return Allocate(most, Seq({Store(most, MinusInfinity(kFloat32), {Int64(0)}), scores,
                               Store(parts_, Load(most, {Int64(0)}), {Row(t, i), Lane(t)})}));
  }

  Stmt Exponentials(const PrimExpr& t, const PrimExpr& i) const {
    const Buffer now = Local("now", {Int64(3)});  // the greatest score so far, what is subtracted, the factor
    const auto at = [](int64_t place) { return Indices{Int64(place)}; };
    std::vector<Stmt> stmts;
    stmts.push_back(Store(now, JoinParts(t, i, ir::BinaryOp::kMax, Load(greatest_, {t, i})), at(0)));
    stmts.push_back(Store(now, Shift(Load(now, at(0))), at(1)));
    stmts.push_back(Store(now, ExpByPowers(Load(greatest_, {t, i}) - Load(now, at(1))), at(2)));
    stmts.push_back(Store(greatest_, Load(now, at(0)), {t, i}));
    stmts.push_back(Store(sum_, Load(sum_, {t, i}) * Load(now, at(2)), {t, i}));
    stmts.push_back(OwnKeys([&](const PrimExpr& n, const PrimExpr& y) {
      const Indices place = {t, i, n, y};
      return Seq({Store(scores_, ExpByPowers(Load(scores_, place) - Load(now, at(1))), place),
                  Store(sum_, Load(sum_, {t, i}) + Load(scores_, place), {t, i}),
                  Store(exponentials_, ir::Cast(dtype_, Load(scores_, place)), {Row(t, i), Key(t, n, y)})});
    }));
    stmts.push_back(OwnElements([&](const PrimExpr& c, const PrimExpr& z) {
      const Indices place = {t, i, c, z};
      return Store(result_, Load(result_, place) * Load(now, at(2)), place);
    }));
    return Allocate(now, Seq(std::move(stmts)));
  }

  // The products as loops that are matrix instructions.
  Stmt ScoresByWarps(const PrimExpr& t) const {
    return Product(
        tile_.depth, tile_.own_keys(), tile_.key_lanes,
        [&](const PrimExpr& k, const PrimExpr& i, const PrimExpr& n, const PrimExpr& y) {
          return AddProduct(scores_, {t, i, n, y}, Load(queries_, {Row(t, i), k}), Load(keys_, {Key(t, n, y), k}));
        });
  }
  Stmt MixByWarps(const PrimExpr& t) const {
    return Product(tile_.keys, tile_.own_values(), tile_.value_lanes,
                   [&](const PrimExpr& k, const PrimExpr& i, const PrimExpr& c, const PrimExpr& z) {
                     return AddProduct(result_, {t, i, c, z}, Load(exponentials_, {Row(t, i), k}),
                                       Load(values_, {k, Element(t, c, z)}));
                   });
  }
  using ProductBody = std::function<Stmt(const PrimExpr&, const PrimExpr&, const PrimExpr&, const PrimExpr&)>;
  Stmt Product(int64_t depth, int64_t groups, int64_t lanes, const ProductBody& body) const {
    return Note(Serial("k", Int64(depth),
                       [&](const PrimExpr& k) {
                         return Serial("i", Int64(tile_.own_rows), [&](const PrimExpr& i) {
                           return Serial("n", Int64(groups), [&](const PrimExpr& n) {
                             return Serial("y", Int64(lanes), [&](const PrimExpr& y) { return body(k, i, n, y); });
                           });
                         });
                       }),
                kCudaWarpProduct, 1);
  }
  Stmt AddProduct(const Buffer& sums, const Indices& place, const PrimExpr& a, const PrimExpr& b) const {
    return Store(sums, Load(sums, place) + ir::Cast(kFloat32, a) * ir::Cast(kFloat32, b), place);
  }

  // The products as squares of a thread: four elements of each row, then what they give.
  Stmt ScoresBySquares(const PrimExpr& t) const {
    const Buffer rows = Local("rows", {Int64(tile_.own_rows), Int64(kChunk)});
    const Buffer columns = Local("columns", {Int64(tile_.own_keys()), Int64(kChunk)});
    return Chunks(tile_.depth / kChunk, [&](const PrimExpr& chunk) {
      const Stmt load_rows = Rows(rows, queries_, t, chunk);
      const Stmt load_columns = Unrolled("n", tile_.own_keys(), [&](const PrimExpr& n) {
        return Vector(kChunk, [&](const PrimExpr& x) {
          return Store(columns, Load(keys_, {Key(t, n, Int64(0)), chunk * kChunk + x}), {n, x});
        });
      });
      const Stmt multiply = Unrolled("x", kChunk, [&](const PrimExpr& x) {
        return OwnRows([&](const PrimExpr& i) {
          return Unrolled("n", tile_.own_keys(), [&](const PrimExpr& n) {
            return AddProduct(scores_, {t, i, n, Int64(0)}, Load(rows, {i, x}), Load(columns, {n, x}));
          });
        });
      });
      return Allocate(rows, Allocate(columns, Seq({load_rows, load_columns, multiply})));
    });
  }
  Stmt MixBySquares(const PrimExpr& t) const {
    const Buffer rows = Local("rows", {Int64(tile_.own_rows), Int64(kChunk)});
    const Buffer columns = Local("columns", {Int64(tile_.own_values()), Int64(tile_.value_lanes)});
    return Chunks(tile_.keys / kChunk, [&](const PrimExpr& chunk) {
      const Stmt load_rows = Rows(rows, exponentials_, t, chunk);
      const Stmt multiply = Unrolled("x", kChunk, [&](const PrimExpr& x) {
        const Stmt load_columns = Unrolled("c", tile_.own_values(), [&](const PrimExpr& c) {
          return Vector(tile_.value_lanes, [&](const PrimExpr& z) {
            return Store(columns, Load(values_, {chunk * kChunk + x, Element(t, c, z)}), {c, z});
          });
        });
        const Stmt add = OwnRows([&](const PrimExpr& i) {
          return OwnElements([&](const PrimExpr& c, const PrimExpr& z) {
            return AddProduct(result_, {t, i, c, z}, Load(rows, {i, x}), Load(columns, {c, z}));
          });
        });
        return Seq({load_columns, add});
      });
      return Allocate(rows, Allocate(columns, Seq({load_rows, multiply})));
    });
  }
  // Two at a time, so that the elements of one are loaded while the other is multiplied.
  Stmt Chunks(int64_t count, const Body& body) const {
    const int64_t at_once = count % 2 == 0 ? 2 : 1;
    return Serial("chunk", Int64(count / at_once), [&](const PrimExpr& chunk) {
      return Unrolled("u", at_once, [&](const PrimExpr& u) { return body(chunk * at_once + u); });
    });
  }
  Stmt Rows(const Buffer& rows, const Buffer& from, const PrimExpr& t, const PrimExpr& chunk) const {
    return OwnRows([&](const PrimExpr& i) {
      return Vector(kChunk, [&](const PrimExpr& x) {
        return Store(rows, Load(from, {Row(t, i), chunk * kChunk + x}), {i, x});
      });
    });
  }

  Stmt Finish(const PrimExpr& t) const {
    const Buffer inverse = Local("inverse", {Int64(1)});
    const std::string& layout = config_.layouts[3];
    return OwnRows([&](const PrimExpr& i) {
      const PrimExpr sum = JoinParts(t, i, ir::BinaryOp::kAdd, Zero());
      const auto write = [&](const PrimExpr& c, const PrimExpr& z) {
        const PrimExpr h = Element(t, c, z);
        return Store(out_, ir::Cast(dtype_, Load(result_, {t, i, c, z}) * Load(inverse, {Int64(0)})),
                     AttentionIndices(layout, batch_, Query(t, i), head_, h));
      };
      const bool by_vectors = layout.back() == 'H' && value_depth_ % tile_.value_lanes == 0;
      Stmt all = Unrolled("c", tile_.own_values(), [&](const PrimExpr& c) {
        Stmt group = by_vectors ? Vector(tile_.value_lanes, [&](const PrimExpr& z) { return write(c, z); })
                                : Unrolled("z", tile_.value_lanes, [&](const PrimExpr& z) {
                                    Stmt one = write(c, z);
                                    return value_depth_ == tile_.value_depth
                                               ? one
                                               : If(Element(t, c, z) < Int64(value_depth_), std::move(one));
                                  });
        const bool is_whole = !by_vectors || value_depth_ == tile_.value_depth;
        return is_whole ? group : If(Element(t, c, Int64(0)) < Int64(value_depth_), std::move(group));
      });
      all = Allocate(inverse, Seq({Store(inverse, Inverse(config_, sum, IsMasked(t, i)), {Int64(0)}), all}));
      return queries_are_ragged_ ? If(Query(t, i) < config_.num_queries, std::move(all)) : all;
    });
  }

  const Buffer query_, key_, value_, out_;
  Buffer bias_;
  const AttentionConfig& config_;
  const DataType dtype_;
  CudaAttentionTile tile_;
  int64_t depth_, value_depth_;
  bool queries_are_ragged_, keys_are_ragged_;
  bool takes_all_keys_;  // also those that the causal mask hides, since they may show
  Buffer poison_, queries_, keys_, values_, exponentials_, parts_;
  Buffer greatest_, sum_, result_, scores_, visible_;  // of each thread
  // The tile that is being built: its first query, head and batch.
  PrimExpr row_, head_, batch_;
};

}  // namespace

std::vector<Stmt> CudaAttention(const std::vector<Buffer>& inputs, const Buffer& out, const AttentionConfig& config) {
  return CudaKernel(inputs, out, config).Build();
}

}  // namespace ingot::op::topi
