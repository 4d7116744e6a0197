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
#include <cmath>
#include <numbers>

#include "compiler/op/topi/attention_scores.h"
#include "compiler/op/topi/attention_statements.h"
#include "compiler/target/cuda.h"

namespace ingot::op::topi {

using namespace statements;  // NOLINT
using te::Indices;

namespace {

// Of so many tiles all keys are multiplied, whatever the causal mask hides.
constexpr int64_t kFewTiles = 4;
constexpr int64_t kFewQueries = 16;

class CudaKernel {
 public:
  // `poison` is null where nothing hidden shows, or all keys are taken.
  CudaKernel(const std::vector<Buffer>& inputs, const Buffer& out, const AttentionConfig& config,
             const CudaAttentionTile& tile, Buffer poison, bool takes_all_keys)
      : query_(inputs[0]),
        key_(inputs[1]),
        value_(inputs[2]),
        out_(out),
        config_(config),
        dtype_(out->dtype),
        tile_(tile),
        takes_all_keys_(takes_all_keys),
        poison_(std::move(poison)) {
    if (inputs.size() > 3) bias_ = inputs[3];
    depth_ = *ir::AsConstInt(config.depth);
    value_depth_ = *ir::AsConstInt(config.value_depth);
    const auto keys = ir::AsConstInt(config.num_keys), queries = ir::AsConstInt(config.num_queries);
    keys_are_ragged_ = !keys || *keys % tile_.keys != 0 || tile_.splits > 1;
    queries_are_ragged_ = !queries || *queries % tile_.rows != 0;
    rounds_late_ = dtype_ != kFloat32 && !bias_ && config.softcap == 0 && config.scale > 0;
    scales_late_ = rounds_late_ && dtype_ == DataType::Float(16);
    exponent_scale_ = config.scale * std::numbers::log2e;
  }

  // A launch for the tiles, and one that joins the splits of each; both run if the condition (null: always) holds, which
  // is for so many queries at most.
  Stmt Build(const PrimExpr& condition, const PrimExpr& most_queries) {
    if (tile_.splits == 1) return Tiles(condition);
    const PrimExpr tiles = config_.batch * config_.num_heads * CeilDiv(most_queries, tile_.rows);
    split_results_ = ir::MakeBuffer("split_results", kFloat32,
                                    {tiles, Int64(tile_.splits), Int64(tile_.rows), Int64(tile_.value_depth)});
    split_rows_ = ir::MakeBuffer("split_rows", kFloat32,
                                 {tiles, Int64(tile_.splits), Int64(tile_.rows), Int64(kCudaSplitNumbers)});
    const Stmt both = Seq({Tiles(condition), JoinCudaSplits(split_results_, split_rows_, out_, config_, tile_,
                                                            bias_ != nullptr, condition)});
    return Allocate(split_results_, Allocate(split_rows_, both));
  }

