// The C API, second part: values converted in both directions, contexts, calls, and the external functions of the
// embedder.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "runtime/dlpack.h"
#include "runtime/suggest.h"
#include "vm/api/c_api_types.h"

namespace ingot::capi {
namespace {

constexpr int kMaxNesting = 16;  // of tuples that come from outside, or go there
// Of the results of one call together: of tuples, which may share what they hold, and of 64 bytes of text each.
constexpr int64_t kMaxResultElements = 1 << 20;

Result<Tensor> CopyOf(const TensorView& view, bool is_read_only) {
  INGOT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(view.dtype, view.shape()));
  INGOT_RETURN_IF_ERROR(CopyElements(view, copy.view()));
  return is_read_only ? copy.AsReadOnly() : copy;
}

// `is_kept`: the value is an argument of several calls, none of which may write what it holds.
Result<vm::Value> ToValue(const ingot_value& value, bool is_kept = false, int depth = 0) {
  switch (value.kind) {
    case INGOT_KIND_INT:
      return vm::Value(value.as.i);
    case INGOT_KIND_FLOAT:
      return vm::Value(value.as.f);
    case INGOT_KIND_BOOL:
      return vm::Value(value.as.b != 0);
    case INGOT_KIND_STRING:
      if (value.as.string == nullptr) return NullArgument("string");
      return vm::MakeString(value.as.string);
    case INGOT_KIND_DTYPE: {
      const DataType dtype(static_cast<TypeCode>(value.as.dtype.code), value.as.dtype.bits, value.as.dtype.lanes);
      if (!dtype.IsKnown()) return Status(StatusCode::kBadInput, "an unknown element type");
      return vm::Value(dtype);
    }
    case INGOT_KIND_SHAPE: {
      const int64_t* extents = value.as.shape.extents;
      if (value.as.shape.rank > kMaxRank || (extents == nullptr && value.as.shape.rank > 0)) {
        return Status(StatusCode::kBadInput, {"a shape of rank ", value.as.shape.rank});
      }
      return vm::Value(vm::ShapeValue{{extents, extents + value.as.shape.rank}});
    }
    case INGOT_KIND_TENSOR: {
      if (value.as.tensor == nullptr) return NullArgument("tensor");
      INGOT_ASSIGN_OR_RETURN(Tensor tensor, BorrowDLTensor(*value.as.tensor));
      return vm::Value(std::move(tensor));
    }
    case INGOT_KIND_TUPLE: {
      if (depth == kMaxNesting) return Status(StatusCode::kBadInput, "tuples nest too deep");
      if (value.as.tuple.elements == nullptr && value.as.tuple.count > 0) return NullArgument("elements");
      std::vector<vm::Value> elements;
      for (size_t i = 0; i < value.as.tuple.count; ++i) {
        INGOT_ASSIGN_OR_RETURN(vm::Value element, ToValue(value.as.tuple.elements[i], is_kept, depth + 1));
        // The callee may keep the tuple beyond the call, so its tensors are copied.
        if (const auto* tensor = std::get_if<Tensor>(&element)) {
          if (!tensor->view().device.is_host_accessible())
            return Status(StatusCode::kBadInput, "a tensor in a tuple is not on the host");
          INGOT_ASSIGN_OR_RETURN(element, CopyOf(tensor->view(), is_kept));
        }
        elements.push_back(std::move(element));
      }
      return vm::MakeTuple(std::move(elements));
    }
    case INGOT_KIND_OPTIONAL:
    case INGOT_KIND_CLOSURE:
    case INGOT_KIND_OBJECT:
      break;
  }
  return Status(StatusCode::kInvalidArgument,
                {"values of kind ", static_cast<int>(value.kind), " cannot come from outside"});
}

void* CopyBytes(const void* bytes, size_t size) {
  void* copy = std::malloc(std::max<size_t>(size, 1));
  if (copy != nullptr && size > 0) std::memcpy(copy, bytes, size);
  return copy;
}

using KeepAlive = std::shared_ptr<const void>;

// The same tensor, with a storage that keeps `keep` alive too. The hooks of the embedder's allocator live in the
// instance, and a tensor may outlive everything else that was made from the instance.
Result<Tensor> Keeping(const Tensor& tensor, const KeepAlive& keep) {
  struct Holder {
    KeepAlive keep;  // goes after the storage
    Ref<Storage> storage;
  };
  auto holder = std::make_unique<Holder>(Holder{keep, tensor.storage()});
  const auto release = [](void* context, void*, int64_t) { delete static_cast<Holder*>(context); };
  Holder* const raw = holder.release();  // Wrap takes it over, whatever it returns
  INGOT_ASSIGN_OR_RETURN(Ref<Storage> storage, Storage::Wrap(raw->storage->data(), raw->storage->size_bytes(),
                                                             raw->storage->device(), release, raw));
  INGOT_ASSIGN_OR_RETURN(Tensor kept,
                         Tensor::InStorage(std::move(storage), tensor.dtype(), tensor.dims(), tensor.byte_offset()));
  return tensor.is_read_only() ? kept.AsReadOnly() : kept;
}

// On failure *out is a value that may be cleared.
Status FromValue(const vm::Value& value, const KeepAlive& keep, ingot_value* out, int64_t* left, int depth = 0) {
  *out = {};
  const auto too_large = [] {
    return Status(StatusCode::kFailed,
                  "results of tuples that nest too deep, or of too many elements or too much text");
  };
  if (const auto* i = std::get_if<int64_t>(&value)) {
    out->kind = INGOT_KIND_INT;
    out->as.i = *i;
    return Status();
  }
  if (const auto* f = std::get_if<double>(&value)) {
    out->kind = INGOT_KIND_FLOAT;
    out->as.f = *f;
    return Status();
  }
  if (const auto* b = std::get_if<bool>(&value)) {
    out->kind = INGOT_KIND_BOOL;
    out->as.b = *b ? 1 : 0;
    return Status();
  }
  if (const auto* dtype = std::get_if<DataType>(&value)) {
    out->kind = INGOT_KIND_DTYPE;
    out->as.dtype = {static_cast<uint8_t>(dtype->code), dtype->bits, dtype->lanes};
    return Status();
  }
  if (const auto* shape = std::get_if<vm::ShapeValue>(&value)) {
    void* extents = CopyBytes(shape->extents.data(), shape->extents.size() * sizeof(int64_t));
    if (extents == nullptr) return Status::OutOfMemory();
    out->kind = INGOT_KIND_SHAPE;
    out->as.shape.extents = static_cast<const int64_t*>(extents);
    out->as.shape.rank = shape->extents.size();
    return Status();
  }
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    INGOT_ASSIGN_OR_RETURN(const Tensor kept, Keeping(*tensor, keep));
    INGOT_ASSIGN_OR_RETURN(ingot_dl_managed_tensor_versioned * managed, ExportDLPackVersioned(kept));
    out->kind = INGOT_KIND_TENSOR;
    out->as.owned_tensor = managed;
    return Status();
  }
  const auto* object = std::get_if<Ref<vm::Object>>(&value);
  if (object != nullptr) {
    if (const auto* text = dynamic_cast<const vm::StringObject*>(object->get())) {
      *left -= static_cast<int64_t>(text->text.size() / 64);
      if (*left < 0) return too_large();
      void* copy = CopyBytes(text->text.c_str(), text->text.size() + 1);
      if (copy == nullptr) return Status::OutOfMemory();
      out->kind = INGOT_KIND_STRING;
      out->as.string = static_cast<const char*>(copy);
      return Status();
    }
    if (const auto* tuple = dynamic_cast<const vm::TupleObject*>(object->get());
        tuple != nullptr && tuple->kind() == vm::ValueKind::kTuple) {
      *left -= static_cast<int64_t>(tuple->elements().size());
      if (depth == kMaxNesting || *left < 0) return too_large();
      auto* elements =
          static_cast<ingot_value*>(std::calloc(std::max<size_t>(tuple->elements().size(), 1), sizeof(ingot_value)));
      if (elements == nullptr) return Status::OutOfMemory();
      out->kind = INGOT_KIND_TUPLE;
      out->as.tuple.elements = elements;
      out->as.tuple.count = tuple->elements().size();
      for (size_t i = 0; i < tuple->elements().size(); ++i) {
        INGOT_RETURN_IF_ERROR(FromValue(tuple->elements()[i], keep, &elements[i], left, depth + 1));
      }
      return Status();
    }
  }
  return Status(StatusCode::kInvalidArgument, {"a result of kind ", vm::DescribeValue(value), " cannot leave the VM"});
}

