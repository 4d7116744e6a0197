// Ingot's C++ wrapper: header-only, over the C API (ingot.h), C++17.
//
//     ingot::Module m("model.ingot");
//     ingot::Tensor x(std::vector<float>(64), {1, 1, 8, 8});
//     ingot::Tensor y = m.Forward(x);
//     const float* scores = y.data<float>();
//
// Naming a file here is trust in its native code, as with any program; give Trust::kNothing to refuse it. Failures are
// exceptions of type ingot::Error. A Module is for one thread at a time; Module::NewContext gives another thread its
// own over the same weights. Tensors share memory when they are copied. Everything is in an inline namespace of its
// own, so that its names do not collide with those of the static library.
#ifndef INGOT_INGOT_HPP_
#define INGOT_INGOT_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/ingot.h"

namespace ingot {
inline namespace wrapper {

class Error : public std::runtime_error {
 public:
  explicit Error(ingot_status_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Error(ingot_status_code code, const std::string& message, std::string function, std::string location)
      : std::runtime_error(message), code_(code), function_(std::move(function)), location_(std::move(location)) {}
  ingot_status_code code() const { return code_; }
  const std::string& function() const { return function_; }  // the VM function; "" when it is not known
  const std::string& location() const { return location_; }  // the source operation; "" when it is not known

 private:
  ingot_status_code code_;
  std::string function_, location_;
};

// Throws an Error for a failed status, and releases the status.
inline void Check(ingot_status* status) {
  if (status == nullptr) return;
  Error error(ingot_status_get_code(status), ingot_status_message(status), ingot_status_function(status),
              ingot_status_location(status));
  ingot_status_release(status);
  throw error;
}

namespace detail {
template <typename T>
struct TypeOf;
#define INGOT_WRAPPER_TYPE(type, code, bits)                  \
  template <>                                                 \
  struct TypeOf<type> {                                       \
    static constexpr ingot_dl_data_type value{code, bits, 1}; \
  };
INGOT_WRAPPER_TYPE(int8_t, 0, 8)
INGOT_WRAPPER_TYPE(int16_t, 0, 16)
INGOT_WRAPPER_TYPE(int32_t, 0, 32)
INGOT_WRAPPER_TYPE(int64_t, 0, 64)
INGOT_WRAPPER_TYPE(uint8_t, 1, 8)
INGOT_WRAPPER_TYPE(uint16_t, 1, 16)
INGOT_WRAPPER_TYPE(uint32_t, 1, 32)
INGOT_WRAPPER_TYPE(uint64_t, 1, 64)
INGOT_WRAPPER_TYPE(float, 2, 32)
INGOT_WRAPPER_TYPE(double, 2, 64)
INGOT_WRAPPER_TYPE(bool, 6, 8)
#undef INGOT_WRAPPER_TYPE

inline bool IsSame(ingot_dl_data_type a, ingot_dl_data_type b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  // A tensor that owns its elements, in row-major order. Throws when their number is not that of the shape.
  template <typename T>
  Tensor(std::vector<T> elements, std::vector<int64_t> shape) {
    struct Owner {
      std::vector<T> elements;
      std::vector<int64_t> shape;
      ingot_dl_managed_tensor_versioned managed{};
    };
    CheckSize(static_cast<int64_t>(elements.size()), shape);
    auto owner = std::make_unique<Owner>(Owner{std::move(elements), std::move(shape)});
    owner->managed = Describe(owner->elements.data(), detail::TypeOf<T>::value, owner->shape);
    owner->managed.manager_ctx = owner.get();
    owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
      delete static_cast<Owner*>(self->manager_ctx);
    };
    *this = TakeDLPack(&owner.release()->managed);
  }
  // A tensor over the caller's elements, which must outlive it and its copies. Const elements make it read-only.
  template <typename T>
  static Tensor Borrow(T* elements, std::vector<int64_t> shape) {
    struct Owner {
      std::vector<int64_t> shape;
      ingot_dl_managed_tensor_versioned managed{};
    };
    auto owner = std::make_unique<Owner>(Owner{std::move(shape)});
    auto* data = const_cast<std::remove_const_t<T>*>(elements);
    owner->managed = Describe(data, detail::TypeOf<std::remove_const_t<T>>::value, owner->shape);
    owner->managed.flags = std::is_const_v<T> ? INGOT_DL_FLAG_READ_ONLY : 0;
    owner->managed.manager_ctx = owner.get();
    owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
      delete static_cast<Owner*>(self->manager_ctx);
    };
    return TakeDLPack(&owner.release()->managed);
  }
  // Takes over a managed tensor of another library. A pointer to DLPack's own struct only needs a cast
  // (ingot/dlpack.h).
  static Tensor TakeDLPack(ingot_dl_managed_tensor_versioned* managed) {
    ingot_tensor* handle = nullptr;
    Check(ingot_tensor_from_dlpack(managed, &handle));
    return Tensor(handle);
  }
  static Tensor TakeLegacyDLPack(ingot_dl_managed_tensor* managed) {
    ingot_tensor* handle = nullptr;
    Check(ingot_tensor_from_legacy_dlpack(managed, &handle));
    return Tensor(handle);
  }
  // Exports the same memory to another library, which calls the deleter once.
  ingot_dl_managed_tensor_versioned* ToDLPack() const {
    ingot_dl_managed_tensor_versioned* managed = nullptr;
    Check(ingot_tensor_to_dlpack(handle_.get(), &managed));
    return managed;
  }
  ingot_dl_managed_tensor* ToLegacyDLPack() const {
    ingot_dl_managed_tensor* managed = nullptr;
    Check(ingot_tensor_to_legacy_dlpack(handle_.get(), &managed));
    return managed;
  }

  explicit operator bool() const { return handle_ != nullptr; }
  const ingot_dl_tensor& view() const { return *ingot_tensor_view(handle_.get()); }
  ingot_dl_data_type dtype() const { return view().dtype; }
  std::vector<int64_t> shape() const { return {view().shape, view().shape + view().ndim}; }
  int64_t size() const {  // elements
    int64_t count = 1;
    for (int32_t i = 0; i < view().ndim; ++i) count *= view().shape[i];
    return count;
  }
  template <typename T>
  T* data() const {
    if (!detail::IsSame(dtype(), detail::TypeOf<std::remove_const_t<T>>::value)) {
      throw Error(INGOT_INVALID_ARGUMENT, "the tensor's elements are of another type");
    }
    return reinterpret_cast<T*>(static_cast<char*>(view().data) + view().byte_offset);
  }
  template <typename T>
  std::vector<T> ToVector() const {
    return {data<T>(), data<T>() + size()};
  }

 private:
  explicit Tensor(ingot_tensor* handle) : handle_(handle, &ingot_tensor_release) {}

  static void CheckSize(int64_t num_elements, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    if (count != num_elements) throw Error(INGOT_INVALID_ARGUMENT, "as many elements as the shape says are needed");
  }
  static ingot_dl_managed_tensor_versioned Describe(void* data, ingot_dl_data_type dtype, std::vector<int64_t>& shape) {
    ingot_dl_managed_tensor_versioned managed{};
    managed.version = {INGOT_DL_MAJOR_VERSION, INGOT_DL_MINOR_VERSION};
    managed.dl_tensor = {data, {INGOT_DL_CPU, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
    return managed;
  }

  std::shared_ptr<ingot_tensor> handle_;
};

// An argument of a call: a tensor, or a number for a scalar parameter. A float parameter takes an integer, too.
class Argument {
 public:
  Argument(const Tensor& tensor) : tensor_(tensor) {}  // NOLINT: tensors and numbers are arguments as they are
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Argument(T number) : is_bool_(std::is_same_v<T, bool>), is_float_(std::is_floating_point_v<T>) {  // NOLINT
    if (is_float_) {
      float_ = static_cast<double>(number);
    } else {
      int_ = static_cast<int64_t>(number);
    }
  }
  // The value for a parameter of this kind: an integer becomes a float where one is wanted; every other mismatch is
  // refused by the call.
  ingot_value ToValue(ingot_kind kind) const {
    ingot_value value{};
    if (tensor_) {
      value.kind = INGOT_KIND_TENSOR;
      value.as.tensor = &tensor_.view();
    } else if (is_bool_) {
      value.kind = INGOT_KIND_BOOL;
      value.as.b = int_ != 0;
    } else if (is_float_ || kind == INGOT_KIND_FLOAT) {
      value.kind = INGOT_KIND_FLOAT;
      value.as.f = is_float_ ? float_ : static_cast<double>(int_);
    } else {
      value.kind = INGOT_KIND_INT;
      value.as.i = int_;
    }
    return value;
  }

 private:
  Tensor tensor_;
  bool is_bool_ = false, is_float_ = false;
  int64_t int_ = 0;
  double float_ = 0;
};

enum class Trust { kNothing, kFile };

struct Options {
  int num_threads = 0;  // of the pool, the caller included; 0: all processors
  Trust trust = Trust::kFile;
  int64_t max_memory = 0;  // bytes that programs may take; 0: no cap
  ingot_dl_device device = {0, 0};  // that runs the kernels; all zero: what the file is for
  bool copy_tensors = false;        // to and from that device, where they are elsewhere
  std::function<void(const char* message)> log;
};

class Module {
 public:
  explicit Module(const std::string& path, Options options = {}) : Module(std::move(options)) {
    Open([&](const ingot_open_options* open, ingot_executable** executable) {
      return ingot_executable_open(shared_->instance.get(), path.c_str(), open, executable);
    });
  }
  // Opens an executable in memory, which must stay unchanged as long as the module and its results live. Messages call
  // it `name`.
  Module(const void* data, size_t size, const std::string& name, Options options = {}) : Module(std::move(options)) {
    Open([&](const ingot_open_options* open, ingot_executable** executable) {
      return ingot_executable_open_memory(shared_->instance.get(), data, size, name.c_str(), open, executable);
    });
  }
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  // A module for another thread: it shares executable and threads, and has memory and states of its own.
  Module NewContext() const {
    Module other(shared_);
    other.CreateContext();
    return other;
  }

  // Calls a function ("main" in Forward) with tensors and numbers in the order of its inputs. Forward and Call need a
  // function with exactly one result.
  template <typename... Arguments>
  Tensor Forward(const Arguments&... inputs) {
    return Only(Run("main", {Argument(inputs)...}));
  }
  Tensor Call(const std::string& function, const std::vector<Argument>& inputs) { return Only(Run(function, inputs)); }
  std::vector<Tensor> Run(const std::string& function, const std::vector<Argument>& inputs) {
    const ingot_function* found = Find(function);
    std::vector<ingot_value> arguments(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ingot_type* type = ingot_function_input_type(found, i);
      arguments[i] = inputs[i].ToValue(type == nullptr ? INGOT_KIND_TENSOR : ingot_type_kind(type));
    }
    std::vector<ingot_value> results(ingot_function_output_count(found));
    Check(ingot_invoke(context_.get(), found, arguments.data(), arguments.size(), results.data(), results.size()));
    std::vector<Tensor> tensors;
    const Cleared cleared{results};
    for (ingot_value& result : results) tensors.push_back(Take(result));
    return tensors;
  }

  // Calls in steps: inputs are set by name (copied), then run, then outputs are fetched by number.
  void SetInput(const std::string& name, const Tensor& tensor, const std::string& function = "main") {
    Check(ingot_context_set_input(context_.get(), Find(function), name.c_str(), &tensor.view()));
  }
  void Run(const std::string& function = "main") { Check(ingot_context_run(context_.get(), Find(function))); }
  Tensor GetOutput(size_t index) const {
    std::vector<ingot_value> result(1);
    Check(ingot_context_get_output(context_.get(), index, &result[0]));
    const Cleared cleared{result};
    return Take(result[0]);
  }

  std::vector<std::string> functions() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < ingot_executable_function_count(executable()); ++i) {
      names.emplace_back(ingot_function_name(ingot_executable_function(executable(), i)));
    }
    return names;
  }
  std::string signature(const std::string& function = "main") const { return ingot_function_signature(Find(function)); }
  // The metadata of this key; empty when the executable has none.
  std::string metadata(const std::string& key) const {
    for (size_t i = 0; i < ingot_executable_metadata_count(executable()); ++i) {
      if (key == ingot_executable_metadata_key(executable(), i))
        return ingot_executable_metadata_value(executable(), i);
    }
    return "";
  }
  void set_deadline(double seconds) { Check(ingot_context_set_deadline(context_.get(), seconds)); }
  void Cancel() { ingot_context_cancel(context_.get()); }  // from any thread

  // The C API's handles, for functions that this wrapper does not cover.
  ingot_executable* executable() const { return shared_->executable.get(); }
  ingot_context* context() const { return context_.get(); }

 private:
  template <typename T>
  using Handle = std::unique_ptr<T, void (*)(T*)>;
  struct Shared {
    Options options;
    Handle<ingot_instance> instance{nullptr, &ingot_instance_release};
    Handle<ingot_executable> executable{nullptr, &ingot_executable_release};
  };
  struct Cleared {
    std::vector<ingot_value>& values;
    ~Cleared() {
      for (ingot_value& value : values) ingot_value_clear(&value);
    }
  };

  explicit Module(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  explicit Module(Options&& options) : shared_(std::make_shared<Shared>()) {
    shared_->options = std::move(options);
    ingot_instance_options instance = INGOT_INSTANCE_OPTIONS_INIT;
    instance.num_threads = shared_->options.num_threads;
    if (shared_->options.log) {
      instance.user = shared_.get();
      instance.log = [](void* user, const char* message) { static_cast<Shared*>(user)->options.log(message); };
    }
    ingot_instance* created = nullptr;
    Check(ingot_instance_create(&instance, &created));
    shared_->instance.reset(created);
  }

  template <typename How>
  void Open(How how) {
    ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
    open.trust = shared_->options.trust == Trust::kFile ? INGOT_TRUST_FILE : INGOT_TRUST_NOTHING;
    ingot_executable* opened = nullptr;
    Check(how(&open, &opened));
    shared_->executable.reset(opened);
    CreateContext();
  }
  void CreateContext() {
    ingot_context_options options = INGOT_CONTEXT_OPTIONS_INIT;
    options.max_memory_bytes = shared_->options.max_memory;
    options.device = shared_->options.device;
    options.copy_tensors = shared_->options.copy_tensors ? 1 : 0;
    ingot_context* created = nullptr;
    Check(ingot_context_create(executable(), &options, &created));
    context_.reset(created);
  }
  const ingot_function* Find(const std::string& name) const {
    const ingot_function* found = nullptr;
    Check(ingot_executable_find_function(executable(), name.c_str(), &found));
    return found;
  }
  static Tensor Take(ingot_value& result) {
    if (result.kind != INGOT_KIND_TENSOR) throw Error(INGOT_INVALID_ARGUMENT, "a result is no tensor; use the C API");
    result.kind = INGOT_KIND_INT;  // it is taken over from here on
    return Tensor::TakeDLPack(std::exchange(result.as.owned_tensor, nullptr));
  }
  static Tensor Only(std::vector<Tensor> results) {
    if (results.size() != 1) throw Error(INGOT_INVALID_ARGUMENT, "the function has not exactly one result; use Run");
    return std::move(results[0]);
  }

  std::shared_ptr<Shared> shared_;
  Handle<ingot_context> context_{nullptr, &ingot_context_release};
};

}  // namespace wrapper
}  // namespace ingot
#endif
