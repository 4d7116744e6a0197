// Candidates for tests of measuring, assembled from text.
#pragma once

#include <string>
#include <utility>

#include "compiler/tune/measure/candidate.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"

namespace ingot::tune {

// main(x: float32[1024]) -> x `builtin` x, after `rounds` rounds of doing nothing; a negative number of them never
// ends.
inline MeasuredProgram CountingProgram(int64_t rounds, const std::string& builtin = "mul") {
  const std::string text = R"(ingot 1
function @main export (x: float32[1024]) -> (y: float32[1024]) {
  register r1: int
  register r2: int
  register r3: bool
  register r4: float32[1024]
  const_int r1, )" + std::to_string(rounds) +
                           R"(
  const_int r2, 0
  jump test
loop:
  dim r1, r1 - 1
test:
  test r3, r1 != r2
  branch r3, loop, done
done:
  alloc r4, [1024]
  call_builtin [], )" + builtin +
                           R"(, [r4, r0, r0]
  return [r4]
}
)";
  return {SharedBytes::Own(*vm::EncodeProgram(*vm::Assemble(text))), "main"};
}

// Squares, measured quickly and compared with squares.
inline Candidate QuickCandidate(uint64_t id) {
  Candidate candidate;
  candidate.id = id;
  candidate.program = CountingProgram(0);
  candidate.reference = CountingProgram(1);
  candidate.inputs = {{{1024}, "rand"}};
  candidate.options.warmup_seconds = 0;
  candidate.options.repeat_seconds = 1e-5;
  candidate.options.repeats = 3;
  candidate.options.flush_bytes = 1 << 20;
  candidate.options.timeout_seconds = 20;
  return candidate;
}

}  // namespace ingot::tune
