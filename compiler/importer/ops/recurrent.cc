// LSTM, GRU and RNN: the products of the inputs for all steps as one matrix product, then the scan of op/recurrent.h.
// Weights are packed by pads, reshapes and permutations, which fold for constants.
#include <algorithm>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "compiler/op/recurrent.h"
#include "compiler/op/reference.h"

namespace ingot::importer {
namespace {

using op::Cell;

// The node's inputs and attributes, before any call is made.
struct Layer {
  Cell cell;
  const char* row;
  int64_t gates, directions, hidden, lanes, panels;
  PrimExpr steps, batch, inputs;
  bool batch_first;
  DataType dtype;
};

Expr Dims(std::initializer_list<int64_t> dims) {
  std::vector<PrimExpr> exprs;
  for (int64_t dim : dims) exprs.push_back(ir::Int64(dim));
  return ShapeOf(std::move(exprs));
}
Result<Expr> Reshaped(const NodeImporter& node, Expr x, Expr shape) {
  return node.Bind("reshape", {std::move(x), std::move(shape)});
}

// Panels hold 16 units: one vector of AVX-512, or two of AVX2; fewer if the layer is smaller.
int64_t LanesFor(int64_t hidden, int64_t least = 2) {
  int64_t lanes = least;
  while (lanes < 16 && lanes < hidden) lanes *= 2;
  return lanes;
}

// `are_columns_last`: W and R are [D, I, G * H] and [D, H, G * H], as DynamicQuantizeLSTM has them, of bytes.
Result<Layer> ReadLayer(const NodeImporter& node, Cell cell, const char* row, bool are_columns_last = false) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* x, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> w, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> r, StaticRankDims(node, 2));
  if (x->rank != 3 || w.size() != 3 || r.size() != 3) {
    return node.Invalid("expected X, W and R of rank 3, got " + std::to_string(x->rank) + ", " +
                        std::to_string(w.size()) + " and " + std::to_string(r.size()));
  }
  if (are_columns_last) {
    std::swap(w[1], w[2]);
    std::swap(r[1], r[2]);
  }
  INGOT_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", "forward"));
  INGOT_ASSIGN_OR_RETURN(const int64_t layout, node.Int("layout", 0));
  Layer layer{.cell = cell, .row = row};
  layer.gates = cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4;
  layer.directions = direction == "bidirectional" ? 2 : 1;
  const auto hidden = ir::AsConstInt(r[2]);
  if (!hidden) return node.Unsupported("a hidden size that is symbolic");
  layer.hidden = *hidden;
  INGOT_ASSIGN_OR_RETURN(const int64_t stated, node.Int("hidden_size", layer.hidden));
  if (layer.hidden < 1 || layer.hidden > (1 << 20) || stated != layer.hidden) {
    return node.Invalid("hidden_size is " + std::to_string(stated) + ", R has " + std::to_string(layer.hidden) +
                        " columns");
  }
  layer.lanes = LanesFor(layer.hidden, are_columns_last ? 4 : 2);
  layer.panels = (layer.hidden + layer.lanes - 1) / layer.lanes;
  const PrimExpr rows = ir::Int64(layer.gates * layer.hidden), directions = ir::Int64(layer.directions);
  if (op::DimsDiffer(w[0], directions) || op::DimsDiffer(r[0], directions) || op::DimsDiffer(w[1], rows) ||
      op::DimsDiffer(r[1], rows)) {
    return node.Invalid("W and R do not fit " + std::to_string(layer.directions) + " directions of " +
                        std::to_string(layer.gates) + " gates of " + std::to_string(layer.hidden) + " units");
  }
  if (op::DimsDiffer(w[2], (*x->dims)[2])) return node.Invalid("W and X differ in the number of inputs");
  layer.batch_first = layout != 0;
  layer.steps = (*x->dims)[layer.batch_first ? 1 : 0];
  layer.batch = (*x->dims)[layer.batch_first ? 0 : 1];
  layer.inputs = w[2];
  layer.dtype = *x->dtype;
  return layer;
}

