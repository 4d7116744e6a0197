// Programs that the verifier refuses: the checked interpreter finds by itself, from values alone, what is wrong.
#include "tests/vm/checked/checked_interpreter.h"

#include <doctest/doctest.h>

#include "vm/text/assembler.h"

namespace ingot::vm::checked {
namespace {

CheckedRun RunText(const std::string& text) {
  const Result<Program> program = Assemble("ingot 1\nconstant \"c\" float32[4] = 1, 2, 3, 4\n" + text);
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  std::vector<bool> ran(256);
  const std::vector<std::vector<uint32_t>> zeroed(program->functions.size());
  const auto main = static_cast<uint32_t>(program->functions.size() - 1);
  return RunChecked(*program, FunctionId(main), {}, zeroed, ran);
}

constexpr const char* kInPlace = "kernel @update {\n  inout a: float32[4]\n}\n";

TEST_CASE("the checked interpreter runs what is sound") {
  const CheckedRun run = RunText(R"(
function @f (t: tuple(float32[4], int)) -> (n: int) {
  register r1: int
  tuple_get r1, r0, 1
  return [r1]
}
function @main () -> (n: int) {
  register r0: constant float32[4]
  register r1: float32[4]
  register r2: int
  register r3: tuple(float32[4], int)
  const_tensor r0, #0
  copy r1, r0
  const_int r2, 5
  tuple r3, [r1, r2]
  call_function [r2], @f, [r3]
  return [r2]
})");
  CHECK(run.end == CheckedRun::End::kReturned);
  REQUIRE(run.results.size() == 1);
  CHECK(run.results[0].number == 5);
}

// The register's type is a wider one, which does not matter to what the closure can be matched with.
TEST_CASE("a closure is matched by the type of its function") {
  const CheckedRun run = RunText(R"(
function @f (text: string) -> (text_again: string) {
  return [r0]
}
function @main () -> (text: string) {
  register r0: fn(string) -> (object("any"))
  register r1: object("any")
  register r2: fn(string) -> (string)
  register r3: string
  make_closure r0, @f, []
  match r1, r0
  match r2, r1
  const_string r3, "text"
  call_closure [r3], r2, [r3]
  return [r3]
})");
  CHECK_MESSAGE(run.end == CheckedRun::End::kReturned, run.message);
  REQUIRE(run.results.size() == 1);
  CHECK(run.results[0].text == "text");
}

TEST_CASE("the checked interpreter finds what the verifier should have refused") {
  struct Bad {
    const char* text;
    const char* message;
  };
  const Bad all[] = {
      {"function @main () -> (n: int) {\n  register r0: int\n  return [r0]\n}", "read before it is written"},
      {"function @main () -> (n: int) {\n  register r0: int\n  const_bool r0, true\n  return [r0]\n}",
       "r0 is declared int and gets a bool"},
      {"function @main () -> () {\n  register r0: constant float32[4]\n  const_tensor r0, #0\n"
       "  call_kernel @update, [r0], []\n  return []\n}",
       "that is read only"},
      {"function @main () -> () {\n  register r0: float32[4]\n  alloc r0, [4]\n  call_kernel @update, [r0], []\n"
       "  return []\n}",
       "which nobody wrote"},
      {"function @main () -> (y: float32[4]) {\n  register r0: constant float32[4]\n  const_tensor r0, #0\n"
       "  return [r0]\n}",
       "result 0 is declared"},
      {"function @f (x: string) -> () {\n  return []\n}\nfunction @main () -> () {\n"
       "  register r0: fn(int) -> ()\n  register r1: int\n  make_closure r0, @f, []\n  const_int r1, 1\n"
       "  call_closure [], r0, [r1]\n  return []\n}",
       "parameter 0 is string and gets a int"},
      {"function @f (x: borrowed_mut float32[4]) -> () {\n  return []\n}\nfunction @main () -> () {\n"
       "  register r0: fn(borrowed float32[4]) -> ()\n  register r1: constant float32[4]\n  make_closure r0, @f, []\n"
       "  const_tensor r1, #0\n  call_closure [], r0, [r1]\n  return []\n}",
       "is written and gets a tensor that is read only"},
      {"function @main () -> () {\n  register r0: arena float32[4]\n  arena device 0, size 64\n"
       "  entry 0: arena 0, offset 0, size 64, live 0..0\n  plan_view r0, 0, [4]\n  release r0\n  return []\n}",
       "outside of the live range of plan entry 0"},
      {"function @main () -> () {\n  arena device 0, size 128\n  entry 0: arena 0, offset 0, size 128, live 0..0\n"
       "  entry 1: arena 0, offset 64, size 64, live 0..0\n  return []\n}",
       "plan entries 0 and 1 live at once and overlap"},
  };
  for (const Bad& bad : all) {
    CAPTURE(bad.text);
    const CheckedRun run = RunText(std::string(kInPlace) + bad.text);
    CHECK(run.end == CheckedRun::End::kDisagreement);
    CAPTURE(run.message);
    CHECK(run.message.find(bad.message) != std::string::npos);
  }
}

}  // namespace
}  // namespace ingot::vm::checked
