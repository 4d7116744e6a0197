// Opens an executable by the options of a command line, parses and binds inputs, and calls functions, all by the C API.
#include "apps/common/session.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "apps/common/printable.h"
#include "formats/file.h"
#include "formats/packed_elements.h"
#include "formats/signing.h"
#include "formats/tensor_files.h"
#include "formats/tensor_spec.h"
#include "runtime/device_id.h"
#include "runtime/dlpack.h"
#include "runtime/suggest.h"

namespace ingot::apps {

namespace {

DataType FromDL(ingot_dl_data_type type) { return {static_cast<TypeCode>(type.code), type.bits, type.lanes}; }

// The text of a result that is no tensor.
std::string ValueText(const ingot_value& value) {
  switch (value.kind) {
    case INGOT_KIND_INT:
      return std::to_string(value.as.i);
    case INGOT_KIND_FLOAT: {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", value.as.f);
      return text;
    }
    case INGOT_KIND_BOOL:
      return value.as.b != 0 ? "true" : "false";
    case INGOT_KIND_STRING:
      return value.as.string;
    case INGOT_KIND_DTYPE:
      return FromDL(value.as.dtype).ToString();
    case INGOT_KIND_SHAPE: {
      std::string text;
      for (size_t i = 0; i < value.as.shape.rank; ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(value.as.shape.extents[i]);
      return "[" + text + "]";
    }
    case INGOT_KIND_TENSOR:
    case INGOT_KIND_TUPLE:
    case INGOT_KIND_OPTIONAL:
    case INGOT_KIND_CLOSURE:
    case INGOT_KIND_OBJECT:
      break;
  }
  return "<object>";
}

// Flattens tuples: name, name.0, name.0.1, ...
Status CollectOutputs(const std::string& name, ingot_value& value, const std::string& sequence,
                      std::vector<Session::Output>& outputs) {
  if (value.kind == INGOT_KIND_TENSOR) {
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, ImportDLPack(std::exchange(value.as.owned_tensor, nullptr)));
    value = {};
    outputs.push_back({name, std::move(tensor), "", sequence});
  } else if (value.kind == INGOT_KIND_TUPLE) {
    const std::string& whole = sequence.empty() ? name : sequence;
    if (value.as.tuple.count == 0) outputs.push_back({name, Tensor(), kNoElements, sequence});
    for (size_t i = 0; i < value.as.tuple.count; ++i) {
      INGOT_RETURN_IF_ERROR(CollectOutputs(name + "." + std::to_string(i), value.as.tuple.elements[i], whole, outputs));
    }
  } else {
    outputs.push_back({name, Tensor(), ValueText(value), sequence});
  }
  return Status();
}

std::atomic<ingot_context*> interrupted_context{nullptr};
std::atomic<bool> interrupted{false};
// What the signals did before, and do again at the second one and after the run.
void (*previous_on_interrupt)(int) = SIG_DFL;
void (*previous_on_terminate)(int) = SIG_DFL;
void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, signal == SIGINT ? previous_on_interrupt : previous_on_terminate);
  if (ingot_context* context = interrupted_context.load()) ingot_context_cancel(context);
}

// Called before each invocation: a signal that came between two invocations would not stop the second one.
Status CheckInterrupted() { return interrupted.load() ? Status(StatusCode::kCancelled, "interrupted") : Status(); }

}  // namespace

Status FromC(ingot_status* status) {
  if (status == nullptr) return Status();
  Status result(static_cast<StatusCode>(ingot_status_get_code(status)), ingot_status_message(status));
  ingot_status_release(status);
  return result;
}

CancelOnInterrupt::CancelOnInterrupt(Session& session) {
  interrupted_context = session.context();
  previous_on_interrupt = std::signal(SIGINT, OnInterrupt);
  previous_on_terminate = std::signal(SIGTERM, OnInterrupt);
}

CancelOnInterrupt::~CancelOnInterrupt() {
  std::signal(SIGINT, previous_on_interrupt);
  std::signal(SIGTERM, previous_on_terminate);
  interrupted_context = nullptr;
}

