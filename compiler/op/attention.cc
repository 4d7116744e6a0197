// Scaled dot-product attention. Like Relax's nn.attention, operands are [batch, sequence, heads, depth] by default; the
// attribute `layouts` names other orders of these axes, so that transposes around the operator fold into it. A bias of
// bool says which keys are seen: `hidden` is the score of the others (-inf without it). `stepwise` asks for the result
// of the single steps also where something is not finite. The steps of ONNX's operator differ in two ways, each with a
// name of its own: `masked_gives_zero`, for a query that sees no key by its masks, and `scales_operands`, before they
// are multiplied (topi/attention.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/attention.h"
#include "compiler/op/topi/cuda_attention.h"

namespace ingot::op {
namespace {

using topi::AttentionConfig;
using topi::CausalMask;

constexpr std::array kOperands = {"query", "key", "value", "result"};

Result<std::array<std::string, 4>> LayoutsOf(const ir::Call& call) {
  std::array<std::string, 4> layouts;
  layouts.fill("BSNH");
  const ir::AttrValue* attr = call->attrs.Find("layouts");
  if (attr == nullptr || attr->is_none()) return layouts;
  const auto* list = attr->get<ir::AttrList>();
  if (list == nullptr || list->size() != layouts.size()) {
    return OpError(call, "layouts: expected those of query, key, value and result");
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    layouts[i] = *(*list)[i].get<std::string>();
    std::string sorted = layouts[i];
    std::ranges::sort(sorted);
    if (sorted != "BHNS") {
      return OpError(call, "layouts: expected an order of the letters B, S, N and H for the " +
                               std::string(kOperands[i]) + ", got \"" + layouts[i] + "\"");
    }
  }
  return layouts;
}

Result<CausalMask> CausalMaskOf(const ir::Call& call) {
  const ir::AttrValue* attr = call->attrs.Find("causal_mask");
  if (attr == nullptr || attr->is_none()) return CausalMask::kNone;
  const std::string& name = *attr->get<std::string>();
  if (name == "TopLeft") return CausalMask::kTopLeft;
  if (name == "BottomRight") return CausalMask::kBottomRight;
  return OpError(call, "causal_mask: expected \"TopLeft\" or \"BottomRight\", got \"" + name + "\"");
}

// Everything that a definition needs, in the call's own symbolic variables. The operands have dims.
Result<AttentionConfig> ConfigOf(const ir::Call& call) {
  AttentionConfig config;
  INGOT_ASSIGN_OR_RETURN(config.layouts, LayoutsOf(call));
  INGOT_ASSIGN_OR_RETURN(config.causal, CausalMaskOf(call));
  std::array<const ir::TensorTypeNode*, 3> operands;
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = ir::As<ir::TensorTypeNode>(call->args[i]->type);
  const auto dim = [&](size_t operand, char axis) {
    return (*operands[operand]->dims)[config.layouts[operand].find(axis)];
  };
  config.batch = dim(0, 'B');
  config.num_queries = dim(0, 'S');
  config.num_heads = dim(0, 'N');
  config.depth = dim(0, 'H');
  config.num_keys = dim(1, 'S');
  config.num_key_heads = dim(1, 'N');
  config.value_depth = dim(2, 'H');
  const auto expect_equal = [&](const char* what, const ir::PrimExpr& a, const ir::PrimExpr& b) -> Status {
    if (!DimsDiffer(a, b)) return Status();
    return OpError(call, std::string("expected one ") + what + ", got " + Describe(a) + " and " + Describe(b));
  };
  INGOT_RETURN_IF_ERROR(expect_equal("batch of queries and keys", config.batch, dim(1, 'B')));
  INGOT_RETURN_IF_ERROR(expect_equal("batch of queries and values", config.batch, dim(2, 'B')));
  INGOT_RETURN_IF_ERROR(expect_equal("depth of queries and keys", config.depth, dim(1, 'H')));
  INGOT_RETURN_IF_ERROR(expect_equal("number of keys and values", config.num_keys, dim(2, 'S')));
  INGOT_RETURN_IF_ERROR(expect_equal("number of heads of keys and values", config.num_key_heads, dim(2, 'N')));
  const auto heads = ir::AsConstInt(config.num_heads);
  const auto key_heads = ir::AsConstInt(config.num_key_heads);
  config.group = 1;
  if (heads && key_heads) {
    if (*key_heads > 0 ? *heads % *key_heads != 0 : *heads != 0) {
      return OpError(call, "expected a multiple of the " + std::to_string(*key_heads) + " heads of keys, got " +
                               std::to_string(*heads) + " heads of queries");
    }
    if (*key_heads > 0) config.group = std::max<int64_t>(*heads / *key_heads, 1);
  } else if (!DimsEqual(config.num_heads, config.num_key_heads)) {
    return OpError(call, "the number of queries' heads for each of the keys' is not known: " +
                             Describe(config.num_heads) + " and " + Describe(config.num_key_heads));
  }
  const ir::AttrValue* scale = call->attrs.Find("scale");
  if (scale != nullptr && !scale->is_none()) {
    config.scale = call->attrs.GetFloat("scale");
  } else {
    const auto depth = ir::AsConstInt(config.depth);
    if (!depth) return OpError(call, "scale: expected a number, since the depth is not known");
    config.scale = 1 / std::sqrt(static_cast<double>(*depth));
  }
  const ir::AttrValue* softcap = call->attrs.Find("softcap");
  config.softcap = softcap != nullptr && !softcap->is_none() ? call->attrs.GetFloat("softcap") : 0;
  const ir::AttrValue* hidden = call->attrs.Find("hidden");
  if (hidden != nullptr && !hidden->is_none()) config.hidden = call->attrs.GetFloat("hidden");
  const auto flag = [&](const char* name) { return call->attrs.Find(name) != nullptr && call->attrs.GetBool(name); };
  config.stepwise = flag("stepwise");
  config.masked_gives_zero = flag("masked_gives_zero");
  config.scales_operands = flag("scales_operands");
  return config;
}

Result<ir::Type> InferAttention(const ir::Call& call) {
  std::array<ir::TensorType, 3> operands;
  std::optional<DataType> dtype;
  for (size_t i = 0; i < operands.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(operands[i], TensorArg(call, i));
    if (operands[i]->dtype && !operands[i]->dtype->is_floating()) {
      return OpError(call, "expected floats, got " + Describe(operands[i]));
    }
    if (operands[i]->rank >= 0 && operands[i]->rank != 4) {
      return OpError(call, "expected 4 axes of the " + std::string(kOperands[i]) + ", got " + Describe(operands[i]));
    }
  }
  INGOT_ASSIGN_OR_RETURN(dtype, CommonDataType(call, operands[0], operands[1]));
  INGOT_RETURN_IF_ERROR(CommonDataType(call, operands[0], operands[2]).status());
  INGOT_RETURN_IF_ERROR(LayoutsOf(call).status());
  INGOT_RETURN_IF_ERROR(CausalMaskOf(call).status());
  for (const ir::TensorType& operand : operands) {
    if (!operand->dims) return TensorOfRank(4, dtype, operands[0]);
  }
  INGOT_ASSIGN_OR_RETURN(const AttentionConfig config, ConfigOf(call));
  if (HasArg(call, 3)) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType bias, TensorArg(call, 3));
    if (bias->dtype != DataType::Bool()) INGOT_RETURN_IF_ERROR(CommonDataType(call, operands[0], bias).status());
    if (!bias->dims) return OpError(call, "expected a bias of known shape, got " + Describe(bias));
    const Dims scores = {config.batch, config.num_heads, config.num_queries, config.num_keys};
    if (bias->rank > 4) return OpError(call, "expected at most 4 axes of the bias, got " + Describe(bias));
    for (int i = 0; i < bias->rank; ++i) {
      const ir::PrimExpr& dim = (*bias->dims)[static_cast<size_t>(i)];
      const ir::PrimExpr& whole = scores[scores.size() - bias->dims->size() + static_cast<size_t>(i)];
      if (!ir::IsConstInt(dim, 1) && DimsDiffer(dim, whole)) {
        return OpError(call, "expected a bias that broadcasts to [batch, heads, queries, keys], got " + Describe(bias));
      }
    }
  }
  return TensorOf(
      topi::AttentionIndices(config.layouts[3], config.batch, config.num_queries, config.num_heads, config.value_depth),
      dtype, operands[0]);
}

