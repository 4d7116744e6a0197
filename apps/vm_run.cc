// vm-run: calls a function of an executable with tensors from files or the command line, through the C API. Parses
// options; the work is in apps/common/session and formats/.

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "apps/common/outputs.h"
#include "apps/common/process.h"
#include "apps/common/profile.h"
#include "apps/common/self_test.h"
#include "apps/common/session.h"
#include "apps/common/session_options.h"
#include "apps/common/tool.h"
#include "formats/tensor_compare.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-run digits.ingot image.npy                    # files bind in order; .npz and .safetensors by name\n"
    "  vm-run model.ingot --input x=4xf32='1 2 3 4' --output y=@y.npy\n"
    "  vm-run model.ingot inputs.npz --expect @outputs.npz --rtol 1e-4 --atol 1e-5\n"
    "  vm-run classifier.ingot image.npy --top-k 5 --labels labels.txt\n"
    "  vm-run model.ingot --input x=rand --seed 7 --output @all.safetensors\n"
    "  vm-run model.ingot --self-test\n"
    "  vm-run model.ingot inputs.npz --require-signature model.key.pub\n"
    "  vm-run model.ingot inputs.npz --weights finetuned.safetensors\n"
    "  vm-run model.ingot inputs.npz --profile --repeat 20 --trace trace.json\n"
    "  vm-run decoder.ingot ids.npy --state-load s.safetensors --state-save s.safetensors";

struct Options {
  SessionOptions session;
  InputArguments inputs;
  std::vector<std::string> outputs;
  std::string expect, labels, kernels = "native", state_load, state_save;
  formats::Tolerance tolerance;
  int64_t top_k = 0, repeat = 1;
  bool profile = false, self_test = false;
  std::string trace;
};

using Output = Session::Output;

Json ReportOf(const std::vector<ComparedOutput>& compared) {
  Json report = Json::Array();
  for (const ComparedOutput& output : compared) {
    report.push_back({{"name", output.name},
                      {"equal", output.comparison.equal},
                      {"different", output.comparison.num_different},
                      {"max_absolute_error", output.comparison.max_absolute_error}});
  }
  return report;
}

Json TopKJson(const std::vector<ClassScore>& scores) {
  Json rows = Json::Array();
  for (const ClassScore& score : scores) {
    if (rows.size() <= static_cast<size_t>(score.row)) rows.push_back(Json::Array());
    rows.back().push_back({{"class", score.label}, {"probability", score.probability}});
  }
  return rows;
}

// Makes --repeat calls and returns the outputs of the last one. With more than one call, the first is not profiled, so
// that the profile is of warm calls.
Result<std::vector<Output>> InvokeAll(Session& session, const Options& options, Profile& profile) {
  const bool observes = options.profile || !options.trace.empty();
  const CancelOnInterrupt interruptible(session);
  std::vector<Output> outputs;
  for (int64_t i = 0; i < options.repeat; ++i) {
    if (observes && i == (options.repeat > 1 ? 1 : 0)) {
      INGOT_RETURN_IF_ERROR(profile.Attach(session.context(), !options.trace.empty()));
    }
    profile.BeginInvocation();
    INGOT_ASSIGN_OR_RETURN(outputs, session.Invoke());
    if (profile.is_attached()) profile.EndInvocation();
  }
  profile.Detach();
  return outputs;
}

Result<int> SelfTest(Tool& tool, const SessionOptions& options, const std::function<void(const std::string&)>& note) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<GoldenResult> results, RunSelfTest(options, note));
  Json cases = Json::Array();
  bool passed = true;
  for (const GoldenResult& result : results) {
    cases.push_back({{"function", result.function},
                     {"origin", result.origin},
                     {"passed", AllEqual(result.outputs)},
                     {"outputs", ReportOf(result.outputs)}});
    passed &= AllEqual(result.outputs);
  }
  if (tool.wants_json()) {
    INGOT_RETURN_IF_ERROR(tool.WriteJson(1, {{"executable", options.path}, {"passed", passed}, {"cases", cases}}));
  }
  if (!tool.json_to_stdout()) std::cout << SelfTestText(results) << "\n";
  return passed ? int{kExitOk} : int{kExitDiffers};
}