namespace {

// Reads what the compiler writes of a model's strings: a JSON array in which strings have no escapes but \\u00XX.
std::vector<std::string> ParseStrings(std::string_view text) {
  std::vector<std::string> strings;
  bool is_inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      is_inside = !is_inside;
      if (is_inside) strings.emplace_back();
    } else if (is_inside && text[i] == '\\' && text.size() - i > 5) {
      const std::string digits(text.substr(i + 2, 4));
      strings.back() += static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
      i += 5;
    } else if (is_inside) {
      strings.back() += text[i];
    }
  }
  return strings;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  ingot_instance_options instance_options = INGOT_INSTANCE_OPTIONS_INIT;
  instance_options.num_threads = options.threads;
  instance_options.log = [](void*, const char* message) { std::fprintf(stderr, "%s\n", Printable(message).c_str()); };
  INGOT_RETURN_IF_ERROR(FromC(ingot_instance_create(&instance_options, &session->instance_)));
  // Naming a file to a tool is trust, as with any program.
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  open.trust = INGOT_TRUST_FILE;
  open.kernels = options.stub_kernels ? INGOT_KERNELS_STUB : INGOT_KERNELS_NATIVE;
  open.verify_constants = options.verify ? 1 : 0;
  // A policy on the command line takes the place of that trust.
  std::string key;
  std::vector<const char*> keys, allowed;
  if (!options.require_signature.empty()) {
    INGOT_ASSIGN_OR_RETURN(const formats::PublicKey bytes, formats::ReadPublicKey(options.require_signature));
    key = formats::ToHex(bytes);
    keys = {key.c_str()};
    open.trust = INGOT_TRUST_SIGNED;
  }
  for (const std::string& digest : options.allow_sha256) {
    if (formats::Sha256Digest checked; !formats::FromHex(digest, checked)) {
      return Status(StatusCode::kInvalidArgument, "--allow-sha256 \"" + digest + "\": expected 64 hex digits");
    }
    allowed.push_back(digest.c_str());
    open.trust = INGOT_TRUST_LISTED;
  }
  if (!keys.empty() && !allowed.empty()) {
    return Status(StatusCode::kInvalidArgument, "--require-signature and --allow-sha256: choose one");
  }
  open.trusted_keys = keys.data();
  open.num_trusted_keys = keys.size();
  open.allowed_sha256 = allowed.data();
  open.num_allowed_sha256 = allowed.size();
  std::vector<ingot_named_tensor> weights;
  if (!options.weights.empty()) {
    INGOT_ASSIGN_OR_RETURN(session->weights_, formats::ReadTensorFile(options.weights));
    for (const formats::NamedTensor& named : session->weights_) {
      weights.push_back({named.name.c_str(), ViewOf(named.tensor)});
    }
    open.weights = weights.data();
    open.num_weights = weights.size();
  }
  INGOT_RETURN_IF_ERROR(
      FromC(ingot_executable_open(session->instance_, options.path.c_str(), &open, &session->executable_)));
  for (size_t i = 0; i < ingot_executable_metadata_count(session->executable_); ++i) {
    const std::string_view key = ingot_executable_metadata_key(session->executable_, i);
    const char* value = ingot_executable_metadata_value(session->executable_, i);
    if (key == "strings") session->strings_ = ParseStrings(value);
    if (key == "string_tensors") session->string_tensors_ = ParseStrings(value);
  }
  if (!options.entry.empty()) INGOT_RETURN_IF_ERROR(session->SelectFunction(options.entry));
  ingot_context_options context = INGOT_CONTEXT_OPTIONS_INIT;
  if (!options.device.empty()) {
    INGOT_ASSIGN_OR_RETURN(const DeviceId device, DeviceId::Parse(options.device));
    context.device = {static_cast<int32_t>(device.kind), device.index};
  }
  context.copy_tensors = 1;  // inputs and outputs are files
  context.max_memory_bytes = options.max_memory_bytes;
  context.fuel = options.fuel;
  context.deadline_seconds = options.deadline_seconds;
  INGOT_RETURN_IF_ERROR(FromC(ingot_context_create(session->executable_, &context, &session->context_)));
  if (options.check_finite) INGOT_RETURN_IF_ERROR(FromC(ingot_context_set_check_finite(session->context_, 1)));
  return session;
}

