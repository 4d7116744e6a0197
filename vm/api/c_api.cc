// The C API, first part: status, instance, executable, functions and types. Calls are vm/api/c_api_call.cc.
#include <cstring>

#include "runtime/dlpack.h"
#include "runtime/version.h"
#include "vm/api/c_api_types.h"

namespace ingot::capi {
namespace {

// The status for when there is no memory to make one; nobody owns it.
ingot_status* OutOfMemoryStatus() {
  static ingot_status status{StatusCode::kOutOfMemory, "out of memory", "", ""};
  return &status;
}

// Trampolines between the hooks of the C API and the runtime's.
void* AllocateWith(void* user, int64_t size, int64_t alignment) {
  const auto* options = static_cast<const ingot_instance_options*>(user);
  return options->alloc(options->user, static_cast<size_t>(size), static_cast<size_t>(alignment));
}
void FreeWith(void* user, void* data, int64_t size, int64_t alignment) {
  const auto* options = static_cast<const ingot_instance_options*>(user);
  options->free(options->user, data, static_cast<size_t>(size), static_cast<size_t>(alignment));
}
void ParallelForWith(void* user, int64_t num_tasks, void (*task)(void*, int64_t), void* closure) {
  const auto* options = static_cast<const ingot_instance_options*>(user);
  options->parallel_for(options->user, task, closure, num_tasks);
}

std::unique_ptr<ingot_type> DescribeType(const vm::Type& type, const std::vector<std::string>& symbols) {
  auto out = std::make_unique<ingot_type>();
  out->type = &type;
  vm::Type shown = type;
  if (shown.is_tensor()) shown.storage = vm::Storage::kOwned;  // which is not printed
  out->text = shown.ToString(symbols);
  for (const vm::Dim& dim : type.dims) out->dims.push_back(dim ? dim->ToString(symbols) : "?");
  for (const vm::Type& element : type.elements) out->elements.push_back(DescribeType(element, symbols));
  return out;
}

std::unique_ptr<ingot_function> DescribeFunction(const vm::Function& function) {
  auto out = std::make_unique<ingot_function>();
  const std::vector<std::string> symbols = function.signature.symbol_names();
  out->function = &function;
  out->signature = function.signature.ToString();
  for (const vm::NamedType& param : function.signature.params) out->inputs.push_back(DescribeType(param.type, symbols));
  for (const vm::NamedType& result : function.signature.results)
    out->outputs.push_back(DescribeType(result.type, symbols));
  return out;
}

// Parses keys or digests, of 64 hex digits each.
template <typename Number>
Status ParseNumbers(const char* const* texts, size_t count, const char* what, std::vector<Number>& out) {
  if (texts == nullptr || count == 0) {
    return Status(StatusCode::kInvalidArgument, {"this way of trust needs ", what});
  }
  for (size_t i = 0; i < count; ++i) {
    if (texts[i] != nullptr && formats::FromHex(texts[i], out.emplace_back())) continue;
    return Status(StatusCode::kInvalidArgument, {what, ": expected 64 hex digits"});
  }
  return Status();
}

Status ConvertTrust(const ingot_open_options& given, vm::OpenOptions& out) {
  switch (given.trust) {
    case INGOT_TRUST_NOTHING:
      return Status();
    case INGOT_TRUST_FILE:
      out.trust = vm::Trust::kFile;
      return Status();
    case INGOT_TRUST_SIGNED:
      out.trust = vm::Trust::kPolicy;
      return ParseNumbers(given.trusted_keys, given.num_trusted_keys, "trusted_keys", out.policy.keys);
    case INGOT_TRUST_LISTED:
      out.trust = vm::Trust::kPolicy;
      return ParseNumbers(given.allowed_sha256, given.num_allowed_sha256, "allowed_sha256", out.policy.allowed);
  }
  return Status(StatusCode::kInvalidArgument, {"unknown way of trust ", static_cast<int>(given.trust)});
}

Status OpenWith(ingot_instance* instance, const ingot_open_options* options, ingot_executable** out,
                const std::function<Result<std::shared_ptr<const vm::Executable>>(const vm::OpenOptions&)>& open) {
  if (out == nullptr) return NullArgument("executable");
  if (instance == nullptr) return NullArgument("instance");
  INGOT_ASSIGN_OR_RETURN(const ingot_open_options given,
                         CopyOptions(options, ingot_open_options INGOT_OPEN_OPTIONS_INIT));
  vm::OpenOptions converted;
  INGOT_RETURN_IF_ERROR(ConvertTrust(given, converted));
  converted.stub_kernels = given.kernels == INGOT_KERNELS_STUB;
  converted.verify_constants = given.verify_constants != 0;
  if (given.weights_directory != nullptr) converted.weights_directory = given.weights_directory;
  if (given.weights == nullptr && given.num_weights > 0) return NullArgument("weights");
  for (size_t i = 0; i < given.num_weights; ++i) {
    const ingot_named_tensor& weight = given.weights[i];
    if (weight.name == nullptr) return NullArgument("weights[].name");
    INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewFromDLTensor(weight.tensor));
    if (!view.device.is_host_accessible()) {
      return Status(StatusCode::kBadInput, {"weight \"", weight.name, "\" is on ", view.device.ToString()});
    }
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
    converted.weights.emplace_back(weight.name, std::move(tensor));
  }
  auto executable = std::make_unique<ingot_executable>();
  INGOT_ASSIGN_OR_RETURN(executable->executable, open(converted));
  auto functions = std::make_shared<FunctionHandles>();
  for (const vm::Function& function : executable->executable->program().functions) {
    if (function.exported) functions->push_back(DescribeFunction(function));
  }
  executable->functions = std::move(functions);
  *out = executable.release();
  return Status();
}

}  // namespace