// Converted values, cleared unless they are handed out.
struct OwnedValues {
  std::vector<ingot_value> values;
  explicit OwnedValues(size_t count) : values(count) {}
  OwnedValues(const OwnedValues&) = delete;
  ~OwnedValues() {
    for (ingot_value& value : values) ingot_value_clear(&value);
  }
};

// Converts a result of an external function. Its tensor is taken over, also when the conversion fails.
Result<vm::Value> TakeValue(ingot_value& value) {
  if (value.kind != INGOT_KIND_TENSOR) return ToValue(value);
  ingot_dl_managed_tensor_versioned* managed = std::exchange(value.as.owned_tensor, nullptr);
  value = {};
  if (managed == nullptr) return NullArgument("owned_tensor");
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, ImportDLPack(managed));
  return vm::Value(std::move(tensor));
}

// Results of an external function. Tensors, the only ones that are owned, are released unless they were taken over.
struct ExternalResults {
  std::vector<ingot_value> values;
  explicit ExternalResults(size_t count) : values(count) {}
  ExternalResults(const ExternalResults&) = delete;
  ~ExternalResults() {
    for (ingot_value& value : values) {
      if (value.kind == INGOT_KIND_TENSOR) ingot_value_clear(&value);
    }
  }
};

Result<std::vector<vm::Value>> CallExternal(const ingot_external& external, size_t num_results,
                                            std::span<const vm::Value> arguments) {
  OwnedValues owned(arguments.size());
  int64_t left = kMaxResultElements;
  std::vector<ingot_value> given(arguments.size());
  std::vector<ingot_dl_tensor> tensors(arguments.size());  // borrowed views, so nothing is exported
  std::vector<std::array<int64_t, size_t{2} * kMaxRank>> extents(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&arguments[i]);
    if (tensor == nullptr) {
      INGOT_RETURN_IF_ERROR(FromValue(arguments[i], nullptr, &owned.values[i], &left));
      given[i] = owned.values[i];
      continue;
    }
    std::copy(tensor->dims().begin(), tensor->dims().end(), extents[i].begin());
    std::copy(tensor->strides().begin(), tensor->strides().end(), extents[i].begin() + kMaxRank);
    const DataType dtype = tensor->dtype();
    tensors[i] = {tensor->data(),
                  {static_cast<int32_t>(tensor->device().kind), tensor->device().index},
                  tensor->rank(),
                  {static_cast<uint8_t>(dtype.code), dtype.bits, dtype.lanes},
                  extents[i].data(),
                  extents[i].data() + kMaxRank,
                  0};
    given[i].kind = INGOT_KIND_TENSOR;
    given[i].as.tensor = &tensors[i];
  }
  ExternalResults results(num_results);
  ingot_status* failed =
      external.call(external.user, given.data(), given.size(), results.values.data(), results.values.size());
  if (failed != nullptr) {
    const std::unique_ptr<ingot_status, void (*)(ingot_status*)> holder(failed, &ingot_status_release);
    return Status(failed->code == StatusCode::kOk ? StatusCode::kFailed : failed->code, failed->message);
  }
  std::vector<vm::Value> values;
  for (ingot_value& result : results.values) {
    INGOT_ASSIGN_OR_RETURN(vm::Value value, TakeValue(result));
    values.push_back(std::move(value));
  }
  return values;
}