// Returns an input whose dims the layer determines: other dims are refused, and dims that are unknown at import are
// checked at run time.
Result<Expr> Shaped(const NodeImporter& node, size_t input, const std::vector<PrimExpr>& dims) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  bool fits = own.size() == dims.size(), is_proved = true;
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits = !op::DimsDiffer(own[i], dims[i]);
    is_proved &= op::DimsEqual(own[i], dims[i]);
  }
  const ir::Type expected = ir::Make<ir::TensorTypeNode>(dims, *type->dtype);
  if (!fits) return node.Invalid("expected " + op::Describe(expected) + ", got " + op::Describe(x->type));
  return is_proved ? x : node.Match(std::move(x), expected);
}
// Like Shaped, for an input whose first dim counts directions.
Result<Expr> OfDirections(const NodeImporter& node, const Layer& layer, size_t input, std::vector<PrimExpr> dims) {
  dims.insert(dims.begin(), ir::Int64(layer.directions));
  return Shaped(node, input, dims);
}

// Returns x with axis `axis`, the hidden units, split into panels of lanes.
Result<Expr> InPanels(const NodeImporter& node, const Layer& layer, Expr x, std::vector<PrimExpr> dims, size_t axis) {
  const int64_t missing = layer.panels * layer.lanes - layer.hidden;
  if (missing > 0) {
    std::vector<int64_t> width(2 * dims.size(), 0);
    width[2 * axis + 1] = missing;
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("nn.pad", {std::move(x)}, {{"pad_width", AttrValue::Ints(width)}}));
  }
  dims[axis] = ir::Int64(layer.panels);
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis) + 1, ir::Int64(layer.lanes));
  return Reshaped(node, std::move(x), ShapeOf(std::move(dims)));
}

// [D, rows * H] as [D, P, rows, L].
Result<Expr> PackRows(const NodeImporter& node, const Layer& layer, Expr x, int64_t rows) {
  INGOT_ASSIGN_OR_RETURN(x, Reshaped(node, std::move(x), Dims({layer.directions, rows, layer.hidden})));
  INGOT_ASSIGN_OR_RETURN(x, InPanels(node, layer, std::move(x),
                                     {ir::Int64(layer.directions), ir::Int64(rows), ir::Int64(layer.hidden)}, 2));
  return Permuted(node, std::move(x), {0, 2, 1, 3});
}

// [D, G * H, n] as [D, G, P, L, n].
Result<Expr> PackMatrix(const NodeImporter& node, const Layer& layer, Expr x, const PrimExpr& columns) {
  const std::vector<PrimExpr> dims = {ir::Int64(layer.directions), ir::Int64(layer.gates), ir::Int64(layer.hidden),
                                      columns};
  INGOT_ASSIGN_OR_RETURN(x, Reshaped(node, std::move(x), ShapeOf(dims)));
  return InPanels(node, layer, std::move(x), dims, 2);
}

// Returns columns [begin, end) of a matrix of constant dims.
Result<Expr> Columns(const NodeImporter& node, Expr x, int64_t begin, int64_t end) {
  const auto tuple = [](int64_t value) {
    const Expr field = ir::Make<ir::PrimValueNode>(ir::Int64(value));
    return Expr(ir::Make<ir::TupleNode>(std::vector<Expr>{field},
                                        ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{field->type})));
  };
  return node.Bind("strided_slice", {std::move(x), tuple(1), tuple(begin), tuple(end)});
}

int64_t GateColumns(const Layer& layer) { return layer.directions * layer.panels * layer.gates * layer.lanes; }