const std::vector<std::string>& Session::StringsOf(const std::string& name) const {
  static const std::vector<std::string> kNone;
  return std::ranges::find(string_tensors_, name) == string_tensors_.end() ? kNone : strings_;
}

Status Session::SelectFunction(const std::string& name) {
  options_.entry = name;
  return FromC(ingot_executable_find_function(executable_, name.c_str(), &function_));
}

Session::~Session() {
  if (interrupted_context.load() == context_) interrupted_context = nullptr;
  inputs_.clear();
  outputs_.clear();
  ingot_context_release(context_);
  ingot_executable_release(executable_);
  ingot_instance_release(instance_);
}

Result<std::vector<std::string>> Session::Labels(const std::string& path) const {
  std::string_view text;
  SharedBytes file;
  if (!path.empty()) {
    INGOT_ASSIGN_OR_RETURN(file, formats::MapFile(path));
    text = {reinterpret_cast<const char*>(file.data()), file.size()};
  } else {
    for (size_t i = 0; i < ingot_executable_metadata_count(executable_); ++i) {
      const std::string_view key = ingot_executable_metadata_key(executable_, i);
      if (key == "labels") text = ingot_executable_metadata_value(executable_, i);
    }
  }
  std::vector<std::string> labels;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    labels.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return labels;
}

std::string Session::Signature() const {
  return std::string(ingot_function_name(function_)) + ingot_function_signature(function_);
}

Result<size_t> Session::IndexOfInput(const std::string& name) const {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < ingot_function_input_count(function_); ++i) {
    names.push_back(ingot_function_input_name(function_, i));
    if (names.back() == name) return i;
  }
  return Status(StatusCode::kNotFound, options_.path + ": function \"" + options_.entry + "\" has no input \"" + name +
                                           "\"" + DidYouMean(name, names) + " (" + Signature() + ")");
}

Result<Session::Part> Session::PartOfInput(const std::string& name) const {
  for (size_t i = 0; i < ingot_function_input_count(function_); ++i) {
    const std::string_view input = ingot_function_input_name(function_, i);
    if (!IsNested(i) || !name.starts_with(input) || name.size() <= input.size() || name[input.size()] != '.') continue;
    const auto path = ParseElementPath(std::string_view(name).substr(input.size() + 1));
    if (path) return Part{i, *path};
  }
  INGOT_ASSIGN_OR_RETURN(const size_t index, IndexOfInput(name));
  return Part{index, {}};
}

bool Session::IsNested(size_t index) const {
  const ingot_kind kind = ingot_type_kind(ingot_function_input_type(function_, index));
  return kind == INGOT_KIND_TUPLE || kind == INGOT_KIND_OBJECT;
}

Status Session::BindTensor(const Part& part, Tensor tensor) {
  if (IsNested(part.index)) {
    const std::string name = ingot_function_input_name(function_, part.index);
    const bool is_tuple = ingot_type_kind(ingot_function_input_type(function_, part.index)) == INGOT_KIND_TUPLE;
    if (is_tuple && part.path.empty() && tensor) {
      return Status(StatusCode::kInvalidArgument, "input \"" + name + "\" has elements, each with a name: \"" + name +
                                                      ".0\", \"" + name + ".1\", ...");
    }
    INGOT_RETURN_IF_ERROR(nested_[part.index].Set(part.path, std::move(tensor)).WithContext("input \"" + name + "\""));
  } else {
    const char* name = ingot_function_input_name(function_, part.index);
    const DataType declared = FromDL(ingot_type_dtype(ingot_function_input_type(function_, part.index)));
    Result<Tensor> packed = formats::PackIntegersAs(tensor, declared);
    if (!packed.ok()) return std::move(packed).status().WithContext("input \"" + std::string(name) + "\"");
    inputs_[part.index] = *std::move(packed);
  }
  bound_[part.index] = true;
  return Status();
}