// What the VM calls. Types of their own, here and where the library keeps functions: a lambda's name in the binary is as
// long as the whole type of the function that it stands in.
struct ExternalCall {
  ingot_external external;
  size_t num_results;
  Result<std::vector<vm::Value>> operator()(std::span<const vm::Value> arguments) const {
    return CallExternal(external, num_results, arguments);
  }
};
struct RawExternalCall {
  ingot_external external;
  int32_t operator()(void* const* buffers, const int64_t* ints) const {
    return external.call_raw(external.user, buffers, ints);
  }
};

Status CheckDeadline(double seconds) {
  constexpr double kLongest = 1e9;  // the clock's own range is not far above
  if (seconds >= 0 && seconds <= kLongest) return Status();
  return Status(StatusCode::kInvalidArgument, "a deadline is a number of seconds >= 0");
}

Status CreateContext(ingot_executable* executable, const ingot_context_options* options, ingot_context** context) {
  if (context == nullptr) return NullArgument("context");
  if (executable == nullptr) return NullArgument("executable");
  INGOT_ASSIGN_OR_RETURN(const ingot_context_options given,
                         CopyOptions(options, ingot_context_options INGOT_CONTEXT_OPTIONS_INIT));
  const bool is_cpu = given.device.device_type == 0 || given.device.device_type == INGOT_DL_CPU;
#ifdef INGOT_CUDA
  const bool is_known = is_cpu ? given.device.device_id == 0 : given.device.device_type == INGOT_DL_CUDA;
  if (!is_known || given.device.device_id < 0) {
    return Status(StatusCode::kUnsupportedFile, "contexts run on the devices cpu and cuda alone");
  }
#else
  if (!is_cpu || given.device.device_id != 0) {
    return Status(StatusCode::kUnsupportedFile, "contexts run on the device cpu alone");
  }
#endif
  INGOT_RETURN_IF_ERROR(CheckDeadline(given.deadline_seconds));
  if (given.max_memory_bytes < 0 || given.fuel < 0) {
    return Status(StatusCode::kInvalidArgument, "max_memory_bytes and fuel are not negative");
  }
  vm::ContextOptions converted;
  converted.deadline_seconds = given.deadline_seconds;
  converted.max_memory_bytes = given.max_memory_bytes;
  converted.fuel = given.fuel;
#ifdef INGOT_CUDA
  if (given.device.device_type != 0)
    converted.device = DeviceId{static_cast<DeviceKind>(given.device.device_type), given.device.device_id};
  converted.copies_tensors = given.copy_tensors != 0;
#endif
  if (given.externals == nullptr && given.num_externals > 0) return NullArgument("externals");
  for (size_t i = 0; i < given.num_externals; ++i) {
    const ingot_external external = given.externals[i];
    if (external.name == nullptr || (external.call == nullptr && external.call_raw == nullptr)) {
      return NullArgument("external function");
    }
    size_t num_results = 0;
    for (const vm::External& declared : executable->executable->program().externals) {
      if (declared.name == external.name) num_results = declared.signature.results.size();
    }
    vm::ExternalFunction& function = converted.externals[external.name];
    if (external.call != nullptr) function.call = ExternalCall{external, num_results};
    if (external.call_raw != nullptr) function.call_raw = RawExternalCall{external};
  }
  auto out = std::make_unique<ingot_context>();
  INGOT_ASSIGN_OR_RETURN(out->context, vm::Context::Create(executable->executable, std::move(converted)));
  out->functions = executable->functions;
  *context = out.release();
  return Status();
}

