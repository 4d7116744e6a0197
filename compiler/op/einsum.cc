// einsum: the result sums, over all labels that it lacks, the products of the operands' elements at their labels.
#include "compiler/op/einsum.h"

#include <algorithm>
#include <map>

#include "compiler/op/broadcast.h"
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Status Malformed(std::string_view subscripts, const std::string& why) {
  return Status(StatusCode::kBadInput, "einsum \"" + std::string(subscripts) + "\": " + why);
}

// The labels of one term; `ellipsis` is the number of axes that "..." stands for.
Result<std::vector<int>> ParseTerm(std::string_view subscripts, std::string_view term, int ellipsis) {
  std::vector<int> labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i, 3) == "..." && !has_ellipsis) {
      for (int axis = ellipsis; axis > 0; --axis) labels.push_back(-axis);
      has_ellipsis = true;
      i += 2;
    } else if (IsLetter(term[i])) {
      labels.push_back(term[i]);
    } else {
      return Malformed(subscripts, "expected letters or one ellipsis in \"" + std::string(term) + "\"");
    }
  }
  return labels;
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> terms;
  for (;;) {
    const size_t comma = text.find(',');
    terms.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return terms;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<EinsumLabels> ParseEinsum(std::string_view subscripts, const std::vector<int>& ranks) {
  const size_t arrow = subscripts.find("->");
  const std::vector<std::string_view> terms = SplitAtCommas(subscripts.substr(0, arrow));
  if (terms.size() != ranks.size()) {
    return Malformed(subscripts,
                     "expected " + std::to_string(terms.size()) + " operands, got " + std::to_string(ranks.size()));
  }
  EinsumLabels labels;
  int widest = 0;  // ellipsis
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto letters = static_cast<int>(std::ranges::count_if(terms[i], IsLetter));
    const bool has_ellipsis = terms[i].find("...") != std::string_view::npos;
    const int ellipsis = has_ellipsis ? ranks[i] - letters : 0;
    if (letters + ellipsis != ranks[i] || ellipsis < 0) {
      return Malformed(subscripts,
                       "\"" + std::string(terms[i]) + "\" does not fit an operand of rank " + std::to_string(ranks[i]));
    }
    widest = std::max(widest, ellipsis);
    INGOT_ASSIGN_OR_RETURN(std::vector<int> term, ParseTerm(subscripts, terms[i], ellipsis));
    labels.inputs.push_back(std::move(term));
  }
  std::map<int, int> uses;
  for (const std::vector<int>& term : labels.inputs) {
    for (int label : term) ++uses[label];
  }
  if (arrow == std::string_view::npos) {
    for (const auto& [label, count] : uses) {
      if (label < 0 || count == 1) labels.output.push_back(label);
    }
    return labels;
  }
  INGOT_ASSIGN_OR_RETURN(labels.output, ParseTerm(subscripts, subscripts.substr(arrow + 2), widest));
  std::map<int, int> seen;
  for (int label : labels.output) {
    if (!uses.contains(label) || ++seen[label] > 1) {
      return Malformed(subscripts, "a label of the result is in no operand, or twice");
    }
  }
  return labels;
}

namespace {

Result<EinsumLabels> LabelsOf(const ir::Call& call, const std::vector<ir::TensorType>& operands) {
  std::vector<int> ranks;
  for (const ir::TensorType& operand : operands) ranks.push_back(operand->rank);
  Result<EinsumLabels> labels = ParseEinsum(call->attrs.GetString("subscripts"), ranks);
  if (!labels.ok()) return OpError(call, labels.status().message());
  return labels;
}

Result<ir::Type> InferEinsum(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<ir::TensorType> operands, TensorTupleArg(call, 0));
  if (operands.empty()) return OpError(call, "expected one operand at least");
  std::optional<DataType> dtype = operands[0]->dtype;
  for (const ir::TensorType& operand : operands) {
    INGOT_ASSIGN_OR_RETURN(dtype, CommonDataType(call, operands[0], operand));
    if (operand->rank < 0 || !operand->dims) return OpError(call, "every operand needs a known shape");
  }
  INGOT_ASSIGN_OR_RETURN(const EinsumLabels labels, LabelsOf(call, operands));
  std::map<int, ir::PrimExpr> extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < labels.inputs[i].size(); ++axis) {
      const ir::PrimExpr& dim = (*operands[i]->dims)[axis];
      ir::PrimExpr& known = extents.try_emplace(labels.inputs[i][axis], dim).first->second;
      const auto m = ir::AsConstInt(known), n = ir::AsConstInt(dim);
      if (m && n && *m != *n && *m != 1 && *n != 1) {
        return OpError(call, "one label stands for axes of " + Describe(known) + " and of " + Describe(dim));
      }
      known = BroadcastDim(known, dim);
    }
  }
  Dims dims;
  for (int label : labels.output) dims.push_back(extents.at(label));
  return TensorOf(std::move(dims), dtype, operands[0]);
}

// Labels that the result lacks, each once.
std::vector<int> SummedLabels(const EinsumLabels& labels) {
  std::vector<int> summed;
  for (const std::vector<int>& term : labels.inputs) {
    for (int label : term) {
      const bool is_kept = std::ranges::find(labels.output, label) != labels.output.end();
      if (!is_kept && std::ranges::find(summed, label) == summed.end()) summed.push_back(label);
    }
  }
  return summed;
}

