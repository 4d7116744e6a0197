// Opening, binding and calling, by the C API.
#include "compiler/tune/measure/loaded_program.h"

#include <charconv>
#include <cstring>

#include "formats/tensor_spec.h"
#include "runtime/dlpack.h"

namespace ingot::tune {
namespace {

// A pattern that no kernel writes by accident, in the place of results that were not written.
constexpr int kUnwritten = 0xa5;

Status TakeStatus(ingot_status* status) {
  if (status == nullptr) return Status();
  Status result(static_cast<StatusCode>(ingot_status_get_code(status)), ingot_status_message(status));
  ingot_status_release(status);
  return result;
}

ingot_dl_tensor ViewOf(const Tensor& tensor) {
  const TensorView& view = tensor.view();
  ingot_dl_tensor dl{};
  dl.data = view.data;
  dl.device = {static_cast<int32_t>(view.device.kind), view.device.index};
  dl.ndim = view.rank;
  dl.dtype = {static_cast<uint8_t>(view.dtype.code), view.dtype.bits, view.dtype.lanes};
  dl.shape = const_cast<int64_t*>(view.dims.data());
  dl.strides = const_cast<int64_t*>(view.strides.data());
  return dl;
}

template <typename T>
bool ParseWhole(const std::string& text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::Open(const MeasuredProgram& program, const Candidate& candidate) {
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram());
  ingot_instance_options instance = INGOT_INSTANCE_OPTIONS_INIT;
  instance.num_threads = candidate.options.threads;
  INGOT_RETURN_IF_ERROR(TakeStatus(ingot_instance_create(&instance, &loaded->instance_)));
  // Whoever submits a candidate has compiled it.
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  open.trust = INGOT_TRUST_FILE;
  INGOT_RETURN_IF_ERROR(
      TakeStatus(ingot_executable_open_memory(loaded->instance_, program.executable.data(), program.executable.size(),
                                              "the candidate", &open, &loaded->executable_)));
  INGOT_RETURN_IF_ERROR(
      TakeStatus(ingot_executable_find_function(loaded->executable_, program.entry.c_str(), &loaded->function_)));
  const ingot_context_options context = INGOT_CONTEXT_OPTIONS_INIT;
  INGOT_RETURN_IF_ERROR(TakeStatus(ingot_context_create(loaded->executable_, &context, &loaded->context_)));
  INGOT_RETURN_IF_ERROR(loaded->BindInputs(candidate.inputs, candidate.seed));
  return loaded;
}

LoadedProgram::~LoadedProgram() {
  inputs_.clear();
  results_.clear();
  ingot_context_release(context_);
  ingot_executable_release(executable_);
  ingot_instance_release(instance_);
}

Status LoadedProgram::BindInputs(const std::vector<MeasuredInput>& inputs, uint64_t seed) {
  const size_t count = ingot_function_input_count(function_);
  if (inputs.size() != count) {
    return Status(StatusCode::kBadInput, "expected " + std::to_string(count) + " inputs, got " +
                                             std::to_string(inputs.size()) + ": " + ingot_function_name(function_) +
                                             ingot_function_signature(function_));
  }
  inputs_.resize(count);
  arguments_.resize(count);
  input_views_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string where = "input \"" + std::string(ingot_function_input_name(function_, i)) + "\"";
    const ingot_type* type = ingot_function_input_type(function_, i);
    arguments_[i].kind = ingot_type_kind(type);
    if (ingot_type_kind(type) != INGOT_KIND_TENSOR) {
      INGOT_RETURN_IF_ERROR(BindNumber(i, inputs[i].spec).WithContext(where));
      continue;
    }
    const ingot_dl_data_type dtype = ingot_type_dtype(type);
    const formats::ExpectedTensor expected{{static_cast<TypeCode>(dtype.code), dtype.bits, dtype.lanes},
                                           inputs[i].dims};
    Result<Tensor> tensor = formats::MakeTensorFromSpec(inputs[i].spec, &expected, seed + i);
    if (!tensor.ok()) return std::move(tensor).status().WithContext(where);
    inputs_[i] = *std::move(tensor);
    input_views_[i] = ViewOf(inputs_[i]);
    arguments_[i].as.tensor = &input_views_[i];
    if (inputs[i].is_warm) warm_inputs_.push_back(i);
    input_pointers_.push_back(&input_views_[i]);
  }
  return Status();
}

Status LoadedProgram::BindNumber(size_t index, const std::string& text) {
  ingot_value& value = arguments_[index];
  bool is_number = false;
  if (value.kind == INGOT_KIND_INT) is_number = ParseWhole(text, &value.as.i);
  if (value.kind == INGOT_KIND_FLOAT) is_number = ParseWhole(text, &value.as.f);
  if (value.kind == INGOT_KIND_BOOL) {
    is_number = text == "true" || text == "false";
    value.as.b = text == "true";
  }
  if (is_number) return Status();
  return Status(StatusCode::kBadInput, "expected " +
                                           std::string(ingot_type_text(ingot_function_input_type(function_, index))) +
                                           ", got \"" + text + "\"");
}

bool LoadedProgram::TakesTensorsAlone() const {
  return input_pointers_.size() == inputs_.size() && results_.size() == ingot_function_output_count(function_);
}

Status LoadedProgram::Invoke(std::vector<ingot_value>& results) {
  return TakeStatus(
      ingot_invoke(context_, function_, arguments_.data(), arguments_.size(), results.data(), results.size()));
}

// Memory for results, of the dims that a first call gives them.
Status LoadedProgram::MakeResults() {
  std::vector<ingot_value> values(ingot_function_output_count(function_));
  INGOT_RETURN_IF_ERROR(Invoke(values));
  Status status;
  for (ingot_value& value : values) {
    const bool is_tensor = value.kind == INGOT_KIND_TENSOR;
    if (is_tensor && status.ok()) {
      const ingot_dl_tensor& made = value.as.owned_tensor->dl_tensor;
      Result<Tensor> own = Tensor::Allocate({static_cast<TypeCode>(made.dtype.code), made.dtype.bits, made.dtype.lanes},
                                            {made.shape, static_cast<size_t>(made.ndim)});
      status = own.status();
      if (own.ok()) results_.push_back(*std::move(own));
    } else if (status.ok()) {
      status = Status(StatusCode::kBadInput, "only functions whose results are tensors are measured");
    }
    ingot_value_clear(&value);
  }
  for (const Tensor& result : results_) result_views_.push_back(ViewOf(result));
  for (ingot_dl_tensor& view : result_views_) result_pointers_.push_back(&view);
  return status;
}

Status LoadedProgram::Prepare() {
  INGOT_RETURN_IF_ERROR(MakeResults());
  for (const Tensor& result : results_) {
    if (result.size_bytes() > 0) std::memset(result.data(), kUnwritten, static_cast<size_t>(result.size_bytes()));
  }
  if (TakesTensorsAlone()) return Call();
  std::vector<ingot_value> values(results_.size());
  INGOT_RETURN_IF_ERROR(Invoke(values));
  Status status;
  for (size_t i = 0; i < values.size(); ++i) {
    Result<Tensor> tensor = ImportDLPack(std::exchange(values[i].as.owned_tensor, nullptr));
    values[i] = {};
    if (status.ok()) status = tensor.status();
    if (tensor.ok()) results_[i] = *std::move(tensor);
  }
  return status;
}

Status LoadedProgram::Call() {
  if (TakesTensorsAlone()) {
    return TakeStatus(ingot_invoke_into(context_, function_, input_pointers_.data(), input_pointers_.size(),
                                        result_pointers_.data(), result_pointers_.size()));
  }
  std::vector<ingot_value> values(results_.size());
  Status status = Invoke(values);
  if (!status.ok()) return status;
  for (ingot_value& value : values) ingot_value_clear(&value);
  return status;
}

void LoadedProgram::WarmInputs() {
  for (const size_t i : warm_inputs_) {
    auto* const bytes = static_cast<volatile unsigned char*>(inputs_[i].data());
    const auto size = static_cast<size_t>(inputs_[i].size_bytes());
    for (size_t at = 0; at < size; at += kCacheLineBytes) bytes[at] = bytes[at];
  }
}

std::vector<LoadedProgram::Output> LoadedProgram::outputs() const {
  std::vector<Output> outputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (ingot_function_input_is_written(function_, i) != 0) {
      outputs.push_back({ingot_function_input_name(function_, i), inputs_[i]});
    }
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    outputs.push_back({ingot_function_output_name(function_, i), results_[i]});
  }
  return outputs;
}

}  // namespace ingot::tune
