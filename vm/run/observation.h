// What observers of invocations see and decide: profilers get every instruction that was run with its times;
// instruments are called before and after kernels, builtins and external functions, and may skip one or stop. Observers
// (vm/run/observers.h) makes these events; without observers nothing of it is called.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "runtime/tensor.h"
#include "vm/program/program.h"

namespace ingot::vm {

enum class EventKind : uint8_t { kKernel = 0, kBuiltin = 1, kExternal = 2, kOther = 3 };

// One instruction. Everything is borrowed from the executable.
struct Event {
  EventKind kind = EventKind::kOther;
  const Function* function = nullptr;
  uint32_t instruction = 0;
  const char* operation = "";  // of the source, by the debug map; "" when it is not known
  const char* name = "";       // of the kernel, builtin or external function; else the opcode's text
  int64_t begin_ns = 0;        // steady clock; 0 before it has run
  int64_t end_ns = 0;          // of a kernel on a GPU: begin_ns and the time that it took by the GPU's clock
  int64_t flops = 0;           // of a kernel, as its descriptor estimates them; 0: not known
  int64_t bytes = 0;           // of a kernel likewise; of other instructions the sizes of their tensors
};

// A tensor of the instruction; compact.
struct EventArgument {
  const char* name = "";
  ParamRole role = ParamRole::kIn;
  TensorView view;
};

// Called after each instruction but jumps, calls of functions and returns.
using Profiler = std::function<void(const Event&)>;

enum class EventPhase : uint8_t { kBefore = 0, kAfter = 1 };
// kSkip, before: the routine does not run, its outputs stay as they are; refused where it has results that would be
// missing (external functions). kStop: the invocation ends as cancelled.
enum class Decision : uint8_t { kRun = 0, kSkip = 1, kStop = 2 };
// Called around each kernel, builtin and external function.
using Instrument = std::function<Decision(EventPhase, const Event&, std::span<const EventArgument>)>;

}  // namespace ingot::vm
