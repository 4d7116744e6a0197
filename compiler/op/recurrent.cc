// Recurrent layers: nn.rnn, nn.gru and nn.lstm, only the scan over time (recurrent.h describes their tensors).
#include "compiler/op/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/recurrent.h"

namespace ingot::op {
namespace {

struct ActivationRow {
  std::string_view name;
  ActivationFunction function;
};
constexpr std::array kActivations = {
    ActivationRow{"affine", {Activation::kAffine, 1, 0}},
    ActivationRow{"elu", {Activation::kElu, 1, 0}},
    ActivationRow{"hardsigmoid", {Activation::kHardSigmoid, 0.2, 0.5}},
    ActivationRow{"leakyrelu", {Activation::kLeakyRelu, 0.01, 0}},
    ActivationRow{"relu", {Activation::kRelu, 0, 0}},
    ActivationRow{"scaledtanh", {Activation::kScaledTanh, 1, 1}},
    ActivationRow{"sigmoid", {Activation::kSigmoid, 0, 0}},
    ActivationRow{"softplus", {Activation::kSoftplus, 0, 0}},
    ActivationRow{"softsign", {Activation::kSoftsign, 0, 0}},
    ActivationRow{"tanh", {Activation::kTanh, 0, 0}},
    ActivationRow{"thresholdedrelu", {Activation::kThresholdedRelu, 1, 0}},
};

int64_t GatesOf(Cell cell) { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }
size_t NumStates(Cell cell) { return cell == Cell::kLstm ? 2 : 1; }

std::vector<ActivationFunction> DefaultActivations(Cell cell) {
  constexpr ActivationFunction kSigmoid{Activation::kSigmoid, 0, 0}, kTanh{Activation::kTanh, 0, 0};
  if (cell == Cell::kRnn) return {kTanh};
  if (cell == Cell::kGru) return {kSigmoid, kTanh};
  return {kSigmoid, kTanh, kTanh};
}

// The numbers of an optional list; empty without one.
Result<std::vector<double>> NumbersAttr(const ir::Call& call, const char* name) {
  const ir::AttrValue* value = call->attrs.Find(name);
  std::vector<double> numbers;
  if (value == nullptr || value->is_none()) return numbers;
  const auto* list = value->get<ir::AttrList>();
  for (const ir::AttrValue& item : list != nullptr ? *list : ir::AttrList()) {
    if (const auto* number = item.get<double>()) numbers.push_back(*number);
    if (const auto* number = item.get<int64_t>()) numbers.push_back(static_cast<double>(*number));
  }
  if (list != nullptr && numbers.size() == list->size()) return numbers;
  return OpError(call, std::string(name) + ": expected numbers");
}

Result<std::vector<ActivationFunction>> ReadActivations(const ir::Call& call, Cell cell, int64_t directions) {
  const auto count = static_cast<size_t>(directions) * DefaultActivations(cell).size();
  std::vector<ActivationFunction> functions;
  const ir::AttrValue* names = call->attrs.Find("activations");
  if (const auto* list = names->get<ir::AttrList>()) {
    for (const ir::AttrValue& name : *list) {
      const std::optional<ActivationFunction> function = FindActivation(*name.get<std::string>());
      if (!function) return OpError(call, "no activation is called \"" + *name.get<std::string>() + "\"");
      functions.push_back(*function);
    }
  } else {
    for (int64_t d = 0; d < directions; ++d) {
      for (const ActivationFunction& function : DefaultActivations(cell)) functions.push_back(function);
    }
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> alphas, NumbersAttr(call, "activation_alpha"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> betas, NumbersAttr(call, "activation_beta"));
  const auto fits = [&](const std::vector<double>& numbers) { return numbers.empty() || numbers.size() == count; };
  if (functions.size() != count || !fits(alphas) || !fits(betas)) {
    return OpError(call, "expected " + std::to_string(count) + " activations, alphas and betas, got " +
                             std::to_string(functions.size()) + ", " + std::to_string(alphas.size()) + " and " +
                             std::to_string(betas.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!alphas.empty()) functions[i].alpha = alphas[i];
    if (!betas.empty()) functions[i].beta = betas[i];
  }
  return functions;
}

}  // namespace

bool TakesAlpha(Activation kind) {
  return TakesBeta(kind) || kind == Activation::kLeakyRelu || kind == Activation::kThresholdedRelu ||
         kind == Activation::kElu;
}
bool TakesBeta(Activation kind) {
  return kind == Activation::kAffine || kind == Activation::kScaledTanh || kind == Activation::kHardSigmoid;
}

std::optional<ActivationFunction> FindActivation(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const ActivationRow& row : kActivations) {
    if (row.name == lower) return row.function;
  }
  return std::nullopt;
}

Result<Recurrence> ReadRecurrence(const ir::Call& call, Cell cell) {
  std::vector<ir::TensorType> types;
  for (size_t i = 0; i < call->args.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(ir::TensorType type, TensorArg(call, i));
    if (!type->dims || !type->dtype) return OpError(call, "every argument needs a known shape and dtype");
    types.push_back(std::move(type));
  }
  const ir::TensorType& gates = types[0];
  const ir::TensorType& weights = types[1];
  if (gates->rank != 3 || weights->rank != 5) {
    return OpError(
        call, "expected gates of rank 3 and weights of rank 5, got " + Describe(gates) + " and " + Describe(weights));
  }
  std::array<int64_t, 5> w{};  // D, P, H, G, L
  for (size_t i = 0; i < w.size(); ++i) {
    const auto dim = ir::AsConstInt((*weights->dims)[i]);
    if (!dim || *dim < 1 || *dim > (1 << 24)) return OpError(call, "weights of shape " + Describe(weights));
    w[i] = *dim;
  }
  Recurrence r{.cell = cell, .directions = w[0], .panels = w[1], .hidden = w[2], .gates = w[3], .lanes = w[4]};
  const bool has_bytes = weights->dtype == DataType::Int(32);
  if (has_bytes) {
    r.hidden = types[2]->rank == 3 ? ir::AsConstInt((*types[2]->dims)[2]).value_or(0) : 0;
    if (cell != Cell::kLstm || gates->dtype != DataType::Float(32) || r.hidden < 1 || r.hidden > 4 * w[2] ||
        r.hidden <= 4 * (w[2] - 1) || w[4] % 4 != 0) {
      return OpError(call,
                     "words of bytes are the recurrence of an LSTM of float32 alone, in panels of whole words; got " +
                         Describe(gates) + ", " + Describe(weights) + " and " + Describe(types[2]));
    }
  }
  const std::string& direction = call->attrs.GetString("direction");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (direction != "forward" && direction != "reverse" && directions == 1) {
    return OpError(call,
                   "direction: expected \"forward\", \"reverse\" or \"bidirectional\", got \"" + direction + "\"");
  }
  r.starts_reversed = direction == "reverse";
  const bool good = r.directions == directions && r.gates == GatesOf(cell) && r.lanes <= 64 &&
                    r.panels == (r.hidden + r.lanes - 1) / r.lanes &&
                    ir::IsConstInt((*gates->dims)[2], r.directions * r.panels * r.gates * r.lanes);
  if (!good) {
    return OpError(call, "weights " + Describe(weights) + " and gates " + Describe(gates) + " do not fit " +
                             std::to_string(GatesOf(cell)) + " gates in " + std::to_string(directions) + " directions");
  }
  const ir::PrimExpr& batch = (*gates->dims)[1];
  const auto check = [&](size_t i, const Dims& dims, std::optional<DataType> dtype) -> Status {
    bool fits = types[i]->rank == static_cast<int>(dims.size()) && (!dtype || types[i]->dtype == dtype);
    for (size_t axis = 0; fits && axis < dims.size(); ++axis) fits = !DimsDiffer((*types[i]->dims)[axis], dims[axis]);
    if (fits) return Status();
    return OpError(call, "expected " + Describe(TensorOf(dims, dtype, types[i])) + ", got " + Describe(types[i]));
  };
  for (size_t i = 0; i < NumStates(cell); ++i) {
    INGOT_RETURN_IF_ERROR(check(2 + i, {ir::Int64(r.directions), batch, ir::Int64(r.hidden)}, gates->dtype));
  }
  if (!has_bytes) {
    INGOT_RETURN_IF_ERROR(check(1, *weights->dims, gates->dtype));
  }
  for (size_t i = 2 + NumStates(cell); i < types.size(); ++i) {
    if (types[i]->dtype->is_integral() && !r.lengths) {
      INGOT_RETURN_IF_ERROR(check(i, {batch}, std::nullopt));
      r.lengths = i;
      continue;
    }
    Dims dims = {ir::Int64(r.directions), ir::Int64(r.panels)};
    if (has_bytes && !r.scales) {
      dims.insert(dims.end(), {ir::Int64(2 * r.gates), ir::Int64(r.lanes)});
      INGOT_RETURN_IF_ERROR(check(i, dims, gates->dtype));
      r.scales = i;
      continue;
    }
    if (cell == Cell::kLstm) dims.push_back(ir::Int64(3));
    dims.push_back(ir::Int64(r.lanes));
    INGOT_RETURN_IF_ERROR(check(i, dims, gates->dtype));
    if (r.extra || cell == Cell::kRnn) return OpError(call, "one argument too many: " + Describe(types[i]));
    r.extra = i;
  }
  if (has_bytes && !r.scales) return OpError(call, "words of bytes need scales");
  INGOT_ASSIGN_OR_RETURN(r.activations, ReadActivations(call, cell, directions));
  if (!call->attrs.Find("clip")->is_none()) r.clip = call->attrs.GetFloat("clip");
  r.input_forget = cell == Cell::kLstm && call->attrs.GetBool("input_forget");
  r.linear_before_reset = cell == Cell::kGru && call->attrs.GetBool("linear_before_reset");
  if (cell == Cell::kGru && r.extra && !r.linear_before_reset) {
    return OpError(call, "a bias of the state's part means something with linear_before_reset alone");
  }
  return r;
}

namespace {

template <Cell cell>
Result<ir::Type> Infer(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const Recurrence r, ReadRecurrence(call, cell));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType gates, TensorArg(call, 0));
  if (!gates->dtype->is_floating()) return OpError(call, "expected floating-point numbers, got " + Describe(gates));
  const Dims state = {ir::Int64(r.directions), (*gates->dims)[1], ir::Int64(r.hidden)};
  Dims all = state;
  all.insert(all.begin(), (*gates->dims)[0]);
  std::vector<ir::Type> results = {TensorOf(std::move(all), gates->dtype, gates)};
  for (size_t i = 0; i < NumStates(cell); ++i) results.push_back(TensorOf(state, gates->dtype, gates));
  return ir::Type(ir::Make<ir::TupleTypeNode>(std::move(results)));
}

double Evaluate(const ActivationFunction& f, double x) {
  switch (f.kind) {
    case Activation::kRelu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kAffine:
      return f.alpha * x + f.beta;
    case Activation::kLeakyRelu:
      return x < 0 ? f.alpha * x : x;
    case Activation::kThresholdedRelu:
      return x > f.alpha ? x : 0;
    case Activation::kScaledTanh:
      return f.alpha * std::tanh(f.beta * x);
    case Activation::kHardSigmoid:
      return std::isnan(x) ? x : std::min(std::max(f.alpha * x + f.beta, 0.0), 1.0);
    case Activation::kElu:
      return x < 0 ? f.alpha * (std::exp(x) - 1) : x;
    case Activation::kSoftsign:
      return x / (1 + std::abs(x));
    case Activation::kSoftplus:
      return x > 700 ? x : std::log1p(std::exp(x));
  }
  INGOT_UNREACHABLE();
}

// One direction, step by step after ONNX's equations.
class ReferenceSteps {
 public:
  ReferenceSteps(const Recurrence& r, std::span<const ReferenceTensor> inputs, std::vector<ReferenceTensor>& outputs,
                 int64_t d)
      : r_(r), inputs_(inputs), outputs_(outputs), d_(d) {}

