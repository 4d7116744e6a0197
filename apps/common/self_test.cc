// Pairs outputs with expected tensors by name, sequences by their lengths too, and compares them.
#include "apps/common/self_test.h"

#include <algorithm>
#include <utility>

#include "apps/common/nested_input.h"
#include "formats/packed_elements.h"
#include "formats/tensor_files.h"
#include "runtime/dlpack.h"

namespace ingot::apps {
namespace {

// The names of the outputs that are sequences or tuples, each once.
std::vector<std::string> SequencesOf(const std::vector<Session::Output>& outputs) {
  std::vector<std::string> names;
  for (const Session::Output& output : outputs) {
    const std::string& name = output.text == kNoElements ? output.name : output.sequence;
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

// Whether the sequence is expected to have no elements: files hold a tensor of its name without elements then.
bool IsEmptyIn(const std::vector<formats::NamedTensor>& expected, const std::string& sequence) {
  const auto named = std::ranges::find(expected, sequence, &formats::NamedTensor::name);
  return named != expected.end() && named->tensor.num_elements() == 0;
}

// Compares the outputs that are among the expected tensors, and the lengths of sequences.
Result<std::vector<ComparedOutput>> Compare(const std::vector<formats::NamedTensor>& expected, const std::string& where,
                                            const formats::Tolerance& tolerance,
                                            const std::vector<Session::Output>& outputs, const NoteFunction& note) {
  std::vector<ComparedOutput> compared;
  for (const Session::Output& output : outputs) {
    if (output.text == kNoElements && IsEmptyIn(expected, output.name)) continue;
    const auto found =
        std::find_if(expected.begin(), expected.end(), [&](const auto& named) { return named.name == output.name; });
    if (found == expected.end() || !output.tensor) {
      note("output \"" + output.name + "\" is not in " + where + ", not compared");
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(const Tensor actual, formats::UnpackIntegers(output.tensor));
    INGOT_ASSIGN_OR_RETURN(const Tensor wanted, formats::UnpackIntegers(found->tensor));
    Result<formats::Comparison> comparison = formats::CompareTensors(actual, wanted, tolerance);
    if (!comparison.ok()) {
      return std::move(comparison).status().WithContext(where + ": output \"" + output.name + "\"");
    }
    note("output \"" + output.name + "\": " + comparison->ToString());
    compared.push_back({output.name, *std::move(comparison)});
  }
  for (const std::string& sequence : SequencesOf(outputs)) {
    const auto given = std::ranges::count(outputs, sequence, &Session::Output::sequence);
    const auto wanted = std::ranges::count_if(expected, [&](const formats::NamedTensor& named) {
      return named.name.starts_with(sequence + ".") && ParseElementPath(named.name.substr(sequence.size() + 1));
    });
    const bool is_empty = IsEmptyIn(expected, sequence);
    if (is_empty && given == 0) compared.push_back({sequence, {.equal = true}});
    if ((wanted == 0 && !is_empty) || wanted == given) continue;
    note("output \"" + sequence + "\": expected " + std::to_string(wanted) + " tensors, got " + std::to_string(given));
    compared.push_back({sequence, {.equal = false}});
  }
  if (compared.empty()) return Status(StatusCode::kBadInput, where + ": holds none of the outputs");
  return compared;
}

// The tensors of a golden case, borrowed from the executable.
Result<std::vector<formats::NamedTensor>> TensorsOf(const ingot_named_tensor* tensors, size_t count) {
  std::vector<formats::NamedTensor> out;
  for (size_t i = 0; i < count; ++i) {
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewFromDLTensor(tensors[i].tensor));
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
    INGOT_ASSIGN_OR_RETURN(tensor, tensor.AsReadOnly());
    out.push_back({tensors[i].name, std::move(tensor)});
  }
  return out;
}

}  // namespace

bool AllEqual(const std::vector<ComparedOutput>& compared) {
  return std::all_of(compared.begin(), compared.end(),
                     [](const ComparedOutput& output) { return output.comparison.equal; });
}

Result<std::vector<ComparedOutput>> CompareWithFile(const std::string& expect, const formats::Tolerance& tolerance,
                                                    const std::vector<Session::Output>& outputs,
                                                    const NoteFunction& note) {
  if (!expect.starts_with("@")) {
    return Status(StatusCode::kInvalidArgument, "--expect: expected @FILE, got \"" + expect + "\"");
  }
  const std::string path = expect.substr(1);
  INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> reference, formats::ReadTensorFile(path));
  if (path.ends_with(".npy")) {
    if (outputs.size() != 1) {
      return Status(StatusCode::kInvalidArgument,
                    path + ": a single tensor, but there are " + std::to_string(outputs.size()) + " outputs");
    }
    reference[0].name = outputs[0].name;
  }
  return Compare(reference, path, tolerance, outputs, note);
}

Result<std::vector<GoldenResult>> RunSelfTest(SessionOptions options, const NoteFunction& note) {
  options.entry.clear();
  options.verify = true;
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(options));
  size_t count = 0;
  INGOT_RETURN_IF_ERROR(FromC(ingot_executable_golden_case_count(session->executable(), &count)));
  if (count == 0) {
    return Status(StatusCode::kInvalidArgument,
                  options.path + ": holds no golden cases (vm-compile --golden puts them there)");
  }
  const CancelOnInterrupt interruptible(*session);
  std::vector<GoldenResult> results;
  for (size_t i = 0; i < count; ++i) {
    ingot_golden_case golden = INGOT_GOLDEN_CASE_INIT;
    INGOT_RETURN_IF_ERROR(FromC(ingot_executable_golden_case(session->executable(), i, &golden)));
    INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> inputs, TensorsOf(golden.inputs, golden.num_inputs));
    INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> expected,
                           TensorsOf(golden.outputs, golden.num_outputs));
    INGOT_RETURN_IF_ERROR(session->SelectFunction(golden.function));
    INGOT_RETURN_IF_ERROR(session->BindTensors(std::move(inputs)));
    INGOT_RETURN_IF_ERROR(session->RestartStates());
    INGOT_ASSIGN_OR_RETURN(const std::vector<Session::Output> outputs, session->Invoke());
    const std::string where = "golden case " + std::to_string(i);
    INGOT_ASSIGN_OR_RETURN(
        std::vector<ComparedOutput> compared,
        Compare(expected, where, {golden.relative_tolerance, golden.absolute_tolerance}, outputs, note));
    results.push_back({golden.function, golden.origin, std::move(compared)});
  }
  return results;
}

std::string SelfTestText(const std::vector<GoldenResult>& results) {
  const auto passed = std::count_if(results.begin(), results.end(),
                                    [](const GoldenResult& result) { return AllEqual(result.outputs); });
  return "self-test: " + std::to_string(passed) + " of " + std::to_string(results.size()) + " golden cases passed";
}

}  // namespace ingot::apps