Result<std::vector<ReferenceTensor>> ReferenceAttention(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const AttentionConfig config, ConfigOf(call));
  // The element of an operand by batch, position, head and depth.
  const auto at = [&](size_t operand, const ReferenceTensor& tensor, int64_t b, int64_t s, int64_t n, int64_t h) {
    Index index;
    for (char axis : config.layouts[operand]) index.push_back(axis == 'B' ? b : axis == 'S' ? s : axis == 'N' ? n : h);
    return Flatten(tensor.dims, index);
  };
  const auto dim = [&](size_t operand, char axis) { return inputs[operand].dims[config.layouts[operand].find(axis)]; };
  const int64_t batch = dim(0, 'B'), queries = dim(0, 'S'), heads = dim(0, 'N'), depth = dim(0, 'H');
  const int64_t keys = dim(1, 'S'), value_depth = dim(2, 'H');
  const int64_t group = std::max<int64_t>(dim(1, 'N') > 0 ? heads / dim(1, 'N') : 1, 1);
  std::vector<int64_t> dims(4);
  for (size_t i = 0; i < 4; ++i) {
    const char axis = config.layouts[3][i];
    dims[i] = axis == 'B' ? batch : axis == 'S' ? queries : axis == 'N' ? heads : value_depth;
  }
  ReferenceTensor out = NewReference(inputs[0].dtype, dims);
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  // Rounds to the operands' dtype where the single steps would store the number.
  ReferenceTensor cell = NewReference(inputs[0].dtype, {1});
  const auto stored = [&](double x) {
    if (!config.stepwise) return x;
    if (cell.dtype == DataType::Float(32)) return static_cast<double>(static_cast<float>(x));
    SetNumber(cell, 0, x);
    return GetNumber(cell, 0);
  };
  ForEachIndex(std::vector<int64_t>{batch, heads, queries}, [&](const Index& index, int64_t) {
    const int64_t b = index[0], n = index[1], q = index[2];
    int64_t end = keys;
    if (config.causal == CausalMask::kTopLeft) end = q + 1;
    if (config.causal == CausalMask::kBottomRight) end = q + 1 + keys - queries;
    std::vector<double> scores;
    double greatest = -infinity;
    bool is_masked = config.masked_gives_zero;
    for (int64_t k = 0; k < keys; ++k) {
      double score = 0;
      for (int64_t h = 0; h < depth; ++h) {
        score += GetNumber(inputs[0], at(0, inputs[0], b, q, n, h)) *
                 GetNumber(inputs[1], at(1, inputs[1], b, k, n / group, h));
      }
      score = (config.stores_products() ? stored(score) : score) * config.scale;
      if (config.softcap != 0) score = config.softcap * std::tanh(score / config.softcap);
      score = stored(score);
      if (inputs.size() > 3) {
        const double bias = GetNumber(inputs[3], FlattenBroadcast(inputs[3].dims, std::vector<int64_t>{b, n, q, k}));
        if (!inputs[3].dtype.is_bool()) {
          score = stored(score + bias);
          if (k < end && bias != -infinity) is_masked = false;
        } else if (bias == 0) {
          score = config.hidden.value_or(-infinity);
          if (k < end && score != -infinity) is_masked = false;
        } else if (k < end) {
          is_masked = false;
        }
      } else if (k < end) {
        is_masked = false;
      }
      if (k >= end) score = config.hidden_keys_show() ? score - infinity : -infinity;
      greatest = std::isnan(score) || score > greatest ? score : greatest;
      scores.push_back(score);
    }
    if (is_masked) {
      std::fill(scores.begin(), scores.end(), -infinity);
      greatest = -infinity;
    }
    double sum = 0;
    for (double& score : scores) {
      score = greatest == -infinity ? 0 : std::exp(score - greatest);
      sum += score;
    }
    for (int64_t h = 0; h < value_depth; ++h) {
      double value = 0;
      for (int64_t k = 0; k < keys; ++k) {
        value += scores[static_cast<size_t>(k)] * GetNumber(inputs[2], at(2, inputs[2], b, k, n / group, h));
      }
      // Without any share the value is 0, or NaN where an element is not finite.
      const double unseen = config.stepwise && !is_masked && keys > 0 ? nan : value;
      SetNumber(out, at(3, out, b, q, n, h), sum == 0 ? unseen : value / sum);
    }
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

// The configuration of a checked call in the PrimFunc's own variables.
AttentionConfig OwnConfig(const TeArgs& args) {
  Result<AttentionConfig> config = ConfigOf(args.call());
  INGOT_CHECK(config.ok(), "type inference accepted the call");
  for (ir::PrimExpr* dim : {&config->batch, &config->num_heads, &config->num_key_heads, &config->num_queries,
                            &config->num_keys, &config->depth, &config->value_depth}) {
    *dim = args.Own(*dim);
  }
  return *std::move(config);
}

te::Tensor DefineAttention(const TeArgs& args) {
  return topi::Attention(args.inputs(), OwnConfig(args), args.out_dtype());
}

Result<ir::PrimFunc> BuildFused(const ir::Call& call, const Target&) {
  return BuildFromStatements(call, [](const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
    return topi::FusedAttention(inputs, outputs[0], OwnConfig(args));
  });
}

Result<ir::PrimFunc> BuildFusedForCuda(const ir::Call& call, const Target&) {
  return BuildFromStatements(call, [](const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
    return topi::CudaAttention(inputs, outputs[0], OwnConfig(args));
  });
}

// Nothing that is known to be empty, constant depths.
std::optional<AttentionConfig> FusedConfig(const ir::Call& call) {
  for (const ir::Expr& input : InputTensors(call)) {
    const auto* type = ir::As<ir::TensorTypeNode>(input->type);
    if (type == nullptr || !type->dtype || !type->dims) return std::nullopt;
    for (const ir::PrimExpr& dim : *type->dims) {
      if (ir::IsConstInt(dim, 0)) return std::nullopt;
    }
  }
  Result<AttentionConfig> config = ConfigOf(call);
  const bool is_known = config.ok() && ir::AsConstInt(config->depth) && ir::AsConstInt(config->value_depth);
  return is_known ? std::optional(*std::move(config)) : std::nullopt;
}
bool HasDataTypes(const ir::Call& call, std::initializer_list<DataType> dtypes) {
  return std::ranges::all_of(InputTensors(call), [&](const ir::Expr& input) {
    const DataType dtype = *ir::As<ir::TensorTypeNode>(input->type)->dtype;
    return dtype.is_bool() || std::ranges::find(dtypes, dtype) != dtypes.end();
  });
}
// float32 (and a mask).
bool CanFuse(const ir::Call& call, const Target& target) {
  return target.kind == Target::Kind::kCpu && FusedConfig(call) && HasDataTypes(call, {DataType::Float(32)});
}
// In float32, single steps are quicker where a few queries of few heads see many keys (on an H200, one query of 16 heads
// and 4,096 keys of 64 elements took 30 us so, 47 us fused).
bool CanFuseForCuda(const ir::Call& call, const Target& target) {
  constexpr int64_t kFewQueries = 16, kFewHeads = 64, kManyKeys = 1024;
  if (target.kind != Target::Kind::kCuda) return false;
  const std::optional<AttentionConfig> config = FusedConfig(call);
  if (!config) return false;
  const auto is_below = [](const ir::PrimExpr& dim, int64_t limit) {
    return ir::AsConstInt(dim).value_or(limit) < limit;
  };
  const bool has_few = is_below(config->num_queries, kFewQueries) && is_below(config->num_heads, kFewHeads) &&
                       is_below(config->batch, 2) && !is_below(config->num_keys, kManyKeys);
  if (has_few && HasDataTypes(call, {DataType::Float(32)})) return false;
  return topi::ChooseCudaAttentionTile(*config, *ir::As<ir::TensorTypeNode>(call->args[0]->type)->dtype).has_value();
}

double FusedCost(const ir::Call& call, const Target&) {
  return EstimateElements(call->args[0]->type) * EstimateElements(call->args[1]->type);
}
// The staged definition writes scores to memory and reads them back several times.
double StagedCost(const ir::Call& call, const Target& target) { return 4 * FusedCost(call, target) + 1; }

}  // namespace

std::vector<OpRow> AttentionOps() {
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "nn.attention",
       .summary = "softmax(scale * query key^T + bias) value, per head",
       .arg_names = {"query", "key", "value", "bias"},
       .num_optional_args = 1,
       .attrs = {{"scale", AttrType::kFloat},
                 {"causal_mask", AttrType::kString},
                 {"softcap", AttrType::kFloat, 0.0},
                 {"layouts", AttrType::kStrings},
                 {"hidden", AttrType::kFloat},
                 {"stepwise", AttrType::kBool, false},
                 {"masked_gives_zero", AttrType::kBool, false},
                 {"scales_operands", AttrType::kBool, false}},
       .infer = InferAttention,
       .reference = ReferenceAttention,
       .implementations = {{"fused", CanFuse, FusedCost, {}, BuildFused},
                           {"fused_cuda", CanFuseForCuda, FusedCost, {}, BuildFusedForCuda},
                           {"staged", Always, StagedCost, {}, Build<DefineAttention>}},
       .cases = {.rank0 = false,
                 .broadcast = true,
                 .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16()}}});
  return rows;
}

}  // namespace ingot::op