Status Session::BindScalar(size_t index, const std::string& spec) {
  ingot_value& value = scalars_[index];
  value.kind = ingot_type_kind(ingot_function_input_type(function_, index));
  char* end = nullptr;
  errno = 0;
  if (value.kind == INGOT_KIND_INT) value.as.i = std::strtoll(spec.c_str(), &end, 10);
  if (value.kind == INGOT_KIND_FLOAT) value.as.f = std::strtod(spec.c_str(), &end);
  if (value.kind == INGOT_KIND_BOOL && (spec == "true" || spec == "false")) {
    value.as.b = spec == "true";
    end = const_cast<char*>(spec.c_str() + spec.size());
  }
  if (end == nullptr || spec.empty() || *end != '\0' || errno != 0) {
    return Status(StatusCode::kBadInput,
                  "input \"" + std::string(ingot_function_input_name(function_, index)) + "\": expected " +
                      ingot_type_text(ingot_function_input_type(function_, index)) + ", got \"" + spec + "\"");
  }
  bound_[index] = true;
  return Status();
}

Status Session::Bind(const Part& part, const std::string& spec, uint64_t seed) {
  const size_t index = part.index;
  const ingot_type* type = ingot_function_input_type(function_, index);
  // For elements, and for an input of any type, the spec has to state the tensor's type.
  const bool is_any = IsNested(index);
  if (is_any && spec == kNoElements) return BindTensor(part, Tensor());
  if (!is_any && ingot_type_kind(type) != INGOT_KIND_TENSOR) return BindScalar(index, spec);
  std::vector<int64_t> dims;
  // Symbolic dimensions take the values that earlier inputs gave them, 1 otherwise.
  for (int32_t axis = 0; axis < ingot_type_rank(type); ++axis) {
    int64_t dim = ingot_type_dim(type, axis);
    if (dim < 0) {
      dim = 1;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const ingot_type* other = ingot_function_input_type(function_, i);
        for (int32_t a = 0; bound_[i] && inputs_[i] && a < ingot_type_rank(other); ++a) {
          if (std::string_view(ingot_type_dim_text(other, a)) == ingot_type_dim_text(type, axis))
            dim = inputs_[i].dim(a);
        }
      }
    }
    dims.push_back(dim);
  }
  const formats::ExpectedTensor expected{FromDL(ingot_type_dtype(type)), dims};
  Result<Tensor> tensor = formats::MakeTensorFromSpec(spec, is_any ? nullptr : &expected, seed + index);
  if (!tensor.ok()) {
    return std::move(tensor).status().WithContext("input \"" +
                                                  std::string(ingot_function_input_name(function_, index)) + "\"");
  }
  return BindTensor(part, *std::move(tensor));
}

void Session::UnbindInputs() {
  const size_t count = ingot_function_input_count(function_);
  inputs_.assign(count, Tensor());
  scalars_.assign(count, ingot_value{});
  nested_.assign(count, NestedInput());
  bound_.assign(count, false);
}

Status Session::BindTensors(std::vector<formats::NamedTensor> tensors) {
  UnbindInputs();
  for (formats::NamedTensor& named : tensors) {
    INGOT_ASSIGN_OR_RETURN(const Part part, PartOfInput(named.name));
    INGOT_RETURN_IF_ERROR(BindTensor(part, std::move(named.tensor)));
  }
  return FinishBinding("", 0);
}