// Returns the inputs of all steps, [T, B, I], as one matrix [T * B, I].
Result<Expr> InputsOfSteps(const NodeImporter& node, const Layer& layer) {
  const std::vector<PrimExpr> leading = layer.batch_first ? std::vector<PrimExpr>{layer.batch, layer.steps}
                                                          : std::vector<PrimExpr>{layer.steps, layer.batch};
  INGOT_ASSIGN_OR_RETURN(Expr x, Shaped(node, 0, {leading[0], leading[1], layer.inputs}));
  if (layer.batch_first) {
    INGOT_ASSIGN_OR_RETURN(x, Permuted(node, std::move(x), {1, 0, 2}));
  }
  const std::vector<PrimExpr> rows = {layer.steps, layer.batch};
  return Reshaped(node, std::move(x), ShapeOf({Product(rows), layer.inputs}));
}

// Returns W, [D, G * H, I], as the matrix [I, N] beside which gates stand.
Result<Expr> PackInputs(const NodeImporter& node, const Layer& layer, Expr w) {
  INGOT_ASSIGN_OR_RETURN(w, PackMatrix(node, layer, std::move(w), layer.inputs));
  INGOT_ASSIGN_OR_RETURN(w, Permuted(node, std::move(w), {4, 0, 2, 1, 3}));
  return Reshaped(node, std::move(w), ShapeOf({layer.inputs, ir::Int64(GateColumns(layer))}));
}

// Returns x * W for all steps.
Result<Expr> InputProduct(const NodeImporter& node, const Layer& layer) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, InputsOfSteps(node, layer));
  INGOT_ASSIGN_OR_RETURN(Expr w, OfDirections(node, layer, 1, {ir::Int64(layer.gates * layer.hidden), layer.inputs}));
  INGOT_ASSIGN_OR_RETURN(w, PackInputs(node, layer, std::move(w)));
  return node.Bind("matmul", {x, w});
}

// Returns the product x * W plus biases for all steps, [T, B, N]; *state_bias is the part that a GRU adds after its
// reset.
Result<Expr> Gates(const NodeImporter& node, const Layer& layer, Expr gates, bool splits_bias, Expr* state_bias) {
  if (node.HasInput(3)) {
    const int64_t half = layer.gates * layer.hidden;
    INGOT_ASSIGN_OR_RETURN(Expr bias, OfDirections(node, layer, 3, {ir::Int64(2 * half)}));
    INGOT_ASSIGN_OR_RETURN(Expr of_input, Columns(node, bias, 0, half));
    INGOT_ASSIGN_OR_RETURN(Expr of_state, Columns(node, bias, half, 2 * half));
    if (splits_bias) {  // the bias of the candidate, the last of three gates
      INGOT_ASSIGN_OR_RETURN(*state_bias, Columns(node, of_state, 2 * layer.hidden, half));
      INGOT_ASSIGN_OR_RETURN(of_state, Columns(node, of_state, 0, 2 * layer.hidden));
      INGOT_ASSIGN_OR_RETURN(
          of_state, node.Bind("nn.pad", {of_state}, {{"pad_width", AttrValue::Ints({0, 0, 0, layer.hidden})}}));
      INGOT_ASSIGN_OR_RETURN(*state_bias, PackRows(node, layer, *state_bias, 1));
      INGOT_ASSIGN_OR_RETURN(*state_bias,
                             Reshaped(node, *state_bias, Dims({layer.directions, layer.panels, layer.lanes})));
    }
    INGOT_ASSIGN_OR_RETURN(bias, node.Bind("add", {of_input, of_state}));
    INGOT_ASSIGN_OR_RETURN(bias, PackRows(node, layer, std::move(bias), layer.gates));
    INGOT_ASSIGN_OR_RETURN(bias, Reshaped(node, std::move(bias), Dims({GateColumns(layer)})));
    INGOT_ASSIGN_OR_RETURN(gates, node.Bind("add", {gates, bias}));
  }
  return Reshaped(node, std::move(gates), ShapeOf({layer.steps, layer.batch, ir::Int64(GateColumns(layer))}));
}

