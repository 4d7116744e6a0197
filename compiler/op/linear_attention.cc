// Linear attention: instead of keys and values a matrix per head is kept, which each step decays, corrects and adds to.
// For head h with its row of a step in lower case and the state S [depth, value depth]:
//   S := S * factor                         (rules "gated" and "gated_delta"; a factor per head or per row of S)
//   v := rate * (v - S^T k)                 (rules "delta" and "gated_delta")
//   S := S + k v^T,  y := scale * S^T q     (for each query head that shares the head)
//
// The kernel is a PrimFunc that is built scheduled. The columns of S do not depend on each other, so that a task is a
// few tiles of S, [depth, lanes] each, which lie side by side in a workspace and stay in the first-level cache for all
// steps. A step passes over a tile twice: once for S^T k, and once for the new S and the product with the first query
// head; further query heads take a pass each.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

using ir::ForKind;
using ir::Int64;
using ir::Intrinsic;

// The operands' sizes; batch and steps are the query's dims.
struct HeadSizes {
  int64_t query_heads, key_heads, depth, value_depth;
  bool is_gated, is_corrected;
  bool has_factor_per_row = false, has_rate_per_head = false;
  double scale;

  int64_t group() const { return query_heads / key_heads; }
  size_t rate() const { return is_gated ? 5 : 4; }
};

Result<HeadSizes> ReadHeads(const ir::Call& call) {
  const std::string& rule = call->attrs.GetString("update_rule");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    return OpError(
        call, "update_rule: expected \"linear\", \"gated\", \"delta\" or \"gated_delta\", got \"" + rule + "\"");
  }
  HeadSizes s{};
  s.is_gated = rule == "gated" || rule == "gated_delta";
  s.is_corrected = rule == "delta" || rule == "gated_delta";
  s.query_heads = call->attrs.GetInt("query_heads");
  s.key_heads = call->attrs.GetInt("key_heads");
  s.scale = call->attrs.GetFloat("scale");
  constexpr int64_t kMost = 1 << 20;
  if (s.key_heads < 1 || s.query_heads < 1 || s.query_heads > kMost || s.query_heads % s.key_heads != 0) {
    return OpError(call, "expected query_heads that are a multiple of key_heads, got " + std::to_string(s.query_heads) +
                             " and " + std::to_string(s.key_heads));
  }
  const size_t expected = 4 + (s.is_gated ? 1 : 0) + (s.is_corrected ? 1 : 0);
  if (call->args.size() != expected) {
    return OpError(call, "update_rule \"" + rule + "\": expected " + std::to_string(expected) + " arguments, got " +
                             std::to_string(call->args.size()));
  }
  std::vector<ir::TensorType> types;
  for (size_t i = 0; i < call->args.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(ir::TensorType type, TensorArg(call, i));
    if (!type->dims || !type->dtype) return OpError(call, "every argument needs a known shape and dtype");
    if (type->rank != (i == 3 ? 4 : 3)) {
      return OpError(call, "expected a state of rank 4 and other arguments of rank 3, got " + Describe(type));
    }
    types.push_back(std::move(type));
    if (types[i]->dtype != types[0]->dtype) {
      return OpError(call, "expected one dtype, got " + Describe(types[0]) + " and " + Describe(types[i]));
    }
  }
  if (*types[0]->dtype != DataType::Float(32) && *types[0]->dtype != DataType::Float(64)) {
    return OpError(call, "expected float32 or float64, got " + Describe(types[0]));
  }
  const auto last = [&](size_t i) { return ir::AsConstInt(types[i]->dims->back()).value_or(0); };
  const auto depth_of = [&](size_t i, int64_t heads) {
    return last(i) > 0 && last(i) % heads == 0 ? last(i) / heads : 0;
  };
  s.depth = depth_of(0, s.query_heads);
  s.value_depth = depth_of(2, s.key_heads);
  const Dims& state = *types[3]->dims;
  const bool fits = s.depth > 0 && s.value_depth > 0 && depth_of(1, s.key_heads) == s.depth && s.depth <= kMost &&
                    s.value_depth <= kMost && ir::IsConstInt(state[1], s.key_heads) &&
                    ir::IsConstInt(state[2], s.depth) && ir::IsConstInt(state[3], s.value_depth);
  if (!fits) {
    return OpError(call, "expected heads of constant depth that fit the state, got " + Describe(types[0]) + ", " +
                             Describe(types[1]) + ", " + Describe(types[2]) + " and " + Describe(types[3]));
  }
  if (s.is_gated) {
    s.has_factor_per_row = last(4) != s.key_heads;
    if (s.has_factor_per_row && last(4) != s.key_heads * s.depth) {
      return OpError(call, "expected factors per head or per element of a key, got " + Describe(types[4]));
    }
  }
  if (s.is_corrected) {
    s.has_rate_per_head = last(s.rate()) != 1;
    if (s.has_rate_per_head && last(s.rate()) != s.key_heads) {
      return OpError(call, "expected one rate or one per head, got " + Describe(types[s.rate()]));
    }
  }
  return s;
}

