// The instrument: draws trials before the first pass, evaluates them after each pass, keeps the last results to compare
// with, and at the end judges recorded calls of tensor functions and the program in the VM.
#include "compiler/validate/validate_passes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/transform/graph_util.h"
#include "compiler/validate/validate_kernels.h"
#include "runtime/check.h"
#include "vm/run/context.h"

namespace ingot::validate {

namespace {

constexpr size_t kMaxAssignments = 6;
constexpr size_t kMaxCallsOfOne = 4;  // recorded calls of one tensor function
constexpr int64_t kPassesOfAPipeline = 24;

// What a pass must keep follows from the loosest class of the rewrites that it applied. Passes that evaluate operators
// themselves do so in float64, so they round less often.
Exactness ExactnessOf(std::string_view pass, transform::Exactness loosest) {
  constexpr std::string_view kEvaluating[] = {"fold_constants", "lift_params"};
  const bool evaluates = std::ranges::find(kEvaluating, pass) != std::end(kEvaluating);
  switch (loosest) {
    case transform::Exactness::kBitwise:
      return evaluates ? Exactness::kRounding : Exactness::kBitwise;
    case transform::Exactness::kRoundingOnly:
      return Exactness::kRounding;
    case transform::Exactness::kBounded:
    case transform::Exactness::kByPermission:
      return Exactness::kFinite;
  }
  INGOT_UNREACHABLE("Exactness");
}

// How results are compared on inputs of a kind when a pass must keep this much; nothing where they are not.
std::optional<Exactness> ComparisonOn(DrawKind kind, Exactness exactness) {
  if (exactness == Exactness::kBitwise) return exactness;
  switch (kind) {
    case DrawKind::kFinite:
    case DrawKind::kWhole:
      return Exactness::kRounding;  // these are within the magnitudes of all bounds
    case DrawKind::kSpecial:
      return exactness;
    case DrawKind::kHostile:
      return std::nullopt;  // a result next to an overflow may round to either side of it
  }
  INGOT_UNREACHABLE("DrawKind");
}

bool SameTypes(const ir::IRModule& module, std::span<const Value> inputs) {
  const std::vector<ir::Var> params = InputsOfMain(module);
  if (params.size() != inputs.size()) return false;
  for (size_t i = 0; i < params.size(); ++i) {
    const auto* tensor = ir::As<ir::TensorTypeNode>(params[i]->type);
    if ((tensor != nullptr) != (inputs[i].kind == ValueKind::kTensor)) return false;
    if (tensor != nullptr && tensor->rank >= 0 && tensor->rank != std::ssize(inputs[i].tensor.dims)) return false;
  }
  return true;
}

bool IsNotEvaluated(const Status& status) {
  return status.code() == StatusCode::kUnsupportedModel || status.code() == StatusCode::kDeadlineExceeded;
}

// Appends the tensors of a VM value; false if it holds anything but tensors.
bool Flatten(const vm::Value& value, std::vector<HostTensor>& out) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    const Result<Tensor> compact = tensor->Compact();
    if (!compact.ok()) return false;
    Result<HostTensor> copy = NewTensor(compact->dtype(), {compact->dims().begin(), compact->dims().end()});
    if (!copy.ok()) return false;
    std::ranges::copy(std::as_bytes(compact->bytes()), copy->bytes().begin());
    out.push_back(*std::move(copy));
    return true;
  }
  const auto* object = std::get_if<Ref<vm::Object>>(&value);
  if (object == nullptr || !*object || (*object)->kind() != vm::ValueKind::kTuple) return false;
  return std::ranges::all_of(static_cast<const vm::TupleObject&>(**object).elements(),
                             [&](const vm::Value& element) { return Flatten(element, out); });
}

bool IsLooser(Exactness a, Exactness b) { return static_cast<int>(a) > static_cast<int>(b); }

}  // namespace

ValidatePasses::ValidatePasses(ValidateOptions options)
    : options_(std::move(options)),
      evaluator_({options_.target.variants.empty() ? Target() : options_.target.variants.front(), options_.max_steps,
                  options_.max_cached_bytes, options_.max_tensor_bytes}) {}

void ValidatePasses::Note(std::string note) {
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
}

