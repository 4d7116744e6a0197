// Memory plans that other compilers' tests hold (tests/peers/README.md): each row is a function over tensor functions
// that cannot work in place, and the arenas, entries and allocations of its bytecode.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/compiler/lower/compiled.h"
#include "vm/text/disassembler.h"

namespace ingot::driver {
namespace {

// Kernels that reverse a vector, so that a result cannot be written in the place of an argument.
std::string Kernels() {
  std::string text = kHead;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& out, const char* value) {
    text += "    @T.prim_func(private=True, s_tir=True)\n    def " + name + "(var_x: T.handle, var_y: T.handle):\n" +
            "        n = T.int64()\n        x = T.match_buffer(var_x, (n,), \"" + dtype + "\")\n" +
            "        y = T.match_buffer(var_y, (" + out + ",), \"" + dtype + "\")\n        for i in range(" + out +
            "):\n            with T.sblock(\"b\"):\n                vi = T.axis.spatial(" + out + ", i)\n" +
            "                y[vi] = " + value + "\n\n";
  };
  add("flip", "float32", "n", "x[n - T.int64(1) - vi]");
  add("flip_int", "int32", "n", "x[n - T.int64(1) - vi]");
  add("flip_bool", "bool", "n", "x[n - T.int64(1) - vi]");
  add("pad", "float32", "n + T.int64(2)", "T.if_then_else(vi < n, x[n - T.int64(1) - vi], T.float32(0))");
  return text + R"(    @T.prim_func(private=True, s_tir=True)
    def flip2(var_x: T.handle, var_y: T.handle):
        n, m = T.int64(), T.int64()
        x = T.match_buffer(var_x, (n, m))
        y = T.match_buffer(var_y, (n, m))
        for i, j in T.grid(n, m):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[n - T.int64(1) - vi, vj]

    @T.prim_func(private=True, s_tir=True)
    def flip3(var_x: T.handle, var_y: T.handle):
        n, m, k = T.int64(), T.int64(), T.int64()
        x = T.match_buffer(var_x, (n, m, k))
        y = T.match_buffer(var_y, (n, m, k))
        for i, j, l in T.grid(n, m, k):
            with T.sblock("b"):
                vi, vj, vl = T.axis.remap("SSS", [i, j, l])
                y[vi, vj, vl] = x[n - T.int64(1) - vi, vj, vl]

    @T.prim_func(private=True, s_tir=True)
    def full(var_y: T.handle):
        n = T.int64()
        y = T.match_buffer(var_y, (n,))
        for i in range(n):
            with T.sblock("b"):
                vi = T.axis.spatial(n, i)
                y[vi] = T.float32(1)

)";
}

// The lines of the bytecode that state the functions' memory plans and their allocations outside of the plans.
std::string PlanOf(const std::string& functions) {
  const Result<ir::IRModule> parsed = script::ParseModule(Kernels() + functions, "module.py");
  if (!parsed.ok()) return parsed.status().message();
  const Result<ir::IRModule> module = PrepareModule(*parsed);
  if (!module.ok()) return module.status().message();
  CompileOptions options;
  options.target = ParseTarget("cpu:x86-64-v3").value();
  options.opt_level = 0;
  const Result<vm::Program> program = CompileModule(*module, options, {});
  if (!program.ok()) return program.status().message();
  std::string plan;
  for (const vm::Function& function : program->functions) {
    if (program->functions.size() > 1) plan += "@" + function.name + "\n";
    std::istringstream text(vm::DisassembleFunction(*program, function));
    for (std::string line; std::getline(text, line);) {
      line.erase(0, line.find_first_not_of(' '));
      line.erase(std::min(line.size(), line.find(", live ")));  // numbers of instructions, which other lines move
      for (const char* word : {"arena ", "entry ", "alloc ", "alloc_output ", "view "}) {
        if (line.starts_with(word)) plan += line + "\n";
      }
    }
  }
  return plan;
}

