#include "compiler/script/parser.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/structural.h"
#include "compiler/op/verifier.h"
#include "compiler/script/printer.h"
#include "tests/golden.h"

namespace ingot::script {
namespace {

std::string Wrap(const std::string& body) {
  return "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 3), \"float32\")):\n" + body;
}

// The inputs of every golden test, good and bad.
std::vector<std::string> GoldenInputs() {
  std::vector<std::string> inputs;
  const std::filesystem::path root = std::filesystem::path(golden::TestDirectory()) / "golden" / "script";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    inputs.push_back(std::move(text).str());
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

TEST_CASE("expressions deeper than the limit are an error, not a crash") {
  for (const std::string& deep : {std::string(100000, '('), std::string(100000, '-') + "1", std::string(100000, '['),
                                  "R.shape([1" + std::string(100000, ' ') + "])"}) {
    const Result<ir::IRModule> module = ParseModule(Wrap("        y = " + deep + "\n        return x\n"), "deep.py");
    if (deep.starts_with("R")) {
      CHECK(module.ok());
    } else {
      REQUIRE(!module.ok());
      CHECK(module.status().message().size() < 5000);
    }
  }
  for (const char* item : {" + n", ".a", "(n)", " and n", "[0]"}) {
    std::string chain = "n";
    for (int i = 0; i < 5000; ++i) chain += item;
    const Result<ir::IRModule> module = ParseModule(Wrap("        y = " + chain + "\n        return x\n"), "chain.py");
    REQUIRE(!module.ok());
    CHECK(module.status().message().find("nested more than 1000 deep") != std::string::npos);
  }
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += std::string(static_cast<size_t>(i) + 8, ' ') + "if x:\n";
  const Result<ir::IRModule> suites = ParseModule(Wrap(nested + "        return x\n"), "suites.py");
  REQUIRE(!suites.ok());
  CHECK(suites.status().message().find("bodies are nested more than") != std::string::npos);
  std::string ladder = "        if x:\n            pass\n";
  for (int i = 0; i < 1000; ++i) ladder += "        elif x:\n            pass\n";
  CHECK(!ParseModule(Wrap(ladder + "        return x\n"), "elif.py").ok());
}

TEST_CASE("expressions up to the limit read back") {
  std::string sum = "n";
  for (int i = 0; i < 900; ++i) sum += " + n";
  const std::string text =
      "n = TypeVar(\"n\")\n@R.function\ndef main(x: R.Tensor((n,), \"float32\")):\n    y = R.shape([" + sum +
      "])\n    return y\n";
  const Result<ir::IRModule> module = ParseModule(text, "sum.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const Result<ir::IRModule> again = ParseModule(PrintModule(*module), "printed.py");
  REQUIRE(again.ok());
  CHECK(ir::StructuralEqual(*module, *again));
}

TEST_CASE("100,000 bindings parse, print and compare") {
  std::string body = "        with R.dataflow():\n            lv0 = R.nn.relu(x)\n";
  for (int i = 1; i < 100000; ++i) {
    body += "            lv" + std::to_string(i) + " = R.nn.relu(lv" + std::to_string(i - 1) + ")\n";
  }
  body += "            gv = R.nn.relu(lv99999)\n            R.output(gv)\n        return gv\n";
  const Result<ir::IRModule> module = ParseModule(Wrap(body), "long.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const std::string printed = PrintModule(*module);
  const Result<ir::IRModule> again = ParseModule(printed, "printed.py");
  REQUIRE(again.ok());
  CHECK(ir::ExplainDifference(*module, *again).empty());
}

TEST_CASE("variables that share a hint are numbered in linear time") {
  std::vector<ir::Binding> bindings;
  const ir::Type type = ir::Make<ir::ShapeTypeNode>(std::vector<ir::PrimExpr>{});
  const ir::Var x = ir::Make<ir::VarNode>("lv", type);
  ir::Var last = x;
  for (int i = 0; i < 50000; ++i) {
    const ir::Var next = ir::Make<ir::VarNode>("lv", type);
    bindings.push_back({next, last, nullptr, {}});
    last = next;
  }
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{{std::move(bindings), false}}, last);
  ir::IRModule module;
  module.Add("main", ir::Make<ir::FunctionNode>(std::vector<ir::Var>{x}, body, type));
  const Result<ir::IRModule> again = ParseModule(PrintModule(module), "printed.py");
  REQUIRE_MESSAGE(again.ok(), again.status().message());
  CHECK(ir::StructuralEqual(module, *again));
}

// INGOT_LONG_TESTS=1 makes a hundred times as many.
TEST_CASE("truncated and damaged texts are refused or read, and never crash") {
  std::mt19937 random(20260101);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr std::string_view kPieces[] = {"(",
                                          ")",
                                          "[",
                                          "]",
                                          ":",
                                          ",",
                                          "\n",
                                          "    ",
                                          "T.int64(",
                                          "n",
                                          "\"",
                                          "\\",
                                          "#",
                                          "= ",
                                          "None",
                                          "lambda ",
                                          "-",
                                          "99999999999999999999",
                                          "@",
                                          "def ",
                                          "if ",
                                          "R.tuple()",
                                          "\xff",
                                          "\t",
                                          "T.Ramp(0, 1, 4)",
                                          "x[0]",
                                          "{",
                                          "0_a"};
  size_t read = 0, refused = 0, valid = 0;
  const int rounds = std::getenv("INGOT_LONG_TESTS") != nullptr ? 1'200 : 12;
  for (const std::string& input : GoldenInputs()) {
    for (int round = 0; round < rounds; ++round) {
      std::string text = input;
      if (round % 3 == 0) {
        text.resize(pick(text.size() + 1));
      } else {
        for (size_t edits = 1 + pick(4); edits > 0 && !text.empty(); --edits) {
          const size_t at = pick(text.size());
          const std::string_view piece = kPieces[pick(std::size(kPieces))];
          switch (pick(4)) {
            case 0:
              text.insert(at, piece);
              break;
            case 1:
              text.erase(at, 1 + pick(8));
              break;
            case 2:
              text.replace(at, 1, piece);
              break;
            default:  // a piece of the text itself, somewhere else
              text.insert(pick(text.size()), text.substr(at, 1 + pick(40)));
              break;
          }
        }
      }
      const Result<ir::IRModule> module = ParseModule(text, "damaged.py");
      if (!module.ok()) {
        ++refused;
        CHECK(!module.status().message().empty());
        continue;
      }
      ++read;  // then it prints too, and what holds reads back (tests/compiler/read_back_hook.h)
      CHECK(!PrintModule(*module).empty());
      CAPTURE(text);
      if (op::VerifyModule(*module).ok()) ++valid;
    }
  }
  CHECK(read > 20);
  CHECK(valid > 20);
  CHECK(refused > 500);
}

TEST_CASE("functions that are read as what they are made of give C's values") {
  const Result<ir::IRModule> module = ParseModule(R"(@T.prim_func
def main(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32"), N: T.Buffer((64,), "int32"),
         F: T.Buffer((5, 64), "float32"), C: T.Buffer((64,), "int32")):
    for i in range(64):
        F[0, i] = T.atan2(Y[i], X[i])
        F[1, i] = T.copysign(X[i], Y[i])
        F[2, i] = T.exp10(X[i])
        F[3, i] = T.log10(X[i])
        F[4, i] = T.Select(T.isfinite(X[i]), T.float32(1), T.float32(0))
        C[i] = T.popcount(N[i])
)",
                                                  "expanded.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F, -0.0F, 1.0F, -2.5F, infinity, -infinity, std::nanf(""), 30.0F};
  std::vector<float> x, y, results(5 * 64);
  std::vector<int32_t> n, counts(64);
  for (int i = 0; i < 64; ++i) {
    x.push_back(special[i % 8]);
    y.push_back(special[i / 8]);
    n.push_back(static_cast<int32_t>(i == 0 ? ~0U : static_cast<uint32_t>(i) * 0x1f3d5b79U));
  }
  const auto buffer = [](auto& values, DataType dtype, std::vector<int64_t> dims) {
    return interp::HostBuffer{dtype, std::move(dims), std::as_writable_bytes(std::span(values))};
  };
  const std::vector<interp::HostBuffer> buffers{
      buffer(x, DataType::Float(32), {64}), buffer(y, DataType::Float(32), {64}), buffer(n, DataType::Int(32), {64}),
      buffer(results, DataType::Float(32), {5, 64}), buffer(counts, DataType::Int(32), {64})};
  const Status status = interp::Interpret(module->FindPrimFunc("main"), buffers);
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (size_t i = 0; i < 64; ++i) {
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    const float expected[] = {std::atan2(y[i], x[i]), std::copysign(x[i], y[i]), std::pow(10.0F, x[i]),
                              std::log10(x[i]), std::isfinite(x[i]) ? 1.0F : 0.0F};
    for (size_t f = 0; f < 5; ++f) {
      CAPTURE(f);
      const float got = results[f * 64 + i];
      if (std::isnan(expected[f])) {
        CHECK(std::isnan(got));
      } else if (std::isinf(expected[f]) || expected[f] == 0) {
        CHECK(got == expected[f]);
        CHECK(std::signbit(got) == std::signbit(expected[f]));
      } else {
        CHECK(got == doctest::Approx(expected[f]).epsilon(1e-6));
      }
    }
    CHECK(counts[i] == std::popcount(static_cast<uint32_t>(n[i])));
  }
}

TEST_CASE("nodes know their place in the text") {
  const Result<ir::IRModule> module =
      ParseModule(Wrap("        y = R.add(x, R.nn.relu(x))\n        return y\n"), "place.py");
  REQUIRE(module.ok());
  const ir::Binding& relu = module->FindFunction("main")->body->blocks[0].bindings[0];
  CHECK(relu.value->span.ToString() == "place.py:5:22");
  CHECK(module->FindFunction("main")->span.ToString() == "place.py:4:9");
}

}  // namespace
}  // namespace ingot::script