Status CopyOptionBytes(const void* given, void* defaults, size_t size_bytes) {
  if (given == nullptr) return Status();
  size_t given_bytes = 0;
  std::memcpy(&given_bytes, given, sizeof given_bytes);
  if (given_bytes < sizeof given_bytes || given_bytes > size_bytes) {
    return Status(StatusCode::kInvalidArgument, "struct_size of an options struct is not one of this library's");
  }
  std::memcpy(defaults, given, given_bytes);
  std::memcpy(defaults, &size_bytes, sizeof size_bytes);
  return Status();
}

ingot_status* ToStatus(Status status, const vm::FailurePlace* place) {
  if (status.ok()) return nullptr;
  try {
    auto* out = new ingot_status{status.code(), status.message(), "", ""};
    if (place != nullptr) {
      out->function = place->function;
      out->location = place->operation;
    }
    return out;
  } catch (const std::bad_alloc&) {
    return OutOfMemoryStatus();
  }
}

ingot_status* GuardClosure(Status (*call)(void* closure), void* closure) {
  try {
    return ToStatus(call(closure));
  } catch (...) {
    return ToStatus(CaughtStatus());
  }
}

}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

ingot_status_code ingot_status_get_code(const ingot_status* status) {
  return status == nullptr ? INGOT_OK : static_cast<ingot_status_code>(status->code);
}
const char* ingot_status_message(const ingot_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}
const char* ingot_status_function(const ingot_status* status) {
  return status == nullptr ? "" : status->function.c_str();
}
const char* ingot_status_location(const ingot_status* status) {
  return status == nullptr ? "" : status->location.c_str();
}
void ingot_status_release(ingot_status* status) {
  if (status != OutOfMemoryStatus()) delete status;
}
ingot_status* ingot_status_create(ingot_status_code code, const char* message) {
  if (code <= INGOT_OK || code > INGOT_IO) code = INGOT_FAILED;
  return Guard([&] { return Status(static_cast<StatusCode>(code), message == nullptr ? "" : message); });
}

const char* ingot_version(void) { return kVersion; }

