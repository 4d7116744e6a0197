// The fused kernel is a PrimFunc that is built scheduled, not a trace over the tensor expressions: its softmax is the
// online one (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; blocked over keys as in
// "FlashAttention", Dao et al., 2022), whose rescaled accumulators no primitive derives from the stages. Default rules
// leave it as it is, since it has no blocks.
//
// A task is a few tiles of `rows` queries of one head. For a tile the keys go by in blocks that fit the first-level
// cache with their scores: scores of a block into a small buffer, their greatest, exponentials and sum, then the tile's
// result is rescaled and the block's share added. So nothing as large as [heads, queries, keys] is ever stored. When
// the number of keys is a small constant there is one block and no rescaling.
//
// Scores are register tiles of rows x 16 over keys, which lie in panels [16 keys][depth][16] (packed once, by a first
// parallel loop over key heads); values are read in place, or, where they are many and a tile's column of them would
// miss the cache row by row, packed by columns. With few queries (decoding) packing would cost more than it saves:
// scores are dot products along the depth instead.
//
// Tails: positions after the last key are copies of it with the score -inf; positions after the last query are copies
// of it whose results are not written.
#include "compiler/op/topi/attention.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "compiler/ir/jam.h"
#include "compiler/op/topi/attention_scores.h"
#include "compiler/op/topi/attention_statements.h"
#include "compiler/op/topi/reduction.h"
#include "runtime/check.h"

