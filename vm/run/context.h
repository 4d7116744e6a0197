// Context: the memory and states with which one caller at a time calls functions of an executable. It is cheap and
// single-threaded; only Cancel may be called from other threads. After any failure the next invocation runs as if
// nothing had happened.
//
// A warm call of a static function through InvokeInto allocates nothing, takes no lock and looks up no name. The same
// holds when symbols differ from the last call's (a step of decoding), if the memory plan consists of constants.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vm/run/call_failures.h"
#include "vm/run/call_limits.h"
#include "vm/run/devices.h"
#include "vm/run/executable.h"
#include "vm/run/externals.h"
#include "vm/run/observation.h"
#include "vm/run/value.h"

namespace ingot::vm {

class Interpreter;

struct ContextOptions {
  int64_t max_memory_bytes = 0;  // of what this context allocates, per device; 0: no cap
  int64_t fuel = 0;              // calls and back edges per invocation; 0: no limit
  double deadline_seconds = 0;   // for creating the context, then for each invocation; 0: none
  std::map<std::string, ExternalFunction> externals;
#ifdef INGOT_CUDA
  std::optional<DeviceId> device;  // that runs the kernels; none: what the program is for
  bool copies_tensors = false;     // arguments to their parameters' devices, and results to the host
#endif
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> Create(std::shared_ptr<const Executable> executable,
                                                 ContextOptions options = {});
  // For PreparedConstants alone: a context that can only run functions without jumps that call builtins only.
  static Result<std::unique_ptr<Context>> CreateForPreparing(std::shared_ptr<const Executable> executable,
                                                             ContextOptions limits);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Executable& executable() const { return *executable_; }
#ifdef INGOT_CUDA
  // What the functions that are invoked belong to: the executable, or the one whose second program it is.
  const Executable& opened() const { return opened_ != nullptr ? *opened_ : *executable_; }
#else
  const Executable& opened() const { return *executable_; }
#endif

  // Arguments in the signature's order. Tensors at top level are borrowed (any strides), those inside tuples copied.
  // A borrowed_mut parameter is written. A given `cancelled` stops the invocation when it is true at the start; a
  // thread that sets it later has to call Cancel too.
  Result<std::vector<Value>> Invoke(const Function& function, std::span<const Value> arguments,
                                    const std::atomic<bool>* cancelled = nullptr);
  // For functions whose inputs and outputs are all tensors. The function writes an output itself where that is compact
  // and 64-byte aligned, else the result is copied to it. Outputs may not overlap each other, nor inputs, except where
  // the function declares by its kernels that it writes this input in place (vm/verify/shared_outputs.h): then an
  // output may be the input's own tensor.
  Status InvokeInto(const Function& function, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                    const std::atomic<bool>* cancelled = nullptr);

  // After Invoke, by a caller that cannot use its results: the states of caches are as they were before.
  void RestoreLengths() {
    for (const auto& [length, before] : lengths_) *length = before;
  }

  // True during an invocation; external functions see it so. Only one invocation can run at a time.
  bool is_running() const { return running_; }
  // Counts from the start of each invocation; 0: none. The running invocation keeps its deadline.
  void set_deadline(double seconds) { limits_.set_deadline(seconds); }
  // Stops the running invocation at its next call or back edge, or inside of a long builtin. May be called from any
  // thread and from a signal handler.
  void Cancel() { limits_.Cancel(); }
  // Sets the observers of the following invocations; an empty function: none. Not while an invocation runs.
  void set_profiler(Profiler profiler);
  void set_instrument(Instrument instrument);
  // Invocations fail at the first kernel, builtin or external function that makes a NaN out of tensors without one, or
  // an infinity out of finite ones; and at their start when a parameter holds a NaN.
  void set_check_finite(bool on);
  const FailurePlace& failure_place() const { return failure_place_; }
  // What fails until the next invocation has no place.
  void ForgetFailurePlace() {
    failure_place_.function.clear();
    failure_place_.operation.clear();
  }

  // States (vm/run/context_states.cc). None of these may be called while the context runs.
  // Resets to the initial value; a cache that is filled step by step becomes empty when its length is reset.
  Status ResetState(StateId state);
  Status ResetStates();
  // The whole tensor; of a cache also the part that is not filled, whose elements have no meaning.
  const Tensor& state(StateId state) const { return states_[state.value]; }
  // The dims that the state has for callers; of a cache those of the filled part.
  std::vector<int64_t> StateDims(StateId state) const;
  // A compact copy on the host, of a cache the filled part.
  Result<Tensor> CopyState(StateId state) const;
  // The value must have the dims of StateDims. Those of a cache follow its length, so set the length state first.
  Status SetState(StateId state, const TensorView& value);
  // Sets all states at once, by name; the error names what is missing or unknown. Nothing is set when one does not fit.
  Status SetStates(const std::map<std::string, TensorView>& values);
  // Statistics of the device's pool: the bytes in use now, and the most that ever were.
  MemoryPoolStats memory_stats(size_t device = 0) const { return devices_.pool(device).stats(); }
  // Bytes in use on the host and, where kernels run there, on the GPU; the peaks of both.
  int64_t bytes_in_use() const { return SumOfPools(&MemoryPoolStats::bytes_in_use); }
  int64_t peak_bytes_in_use() const { return SumOfPools(&MemoryPoolStats::peak_bytes_in_use); }

 private:
  Context(std::shared_ptr<const Executable> executable, const ContextOptions& options);
  int64_t SumOfPools(int64_t MemoryPoolStats::*member) const {
    int64_t sum = memory_stats().*member;
    for (size_t i = 1; Devices::kHaveCode && i < devices_.ids().size(); ++i) sum += memory_stats(i).*member;
    return sum;
  }
#ifdef INGOT_CUDA
  static Result<std::unique_ptr<Context>> CreateForGpu(std::shared_ptr<const Executable> opened,
                                                       std::shared_ptr<const Executable> for_gpu,
                                                       ContextOptions options);
#endif
  Status BindDevices(const ContextOptions& options);
  void CreateInterpreter();
  Status CreateStates();
  Status CheckNotRunning() const;
  Status CheckStateValue(StateId state, const TensorView& value, const std::vector<int64_t>& dims) const;
  std::vector<std::byte> StagingMemory() const;
  Status WriteState(StateId state, const TensorView& value, std::byte* staging);
  Status Start(const std::atomic<bool>* cancelled);
  Status Stop(Status status);
  const LinkedFunction& LinkedOf(const Function& function) const;

  std::shared_ptr<const Executable> executable_;
#ifdef INGOT_CUDA
  std::shared_ptr<const Executable> opened_;  // null: executable_
  std::vector<size_t> functions_;             // of executable_, by those of opened_
#endif
  Devices devices_;
  Externals externals_;
  std::vector<Tensor> states_;
  // The lengths of caches, with what they were when the last invocation began: one that fails leaves them so.
  std::vector<std::pair<int64_t*, int64_t>> lengths_;
  CallLimits limits_;
  bool running_ = false;
  FailurePlace failure_place_;
  std::unique_ptr<Interpreter> interpreter_;  // uses all of the above
};

}  // namespace ingot::vm