// Returns the state before the first step, [D, B, H].
Result<Expr> InitialState(const NodeImporter& node, const Layer& layer, size_t input) {
  if (!node.HasInput(input)) {
    const Expr shape = ShapeOf({ir::Int64(layer.directions), layer.batch, ir::Int64(layer.hidden)});
    return node.Bind("zeros", {shape}, {{"dtype", layer.dtype}});
  }
  const PrimExpr directions = ir::Int64(layer.directions), hidden = ir::Int64(layer.hidden);
  if (!layer.batch_first) return Shaped(node, input, {directions, layer.batch, hidden});
  INGOT_ASSIGN_OR_RETURN(Expr state, Shaped(node, input, {layer.batch, directions, hidden}));
  return Permuted(node, std::move(state), {1, 0, 2});
}

// Whether the lengths are all equal to the number of steps, so that they have no effect.
bool AreWhole(const NodeImporter& node, const Layer& layer) {
  const auto steps = ir::AsConstInt(layer.steps);
  if (!steps || !node.MayBeKnown(4)) return false;
  const Result<std::vector<int64_t>> lengths = node.ConstantInts(4, "the lengths");
  return lengths.ok() && std::ranges::all_of(*lengths, [&](int64_t length) { return length == *steps; });
}

template <typename T>
Result<std::vector<T>> ListAttr(const NodeImporter& node, const char* name) {
  const OnnxAttribute* attribute = node.FindAttr(name);
  if (attribute == nullptr) return std::vector<T>();
  const auto* values = std::get_if<std::vector<T>>(&attribute->value);
  if (values == nullptr) return node.Invalid(std::string("attribute \"") + name + "\" is no list of its type");
  return *values;
}