// An input that is set by name: where the context keeps it, and whether its parameter is a tensor.
struct KeptInput {
  std::optional<vm::Value>& slot;
  bool is_tensor;
};

// Inputs that were set for another function are dropped.
Result<KeptInput> FindInput(ingot_context* context, const ingot_function* function, const char* name) {
  if (name == nullptr) return NullArgument("name");
  const auto& params = function->function->signature.params;
  if (context->function != function) {
    context->set_inputs = std::vector<std::optional<vm::Value>>(params.size());
    context->function = function;  // only now: there may have been no memory
    context->results.clear();
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name == name) return KeptInput{context->set_inputs[i], params[i].type.is_tensor()};
    names.push_back(params[i].name);
  }
  return Status(StatusCode::kNotFound,
                {"function \"", function->function->name, "\" has no input \"", name, "\"", DidYouMean(name, names)});
}

// Copies a tensor into a kept input. Parameters of tensors borrow that memory for a run, and the next tensor that fits
// reuses it. Others would share it, so that it is read-only for them: they copy what they keep.
Status CopyInput(const ingot_dl_tensor& tensor, const KeptInput& kept) {
  INGOT_ASSIGN_OR_RETURN(const TensorView view, ViewFromDLTensor(tensor));
  if (!view.device.is_host_accessible())
    return Status(StatusCode::kBadInput, {"the tensor is on ", view.device.ToString()});
  auto* input = kept.slot ? std::get_if<Tensor>(&*kept.slot) : nullptr;
  if (kept.is_tensor && input != nullptr && input->dtype() == view.dtype &&
      std::ranges::equal(input->dims(), view.shape())) {
    return CopyElements(view, input->view());
  }
  INGOT_ASSIGN_OR_RETURN(kept.slot, CopyOf(view, !kept.is_tensor));
  return Status();
}

}  // namespace