namespace ingot::op::topi {

using namespace statements;  // NOLINT
using ir::Int64;
using te::Indices;

te::Tensor Attention(const std::vector<te::Tensor>& inputs, const AttentionConfig& config, DataType dtype) {
  const DataType wide = dtype.bits < 32 ? kFloat32 : dtype;
  const auto load = [&](size_t operand, const Indices& i) { return ir::Cast(wide, inputs[operand](i)); };
  const auto key_head = [&](const PrimExpr& head) { return ir::FloorDiv(head, Int64(config.group)); };
  const Shape rows = {config.batch, config.num_heads, config.num_queries};
  Shape all = rows;
  all.push_back(config.num_keys);

  const ir::IterVar depth = te::ReduceAxis(config.depth, "h");
  const te::Tensor products = te::Compute(
      all,
      [&](const Indices& i) {
        return te::Sum(load(0, AttentionIndices(config.layouts[0], i[0], i[2], i[1], depth->var)) *
                           load(1, AttentionIndices(config.layouts[1], i[0], i[3], key_head(i[1]), depth->var)),
                       {depth});
      },
      "T_attention_product");
  // Rounds to the operands' dtype where the single steps would store the number.
  const auto stored = [&](PrimExpr x) { return config.stepwise ? ir::Cast(wide, ir::Cast(dtype, std::move(x))) : x; };
  const auto row = [](const Indices& i) { return Indices(i.begin(), i.begin() + 3); };
  te::Tensor most_visible;  // the maximum of what the masks add; only if queries may be masked
  if (config.may_mask(inputs.size() > 3)) {
    const te::Tensor masks = te::Compute(
        all,
        [&](const Indices& i) {
          const PrimExpr bias =
              inputs.size() > 3 ? inputs[3](BiasIndices(inputs[3].shape(), config, i)) : PrimExpr(nullptr);
          return MaskOf(config, wide, bias, i[2], i[3]);
        },
        "T_attention_mask");
    most_visible = Reduce(Reducer::kMax, masks, {3}, false, "T_attention_visible");
  }
  const auto is_masked = [&](const Indices& i) {
    return config.may_mask(inputs.size() > 3) ? ir::Equal(most_visible(i), MinusInfinity(wide)) : PrimExpr(nullptr);
  };
  const te::Tensor scores = te::Compute(
      all,
      [&](const Indices& i) {
        PrimExpr score = config.stores_products() ? stored(products(i)) : products(i);
        score = stored(Softcap(score * ir::MakeConst(wide, config.scale), config.softcap));
        if (inputs.size() > 3) {
          const PrimExpr bias = inputs[3](BiasIndices(inputs[3].shape(), config, i));
          score = bias->dtype.is_bool() ? ir::Select(bias, score, Replacement(config, wide))
                                        : stored(score + ir::Cast(wide, bias));
        }
        if (config.causal != CausalMask::kNone) {
          score = ir::Select(i[3] < CausalEnd(config, i[2]), score, CausallyHidden(config, score));
        }
        const PrimExpr masked = is_masked(row(i));
        return masked == nullptr ? score : ir::Select(masked, MinusInfinity(wide), score);
      },
      "T_attention_score");
  const te::Tensor greatest = Reduce(Reducer::kMax, scores, {3}, false, "T_attention_maxelem");
  const te::Tensor exponentials = te::Compute(
      all, [&](const Indices& i) { return Exp(scores(i) - Shift(greatest(row(i)))); }, "T_attention_exp");
  const te::Tensor sums = Reduce(Reducer::kSum, exponentials, {3}, false, "T_attention_expsum");
  Shape result = rows;
  result.push_back(config.value_depth);
  const te::Tensor mixed = te::Compute(
      result,
      [&](const Indices& i) {
        const ir::IterVar key = te::ReduceAxis(config.num_keys, "k");
        return ReduceOver(Reducer::kSum,
                          exponentials(i[0], i[1], i[2], key->var) *
                              load(2, AttentionIndices(config.layouts[2], i[0], key->var, key_head(i[1]), i[3])),
                          {key});
      },
      "T_attention_mix");
  const Shape shape =
      AttentionIndices(config.layouts[3], config.batch, config.num_queries, config.num_heads, config.value_depth);
  return te::Compute(
      shape,
      [&](const Indices& i) {
        const auto at = [&](char axis) { return i[config.layouts[3].find(axis)]; };
        const PrimExpr value = mixed(at('B'), at('N'), at('S'), at('H'));
        const Indices query = {at('B'), at('N'), at('S')};
        return ir::Cast(dtype, value * Inverse(config, sums(query), is_masked(query)));
      },
      "T_attention");
}

namespace {

constexpr int64_t kLanes = 16;         // as the panels of matrix products: one layout for every vector width
constexpr int64_t kSquare = 8;         // side of the squares in which keys are packed
constexpr int64_t kMaxRows = 6;        // 6 x 16 accumulators fill the registers of AVX2
constexpr int64_t kAccumulators = 96;  // elements of them
// Of registers that hold two tiles' accumulators and what is multiplied.
constexpr int64_t kBitsOfPair = (2 * kAccumulators + 3 * kLanes) * 32;
constexpr int64_t kTilesPerTask = 4;
constexpr int64_t kMaxSingleBlock = 512;  // keys of which the scores of a tile are kept at once
constexpr int64_t kKeyBlock = 256;        // otherwise
constexpr int64_t kMinPackedKeys = 192;   // from here on, values are packed as well
constexpr int64_t kMaxDotQueries = 3;     // up to here, scores are dot products
// Multiply-adds below which a fork-join costs more than it gains.
constexpr int64_t kMinParallelProducts = 2 << 20;

class FusedKernel {
 public:
  FusedKernel(const std::vector<Buffer>& inputs, const Buffer& out, const AttentionConfig& config)
      : query_(inputs[0]), key_(inputs[1]), value_(inputs[2]), out_(out), config_(config) {
    if (inputs.size() > 3) bias_ = inputs[3];
    depth_ = *ir::AsConstInt(config.depth);
    value_depth_ = *ir::AsConstInt(config.value_depth);
    const auto queries = ir::AsConstInt(config.num_queries);
    const auto keys = ir::AsConstInt(config.num_keys);
    uses_dots_ = queries && *queries <= kMaxDotQueries;
    rows_ = queries ? ChooseRows(*queries) : kMaxRows;
    queries_are_ragged_ = !queries || *queries % rows_ != 0;
    keys_are_ragged_ = !keys || *keys % kLanes != 0;
    is_single_block_ = keys && *keys <= kMaxSingleBlock;
    key_block_ = is_single_block_ ? (*keys + kLanes - 1) / kLanes * kLanes : kKeyBlock;
    packs_values_ = !uses_dots_ && (!keys || *keys >= kMinPackedKeys);
    lanes_ = GreatestDivisor(value_depth_, kLanes);
    vectors_ = GreatestDivisor(value_depth_ / lanes_, std::max<int64_t>(kAccumulators / (rows_ * lanes_), 1));
    num_tiles_ = CeilDiv(config.num_queries, rows_);
    num_panels_ = CeilDiv(config.num_keys, kLanes);
  }