Status Session::BindInputs(const InputArguments& arguments) {
  UnbindInputs();
  const size_t count = bound_.size();
  auto next_unbound = [&] {
    size_t i = 0;
    while (i < count && (bound_[i] || ingot_function_input_is_written(function_, i) != 0)) ++i;
    return i;
  };
  for (const std::string& file : arguments.files) {
    INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(file));
    const bool by_name = !file.ends_with(".npy");
    for (formats::NamedTensor& named : tensors) {
      Part part{next_unbound(), {}};
      if (by_name) {
        INGOT_ASSIGN_OR_RETURN(part, PartOfInput(named.name));
      } else if (part.index == count) {
        return Status(StatusCode::kInvalidArgument, file + ": every input is bound already (" + Signature() + ")");
      }
      INGOT_RETURN_IF_ERROR(BindTensor(part, std::move(named.tensor)).WithContext(file));
    }
  }
  for (const std::string& argument : arguments.specs) {
    // NAME=SPEC, where NAME is an input. A SPEC may contain '=' itself (4xf32=1 2 3 4).
    Part part{count, {}};
    std::string spec = argument;
    if (const size_t equals = argument.find('='); equals != std::string::npos) {
      const std::string name = argument.substr(0, equals);
      Result<Part> found = PartOfInput(name);
      const bool looks_like_type = !name.empty() && name.find_first_not_of("0123456789x") != std::string::npos &&
                                   name[0] >= '0' && name[0] <= '9' && name.find('x') != std::string::npos;
      if (found.ok()) {
        part = *std::move(found);
        spec = argument.substr(equals + 1);
      } else if (!looks_like_type) {
        return std::move(found).status();
      }
    }
    if (part.index == count) part.index = next_unbound();
    if (part.index == count)
      return Status(StatusCode::kInvalidArgument, "--input " + argument + ": every input is bound already");
    INGOT_RETURN_IF_ERROR(Bind(part, spec, arguments.seed));
  }
  return FinishBinding(arguments.missing_spec, arguments.seed);
}

Status Session::FinishBinding(const std::string& missing_spec, uint64_t seed) {
  std::string missing;
  for (size_t i = 0; i < bound_.size(); ++i) {
    const bool is_written = ingot_function_input_is_written(function_, i) != 0;
    if (bound_[i] && is_written && inputs_[i].is_read_only()) {  // of a mapped file
      INGOT_ASSIGN_OR_RETURN(inputs_[i], Tensor::FromBytes(inputs_[i].dtype(), inputs_[i].dims(), inputs_[i].bytes()));
    }
    if (bound_[i] && IsNested(i)) {
      const std::string name = ingot_function_input_name(function_, i);
      INGOT_RETURN_IF_ERROR(nested_[i].Check().WithContext("input \"" + name + "\""));
    }
    if (bound_[i]) continue;
    if (is_written) {
      INGOT_RETURN_IF_ERROR(Bind({i, {}}, "zeros", seed));
    } else if (!missing_spec.empty()) {
      INGOT_RETURN_IF_ERROR(Bind({i, {}}, missing_spec, seed));
    } else {
      missing += (missing.empty() ? "\"" : ", \"") + std::string(ingot_function_input_name(function_, i)) +
                 "\": " + ingot_type_text(ingot_function_input_type(function_, i));
    }
  }
  if (missing.empty()) return Status();
  return Status(StatusCode::kInvalidArgument,
                options_.path + ": no value for input " + missing + " (" + Signature() + ")");
}

Status Session::LoadStates(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(states_, formats::ReadTensorFile(path));
  states_path_ = path;
  return RestartStates();
}

Status Session::RestartStates() {
  if (states_path_.empty()) return FromC(ingot_context_reset_states(context_));
  std::vector<ingot_dl_tensor> views;
  std::vector<const char*> names;
  for (const formats::NamedTensor& named : states_) {
    views.push_back(ViewOf(named.tensor));
    names.push_back(named.name.c_str());
  }
  std::vector<const ingot_dl_tensor*> pointers;
  for (const ingot_dl_tensor& view : views) pointers.push_back(&view);
  return FromC(ingot_context_set_states(context_, names.data(), pointers.data(), names.size()))
      .WithContext(states_path_);
}

Status Session::SaveStates(const std::string& path, formats::FileCalls& calls) const {
  std::vector<formats::NamedTensor> tensors;
  for (size_t i = 0; i < ingot_executable_state_count(executable_); ++i) {
    const char* name = ingot_executable_state_name(executable_, i);
    ingot_dl_managed_tensor_versioned* managed = nullptr;
    INGOT_RETURN_IF_ERROR(FromC(ingot_context_get_state(context_, name, &managed)));
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, ImportDLPack(managed));
    tensors.push_back({name, std::move(tensor)});
  }
  return formats::WriteTensorFile(path, tensors, calls);
}

