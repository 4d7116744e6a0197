// The inputs of the graph: what --params and --input-shape say of them, their types, and the function's parameters.
#include "compiler/importer/graph_inputs.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/importer/packed_values.h"
#include "compiler/ir/float_format.h"
#include "compiler/op/packed_elements.h"
#include "runtime/suggest.h"
#include "runtime/tensor.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;

namespace {

// Whether elements are the numbers of a packed integer dtype, as tensor files have them, or places of strings.
bool HoldsNumbersOf(DataType packed, const ir::ConstantData& data) {
  if (packed == kStringElement) return data.dtype() == HeldDataType(packed);
  if (!op::IsPackedElement(packed) || !packed.is_integral() || data.dtype() != op::ByteDataType(packed)) return false;
  return std::ranges::all_of(data.bytes(), [&](std::byte byte) {
    const auto bits = static_cast<uint8_t>(byte);
    const int64_t number = packed.is_int() ? static_cast<int8_t>(bits) : int64_t{bits};
    return ir::WrapInt(packed, number) == number;
  });
}

}  // namespace

// Binds inputs to the constants that the options give.
Status GraphInputs::BindConstants(const OnnxGraph& graph, Scope& scope) const {
  std::vector<std::string_view> names;
  for (const OnnxValueInfo& info : graph.inputs) names.push_back(info.name);
  for (const auto& [name, data] : options_.constants) {
    const auto input = std::ranges::find(graph.inputs, name, &OnnxValueInfo::name);
    if (input == graph.inputs.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "--params: there is no input \"" + name + "\"" + DidYouMean(name, names));
    }
    const std::vector<OnnxDim> dims = input->dims.value_or(std::vector<OnnxDim>());
    const bool is_held = input->dtype && HoldsNumbersOf(*input->dtype, *data);
    bool fits =
        (input->dtype == data->dtype() || is_held) && (!input->dims.has_value() || dims.size() == data->dims().size());
    for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i].value.value_or(data->dims()[i]) == data->dims()[i];
    if (!fits) {
      return Status(StatusCode::kInvalidArgument, "--params: \"" + name + "\" does not fit its input: got " +
                                                      ShapeToString(data->dtype(), data->dims()));
    }
    INGOT_ASSIGN_OR_RETURN(ImportedValue value, ValueOfConstant(data, name));
    if (is_held) value.packed = *input->dtype;
    scope.Set(name, std::move(value));
  }
  return Status();
}

Status GraphInputs::MakeParameters(const OnnxGraph& graph, Scope& scope, SequenceBuilder& sequences) {
  // Up to IR version 3 initialisers are listed as inputs, too, and later ones that a caller may replace. They are no
  // parameters, unless --input-shape asks for one.
  for (const InputShape& shape : options_.input_shapes) {
    const bool is_input = std::ranges::find(graph.inputs, shape.input, &OnnxValueInfo::name) != graph.inputs.end();
    const bool is_given =
        std::ranges::any_of(options_.constants, [&](const auto& c) { return c.first == shape.input; });
    if (is_input && !is_given) scope.Forget(shape.input);
  }
  std::vector<const OnnxValueInfo*> inputs;
  std::vector<std::string_view> names;
  std::unordered_set<std::string> dim_names;
  for (const OnnxValueInfo& info : graph.inputs) {
    if (scope.Find(info.name) != nullptr) continue;
    inputs.push_back(&info);
    names.push_back(info.name);
    for (const OnnxDim& dim : info.dims.value_or(std::vector<OnnxDim>())) {
      if (!dim.value.has_value() && Identifier(dim.param) == dim.param) dim_names.insert(dim.param);
    }
  }
  for (const InputShape& shape : options_.input_shapes) {
    for (const InputShape::Dim& dim : shape.dims) {
      if (!dim.symbol.empty() && Identifier(dim.symbol) == dim.symbol) dim_names.insert(dim.symbol);
    }
  }
  symbols_.Announce(std::move(dim_names));
  std::unordered_map<std::string_view, const InputShape*> shapes;
  for (const InputShape& shape : options_.input_shapes) {
    const auto found = std::find(names.begin(), names.end(), shape.input);
    if (found == names.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "--input-shape: there is no input \"" + shape.input + "\"" + DidYouMean(shape.input, names));
    }
    if (!shapes.emplace(shape.input, &shape).second) {
      return Status(StatusCode::kInvalidArgument, "--input-shape names \"" + shape.input + "\" twice");
    }
    const std::optional<std::vector<OnnxDim>>& dims = inputs[found - names.begin()]->dims;
    for (size_t i = 0; dims.has_value() && i < std::min(dims->size(), shape.dims.size()); ++i) {
      const InputShape::Dim& dim = shape.dims[i];
      if ((*dims)[i].param.empty() || (!dim.value.has_value() && dim.symbol.empty())) continue;
      INGOT_RETURN_IF_ERROR(symbols_.Replace((*dims)[i].param, dim));
    }
  }
  FreeNames taken;
  for (const OnnxValueInfo* info : inputs) {
    const auto shape = shapes.find(info->name);
    INGOT_ASSIGN_OR_RETURN(const ir::Type type, TypeOf(*info, shape == shapes.end() ? nullptr : shape->second));
    const std::string name = taken.Take(Identifier(info->name));
    params_.push_back(ir::Make<ir::VarNode>(name, type));
    names_.push_back(info->name);
    if (type->kind == ir::TypeKind::kObject) sequences.Describe(params_.back(), ObjectInfo::Declared(*info));
    INGOT_RETURN_IF_ERROR(scope.Define(info->name, params_.back()));
  }
  return symbols_.Finish();
}