Result<ir::Type> InferLinearAttention(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const HeadSizes s, ReadHeads(call));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType query, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType state, TensorArg(call, 3));
  for (size_t i = 1; i < call->args.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType other, TensorArg(call, i));
    const bool differs = DimsDiffer((*other->dims)[0], (*query->dims)[0]) ||
                         (i != 3 && DimsDiffer((*other->dims)[1], (*query->dims)[1]));
    if (differs) {
      return OpError(call, "expected one batch and length, got " + Describe(query) + " and " + Describe(other));
    }
  }
  Dims dims = *query->dims;
  dims[2] = Int64(s.query_heads * s.value_depth);
  Dims present = *state->dims;
  present[0] = dims[0];
  std::vector<ir::Type> results = {TensorOf(std::move(dims), query->dtype, query),
                                   TensorOf(std::move(present), query->dtype, query)};
  return ir::Type(ir::Make<ir::TupleTypeNode>(std::move(results)));
}

Result<std::vector<ReferenceTensor>> ReferenceLinearAttention(const ir::Call& call,
                                                              std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const HeadSizes s, ReadHeads(call));
  const int64_t batch = inputs[0].dims[0], steps = inputs[0].dims[1];
  std::vector<ReferenceTensor> outputs = {NewReference(inputs[0].dtype, {batch, steps, s.query_heads * s.value_depth}),
                                          NewReference(inputs[0].dtype, inputs[3].dims)};
  const auto at = [&](size_t input, int64_t row, int64_t column) {
    return GetNumber(inputs[input], row * inputs[input].dims[2] + column);
  };
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < s.key_heads; ++h) {
      const int64_t base = (b * s.key_heads + h) * s.depth * s.value_depth;
      for (int64_t m = 0; m < s.value_depth; ++m) {
        std::vector<double> state;
        for (int64_t d = 0; d < s.depth; ++d) state.push_back(GetNumber(inputs[3], base + d * s.value_depth + m));
        for (int64_t row = b * steps; row < (b + 1) * steps; ++row) {
          double known = 0, v = at(2, row, h * s.value_depth + m);
          for (int64_t d = 0; d < s.depth; ++d) {
            double& x = state[static_cast<size_t>(d)];
            if (s.is_gated) x *= at(4, row, s.has_factor_per_row ? h * s.depth + d : h);
            known += x * at(1, row, h * s.depth + d);
          }
          if (s.is_corrected) v = at(s.rate(), row, s.has_rate_per_head ? h : 0) * (v - known);
          for (int64_t d = 0; d < s.depth; ++d) state[static_cast<size_t>(d)] += at(1, row, h * s.depth + d) * v;
          for (int64_t q = h * s.group(); q < (h + 1) * s.group(); ++q) {
            double y = 0;
            for (int64_t d = 0; d < s.depth; ++d) y += state[static_cast<size_t>(d)] * at(0, row, q * s.depth + d);
            SetNumber(outputs[0], (row * s.query_heads + q) * s.value_depth + m, s.scale * y);
          }
        }
        for (int64_t d = 0; d < s.depth; ++d) {
          SetNumber(outputs[1], base + d * s.value_depth + m, state[static_cast<size_t>(d)]);
        }
      }
    }
  }
  return outputs;
}

