// The graph importer: walks the nodes once, in order, keeping what each ONNX value name stands for. A node that cannot
// be imported is noted, and its outputs become stand-ins of the type that the file declares for them (or of none), so
// that the walk goes on and finds every other such node; a stand-in never reaches a module, since there is none then.
#include "compiler/importer/onnx.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/shape_values.h"
#include "compiler/op/registry.h"
#include "runtime/suggest.h"
#include "runtime/tensor.h"

namespace ingot::importer {

using ir::Expr;
using ir::PrimExpr;

namespace {

// A name that the text form can write as it is.
std::string Identifier(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += is_word ? c : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, "v");
  return out;
}

std::string DimText(const PrimExpr& dim) {
  if (const int64_t* value = ir::AsConstInt(dim)) return std::to_string(*value);
  if (const auto* var = ir::As<ir::PrimVarNode>(dim)) return var->name;
  return "?";
}

// "float32[batch, 3]", as far as it is known.
std::string TypeText(const ir::Type& type) {
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  if (tensor == nullptr) return "?";
  std::string text = tensor->dtype.has_value() ? tensor->dtype->ToString() : "?";
  if (!tensor->dims.has_value()) return text + "[...]";
  text += "[";
  for (size_t i = 0; i < tensor->dims->size(); ++i) text += (i == 0 ? "" : ", ") + DimText((*tensor->dims)[i]);
  return text + "]";
}

std::string QuotedList(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

// The symbols of a graph: one per name, with what the options say of them.
class Symbols {
 public:
  // A symbol may be fixed (--dim batch=8), bounded, or renamed (--input-shape x=n,...).
  Status Configure(const ImportOptions& options) {
    for (const DimRange& range : options.dims) {
      if (!ranges_.emplace(range.symbol, Range{range.min, range.max, false}).second) {
        return Status(StatusCode::kInvalidArgument, "--dim names \"" + range.symbol + "\" twice");
      }
    }
    return Status();
  }
  // --input-shape says that this symbol is a number or another symbol, everywhere.
  Status Replace(const std::string& symbol, const InputShape::Dim& with) {
    const auto [it, is_new] = replaced_.emplace(symbol, with);
    if (is_new || (it->second.value == with.value && it->second.symbol == with.symbol)) return Status();
    return Status(StatusCode::kInvalidArgument, "--input-shape gives the dimension \"" + symbol + "\" two values");
  }
  PrimExpr Named(const std::string& symbol) {
    const auto replaced = replaced_.find(symbol);
    if (replaced == replaced_.end()) return Resolve(symbol);
    return replaced->second.value.has_value() ? ir::Int64(*replaced->second.value) : Resolve(replaced->second.symbol);
  }
  // A symbol of its own for an unnamed dimension; it can be named in --dim too.
  PrimExpr Fresh(const std::string& hint) { return Resolve(hint); }

  // After all inputs are read: every --dim must have found its symbol.
  Status CheckAllUsed() const {
    std::vector<std::string> known = order_;
    for (const auto& [name, range] : ranges_) {
      if (range.used) continue;
      std::vector<std::string_view> names(known.begin(), known.end());
      return Status(StatusCode::kInvalidArgument, "--dim: no input has a symbolic dimension \"" + name + "\"" +
                                                      DidYouMean(name, names) +
                                                      (known.empty() ? "" : " (there are: " + QuotedList(known) + ")"));
    }
    return Status();
  }
  void BindBounds(arith::Analyzer& analyzer) const {
    for (const auto& [name, range] : ranges_) {
      const auto var = vars_.find(name);
      if (var != vars_.end()) analyzer.Bind(var->second, arith::Interval{range.min, range.max});
    }
  }
  // Function attributes for the bounded ones.
  ir::Attrs WithBounds(ir::Attrs attrs) const {
    ir::AttrDict lower, upper;
    for (const auto& [name, range] : ranges_) {
      if (range.min == range.max) continue;
      lower.emplace_back(vars_.at(name)->name, range.min);
      upper.emplace_back(vars_.at(name)->name, range.max);
    }
    if (lower.empty()) return attrs;
    return attrs.With("tir_var_lower_bound", std::move(lower)).With("tir_var_upper_bound", std::move(upper));
  }

 private:
  struct Range {
    int64_t min, max;
    bool used;
  };
  PrimExpr Resolve(const std::string& symbol) {
    const auto range = ranges_.find(symbol);
    if (range != ranges_.end()) {
      range->second.used = true;
      if (range->second.min == range->second.max) return ir::Int64(range->second.min);
    }
    ir::PrimVar& var = vars_[symbol];
    if (var == nullptr) {
      std::string name = Identifier(symbol);
      while (!taken_.insert(name).second) name += "_";
      var = ir::MakePrimVar(name);
      order_.push_back(symbol);
    }
    return var;
  }

  std::map<std::string, Range> ranges_;
  std::map<std::string, InputShape::Dim> replaced_;
  std::unordered_map<std::string, ir::PrimVar> vars_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> order_;
};

class GraphImporter {
 public:
  GraphImporter(const OnnxModel& model, const std::string& name, const ImportOptions& options)
      : model_(model), options_(options), source_(std::make_shared<ir::SourceText>(ir::SourceText{name, ""})) {}

  // Fills the report; a module comes only out of a graph without unsupported nodes.
  Status Run() {
    INGOT_RETURN_IF_ERROR(CheckOpset());
    INGOT_RETURN_IF_ERROR(symbols_.Configure(options_));
    for (const auto& [name, data] : model_.initializers) {
      INGOT_RETURN_IF_ERROR(Define(name, ir::Make<ir::ConstantNode>(data, name)));
    }
    INGOT_RETURN_IF_ERROR(ImportInputs());
    for (const OnnxValueInfo& info : model_.values) declared_.emplace(info.name, &info);
    for (const OnnxValueInfo& info : model_.outputs) {
      declared_.emplace(info.name, &info);
      output_names_.insert(info.name);
    }
    symbols_.BindBounds(analyzer_);
    for (size_t i = 0; i < model_.nodes.size(); ++i) INGOT_RETURN_IF_ERROR(ImportNode(i));
    INGOT_RETURN_IF_ERROR(MaterialiseResults());
    CountOperators();
    return Status();
  }
  SupportReport& report() { return report_; }
  Result<ir::IRModule> Module();

 private:
  Status CheckOpset();
  Status ImportInputs();
  Result<ir::Type> InputType(const OnnxValueInfo& info, const InputShape* override_shape);
  Result<ir::Type> DeclaredType(const OnnxValueInfo& info);
  Status ImportNode(size_t index);
  void ReportUnsupported(const OnnxNode& node, const std::string& label, const std::vector<ImportedValue*>& inputs,
                         std::string reason);
  Status DefineStandIns(const OnnxNode& node, const std::vector<Expr>& outputs = {});
  Status BindOutputs(const OnnxNode& node, const std::vector<Expr>& outputs, const ir::Span& span);
  Status DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in);
  Status Define(const std::string& name, ImportedValue value) {
    if (values_.emplace(name, std::move(value)).second) return Status();
    return Status(StatusCode::kBadInput, "the value \"" + name + "\" is defined twice");
  }
  Status Define(const std::string& name, Expr expr) {
    ir::Type type = expr->type;
    return Define(name, ImportedValue{.expr = std::move(expr), .type = std::move(type)});
  }
  Status MaterialiseResults();
  void CountOperators();

  const OnnxModel& model_;
  const ImportOptions& options_;
  std::shared_ptr<const ir::SourceText> source_;
  Symbols symbols_;
  SupportReport report_;
  std::unordered_map<std::string, ImportedValue> values_;
  arith::Analyzer analyzer_;  // knows the symbols' bounds
  std::unordered_map<std::string, const OnnxValueInfo*> declared_;
  std::unordered_set<std::string> output_names_;
  std::vector<ir::Var> params_;
  std::vector<std::string> input_names_;
  std::vector<ir::Binding> bindings_;
};

Status GraphImporter::CheckOpset() {
  report_.producer = model_.producer;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain.empty()) report_.opset = version;
  }
  if (report_.opset >= kMinOpset && report_.opset <= kMaxOpset) return Status();
  if (report_.opset == 0) return Status(StatusCode::kBadInput, "the model names no version of ONNX's operator set");
  return Status(StatusCode::kUnsupportedModel, "opset " + std::to_string(report_.opset) + " is not supported; " +
                                                   std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset) +
                                                   " are");
}