  Stmt Build() {
    if (uses_dots_) return Tasks();
    panels_ = ir::MakeBuffer("panels", kFloat32,
                             {config_.batch * config_.num_key_heads, num_panels_, Int64(depth_), Int64(kLanes)});
    if (packs_values_) {
      columns_ = ir::MakeBuffer("columns", kFloat32,
                                {config_.batch * config_.num_key_heads, Int64(value_depth_ / (vectors_ * lanes_)),
                                 config_.num_keys, Int64(vectors_ * lanes_)});
    }
    if (config_.hidden_values_show()) {
      poison_ = ir::MakeBuffer("poison", kFloat32, {config_.batch * config_.num_key_heads});
    }
    Stmt body = Seq({Pack(), Tasks()});
    if (poison_) body = Allocate(poison_, std::move(body));
    if (columns_) body = Allocate(columns_, std::move(body));
    return Allocate(panels_, std::move(body));
  }

 private:
  // As few tiles as possible, and tiles that are as small as that number allows.
  static int64_t ChooseRows(int64_t queries) {
    const int64_t tiles = (queries + kMaxRows - 1) / kMaxRows;
    return (queries + tiles - 1) / tiles;
  }

  // Small constant work is done by the caller; a symbolic amount counts as large.
  ForKind TaskKind() const {
    int64_t products = depth_ + value_depth_;
    for (const PrimExpr& dim : {config_.batch, config_.num_heads, config_.num_queries, config_.num_keys}) {
      const auto extent = ir::AsConstInt(dim);
      if (!extent || __builtin_mul_overflow(products, *extent, &products)) return ForKind::kParallel;
    }
    return products < kMinParallelProducts ? ForKind::kSerial : ForKind::kParallel;
  }

  Stmt Pack() {
    return Loop("head", config_.batch * config_.num_key_heads, TaskKind(), [&](const PrimExpr& head) {
      const PrimExpr batch = ir::FloorDiv(head, config_.num_key_heads);
      const PrimExpr key_head = ir::FloorMod(head, config_.num_key_heads);
      std::vector<Stmt> stmts = {PackKeys(head, batch, key_head)};
      if (packs_values_) stmts.push_back(PackValues(head, batch, key_head));
      if (poison_) stmts.push_back(Poison(head, batch, key_head));
      return Seq(std::move(stmts));
    });
  }
  // poison[head] := 0, or NaN where a value of the head is not finite, or where hidden keys show and a key is not. With
  // NaN the blocks that the causal mask hides are read as well, since they may turn sums into NaN.
  Stmt Poison(const PrimExpr& head, const PrimExpr& batch, const PrimExpr& key_head) const {
    const PrimExpr zero = ir::MakeConst(kFloat32, 0);
    const auto add_up = [&](const Buffer& sum, int64_t lanes, const Stmt& all) {
      const Stmt clear = Vector(lanes, [&](const PrimExpr& x) { return Store(sum, zero, {x}); });
      const Stmt write = Store(poison_, Load(poison_, {head}) + Load(sum, {Int64(0)}), {head});
      return Allocate(sum, Seq({clear, all, JoinLanes(sum, lanes, ir::BinaryOp::kAdd), write}));
    };
    std::vector<Stmt> stmts = {Store(poison_, zero, {head})};
    if (config_.hidden_keys_show()) {
      const Buffer sum = Local("key_poison", {Int64(kLanes)});
      stmts.push_back(add_up(sum, kLanes, Serial("p", num_panels_, [&](const PrimExpr& p) {
                               return Serial("h", Int64(depth_), [&](const PrimExpr& h) {
                                 return Vector(kLanes, [&](const PrimExpr& l) {
                                   return Store(sum, Load(sum, {l}) + Load(panels_, {head, p, h, l}) * zero, {l});
                                 });
                               });
                             })));
    }
    const Buffer sum = Local("value_poison", {Int64(lanes_)});
    stmts.push_back(add_up(sum, lanes_, Serial("k", config_.num_keys, [&](const PrimExpr& k) {
                             return Serial("c", Int64(value_depth_ / lanes_), [&](const PrimExpr& c) {
                               return Vector(lanes_, [&](const PrimExpr& x) {
                                 const PrimExpr value = Load(
                                     value_, AttentionIndices(config_.layouts[2], batch, k, key_head, c * lanes_ + x));
                                 return Store(sum, Load(sum, {x}) + value * zero, {x});
                               });
                             });
                           })));
    return Seq(std::move(stmts));
  }
  // panels[head, p, h, l] := key(head, 16 p + l, h): in squares, which are transposed in registers, and the rest of the
  // depth one by one.
  Stmt PackKeys(const PrimExpr& head, const PrimExpr& batch, const PrimExpr& key_head) {
    const int64_t squares = depth_ / kSquare, rest = depth_ % kSquare;
    return Serial("p", num_panels_, [&](const PrimExpr& p) {
      const auto element = [&](const PrimExpr& l, const PrimExpr& h) {
        PrimExpr position = p * kLanes + l;
        if (keys_are_ragged_) position = ir::Min(position, config_.num_keys - 1);
        return Store(panels_, Load(key_, AttentionIndices(config_.layouts[1], batch, position, key_head, h)),
                     {head, p, h, l});
      };
      std::vector<Stmt> stmts;
      if (squares > 0) {
        stmts.push_back(Serial("l", Int64(kLanes / kSquare), [&](const PrimExpr& l) {
          return Serial("h", Int64(squares), [&](const PrimExpr& h) {
            return Vector(kSquare, [&](const PrimExpr& y) {
              return Vector(kSquare, [&](const PrimExpr& x) { return element(l * kSquare + x, h * kSquare + y); });
            });
          });
        }));
      }
      if (rest > 0) {
        stmts.push_back(Serial("l", Int64(kLanes), [&](const PrimExpr& l) {
          return Serial("h", Int64(rest), [&](const PrimExpr& h) { return element(l, h + squares * kSquare); });
        }));
      }
      return Seq(std::move(stmts));
    });
  }
  // columns[head, c, k, x] := value(head, k, c * width + x)
  Stmt PackValues(const PrimExpr& head, const PrimExpr& batch, const PrimExpr& key_head) {
    return Serial("k", config_.num_keys, [&](const PrimExpr& k) {
      return Serial("c", columns_->shape[1], [&](const PrimExpr& c) {
        return Unrolled("v", vectors_, [&](const PrimExpr& v) {
          return Vector(lanes_, [&](const PrimExpr& x) {
            const PrimExpr place = v * lanes_ + x;
            const PrimExpr h = c * (vectors_ * lanes_) + place;
            return Store(columns_, Load(value_, AttentionIndices(config_.layouts[2], batch, k, key_head, h)),
                         {head, c, k, place});
          });
        });
      });
    });
  }