Result<std::vector<Session::Output>> Session::Invoke() {
  INGOT_RETURN_IF_ERROR(CheckInterrupted());
  std::vector<ingot_dl_tensor> views;
  for (const Tensor& tensor : inputs_) views.push_back(tensor ? ViewOf(tensor) : ingot_dl_tensor{});
  std::vector<ingot_value> arguments = scalars_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (IsNested(i)) arguments[i] = nested_[i].View();
    if (!inputs_[i]) continue;
    arguments[i].kind = INGOT_KIND_TENSOR;
    arguments[i].as.tensor = &views[i];
  }
  std::vector<ingot_value> results(ingot_function_output_count(function_));
  INGOT_RETURN_IF_ERROR(
      FromC(ingot_invoke(context_, function_, arguments.data(), arguments.size(), results.data(), results.size())));
  std::vector<Output> outputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (ingot_function_input_is_written(function_, i) != 0) {
      outputs.push_back({ingot_function_input_name(function_, i), inputs_[i], "", ""});
    }
  }
  Status status;
  for (size_t i = 0; i < results.size(); ++i) {
    if (status.ok()) status = CollectOutputs(ingot_function_output_name(function_, i), results[i], "", outputs);
    ingot_value_clear(&results[i]);
  }
  if (!status.ok()) return status;
  for (Output& output : outputs) {
    const std::vector<std::string>& known = StringsOf(output.name);
    if (known.empty() || !output.tensor || output.tensor.dtype() != DataType::Int(64)) continue;
    INGOT_ASSIGN_OR_RETURN(const Tensor places, output.tensor.Compact());
    for (const int64_t place : places.Elements<int64_t>()) {
      const bool is_known = place >= 0 && place < std::ssize(known);
      output.strings.push_back(is_known ? known[static_cast<size_t>(place)] : "<string " + std::to_string(place) + ">");
    }
  }
  return outputs;
}

namespace {

// Elements of a tensor file begin where the file has them; each call would copy them to where kernels read them.
Status Align(Tensor& tensor) {
  if (tensor.view().is_compact && tensor.view().IsAligned(kTensorAlignment)) return Status();
  INGOT_ASSIGN_OR_RETURN(Tensor aligned, Tensor::Allocate(tensor.dtype(), tensor.dims()));
  INGOT_RETURN_IF_ERROR(CopyElements(tensor.view(), aligned.view()));
  tensor = std::move(aligned);
  return Status();
}

}  // namespace

bool Session::TakesTensorsAlone() const {
  const auto is_tensor = [](const ingot_type* type) { return ingot_type_kind(type) == INGOT_KIND_TENSOR; };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!is_tensor(ingot_function_input_type(function_, i))) return false;
  }
  for (size_t i = 0; i < ingot_function_output_count(function_); ++i) {
    if (!is_tensor(ingot_function_output_type(function_, i))) return false;
  }
  return true;
}

Status Session::InvokeInto() {
  if (!TakesTensorsAlone()) return Invoke().status();
  INGOT_RETURN_IF_ERROR(CheckInterrupted());
  const bool is_prepared =
      outputs_.size() == ingot_function_output_count(function_) && input_pointers_.size() == inputs_.size();
  if (!is_prepared) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (ingot_function_input_is_written(function_, i) == 0) INGOT_RETURN_IF_ERROR(Align(inputs_[i]));
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<Output> first, Invoke());
    outputs_.clear();
    const size_t num_results = ingot_function_output_count(function_);
    for (size_t i = first.size() - num_results; i < first.size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(Tensor own, Tensor::Allocate(first[i].tensor.dtype(), first[i].tensor.dims()));
      outputs_.push_back(std::move(own));
    }
    input_views_.clear();
    output_views_.clear();
    input_pointers_.clear();
    output_pointers_.clear();
    for (const Tensor& tensor : inputs_) input_views_.push_back(ViewOf(tensor));
    for (const Tensor& tensor : outputs_) output_views_.push_back(ViewOf(tensor));
    for (ingot_dl_tensor& view : input_views_) input_pointers_.push_back(&view);
    for (ingot_dl_tensor& view : output_views_) output_pointers_.push_back(&view);
  }
  return FromC(ingot_invoke_into(context_, function_, input_pointers_.data(), input_pointers_.size(),
                                 output_pointers_.data(), output_pointers_.size()));
}

}  // namespace ingot::apps
