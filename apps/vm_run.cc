// vm-run: calls a function of an executable with tensors from files or the command line, through the C API. Parses
// options; the work is in apps/common/session and formats/.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>

#include "apps/common/session.h"
#include "apps/common/tool.h"
#include "formats/tensor_compare.h"
#include "formats/tensor_files.h"
#include "formats/tensor_print.h"
#include "runtime/suggest.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-run digits.ingot image.npy                    # files bind in order; .npz and .safetensors by name\n"
    "  vm-run model.ingot --input x=4xf32='1 2 3 4' --output y=@y.npy\n"
    "  vm-run model.ingot inputs.npz --expect @outputs.npz --rtol 1e-4 --atol 1e-5\n"
    "  vm-run classifier.ingot image.npy --top-k 5 --labels labels.txt\n"
    "  vm-run model.ingot --input x=rand --seed 7 --output @all.safetensors";

struct Options {
  SessionOptions session;
  InputArguments inputs;
  std::vector<std::string> outputs;
  std::string expect, labels, kernels = "native";
  double rtol = 1e-5, atol = 1e-8;
  int64_t top_k = 0, repeat = 1;
};

using Output = Session::Output;

Status PrintOutput(const Output& output) {
  if (!output.tensor) {
    std::cout << output.name << ": " << output.text << "\n";
    return Status();
  }
  INGOT_ASSIGN_OR_RETURN(std::string text, formats::TensorToText(output.tensor));
  std::cout << output.name << ": " << output.tensor.TypeToString() << "\n" << text << "\n";
  return Status();
}

// "NAME=@file", "@file", "NAME=-": which outputs go where.
Status WriteOutputs(const std::vector<std::string>& arguments, const std::vector<Output>& outputs) {
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
    if (chosen.empty()) {
      for (const Output& output : outputs) chosen.push_back(&output);
    }
    if (target == "-") {
      for (const Output* output : chosen) INGOT_RETURN_IF_ERROR(PrintOutput(*output));
      continue;
    }
    std::vector<formats::NamedTensor> tensors;
    for (const Output* output : chosen) {
      if (output->tensor) tensors.push_back({output->name, output->tensor});
    }
    INGOT_RETURN_IF_ERROR(formats::WriteTensorFile(target.substr(1), tensors));
  }
  return Status();
}

struct ExpectResult {
  bool equal = true;
  Json report = Json::array();
};

// Compares the outputs that the reference file names. A file of one unnamed tensor (.npy) is the only output's.
Result<ExpectResult> CompareWithReference(const Tool& tool, const Options& options,
                                          const std::vector<Output>& outputs) {
  if (!options.expect.starts_with("@")) {
    return Status(StatusCode::kInvalidArgument, "--expect: expected @FILE, got \"" + options.expect + "\"");
  }
  const std::string path = options.expect.substr(1);
  INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> reference, formats::ReadTensorFile(path));
  if (path.ends_with(".npy")) {
    if (outputs.size() != 1)
      return Status(StatusCode::kInvalidArgument,
                    path + ": a single tensor, but there are " + std::to_string(outputs.size()) + " outputs");
    reference[0].name = outputs[0].name;
  }
  ExpectResult result;
  size_t compared = 0;
  for (const Output& output : outputs) {
    const auto found =
        std::find_if(reference.begin(), reference.end(), [&](const auto& named) { return named.name == output.name; });
    if (found == reference.end() || !output.tensor) {
      tool.Note("output \"" + output.name + "\" is not in " + path + ", not compared");
      continue;
    }
    ++compared;
    Result<formats::Comparison> comparison =
        formats::CompareTensors(output.tensor, found->tensor, {options.rtol, options.atol});
    if (!comparison.ok()) return std::move(comparison).status().WithContext(path + ": output \"" + output.name + "\"");
    result.equal &= comparison->equal;
    result.report.push_back({{"name", output.name},
                             {"equal", comparison->equal},
                             {"different", comparison->num_different},
                             {"max_absolute_error", comparison->max_absolute_error}});
    tool.Note("output \"" + output.name + "\": " + comparison->ToString());
  }
  if (compared == 0) return Status(StatusCode::kBadInput, path + ": holds none of the outputs");
  return result;
}