  // A loop over tiles that read the same queries or scores. Two at a time load these once, and hide the latency of their
  // sums, where registers hold both.
  static Stmt InPairs(const char* name, const PrimExpr& count, const Body& tile) {
    const PrimExpr pairs = ir::FloorDiv(count, Int64(2));
    const auto number = ir::AsConstInt(count);
    const auto pair_of = [&](const PrimExpr& first) {
      const PrimVar var = ir::MakePrimVar("of_pair");
      return Make<ir::ForNode>(var, Int64(0), Int64(2), ForKind::kSerial, tile(first + var), "",
                               ir::Attrs{{ir::kJamRegisterBits, kBitsOfPair}});
    };
    std::vector<Stmt> stmts;
    if (!number || *number > 1) {
      stmts.push_back(Serial(name, pairs, [&](const PrimExpr& pair) { return pair_of(pair * 2); }));
    }
    if (!number || *number % 2 == 1) {
      stmts.push_back(Serial(name, count - pairs * 2, [&](const PrimExpr& last) { return tile(pairs * 2 + last); }));
    }
    return Seq(std::move(stmts));
  }

  Stmt Tasks() {
    const PrimExpr num_chunks = CeilDiv(num_tiles_, kTilesPerTask);
    const PrimExpr num_tasks = config_.batch * config_.num_heads * num_chunks;
    return Loop("task", num_tasks, TaskKind(), [&](const PrimExpr& task) {
      return Let("chunk", ir::FloorMod(task, num_chunks), [&](const PrimExpr& chunk) {
        return Let("head", ir::FloorMod(ir::FloorDiv(task, num_chunks), config_.num_heads), [&](const PrimExpr& head) {
          const PrimExpr batch = ir::FloorDiv(task, num_chunks * config_.num_heads);
          return Let("batch", batch, [&](const PrimExpr& b) {
            batch_ = b;
            head_ = head;
            const PrimExpr tiles = ir::Min(Int64(kTilesPerTask), num_tiles_ - chunk * kTilesPerTask);
            return Serial("tile", ir::IsConstInt(num_tiles_, 1) ? Int64(1) : tiles, [&](const PrimExpr& tile) {
              return Let("row", (chunk * kTilesPerTask + tile) * rows_, [&](const PrimExpr& row) {
                row_ = row;
                return Tile();
              });
            });
          });
        });
      });
    });
  }

