// What graph passes choose for the whole file: each candidate is a module of its own that computes the same, and what
// is not chosen otherwise stays as usual.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/reference_evaluation.h"
#include "compiler/op/reference.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {
namespace {

std::string Numbers(int64_t count) {
  std::string text = "R.const([";
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string((i * 7 % 13 - 6) / 8.0);
  return text + "], \"float32\")";
}

// A dense 3 x 3 convolution, one of narrow groups, a pool, and a product with a matrix of weights.
std::string Text() {
  const auto weights = [](const char* dims, int64_t count) {
    return "R.reshape(" + Numbers(count) + ", (" + dims + "))";
  };
  return R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 16, 16, 16), dtype="float32")):
        with R.dataflow():
            w = )" +
         weights("16, 16, 3, 3", 16 * 16 * 9) + R"(
            a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
            v = )" +
         weights("16, 4, 3, 3", 16 * 4 * 9) + R"(
            b = R.nn.conv2d(a, v, padding=[1, 1, 1, 1], groups=4)
            c = R.nn.avg_pool2d(b, pool_size=[16, 16])
            d = R.reshape(c, (1, 16))
            m = )" +
         weights("16, 24", 16 * 24) + R"(
            gv = R.matmul(d, m)
            R.output(gv)
        return gv
)";
}

struct Made {
  ir::IRModule module;
  std::string text;
  std::map<std::string, GraphChoice> choices;
};

Made Make(const schedule::Chosen& chosen) {
  const Result<ir::IRModule> parsed = script::ParseModule(Text(), "case.py");
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  PassContext context;
  context.options.target = *ParseTarget("cpu:x86-64-v3");
  context.options.graph_choices = chosen;
  const std::vector<std::string> names{"normalize", "fold_constants", "convert_layout", "pack_weights", "lift_params"};
  Result<ir::IRModule> module = RunPasses(*parsed, *FindPasses(names), context);
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  Made made{*module, script::PrintModule(*module, {.golden = true}), {}};
  for (const GraphChoice& choice : context.choices) made.choices.emplace(choice.choice.name, choice);
  return made;
}

std::vector<double> ResultOf(const ir::IRModule& module) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  op::ReferenceTensor x = op::NewReference(DataType::Float(32), {1, 16, 16, 16});
  for (int64_t i = 0; i < 16 * 16 * 16; ++i) op::SetNumber(x, i, uniform(random));
  const std::vector<std::byte> bytes = op::PackReference(x);
  const Result<Tensor> tensor = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{1, 16, 16, 16});
  REQUIRE(tensor.ok());
  std::ranges::copy(bytes, static_cast<std::byte*>(tensor->data()));
  const Result<std::vector<Tensor>> results = driver::EvaluateByReference(module, {&*tensor, 1});
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  const auto* numbers = static_cast<const float*>(results->at(0).data());
  return {numbers, numbers + results->at(0).num_elements()};
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const char* const kDense = "winograd:1x16x16x16:16x16x3x3:1x1x1x1";

TEST_CASE("choices of the file: their names, candidates and usual values") {
  const Made usual = Make({});
  std::vector<std::string> names;
  for (const auto& [name, choice] : usual.choices) names.push_back(name);
  CHECK(names == std::vector<std::string>{"dense_groups", "layout", "pack_weights", kDense});
  CHECK(usual.choices.at("layout").calls == 3);
  CHECK(usual.choices.at("layout").choice.candidates == std::vector<int64_t>{0, 1, 2});
  for (const auto& [name, choice] : usual.choices) {
    CHECK(choice.choice.value == choice.choice.usual);
    CHECK(Make({{name, choice.choice.usual}}).text == usual.text);
  }
  // What nobody asks for, and what is no candidate.
  CHECK(Make({{"layout", 7}, {"no such choice", 0}}).text == usual.text);
}

// A copy for small pictures and one for large ones: what is best of one is not of the other.
TEST_CASE("choices of the file: copies for sizes choose apart") {
  const Result<ir::IRModule> parsed = script::ParseModule(R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3, "h", "w"), dtype="float32")):
        with R.dataflow():
            w = R.broadcast_to(R.const(0.5, "float32"), R.shape([32, 3, 16, 16]))
            a = R.nn.conv2d(x, w, strides=[16, 16])
            v = R.broadcast_to(R.const(0.5, "float32"), R.shape([32, 32, 3, 3]))
            gv = R.nn.conv2d(a, v, padding=[1, 1, 1, 1])
            R.output(gv)
        return gv
)",
                                                          "case.py");
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  PassContext context;
  context.options.target = *ParseTarget("cpu:x86-64-v3");
  const std::vector<std::string> names{"normalize", "fold_constants", "split_by_size", "convert_layout"};
  REQUIRE(RunPasses(*parsed, *FindPasses(names), context).ok());
  std::map<std::string, int64_t> usual;
  for (const GraphChoice& choice : context.choices) usual.emplace(choice.choice.name, choice.choice.usual);
  const std::string dense = "winograd:nx32xh // 16xw // 16:32x32x3x3:1x1x1x1";
  CHECK(usual == std::map<std::string, int64_t>{{"layout", 1}, {dense + "@80", 0}, {dense + "@224", 1}});
}

TEST_CASE("choices of the file: each candidate is what it says") {
  const Made plain = Make({{"layout", 0}});
  CHECK_FALSE(Contains(plain.text, "16c"));
  CHECK_FALSE(plain.choices.contains(kDense));  // which is over blocks alone
  const Made blocked = Make({{"layout", 2}});
  CHECK(Contains(blocked.text, "NCHW16c"));
  CHECK(Contains(Make({{"layout", 2}, {kDense, 1}}).text, "winograd_output"));
  CHECK_FALSE(Contains(Make({{"layout", 2}, {kDense, 0}}).text, "winograd"));
  CHECK_FALSE(Contains(Make({{"layout", 2}, {"dense_groups", 1}}).text, "groups=4"));
  CHECK(Contains(Make({{"layout", 2}, {"dense_groups", 0}}).text, "groups=4"));
  CHECK(Contains(Make({{"pack_weights", 1}}).text, "matmul_packed"));
  CHECK_FALSE(Contains(Make({{"pack_weights", 0}}).text, "matmul_packed"));
}

TEST_CASE("choices of the file: all of them compute the same") {
  const std::vector<double> expected = ResultOf(*script::ParseModule(Text(), "case.py"));
  for (const int64_t layout : {0, 1, 2}) {
    for (const int64_t rest : {0, 1}) {
      const std::vector<double> actual = ResultOf(
          Make({{"layout", layout}, {kDense, rest}, {"dense_groups", rest}, {"pack_weights", 1 - rest}}).module);
      REQUIRE(actual.size() == expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        CHECK(std::fabs(actual[i] - expected[i]) < 1e-4 * std::max(1.0, std::fabs(expected[i])));
      }
    }
  }
}

}  // namespace
}  // namespace ingot::transform