// Activation names, each with an alpha and a beta: those that take one use up the lists in order.
Result<ir::Attrs> Activations(const NodeImporter& node, ir::Attrs attrs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListAttr<std::string>(node, "activations"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> alphas, ListAttr<float>(node, "activation_alpha"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<float> betas, ListAttr<float>(node, "activation_beta"));
  if (names.empty()) return attrs;
  ir::AttrList functions, all_alphas, all_betas;
  auto alpha = alphas.begin();
  auto beta = betas.begin();
  for (const std::string& name : names) {
    std::optional<op::ActivationFunction> function = op::FindActivation(name);
    if (!function) return node.Unsupported("the activation \"" + name + "\"");
    if (op::TakesAlpha(function->kind) && alpha != alphas.end()) function->alpha = double{*alpha++};
    if (op::TakesBeta(function->kind) && beta != betas.end()) function->beta = double{*beta++};
    functions.push_back(name);
    all_alphas.push_back(function->alpha);
    all_betas.push_back(function->beta);
  }
  return attrs.With("activations", std::move(functions))
      .With("activation_alpha", std::move(all_alphas))
      .With("activation_beta", std::move(all_betas));
}

Result<ir::Attrs> LayerAttributes(const NodeImporter& node, const Layer& layer) {
  INGOT_ASSIGN_OR_RETURN(std::string direction, node.String("direction", "forward"));
  INGOT_ASSIGN_OR_RETURN(ir::Attrs attrs, Activations(node, {{"direction", std::move(direction)}}));
  if (node.HasAttr("clip")) {
    INGOT_ASSIGN_OR_RETURN(const double clip, node.Float("clip", 0));
    attrs = attrs.With("clip", clip);
  }
  if (layer.cell == Cell::kLstm) {
    INGOT_ASSIGN_OR_RETURN(const int64_t couples, node.Int("input_forget", 0));
    attrs = attrs.With("input_forget", couples != 0);
  }
  if (layer.cell == Cell::kGru) {
    INGOT_ASSIGN_OR_RETURN(const int64_t linear, node.Int("linear_before_reset", 0));
    attrs = attrs.With("linear_before_reset", linear != 0);
  }
  return attrs;
}

// The scan behind a product of all inputs and a packed recurrence; `scales` (null: none) are those of a recurrence of
// bytes.
Outputs Scan(const NodeImporter& node, const Layer& layer, const Expr& product, const Expr& recurrence,
             const Expr& scales = nullptr) {
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, LayerAttributes(node, layer));
  const bool splits_bias = layer.cell == Cell::kGru && attrs.GetBool("linear_before_reset");
  Expr state_bias;
  INGOT_ASSIGN_OR_RETURN(const Expr gates, Gates(node, layer, product, splits_bias, &state_bias));
  std::vector<Expr> args = {gates, recurrence};
  for (size_t input = 5; input < (layer.cell == Cell::kLstm ? 7 : 6); ++input) {
    INGOT_ASSIGN_OR_RETURN(Expr state, InitialState(node, layer, input));
    args.push_back(std::move(state));
  }
  if (scales.get() != nullptr) args.push_back(scales);
  if (node.HasInput(4) && !AreWhole(node, layer)) {
    INGOT_ASSIGN_OR_RETURN(Expr lengths, node.Input(4));
    args.push_back(std::move(lengths));
  }
  if (state_bias.get() != nullptr) args.push_back(state_bias);
  if (layer.cell == Cell::kLstm && node.HasInput(7)) {
    INGOT_ASSIGN_OR_RETURN(Expr peepholes, OfDirections(node, layer, 7, {ir::Int64(3 * layer.hidden)}));
    INGOT_ASSIGN_OR_RETURN(peepholes, PackRows(node, layer, std::move(peepholes), 3));
    args.push_back(std::move(peepholes));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr scan, node.Bind(layer.row, std::move(args), attrs));
  const auto* results = ir::As<ir::TupleTypeNode>(scan->type);
  std::vector<Expr> outputs;
  for (size_t i = 0; i < results->fields.size(); ++i) {
    Expr output = ir::Make<ir::TupleGetItemNode>(scan, static_cast<int64_t>(i), results->fields[i]);
    const bool is_wanted = i < node.node().outputs.size() && !node.node().outputs[i].empty();
    if (layer.batch_first && is_wanted) {
      output = node.BindValue(std::move(output), "y");
      INGOT_ASSIGN_OR_RETURN(
          output,
          Permuted(node, std::move(output), i == 0 ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{1, 0, 2}));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}
template <Cell cell, const auto& kRow>
Outputs Recurrent(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Layer layer, ReadLayer(node, cell, kRow));
  INGOT_ASSIGN_OR_RETURN(const Expr product, InputProduct(node, layer));
  INGOT_ASSIGN_OR_RETURN(
      Expr recurrence, OfDirections(node, layer, 2, {ir::Int64(layer.gates * layer.hidden), ir::Int64(layer.hidden)}));
  INGOT_ASSIGN_OR_RETURN(recurrence, PackMatrix(node, layer, std::move(recurrence), ir::Int64(layer.hidden)));
  INGOT_ASSIGN_OR_RETURN(recurrence, Permuted(node, std::move(recurrence), {0, 2, 4, 1, 3}));
  return Scan(node, layer, product, recurrence);
}
constexpr char kGruRow[] = "nn.gru";
constexpr char kLstmRow[] = "nn.lstm";
constexpr char kRnnRow[] = "nn.rnn";

// ---- DynamicQuantizeLSTM, the products of which are of integers

constexpr int64_t kMostUnitsOfBytes = int64_t{1} << 16;  // whose sums of columns are exact in float32

// The zero point that all columns of W or R share, if it is known.
std::optional<int64_t> SharedZero(const NodeImporter& node, size_t input) {
  if (!node.HasInput(input)) return std::nullopt;
  const Result<Expr> zeros = node.Input(input);
  const auto* constant = zeros.ok() ? ir::As<ir::ConstantNode>(*zeros) : nullptr;
  if (constant == nullptr || constant->data->bytes().empty()) return std::nullopt;
  const ir::ConstantData& data = *constant->data;
  const std::vector<int64_t> values = op::UnpackReference(data.dtype(), data.dims(), data.bytes()).ints;
  const bool is_shared = std::ranges::all_of(values, [&](int64_t value) { return value == values[0]; });
  return !values.empty() && is_shared ? std::optional(values[0]) : std::nullopt;
}

// The zero point of R that makes its bytes signed ones, or nothing if they are not.
std::optional<int64_t> ZeroOfBytes(const NodeImporter& node) {
  constexpr size_t kRecurrence = 2, kZeroPoint = 11;
  const Result<DataType> dtype = node.ElementType(kRecurrence);
  const std::optional<int64_t> zero = SharedZero(node, kZeroPoint);
  if (!dtype.ok() || zero != (*dtype == DataType::UInt(8) ? 128 : 0)) return std::nullopt;
  return zero;
}

// Returns a scale or zero point, [D] or [D, G * H], as [D, G * H].
Result<Expr> OfColumns(const NodeImporter& node, const Layer& layer, size_t input) {
  INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (own.empty() || own.size() > 2) {
    return node.Invalid("a scale or zero point of rank " + std::to_string(own.size()));
  }
  if (own.size() == 1) {
    own.push_back(ir::Int64(1));
    INGOT_ASSIGN_OR_RETURN(param, Reshaped(node, std::move(param), ShapeOf(own)));
  }
  return node.Bind("broadcast_to", {param, Dims({layer.directions, layer.gates * layer.hidden})});
}

// Returns x * W for all steps as a product of integers: x is quantised by its own range.
Result<Expr> ProductOfBytes(const NodeImporter& node, const Layer& layer) {
  constexpr size_t kScale = 8, kZeroPoint = 9;
  INGOT_ASSIGN_OR_RETURN(const Expr x, InputsOfSteps(node, layer));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> quantised,
                         ApplyAll(node, "DynamicQuantizeLinear", {x}, {}, {"q", "scale", "zero"}));
  INGOT_ASSIGN_OR_RETURN(Expr w, OfDirections(node, layer, 1, {layer.inputs, ir::Int64(layer.gates * layer.hidden)}));
  INGOT_ASSIGN_OR_RETURN(w, Permuted(node, std::move(w), {0, 2, 1}));
  INGOT_ASSIGN_OR_RETURN(w, PackInputs(node, layer, std::move(w)));
  const auto packed = [&](size_t input) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr param, OfColumns(node, layer, input));
    INGOT_ASSIGN_OR_RETURN(param, PackRows(node, layer, std::move(param), layer.gates));
    return Reshaped(node, std::move(param), Dims({GateColumns(layer)}));
  };
  Expr zero;  // null: 0
  if (SharedZero(node, kZeroPoint) != 0) {
    INGOT_ASSIGN_OR_RETURN(zero, packed(kZeroPoint));
  }
  INGOT_ASSIGN_OR_RETURN(Expr product, Apply(node, "MatMulInteger", {quantised[0], w, quantised[2], zero}));
  INGOT_ASSIGN_OR_RETURN(product, CastTo(node, std::move(product), layer.dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr own, packed(kScale));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Bind("multiply", {own, quantised[1]}));
  return node.Bind("multiply", {product, scale});
}