  // A query of the tile: its number, and where it is read.
  PrimExpr Query(const PrimExpr& i) const { return row_ + i; }
  PrimExpr ReadableQuery(const PrimExpr& i) const {
    return queries_are_ragged_ ? ir::Min(Query(i), config_.num_queries - 1) : Query(i);
  }
  PrimExpr KeyHead() const { return ir::FloorDiv(head_, Int64(config_.group)); }

  Stmt Tile() {
    scores_ = Local("scores", {Int64(rows_), Int64(key_block_)});
    sum_ = Local("sum", {Int64(rows_)});
    // The keys that some query of the tile sees.
    PrimExpr end = config_.num_keys;
    if (config_.causal != CausalMask::kNone && !(uses_dots_ && config_.hidden_values_show())) {
      end = ir::Max(ir::Min(end, CausalEnd(config_, row_ + (rows_ - 1))), Int64(0));
      if (poison_) {
        const PrimExpr poison = Load(poison_, {batch_ * config_.num_key_heads + KeyHead()});
        end = ir::Select(ir::Equal(poison, ir::MakeConst(kFloat32, 0)), end, config_.num_keys);
      }
    }
    if (!config_.may_mask(bias_ != nullptr)) return Let("end", end, [&](const PrimExpr& e) { return Blocks(e); });
    visible_ = Local("visible", {Int64(rows_)});
    return Allocate(visible_, Seq({MostVisible(), Let("end", end, [&](const PrimExpr& e) { return Blocks(e); })}));
  }

  // visible[i] := the maximum of what the masks add to the scores of query i; -inf says that the query is masked.
  Stmt MostVisible() const {
    const Buffer partial = Local("mask", {Int64(kLanes)});
    const PrimExpr hidden = MinusInfinity(kFloat32);
    return Serial("i", Int64(rows_), [&](const PrimExpr& i) {
      const Stmt clear = Vector(kLanes, [&](const PrimExpr& l) { return Store(partial, hidden, {l}); });
      const Stmt join = Serial("p", num_panels_, [&](const PrimExpr& p) {
        return Vector(kLanes, [&](const PrimExpr& l) {
          const PrimExpr key = p * kLanes + l;
          PrimExpr mask = MaskOf(config_, kFloat32, bias_ ? Bias(i, key) : PrimExpr(nullptr), Query(i), key);
          if (keys_are_ragged_) mask = ir::Select(key < config_.num_keys, mask, hidden);
          return Store(partial, ir::Max(Load(partial, {l}), mask), {l});
        });
      });
      const Stmt keep = Store(visible_, Load(partial, {Int64(0)}), {i});
      return Allocate(partial, Seq({clear, join, JoinLanes(partial, kLanes, ir::BinaryOp::kMax), keep}));
    });
  }
  PrimExpr IsMasked(const PrimExpr& i) const {
    if (!config_.may_mask(bias_ != nullptr)) return nullptr;
    return ir::Equal(Load(visible_, {i}), MinusInfinity(kFloat32));
  }

  Stmt Blocks(const PrimExpr& end) {
    if (is_single_block_) {
      first_key_ = Int64(0);
      block_panels_ = CeilDiv(end, kLanes);
      return Allocate(scores_, Allocate(sum_, Seq({Scores(), Exponentials(nullptr, nullptr), Mix(nullptr, nullptr)})));
    }
    const Buffer greatest = Local("greatest", {Int64(rows_)});
    const Buffer rescale = Local("rescale", {Int64(rows_)});
    const Buffer result = Local("result", {Int64(rows_), Int64(value_depth_)});
    const Stmt start = Unrolled("i", rows_, [&](const PrimExpr& i) {
      return Seq({Store(greatest, MinusInfinity(kFloat32), {i}), Store(sum_, ir::MakeConst(kFloat32, 0), {i}),
                  ValueRow([&](const PrimExpr& h) {
                    return Store(result, ir::MakeConst(kFloat32, 0), {i, h});
                  })});
    });
    const Stmt blocks = Serial("key_block", CeilDiv(end, key_block_), [&](const PrimExpr& block) {
      first_key_ = block * key_block_;
      block_panels_ = ir::Min(Int64(key_block_ / kLanes), CeilDiv(end, kLanes) - block * (key_block_ / kLanes));
      return Allocate(scores_,
                      Allocate(rescale, Seq({Scores(), Exponentials(greatest, rescale), Mix(result, rescale)})));
    });
    const Stmt finish = Serial("i", Int64(rows_), [&](const PrimExpr& i) {
      return WriteIfQuery(i, ValueRow([&](const PrimExpr& h) {
                            return Write(i, h, Load(result, {i, h}) * Inverse(config_, Load(sum_, {i}), IsMasked(i)));
                          }));
    });
    return Allocate(greatest, Allocate(sum_, Allocate(result, Seq({start, blocks, finish}))));
  }

