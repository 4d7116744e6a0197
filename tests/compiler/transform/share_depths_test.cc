// share_depths: the function of several depths is scheduled as the one of the greatest depth is, and nothing in it but
// that loop's length is no constant.
#include <doctest/doctest.h>

#include <string>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/script/parser.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {
namespace {

constexpr const char* kTwoConvolutions = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 12, 1, 196, 16), dtype="float32"), v: R.Tensor((8, 12, 1, 1, 16, 16), dtype="float32"), y: R.Tensor((1, 16, 1, 196, 16), dtype="float32"), w: R.Tensor((8, 16, 1, 1, 16, 16), dtype="float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, v, data_layout="NCHW16c", kernel_layout="OIHW16i16o", out_layout="NCHW16c")
            b = R.nn.conv2d(y, w, data_layout="NCHW16c", kernel_layout="OIHW16i16o", out_layout="NCHW16c")
            R.output(a, b)
        return (a, b)
)";

std::vector<ir::PrimFunc> FunctionsAfter(const std::vector<std::string>& passes) {
  Result<ir::IRModule> module = script::ParseModule(kTwoConvolutions, "test.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  PassContext context;
  module = RunPasses(*std::move(module), FindPasses(passes).value(), context);
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  std::vector<ir::PrimFunc> functions;
  for (const ir::IRModule::Entry& entry : *module) {
    if (const auto function = ir::AsRef<ir::PrimFuncNode>(entry.function); function != nullptr) {
      functions.push_back(function);
    }
  }
  return functions;
}

TEST_CASE("share_depths: a shared function gets the schedule of its greatest depth") {
  const std::vector<ir::PrimFunc> apart = FunctionsAfter({"normalize", "legalize"});
  const std::vector<ir::PrimFunc> shared = FunctionsAfter({"normalize", "legalize", "share_depths"});
  REQUIRE(apart.size() == 2);
  REQUIRE(shared.size() == 1);
  CHECK(ir::FreePrimVars(shared[0]).size() == 1);
  for (const Target& target : ParseTarget("cpu")->variants) {
    const auto deepest = schedule::ApplyDefaultSchedule(apart[1], target);
    const auto any_depth = schedule::ApplyDefaultSchedule(shared[0], target);
    REQUIRE(deepest.ok());
    REQUIRE(any_depth.ok());
    CHECK(deepest->rules == std::vector<std::string>{"conv(conv2d_nchwc)"});
    CHECK(any_depth->rules == deepest->rules);
    CHECK(any_depth->trace.ToString() == deepest->trace.ToString());
    CHECK(any_depth->trace.instructions.size() > 10);
  }
}

}  // namespace
}  // namespace ingot::transform