// The k largest of each row of the first output, as lines and as JSON.
struct TopK {
  std::string text;
  Json json = Json::array();
};
Result<TopK> FindTopK(const Options& options, const std::vector<Output>& outputs) {
  std::vector<std::string> labels;
  if (!options.labels.empty()) {
    std::ifstream file(options.labels);
    if (!file) return Status(StatusCode::kIo, options.labels + ": cannot be read");
    for (std::string line; std::getline(file, line);) labels.push_back(line);
  }
  if (outputs.empty() || !outputs[0].tensor || outputs[0].tensor.rank() == 0) {
    return Status(StatusCode::kInvalidArgument, "--top-k: the first output is no tensor with classes");
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor scores, outputs[0].tensor.Compact());
  const int64_t classes = scores.dim(scores.rank() - 1);
  const int64_t rows = classes == 0 ? 0 : scores.num_elements() / classes;
  const int64_t k = std::min(options.top_k, classes);
  TopK result;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), int64_t{0});
    auto score = [&](int64_t c) { return formats::ElementAsDouble(scores, row * classes + c); };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
    Json best = Json::array();
    for (int64_t i = 0; i < k; ++i) {
      const int64_t c = order[static_cast<size_t>(i)];
      const std::string label =
          static_cast<size_t>(c) < labels.size() ? labels[static_cast<size_t>(c)] : std::to_string(c);
      char probability[32];
      std::snprintf(probability, sizeof probability, "%.6f", score(c));
      best.push_back({{"class", label}, {"probability", score(c)}});
      result.text += (rows > 1 ? "[" + std::to_string(row) + "] " : "") + "class='" + label +
                     "' with probability=" + probability + "\n";
    }
    result.json.push_back(best);
  }
  return result;
}

Result<int> Run(Tool& tool, Options& options) {
  if (options.kernels != "native" && options.kernels != "stub") {
    return Status(StatusCode::kInvalidArgument, "--kernels: expected native or stub");
  }
  options.session.stub_kernels = options.kernels == "stub";
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Open(options.session));
  INGOT_RETURN_IF_ERROR(session->BindInputs(options.inputs));
  CancelOnInterrupt(*session);
  std::vector<Output> outputs;
  for (int64_t i = 0; i < options.repeat; ++i) {
    INGOT_ASSIGN_OR_RETURN(outputs, session->Invoke());
  }
  Json document{{"executable", options.session.path}, {"entry", options.session.entry}};
  Json described = Json::array();
  for (const Output& output : outputs) {
    described.push_back({{"name", output.name}, {"type", output.tensor ? output.tensor.TypeToString() : output.text}});
  }
  document["outputs"] = described;

  INGOT_RETURN_IF_ERROR(WriteOutputs(options.outputs, outputs));
  if (options.top_k > 0) {
    INGOT_ASSIGN_OR_RETURN(TopK best, FindTopK(options, outputs));
    document["top_k"] = best.json;
    if (!tool.json_to_stdout()) std::cout << best.text;
  }
  int exit_code = kExitOk;
  if (!options.expect.empty()) {
    INGOT_ASSIGN_OR_RETURN(ExpectResult expected, CompareWithReference(tool, options, outputs));
    document["expect"] = expected.report;
    if (!expected.equal) exit_code = kExitDiffers;
  }
  if (tool.wants_json()) INGOT_RETURN_IF_ERROR(tool.WriteJson(1, document));
  if (!tool.json_to_stdout() && options.outputs.empty() && options.top_k == 0 && options.expect.empty()) {
    for (const Output& output : outputs) INGOT_RETURN_IF_ERROR(PrintOutput(output));
  }
  return exit_code;
}

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  Tool tool("vm-run", "Runs a function of an executable on tensors.", kExamples);
  Options options;
  CLI::App& app = tool.app();
  app.add_option("EXE", options.session.path, "The executable")->required();
  app.add_option("FILE", options.inputs.files, "Tensor files: .npy in order, .npz and .safetensors by name");
  app.add_option("--entry", options.session.entry, "Function to call")->capture_default_str();
  app.add_option("--input", options.inputs.specs,
                 "[NAME=]SPEC: 4xf32=1 2 3 4, @f.npy, @f.npz:key, 4xf32=@f.bin, rand, randint:lo,hi, zeros, ones");
  app.add_option("--output", options.outputs, "[NAME=]-|@f.npy|@all.npz|@all.safetensors (default: printed)");
  app.add_option("--threads", options.session.threads, "Threads of the pool (default: all processors)");
  app.add_option("--top-k", options.top_k, "Print the K best classes of the first output");
  app.add_option("--labels", options.labels, "Names of classes, one a line")->type_name("FILE");
  app.add_option("--seed", options.inputs.seed, "Of rand and randint")->capture_default_str();
  app.add_option("--expect", options.expect, "@FILE: compare outputs with it; exit 1 when they differ");
  app.add_option("--rtol", options.rtol, "Relative tolerance of --expect")->capture_default_str();
  app.add_option("--atol", options.atol, "Absolute tolerance of --expect")->capture_default_str();
  app.add_option("--max-memory", options.session.max_memory_bytes, "Cap of arenas and tensors")->type_name("BYTES");
  app.add_option("--deadline", options.session.deadline_seconds, "Stop after so long")->type_name("SECONDS");
  app.add_option("--repeat", options.repeat, "Call so many times")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--kernels", options.kernels, "native, or stub: no native code, results without meaning")
      ->capture_default_str();
  return tool.Run(argc, argv, [&] { return Run(tool, options); });
}