void ValidatePasses::Start(const ir::IRModule& module) {
  has_started_ = true;
  trials_.clear();
  std::string refusal = "there are no inputs";
  std::vector<Assignment> assignments = DrawAssignments(module);
  std::vector<IntDraw> legal(assignments.size(), IntDraw::kAny);
  std::vector<bool> is_legal(assignments.size(), true);
  int64_t steps_left = options_.max_total_steps / kPassesOfAPipeline;
  uint64_t seed = options_.seed;
  for (const DrawKind kind : {DrawKind::kFinite, DrawKind::kHostile, DrawKind::kSpecial, DrawKind::kWhole}) {
    size_t num_used = 0;
    for (size_t a = 0; a < assignments.size() && num_used < kMaxAssignments; ++a) {
      if (!is_legal[a]) continue;
      if (steps_left <= 0) {
        Note("the budget of evaluations is used up by " + std::to_string(trials_.size()) + " draws of inputs");
        return;
      }
      bool found = false;
      for (int ints = static_cast<int>(legal[a]); ints <= static_cast<int>(IntDraw::kOne) && !found; ++ints) {
        Result<std::vector<Value>> inputs =
            DrawInputs(module, assignments[a], kind, static_cast<IntDraw>(ints), ++seed);
        Result<std::vector<HostTensor>> results =
            inputs.ok() ? evaluator_.Run(module, *inputs) : Result<std::vector<HostTensor>>(inputs.status());
        steps_left -= evaluator_.steps_of_last_run();
        if (results.ok()) {
          found = true;
          legal[a] = static_cast<IntDraw>(ints);
          trials_.push_back({assignments[a].text + ", " + DrawKindName(kind) + " elements", kind, *std::move(inputs),
                             *std::move(results), Exactness::kBitwise});
        } else {
          refusal = results.status().message();
          if (IsNotEvaluated(results.status())) ints = static_cast<int>(IntDraw::kOne);
        }
      }
      num_used += found ? 1 : 0;
      is_legal[a] = found;
      if (!found) Note("nothing is evaluated with " + assignments[a].text + ": " + refusal);
    }
  }
  if (trials_.empty()) Note("no pass is validated: " + refusal);
}

Status ValidatePasses::BeforePass(const transform::Pass&, const ir::IRModule& module) {
  if (!has_started_) Start(module);
  last_ = module.functions();
  return Status();
}

void ValidatePasses::Rewritten(const transform::Pass&, transform::Exactness loosest) { loosest_ = loosest; }

Status ValidatePasses::AfterPass(const transform::Pass& pass, const ir::IRModule& module, double) {
  const bool is_unchanged =
      std::ranges::equal(last_, module.functions(), [](const ir::IRModule::Entry& a, const ir::IRModule::Entry& b) {
        return a.var.same_as(b.var) && a.function.same_as(b.function);
      });
  last_.clear();
  if (is_unchanged || trials_.empty()) return Status();
  if (!SameTypes(module, trials_.front().inputs)) {
    Note("what " + pass.name + " changes is not compared: the inputs are others afterwards");
    Start(module);
    return Status();
  }
  return Compare(pass, module);
}

Status ValidatePasses::Compare(const transform::Pass& pass, const ir::IRModule& module) {
  std::vector<SeenCall> calls;
  std::map<const ir::PrimFuncNode*, size_t> num_calls;
  DrawKind kind = DrawKind::kFinite;
  evaluator_.on_kernel = [&](const KernelCall& call) {
    if (num_calls[call.function.get()]++ < kMaxCallsOfOne) calls.push_back({call, kind});
  };
  const Exactness exactness = ExactnessOf(pass.name, loosest_);
  for (Trial& trial : trials_) {
    num_calls.clear();
    kind = trial.kind;
    Result<std::vector<HostTensor>> results = evaluator_.Run(module, trial.inputs);
    if (IsLooser(exactness, trial.pending)) trial.pending = exactness;
    const std::optional<Exactness> comparison = ComparisonOn(trial.kind, trial.pending);
    if (results.ok() && !comparison) {
      Note("what " + pass.name + " makes of overflow is not compared: it may round");
      trial.results = *std::move(results);
      trial.pending = Exactness::kBitwise;
      continue;
    }
    if (!results.ok()) {
      if (IsNotEvaluated(results.status())) {
        Note("after " + pass.name + ": " + results.status().message());
        continue;
      }
      return Status(StatusCode::kFailed, "validation: the module cannot be evaluated any more with " + trial.text +
                                             ": " + results.status().message());
    }
    std::string difference = Difference(trial.results, *results, *comparison);
    if (!difference.empty()) {
      return Status(StatusCode::kFailed, "validation: the results change with " + trial.text + ": " + difference);
    }
    ++num_compared_;
    trial.results = *std::move(results);
    trial.pending = Exactness::kBitwise;
  }
  evaluator_.on_kernel = nullptr;
  if (!calls.empty()) {
    calls_ = std::move(calls);
    functions_ = module.functions();
  }
  return Status();
}