Status GraphImporter::ImportInputs() {
  // Up to IR version 3 initialisers are listed as inputs too; they are no parameters.
  std::vector<const OnnxValueInfo*> inputs;
  std::vector<std::string_view> names;
  for (const OnnxValueInfo& info : model_.inputs) {
    if (values_.contains(info.name)) continue;
    inputs.push_back(&info);
    names.push_back(info.name);
  }
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
  std::unordered_set<std::string> taken;
  for (const OnnxValueInfo* info : inputs) {
    const auto shape = shapes.find(info->name);
    INGOT_ASSIGN_OR_RETURN(const ir::Type type, InputType(*info, shape == shapes.end() ? nullptr : shape->second));
    std::string name = Identifier(info->name);
    while (!taken.insert(name).second) name += "_";
    params_.push_back(ir::Make<ir::VarNode>(name, type));
    input_names_.push_back(info->name);
    INGOT_RETURN_IF_ERROR(Define(info->name, params_.back()));
  }
  return symbols_.CheckAllUsed();
}

Result<ir::Type> GraphImporter::InputType(const OnnxValueInfo& info, const InputShape* override_shape) {
  const std::string where = "input \"" + info.name + "\"";
  if (!info.is_tensor) return Status(StatusCode::kUnsupportedModel, where + " is no tensor, which is not supported");
  if (!info.dtype.has_value()) {
    return Status(StatusCode::kUnsupportedModel, where + " has a data type that is not supported");
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
      dims.push_back(symbols_.Named(declared.param));
    } else if (given.value.has_value()) {
      dims.push_back(ir::Int64(*given.value));
    } else if (!given.symbol.empty()) {
      dims.push_back(symbols_.Named(given.symbol));
    } else {
      dims.push_back(symbols_.Fresh(Identifier(info.name) + "_dim_" + std::to_string(i)));
    }
  }
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::move(dims), *info.dtype));
}