std::vector<int> RanksOf(std::span<const ReferenceTensor> inputs) {
  std::vector<int> ranks;
  for (const ReferenceTensor& input : inputs) ranks.push_back(static_cast<int>(input.dims.size()));
  return ranks;
}

Result<std::vector<ReferenceTensor>> ReferenceEinsum(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const EinsumLabels labels, ParseEinsum(call->attrs.GetString("subscripts"), RanksOf(inputs)));
  std::map<int, int64_t> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t axis = 0; axis < labels.inputs[i].size(); ++axis) {
      int64_t& extent = extents.try_emplace(labels.inputs[i][axis], 1).first->second;
      if (inputs[i].dims[axis] != 1) extent = inputs[i].dims[axis];
    }
  }
  const std::vector<int> summed = SummedLabels(labels);
  std::vector<int64_t> out_dims, sum_dims;
  for (int label : labels.output) out_dims.push_back(extents.at(label));
  for (int label : summed) sum_dims.push_back(extents.at(label));
  ReferenceTensor out = NewReference(inputs[0].dtype, out_dims);
  const bool is_float = out.dtype.is_floating();
  std::map<int, int64_t> at;
  ForEachIndex(out_dims, [&](const Index& kept, int64_t flat) {
    for (size_t i = 0; i < kept.size(); ++i) at[labels.output[i]] = kept[i];
    double sum = 0;
    int64_t exact = 0;
    ForEachIndex(sum_dims, [&](const Index& index, int64_t) {
      for (size_t i = 0; i < index.size(); ++i) at[summed[i]] = index[i];
      double product = 1;
      int64_t exact_product = 1;
      for (size_t i = 0; i < inputs.size(); ++i) {
        Index position;
        for (size_t axis = 0; axis < labels.inputs[i].size(); ++axis) {
          position.push_back(inputs[i].dims[axis] == 1 ? 0 : at[labels.inputs[i][axis]]);
        }
        const auto element = static_cast<size_t>(Flatten(inputs[i].dims, position));
        if (is_float) product *= inputs[i].floats[element];
        if (!is_float) exact_product *= inputs[i].ints[element];
      }
      sum += product;
      exact += exact_product;
    });
    if (is_float) SetNumber(out, flat, sum);
    if (!is_float) out.ints[static_cast<size_t>(flat)] = exact;
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineEinsum(const TeArgs& args) {
  std::vector<int> ranks;
  for (const te::Tensor& input : args.inputs()) ranks.push_back(input.rank());
  const Result<EinsumLabels> parsed = ParseEinsum(args.call()->attrs.GetString("subscripts"), ranks);
  INGOT_CHECK(parsed.ok(), "type inference accepted the subscripts");
  const EinsumLabels& labels = *parsed;
  // Sums of narrow floats add up in float32.
  const DataType dtype = args.out_dtype();
  const bool is_narrow = dtype.is_floating() && dtype.bits < 32;
  const DataType sum_dtype = is_narrow ? DataType::Float(32) : dtype;
  std::map<int, ir::PrimExpr> extents;
  for (size_t i = 0; i < labels.inputs.size(); ++i) {
    for (size_t axis = 0; axis < labels.inputs[i].size(); ++axis) {
      const ir::PrimExpr& dim = args.input(i).shape()[axis];
      ir::PrimExpr& extent = extents.try_emplace(labels.inputs[i][axis], dim).first->second;
      extent = BroadcastDim(extent, dim);
    }
  }
  std::map<int, ir::PrimExpr> at;
  std::vector<ir::IterVar> axes;
  for (int label : SummedLabels(labels)) {
    axes.push_back(te::ReduceAxis(extents.at(label), "k" + std::to_string(axes.size())));
    at[label] = axes.back()->var;
  }
  const te::Tensor sum = te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        for (size_t i = 0; i < out.size(); ++i) at[labels.output[i]] = out[i];
        ir::PrimExpr product;
        for (size_t i = 0; i < labels.inputs.size(); ++i) {
          te::Indices index;
          for (size_t axis = 0; axis < labels.inputs[i].size(); ++axis) {
            const int label = labels.inputs[i][axis];
            index.push_back(BroadcastIndex(args.input(i).shape()[axis], extents.at(label), at[label]));
          }
          const ir::PrimExpr element = ir::Cast(sum_dtype, args.input(i)(index));
          product = product == nullptr ? element : product * element;
        }
        return topi::ReduceOver(topi::Reducer::kSum, product, axes);
      },
      "einsum");
  return is_narrow ? topi::CastTo(sum, dtype) : sum;
}

double EinsumCost(const ir::Call& call, const Target& target) {
  double cost = ElementsOfResult(call, target);
  for (const ir::Expr& input : InputTensors(call)) cost *= EstimateElements(input->type);
  return cost;
}

}  // namespace

std::vector<OpRow> EinsumOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "einsum",
                  .summary = "sums of products over the labels that the result lacks",
                  .arg_names = {"operands"},
                  .attrs = {{"subscripts", AttrType::kString, {}, true}},
                  .fusion = FusionClass::kOutFusible,
                  .infer = InferEinsum,
                  .reference = ReferenceEinsum,
                  .implementations = {{"direct", Always, EinsumCost, {}, Build<DefineEinsum>}},
                  .cases = {.broadcast = true,
                            .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16),
                                       DataType::Bfloat16(), DataType::Int(32)}}});
  return rows;
}

}  // namespace ingot::op