Result<std::vector<vm::Value>> ToValues(const ingot_value* arguments, size_t num_arguments) {
  if (arguments == nullptr && num_arguments > 0) return NullArgument("arguments");
  std::vector<vm::Value> values;
  for (size_t i = 0; i < num_arguments; ++i) {
    Result<vm::Value> value = ToValue(arguments[i]);
    if (!value.ok()) return std::move(value).status().WithContext({"argument ", i});
    values.push_back(std::move(*value));
  }
  return values;
}

Status CheckResultCount(const ingot_function* function, const ingot_value* results, size_t num_results) {
  if (results == nullptr && num_results > 0) return NullArgument("results");
  if (num_results == function->outputs.size()) return Status();
  return Status(StatusCode::kInvalidArgument, {"function \"", function->function->name, "\" has ",
                                               function->outputs.size(), " results, room is for ", num_results});
}

Status FromValues(std::span<const vm::Value> values, const KeepAlive& keep, ingot_value* out, size_t room,
                  vm::Context* invoked) {
  std::unique_ptr<vm::Context, void (*)(vm::Context*)> undo(invoked, [](vm::Context* c) { c->RestoreLengths(); });
  if (values.size() != room)
    return Status(StatusCode::kFailed, {"a call gave ", values.size(), " results, not ", room});
  OwnedValues converted(values.size());
  int64_t left = kMaxResultElements;
  for (size_t i = 0; i < values.size(); ++i) {
    INGOT_RETURN_IF_ERROR(FromValue(values[i], keep, &converted.values[i], &left));
  }
  std::copy(converted.values.begin(), converted.values.end(), out);
  converted.values.clear();
  static_cast<void>(undo.release());
  return Status();
}

}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

void ingot_value_clear(ingot_value* value) {
  if (value == nullptr) return;
  switch (value->kind) {
    case INGOT_KIND_STRING:
      std::free(const_cast<char*>(value->as.string));
      break;
    case INGOT_KIND_SHAPE:
      std::free(const_cast<int64_t*>(value->as.shape.extents));
      break;
    case INGOT_KIND_TENSOR:
      if (value->as.owned_tensor != nullptr && value->as.owned_tensor->deleter != nullptr) {
        value->as.owned_tensor->deleter(value->as.owned_tensor);
      }
      break;
    case INGOT_KIND_TUPLE:
      for (size_t i = 0; i < value->as.tuple.count; ++i) ingot_value_clear(&value->as.tuple.elements[i]);
      std::free(value->as.tuple.elements);
      break;
    case INGOT_KIND_INT:
    case INGOT_KIND_FLOAT:
    case INGOT_KIND_BOOL:
    case INGOT_KIND_DTYPE:
    case INGOT_KIND_OPTIONAL:
    case INGOT_KIND_CLOSURE:
    case INGOT_KIND_OBJECT:
      break;
  }
  *value = {};
}