// What the file says of a value between, for stand-ins.
Result<ir::Type> GraphImporter::DeclaredType(const OnnxValueInfo& info) {
  if (!info.is_tensor || !info.dims.has_value()) return ir::Type();
  std::vector<PrimExpr> dims;
  for (size_t i = 0; i < info.dims->size(); ++i) {
    const OnnxDim& dim = (*info.dims)[i];
    if (dim.value.has_value()) {
      dims.push_back(ir::Int64(*dim.value));
    } else {
      dims.push_back(dim.param.empty() ? ir::MakePrimVar("d") : symbols_.Named(dim.param));
    }
  }
  return ir::Type(ir::Make<ir::TensorTypeNode>(std::move(dims), info.dtype));
}

Status GraphImporter::ImportNode(size_t index) {
  const OnnxNode& node = model_.nodes[index];
  const std::string label = node.name.empty() ? "#" + std::to_string(index) : node.name;
  std::vector<ImportedValue*> inputs;
  bool has_stand_in = false, has_unknown = false;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    const auto value = values_.find(name);
    if (value == values_.end()) {
      return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): its input \"" + name +
                                               "\" is not defined before it");
    }
    has_stand_in |= value->second.stand_in;
    has_unknown |= value->second.type == nullptr;
    inputs.push_back(&value->second);
  }
  const OnnxOpRow* row = node.domain.empty() ? FindOnnxOp(node.op_type) : nullptr;
  const ir::Span span{source_, 0, 0, 0, std::make_shared<const std::string>(label)};
  const NodeImporter importer(node, report_.opset, inputs, span, bindings_);
  if (node.domain.empty() && !has_unknown) {
    std::optional<std::vector<ShapeValue>> known = EvaluateShapeValues(importer, analyzer_);
    if (known.has_value()) return DefineKnown(node, *std::move(known), has_stand_in);
  }
  if (row == nullptr) {
    ReportUnsupported(node, label, inputs, "no operator of this name is known");
    return DefineStandIns(node);
  }
  if (has_unknown) return DefineStandIns(node);
  Result<std::vector<Expr>> outputs = ImportOnnxNode(*row, importer);
  if (outputs.ok()) {
    return has_stand_in ? DefineStandIns(node, *outputs) : BindOutputs(node, *outputs, span);
  }
  if (outputs.status().code() == StatusCode::kUnsupportedModel) {
    ReportUnsupported(node, label, inputs, outputs.status().message());
    return DefineStandIns(node);
  }
  if (has_stand_in) return DefineStandIns(node);  // the declared type may be what is wrong
  return Status(StatusCode::kBadInput, "node \"" + label + "\" (" + node.op_type + "): " + outputs.status().message());
}

