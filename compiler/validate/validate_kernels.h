// Judges a tensor function on its way to machine code by recorded calls: the default schedule and each primitive of its
// trace, each tensor pass, and the compiled kernel, against the unscheduled function.
#pragma once

#include <span>
#include <string>

#include "compiler/target/target.h"
#include "compiler/validate/evaluate.h"
#include "vm/program/program.h"

namespace ingot::validate {

struct KernelCheck {
  // compare after each primitive and pass; otherwise search for the step only if the last one differs
  bool each_step = false;
  int64_t max_steps = 0;  // limit of statements of one interpretation
};

// kFailed with the name of the first step that changes a result; kDeadlineExceeded above the budget; kUnsupportedModel
// for what is not judged.
Status CheckLowering(const std::string& name, const KernelCall& call, const Target& target, const KernelCheck& check);

// Runs the kernel's variant of this image on the call's buffers.
Status CheckCompiled(const vm::Program& program, const vm::Kernel& kernel, const KernelCall& call);

}  // namespace ingot::validate
