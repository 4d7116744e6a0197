// Cases of the recurrent layers (each cell in each direction, whole and broken panels, all activations, lengths) and of
// einsum, linear attention and determinants.
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

using ir::AttrList;
using ir::Attrs;

struct Sizes {
  int64_t steps = 5, batch = 2, hidden = 3, lanes = 2, directions = 1;
  int64_t panels() const { return (hidden + lanes - 1) / lanes; }
};

// Small numbers, since the state is fed back and differences in it grow.
ReferenceTensor Small(DataType dtype, IntList dims, uint64_t seed) {
  ReferenceTensor tensor = Data(dtype, std::move(dims), seed);
  for (double& value : tensor.floats) value /= 4;
  return tensor;
}

std::vector<ReferenceTensor> Inputs(DataType dtype, const Sizes& s, int64_t gates) {
  std::vector<ReferenceTensor> inputs = {
      Small(dtype, {s.steps, s.batch, s.directions * s.panels() * gates * s.lanes}, 1),
      Small(dtype, {s.directions, s.panels(), s.hidden, gates, s.lanes}, 2),
      Small(dtype, {s.directions, s.batch, s.hidden}, 3)};
  if (gates == 4) inputs.push_back(Small(dtype, {s.directions, s.batch, s.hidden}, 4));
  return inputs;
}

ReferenceTensor Lengths(const IntList& lengths, DataType dtype = kI32) {
  ReferenceTensor tensor = Data(dtype, {static_cast<int64_t>(lengths.size())});
  tensor.ints = lengths;
  return tensor;
}

// Inputs of an LSTM whose recurrence is of bytes.
std::vector<ReferenceTensor> InputsOfBytes(const Sizes& s) {
  std::vector<ReferenceTensor> inputs = Inputs(kF32, s, 4);
  const int64_t words = (s.hidden + 3) / 4, columns = 4 * s.lanes;
  inputs[1] = Data(kI32, {s.directions, s.panels(), words, 4, s.lanes}, 2);
  ReferenceTensor scales = Small(kF32, {s.directions, s.panels(), 8, s.lanes}, 5);
  std::vector<double> sums(static_cast<size_t>(s.directions * s.panels() * columns));
  for (size_t i = 0; i < inputs[1].ints.size(); ++i) {
    uint32_t word = 0;
    const int64_t k = static_cast<int64_t>(i) / columns % words * 4;
    for (int64_t byte = 0; byte < 4 && k + byte < s.hidden; ++byte) {
      const auto value = static_cast<int8_t>((static_cast<int64_t>(i) * 37 + byte * 101 + 5) % 251 - 125);
      word |= uint32_t{static_cast<uint8_t>(value)} << (8 * byte);
      sums[i / static_cast<size_t>(columns * words) * static_cast<size_t>(columns) +
           i % static_cast<size_t>(columns)] += value;
    }
    inputs[1].ints[i] = static_cast<int32_t>(word);
  }
  for (size_t i = 0; i < scales.floats.size(); ++i) {
    const size_t panel = i / static_cast<size_t>(2 * columns), at = i % static_cast<size_t>(2 * columns);
    const bool is_scale = at < static_cast<size_t>(columns);
    scales.floats[i] =
        is_scale ? 1.0 / 2048 : sums[panel * static_cast<size_t>(columns) + at % static_cast<size_t>(columns)];
  }
  inputs.push_back(std::move(scales));
  return inputs;
}

void LstmOfBytesCases(CaseBuilder& b) {
  constexpr double kOneByte = 5e-4;  // what changes when states between two bytes become the other one
  const auto add = [&](const char* label, const Sizes& s, const Attrs& attrs = {}) {
    b.Add("nn.lstm", label, InputsOfBytes(s), attrs).atol = kOneByte;
  };
  add("bytes", {.hidden = 4, .lanes = 4});
  add("bytes_broken", {.steps = 3, .batch = 3, .hidden = 21, .lanes = 8});
  add("bytes_bidirectional", {.batch = 1, .hidden = 18, .lanes = 16, .directions = 2},
      {{"direction", "bidirectional"}});
  add("bytes_in_tasks", {.steps = 2, .batch = 1, .hidden = 400, .lanes = 16});
  add("bytes_no_steps", {.steps = 0, .hidden = 4, .lanes = 4});
  add("bytes_no_sequences", {.batch = 0, .hidden = 4, .lanes = 4});
  std::vector<ReferenceTensor> inputs = InputsOfBytes({.batch = 4, .hidden = 5, .lanes = 4});
  inputs.push_back(Lengths({5, 0, 3, 1}));
  inputs.push_back(Small(kF32, {1, 2, 3, 4}, 6));
  b.Add("nn.lstm", "bytes_peepholes_lengths", inputs, {{"direction", "reverse"}}).atol = kOneByte;
}

