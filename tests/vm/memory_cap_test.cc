// The memory cap of a context holds for every kind of value that a program can pile up, and for its calls: the program
// ends with the out-of-memory status, the heap has not grown by more than the cap, and the context stays usable.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <string>

#include "tests/vm/round_trip.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

constexpr int64_t kCap = 4 << 20;
// The loops take more than the cap before they take the fuel of the capped run.
constexpr int64_t kFuel = 2'000'000;
constexpr int64_t kLittleFuel = 20'000;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasMallinfo = false;  // a sanitizer's allocator does not say what is allocated
#else
constexpr bool kHasMallinfo = true;
#endif

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// Functions that the programs share. Each program's @main grows without end and calls @measure on the way.
constexpr const char* kHead = R"(ingot 1
external @measure() -> ()
function @small export () -> (n: int) {
  register r0: int
  const_int r0, 1
  return [r0]
}
)";

struct Growth {
  const char* name;
  std::string text;
};

// A loop that makes `step` of r0, which is an object of any class, and stores it there again.
std::string Nesting(const std::string& type, const std::string& step) {
  return "function @main export () -> () {\n  register r0: object(\"any\")\n  register r1: int\n  register r2: " +
         type + "\n  register r3: tuple(int)\n  const_int r1, 7\n  tuple r3, [r1]\n  move r0, r3\nloop:\n  " + step +
         "\n  move r0, r2\n  call_external [], @measure, []\n  jump loop\n}\n";
}

// A loop that appends what `step` stores in r2 to a list of lists; each list but the last has `length` elements.
std::string Appending(const std::string& type, const std::string& step) {
  return "function @main export () -> () {\n  register r0: object(\"any\")\n  register r1: object(\"any\")\n"
         "  register r2: " +
         type + "\n  register r3: tuple(" + type +
         ")\n  register r4: tuple()\n  register r5: int\n  register r6: int\n"
         "  register r7: bool\n  register r8: tuple(object(\"any\"), object(\"any\"))\n  tuple r4, []\n  move r0, r4\n"
         "  move r1, r4\nfresh:\n  const_int r5, 0\n  tuple r8, [r0, r1]\n  move r1, r8\n  move r0, r4\n"
         "  const_int r6, 0\nloop:\n  " +
         step +
         "\n  tuple r3, [r2]\n  call_builtin [r0], sequence_splice, [r0, r5, r6, r3]\n"
         "  call_external [], @measure, []\n  dim r5, r5 + 1\n  test r7, r5 < 1000\n  branch r7, loop, fresh\n}\n";
}

std::string Recursing(const std::string& registers, const std::string& plan) {
  return "function @deep (n: int) -> () {\n" + registers + plan +
         "  call_external [], @measure, []\n  call_function [], @deep, [r0]\n  return []\n}\n"
         "function @main export () -> () {\n  register r0: int\n  const_int r0, 1\n  call_function [], @deep, [r0]\n"
         "  return []\n}\n";
}

std::vector<Growth> Growths() {
  std::string registers, entries = "  arena device 0, size 64\n";
  for (int i = 1; i <= 200; ++i) registers += "  register r" + std::to_string(i) + ": int\n";
  for (int i = 0; i < 100; ++i) entries += "  entry " + std::to_string(i) + ": arena 0, offset 0, size 0, live 0..1\n";
  return {
      {"tuples", Nesting("tuple(object(\"any\"), int)", "tuple r2, [r0, r1]")},
      {"optionals", Nesting("optional(object(\"any\"))", "some r2, r0")},
      {"closures", "function @f (x: object(\"any\")) -> () {\n  return []\n}\n" +
                       Nesting("fn() -> ()", "make_closure r2, @f, [r0]")},
      {"sequences of numbers", Appending("int", "const_int r2, 1")},
      {"sequences of texts", Appending("string", "const_string r2, \"" + std::string(100, 'x') + "\"")},
      {"sequences of tensors without elements", Appending("int64[0]", "alloc r2, [0]")},
      {"sequences of tensors", Appending("int64[100]", "alloc r2, [100]")},
      {"frames of recursion", Recursing(registers, "")},
      {"records of recursion", Recursing("", "")},
      {"memory plans of recursion", Recursing("", entries)},
  };
}

TEST_CASE("the memory cap counts every kind of value, and calls") {
  for (const Growth& growth : Growths()) {
    CAPTURE(growth.name);
    const auto executable =
        *Executable::FromProgram(*Instance::Create({}), test::Assembled(kHead + growth.text), "m", {});
    for (const bool is_capped : {true, false}) {
      int64_t peak = 0, calls = 0;
      ContextOptions options;
      options.fuel = is_capped ? kFuel : kLittleFuel;
      options.max_memory_bytes = is_capped ? kCap : 0;
      options.externals["measure"].call = [&](std::span<const Value>) -> Result<std::vector<Value>> {
        if (is_capped && calls++ % 256 == 0) peak = std::max(peak, HeapBytes());
        return std::vector<Value>{};
      };
      const auto context = *Context::Create(executable, std::move(options));
      const int64_t before = HeapBytes();
      const StatusCode code = context->Invoke(**executable->Find("main"), {}).status().code();
      // Calls end at their greatest depth; the records alone take less than the cap until then.
      const bool has_few = std::string(growth.name) == "records of recursion";
      CHECK((code == StatusCode::kOutOfMemory) == (is_capped && !has_few));
      if (is_capped && kHasMallinfo) {
        CHECK(peak > 0);
        CHECK(peak - before <= kCap + kCap / 16);
      }
      CHECK(context->Invoke(**executable->Find("small"), {}).ok());
    }
  }
}

}  // namespace
}  // namespace ingot::vm