  void Run() {
    const int64_t steps = inputs_[0].dims[0], batch = inputs_[0].dims[1];
    const auto state = [&](size_t input) {
      Values values;
      for (int64_t j = 0; j < r_.hidden; ++j) values.push_back(GetNumber(inputs_[input], Row() + j));
      return values;
    };
    std::vector<Values> h, c;
    for (b_ = 0; b_ < batch; ++b_) {
      h.push_back(state(2));
      c.push_back(r_.cell == Cell::kLstm ? state(3) : Values());
    }
    for (int64_t s = 0; s < steps; ++s) {
      if (r_.has_bytes()) SetRange(h);
      for (b_ = 0; b_ < batch; ++b_) {
        if (s >= Length()) continue;
        const int64_t t = r_.IsReversed(d_) ? Length() - 1 - s : s;
        Values& own = h[static_cast<size_t>(b_)];
        own = r_.cell == Cell::kLstm  ? Lstm(t, own, c[static_cast<size_t>(b_)])
              : r_.cell == Cell::kGru ? Gru(t, own)
                                      : Rnn(t, own);
        for (int64_t j = 0; j < r_.hidden; ++j) {
          SetNumber(outputs_[0], ((t * r_.directions + d_) * batch + b_) * r_.hidden + j, own[static_cast<size_t>(j)]);
        }
      }
    }
    for (b_ = 0; b_ < batch; ++b_) {
      if (r_.lengths && Length() == 0) continue;  // zeros
      const auto at = static_cast<size_t>(b_);
      for (int64_t j = 0; j < r_.hidden; ++j) {
        SetNumber(outputs_[1], Row() + j, h[at][static_cast<size_t>(j)]);
        if (!c[at].empty()) SetNumber(outputs_[2], Row() + j, c[at][static_cast<size_t>(j)]);
      }
    }
  }