ingot_status* ingot_context_create(ingot_executable* executable, const ingot_context_options* options,
                                   ingot_context** context) {
  GiveNull(context);
  return Guard([&] { return CreateContext(executable, options, context); });
}
void ingot_context_release(ingot_context* context) { delete context; }

ingot_status* ingot_invoke(ingot_context* context, const ingot_function* function, const ingot_value* arguments,
                           size_t num_arguments, ingot_value* results, size_t num_results) {
  return GuardCall(context, function, [&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckResultCount(function, results, num_results));
    INGOT_ASSIGN_OR_RETURN(const std::vector<vm::Value> values, ToValues(arguments, num_arguments));
    INGOT_ASSIGN_OR_RETURN(const std::vector<vm::Value> out, context->context->Invoke(*function->function, values));
    vm::Context& invoked = *context->context;
    return FromValues(out, invoked.executable().instance(), results, num_results, &invoked);
  });
}

ingot_status* ingot_context_set_input(ingot_context* context, const ingot_function* function, const char* name,
                                      const ingot_dl_tensor* tensor) {
  return GuardCall(context, function, [&]() -> Status {
    INGOT_ASSIGN_OR_RETURN(const KeptInput input, FindInput(context, function, name));
    if (tensor == nullptr) return NullArgument("tensor");
    return CopyInput(*tensor, input);
  });
}

ingot_status* ingot_context_set_input_value(ingot_context* context, const ingot_function* function, const char* name,
                                            const ingot_value* value) {
  return GuardCall(context, function, [&]() -> Status {
    INGOT_ASSIGN_OR_RETURN(const KeptInput input, FindInput(context, function, name));
    if (value == nullptr) return NullArgument("value");
    if (value->kind == INGOT_KIND_TENSOR) {
      if (value->as.tensor == nullptr) return NullArgument("tensor");
      return CopyInput(*value->as.tensor, input);
    }
    INGOT_ASSIGN_OR_RETURN(input.slot, ToValue(*value, true));
    return Status();
  });
}

ingot_status* ingot_context_run(ingot_context* context, const ingot_function* function) {
  return GuardCall(context, function, [&]() -> Status {
    const auto& params = function->function->signature.params;
    context->results.clear();
    std::vector<vm::Value> arguments;
    for (size_t i = 0; i < params.size(); ++i) {
      if (context->function != function || !context->set_inputs[i]) {
        return Status(StatusCode::kInvalidArgument, {"input \"", params[i].name, "\" is not set"});
      }
      arguments.emplace_back(*context->set_inputs[i]);
    }
    INGOT_ASSIGN_OR_RETURN(context->results, context->context->Invoke(*function->function, arguments));
    return Status();
  });
}

ingot_status* ingot_context_get_output(ingot_context* context, size_t index, ingot_value* output) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    if (output == nullptr) return NullArgument("output");
    if (index >= context->results.size()) {
      return Status(StatusCode::kInvalidArgument,
                    {"output ", index, " of ", context->results.size(), "; was there a run?"});
    }
    return FromValues({&context->results[index], 1}, context->context->executable().instance(), output, 1);
  });
}

ingot_status* ingot_context_set_deadline(ingot_context* context, double seconds) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    INGOT_RETURN_IF_ERROR(CheckDeadline(seconds));
    context->context->set_deadline(seconds);
    return Status();
  });
}
void ingot_context_cancel(ingot_context* context) {
  if (context != nullptr) context->context->Cancel();
}

int64_t ingot_context_memory_in_use(const ingot_context* context) {
  return context == nullptr ? 0 : context->context->bytes_in_use();
}
int64_t ingot_context_memory_peak(const ingot_context* context) {
  return context == nullptr ? 0 : context->context->peak_bytes_in_use();
}

}  // extern "C"