ingot_status* ingot_instance_create(const ingot_instance_options* options, ingot_instance** instance) {
  GiveNull(instance);
  return Guard([&]() -> Status {
    if (instance == nullptr) return NullArgument("instance");
    auto out = std::make_unique<ingot_instance>();
    INGOT_ASSIGN_OR_RETURN(out->options, CopyOptions(options, ingot_instance_options INGOT_INSTANCE_OPTIONS_INIT));
    // The trampolines look at this copy, which lives as long as the runtime's instance.
    auto hooks = std::make_shared<ingot_instance_options>(out->options);
    if ((hooks->alloc == nullptr) != (hooks->free == nullptr)) {
      return Status(StatusCode::kInvalidArgument, "alloc and free are given together or not at all");
    }
    vm::InstanceOptions converted;
    converted.num_threads = hooks->num_threads;
    if (hooks->alloc != nullptr) converted.allocator = {&AllocateWith, &FreeWith, hooks.get()};
    if (hooks->parallel_for != nullptr) {
      converted.hook = {&ParallelForWith, hooks.get(),
                        hooks->num_threads > 0 ? hooks->num_threads : AvailableProcessors()};
    }
    // The log function holds the hooks, and the instance holds the log function.
    converted.log = [hooks](std::string_view message) {
      if (hooks->log != nullptr) hooks->log(hooks->user, std::string(message).c_str());
    };
    INGOT_ASSIGN_OR_RETURN(out->instance, vm::Instance::Create(std::move(converted)));
    *instance = out.release();
    return Status();
  });
}
void ingot_instance_release(ingot_instance* instance) { delete instance; }

ingot_status* ingot_executable_open(ingot_instance* instance, const char* path, const ingot_open_options* options,
                                    ingot_executable** executable) {
  GiveNull(executable);
  return Guard([&]() -> Status {
    if (path == nullptr) return NullArgument("path");
    return OpenWith(instance, options, executable,
                    [&](const vm::OpenOptions& open) { return vm::Executable::Open(instance->instance, path, open); });
  });
}

ingot_status* ingot_executable_open_memory(ingot_instance* instance, const void* data, size_t size, const char* name,
                                           const ingot_open_options* options, ingot_executable** executable) {
  GiveNull(executable);
  return Guard([&]() -> Status {
    if (data == nullptr && size > 0) return NullArgument("data");
    const SharedBytes bytes(nullptr, {static_cast<const std::byte*>(data), size});
    return OpenWith(instance, options, executable, [&](const vm::OpenOptions& open) {
      return vm::Executable::OpenMemory(instance->instance, bytes, name == nullptr ? "<memory>" : name, open);
    });
  });
}
void ingot_executable_release(ingot_executable* executable) { delete executable; }

size_t ingot_executable_weight_count(const ingot_executable* executable) {
  return executable == nullptr ? 0 : executable->executable->program().weights.size();
}
const char* ingot_executable_weight_name(const ingot_executable* executable, size_t index) {
  if (index >= ingot_executable_weight_count(executable)) return nullptr;
  const vm::Program& program = executable->executable->program();
  return program.constants[program.weights[index].constant.value].name.c_str();
}

