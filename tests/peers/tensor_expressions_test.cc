// Tensor expressions that the builder turns into functions over symbolic dims, as other systems' tests have them
// (tests/peers/README.md).
#include <doctest/doctest.h>

#include "compiler/builder/block_builder.h"
#include "tests/compiler/lower/compiled.h"

namespace ingot::builder {
namespace {

using driver::Elements;
using driver::Floats;
using driver::Numbers;
using ir::Expr;
using ir::Int64;
using ir::Var;
using te::Indices;

constexpr auto kFloat32 = DataType::Float(32);

using Body = std::function<te::Tensor(std::span<const te::Tensor>)>;

// One function over these parameters whose body is one tensor expression of them.
std::unique_ptr<driver::JitModule> Compile(const std::vector<Var>& params, const std::vector<Expr>& arguments,
                                           const Body& body) {
  BlockBuilder b;
  b.Function("main", params, [&]() -> Expr {
    return b.EmitTe("expression", arguments, [&](std::span<const te::Tensor> in) { return std::vector{body(in)}; });
  });
  const Result<ir::IRModule> module = b.Finish();
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  auto jit = test::CompileJit(*module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  return *std::move(jit);
}

Tensor CallOne(driver::JitModule& jit, std::initializer_list<Tensor> inputs) {
  const Result<std::vector<Tensor>> results = jit.Call("main", inputs);
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  REQUIRE(results->size() == 1);
  return (*results)[0];
}

TEST_CASE("peers: tensor expressions") {
  const ir::PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m");
  const Var x = TensorVar("x", {n});
  DOCTEST_SUBCASE("two vectors in a row") {
    const Var y = TensorVar("y", {m});
    const auto jit = Compile({x, y}, {x, y}, [](std::span<const te::Tensor> in) {
      const ir::PrimExpr size = in[0].shape()[0];
      return te::Compute(
          {size + in[1].shape()[0]},
          [&](const Indices& i) { return ir::IfThenElse(i[0] < size, in[0](i[0]), in[1](i[0] - size)); }, "row");
    });
    CHECK(Elements(CallOne(*jit, {Floats({1}, {7}), Floats({2}, {8, 9})})) == Numbers{7, 8, 9});
    CHECK(Elements(CallOne(*jit, {Floats({2}, {7, 8}), Floats({1}, {9})})) == Numbers{7, 8, 9});
  }
  DOCTEST_SUBCASE("another dtype") {
    const auto jit = Compile({x}, {x}, [](std::span<const te::Tensor> in) {
      return te::Compute(
          in[0].shape(), [&](const Indices& i) { return ir::Cast(DataType::Int(16), in[0](i)); }, "cast");
    });
    const Tensor y = CallOne(*jit, {Floats({3}, {1.5, -2.5, 300})});
    CHECK(y.TypeToString() == "int16[3]");
    const auto elements = y.Elements<int16_t>();
    CHECK(std::vector<int>(elements.begin(), elements.end()) == std::vector<int>{1, -2, 300});
  }
  DOCTEST_SUBCASE("half as many") {
    const auto jit = Compile({x}, {x}, [](std::span<const te::Tensor> in) {
      return te::Compute(
          {ir::FloorDiv(in[0].shape()[0], Int64(2))},
          [&](const Indices& i) { return in[0](i) + ir::FloatImm(kFloat32, 1); }, "half");
    });
    CHECK(Elements(CallOne(*jit, {Floats({5}, {1, 2, 3, 4, 5})})) == Numbers{2, 3});
    CHECK(Elements(CallOne(*jit, {Floats({2}, {1, 2})})) == Numbers{2});
  }
  DOCTEST_SUBCASE("sizes that depend on each other") {
    const Var y = TensorVar("y", {ir::FloorDiv(n, Int64(2)) + Int64(1)});
    const auto jit = Compile({x, y}, {x, y}, [](std::span<const te::Tensor> in) {
      return te::Compute(
          in[0].shape(), [&](const Indices& i) { return in[0](i) + in[1](ir::FloorDiv(i[0], Int64(2))); }, "sum");
    });
    CHECK(Elements(CallOne(*jit, {Floats({5}, {1, 2, 3, 4, 5}), Floats({3}, {10, 20, 30})})) ==
          Numbers{11, 12, 23, 24, 35});
    const Result<std::vector<Tensor>> wrong = jit->Call("main", {Floats({5}, {1, 2, 3, 4, 5}), Floats({2}, {10, 20})});
    CHECK(wrong.status().message() ==
          "in-process module: function \"main\", parameter \"y\": expected float32[n // 2 + 1], got float32[2] (axis 0 "
          "should be 3)");
  }
  DOCTEST_SUBCASE("a size that only the other parameter knows") {
    const Var y = TensorVar("y", {n + Int64(1)});
    const auto jit = Compile({x, y}, {y}, [](std::span<const te::Tensor> in) {
      return te::Compute(
          in[0].shape(), [&](const Indices& i) { return in[0](i); }, "same");
    });
    CHECK(Elements(CallOne(*jit, {Floats({2}, {1, 2}), Floats({3}, {7, 8, 9})})) == Numbers{7, 8, 9});
  }
  DOCTEST_SUBCASE("a constant") {
    const Tensor two = Floats({2}, {10, 20});
    const auto* bytes = static_cast<const std::byte*>(two.data());
    const Expr constant = ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(kFloat32, {2}, {bytes, bytes + 8}));
    const Var fixed = TensorVar("x", {Int64(2)});
    const auto jit = Compile({fixed}, {fixed, constant}, [](std::span<const te::Tensor> in) {
      return te::Compute(
          in[0].shape(), [&](const Indices& i) { return in[0](i) + in[1](i); }, "sum");
    });
    CHECK(Elements(CallOne(*jit, {Floats({2}, {1, 2})})) == Numbers{11, 22});
  }
}

}  // namespace
}  // namespace ingot::builder
