// Sequences of calls of the C API. The bytes choose calls, their handles and their arguments; a handle that was
// released is NULL from then on, and memory is as large as a tensor says, since the API asks for no less. Beyond that
// everything is allowed: NULL, wrong sizes of structs, functions of other executables, outputs over inputs, external
// functions that fail or answer with nonsense, and releasing in any order.
#include "ingot/ingot.h"

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/fuzz_targets/target.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"

namespace ingot::fuzz {
namespace {

constexpr std::array<const char*, 3> kPrograms = {
    R"(ingot 1
metadata "producer" = "fuzz"
constant "w" float32[4] weight = 1, 2, 3, 4
state @past int64[] device 0
state @cache float32[2, 4] device 0 grows axis 1 by @past
kernel @k {
  int n: int64
  in a: float32[n]
  out b: float32[n] in_place 0
}
function @main export [n in 0..64](x: float32[n]) -> (y: float32[n]) {
  register r2: float32[n]
  alloc_output r2, 0, [n]
  call_kernel @k, [r1, r2], [r0]
  return [r2]
}
function @add export (a: float32[4], b: float32[4]) -> (y: float32[4], z: float32[4]) {
  register r2: float32[4]
  register r3: float32[4]
  register r4: constant float32[4]
  alloc_output r2, 0, [4]
  alloc_output r3, 1, [4]
  const_tensor r4, #0
  call_builtin [], add, [r2, r0, r1]
  call_builtin [], add, [r3, r2, r4]
  return [r2, r3]
}
function @step export [past in 0..4 state #0](x: float32[2, 1]) -> () {
  register r2: borrowed_mut float32[2, 4]
  register r3: int
  register r4: borrowed_mut int64[]
  register r5: int
  const_int r3, 1
  state r2, @cache
  call_builtin [], cache_append, [r2, r1, r3, r0]
  state r4, @past
  dim r5, past + 1
  call_builtin [], store_int, [r4, r5]
  return []
}
)",
    R"(ingot 1
function @values export (n: int, s: string, t: tuple(int, float32[2]), h: shape[?, ?]) -> (u: tuple(string, int), h: shape[?, ?], o: tuple(int, float32[2])) {
  register r4: tuple(string, int)
  tuple r4, [r1, r0]
  return [r4, r3, r2]
}
function @forever export () -> () {
loop:
  jump loop
}
function @scalars export (a: float, b: bool, d: dtype) -> (b: bool, a: float, d: dtype) {
  return [r1, r0, r2]
}
)",
    R"(ingot 1
external @ext(x: float32[4], s: string) -> (y: float32[4], n: int) effects io
function @out export (x: float32[4]) -> (y: float32[4], n: int) {
  register r1: string
  register r2: float32[4]
  register r3: int
  const_string r1, "text"
  call_external [r2, r3], @ext, [r0, r1]
  return [r2, r3]
}
)"};

const std::vector<std::byte>& FileOf(size_t index) {
  static const std::array<std::vector<std::byte>, kPrograms.size()> files = [] {
    std::array<std::vector<std::byte>, kPrograms.size()> made;
    for (size_t i = 0; i < made.size(); ++i) {
      const auto program = vm::Assemble(kPrograms[i]);
      INGOT_CHECK(program.ok(), program.status().message().c_str());
      made[i] = *vm::EncodeProgram(*program);
    }
    return made;
  }();
  return files[index % files.size()];
}

class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool is_empty() const { return size_ == 0; }
  // 0 when there is nothing left.
  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  size_t Below(size_t n) { return Byte() % n; }
  bool Rarely() { return Byte() >= 250; }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Tensors whose elements lie in memory that lives as long as the sequence.
class Tensors {
 public:
  explicit Tensors(Choices& in) : in_(in) {}

