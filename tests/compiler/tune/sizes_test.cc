// Sizes of symbols: their text, the cases of a kernel, and the times of several cases as one.
#include "compiler/tune/sizes.h"

#include <doctest/doctest.h>

#include "compiler/kernels/kernel_sources.h"
#include "compiler/tune/task.h"
#include "compiler/tune/task_program.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

TEST_CASE("sizes: text that reads back") {
  const Result<Sizes> sizes = ParseSizes("steps=128,batch=1:0.25");
  REQUIRE(sizes.ok());
  CHECK(sizes->values == std::map<std::string, int64_t>{{"batch", 1}, {"steps", 128}});
  CHECK(sizes->weight == 0.25);
  CHECK(SizesText(*sizes) == "batch=1,steps=128:0.25");
  CHECK(*ParseSizes(SizesText(*sizes)) == *sizes);
  CHECK(SizesText(*ParseSizes("n=3:1")) == "n=3");
  const double third = 1.0 / 3;
  CHECK(ParseSizes(SizesText({{{"n", 3}}, third}))->weight == third);
  for (const char* weight : {"0", "-1", "nan", "inf", "1e308", "1e-308"}) {
    CAPTURE(weight);
    CHECK(!ParseSizes(std::string("n=3:") + weight).ok());
  }
  for (const char* text : {"", "n", "n=", "=3", "n=0", "n=-1", "n=1.5", "n=1,", ",n=1", "n=1,n=2", "n=1:", "n=1:0",
                           "n=1:-1", "n=1:x", "n=1:inf", "n=1:nan", "n=99999999999999999999"}) {
    INFO(text);
    CHECK(ParseSizes(text).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("sizes: a kernel is called with what it depends on, once with equal sizes") {
  Task task;
  task.names = {"dense"};
  task.function =
      kernels::WithParamsByPlace(schedule::testing::Dense(schedule::testing::N(), ir::Int64(32), ir::Int64(64), true));
  const std::string name = ir::FreePrimVars(task.function->params[0].buffer->shape[0])[0]->name;
  const auto at = [&](int64_t size, int64_t other, double weight) {
    return Sizes{{{name, size}, {"other", other}}, weight};
  };
  const std::vector<Sizes> given{at(3, 1, 1), at(5, 1, 2), at(3, 2, 4)};
  const auto cases = KernelCases(task, given);
  REQUIRE_MESSAGE(cases.ok(), cases.status().message());
  REQUIRE(cases->size() == 2);
  CHECK(SizesOf(*cases) == std::vector<Sizes>{{{{name, 3}}, 5}, {{{name, 5}}, 2}});
  CHECK((*cases)[0].inputs[0].dims == std::vector<int64_t>{3, 32});
  CHECK((*cases)[1].inputs[0].dims == std::vector<int64_t>{5, 32});
  CHECK((*cases)[1].inputs[1].dims == std::vector<int64_t>{32, 64});
  CHECK((*cases)[1].inputs.back().spec == "zeros");  // the result
  CHECK(KernelCases(task, {}).status().message() == "its sizes are symbols (--sizes)");
  const std::vector<Sizes> without{{{{"other", 3}}, 1}};
  CHECK(KernelCases(task, without).status().message() == "there is no size for its symbol " + name);

  const auto read = ParseTaskText(TaskText(task.function));  // as records have it, symbols and all
  REQUIRE_MESSAGE(read.ok(), read.status().message());
  CHECK(TaskKey(*read) == TaskKey(task.function));

  const Target target = ParseTarget("cpu:x86-64-v3")->variants.front();
  const auto described = Described(task, target, given);
  REQUIRE(described.ok());
  CHECK(described->is_symbolic);
  // Of each row 32 products with their sums for 64 columns, the bias and the threshold.
  const double of_row = Described(task, target, std::vector<Sizes>{at(1, 1, 1)})->flops;
  CHECK(described->flops == doctest::Approx(of_row * (3 * 5 + 5 * 2) / 7));

  task.function =
      kernels::WithParamsByPlace(schedule::testing::Dense(ir::Int64(8), ir::Int64(32), ir::Int64(64), true));
  const auto constant = KernelCases(task, given);
  REQUIRE(constant.ok());
  CHECK(constant->size() == 1);
  CHECK(SizesOf(*constant).empty());
}

TEST_CASE("sizes: times of several cases are means by weight, repeat by repeat") {
  const std::vector<MeasuredCase> cases{{{{{"n", 1}}, 3}, {}}, {{{{"n", 8}}, 1}, {}}};
  std::vector<Measurement> measurements(2);
  for (Measurement& measurement : measurements) measurement.outcome = Outcome::kOk;
  measurements[0].seconds = {1, 2};
  measurements[1].seconds = {5, 10};
  measurements[0].rival_seconds = {2, 2};
  measurements[1].rival_seconds = {2, 6};
  const Measurement combined = Combined(cases, measurements);
  CHECK(combined.outcome == Outcome::kOk);
  CHECK(combined.seconds == std::vector<double>{2, 4});
  CHECK(combined.rival_seconds == std::vector<double>{2, 3});
  measurements[1].outcome = Outcome::kCrashed;
  measurements[1].error = "by a signal";
  const Measurement failed = Combined(cases, measurements);
  CHECK(failed.outcome == Outcome::kCrashed);
  CHECK(failed.error == "n=8: by a signal");
}

}  // namespace
}  // namespace ingot::tune