void CellCases(CaseBuilder& b, const char* op, int64_t gates) {
  const int64_t num_functions = gates == 1 ? 1 : gates - 1;
  for (DataType dtype : FindOp(op)->cases.dtypes) b.Add(op, dtype.ToString(), Inputs(dtype, {}, gates));
  b.Add(op, "reverse", Inputs(kF32, {}, gates), {{"direction", "reverse"}});
  b.Add(op, "bidirectional", Inputs(kF32, {.directions = 2}, gates), {{"direction", "bidirectional"}});
  b.Add(op, "whole_panels", Inputs(kF32, {.hidden = 16, .lanes = 8}, gates));
  b.Add(op, "tasks", Inputs(kF32, {.steps = 2, .batch = 1, .hidden = 400, .lanes = 16}, gates)).atol = 1e-5;
  // Groups of panels that overlap, in one task and in several, a sequence without a pair, and one without others.
  b.Add(op, "groups", Inputs(kF32, {.steps = 3, .batch = 3, .hidden = 5 * 16 - 3, .lanes = 16}, gates)).atol = 1e-5;
  b.Add(op, "groups_of_one", Inputs(kF32, {.steps = 3, .batch = 1, .hidden = 3 * 16, .lanes = 16}, gates)).atol = 1e-5;
  b.Add(op, "groups_in_tasks", Inputs(kF32, {.steps = 2, .batch = 3, .hidden = 23 * 16, .lanes = 16}, gates)).atol =
      1e-5;
  b.Add(op, "no_steps", Inputs(kF32, {.steps = 0}, gates));
  b.Add(op, "no_sequences", Inputs(kF32, {.batch = 0}, gates));
  for (const char* direction : {"forward", "reverse"}) {
    std::vector<ReferenceTensor> inputs = Inputs(kF32, {.batch = 4}, gates);
    inputs.push_back(Lengths({5, 0, 3, 1}));
    b.Add(op, std::string("lengths_") + direction, inputs, {{"direction", direction}});
  }
  std::vector<ReferenceTensor> alone = Inputs(kF32, {.batch = 1, .directions = 2}, gates);
  alone.push_back(Lengths({2}));
  b.Add(op, "one_sequence_of_a_length", alone, {{"direction", "bidirectional"}});
  b.Add(op, "clip", Inputs(kF32, {}, gates), {{"clip", 0.25}});
  std::vector<ReferenceTensor> special = Inputs(kF32, {.steps = 1, .batch = 3}, gates);
  for (size_t i = 0; i < special[0].floats.size(); i += 3) special[0].floats[i] = i % 2 == 0 ? kInf : -kInf;
  special[0].floats[1] = kNan;
  b.Add(op, "specials", special);
  for (const char* name : {"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                           "HardSigmoid", "Elu", "Softsign", "Softplus"}) {
    const auto all = static_cast<size_t>(num_functions);
    b.Add(op, name, Inputs(kF32, {.steps = 2}, gates), {{"activations", AttrList(all, name)}});
    b.Add(op, std::string(name) + "_alpha_beta", Inputs(kF32, {.steps = 2}, gates),
          {{"activations", AttrList(all, name)},
           {"activation_alpha", AttrList(all, 0.75)},
           {"activation_beta", AttrList(all, 0.125)}});
  }
}

void EinsumCases(CaseBuilder& b) {
  const auto add = [&](std::string label, const char* subscripts, std::vector<ReferenceTensor> inputs) {
    b.Add("einsum", std::move(label), std::move(inputs), {{"subscripts", subscripts}}, AsTuple);
  };
  for (DataType dtype : FindOp("einsum")->cases.dtypes) {
    add(dtype.ToString(), "bij,bjk->bik", {Data(dtype, {2, 3, 4}), Data(dtype, {2, 4, 5}, 2)});
  }
  add("outer", "i,j", {Data(kF32, {3}), Data(kF32, {4}, 2)});
  add("rank0", "...,...", {Data(kF32, {}), Data(kF32, {}, 2)});
  add("trace", "ii", {Data(kF32, {4, 4})});
  add("diagonal", "...ii->...i", {Data(kF32, {2, 3, 3})});
  add("transpose", "ij->ji", {Data(kF32, {2, 5})});
  add("sum_all", "ijk->", {Data(kF32, {2, 3, 4})});
  add("three", "ij,jk,kl->il", {Data(kF32, {2, 3}), Data(kF32, {3, 4}, 2), Data(kF32, {4, 5}, 3)});
  add("ellipsis", "...ij,...jk->...ik", {Data(kF32, {7, 2, 3, 4}), Data(kF32, {2, 4, 5}, 2)});
  add("repeated_ones", "ij,ij->ij", {Data(kF32, {6, 1}), Data(kF32, {1, 5}, 2)});
  add("empty", "ij,jk->ik", {Data(kF32, {2, 0}), Data(kF32, {0, 3}, 2)});
  add("specials", "i,j->ij", {Specials(), Data(kF32, {3}, 2)});
}

struct HeadDims {
  int64_t batch = 2, steps = 3, heads = 2, group = 1, depth = 3, value_depth = 5;
};

// Operands of nn.linear_attention: factors are none, one per head (1) or one per element of a key (2), rates none, one
// per step (1) or one per head (2).
void LinearAttentionCase(CaseBuilder& b, const char* label, DataType dtype, const HeadDims& s, int factors = 0,
                         int rates = 0) {
  std::vector<ReferenceTensor> inputs = {Small(dtype, {s.batch, s.steps, s.heads * s.group * s.depth}, 1),
                                         Small(dtype, {s.batch, s.steps, s.heads * s.depth}, 2),
                                         Small(dtype, {s.batch, s.steps, s.heads * s.value_depth}, 3),
                                         Small(dtype, {s.batch, s.heads, s.depth, s.value_depth}, 4)};
  if (factors != 0) inputs.push_back(Small(dtype, {s.batch, s.steps, s.heads * (factors == 1 ? 1 : s.depth)}, 5));
  if (rates != 0) inputs.push_back(Small(dtype, {s.batch, s.steps, rates == 1 ? 1 : s.heads}, 6));
  const char* rule = factors != 0 ? (rates != 0 ? "gated_delta" : "gated") : rates != 0 ? "delta" : "linear";
  b.Add("nn.linear_attention", label, std::move(inputs),
        {{"query_heads", s.heads * s.group}, {"key_heads", s.heads}, {"scale", 0.75}, {"update_rule", rule}});
}

void LinearAttentionCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("nn.linear_attention")->cases.dtypes) {
    LinearAttentionCase(b, dtype.ToString().c_str(), dtype, {.group = 2, .value_depth = 39}, 2, 2);
  }
  LinearAttentionCase(b, "linear", kF32, {});
  LinearAttentionCase(b, "gated", kF32, {.group = 3, .depth = 4, .value_depth = 1}, 1);
  LinearAttentionCase(b, "gated_by_row", kF32, {.depth = 1, .value_depth = 32}, 2);
  LinearAttentionCase(b, "delta", kF32, {.batch = 1, .value_depth = 7}, 0, 1);
  LinearAttentionCase(b, "gated_delta", kF32, {.steps = 1, .depth = 5}, 1, 1);
  LinearAttentionCase(b, "tasks", kF32, {.batch = 2, .steps = 8, .heads = 3, .depth = 32, .value_depth = 80}, 2, 2);
  LinearAttentionCase(b, "no_steps", kF32, {.steps = 0}, 1, 2);
  LinearAttentionCase(b, "empty", kF32, {.batch = 0}, 2, 1);
  LinearAttentionCase(b, "specials", kF32, {.batch = 3, .steps = 1, .heads = 1}, 1, 1);
  OpCase& special = b.cases.back();
  special.inputs[2].floats = {1, 2, kInf, 3, 4, 1, -kInf, 2, 3, 4, kNan, 1, 2, 3, 4};
}

void DeterminantCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("linalg.det")->cases.dtypes) {
    b.Add("linalg.det", dtype.ToString(), {Small(dtype, {2, 9, 9}, 1)}).atol = 1e-5;
  }
  for (int64_t n : {1, 2, 3, 8, 17}) {
    b.Add("linalg.det", "n" + std::to_string(n), {Small(kF32, {3, n, n}, 2)}).atol = 1e-5;
  }
  b.Add("linalg.det", "exchanged", {Of(kF32, {2, 3, 3}, {0, 2, 1, 0, 0, 3, 4, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1})});
  b.Add("linalg.det", "singular", {Of(kF32, {2, 2, 2}, {0, 1, 0, 2, 1, 2, 2, 4})});
  b.Add("linalg.det", "of_nothing", {Data(kF32, {2, 0, 0})});
  b.Add("linalg.det", "empty", {Data(kF32, {0, 4, 4})});
  b.Add("linalg.det", "specials", {Of(kF32, {3, 2, 2}, {kNan, 1, 2, 3, 0, 1, kNan, 2, kInf, 0, 0, 2})});
}

}  // namespace

void RecurrentCases(CaseBuilder& b) {
  EinsumCases(b);
  LinearAttentionCases(b);
  DeterminantCases(b);
  CellCases(b, "nn.rnn", 1);
  CellCases(b, "nn.gru", 3);
  CellCases(b, "nn.lstm", 4);

  LstmOfBytesCases(b);
  const Attrs linear = {{"linear_before_reset", true}};
  b.Add("nn.gru", "linear_before_reset", Inputs(kF32, {.hidden = 4}, 3), linear);
  std::vector<ReferenceTensor> gru = Inputs(kF32, {}, 3);
  gru.push_back(Lengths({2, 5}, kI64));
  gru.push_back(Small(kF32, {1, 2, 2}, 5));
  b.Add("nn.gru", "state_bias", gru, linear);

  b.Add("nn.lstm", "input_forget", Inputs(kF32, {}, 4), {{"input_forget", true}});
  std::vector<ReferenceTensor> lstm = Inputs(kF32, {.directions = 2}, 4);
  lstm.push_back(Small(kF32, {2, 2, 3, 2}, 5));
  b.Add("nn.lstm", "peepholes", lstm, {{"direction", "bidirectional"}});
  lstm.push_back(Lengths({4, 2}));
  b.Add("nn.lstm", "peepholes_lengths", lstm, {{"direction", "bidirectional"}, {"clip", 0.5}});
}

}  // namespace ingot::op