  const ingot_dl_tensor* Make() {
    if (in_.Rarely()) return nullptr;
    Drawn& drawn = *drawn_.emplace_back(std::make_unique<Drawn>());
    ingot_dl_tensor& tensor = drawn.tensor;
    tensor = {};
    tensor.device = {INGOT_DL_CPU, 0};
    tensor.dtype = {2, 32, 1};
    if (in_.Rarely()) tensor.dtype = {in_.Byte(), in_.Byte(), static_cast<uint16_t>(in_.Below(3))};
    if (in_.Rarely()) tensor.device = {static_cast<int32_t>(in_.Byte()), static_cast<int32_t>(in_.Below(2))};
    tensor.ndim = static_cast<int32_t>(in_.Below(4));
    tensor.shape = drawn.shape.data();
    // Elements of at most 32 bytes, extents of 4 and strides of 4: they stay within 4 * 3 * 4 * 32 bytes.
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
      drawn.shape[static_cast<size_t>(axis)] = static_cast<int64_t>(in_.Below(5));
      drawn.strides[static_cast<size_t>(axis)] = static_cast<int64_t>(in_.Below(9)) - 4;
    }
    if (in_.Below(4) == 0) tensor.strides = drawn.strides.data();
    tensor.data = memory_.data() + memory_.size() / 2 + 4 * in_.Below(64);
    if (tensor.dtype.bits > 128 || tensor.dtype.lanes > 2) tensor.data = nullptr;
    if (in_.Rarely()) tensor.data = nullptr;
    if (in_.Rarely()) tensor.byte_offset = 4 * in_.Below(8);
    if (in_.Rarely()) tensor.shape = nullptr;
    if (in_.Rarely()) tensor.ndim = static_cast<int32_t>(in_.Byte()) - 128;
    if (tensor.ndim < 0 || tensor.ndim > 4) tensor.data = nullptr;
    return &tensor;
  }

 private:
  struct Drawn {
    ingot_dl_tensor tensor;
    std::array<int64_t, 128> shape{};
    std::array<int64_t, 128> strides{};
  };
  Choices& in_;
  std::vector<std::unique_ptr<Drawn>> drawn_;
  alignas(64) std::array<uint8_t, 16384> memory_{};
};

class Sequence {
 public:
  Sequence(const uint8_t* data, size_t size) : in_(data, size), tensors_(in_) {}
  Sequence(const Sequence&) = delete;
  ~Sequence() { ReleaseAll(); }

  void Run() {
    for (int calls = 0; calls < 200 && !in_.is_empty(); ++calls) (this->*Pick(kCalls))();
  }

 private:
  using Call = void (Sequence::*)();
  static const std::array<Call, 24> kCalls;

  template <typename Row, size_t N>
  Row Pick(const std::array<Row, N>& rows) {
    return rows[in_.Below(N)];
  }
  bool Take(ingot_status* status) {
    const bool is_ok = status == nullptr;
    INGOT_CHECK(is_ok == (ingot_status_get_code(status) == INGOT_OK));
    INGOT_CHECK(is_ok || std::strlen(ingot_status_message(status)) > 0);
    (void)ingot_status_function(status);
    (void)ingot_status_location(status);
    ingot_status_release(status);
    return is_ok;
  }
  // Any function of any executable that is open.
  const ingot_function* AnyFunction() {
    const ingot_executable* executable = Pick(executables_);
    return executable == nullptr ? nullptr : ingot_executable_function(executable, in_.Below(4));
  }
  const char* AnyName() {
    static constexpr std::array<const char*, 9> kNames = {"x", "a", "n", "past", "cache", "w", "main", "", nullptr};
    return Pick(kNames);
  }
  ingot_value AnyValue(int depth = 0) {
    ingot_value value{};
    switch (in_.Below(9)) {
      case 0:
        value.kind = INGOT_KIND_FLOAT;
        value.as.f = in_.Byte();
        break;
      case 1:
        value.kind = INGOT_KIND_STRING;
        value.as.string = AnyName();
        break;
      case 2:
        value.kind = INGOT_KIND_SHAPE;
        value.as.shape = {extents_.data(), in_.Below(4)};
        if (in_.Rarely()) value.as.shape.extents = nullptr;
        break;
      case 3:
      case 4:
        value.kind = INGOT_KIND_TENSOR;
        value.as.tensor = tensors_.Make();
        break;
      case 5:
        if (depth < 3) {
          std::vector<ingot_value> elements(in_.Below(4));
          for (ingot_value& element : elements) element = AnyValue(depth + 1);
          elements_.push_back(std::move(elements));
          value.kind = INGOT_KIND_TUPLE;
          value.as.tuple = {elements_.back().data(), elements_.back().size()};
        }
        break;
      case 6:
        value.kind = static_cast<ingot_kind>(in_.Below(12));
        break;  // all its bytes are zero
      case 7:
        value.kind = INGOT_KIND_DTYPE;
        value.as.dtype = {in_.Byte(), in_.Byte(), 1};
        break;
      default:
        value.kind = INGOT_KIND_INT;
        value.as.i = in_.Byte();
    }
    return value;
  }
  std::vector<ingot_value> AnyValues() {
    std::vector<ingot_value> values(in_.Below(5));
    for (ingot_value& value : values) value = AnyValue();
    return values;
  }
  template <typename Options>
  const Options* Sized(Options& options) {
    if (in_.Rarely()) options.struct_size = in_.Below(16);
    return in_.Rarely() ? nullptr : &options;
  }