Result<int> Run(Tool& tool, Options& options) {
  if (options.kernels != "native" && options.kernels != "stub") {
    return Status(StatusCode::kInvalidArgument, "--kernels: expected native or stub");
  }
  options.session.stub_kernels = options.kernels == "stub";
  const auto note = [&](const std::string& text) { tool.Note(text); };
  if (options.self_test) return SelfTest(tool, options.session, note);
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Open(options.session));
  INGOT_RETURN_IF_ERROR(session->BindInputs(options.inputs));
  if (!options.state_load.empty()) INGOT_RETURN_IF_ERROR(session->LoadStates(options.state_load));
  Profile profile;
  INGOT_ASSIGN_OR_RETURN(const std::vector<Output> outputs, InvokeAll(*session, options, profile));
  Json document{{"executable", options.session.path}, {"entry", options.session.entry}};
  Json described = Json::Array();
  for (const Output& output : outputs) {
    described.push_back({{"name", output.name}, {"type", output.tensor ? output.tensor.TypeToString() : output.text}});
  }
  document["outputs"] = described;

  INGOT_RETURN_IF_ERROR(WriteOutputs(options.outputs, outputs, tool.files()));
  if (!options.state_save.empty()) INGOT_RETURN_IF_ERROR(session->SaveStates(options.state_save, tool.files()));
  if (options.top_k > 0) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<std::string> labels, session->Labels(options.labels));
    INGOT_ASSIGN_OR_RETURN(const std::vector<ClassScore> best, FindTopK(options.top_k, labels, outputs));
    document["top_k"] = TopKJson(best);
    if (!tool.json_to_stdout()) std::cout << TopKText(best);
  }
  int exit_code = kExitOk;
  if (!options.expect.empty()) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<ComparedOutput> compared,
                           CompareWithFile(options.expect, options.tolerance, outputs, note));
    document["expect"] = ReportOf(compared);
    if (!AllEqual(compared)) exit_code = kExitDiffers;
  }
  if (options.profile) document["profile"] = profile.ToJson();
  if (!options.trace.empty()) INGOT_RETURN_IF_ERROR(profile.WriteTrace(options.trace, tool.files()));
  if (tool.wants_json()) INGOT_RETURN_IF_ERROR(tool.WriteJson(1, document));
  if (options.profile && !tool.json_to_stdout()) std::cout << profile.ToTable();
  const bool has_printed = options.top_k > 0 || options.profile || !options.expect.empty();
  if (!tool.json_to_stdout() && options.outputs.empty() && !has_printed) {
    INGOT_RETURN_IF_ERROR(PrintOutputs(outputs));
  }
  return exit_code;
}

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  PrepareProcess("vm-run");
  Tool tool("vm-run", "Runs a function of an executable on tensors.", kExamples);
  Options options;
  CommandLine& line = tool.command_line();
  AddSessionOptions(line, options.session);
  line.Add("FILE", options.inputs.files, "Tensor files: .npy in order, .npz and .safetensors by name");
  line.Add("--input", options.inputs.specs,
           "[NAME=]SPEC: 4xf32=1 2 3 4, @f.npy, @f.npz:key, 4xf32=@f.bin, rand, randint:lo,hi, zeros, ones; elements "
           "of a sequence or tuple are NAME.0, NAME.1, ..., and NAME=() is one without any");
  line.Add("--output", options.outputs, "[NAME=]-|@f.npy|@all.npz|@all.safetensors (default: printed)");
  line.Add("--threads", options.session.threads, "Threads of the pool (default: all processors)");
  line.Add("--top-k", options.top_k, "Print the K best classes of the first output");
  line.Add("--labels", options.labels, "Names of classes, one a line (default: the executable's own)").Type("FILE");
  line.Add("--seed", options.inputs.seed, "Of rand and randint").ShowDefault();
  line.Add("--expect", options.expect, "@FILE: compare outputs with it; exit 1 when they differ");
  line.Add("--rtol", options.tolerance.relative, "Relative tolerance of --expect").ShowDefault();
  line.Add("--atol", options.tolerance.absolute, "Absolute tolerance of --expect").ShowDefault();
  line.AddFlag("--self-test", options.self_test,
               "Run the golden cases that the executable holds; exit 1 when a result differs");
  line.AddFlag("--check-finite", options.session.check_finite, "Fail at the first operation that makes a NaN or Inf");
  line.AddFlag("--profile", options.profile,
               "Print times, GFLOP/s and GB/s by instruction (with --repeat: of all calls but the first)");
  line.Add("--trace", options.trace, "Write a Chrome trace of the same calls").Type("FILE");
  line.Add("--max-memory", options.session.max_memory_bytes, "Cap of arenas, tensors and other values").Type("BYTES");
  line.Add("--deadline", options.session.deadline_seconds, "Stop after so long").Type("SECONDS");
  line.Add("--fuel", options.session.fuel, "Stop after so many calls and back edges").Type("N");
  line.Add("--repeat", options.repeat, "Call so many times").Positive().ShowDefault();
  line.Add("--state-load", options.state_load, "Begin with the states of this file (.safetensors, .npz)").Type("FILE");
  line.Add("--state-save", options.state_save, "Write the states there after the last call").Type("FILE");
  line.Add("--kernels", options.kernels, "native, or stub: no native code, results without meaning").ShowDefault();
  return tool.Run(argc, argv, [&] { return Run(tool, options); });
}
