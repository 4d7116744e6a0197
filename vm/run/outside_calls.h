// OutsideCalls: the instructions that call builtins and functions of the embedding program. Both count as calls.
#pragma once

#include "vm/run/builtin_call.h"
#include "vm/run/call_environment.h"
#include "vm/run/frame_stack.h"

namespace ingot::vm {

class OutsideCalls {
 public:
  explicit OutsideCalls(const CallEnvironment& environment)
      : environment_(environment), builtin_call_({environment.limits.flag()}, environment.devices.pool(0)) {}

  Status CallExternal(const CallRecord& record, const op::CallExternal<FrameOffset>& in,
                      const op::CallExternal<>& source, int64_t* frame);
  Status CallBuiltin(const CallRecord& record, const op::CallBuiltin<FrameOffset>& in, const op::CallBuiltin<>& source,
                     int64_t* frame);

 private:
  const CallEnvironment environment_;
  BuiltinCall builtin_call_;  // the running one; its memory is reused
};

}  // namespace ingot::vm
