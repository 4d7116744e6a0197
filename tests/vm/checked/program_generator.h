// Programs made at random by the verifier's rules, without asking it: every opcode, closures and tuples under
// subtyping, recursion, loops, memory plans, states, sequences. Equal seeds give equal programs.
#pragma once

#include <cstdint>
#include <random>

#include "vm/program/program.h"

namespace ingot::vm::checked {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, n).
  uint32_t Below(size_t n) { return static_cast<uint32_t>(engine_() % n); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

// A well-typed program, whose function 0 is exported: "main" [n](x: float32[n], k: int). With `breaks_a_rule` one rule
// is broken at one place: a variance turned round, an argument left out, memory that is written though it is a
// constant, plan entries that overlap, and so on. Then it may still be well-typed by chance.
Program GenerateProgram(uint64_t seed, bool breaks_a_rule);

// Changes one or two things anywhere: operands, types, dims, order of instructions, targets, constants, plan entries.
void Mutate(Program& program, uint64_t seed);

// Repeats something a thousand times and more: registers, instructions, blocks, plan entries, types, texts, functions,
// kernels, rows of other tables. Compressed, the file stays small beside what it asks for.
void Inflate(Program& program, uint64_t seed);

}  // namespace ingot::vm::checked