Status GraphImporter::DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in) {
  for (size_t i = 0; i < std::min(node.outputs.size(), outputs.size()); ++i) {
    if (node.outputs[i].empty()) continue;
    ir::Type type = outputs[i].Type();
    INGOT_RETURN_IF_ERROR(
        Define(node.outputs[i],
               {.expr = nullptr, .type = std::move(type), .known = std::move(outputs[i]), .stand_in = stand_in}));
  }
  return Status();
}

void GraphImporter::ReportUnsupported(const OnnxNode& node, const std::string& label,
                                      const std::vector<ImportedValue*>& inputs, std::string reason) {
  UnsupportedOperator& entry = report_.unsupported.emplace_back();
  entry.op_type = node.op_type;
  entry.domain = node.domain;
  entry.node = label;
  for (const auto& [domain, version] : model_.opsets) {
    if (domain == node.domain) entry.opset = version;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i].empty()) {
      entry.inputs.push_back("none");
    } else {
      entry.inputs.push_back(inputs[i]->type == nullptr ? "?" : TypeText(inputs[i]->type));
    }
  }
  entry.reason = std::move(reason);
}

// Stand-ins have the type of what would be there, or the declared one.
Status GraphImporter::DefineStandIns(const OnnxNode& node, const std::vector<Expr>& outputs) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    ir::Type type = i < outputs.size() ? outputs[i]->type : nullptr;
    const auto declared = declared_.find(name);
    if (type == nullptr && declared != declared_.end()) {
      INGOT_ASSIGN_OR_RETURN(type, DeclaredType(*declared->second));
    }
    ImportedValue value{.expr = nullptr, .type = type, .known = std::nullopt, .stand_in = true};
    if (type != nullptr) value.expr = ir::Make<ir::VarNode>(Identifier(name), type);
    INGOT_RETURN_IF_ERROR(Define(name, std::move(value)));
  }
  return Status();
}

Status GraphImporter::BindOutputs(const OnnxNode& node, const std::vector<Expr>& outputs, const ir::Span& span) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= outputs.size()) {
      return Status(StatusCode::kBadInput,
                    "node \"" + *span.operation + "\" (" + node.op_type + "): it has no output " + std::to_string(i));
    }
    const Expr& value = outputs[i];
    const bool is_result = output_names_.contains(name);
    const auto* var = ir::As<ir::VarNode>(value);
    // An alias needs no binding, except for a result: a dataflow variable cannot leave its block.
    if (ir::As<ir::ConstantNode>(value) != nullptr || (var != nullptr && !(is_result && var->is_dataflow))) {
      INGOT_RETURN_IF_ERROR(Define(name, value));
      continue;
    }
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(name), value->type, /*dataflow=*/!is_result);
    bindings_.push_back({bound, value, nullptr, span});
    INGOT_RETURN_IF_ERROR(Define(name, bound));
  }
  return Status();
}