  // A loop over the elements of a value, in vectors.
  Stmt ValueRow(const Body& body) const {
    return Serial("c", Int64(value_depth_ / lanes_), [&](const PrimExpr& c) {
      return Vector(lanes_, [&](const PrimExpr& x) { return body(c * lanes_ + x); });
    });
  }

  Stmt WriteIfQuery(const PrimExpr& i, Stmt write) const {
    if (!queries_are_ragged_) return write;
    return Make<ir::IfStmtNode>(Query(i) < config_.num_queries, std::move(write), nullptr);
  }
  Stmt Write(const PrimExpr& i, const PrimExpr& h, PrimExpr value) const {
    return Store(out_, std::move(value), AttentionIndices(config_.layouts[3], batch_, Query(i), head_, h));
  }

  // The bias of a query of the tile and the key at a position; 0 for positions after the last key.
  PrimExpr Bias(const PrimExpr& i, const PrimExpr& position) const {
    PrimExpr bias = Load(bias_, BiasIndices(bias_->shape, config_, {batch_, head_, ReadableQuery(i), position}));
    if (!keys_are_ragged_ || !VariesByKey(bias_->shape, config_)) return bias;
    return ir::IfThenElse(position < config_.num_keys, bias, ir::MakeConst(bias_->dtype, 0));
  }

  // The score made from a product of a query and a key; `key` counts from the block's first.
  PrimExpr Score(const PrimExpr& product, const PrimExpr& i, const PrimExpr& key) const {
    PrimExpr score = Softcap(product * ir::MakeConst(kFloat32, config_.scale), config_.softcap);
    const PrimExpr position = first_key_ + key;
    if (bias_) {
      const PrimExpr bias = Bias(i, position);
      score = bias_->dtype.is_bool() ? ir::Select(bias, score, Replacement(config_, kFloat32)) : score + bias;
    }
    if (config_.causal != CausalMask::kNone) {
      score = ir::Select(position < CausalEnd(config_, Query(i)), score, CausallyHidden(config_, score));
    }
    const PrimExpr masked = IsMasked(i);
    if (masked != nullptr) score = ir::Select(masked, MinusInfinity(kFloat32), score);
    if (!keys_are_ragged_) return score;
    return ir::Select(position < config_.num_keys, score, MinusInfinity(kFloat32));
  }

  Stmt Scores() { return uses_dots_ ? ScoresByDots() : ScoresByPanels(); }

  Stmt ScoresByPanels() {
    const PrimExpr panel_head = batch_ * config_.num_key_heads + KeyHead();
    return InPairs("p", block_panels_, [&](const PrimExpr& p) {
      const Buffer acc = Local("acc", {Int64(rows_), Int64(kLanes)});
      const auto tile = [&](const std::function<Stmt(const PrimExpr&, const PrimExpr&)>& body) {
        return Unrolled("i", rows_, [&](const PrimExpr& i) {
          return Vector(kLanes, [&](const PrimExpr& l) { return body(i, l); });
        });
      };
      const PrimExpr panel = ir::FloorDiv(first_key_, Int64(kLanes)) + p;
      const Stmt clear = tile([&](const PrimExpr& i, const PrimExpr& l) {
        return Store(acc, ir::MakeConst(kFloat32, 0), {i, l});
      });
      const Stmt multiply = Serial("h", Int64(depth_), [&](const PrimExpr& h) {
        return tile([&](const PrimExpr& i, const PrimExpr& l) {
          const PrimExpr q = Load(query_, AttentionIndices(config_.layouts[0], batch_, ReadableQuery(i), head_, h));
          return Store(acc, Load(acc, {i, l}) + q * Load(panels_, {panel_head, panel, h, l}), {i, l});
        });
      });
      const Stmt write = tile([&](const PrimExpr& i, const PrimExpr& l) {
        return Store(scores_, Score(Load(acc, {i, l}), i, p * kLanes + l), {i, p * kLanes + l});
      });
      return Allocate(acc, Seq({clear, multiply, write}));
    });
  }