Result<ir::Type> GraphInputs::TypeOf(const OnnxValueInfo& info, const InputShape* override_shape) {
  const std::string where = "input \"" + info.name + "\"";
  const bool is_object = info.is_sequence || info.is_optional;
  if (!info.is_tensor && !is_object) {
    return Status(StatusCode::kUnsupportedModel,
                  where + " is no tensor and no sequence of tensors, which is not supported");
  }
  if (!info.dtype.has_value()) {
    return Status(StatusCode::kUnsupportedModel, where + " has a data type that is not supported");
  }
  if (is_object && op::IsPackedElement(*info.dtype)) {
    return Status(StatusCode::kUnsupportedModel,
                  where + " is a sequence of " + info.dtype->ToString() + ", which is not supported");
  }
  if (is_object) {
    if (override_shape == nullptr) return ir::Type(ir::Make<ir::ObjectTypeNode>());
    return Status(StatusCode::kInvalidArgument, "--input-shape: " + where + " is no tensor");
  }
  if (!info.dims.has_value() && override_shape == nullptr) {
    return Status(StatusCode::kUnsupportedModel,
                  where + " has no shape; give one with --input-shape " + info.name + "=...");
  }
  const size_t rank = info.dims.has_value() ? info.dims->size() : override_shape->dims.size();
  if (rank > static_cast<size_t>(kMaxRank))
    return Status(StatusCode::kUnsupportedModel, where + " has rank " + std::to_string(rank) + "; 8 is the limit");
  if (override_shape != nullptr && override_shape->dims.size() != rank) {
    return Status(StatusCode::kInvalidArgument, "--input-shape: " + where + " has rank " + std::to_string(rank) +
                                                    ", got " + std::to_string(override_shape->dims.size()) +
                                                    " dimensions");
  }
  std::vector<PrimExpr> dims;
  for (size_t i = 0; i < rank; ++i) {
    const OnnxDim declared = info.dims.has_value() ? (*info.dims)[i] : OnnxDim{};
    const InputShape::Dim given = override_shape == nullptr ? InputShape::Dim{} : override_shape->dims[i];
    if (declared.value.has_value()) {
      const bool differs = given.value.has_value() ? given.value != declared.value : !given.symbol.empty();
      if (differs) {
        return Status(StatusCode::kInvalidArgument, "--input-shape: dimension " + std::to_string(i) + " of " + where +
                                                        " is fixed to " + std::to_string(*declared.value) +
                                                        " by the model");
      }
      dims.push_back(ir::Int64(*declared.value));
    } else if (!declared.param.empty()) {
      INGOT_ASSIGN_OR_RETURN(dims.emplace_back(), symbols_.Named(declared.param));
    } else if (given.value.has_value()) {
      dims.push_back(ir::Int64(*given.value));
    } else if (!given.symbol.empty()) {
      INGOT_ASSIGN_OR_RETURN(dims.emplace_back(), symbols_.Given(given.symbol));
    } else {
      dims.push_back(symbols_.Fresh(Identifier(info.name) + "_dim_" + std::to_string(i)));
    }
  }
  // Elements of less than a byte are packed in parameters, as they are in the file.
  const DataType dtype = info.dtype == kStringElement ? HeldDataType(*info.dtype) : *info.dtype;
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

}  // namespace ingot::importer