struct Row {
  const char* name;
  const char* functions;
  const char* plan;
};

constexpr Row kRows[] = {
    {"a chain through a view", R"(
    @R.function
    def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((10,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((2, 4), "float32"))
        b = R.reshape(a, R.shape([8]))
        c = R.call_tir(cls.flip, (b,), out_ty=R.Tensor((8,), "float32"))
        d = R.call_tir(cls.flip, (c,), out_ty=R.Tensor((8,), "float32"))
        e = R.call_tir(cls.pad, (d,), out_ty=R.Tensor((10,), "float32"))
        y = R.call_tir(cls.flip, (e,), out_ty=R.Tensor((10,), "float32"))
        return y
)",
     "arena device 0, size 128\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 64, size 64\n"
     "entry 2: arena 0, offset 0, size 64\n"
     "entry 3: arena 0, offset 64, size 64\n"
     "view r4, r1, 0, [8]\n"
     "alloc_output r9, 0, [10]\n"},
    {"dtypes share bytes", R"(
    @R.function
    def main(x: R.Tensor((6,), "float32"), y: R.Tensor((6,), "int32")) -> R.Tuple(R.Tensor((6,), "float32"),
                                                                                  R.Tensor((6,), "int32")):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
        c = R.call_tir(cls.flip_int, (y,), out_ty=R.Tensor((6,), "int32"))
        d = R.call_tir(cls.flip_int, (c,), out_ty=R.Tensor((6,), "int32"))
        return (b, d)
)",
     "arena device 0, size 64\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 0, size 64\n"
     "alloc_output r4, 0, [6]\n"
     "alloc_output r6, 1, [6]\n"},
    {"booleans are bytes", R"(
    @R.function
    def main(y: R.Tensor((100,), "bool")) -> R.Tensor((100,), "bool"):
        cls = Module
        a = R.call_tir(cls.flip_bool, (y,), out_ty=R.Tensor((100,), "bool"))
        b = R.call_tir(cls.flip_bool, (a,), out_ty=R.Tensor((100,), "bool"))
        return b
)",
     "arena device 0, size 128\n"
     "entry 0: arena 0, offset 0, size 128\n"
     "alloc_output r3, 0, [100]\n"},
    {"what is dead gives its room to the next", R"(
    @R.function
    def main(x: R.Tensor((6,), "float32"), y: R.Tensor((6,), "float32")) -> R.Tuple(R.Tensor((6,), "float32"),
                                                                                    R.Tensor((6,), "float32")):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
        c = R.call_tir(cls.flip, (y,), out_ty=R.Tensor((6,), "float32"))
        d = R.call_tir(cls.flip, (c,), out_ty=R.Tensor((6,), "float32"))
        return (b, d)
)",
     "arena device 0, size 64\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 0, size 64\n"
     "alloc_output r4, 0, [6]\n"
     "alloc_output r6, 1, [6]\n"},
    {"a condition that is computed, and a branch that computes", R"(
    @R.function
    def main(c: R.Tensor((1,), "bool"), x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip_bool, (c,), out_ty=R.Tensor((1,), "bool"))
        b = R.reshape(a, R.shape([]))
        if b:
            y: R.Tensor((6,), "float32") = x
        else:
            d = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
            y: R.Tensor((6,), "float32") = R.call_tir(cls.flip, (d,), out_ty=R.Tensor((6,), "float32"))
        return y
)",
     "arena device 0, size 128\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 64, size 64\n"
     "view r4, r2, 0, []\n"
     "alloc_output r6, 0, [6]\n"
     "alloc_output r9, 0, [6]\n"},
    {"both branches give what came before", R"(
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        if c:
            y: R.Tensor((6,), "float32") = a
        else:
            y: R.Tensor((6,), "float32") = a
        return y
)",
     "alloc_output r2, 0, [6]\n"},
    {"both branches use what came before", R"(
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        if c:
            y: R.Tensor((6,), "float32") = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
        else:
            d = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
            y: R.Tensor((6,), "float32") = R.call_tir(cls.flip, (d,), out_ty=R.Tensor((6,), "float32"))
        return y
)",
     "arena device 0, size 128\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 64, size 64\n"
     "alloc_output r5, 0, [6]\n"
     "alloc_output r7, 0, [6]\n"},
    {"nested tuples keep their elements", R"(
    @R.function
    def main(x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
        c = R.call_tir(cls.flip, (b,), out_ty=R.Tensor((6,), "float32"))
        t = (a, b)
        nested = (t, c)
        inner = nested[0]
        a1 = inner[0]
        b1 = inner[1]
        c1 = nested[1]
        d = R.call_tir(cls.flip, (a1,), out_ty=R.Tensor((6,), "float32"))
        e = R.call_tir(cls.flip, (b1,), out_ty=R.Tensor((6,), "float32"))
        f = R.call_tir(cls.flip, (c1,), out_ty=R.Tensor((6,), "float32"))
        g = R.add(d, e)
        y = R.add(g, f)
        return y
)",
     "arena device 0, size 192\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "entry 1: arena 0, offset 64, size 64\n"
     "entry 2: arena 0, offset 128, size 64\n"
     "alloc r1, [6]\n"
     "alloc r3, [6]\n"
     "alloc r4, [6]\n"
     "alloc_output r8, 0, [6]\n"},
    {"externals borrow planned tensors", R"(
    @R.function(pure=False)
    def main(x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        a = R.call_dps_packed("outside", (x,), out_ty=R.Tensor((6,), "float32"))
        b = R.call_dps_packed("outside", (a,), out_ty=R.Tensor((6,), "float32"))
        return b
)",
     "arena device 0, size 64\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "alloc_output r2, 0, [6]\n"},
    {"symbolic sizes are formulas", R"(
    @R.function
    def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        m, n = T.int64(), T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((m, n), "float32"))
        b = R.call_tir(cls.flip2, (a,), out_ty=R.Tensor((m, n), "float32"))
        return b
)",
     "arena device 0, size (m * n + 15) // 16 * 64\n"
     "entry 0: arena 0, offset 0, size (m * n + 15) // 16 * 64\n"
     "alloc_output r4, 0, [m, n]\n"},
    {"what is never used has its room", R"(
    @R.function
    def main(x: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        return x
)",
     "arena device 0, size 64\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "alloc_output r3, 0, [6]\n"},
    {"views of parameters have no room", R"(
    @R.function
    def main(x: R.Tensor((2, 50), "float32"), y: R.Tensor((100,), "float32")) -> R.Tensor((4, 25), "float32"):
        cls = Module
        a = R.reshape(x, R.shape([4, 25]))
        b = R.reshape(y, R.shape([4, 25]))
        c = R.add(a, b)
        return c
)",
     "view r2, r0, 0, [4, 25]\n"
     "view r3, r1, 0, [4, 25]\n"
     "alloc_output r4, 0, [4, 25]\n"},
    {"functions have plans of their own", R"(
    @R.function
    def ints(x: R.Tensor((6,), "float32"), y: R.Tensor((60,), "int32")) -> R.Tuple(R.Tensor((6,), "float32"),
                                                                                   R.Tensor((60,), "int32")):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((6,), "float32"))
        c = R.call_tir(cls.flip_int, (y,), out_ty=R.Tensor((60,), "int32"))
        d = R.call_tir(cls.flip_int, (c,), out_ty=R.Tensor((60,), "int32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((6,), "float32"))
        return (b, d)

    @R.function
    def floats(x: R.Tensor((100,), "float32")) -> R.Tensor((100,), "float32"):
        cls = Module
        a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((100,), "float32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((100,), "float32"))
        return b
)",
     "@ints\n"
     "arena device 0, size 320\n"
     "entry 0: arena 0, offset 256, size 64\n"
     "entry 1: arena 0, offset 0, size 256\n"
     "alloc_output r6, 1, [60]\n"
     "alloc_output r7, 0, [6]\n"
     "@floats\n"
     "arena device 0, size 448\n"
     "entry 0: arena 0, offset 0, size 448\n"
     "alloc_output r3, 0, [100]\n"},
    {"an upper bound makes it constant", R"(
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor(("2 * n + 2",), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 40}})
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((2, n), "float32"))
        b = R.reshape(a, R.shape([2 * n]))
        c = R.call_tir(cls.flip, (b,), out_ty=R.Tensor((2 * n,), "float32"))
        d = R.call_tir(cls.flip, (c,), out_ty=R.Tensor((2 * n,), "float32"))
        e = R.call_tir(cls.pad, (d,), out_ty=R.Tensor((2 * n + 2,), "float32"))
        y = R.call_tir(cls.flip, (e,), out_ty=R.Tensor((2 * n + 2,), "float32"))
        return y
)",
     "arena device 0, size 704\n"
     "entry 0: arena 0, offset 0, size 320\n"
     "entry 1: arena 0, offset 320, size 320\n"
     "entry 2: arena 0, offset 0, size 320\n"
     "entry 3: arena 0, offset 320, size 384\n"
     "view r4, r2, 0, [2 * n]\n"
     "alloc_output r9, 0, [2 * n + 2]\n"},
    {"a lower bound alone leaves formulas", R"(
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor(("2 * n + 2",), "float32"):
        R.func_attr({"tir_var_lower_bound": {"n": 2}})
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((2, n), "float32"))
        b = R.reshape(a, R.shape([2 * n]))
        c = R.call_tir(cls.flip, (b,), out_ty=R.Tensor((2 * n,), "float32"))
        e = R.call_tir(cls.pad, (c,), out_ty=R.Tensor((2 * n + 2,), "float32"))
        y = R.call_tir(cls.flip, (e,), out_ty=R.Tensor((2 * n + 2,), "float32"))
        return y
)",
     "arena device 0, size n // 8 * 64 + (n + 7) // 8 * 64 + 64\n"
     "entry 0: arena 0, offset 0, size (n + 7) // 8 * 64\n"
     "entry 1: arena 0, offset n // 8 * 64 + 64, size (n + 7) // 8 * 64\n"
     "entry 2: arena 0, offset 0, size n // 8 * 64 + 64\n"
     "view r4, r2, 0, [2 * n]\n"
     "alloc_output r8, 0, [2 * n + 2]\n"},
    {"both bounds make it constant", R"(
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        R.func_attr({"tir_var_lower_bound": {"n": 2}, "tir_var_upper_bound": {"n": 40}})
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((2, n), "float32"))
        b = R.call_tir(cls.flip2, (a,), out_ty=R.Tensor((2, n), "float32"))
        return b
)",
     "arena device 0, size 320\n"
     "entry 0: arena 0, offset 0, size 320\n"
     "alloc_output r4, 0, [2, n]\n"},
    {"an upper bound that is no number", R"(
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": [4]}})
        return x
)",
     "function \"main\": malformed attribute \"tir_var_upper_bound\": expected integers by the names of symbols"},
    {"a lower bound that is no number", R"(
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        R.func_attr({"tir_var_lower_bound": {"n": [4]}})
        return x
)",
     "function \"main\": malformed attribute \"tir_var_lower_bound\": expected integers by the names of symbols"},
    {"a dimension that falls as another grows", R"py(
    @R.function
    def main(x: R.Tensor(("n", "m", "T.max(n - m, 1)"), "float32")) -> R.Tensor(("n", "m", "T.max(n - m, 1)"),
                                                                                "float32"):
        R.func_attr({"tir_var_upper_bound": {"m": 5, "n": 20}})
        n, m = T.int64(), T.int64()
        cls = Module
        a = R.call_tir(cls.flip3, (x,), out_ty=R.Tensor((n, m, T.max(n - m, 1)), "float32"))
        b = R.call_tir(cls.flip3, (a,), out_ty=R.Tensor((n, m, T.max(n - m, 1)), "float32"))
        c = R.call_tir(cls.flip3, (b,), out_ty=R.Tensor((n, m, T.max(n - m, 1)), "float32"))
        return c
)py",
     "arena device 0, size 16000\n"
     "entry 0: arena 0, offset 0, size 8000\n"
     "entry 1: arena 0, offset 8000, size 8000\n"
     "alloc_output r6, 0, [n, m, max(n - m, 1)]\n"},
    {"a size that only a shape says", R"(
    @R.function
    def main(s: R.Shape(["n"])) -> R.Tensor(("n",), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 20}})
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.full, (), out_ty=R.Tensor((n,), "float32"))
        b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((n,), "float32"))
        c = R.call_tir(cls.flip, (b,), out_ty=R.Tensor((n,), "float32"))
        return c
)",
     "arena device 0, size 256\n"
     "entry 0: arena 0, offset 0, size 128\n"
     "entry 1: arena 0, offset 128, size 128\n"
     "alloc_output r4, 0, [n]\n"},
    {"one bound of two", R"(
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 20}})
        n, m = T.int64(), T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((n, m), "float32"))
        b = R.call_tir(cls.flip2, (a,), out_ty=R.Tensor((n, m), "float32"))
        c = R.call_tir(cls.flip2, (b,), out_ty=R.Tensor((n, m), "float32"))
        d = R.call_tir(cls.flip2, (c,), out_ty=R.Tensor((n, m), "float32"))
        return d
)",
     "arena device 0, size (n * m + 15) // 16 * 128\n"
     "entry 0: arena 0, offset 0, size (n * m + 15) // 16 * 64\n"
     "entry 1: arena 0, offset (n * m + 15) // 16 * 64, size (n * m + 15) // 16 * 64\n"
     "entry 2: arena 0, offset 0, size (n * m + 15) // 16 * 64\n"
     "alloc_output r6, 0, [n, m]\n"},
    {"sums of formulas", R"(
    @R.function
    def main(x: R.Tensor(("batch", "words"), "float32")) -> R.Tensor(("batch * words + 2",), "float32"):
        R.func_attr({"tir_var_upper_bound": {"batch": 32}})
        batch, words = T.int64(), T.int64()
        cls = Module
        a = R.call_tir(cls.flip2, (x,), out_ty=R.Tensor((batch, words), "float32"))
        b = R.reshape(a, R.shape([batch * words]))
        c = R.call_tir(cls.pad, (b,), out_ty=R.Tensor((batch * words + 2,), "float32"))
        y = R.call_tir(cls.flip, (c,), out_ty=R.Tensor((batch * words + 2,), "float32"))
        return y
)",
     "arena device 0, size (batch * words + 1) // 16 * 64 + (batch * words + 15) // 16 * 64 + 64\n"
     "entry 0: arena 0, offset (batch * words + 1) // 16 * 64 + 64, size (batch * words + 15) // 16 * 64\n"
     "entry 1: arena 0, offset 0, size (batch * words + 1) // 16 * 64 + 64\n"
     "view r4, r3, 0, [batch * words]\n"
     "alloc_output r7, 0, [batch * words + 2]\n"},
    {"dataflow blocks change nothing", R"(
    @R.function
    def main(x: R.Tensor((10,), "float32")) -> R.Tensor((10,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.flip, (x,), out_ty=R.Tensor((10,), "float32"))
            b = R.call_tir(cls.flip, (a,), out_ty=R.Tensor((10,), "float32"))
            R.output(b)
        return b
)",
     "arena device 0, size 64\n"
     "entry 0: arena 0, offset 0, size 64\n"
     "alloc_output r3, 0, [10]\n"},
};

TEST_CASE("peers: memory plans") {
  for (const Row& row : kRows) {
    DOCTEST_SUBCASE(row.name) { CHECK(PlanOf(row.functions) == row.plan); }
  }
}

}  // namespace
}  // namespace ingot::driver
