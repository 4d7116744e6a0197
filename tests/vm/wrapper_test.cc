// The C++ wrapper's scalars; the rest of it is tested from an installed package (tests/packaging/static_cxx).
#include <doctest/doctest.h>

#include "ingot/ingot.hpp"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"

namespace ingot {
namespace {

constexpr const char* kProgram = R"(ingot 1
function @main export (x: float32[2], i: int, f: float, b: bool) -> (y: float32[2]) {
  register r4: float32[2]
  copy r4, r0
  return [r4]
}
)";

TEST_CASE("numbers are arguments of the C++ wrapper, and fit the parameter's kind or are refused") {
  const std::vector<std::byte> bytes = *vm::EncodeProgram(*vm::Assemble(kProgram));
  wrapper::Module m(bytes.data(), bytes.size(), "m");
  const wrapper::Tensor x(std::vector<float>{1, 2}, {2});
  CHECK(m.Forward(x, 3, 0.5, true).ToVector<float>() == std::vector<float>{1, 2});
  CHECK(m.Call("main", {x, int64_t{3}, 7, false}).size() == 2);  // an integer where a float is expected
  const auto refused = [&](auto... arguments) {
    try {
      m.Forward(arguments...);
    } catch (const wrapper::Error& error) {
      return error.code() == INGOT_BAD_INPUT || error.code() == INGOT_INVALID_ARGUMENT;
    }
    return false;
  };
  CHECK(refused(x, 3.5, 0.5, true));
  CHECK(refused(x, 3, 0.5, 1));
  CHECK(refused(x, 3, true, true));
  CHECK(refused(1, 3, 0.5, true));
}

}  // namespace
}  // namespace ingot