size_t ingot_executable_metadata_count(const ingot_executable* executable) {
  return executable == nullptr ? 0 : executable->executable->program().metadata.size();
}
const char* ingot_executable_metadata_key(const ingot_executable* executable, size_t index) {
  if (index >= ingot_executable_metadata_count(executable)) return nullptr;
  const auto& metadata = executable->executable->program().metadata;
  return std::next(metadata.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}
const char* ingot_executable_metadata_value(const ingot_executable* executable, size_t index) {
  if (index >= ingot_executable_metadata_count(executable)) return nullptr;
  const auto& metadata = executable->executable->program().metadata;
  return std::next(metadata.begin(), static_cast<std::ptrdiff_t>(index))->second.c_str();
}

size_t ingot_executable_function_count(const ingot_executable* executable) {
  return executable == nullptr ? 0 : executable->functions->size();
}
const ingot_function* ingot_executable_function(const ingot_executable* executable, size_t index) {
  return index < ingot_executable_function_count(executable) ? (*executable->functions)[index].get() : nullptr;
}
ingot_status* ingot_executable_find_function(const ingot_executable* executable, const char* name,
                                             const ingot_function** function) {
  GiveNull(function);
  return Guard([&]() -> Status {
    if (executable == nullptr) return NullArgument("executable");
    if (name == nullptr) return NullArgument("name");
    if (function == nullptr) return NullArgument("function");
    INGOT_ASSIGN_OR_RETURN(const vm::Function* found, executable->executable->Find(name));
    for (const auto& candidate : *executable->functions) {
      if (candidate->function == found) *function = candidate.get();
    }
    return Status();
  });
}

// For a null function or type there is no name, and there are no parts.
const char* ingot_function_name(const ingot_function* function) {
  return function == nullptr ? nullptr : function->function->name.c_str();
}
const char* ingot_function_signature(const ingot_function* function) {
  return function == nullptr ? nullptr : function->signature.c_str();
}
size_t ingot_function_symbol_count(const ingot_function* function) {
  return function == nullptr ? 0 : function->function->signature.symbols.size();
}
const char* ingot_function_symbol(const ingot_function* function, size_t index, int64_t* min, int64_t* max) {
  if (index >= ingot_function_symbol_count(function)) return nullptr;
  const vm::Symbol& symbol = function->function->signature.symbols[index];
  if (min != nullptr) *min = symbol.min;
  if (max != nullptr) *max = symbol.max;
  return symbol.name.c_str();
}
size_t ingot_function_input_count(const ingot_function* function) {
  return function == nullptr ? 0 : function->inputs.size();
}
const char* ingot_function_input_name(const ingot_function* function, size_t index) {
  return index < ingot_function_input_count(function) ? function->function->signature.params[index].name.c_str()
                                                      : nullptr;
}
const ingot_type* ingot_function_input_type(const ingot_function* function, size_t index) {
  return index < ingot_function_input_count(function) ? function->inputs[index].get() : nullptr;
}
int32_t ingot_function_input_is_written(const ingot_function* function, size_t index) {
  if (index >= ingot_function_input_count(function)) return 0;
  const vm::Type& type = function->function->signature.params[index].type;
  return type.is_tensor() && type.storage == vm::Storage::kBorrowedMut ? 1 : 0;
}
size_t ingot_function_output_count(const ingot_function* function) {
  return function == nullptr ? 0 : function->outputs.size();
}
const char* ingot_function_output_name(const ingot_function* function, size_t index) {
  return index < ingot_function_output_count(function) ? function->function->signature.results[index].name.c_str()
                                                       : nullptr;
}
const ingot_type* ingot_function_output_type(const ingot_function* function, size_t index) {
  return index < ingot_function_output_count(function) ? function->outputs[index].get() : nullptr;
}

ingot_kind ingot_type_kind(const ingot_type* type) {
  return type == nullptr ? INGOT_KIND_OBJECT : static_cast<ingot_kind>(type->type->kind);
}
const char* ingot_type_text(const ingot_type* type) { return type == nullptr ? nullptr : type->text.c_str(); }
ingot_dl_data_type ingot_type_dtype(const ingot_type* type) {
  if (type == nullptr) return {};
  const DataType dtype = type->type->dtype;
  return {static_cast<uint8_t>(dtype.code), dtype.bits, dtype.lanes};
}
int32_t ingot_type_rank(const ingot_type* type) { return type == nullptr ? 0 : type->type->rank(); }
int64_t ingot_type_dim(const ingot_type* type, int32_t axis) {
  if (axis < 0 || axis >= ingot_type_rank(type)) return -1;
  const vm::Dim& dim = type->type->dims[static_cast<size_t>(axis)];
  return dim && dim->is_constant() ? dim->constant() : -1;
}
const char* ingot_type_dim_text(const ingot_type* type, int32_t axis) {
  return axis >= 0 && axis < ingot_type_rank(type) ? type->dims[static_cast<size_t>(axis)].c_str() : nullptr;
}
size_t ingot_type_element_count(const ingot_type* type) { return type == nullptr ? 0 : type->elements.size(); }
const ingot_type* ingot_type_element(const ingot_type* type, size_t index) {
  return index < ingot_type_element_count(type) ? type->elements[index].get() : nullptr;
}

}  // extern "C"
