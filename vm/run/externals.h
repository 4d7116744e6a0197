// Externals: the functions of the embedding program that an executable's external functions are bound to, by name, when
// a context is made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "vm/program/program.h"
#include "vm/run/value.h"

namespace ingot::vm {

// What an external function of the file is bound to. Its argument tensors are borrowed for the call; it may not call
// into the same context. Results are checked against the declared signature.
struct ExternalFunction {
  std::function<Result<std::vector<Value>>(std::span<const Value> arguments)> call;
  // For calls out of kernels, which know raw pointers alone (kernel_abi.h). Null: a program whose kernels call it is
  // refused.
  std::function<int32_t(void* const* buffers, const int64_t* ints)> call_raw;
};

class Externals {
 public:
  // Fails where a function that the program declares is missing, or lacks the form in which it is called.
  Status Bind(const Program& program, std::map<std::string, ExternalFunction> functions);
  const ExternalFunction& operator[](size_t external) const { return *bound_[external]; }

 private:
  std::map<std::string, ExternalFunction> functions_;
  std::vector<const ExternalFunction*> bound_;  // per Program::externals
};

}  // namespace ingot::vm
