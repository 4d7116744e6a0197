// primitives: one small program per schedule primitive. Each schedules C = (A + 1) B in its way, prints the resulting
// loops, and runs them: the result is that of the unscheduled function. The loops that bind makes are for a GPU; the
// interpreter runs them, thread after thread.
//
//   primitives NAME RESULTS.npz      NAME: split, tile, fuse, reorder, compute_at, compute_inline, compute_root,
//                                          parallel, vectorize, unroll or bind
#include <cstdio>
#include <string>

#include "apps/examples/tutorials/tutorial.h"
#include "compiler/builder/te_schedule.h"
#include "compiler/interp/interpreter.h"
#include "compiler/script/printer.h"

using namespace ingot;  // NOLINT: an example

namespace {

constexpr int64_t kN = 37, kM = 30, kK = 23;

struct Program {
  te::Tensor a, b, shifted, c;
  ir::IterVar k = te::ReduceAxis(ir::Int64(kK), "k");
  Program() {
    a = te::Placeholder({ir::Int64(kN), ir::Int64(kK)}, DataType::Float(32), "A");
    b = te::Placeholder({ir::Int64(kK), ir::Int64(kM)}, DataType::Float(32), "B");
    shifted = te::Compute(a.shape(), [&](const te::Indices& i) { return a(i) + ir::FloatImm(a.dtype(), 1); }, "shifted",
                          {"i", "k"});
    c = te::Compute({ir::Int64(kN), ir::Int64(kM)},
                    [&](const te::Indices& i) { return te::Sum(shifted(i[0], k->var) * b(k->var, i[1]), {k}); }, "C",
                    {"i", "j"});
  }
};

void Split(const Program& p, te::Schedule& s) { s[p.c].Split(te::AxesOf(p.c)[0], 8); }  // 37 = 4 * 8 + 5
void Tile(const Program& p, te::Schedule& s) { s[p.c].Tile(te::AxesOf(p.c)[0], te::AxesOf(p.c)[1], 4, 5); }
void Fuse(const Program& p, te::Schedule& s) { s[p.c].Fuse(te::AxesOf(p.c)[0], te::AxesOf(p.c)[1]); }
void Reorder(const Program& p, te::Schedule& s) { s[p.c].Reorder({p.k, te::AxesOf(p.c)[1], te::AxesOf(p.c)[0]}); }
// Computes a row of A + 1 where it is used.
void ComputeAt(const Program& p, te::Schedule& s) { s[p.shifted].ComputeAt(s[p.c], te::AxesOf(p.c)[0]); }
void ComputeInline(const Program& p, te::Schedule& s) { s[p.shifted].ComputeInline(); }
// Puts the stage back into a loop nest of its own.
void ComputeRoot(const Program& p, te::Schedule& s) {
  s[p.shifted].ComputeInline();
  s[p.shifted].ComputeRoot();
}
void Parallel(const Program& p, te::Schedule& s) { s[p.c].Parallel(te::AxesOf(p.c)[0]); }
void Vectorize(const Program& p, te::Schedule& s) {
  const auto [outer, inner] = s[p.c].Split(te::AxesOf(p.c)[1], 8);
  s[p.c].Reorder({outer, p.k, inner});
  s[p.c].Vectorize(inner);
}
void Unroll(const Program& p, te::Schedule& s) { s[p.c].Unroll(s[p.c].Split(p.k, 4).second); }
void Bind(const Program& p, te::Schedule& s) {
  const auto [block, thread] = s[p.c].Split(te::AxesOf(p.c)[0], 16);
  s[p.c].Bind(block, te::ThreadAxis("blockIdx.x"));
  s[p.c].Bind(thread, te::ThreadAxis("threadIdx.x"));
}

struct Primitive {
  const char* name;
  void (*schedule)(const Program& program, te::Schedule& schedule);
};
constexpr Primitive kPrimitives[] = {{"split", Split},
                                     {"tile", Tile},
                                     {"fuse", Fuse},
                                     {"reorder", Reorder},
                                     {"compute_at", ComputeAt},
                                     {"compute_inline", ComputeInline},
                                     {"compute_root", ComputeRoot},
                                     {"parallel", Parallel},
                                     {"vectorize", Vectorize},
                                     {"unroll", Unroll},
                                     {"bind", Bind}};

interp::HostBuffer Host(const Tensor& tensor, bool is_output) {
  return {tensor.dtype(),
          {tensor.dims().begin(), tensor.dims().end()},
          std::as_writable_bytes(tensor.MutableElements<float>()),
          !is_output};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) tutorial::Die("usage: primitives NAME RESULTS.npz");
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name != std::string(argv[1])) continue;
    const Program program;
    te::Schedule s = te::CreateSchedule({program.c});
    primitive.schedule(program, s);
    const ir::PrimFunc function = tutorial::Need(s.Lower({program.a, program.b, program.c}));
    std::printf("%s", script::PrintFunction("main", function).c_str());
    const Tensor a = tutorial::Uniform({kN, kK}, 1), b = tutorial::Uniform({kK, kM}, 2), c = tutorial::Zeros({kN, kM});
    if (primitive.schedule == Bind) {
      const std::vector<interp::HostBuffer> buffers{Host(a, false), Host(b, false), Host(c, true)};
      tutorial::Need(interp::Interpret(function, buffers));
    } else {
      tutorial::Need(tutorial::Compile("main", function)->CallInto("main", {a, b}, {c}));
    }
    tutorial::Save(argv[2], {{"a", a}, {"b", b}, {"c", c}});
    return 0;
  }
  tutorial::Die("there is no primitive \"" + std::string(argv[1]) + "\"");
}
