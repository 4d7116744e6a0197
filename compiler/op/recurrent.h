// Recurrent layers as their operators define them: one scan over time of an LSTM, GRU or plain cell. The products of
// the inputs with their weights are no part of it: they are one matrix product over all steps, and the scan adds what
// the previous step's state contributes. Hidden units stand in panels of L lanes (the last one filled up), so that
// every gate of a panel is one contiguous vector:
//   gates       [T, B, D*P*G*L]  x[t] * W + biases; the last axis is (direction, panel, gate, lane)
//   recurrence  [D, P, H, G, L]  from unit k of the previous state to gate g of unit p * L + l
//   initial_h   [D, B, H], and initial_c for an LSTM
//   results     [T, D, B, H] all states, [D, B, H] the last one, and for an LSTM [D, B, H] the last cell
// with T steps, B sequences, D directions, P = ceil(H / L) panels. Gates are in ONNX's order: i o f c; z r h. Optional
// arguments at the end, each with a type of its own: integers [B] are the sequences' lengths (the rest is padding,
// whose states are 0, and so is the last state of a sequence of length 0); numbers are an LSTM's peepholes [D, P, 3, L]
// (i o f), or the bias [D, P, L] that a GRU with linear_before_reset adds to the state's part of its candidate.
// An LSTM of float32 may have a recurrence of bytes: [D, P, ceil(H / 4), G, L] words (int32) of four signed bytes, of the
// units from 4 * k on, the first of each lowest. Then there are numbers [D, P, 2 * G, L] too: for each gate's columns the
// scale of their bytes, and behind these their sums. Every step quantises the states of all sequences by their
// range together with 0, as DynamicQuantizeLinear does, and the product is that of the integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/op/infer.h"

namespace ingot::op {

enum class Cell : uint8_t { kRnn, kGru, kLstm };

// An activation function: ONNX's names in lower case.
enum class Activation : uint8_t {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,           // alpha * x + beta
  kLeakyRelu,        // x < 0 ? alpha * x : x
  kThresholdedRelu,  // x > alpha ? x : 0
  kScaledTanh,       // alpha * tanh(beta * x)
  kHardSigmoid,      // min(max(alpha * x + beta, 0), 1)
  kElu,              // x < 0 ? alpha * (exp(x) - 1) : x
  kSoftsign,         // x / (1 + |x|)
  kSoftplus,         // log(1 + exp(x))
};
struct ActivationFunction {
  Activation kind;
  double alpha, beta;
};
// Whether the function has the parameter alpha (beta); ONNX's lists hold values for the functions that do.
bool TakesAlpha(Activation kind);
bool TakesBeta(Activation kind);
// The function of a name in any case of letters, with ONNX's defaults; nothing for an unknown name.
std::optional<ActivationFunction> FindActivation(std::string_view name);

struct Recurrence {
  Cell cell;
  int64_t directions, panels, hidden, gates, lanes;  // D, P, H, G, L
  bool starts_reversed;                              // direction 0 runs backwards; direction 1 always does
  std::vector<ActivationFunction> activations;       // per direction: f, and g, and h, as many as the cell has
  std::optional<double> clip;                        // the bound of the activations' arguments
  bool input_forget, linear_before_reset;
  std::optional<size_t> lengths, extra, scales;  // places of the optional arguments
  bool has_bytes() const { return scales.has_value(); }
  // The rows of the recurrence: units, or words of them.
  int64_t depth() const { return has_bytes() ? (hidden + 3) / 4 : hidden; }
  int64_t num_activations() const { return static_cast<int64_t>(cell) + 1; }
  bool IsReversed(int64_t direction) const { return direction == 1 || starts_reversed; }
  const ActivationFunction& activation(int64_t direction, int64_t i) const {
    return activations[static_cast<size_t>(direction * num_activations() + i)];
  }
};

// The attributes of a call and the dims of its arguments, which must be known; an error where they do not fit each
// other.
Result<Recurrence> ReadRecurrence(const ir::Call& call, Cell cell);

}  // namespace ingot::op