 private:
  using Values = std::vector<double>;

  int64_t Row() const { return (d_ * inputs_[0].dims[1] + b_) * r_.hidden; }
  int64_t Length() const {
    const int64_t steps = inputs_[0].dims[0];
    return r_.lengths ? std::clamp<int64_t>(inputs_[*r_.lengths].ints[static_cast<size_t>(b_)], 0, steps) : steps;
  }
  double Input(int64_t t, int64_t gate, int64_t j) const {
    const int64_t column = ((d_ * r_.panels + j / r_.lanes) * r_.gates + gate) * r_.lanes + j % r_.lanes;
    const int64_t columns = r_.directions * r_.panels * r_.gates * r_.lanes;
    return GetNumber(inputs_[0], (t * inputs_[0].dims[1] + b_) * columns + column);
  }
  // The scale and zero point of all states as bytes, computed in float32 as kernels do.
  void SetRange(const std::vector<Values>& states) {
    float low = 0, high = 0;
    for (const Values& state : states) {
      for (const double x : state) {
        low = std::fmin(low, static_cast<float>(x));
        high = std::fmax(high, static_cast<float>(x));
      }
    }
    scale_ = (high - low) / 255;
    if (!(scale_ > 0)) scale_ = 1;
    zero_ = std::nearbyint(std::clamp(-low / scale_, 0.0F, 255.0F));
  }
  double Byte(double x) const {
    const float steps = std::nearbyint(static_cast<float>(x) / scale_) + zero_;
    return steps > 0 ? std::fmin(steps, 255.0F) : 0;
  }
  double ProductOfBytes(const Values& h, int64_t gate, int64_t j) const {
    const int64_t panel = d_ * r_.panels + j / r_.lanes, lane = j % r_.lanes;
    double sum = 0;
    for (int64_t k = 0; k < r_.hidden; ++k) {
      const int64_t at = ((panel * r_.depth() + k / 4) * r_.gates + gate) * r_.lanes + lane;
      const auto word = static_cast<uint32_t>(inputs_[1].ints[static_cast<size_t>(at)]);
      sum += Byte(h[static_cast<size_t>(k)]) * static_cast<int8_t>(word >> (8 * (k % 4)));
    }
    const auto number = [&](int64_t row) {
      return GetNumber(inputs_[*r_.scales], (panel * 2 * r_.gates + row) * r_.lanes + lane);
    };
    return (sum - double{zero_} * number(r_.gates + gate)) * (double{scale_} * number(gate));
  }
  double Product(const Values& h, int64_t gate, int64_t j) const {
    if (r_.has_bytes()) return ProductOfBytes(h, gate, j);
    double sum = 0;
    for (int64_t k = 0; k < r_.hidden; ++k) {
      const int64_t panel = d_ * r_.panels + j / r_.lanes;
      const int64_t at = ((panel * r_.hidden + k) * r_.gates + gate) * r_.lanes + j % r_.lanes;
      sum += GetNumber(inputs_[1], at) * h[static_cast<size_t>(k)];
    }
    return sum;
  }
  double Extra(int64_t row, int64_t rows, int64_t j) const {
    return GetNumber(inputs_[*r_.extra], ((d_ * r_.panels + j / r_.lanes) * rows + row) * r_.lanes + j % r_.lanes);
  }
  double Activate(int64_t which, double x) const {
    if (r_.clip && !std::isnan(x)) x = std::clamp(x, -*r_.clip, *r_.clip);
    return Evaluate(r_.activation(d_, which), x);
  }