// Returns R, [D, H, G * H], as words of four rows.
Result<Expr> PackBytes(const NodeImporter& node, const Layer& layer, Expr r, int64_t zero) {
  const int64_t words = (layer.hidden + 3) / 4;
  INGOT_ASSIGN_OR_RETURN(
      r, Reshaped(node, std::move(r), Dims({layer.directions, layer.hidden, layer.gates, layer.hidden})));
  const std::vector<int64_t> widths = {0, 0, 0, 4 * words - layer.hidden,
                                       0, 0, 0, layer.panels * layer.lanes - layer.hidden};
  INGOT_ASSIGN_OR_RETURN(r,
                         node.Bind("nn.pad", {std::move(r)},
                                   {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", static_cast<double>(zero)}}));
  INGOT_ASSIGN_OR_RETURN(
      r, Reshaped(node, std::move(r), Dims({layer.directions, words, 4, layer.gates, layer.panels, layer.lanes})));
  INGOT_ASSIGN_OR_RETURN(r, Permuted(node, std::move(r), {0, 4, 1, 3, 5, 2}));
  INGOT_ASSIGN_OR_RETURN(r, node.Bind("pack_bytes", {std::move(r)}, {{"flip", zero != 0}}));
  return Reshaped(node, std::move(r), Dims({layer.directions, layer.panels, words, layer.gates, layer.lanes}));
}

// Returns the scales of R's columns, and their sums without the zero point.
Result<Expr> ScalesAndSums(const NodeImporter& node, const Layer& layer, const Expr& r, int64_t zero) {
  constexpr size_t kScale = 10;
  INGOT_ASSIGN_OR_RETURN(const Expr scales, OfColumns(node, layer, kScale));
  INGOT_ASSIGN_OR_RETURN(Expr sums, CastTo(node, r, layer.dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr subtracted, node.Scalar(zero, layer.dtype));
  INGOT_ASSIGN_OR_RETURN(sums, node.Bind("subtract", {sums, subtracted}));
  // A product with ones, for which there is a host routine: of constant weights nothing is left to compute.
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, layer.dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr ones, node.Bind("broadcast_to", {one, Dims({layer.directions, 1, layer.hidden})}));
  INGOT_ASSIGN_OR_RETURN(sums, node.Bind("matmul", {ones, sums}));
  INGOT_ASSIGN_OR_RETURN(sums, Reshaped(node, std::move(sums), Dims({layer.directions, layer.gates * layer.hidden})));
  INGOT_ASSIGN_OR_RETURN(Expr both, Apply(node, "Concat", {scales, sums}, {AttributeOf("axis", int64_t{1})}));
  return PackRows(node, layer, std::move(both), 2 * layer.gates);
}

constexpr OnnxOpRow kRecurrentRows[] = {
    {"GRU", nullptr, Recurrent<Cell::kGru, kGruRow>},
    {"LSTM", nullptr, Recurrent<Cell::kLstm, kLstmRow>},
    {"RNN", nullptr, Recurrent<Cell::kRnn, kRnnRow>},
};

}  // namespace

std::optional<Outputs> LstmOfBytes(const NodeImporter& node) {
  const std::optional<int64_t> zero = ZeroOfBytes(node);
  const Result<Layer> layer = ReadLayer(node, Cell::kLstm, kLstmRow, true);
  if (!zero || !layer.ok() || layer->hidden > kMostUnitsOfBytes || layer->dtype != DataType::Float(32)) {
    return std::nullopt;
  }
  const auto import = [&]() -> Outputs {
    const PrimExpr columns = ir::Int64(layer->gates * layer->hidden);
    INGOT_ASSIGN_OR_RETURN(const Expr product, ProductOfBytes(node, *layer));
    INGOT_ASSIGN_OR_RETURN(const Expr r, OfDirections(node, *layer, 2, {ir::Int64(layer->hidden), columns}));
    INGOT_ASSIGN_OR_RETURN(const Expr recurrence, PackBytes(node, *layer, r, *zero));
    INGOT_ASSIGN_OR_RETURN(const Expr scales, ScalesAndSums(node, *layer, r, *zero));
    return Scan(node, *layer, product, recurrence, scales);
  };
  return import();
}

std::span<const OnnxOpRow> RecurrentOnnxOps() { return kRecurrentRows; }

}  // namespace ingot::importer