// A result that is known by its elements becomes a tensor, bound under its name.
Status GraphImporter::MaterialiseResults() {
  for (const OnnxValueInfo& info : model_.outputs) {
    const auto found = values_.find(info.name);
    if (found == values_.end() || found->second.expr != nullptr || !found->second.known.has_value()) continue;
    ImportedValue& value = found->second;
    const ir::Span span{source_, 0, 0, 0, std::make_shared<const std::string>(info.name)};
    INGOT_ASSIGN_OR_RETURN(value.expr, Materialise(*value.known, bindings_, span));
    if (ir::As<ir::VarNode>(value.expr) == nullptr) continue;
    const ir::Var bound = ir::Make<ir::VarNode>(Identifier(info.name), value.type);
    bindings_.push_back({bound, value.expr, nullptr, span});
    value.expr = bound;
  }
  return Status();
}

void GraphImporter::CountOperators() {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const OnnxNode& node : model_.nodes) ++counts[{node.op_type, node.domain}];
  for (const auto& [key, count] : counts) report_.operators.push_back({key.first, key.second, count});
}

Result<ir::IRModule> GraphImporter::Module() {
  std::vector<Expr> results;
  std::vector<ir::Type> types;
  ir::AttrList inputs(input_names_.begin(), input_names_.end()), outputs;
  for (const OnnxValueInfo& info : model_.outputs) {
    const auto value = values_.find(info.name);
    if (value == values_.end()) {
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is not made by any node");
    }
    const Expr& expr = value->second.expr;
    const auto* type = ir::As<ir::TensorTypeNode>(expr->type);
    if (info.dtype.has_value() && type != nullptr && type->dtype.has_value() && *type->dtype != *info.dtype) {
      return Status(StatusCode::kBadInput, "the output \"" + info.name + "\" is declared as " + info.dtype->ToString() +
                                               ", but its node gives " + TypeText(expr->type));
    }
    results.push_back(expr);
    types.push_back(expr->type);
    outputs.push_back(info.name);
  }
  if (results.empty()) return Status(StatusCode::kBadInput, "the graph has no outputs");
  const ir::Type result_type = types.size() == 1 ? types[0] : ir::Type(ir::Make<ir::TupleTypeNode>(types));
  const Expr result = results.size() == 1 ? results[0] : Expr(ir::Make<ir::TupleNode>(results, result_type));
  std::vector<ir::BindingBlock> blocks;
  if (!bindings_.empty()) blocks.push_back({std::move(bindings_), /*is_dataflow=*/true});
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::move(blocks), result, result_type);
  ir::Attrs attrs = {{"num_input", static_cast<int64_t>(params_.size())},
                     {"input_names", std::move(inputs)},
                     {"output_names", std::move(outputs)}};
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(params_, body, result_type, /*pure=*/true, /*priv=*/false,
                                                symbols_.WithBounds(std::move(attrs))));
  return module;
}

Status UnsupportedError(const SupportReport& report) {
  constexpr size_t kMaxListed = 100;
  const size_t count = report.unsupported.size();
  std::string message =
      count == 1 ? "1 operator is not supported:" : std::to_string(count) + " operators are not supported:";
  for (size_t i = 0; i < std::min(count, kMaxListed); ++i) message += "\n  " + report.unsupported[i].ToString();
  if (count > kMaxListed) message += "\n  ... and " + std::to_string(count - kMaxListed) + " more";
  return Status(StatusCode::kUnsupportedModel, std::move(message));
}

}  // namespace

std::string UnsupportedOperator::ToString() const {
  std::string text = domain.empty() ? op_type : domain + "." + op_type;
  text += " (node \"" + node + "\", opset " + std::to_string(opset) + ", inputs: ";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i == 0 ? "" : ", ") + inputs[i];
  if (inputs.empty()) text += "none";
  return text + "): " + reason;
}

Result<ImportResult> ImportOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  if (!importer.report().unsupported.empty()) return UnsupportedError(importer.report()).WithContext(name);
  Result<ir::IRModule> module = importer.Module();
  if (!module.ok()) return std::move(module).status().WithContext(name);
  return ImportResult{*std::move(module), std::move(importer.report())};
}

Result<SupportReport> CheckOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  return std::move(importer.report());
}

}  // namespace ingot::importer