// ---- The kernel

constexpr int64_t kWidestTile = 128;                // bytes of a row: registers hold two rows and the sums
constexpr int64_t kTaskProducts = int64_t{1} << 17;  // multiplications that are worth a task

using StmtOf = std::function<Stmt(const PrimExpr&)>;

Stmt LoopOfKind(const char* name, PrimExpr extent, ForKind kind, const StmtOf& body) {
  const ir::PrimVar var = ir::MakePrimVar(name);
  Stmt inside = body(var);
  return ir::Make<ir::ForNode>(var, Int64(0), std::move(extent), kind, std::move(inside));
}

// The columns [first, first + count * lanes) of all states, in tiles of so many lanes.
class TileScan {
 public:
  TileScan(const HeadSizes& s, const Buffers& inputs, const Buffers& outputs, int64_t first, int64_t count,
           int64_t lanes)
      : s_(s),
        inputs_(inputs),
        outputs_(outputs),
        first_(first),
        count_(count),
        lanes_(lanes),
        batch_(inputs[0]->shape[0]),
        steps_(inputs[0]->shape[1]),
        dtype_(inputs[0]->dtype),
        units_(SimplifyDim(batch_ * Int64(s.key_heads * count))),
        tiles_(ir::MakeBuffer("tiles", dtype_, {units_, Int64(s.depth), Int64(lanes)})) {}

  Stmt Run() const {
    const PrimExpr products = units_ * steps_ * Int64(3 * s_.depth * lanes_);
    const PrimExpr wanted = ir::Max(ir::Min(ir::FloorDiv(products, Int64(kTaskProducts)), units_), Int64(1));
    const PrimExpr per_task = SimplifyDim(ir::FloorDiv(units_ + wanted - 1, wanted));
    const PrimExpr tasks = SimplifyDim(wanted);  // some may have no units: how many do is a long formula
    Stmt scan;
    if (ir::IsConstInt(tasks, 1)) {
      scan = LoopOfKind("unit", units_, ForKind::kSerial, [&](const PrimExpr& unit) { return Unit(unit); });
    } else {
      scan = LoopOfKind("task", tasks, ForKind::kParallel, [&](const PrimExpr& task) {
        const PrimExpr begin = task * per_task;
        return LoopOfKind("unit", ir::Max(ir::Min(per_task, units_ - begin), Int64(0)), ForKind::kSerial,
                          [&](const PrimExpr& unit) { return Unit(begin + unit); });
      });
    }
    return ir::Make<ir::AllocateNode>(tiles_, std::move(scan));
  }

 private:
  // Where a tile lies.
  struct Place {
    PrimExpr unit, b, h, column;
  };

  Stmt Lanes(const StmtOf& body) const {
    return LoopOfKind("l", Int64(lanes_), lanes_ == 1 ? ForKind::kSerial : ForKind::kVectorized, body);
  }
  // Rows of a tile, two at a time.
  Stmt Rows(const StmtOf& body) const {
    constexpr int64_t kUnroll = 2;
    std::vector<Stmt> parts;
    if (s_.depth >= kUnroll) {
      parts.push_back(LoopOfKind("d", Int64(s_.depth / kUnroll), ForKind::kSerial, [&](const PrimExpr& d) {
        return LoopOfKind("u", Int64(kUnroll), ForKind::kUnrolled,
                          [&](const PrimExpr& u) { return body(d * kUnroll + u); });
      }));
    }
    if (s_.depth % kUnroll != 0) parts.push_back(body(Int64(s_.depth - 1)));
    return ir::MakeSeq(std::move(parts));
  }
  Buffer Register(const char* name) const { return ir::MakeBuffer(name, dtype_, {Int64(lanes_)}, "local"); }
  PrimExpr Fma(PrimExpr a, PrimExpr b, PrimExpr sum) const {
    return ir::CallIntrinsic(Intrinsic::kFma, {std::move(a), std::move(b), std::move(sum)});
  }