  // Dot products of one key at a time, in vectors along the depth, whose lanes are then added up in halves.
  Stmt ScoresByDots() {
    const int64_t lanes = GreatestDivisor(depth_, kLanes);
    return Serial("p", block_panels_, [&](const PrimExpr& p) {
      return Serial("l", Int64(kLanes), [&](const PrimExpr& l) {
        const PrimExpr key = p * kLanes + l;
        PrimExpr position = first_key_ + key;
        if (keys_are_ragged_) position = ir::Min(position, config_.num_keys - 1);
        return Unrolled("i", rows_, [&](const PrimExpr& i) {
          const Buffer acc = Local("acc", {Int64(lanes)});
          const Stmt clear =
              Vector(lanes, [&](const PrimExpr& x) { return Store(acc, ir::MakeConst(kFloat32, 0), {x}); });
          const Stmt multiply = Unrolled("h", depth_ / lanes, [&](const PrimExpr& h) {
            return Vector(lanes, [&](const PrimExpr& x) {
              const PrimExpr e = h * lanes + x;
              return Store(acc,
                           Load(acc, {x}) +
                               Load(query_, AttentionIndices(config_.layouts[0], batch_, ReadableQuery(i), head_, e)) *
                                   Load(key_, AttentionIndices(config_.layouts[1], batch_, position, KeyHead(), e)),
                           {x});
            });
          });
          const Stmt write = Store(scores_, Score(Load(acc, {Int64(0)}), i, key), {i, key});
          return Allocate(acc, Seq({clear, multiply, JoinLanes(acc, lanes, ir::BinaryOp::kAdd), write}));
        });
      });
    });
  }

  // buffer[0] := all lanes of buffer, combined in halves (an odd lane goes to the first).
  static Stmt JoinLanes(const Buffer& buffer, int64_t lanes, ir::BinaryOp op) {
    std::vector<Stmt> steps;
    while (lanes > 1) {
      const int64_t half = lanes / 2;
      const auto join = [&](const PrimExpr& to, const PrimExpr& from) {
        return Store(buffer, ir::MakeBinary(op, Load(buffer, {to}), Load(buffer, {from})), {to});
      };
      if (lanes % 2 != 0) steps.push_back(join(Int64(0), Int64(lanes - 1)));
      steps.push_back(Vector(half, [&](const PrimExpr& x) { return join(x, x + half); }));
      lanes = half;
    }
    return Seq(std::move(steps));
  }

  // scores := exp(scores - the maximum of their row), and the sum of each row. With several blocks: also the maximum so
  // far, and the factor by which earlier sums are scaled down.
  Stmt Exponentials(const Buffer& greatest, const Buffer& rescale) {
    const Buffer partial = Local("partial", {Int64(kLanes)});
    const Buffer total = Local("total", {Int64(kLanes)});
    const Buffer shift = Local("shift", {Int64(1)});
    const auto over_keys = [&](const std::function<Stmt(const PrimExpr& lane, const PrimExpr& key)>& body) {
      return Serial("p", block_panels_, [&](const PrimExpr& p) {
        return Vector(kLanes, [&](const PrimExpr& l) { return body(l, p * kLanes + l); });
      });
    };
    const auto fill = [&](const Buffer& buffer, const PrimExpr& value) {
      return Vector(kLanes, [&](const PrimExpr& l) { return Store(buffer, value, {l}); });
    };
    return Serial("i", Int64(rows_), [&](const PrimExpr& i) {
      std::vector<Stmt> stmts;
      stmts.push_back(fill(partial, MinusInfinity(kFloat32)));
      stmts.push_back(over_keys([&](const PrimExpr& l, const PrimExpr& key) {
        return Store(partial, ir::Max(Load(partial, {l}), Load(scores_, {i, key})), {l});
      }));
      stmts.push_back(JoinLanes(partial, kLanes, ir::BinaryOp::kMax));
      PrimExpr largest = Load(partial, {Int64(0)});
      if (greatest) largest = ir::Max(largest, Load(greatest, {i}));
      stmts.push_back(Store(shift, Shift(largest), {Int64(0)}));
      if (greatest) {
        stmts.push_back(Store(rescale, Exp(Load(greatest, {i}) - Load(shift, {Int64(0)})), {i}));
        stmts.push_back(Store(greatest, largest, {i}));
      }
      stmts.push_back(fill(total, ir::MakeConst(kFloat32, 0)));
      stmts.push_back(over_keys([&](const PrimExpr& l, const PrimExpr& key) {
        return Seq({Store(scores_, Exp(Load(scores_, {i, key}) - Load(shift, {Int64(0)})), {i, key}),
                    Store(total, Load(total, {l}) + Load(scores_, {i, key}), {l})});
      }));
      stmts.push_back(JoinLanes(total, kLanes, ir::BinaryOp::kAdd));
      PrimExpr sum = Load(total, {Int64(0)});
      if (greatest) sum = sum + Load(sum_, {i}) * Load(rescale, {i});
      stmts.push_back(Store(sum_, sum, {i}));
      return Allocate(partial, Allocate(total, Allocate(shift, Seq(std::move(stmts)))));
    });
  }

