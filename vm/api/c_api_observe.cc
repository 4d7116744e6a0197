// The C API, observation: profilers, instruments and the search for NaN, from vm/run/observation.h to ingot.h.
#include <vector>

#include "vm/api/c_api_types.h"

namespace ingot::capi {
namespace {

static_assert(static_cast<int>(vm::EventKind::kOther) == INGOT_EVENT_OTHER);
static_assert(static_cast<int>(vm::ParamRole::kInOut) == INGOT_ROLE_INOUT);
static_assert(static_cast<int>(vm::EventPhase::kAfter) == INGOT_AFTER);

ingot_event ToEvent(const vm::Event& event) {
  return {sizeof(ingot_event), static_cast<ingot_event_kind>(event.kind),
          event.name,          event.function->name.c_str(),
          event.instruction,   event.operation,
          event.begin_ns,      event.end_ns,
          event.flops,         event.bytes};
}

// Borrows the view's dims.
ingot_event_argument ToArgument(const vm::EventArgument& argument) {
  const TensorView& view = argument.view;
  return {argument.name,
          static_cast<ingot_role>(argument.role),
          {view.data,
           {static_cast<int32_t>(view.device.kind), view.device.index},
           view.rank,
           {static_cast<uint8_t>(view.dtype.code), view.dtype.bits, view.dtype.lanes},
           const_cast<int64_t*>(view.dims.data()),
           nullptr,
           0}};
}

// An unknown decision stops the invocation, since the caller may not want it to go on.
vm::Decision FromDecision(ingot_decision decision) {
  if (decision == INGOT_RUN) return vm::Decision::kRun;
  return decision == INGOT_SKIP ? vm::Decision::kSkip : vm::Decision::kStop;
}

struct ProfilerCall {
  void (*profiler)(void* user, const ingot_event* event);
  void* user;
  void operator()(const vm::Event& event) const {
    const ingot_event out = ToEvent(event);
    profiler(user, &out);
  }
};

struct InstrumentCall {
  ingot_instrument instrument;
  void* user;
  vm::Decision operator()(vm::EventPhase phase, const vm::Event& event,
                          std::span<const vm::EventArgument> arguments) const {
    const ingot_event out = ToEvent(event);
    std::vector<ingot_event_argument> tensors;
    for (const vm::EventArgument& argument : arguments) tensors.push_back(ToArgument(argument));
    return FromDecision(instrument(user, static_cast<ingot_phase>(phase), &out, tensors.data(), tensors.size()));
  }
};

}  // namespace
}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

ingot_status* ingot_context_set_profiler(ingot_context* context, void (*profiler)(void* user, const ingot_event* event),
                                         void* user) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    vm::Profiler observer;
    if (profiler != nullptr) observer = ProfilerCall{profiler, user};
    context->context->set_profiler(std::move(observer));
    return Status();
  });
}

ingot_status* ingot_context_set_instrument(ingot_context* context, ingot_instrument instrument, void* user) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    vm::Instrument observer;
    if (instrument != nullptr) observer = InstrumentCall{instrument, user};
    context->context->set_instrument(std::move(observer));
    return Status();
  });
}

ingot_status* ingot_context_set_check_finite(ingot_context* context, int32_t on) {
  return Guard([&]() -> Status {
    INGOT_RETURN_IF_ERROR(CheckIdle(context));
    context->context->set_check_finite(on != 0);
    return Status();
  });
}

}  // extern "C"