  Values Rnn(int64_t t, const Values& h) const {
    Values next;
    for (int64_t j = 0; j < r_.hidden; ++j) next.push_back(Activate(0, Input(t, 0, j) + Product(h, 0, j)));
    return next;
  }
  Values Gru(int64_t t, const Values& h) const {
    Values z, reset, scaled, next;
    for (int64_t j = 0; j < r_.hidden; ++j) {
      z.push_back(Activate(0, Input(t, 0, j) + Product(h, 0, j)));
      reset.push_back(Activate(0, Input(t, 1, j) + Product(h, 1, j)));
      scaled.push_back(reset.back() * h[static_cast<size_t>(j)]);
    }
    for (int64_t j = 0; j < r_.hidden; ++j) {
      const auto at = static_cast<size_t>(j);
      const double state = r_.linear_before_reset ? reset[at] * (Product(h, 2, j) + (r_.extra ? Extra(0, 1, j) : 0))
                                                  : Product(scaled, 2, j);
      const double candidate = Activate(1, Input(t, 2, j) + state);
      next.push_back((1 - z[at]) * candidate + z[at] * h[at]);
    }
    return next;
  }
  Values Lstm(int64_t t, const Values& h, Values& c) const {
    Values next;
    for (int64_t j = 0; j < r_.hidden; ++j) {
      double& cell = c[static_cast<size_t>(j)];
      const auto gate = [&](int64_t g) {
        return Input(t, g, j) + Product(h, g, j) + (r_.extra && g < 3 ? Extra(g, 3, j) * cell : 0);
      };
      const double in = Activate(0, gate(0));
      const double forget = r_.input_forget ? 1 - in : Activate(0, gate(2));
      const double candidate = Activate(1, gate(3));
      cell = forget * cell + in * candidate;
      const double out = Activate(0, gate(1));
      next.push_back(out * Evaluate(r_.activation(d_, 2), cell));
    }
    return next;
  }