  // The block's exponentials times its values: into the result, or, where there is one block, divided by the sum and
  // written.
  Stmt Mix(const Buffer& result, const Buffer& rescale) {
    return InPairs("column", Int64(value_depth_ / (vectors_ * lanes_)), [&](const PrimExpr& column) {
      const Buffer acc = Local("mix", {Int64(rows_), Int64(vectors_), Int64(lanes_)});
      using TileBody = std::function<Stmt(const PrimExpr& i, const Indices& place, const PrimExpr& h)>;
      const auto row = [&](const PrimExpr& i, const TileBody& body) {
        return Unrolled("c", vectors_, [&](const PrimExpr& c) {
          return Vector(lanes_, [&](const PrimExpr& x) {
            return body(i, Indices{i, c, x}, (column * vectors_ + c) * lanes_ + x);
          });
        });
      };
      const auto tile = [&](const TileBody& body) {
        return Unrolled("i", rows_, [&](const PrimExpr& i) { return row(i, body); });
      };
      const Stmt start = tile([&](const PrimExpr& i, const Indices& place, const PrimExpr& h) {
        return Store(acc, result ? Load(result, {i, h}) * Load(rescale, {i}) : ir::MakeConst(kFloat32, 0), place);
      });
      const auto products = [&](const PrimExpr& key) {
        return tile([&](const PrimExpr& i, const Indices& place, const PrimExpr& h) {
          const PrimExpr position = first_key_ + key;
          const PrimExpr value =
              packs_values_ ? Load(columns_, {batch_ * config_.num_key_heads + KeyHead(), column, position,
                                              place[1] * lanes_ + place[2]})
                            : Load(value_, AttentionIndices(config_.layouts[2], batch_, position, KeyHead(), h));
          return Store(acc, Load(acc, place) + Load(scores_, {i, key}) * value, place);
        });
      };
      // Panels of keys, and the keys of the last one that has fewer.
      const auto panels = [&](const PrimExpr& count) {
        return Serial("p", count, [&](const PrimExpr& p) {
          return Serial("l", Int64(kLanes), [&](const PrimExpr& l) { return products(p * kLanes + l); });
        });
      };
      Stmt add = panels(block_panels_);
      if (keys_are_ragged_) {
        const PrimExpr keys = ir::Min(block_panels_ * kLanes, config_.num_keys - first_key_);
        const PrimExpr whole = ir::FloorDiv(keys, Int64(kLanes));
        add = Seq({panels(whole), Serial("l", keys - whole * kLanes,
                                         [&](const PrimExpr& l) { return products(whole * kLanes + l); })});
      }
      const TileBody keep = [&](const PrimExpr& i, const Indices& place, const PrimExpr& h) {
        if (result) return Store(result, Load(acc, place), {i, h});
        return Write(i, h, Load(acc, place) * Inverse(config_, Load(sum_, {i}), IsMasked(i)));
      };
      const Stmt finish = Unrolled(
          "i", rows_, [&](const PrimExpr& i) { return result ? row(i, keep) : WriteIfQuery(i, row(i, keep)); });
      return Allocate(acc, Seq({start, add, finish}));
    });
  }

  const Buffer query_, key_, value_, out_;
  Buffer bias_;
  const AttentionConfig& config_;
  int64_t depth_, value_depth_;
  int64_t rows_;             // queries of a tile
  int64_t key_block_;        // keys whose scores are kept at once
  int64_t lanes_, vectors_;  // of a tile's result: vectors * lanes values at a time
  bool uses_dots_, packs_values_, queries_are_ragged_, keys_are_ragged_, is_single_block_;
  PrimExpr num_tiles_, num_panels_;
  Buffer panels_, columns_, poison_, scores_, sum_, visible_;
  // The place in the loops that is being built.
  PrimExpr batch_, head_, row_, first_key_, block_panels_;
};

}  // namespace

std::vector<ir::Stmt> FusedAttention(const std::vector<ir::Buffer>& inputs, const ir::Buffer& out,
                                     const AttentionConfig& config) {
  return {FusedKernel(inputs, out, config).Build()};
}

}  // namespace ingot::op::topi