  Stmt Unit(const PrimExpr& unit) const {
    const PrimExpr panel = ir::FloorMod(unit, Int64(count_)), head = ir::FloorDiv(unit, Int64(count_));
    return Let("h", ir::FloorMod(head, Int64(s_.key_heads)), [&](const PrimExpr& h) {
      return Let("b", ir::FloorDiv(head, Int64(s_.key_heads)), [&](const PrimExpr& b) {
        return Let("column", panel * lanes_ + Int64(first_), [&](const PrimExpr& column) {
          const Place at{unit, b, h, column};
          const Stmt take = Rows([&](const PrimExpr& d) {
            return Lanes([&](const PrimExpr& l) {
              return Store(tiles_, Load(inputs_[3], {b, h, d, column + l}), {unit, d, l});
            });
          });
          const Stmt steps =
              LoopOfKind("t", steps_, ForKind::kSerial, [&](const PrimExpr& t) { return Step(at, t); });
          const Stmt give = Rows([&](const PrimExpr& d) {
            return Lanes([&](const PrimExpr& l) {
              return Store(outputs_[1], Load(tiles_, {unit, d, l}), {b, h, d, column + l});
            });
          });
          return ir::MakeSeq({take, steps, give});
        });
      });
    });
  }

  PrimExpr Key(const Place& at, const PrimExpr& t, const PrimExpr& d) const {
    return Load(inputs_[1], {at.b, t, at.h * s_.depth + d});
  }
  // A row of the tile after its decay.
  PrimExpr Decayed(const Place& at, const PrimExpr& t, const PrimExpr& factor, const PrimExpr& d,
                   const PrimExpr& l) const {
    const PrimExpr x = Load(tiles_, {at.unit, d, l});
    if (!s_.is_gated) return x;
    return x * (s_.has_factor_per_row ? Load(inputs_[4], {at.b, t, at.h * s_.depth + d}) : factor);
  }

  Stmt Step(const Place& at, const PrimExpr& t) const {
    if (!s_.is_gated || s_.has_factor_per_row) return StepWith(at, t, nullptr);
    return Let("factor", Load(inputs_[4], {at.b, t, at.h}),
               [&](const PrimExpr& factor) { return StepWith(at, t, factor); });
  }

  Stmt StepWith(const Place& at, const PrimExpr& t, const PrimExpr& factor) const {
    const Buffer v = Register("v"), sum = Register("sum");
    const auto value = [&](const PrimExpr& l) {
      return Load(inputs_[2], {at.b, t, at.h * s_.value_depth + at.column + l});
    };
    std::vector<Stmt> parts;
    if (s_.is_corrected) {
      parts.push_back(Clear(sum));
      parts.push_back(Rows([&](const PrimExpr& d) {
        return Lanes([&](const PrimExpr& l) {
          return Store(sum, Fma(Decayed(at, t, factor, d, l), Key(at, t, d), Load(sum, {l})), {l});
        });
      }));
      const PrimExpr rate = Load(inputs_[s_.rate()], {at.b, t, s_.has_rate_per_head ? at.h : Int64(0)});
      parts.push_back(Lanes([&](const PrimExpr& l) { return Store(v, rate * (value(l) - Load(sum, {l})), {l}); }));
    } else {
      parts.push_back(Lanes([&](const PrimExpr& l) { return Store(v, value(l), {l}); }));
    }
    parts.push_back(Read(at, t, Int64(0), sum, [&](const PrimExpr& d) {
      return Lanes([&](const PrimExpr& l) {
        return Store(tiles_, Fma(Key(at, t, d), Load(v, {l}), Decayed(at, t, factor, d, l)), {at.unit, d, l});
      });
    }));
    if (s_.group() > 1) {
      parts.push_back(LoopOfKind("j", Int64(s_.group() - 1), ForKind::kSerial,
                                 [&](const PrimExpr& j) { return Read(at, t, j + 1, sum, nullptr); }));
    }
    return ir::Make<ir::AllocateNode>(v, ir::Make<ir::AllocateNode>(sum, ir::MakeSeq(std::move(parts))));
  }