 private:
  Stmt Threads(const Body& body, bool awaits_copies = false) const {
    ir::Attrs notes;
    if (awaits_copies) notes = ir::Attrs{{kCudaAwaitCopies, int64_t{1}}};
    return OverThreads(tile_.threads, body, std::move(notes));
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
    constexpr int64_t kRowsOfLanes = kCudaWarpThreads / kCudaMatrixLanes;
    const PrimExpr warp = ir::FloorDiv(t, Int64(kCudaWarpThreads)), lane = ir::FloorMod(t, Int64(kCudaWarpThreads));
    return warp * (tile_.own_rows * kRowsOfLanes) + i * kRowsOfLanes + ir::FloorDiv(lane, Int64(kCudaMatrixLanes));
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
  PrimExpr Zero() const { return ir::MakeConst(kFloat32, 0); }

  Stmt Tiles(const PrimExpr& condition) {
    const PrimExpr num_tiles = CeilDiv(config_.num_queries, tile_.rows);
    PrimExpr count = config_.batch * config_.num_heads * num_tiles * tile_.splits;
    if (condition) count = ir::Select(condition, count, Int64(0));
    return OverBlocks(count, [&](const PrimExpr& block) {
      split_ = ir::FloorMod(block, Int64(tile_.splits));
      return Let("number", ir::FloorDiv(block, Int64(tile_.splits)), [&](const PrimExpr& number) {
        number_ = number;
        PrimExpr tile = ir::FloorMod(number, num_tiles);
        // Those that see the most keys begin first.
        if (config_.causal != CausalMask::kNone) tile = num_tiles - 1 - tile;
        const PrimExpr of_head = ir::FloorDiv(number, num_tiles);
        return Let("row", tile * tile_.rows, [&](const PrimExpr& row) {
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
    });
  }

  Stmt Tile() {
    const int64_t row_length = tile_.RowLength(tile_.depth, dtype_),
                  value_length = tile_.RowLength(tile_.value_depth, dtype_);
    queries_ = Shared("queries", dtype_, {Int64(tile_.rows), Int64(row_length)});
    keys_ = Shared("keys", dtype_, {Int64(tile_.keys), Int64(row_length)});
    values_ = Shared("values", dtype_, {Int64(tile_.keys), Int64(value_length)});
    exponentials_ = ir::MakeBuffer("exponentials", dtype_, {Int64(tile_.rows), Int64(tile_.ExponentialsLength())},
                                   tile_.multiplies_by_warps ? "warp" : "shared");
    parts_ = Shared("parts", kFloat32, {Int64(tile_.rows), Int64(tile_.row_threads)});
    greatest_ = Own("greatest", {Int64(tile_.own_rows)});
    sum_ = Own("sum", {Int64(tile_.own_rows)});
    result_ = Own("result", {Int64(tile_.own_rows), Int64(tile_.own_values()), Int64(tile_.value_lanes)});
    if (config_.may_mask(bias_ != nullptr)) visible_ = Own("visible", {Int64(tile_.own_rows)});
    scores_ = Own("scores", {Int64(tile_.own_rows), Int64(tile_.own_keys()), Int64(tile_.key_lanes)});
    const Stmt body = Let("num_blocks", CeilDiv(EndOfKeys(), tile_.keys), [&](const PrimExpr& num_blocks) {
      if (tile_.splits == 1) return Keys(Int64(0), num_blocks);
      return Let("of_split", CeilDiv(num_blocks, tile_.splits), [&](const PrimExpr& of_split) {
        return Keys(split_ * of_split, ir::Min((split_ + 1) * of_split, num_blocks));
      });
    });
    return AllocateAll(body);
  }
  Stmt AllocateAll(Stmt body) const {
    for (const Buffer& buffer :
         {scores_, result_, sum_, greatest_, visible_, parts_, exponentials_, values_, keys_, queries_}) {
      if (buffer) body = Allocate(buffer, std::move(body));
    }
    return body;
  }
  // The first key that no query of the tile sees.
  PrimExpr EndOfKeys() const {
    if (config_.causal == CausalMask::kNone || takes_all_keys_) return config_.num_keys;
    const PrimExpr last = CausalEnd(config_, row_ + (tile_.rows - 1));
    const PrimExpr end = ir::Max(ir::Min(config_.num_keys, last), Int64(0));
    if (!poison_) return end;
    PrimExpr poison = Zero();
    for (int64_t part = 0; part < kCudaSearches; ++part) {
      poison = poison + Load(poison_, {batch_ * config_.num_key_heads + KeyHead(), Int64(part)});
    }
    return ir::Select(ir::Equal(poison, Zero()), end, config_.num_keys);
  }

  // Tiles of keys from the first one to the last.
  Stmt Keys(const PrimExpr& first, const PrimExpr& end) {
    std::vector<Stmt> steps = {Threads([&](const PrimExpr& t) { return Start(first, t); }, /*awaits_copies=*/true)};
    if (visible_) {
      for (Stmt& step : MostVisible()) steps.push_back(std::move(step));
    }
    steps.push_back(Serial("key_block", tile_.splits == 1 ? end : ir::Max(end - first, Int64(0)),
                           [&](const PrimExpr& block) { return Step(first + block, end); }));
    steps.push_back(Threads([&](const PrimExpr& t) {
      return OwnRows([&](const PrimExpr& i) { return Store(parts_, Load(sum_, {t, i}), {Row(t, i), Lane(t)}); });
    }));
    steps.push_back(Threads([&](const PrimExpr& t) { return tile_.splits == 1 ? Finish(t) : FinishSplit(t); }));
    return Seq(std::move(steps));
  }

  PrimExpr KeyHead() const { return ir::FloorDiv(head_, Int64(config_.group)); }
  PrimExpr Query(const PrimExpr& t, const PrimExpr& i) const { return row_ + Row(t, i); }
  PrimExpr ReadableQuery(const PrimExpr& t, const PrimExpr& i) const {
    return queries_are_ragged_ ? ir::Min(Query(t, i), config_.num_queries - 1) : Query(t, i);
  }

  Stmt Start(const PrimExpr& first, const PrimExpr& t) const {
    const Stmt rows = OwnRows([&](const PrimExpr& i) {
      return Seq({Store(greatest_, MinusInfinity(kFloat32), {t, i}), Store(sum_, Zero(), {t, i}),
                  OwnElements([&](const PrimExpr& c, const PrimExpr& z) {
                    return Store(result_, Zero(), {t, i, c, z});
                  })});
    });
    const Stmt queries = CopyTile(query_, 0, queries_, tile_.rows, depth_, tile_.depth, row_, config_.num_queries,
                                  queries_are_ragged_, head_, t);
    return Seq({rows, queries, CopyKeys(first, t)});
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
    // A single element of depth has no neighbours, and its index no lanes.
    const bool is_turned = layout.back() != 'H' || depth == 1;
    const int64_t lanes = is_turned ? 1 : kCudaAttentionChunkBytes * 8 / dtype_.bits;
    const int64_t pieces = rows * whole_depth / lanes;
    // Straight code: a copy that is on its way keeps the registers of its addresses.
    return Unrolled("round", (pieces + tile_.threads - 1) / tile_.threads, [&](const PrimExpr& round) {
      const PrimExpr piece = round * tile_.threads + t;
      Stmt copy;
      if (is_turned) {
        copy = element(ir::FloorMod(piece, Int64(rows)), ir::FloorDiv(piece, Int64(rows)));
      } else {
        const PrimExpr row = ir::FloorDiv(piece, Int64(whole_depth / lanes));
        const PrimExpr chunk = ir::FloorMod(piece, Int64(whole_depth / lanes));
        copy = WithNote(Serial("x", Int64(lanes), [&](const PrimExpr& x) { return element(row, chunk * lanes + x); }),
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
  // As it is kept, in units of which ExponentScale() are a doubling.
  PrimExpr Score(PrimExpr product, const PrimExpr& t, const PrimExpr& i, const PrimExpr& position) const {
    PrimExpr score = product;
    if (!rounds_late_) {
      if (config_.stores_products()) product = Stored(std::move(product));
      score = Stored(Softcap(product * ir::MakeConst(kFloat32, config_.scale), config_.softcap));
    } else if (!scales_late_) {
      score = product * ir::MakeConst(kFloat32, config_.scale);
    }
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
  Stmt Step(const PrimExpr& block, const PrimExpr& end) const {
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
          return Seq({If(block + 1 < end, CopyKeys(block + 1, t)),
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

  // exp(score - shift), where the shift is Scaled().
  PrimExpr Scaled(PrimExpr shift) const {
    return scales_late_ ? shift * ir::MakeConst(kFloat32, exponent_scale_) : shift;
  }
  PrimExpr Exponential(const PrimExpr& score, const PrimExpr& shift) const {
    if (!scales_late_) return CudaExp(score - shift);
    return ir::CallIntrinsic(ir::Intrinsic::kExp2,
                             {ir::CallIntrinsic(ir::Intrinsic::kFma, {score, ir::MakeConst(kFloat32, exponent_scale_),
                                                                      ir::MakeConst(kFloat32, 0) - shift})});
  }
  // The greatest score of a row as it is kept: where single steps store inf it is NaN, as their result is, and where they
  // store -inf it is that.
  PrimExpr WhereStored(const PrimExpr& greatest) const {
    if (!config_.stepwise) return greatest;
    const double overflows = dtype_ == DataType::Float(16) ? 65520 : 0x1.ffp127;  // what would be the next number
    double most = config_.stores_products() ? overflows * std::min(1.0, config_.scale) : overflows;
    if (scales_late_) most /= config_.scale;
    const PrimExpr limit = ir::MakeConst(kFloat32, most), nan = MinusInfinity(kFloat32) - MinusInfinity(kFloat32);
    return ir::Select(limit <= greatest, nan,
                      ir::Select(greatest <= ir::MakeConst(kFloat32, -most), MinusInfinity(kFloat32), greatest));
  }

  Stmt Exponentials(const PrimExpr& t, const PrimExpr& i) const {
    const Buffer now = Local("now", {Int64(3)});  // the greatest score so far, what is subtracted, the factor
    const auto at = [](int64_t place) { return Indices{Int64(place)}; };
    std::vector<Stmt> stmts;
    stmts.push_back(Store(now, JoinParts(t, i, ir::BinaryOp::kMax, Load(greatest_, {t, i})), at(0)));
    if (rounds_late_) stmts.push_back(Store(now, WhereStored(Load(now, at(0))), at(0)));
    stmts.push_back(Store(now, Scaled(Shift(Load(now, at(0)))), at(1)));
    stmts.push_back(Store(now, Exponential(Load(greatest_, {t, i}), Load(now, at(1))), at(2)));
    stmts.push_back(Store(greatest_, Load(now, at(0)), {t, i}));
    stmts.push_back(Store(sum_, Load(sum_, {t, i}) * Load(now, at(2)), {t, i}));
    stmts.push_back(OwnKeys([&](const PrimExpr& n, const PrimExpr& y) {
      const Indices place = {t, i, n, y};
      return Seq({Store(scores_, Exponential(Load(scores_, place), Load(now, at(1))), place),
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
    return WithNote(Serial("k", Int64(depth),
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
    const Buffer rows = Local("rows", {Int64(tile_.own_rows), Int64(kCudaSquareChunk)});
    const Buffer columns = Local("columns", {Int64(tile_.own_keys()), Int64(kCudaSquareChunk)});
    return Chunks(tile_.depth / kCudaSquareChunk, [&](const PrimExpr& chunk) {
      const Stmt load_rows = Rows(rows, queries_, t, chunk);
      const Stmt load_columns = Unrolled("n", tile_.own_keys(), [&](const PrimExpr& n) {
        return Vector(kCudaSquareChunk, [&](const PrimExpr& x) {
          return Store(columns, Load(keys_, {Key(t, n, Int64(0)), chunk * kCudaSquareChunk + x}), {n, x});
        });
      });
      const Stmt multiply = Unrolled("x", kCudaSquareChunk, [&](const PrimExpr& x) {
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
    const Buffer rows = Local("rows", {Int64(tile_.own_rows), Int64(kCudaSquareChunk)});
    const Buffer columns = Local("columns", {Int64(tile_.own_values()), Int64(tile_.value_lanes)});
    return Chunks(tile_.keys / kCudaSquareChunk, [&](const PrimExpr& chunk) {
      const Stmt load_rows = Rows(rows, exponentials_, t, chunk);
      const Stmt multiply = Unrolled("x", kCudaSquareChunk, [&](const PrimExpr& x) {
        const Stmt load_columns = Unrolled("c", tile_.own_values(), [&](const PrimExpr& c) {
          return Vector(tile_.value_lanes, [&](const PrimExpr& z) {
            return Store(columns, Load(values_, {chunk * kCudaSquareChunk + x, Element(t, c, z)}), {c, z});
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
      return Vector(kCudaSquareChunk, [&](const PrimExpr& x) {
        return Store(rows, Load(from, {Row(t, i), chunk * kCudaSquareChunk + x}), {i, x});
      });
    });
  }

  // What the join of splits needs: the sums of products, and of each row the greatest score, the sum, the mask.
  Stmt FinishSplit(const PrimExpr& t) const {
    return OwnRows([&](const PrimExpr& i) {
      const Indices row = {number_, split_, Row(t, i)};
      const auto at = [&](const PrimExpr& place) {
        Indices indices = row;
        indices.push_back(place);
        return indices;
      };
      // What is scaled late has its exponent there.
      const PrimExpr greatest =
          scales_late_ ? Load(greatest_, {t, i}) * ir::MakeConst(kFloat32, exponent_scale_ / std::numbers::log2e)
                       : Load(greatest_, {t, i});
      std::vector<Stmt> numbers = {Store(split_rows_, greatest, at(Int64(0))),
                                   Store(split_rows_, JoinParts(t, i, ir::BinaryOp::kAdd, Zero()), at(Int64(1)))};
      if (visible_) numbers.push_back(Store(split_rows_, Load(visible_, {t, i}), at(Int64(2))));
      const Stmt results = OwnElements([&](const PrimExpr& c, const PrimExpr& z) {
        return Store(split_results_, Load(result_, {t, i, c, z}), at(Element(t, c, z)));
      });
      return Seq({If(Lane(t) < Int64(1), Seq(std::move(numbers))), results});
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
  const CudaAttentionTile tile_;
  const bool takes_all_keys_;  // also those that the causal mask hides, since they may show
  int64_t depth_, value_depth_;
  bool queries_are_ragged_, keys_are_ragged_;
  // Whether single steps differ from what is not rounded to the operands' dtype by rounding, and by what overflows, which
  // the greatest score of a row says: there is nothing between scale and softmax. And whether scores are products without
  // their scale, of which one factor makes exponents of 2: those of float16 do not overflow in float32.
  bool rounds_late_, scales_late_;
  double exponent_scale_;
  Buffer poison_, queries_, keys_, values_, exponentials_, parts_, split_results_, split_rows_;
  Buffer greatest_, sum_, result_, scores_, visible_;  // of each thread
  // The tile that is being built: its number, which split of its keys, its first query, head and batch.
  PrimExpr number_, split_, row_, head_, batch_;
};

}  // namespace

std::vector<Stmt> CudaAttention(const std::vector<Buffer>& inputs, const Buffer& out, const AttentionConfig& config) {
  // Of a number of queries that is not known a few may be all, as while a text is written: for these there is a kernel of
  // its own, whose blocks share the keys of a tile.
  const bool knows_queries = ir::AsConstInt(config.num_queries).has_value();
  const CudaAttentionTile usual = *ChooseCudaAttentionTile(config, out->dtype);
  const auto keys = ir::AsConstInt(config.num_keys);
  const bool takes_all_keys = config.hidden_values_show() && keys && *keys <= kFewTiles * usual.keys;
  Buffer poison;
  std::vector<Stmt> stmts;
  if (config.hidden_values_show() && !takes_all_keys) {
    poison = ir::MakeBuffer("poison", kFloat32, {config.batch * config.num_key_heads, Int64(kCudaSearches)});
    stmts.push_back(SearchCudaOperands(inputs, config, poison));
  }
  const auto add = [&](const CudaAttentionTile& tile, const PrimExpr& condition, const PrimExpr& most_queries) {
    stmts.push_back(CudaKernel(inputs, out, config, tile, poison, takes_all_keys).Build(condition, most_queries));
  };
  if (knows_queries) {
    add(usual, nullptr, config.num_queries);
  } else {
    add(*ChooseCudaAttentionTile(config, out->dtype, kFewQueries), config.num_queries < Int64(kFewQueries + 1),
        ir::Min(config.num_queries, Int64(kFewQueries)));
    add(usual, Int64(kFewQueries) < config.num_queries, config.num_queries);
  }
  Stmt all = Seq(std::move(stmts));
  return {poison ? Allocate(poison, std::move(all)) : all};
}

}  // namespace ingot::op::topi