  const Recurrence& r_;
  std::span<const ReferenceTensor> inputs_;
  std::vector<ReferenceTensor>& outputs_;
  const int64_t d_;
  int64_t b_ = 0;               // the sequence at hand
  float scale_ = 1, zero_ = 0;  // of states as bytes
};

template <Cell cell>
Result<std::vector<ReferenceTensor>> Reference(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const Recurrence r, ReadRecurrence(call, cell));
  const int64_t steps = inputs[0].dims[0], batch = inputs[0].dims[1];
  std::vector<ReferenceTensor> outputs = {NewReference(inputs[0].dtype, {steps, r.directions, batch, r.hidden})};
  for (size_t i = 0; i < NumStates(cell); ++i) {
    outputs.push_back(NewReference(inputs[0].dtype, {r.directions, batch, r.hidden}));
  }
  for (int64_t d = 0; d < r.directions; ++d) {
    ReferenceSteps(r, inputs, outputs, d).Run();
  }
  return outputs;
}

template <Cell cell>
Result<ir::PrimFunc> BuildScan(const ir::Call& call, const Target& target) {
  INGOT_ASSIGN_OR_RETURN(const Recurrence r, ReadRecurrence(call, cell));
  return BuildFromStatements(call,
                             [&](const TeArgs&, const Buffers& inputs, const Buffers& outputs) {
                               return topi::Scan(r, inputs, outputs, target);
                             },
                             {"y", "y_h", "y_c"});
}

// Two operations for each weight, step and sequence.
double ScanCost(const ir::Call& call, const Target&) {
  const auto* gates = ir::As<ir::TensorTypeNode>(call->args[0]->type);
  const auto* weights = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  const auto hidden = ir::AsConstInt((*weights->dims)[2]);  // or words of them
  return 2 * EstimateElements(call->args[0]->type) * static_cast<double>(hidden && gates != nullptr ? *hidden : 1);
}

template <Cell cell>
OpRow Row(const char* name, const char* summary, std::vector<const char*> args, int num_optional_args,
          std::optional<AttrSpec> own) {
  std::vector<AttrSpec> attrs = {{"direction", AttrType::kString, "forward"},
                                 {"activations", AttrType::kStrings},
                                 {"activation_alpha", AttrType::kAny},
                                 {"activation_beta", AttrType::kAny},
                                 {"clip", AttrType::kFloat}};
  if (own) attrs.push_back(*own);
  return {.name = name,
          .summary = summary,
          .arg_names = std::move(args),
          .num_optional_args = num_optional_args,
          .attrs = std::move(attrs),
          .infer = Infer<cell>,
          .reference = Reference<cell>,
          .implementations = {{"scan", Always, ScanCost, {}, BuildScan<cell>}},
          .cases = {.rank0 = false,
                    .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16()}}};
}

}  // namespace

std::vector<OpRow> RecurrentOps() {
  return {Row<Cell::kRnn>("nn.rnn", "h := f(gates[t] + h * recurrence), step by step",
                          {"gates", "recurrence", "initial_h", "sequence_lens"}, 1, std::nullopt),
          Row<Cell::kGru>("nn.gru", "gated recurrent units, step by step",
                          {"gates", "recurrence", "initial_h", "sequence_lens", "state_bias"}, 2,
                          AttrSpec{"linear_before_reset", AttrType::kBool, false}),
          Row<Cell::kLstm>("nn.lstm", "long short-term memory, step by step",
                           {"gates", "recurrence", "initial_h", "initial_c", "scales", "sequence_lens", "peepholes"}, 3,
                           AttrSpec{"input_forget", AttrType::kBool, false})};
}

}  // namespace ingot::op
