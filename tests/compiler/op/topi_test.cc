// The operator library on tensors: it makes the same stages as legalising a graph does, and refuses what does not fit.
#include "compiler/op/topi/topi.h"

#include <doctest/doctest.h>

#include "compiler/builder/te_schedule.h"
#include "compiler/op/registry.h"
#include "compiler/script/printer.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::op {
namespace {

using ir::AttrValue;
using ir::Int64;
using te::Tensor;

const DataType kF32 = DataType::Float(32);

// The PrimFunc that legalising a graph makes of the operator on tensors of these shapes.
ir::PrimFunc OfTable(std::string_view name, const std::vector<Tensor>& inputs, const ir::Attrs& attrs) {
  std::vector<ir::Expr> args;
  for (const Tensor& input : inputs) {
    args.push_back(ir::Make<ir::VarNode>(input->name, ir::Make<ir::TensorTypeNode>(input->shape, input->dtype)));
  }
  const ir::Call call = MakeCall(name, args, attrs).value();
  const Target target;
  for (const Implementation& implementation : RowOf(call)->implementations) {
    if (implementation.predicate(call, target)) return implementation.build(call, target).value();
  }
  FAIL("no implementation");
  return nullptr;
}

void CheckSame(std::string_view name, std::vector<Tensor> inputs, const ir::Attrs& attrs = {}) {
  CAPTURE(name);
  for (size_t i = 0; i < inputs.size(); ++i) {  // as the table names them
    inputs[i] = te::Placeholder(inputs[i]->shape, inputs[i]->dtype, FindOp(name)->arg_names.at(i));
  }
  const Result<Tensor> result = topi::Apply(name, {inputs.begin(), inputs.end()}, attrs);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  const ir::PrimFunc expected = OfTable(name, inputs, attrs);
  inputs.push_back(*result);
  CHECK(script::PrintFunction("f", te::CreatePrimFunc(inputs)) == script::PrintFunction("f", expected));
}

TEST_CASE("operators on tensors are the operators of the table") {
  const ir::PrimExpr n = ir::MakePrimVar("n");
  const Tensor data = te::Placeholder({n, Int64(4), Int64(9), Int64(9)}, kF32, "data");
  const Tensor weight = te::Placeholder({Int64(8), Int64(4), Int64(3), Int64(3)}, kF32, "weight");
  const Tensor x = te::Placeholder({n, Int64(6)}, kF32, "x");
  CheckSame("nn.conv2d", {data, weight}, {{"padding", AttrValue::Ints({1, 1})}, {"strides", AttrValue::Ints({2, 2})}});
  CheckSame("nn.max_pool2d", {data}, {{"pool_size", AttrValue::Ints({3, 3})}, {"strides", AttrValue::Ints({2, 2})}});
  CheckSame("nn.avg_pool2d", {data}, {{"pool_size", AttrValue::Ints({2, 2})}, {"strides", AttrValue::Ints({2, 2})}});
  CheckSame("nn.softmax", {x});
  CheckSame("nn.relu", {x});
  CheckSame("permute_dims", {x});
  CheckSame("sum", {x}, {{"axis", AttrValue::Ints({1})}});
}

TEST_CASE("stages of the library and one's own make one function") {
  const Tensor a = te::Placeholder({Int64(5), Int64(7)}, kF32, "a"),
               b = te::Placeholder({Int64(7), Int64(3)}, kF32, "b");
  const Tensor shifted = te::Compute(
      a.shape(), [&](const te::Indices& i) { return a(i) + ir::FloatImm(kF32, 1); }, "shifted");
  const Result<Tensor> product = topi::Apply("matmul", {shifted, b});
  REQUIRE_MESSAGE(product.ok(), product.status().message());
  const Result<Tensor> out = topi::Apply("nn.softmax", {*product});
  REQUIRE_MESSAGE(out.ok(), out.status().message());
  const ir::PrimFunc plain = te::CreatePrimFunc({a, b, *out});
  te::Schedule s = te::CreateSchedule({*out});
  s[shifted].ComputeInline();
  s[*product].Parallel(te::AxesOf(*product)[0]);
  const Result<schedule::Schedule> scheduled = s.Apply({a, b, *out});
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  const std::vector<std::vector<int64_t>> dims{{5, 7}, {7, 3}, {5, 3}};
  const auto expected = schedule::testing::RunOnRandom(plain, dims, 1, 1, false);
  const auto got = schedule::testing::RunOnRandom(scheduled->function(), dims, 1, 1, true);
  REQUIRE(expected.ok());
  REQUIRE(got.ok());
  CHECK(schedule::testing::Compare(*expected, *got) == "");
}

TEST_CASE("operators on tensors: several inputs in one, several results, and errors") {
  const Tensor x = te::Placeholder({Int64(4), Int64(6)}, kF32, "x"),
               y = te::Placeholder({Int64(4), Int64(2)}, kF32, "y");
  const Result<Tensor> joined = topi::Apply("concat", {std::vector<Tensor>{x, y}}, {{"axis", 1}});
  REQUIRE_MESSAGE(joined.ok(), joined.status().message());
  CHECK(*ir::AsConstInt(joined->shape()[1]) == 8);
  const auto parts = topi::ApplyMany("split", {x}, {{"indices_or_sections", 2}, {"axis", 1}});
  REQUIRE_MESSAGE(parts.ok(), parts.status().message());
  CHECK(parts->size() == 2);
  CHECK(topi::Apply("split", {x}, {{"indices_or_sections", 2}, {"axis", 1}}).status().message().find("use ApplyMany") !=
        std::string::npos);
  CHECK(topi::Apply("matmull", {x, y}).status().message().find("matmul") != std::string::npos);
  CHECK_FALSE(topi::Apply("matmul", {x, y}).ok());
  CHECK(topi::Apply("sort", {x}).status().message().find("no definition as a tensor expression") != std::string::npos);
}

}  // namespace
}  // namespace ingot::op