  Stmt Clear(const Buffer& sum) const {
    return Lanes([&](const PrimExpr& l) { return Store(sum, ir::MakeConst(dtype_, 0), {l}); });
  }
  // The product with query head j of the group, behind a statement for each row of the tile.
  Stmt Read(const Place& at, const PrimExpr& t, const PrimExpr& j, const Buffer& sum, const StmtOf& before) const {
    const PrimExpr head = at.h * s_.group() + j;
    const Stmt rows = Rows([&](const PrimExpr& d) {
      const PrimExpr query = Load(inputs_[0], {at.b, t, head * s_.depth + d});
      const Stmt add = Lanes([&](const PrimExpr& l) {
        return Store(sum, Fma(Load(tiles_, {at.unit, d, l}), query, Load(sum, {l})), {l});
      });
      return before ? ir::MakeSeq({before(d), add}) : add;
    });
    const Stmt give = Lanes([&](const PrimExpr& l) {
      return Store(outputs_[0], Load(sum, {l}) * ir::MakeConst(dtype_, s_.scale),
                   {at.b, t, head * s_.value_depth + at.column + l});
    });
    return ir::MakeSeq({Clear(sum), rows, give});
  }

  const HeadSizes& s_;
  const Buffers &inputs_, &outputs_;
  const int64_t first_, count_, lanes_;
  const PrimExpr batch_, steps_;
  const DataType dtype_;
  const PrimExpr units_;
  const Buffer tiles_;
};

// Whole tiles of the widest row, and what is left over in halves of it.
std::vector<Stmt> LinearAttentionScans(const HeadSizes& s, const Buffers& inputs, const Buffers& outputs) {
  std::vector<Stmt> scans;
  int64_t first = 0;
  for (int64_t lanes = kWidestTile / (inputs[0]->dtype.bits / 8); lanes > 0; lanes /= 2) {
    const int64_t count = (s.value_depth - first) / lanes;
    if (count == 0) continue;
    scans.push_back(TileScan(s, inputs, outputs, first, count, lanes).Run());
    first += count * lanes;
  }
  return scans;
}

Result<ir::PrimFunc> BuildLinearAttention(const ir::Call& call, const Target&) {
  INGOT_ASSIGN_OR_RETURN(const HeadSizes s, ReadHeads(call));
  return BuildFromStatements(
      call,
      [&](const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
        return Statements(LinearAttentionScans(s, inputs, outputs));
      },
      {"y", "present_state"});
}

double LinearAttentionCost(const ir::Call& call, const Target&) {
  const auto* state = ir::As<ir::TensorTypeNode>(call->args[3]->type);
  const auto depth = ir::AsConstInt((*state->dims)[2]);
  return 3 * EstimateElements(call->type) * static_cast<double>(depth.value_or(1));
}

}  // namespace

std::vector<OpRow> LinearAttentionOps() {
  return {{.name = "nn.linear_attention",
           .summary = "attention by a state per head that each step decays, corrects and adds to",
           .arg_names = {"query", "key", "value", "state", "factors", "rates"},
           .num_optional_args = 2,
           .attrs = {{"query_heads", AttrType::kInt, {}, true},
                     {"key_heads", AttrType::kInt, {}, true},
                     {"scale", AttrType::kFloat, {}, true},
                     {"update_rule", AttrType::kString, "linear"}},
           .infer = InferLinearAttention,
           .reference = ReferenceLinearAttention,
           .implementations = {{"scan", Always, LinearAttentionCost, {}, BuildLinearAttention}},
           .cases = {.rank0 = false, .dtypes = {DataType::Float(32), DataType::Float(64)}}}};
}

}  // namespace ingot::op