Status ValidatePasses::CheckProgram(const vm::Program& program, const TargetFamily& family) {
  for (const auto& [call, kind] : calls_) {
    // Kernels have the names of tensor functions; functions of equal structure are told apart by their parameters.
    std::string name = "?";
    const vm::Kernel* kernel = nullptr;
    for (const auto& [var, function] : functions_) {
      if (function.get() == call.function.get()) name = var->name;
    }
    for (const vm::Kernel& candidate : program.kernels) {
      if (candidate.name == name) kernel = &candidate;
    }
    for (const Target& target : family.variants) {
      Status status = CheckLowering(name, call, target, {options_.each_step, options_.max_steps * 16});
      if (IsNotEvaluated(status)) {
        Note("kernel \"" + name + "\": " + status.message());
        continue;
      }
      INGOT_RETURN_IF_ERROR(std::move(status).WithContext("validation"));
    }
    // A fused multiply-add overflows for other inputs than a multiplication and an addition do.
    if (kernel == nullptr || kind == DrawKind::kHostile) continue;
    Status status = CheckCompiled(program, *kernel, call);
    if (IsNotEvaluated(status)) {
      Note("kernel \"" + name + "\": " + status.message());
      continue;
    }
    INGOT_RETURN_IF_ERROR(std::move(status).WithContext("validation"));
    ++num_kernels_;
  }
  return RunProgram(program);
}

// Runs the program itself: bytecode, memory plan and kernels.
Status ValidatePasses::RunProgram(const vm::Program& program) {
  if (trials_.empty()) return Status();
  INGOT_ASSIGN_OR_RETURN(auto instance, vm::Instance::Create());
  vm::OpenOptions open;
  open.trust = vm::Trust::kFile;
  Result<std::shared_ptr<const vm::Executable>> executable =
      vm::Executable::FromProgram(std::move(instance), program, "validated program", open);
  if (!executable.ok()) {
    const bool is_elsewhere = executable.status().code() == StatusCode::kUnsupportedFile;
    if (!is_elsewhere) return std::move(executable).status().WithContext("validation: the program does not load");
    Note("the program is not run: " + executable.status().message());
    return Status();
  }
  const Result<const vm::Function*> function = (*executable)->Find("main");
  if (!function.ok()) return Status();
  for (const Trial& trial : trials_) {
    if (trial.kind == DrawKind::kHostile) continue;  // as for kernels
    std::vector<vm::Value> arguments;
    for (const Value& input : trial.inputs) {
      if (input.kind == ValueKind::kTensor) {
        const std::span<const std::byte> bytes = input.tensor.bytes();
        INGOT_ASSIGN_OR_RETURN(Tensor tensor,
                               Tensor::FromBytes(input.tensor.dtype, input.tensor.dims,
                                                 {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
        arguments.emplace_back(std::move(tensor));
      }
    }
    if (arguments.size() != trial.inputs.size() || (*function)->signature.params.size() != arguments.size()) {
      Note("the program is not run: main takes more than tensors");
      return Status();
    }
    INGOT_ASSIGN_OR_RETURN(const auto context, vm::Context::Create(*executable));
    const Result<std::vector<vm::Value>> values = context->Invoke(**function, arguments);
    if (!values.ok()) {
      return Status(StatusCode::kFailed,
                    "validation: the program fails with " + trial.text + ": " + values.status().message());
    }
    std::vector<HostTensor> results;
    for (const vm::Value& value : *values) {
      if (!Flatten(value, results)) {
        Note("the program's results are not compared: they are more than tensors");
        return Status();
      }
    }
    const std::string difference = Difference(trial.results, results, Exactness::kRounding);
    if (!difference.empty()) {
      return Status(StatusCode::kFailed, "validation: the program differs from the module after the last pass with " +
                                             trial.text + ": " + difference);
    }
    ++num_programs_;
  }
  return Status();
}

std::vector<std::string> ValidatePasses::notes() const {
  std::vector<std::string> notes = notes_;
  notes.push_back(std::to_string(trials_.size()) + " draws of inputs, " + std::to_string(num_compared_) +
                  " evaluations of modules, " + std::to_string(num_kernels_) + " calls of kernels and " +
                  std::to_string(num_programs_) + " runs of the program compared");
  return notes;
}

}  // namespace ingot::validate
