// A tensor function on its way to machine code, judged by calls that were seen: the default schedule and each primitive
// of its trace, each tensor pass, and the compiled kernel, against the function as it was.
#pragma once

#include <span>
#include <string>

#include "compiler/target/target.h"
#include "compiler/validate/evaluate.h"
#include "vm/program.h"

namespace ingot::validate {

struct KernelCheck {
  bool each_step = false;  // compare after each primitive and pass; else look for the step when the last one differs
  int64_t max_steps = 0;   // statements of one interpretation
};

// The first step that changes a result, by name. kDeadlineExceeded: above the budget; kUnsupportedModel: not judged.
Status CheckLowering(const std::string& name, const KernelCall& call, const Target& target, const KernelCheck& check);

// Runs the kernel's variant of this image on the call's buffers.
Status CheckCompiled(const vm::Program& program, const vm::Kernel& kernel, const KernelCall& call);

}  // namespace ingot::validate
