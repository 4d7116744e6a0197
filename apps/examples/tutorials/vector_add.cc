// vector_add: c = a + b for vectors of any length, as two functions of one executable.
//
//   matrix_add   as the default schedule makes it
//   myadd        by hand: split by 4, the outer loop parallel, the inner one a vector
//
//   vector_add OUT.ingot      then, in a process of its own: call_saved OUT.ingot myadd 1023 RESULTS.npz
#include <cstdio>

#include "apps/examples/tutorials/tutorial.h"
#include "compiler/builder/te_schedule.h"
#include "vm/program/program_codec.h"

using namespace ingot;  // NOLINT: an example

int main(int argc, char** argv) {
  if (argc != 2) tutorial::Die("usage: vector_add OUT.ingot");
  const ir::PrimVar n = ir::MakePrimVar("n");
  const te::Tensor a = te::Placeholder({n}, DataType::Float(32), "a");
  const te::Tensor b = te::Placeholder({n}, DataType::Float(32), "b");
  const te::Tensor c = te::Compute(
      {n}, [&](const te::Indices& i) { return a(i) + b(i); }, "c");

  te::Schedule s = te::CreateSchedule({c});
  const auto [outer, inner] = s[c].Split(te::AxesOf(c)[0], 4);
  s[c].Parallel(outer);
  s[c].Vectorize(inner);

  ir::IRModule module;
  module.Add("matrix_add", te::CreatePrimFunc({a, b, c}));
  module.Add("myadd", tutorial::Need(s.Lower({a, b, c})));
  driver::JitOptions options;
  options.compile.target = tutorial::Need(ParseTarget("cpu"));  // every machine's kernels, not this one's alone
  const auto jit = tutorial::Need(driver::JitModule::Compile(module, options));

  // Calls both functions in this process before saving them; they write the last argument.
  const Tensor x = tutorial::Uniform({1000}, 1), y = tutorial::Uniform({1000}, 2), z = tutorial::Zeros({1000});
  for (const char* function : {"matrix_add", "myadd"}) {
    tutorial::Need(jit->CallInto(function, {x, y}, {z}));
    std::printf("%s: %g + %g = %g\n", function, x.Elements<float>()[0], y.Elements<float>()[0], z.Elements<float>()[0]);
  }
  tutorial::Need(vm::WriteProgram(jit->executable().program(), argv[1]));
  return 0;
}
