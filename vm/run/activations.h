// Activations: what running calls need besides their frames: the arenas of their functions' memory plans and the
// argument arrays of their kernel calls. One is kept per function, and more after recursion, so that a call with the
// same symbols as the last one finds everything in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/tensor.h"
#include "vm/link/linked_program.h"
#include "vm/run/call_environment.h"
#include "vm/verify/plan_check.h"

namespace ingot::vm {

struct ArenaBlock {
  void* data = nullptr;
  int64_t size = 0;
};
// What one running call of a function needs.
struct Activation {
  // It counts against the pool's bound.
  Activation(const LinkedFunction& function, MemoryPool& pool);

  CountedMemory memory;
  const LinkedFunction* linked;
  bool in_use = false;
  bool prepared = false;
  std::vector<int64_t> symbols;  // the values that it is prepared for
  bool planned = false;          // numbers are evaluated, and hold for all values of the symbols
  PlanNumbers numbers;
  std::vector<std::byte*> addresses;  // of the fixed registers
  std::vector<ArenaBlock> arenas;
  std::vector<void*> arguments;
  std::vector<int64_t> ints;
};

class Activations {
 public:
  explicit Activations(const CallEnvironment& environment)
      : executable_(environment.executable),
        devices_(environment.devices),
        states_(environment.states),
        of_functions_(executable_.program().functions.size()) {}
  ~Activations();
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  // One that is not in use, prepared for these values of the function's symbols. Who takes it clears `in_use`.
  Result<Activation*> Acquire(const LinkedFunction& linked, const int64_t* symbols);

 private:
  Activation* Create(const LinkedFunction& linked);
  Status Prepare(Activation& activation, const int64_t* symbols);
  Status ReserveArenas(Activation& activation);
  Result<std::byte*> AddressOf(const FixedRegister& fixed, const Activation& activation,
                               std::span<const int64_t> symbols) const;

  const Executable& executable_;
  const Devices& devices_;
  const std::vector<Tensor>& states_;
  std::vector<std::vector<std::unique_ptr<Activation>>> of_functions_;
};

}  // namespace ingot::vm