  // A byte for what is called back, which may be on the thread of a task, where the choices are not ours to take.
  uint8_t CalledBackByte() { return OnOwnThread() ? in_.Byte() : turn_++; }
  bool OnOwnThread() const { return std::this_thread::get_id() == thread_; }

  // The executable's external function: it fails or throws, answers with numbers, calls back, or answers as it should.
  static ingot_status* Answer(void* user, const ingot_value* arguments, size_t, ingot_value* results, size_t count) {
    auto& self = *static_cast<Sequence*>(user);
    const uint8_t choice = self.CalledBackByte();
    switch (choice % 4) {
      case 0:
        if (choice >= 192) throw std::runtime_error("it threw");
        if (choice >= 128) throw int{choice};
        return ingot_status_create(INGOT_FAILED, "it failed");
      case 1:
        for (size_t i = 0; i < count; ++i) results[i].kind = i == 0 ? INGOT_KIND_INT : INGOT_KIND_FLOAT;
        return nullptr;
      case 2:  // into a context that may be the running one, which has to refuse
        if (self.OnOwnThread()) {
          for (ingot_context* context : self.contexts_) {
            if (context != nullptr) self.Take(ingot_context_reset_states(context));
          }
        }
        [[fallthrough]];
      default:
        if (count == 2 && arguments[0].kind == INGOT_KIND_TENSOR) {
          results[0].kind = INGOT_KIND_TENSOR;
          results[0].as.owned_tensor = MakeOwned(*arguments[0].as.tensor);
          results[1].kind = INGOT_KIND_INT;
          results[1].as.i = 7;
        }
        return nullptr;
    }
  }
  // A managed tensor with memory of its own, of up to 64 floats.
  static ingot_dl_managed_tensor_versioned* MakeOwned(const ingot_dl_tensor& like) {
    struct Owner {
      ingot_dl_managed_tensor_versioned managed{};
      std::array<int64_t, 8> shape{};
      std::array<float, 64> elements{};
    };
    auto* owner = new Owner;
    owner->managed.version = {1, 0};
    owner->managed.manager_ctx = owner;
    owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
      delete static_cast<Owner*>(self->manager_ctx);
    };
    owner->managed.dl_tensor = like;
    owner->managed.dl_tensor.strides = nullptr;
    owner->managed.dl_tensor.byte_offset = 0;
    owner->managed.dl_tensor.data = owner->elements.data();
    owner->managed.dl_tensor.shape = owner->shape.data();
    for (int32_t i = 0; i < like.ndim; ++i) owner->shape[static_cast<size_t>(i)] = like.shape[i];
    return &owner->managed;
  }

  void CreateInstance() {
    ingot_instance*& instance = Slot(instances_);
    if (instance != nullptr) return;
    ingot_instance_options options = INGOT_INSTANCE_OPTIONS_INIT;
    options.num_threads = 1 + static_cast<int32_t>(in_.Below(2));
    if (in_.Rarely()) options.num_threads = static_cast<int32_t>(in_.Byte()) - 200;
    Take(ingot_instance_create(Sized(options), in_.Rarely() ? nullptr : &instance));
  }
  void Open() {
    ingot_executable*& executable = Slot(executables_);
    if (executable != nullptr) return;
    ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
    options.kernels = in_.Below(4) == 0 ? INGOT_KERNELS_NATIVE : INGOT_KERNELS_STUB;
    options.trust = static_cast<ingot_trust>(in_.Rarely() ? in_.Byte() : 0);
    const ingot_dl_tensor* weight = in_.Below(4) == 0 ? tensors_.Make() : nullptr;
    const ingot_named_tensor named = {AnyName(), weight == nullptr ? ingot_dl_tensor{} : *weight};
    if (weight != nullptr) {
      options.weights = &named;
      options.num_weights = 1;
    }
    const std::vector<std::byte>& file = FileOf(in_.Byte());
    const size_t size = in_.Rarely() ? in_.Below(file.size()) : file.size();
    Take(ingot_executable_open_memory(Pick(instances_), file.data(), size, AnyName(), Sized(options), &executable));
  }
  void OpenPath() {
    ingot_executable* executable = nullptr;
    const char* path = in_.Below(2) == 0 ? "/dev/null" : AnyName();
    Take(ingot_executable_open(Pick(instances_), path, nullptr, &executable));
    INGOT_CHECK(executable == nullptr);
  }
  void CreateContext() {
    ingot_context*& context = Slot(contexts_);
    if (context != nullptr) return;
    ingot_context_options options = INGOT_CONTEXT_OPTIONS_INIT;
    const ingot_external external = {in_.Rarely() ? AnyName() : "ext", in_.Rarely() ? nullptr : &Answer, this, nullptr};
    options.externals = &external;
    options.num_externals = in_.Below(4) == 0 ? 0 : 1;
    options.fuel = 100;
    options.max_memory_bytes = static_cast<int64_t>(in_.Byte()) << 10;
    if (in_.Rarely()) options.deadline_seconds = std::numeric_limits<double>::quiet_NaN();
    if (in_.Rarely()) options.device = {static_cast<int32_t>(in_.Byte()), 0};
    if (in_.Rarely()) options.fuel = -1;
    const ingot_context_options* given = Sized(options);
    Take(ingot_context_create(Pick(executables_), given, &context));
    if (given == nullptr || given->struct_size < sizeof options || given->fuel <= 0) {  // it might run for ever
      ingot_context_release(context);
      context = nullptr;
    }
  }
  void Describe() {
    const ingot_executable* executable = Pick(executables_);
    if (executable == nullptr) return;
    const size_t i = in_.Below(5);
    (void)ingot_executable_weight_name(executable, ingot_executable_weight_count(executable) - i);
    (void)ingot_executable_metadata_key(executable, i);
    (void)ingot_executable_metadata_value(executable, i);
    (void)ingot_executable_state_name(executable, i);
    const ingot_function* function = ingot_executable_function(executable, i);
    (void)ingot_function_signature(function);
    (void)ingot_function_name(function);
    int64_t min = 0, max = 0;
    (void)ingot_function_symbol(function, i, &min, in_.Rarely() ? nullptr : &max);
    (void)ingot_function_input_is_written(function, i);
    for (const ingot_type* type : {ingot_function_input_type(function, i), ingot_function_output_type(function, i)}) {
      (void)ingot_type_text(type);
      (void)ingot_type_rank(type);
      (void)ingot_type_dim(type, static_cast<int32_t>(i) - 1);
      (void)ingot_type_dim_text(type, static_cast<int32_t>(i) - 1);
      (void)ingot_type_kind(ingot_type_element(type, i));
    }
    const ingot_function* found = nullptr;
    Take(ingot_executable_find_function(executable, AnyName(), &found));
    size_t count = 0;
    ingot_golden_case golden = INGOT_GOLDEN_CASE_INIT;
    Take(ingot_executable_golden_case_count(executable, &count));
    Take(ingot_executable_golden_case(executable, i, &golden));
  }
  void Invoke() {
    const std::vector<ingot_value> arguments = AnyValues();
    std::array<ingot_value, 4> results{};
    const size_t count = in_.Below(5);
    if (Take(ingot_invoke(Pick(contexts_), AnyFunction(), arguments.data(), arguments.size(), results.data(), count))) {
      for (size_t i = 0; i < count; ++i) Keep(results[i]);
    }
  }
  // Keeps a result's tensor as a handle where there is room, and releases the rest.
  void Keep(ingot_value& result) {
    ingot_tensor*& slot = Slot(handles_);
    if (result.kind == INGOT_KIND_TENSOR && slot == nullptr) {
      Take(ingot_tensor_from_dlpack(result.as.owned_tensor, &slot));
      result = {};
    }
    ingot_value_clear(&result);
  }
  struct Into {
    std::array<const ingot_dl_tensor*, 3> inputs{};
    std::array<ingot_dl_tensor*, 3> outputs{};
    size_t num_inputs, num_outputs;
  };
  Into AnyTensors() {
    Into into;
    into.num_inputs = in_.Below(4);
    into.num_outputs = in_.Below(4);
    for (auto& input : into.inputs) input = tensors_.Make();
    for (auto& output : into.outputs) output = const_cast<ingot_dl_tensor*>(tensors_.Make());
    if (in_.Below(4) == 0) into.outputs[0] = const_cast<ingot_dl_tensor*>(into.inputs[0]);
    return into;
  }
  void InvokeInto() {
    const Into into = AnyTensors();
    Take(ingot_invoke_into(Pick(contexts_), AnyFunction(), into.inputs.data(), into.num_inputs, into.outputs.data(),
                           into.num_outputs));
  }
  void SetInput() {
    ingot_context* context = Pick(contexts_);
    const ingot_function* function = AnyFunction();
    Take(ingot_context_set_input(context, function, AnyName(), tensors_.Make()));
    const ingot_value value = AnyValue();
    Take(ingot_context_set_input_value(context, function, AnyName(), &value));
  }
  void RunSet() { Take(ingot_context_run(Pick(contexts_), AnyFunction())); }
  void GetOutput() {
    ingot_value output{};
    if (Take(ingot_context_get_output(Pick(contexts_), in_.Below(4), &output))) Keep(output);
  }
  void SetDeadline() {
    ingot_context* context = Pick(contexts_);
    const std::array<double, 4> kSeconds = {0.005, 1, -1, std::numeric_limits<double>::infinity()};
    if (context != nullptr) Take(ingot_context_set_deadline(context, Pick(kSeconds)));
  }
  void Cancel() { ingot_context_cancel(Pick(contexts_)); }
  void States() {
    ingot_context* context = Pick(contexts_);
    ingot_dl_managed_tensor_versioned* state = nullptr;
    if (Take(ingot_context_get_state(context, AnyName(), &state))) {
      Take(ingot_context_set_state(Pick(contexts_), AnyName(), &state->dl_tensor));
      state->deleter(state);
    }
    Take(ingot_context_set_state(context, AnyName(), tensors_.Make()));
    const std::array<const char*, 2> names = {AnyName(), AnyName()};
    const std::array<const ingot_dl_tensor*, 2> values = {tensors_.Make(), tensors_.Make()};
    Take(ingot_context_set_states(context, names.data(), values.data(), in_.Below(3)));
    if (in_.Below(2) == 0) Take(ingot_context_reset_states(context));
  }
  void Memory() {
    const ingot_context* context = Pick(contexts_);
    const int64_t in_use = ingot_context_memory_in_use(context);
    INGOT_CHECK(ingot_context_memory_peak(context) >= in_use);
  }
  void Start() {
    ingot_task*& task = Slot(tasks_);
    if (task != nullptr) return;
    if (in_.Below(2) == 0) {
      const std::vector<ingot_value> arguments = AnyValues();
      Take(ingot_invoke_async(Pick(contexts_), AnyFunction(), arguments.data(), arguments.size(), &task));
    } else {
      const Into into = AnyTensors();
      Take(ingot_invoke_into_async(Pick(contexts_), AnyFunction(), into.inputs.data(), into.num_inputs,
                                   into.outputs.data(), into.num_outputs, &task));
    }
  }
  void Wait() {
    ingot_task* task = Pick(tasks_);
    std::array<ingot_value, 4> results{};
    const size_t count = in_.Below(5);
    (void)ingot_task_is_done(task);
    (void)ingot_task_wait_for(task, in_.Below(2) == 0 ? 0 : 0.001);
    if (in_.Below(4) == 0) ingot_task_cancel(task);
    if (Take(ingot_task_wait(task, results.data(), count))) {
      for (size_t i = 0; i < count; ++i) ingot_value_clear(&results[i]);
    }
  }
  void ReleaseTask() {
    ingot_task*& task = Slot(tasks_);
    ingot_task_release(task);
    task = nullptr;
  }
  void Observe() {
    ingot_context* context = Pick(contexts_);
    if (context == nullptr) return;
    const bool on = in_.Below(2) == 0;
    Take(ingot_context_set_profiler(
        context,
        on ? [](void*,
                const ingot_event* event) { INGOT_CHECK(event->name != nullptr && event->end_ns >= event->begin_ns); }
           : static_cast<void (*)(void*, const ingot_event*)>(nullptr),
        this));
    const ingot_instrument decide = [](void* user, ingot_phase, const ingot_event*, const ingot_event_argument*,
                                       size_t) {
      return static_cast<ingot_decision>(static_cast<Sequence*>(user)->CalledBackByte() % 3);
    };
    Take(ingot_context_set_instrument(context, on ? decide : nullptr, this));
    Take(ingot_context_set_check_finite(context, static_cast<int32_t>(in_.Below(2))));
  }
  void PassOn() {
    ingot_tensor*& from = Slot(handles_);
    ingot_tensor*& to = Slot(handles_);
    if (from == nullptr) return;
    (void)ingot_tensor_view(from);
    if (in_.Below(2) == 0) {
      ingot_dl_managed_tensor_versioned* managed = nullptr;
      if (!Take(ingot_tensor_to_dlpack(from, &managed))) return;
      if (to == nullptr) {
        Take(ingot_tensor_from_dlpack(managed, &to));
      } else {
        managed->deleter(managed);
      }
    } else {
      ingot_dl_managed_tensor* managed = nullptr;
      if (!Take(ingot_tensor_to_legacy_dlpack(from, &managed))) return;
      if (to == nullptr) {
        Take(ingot_tensor_from_legacy_dlpack(managed, &to));
      } else {
        managed->deleter(managed);
      }
    }
  }
  void MakeHandle() {
    ingot_tensor*& slot = Slot(handles_);
    const ingot_dl_tensor* like = tensors_.Make();
    if (slot != nullptr || like == nullptr || like->ndim < 0 || like->ndim > 3 || like->shape == nullptr) return;
    ingot_dl_managed_tensor_versioned* managed = MakeOwned(*like);
    managed->flags = in_.Below(4);
    if (in_.Rarely()) managed->version = {99, 0};
    Take(ingot_tensor_from_dlpack(managed, &slot));
  }
  void ReleaseHandle() { Release(handles_, ingot_tensor_release); }
  void ReleaseExecutable() { Release(executables_, ingot_executable_release); }
  void ReleaseInstance() { Release(instances_, ingot_instance_release); }
  // A context may not be released before its task.
  void ReleaseContext() {
    for (ingot_task*& task : tasks_) {
      ingot_task_release(task);
      task = nullptr;
    }
    Release(contexts_, ingot_context_release);
  }

  template <typename Handle, size_t N>
  Handle& Slot(std::array<Handle, N>& handles) {
    return handles[in_.Below(N)];
  }
  template <typename Handle, size_t N>
  void Release(std::array<Handle*, N>& handles, void (*release)(Handle*)) {
    Handle*& handle = Slot(handles);
    release(handle);
    handle = nullptr;
  }
  void ReleaseAll() {
    for (ingot_task* task : tasks_) ingot_task_release(task);
    for (ingot_instance* instance : instances_) ingot_instance_release(instance);
    for (ingot_executable* executable : executables_) ingot_executable_release(executable);
    for (ingot_context* context : contexts_) ingot_context_release(context);
    for (ingot_tensor* handle : handles_) ingot_tensor_release(handle);
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<uint8_t> turn_{0};
  Choices in_;
  Tensors tensors_;
  std::vector<std::vector<ingot_value>> elements_;
  std::array<int64_t, 4> extents_ = {2, 0, -1, 3};
  std::array<ingot_instance*, 2> instances_{};
  std::array<ingot_executable*, 3> executables_{};
  std::array<ingot_context*, 3> contexts_{};
  std::array<ingot_task*, 2> tasks_{};
  std::array<ingot_tensor*, 4> handles_{};
};

const std::array<Sequence::Call, 24> Sequence::kCalls = {
    &Sequence::CreateInstance,  &Sequence::Open,           &Sequence::CreateContext, &Sequence::Invoke,
    &Sequence::InvokeInto,      &Sequence::SetInput,       &Sequence::RunSet,        &Sequence::GetOutput,
    &Sequence::SetDeadline,     &Sequence::Cancel,         &Sequence::States,        &Sequence::Memory,
    &Sequence::Start,           &Sequence::Wait,           &Sequence::ReleaseTask,   &Sequence::Observe,
    &Sequence::PassOn,          &Sequence::MakeHandle,     &Sequence::ReleaseHandle, &Sequence::ReleaseExecutable,
    &Sequence::ReleaseInstance, &Sequence::ReleaseContext, &Sequence::Describe,      &Sequence::OpenPath,
};

}  // namespace
}  // namespace ingot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ingot::fuzz::Sequence(data, size).Run();
  return 0;
}
