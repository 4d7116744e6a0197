// Prints outputs, routes them to tensor files by the words of --output, and sorts rows of scores.
#include "apps/common/outputs.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "apps/common/nested_input.h"
#include "apps/common/printable.h"
#include "formats/tensor_compare.h"
#include "formats/tensor_files.h"
#include "formats/tensor_print.h"
#include "runtime/host_elements.h"
#include "runtime/suggest.h"

namespace ingot::apps {

using Output = Session::Output;

namespace {

// Strings as NumPy has them, one below the other from the second axis on: "strings[2]\n['a' 'b']".
std::string StringsToText(const Output& output) {
  constexpr size_t kMost = 1000;
  const int64_t columns = output.tensor.rank() == 0 ? 1 : output.tensor.dim(output.tensor.rank() - 1);
  std::string text = "strings" + host::DimsToString(output.tensor.dims()) + "\n[";
  for (size_t i = 0; i < std::min(output.strings.size(), kMost); ++i) {
    const bool is_row = i > 0 && columns > 0 && static_cast<int64_t>(i) % columns == 0;
    text += (i == 0 ? "" : is_row ? "\n " : " ") + ("'" + output.strings[i] + "'");
  }
  return text + (output.strings.size() > kMost ? " ...]" : "]");
}

Result<std::string> OutputText(const Output& output) {
  if (!output.strings.empty()) return output.name + ": " + StringsToText(output);
  if (!output.tensor) return output.name + ": " + output.text;
  INGOT_ASSIGN_OR_RETURN(const std::string elements, formats::TensorToText(output.tensor));
  return output.name + ": " + output.tensor.TypeToString() + "\n" + elements;
}

Status Print(const std::vector<const Output*>& outputs) {
  constexpr size_t kMostText = 1 << 19;  // bytes
  size_t printed = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (printed > kMostText) {
      std::printf("... and %zu more outputs, which --output @FILE writes\n", outputs.size() - i);
      break;
    }
    INGOT_ASSIGN_OR_RETURN(const std::string text, OutputText(*outputs[i]));
    std::puts(Printable(text).c_str());
    printed += text.size();
  }
  return Status();
}

std::vector<const Output*> AllOf(const std::vector<Output>& outputs) {
  std::vector<const Output*> all;
  for (const Output& output : outputs) all.push_back(&output);
  return all;
}

}  // namespace

Status PrintOutputs(const std::vector<Output>& outputs) { return Print(AllOf(outputs)); }

Status WriteOutputs(const std::vector<std::string>& arguments, const std::vector<Output>& outputs,
                    formats::FileCalls& calls) {
  std::vector<std::string_view> names;
  for (const Output& output : outputs) names.push_back(output.name);
  for (const std::string& argument : arguments) {
    std::vector<const Output*> chosen;
    std::string target = argument;
    for (const Output& output : outputs) {
      if (argument.starts_with(output.name + "=")) {
        chosen = {&output};
        target = argument.substr(output.name.size() + 1);
      }
    }
    if (chosen.empty() && target != "-" && !target.starts_with("@")) {
      const std::string name = argument.substr(0, argument.find('='));
      return Status(StatusCode::kNotFound, "--output: there is no output \"" + name + "\"" + DidYouMean(name, names));
    }
    if (chosen.empty()) chosen = AllOf(outputs);
    if (target == "-") {
      INGOT_RETURN_IF_ERROR(Print(chosen));
      continue;
    }
    std::vector<formats::NamedTensor> tensors;
    for (const Output* output : chosen) {
      if (output->tensor) tensors.push_back({output->name, output->tensor});
      if (output->text == kNoElements) {
        INGOT_ASSIGN_OR_RETURN(Tensor none, Tensor::Allocate(DataType::Float(32), std::array<int64_t, 1>{0}));
        tensors.push_back({output->name, std::move(none)});
      }
    }
    INGOT_RETURN_IF_ERROR(formats::WriteTensorFile(target.substr(1), tensors, calls));
  }
  return Status();
}

Result<std::vector<ClassScore>> FindTopK(int64_t k, const std::vector<std::string>& labels,
                                         const std::vector<Output>& outputs) {
  if (outputs.empty() || !outputs[0].tensor || outputs[0].tensor.rank() == 0) {
    return Status(StatusCode::kInvalidArgument, "--top-k: the first output is no tensor with classes");
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor scores, outputs[0].tensor.Compact());
  const int64_t classes = scores.dim(scores.rank() - 1);
  const int64_t rows = classes == 0 ? 0 : scores.num_elements() / classes;
  std::vector<ClassScore> best;
  std::vector<int64_t> order(static_cast<size_t>(classes));
  for (int64_t row = 0; row < rows; ++row) {
    std::iota(order.begin(), order.end(), int64_t{0});
    auto score = [&](int64_t c) { return formats::ElementAsDouble(scores, row * classes + c); };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
    for (size_t i = 0; i < order.size() && static_cast<int64_t>(i) < k; ++i) {
      const auto c = static_cast<size_t>(order[i]);
      best.push_back({row, c < labels.size() ? labels[c] : std::to_string(c), score(order[i])});
    }
  }
  return best;
}

std::string TopKText(const std::vector<ClassScore>& scores) {
  std::string text;
  const bool has_rows = !scores.empty() && scores.back().row > 0;
  for (const ClassScore& score : scores) {
    char probability[32];
    std::snprintf(probability, sizeof probability, "%.6f", score.probability);
    if (has_rows) text += "[" + std::to_string(score.row) + "] ";
    text += "class='" + score.label + "' with probability=" + probability + "\n";
  }
  return text;
}

}  // namespace ingot::apps
