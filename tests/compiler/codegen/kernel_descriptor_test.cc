#include "compiler/codegen/kernel_descriptor.h"

#include <doctest/doctest.h>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

using ir::Int64;
using ir::PrimExpr;
using ir::PrimVar;

const DataType kF32 = DataType::Float(32);

int64_t Evaluate(const DimCode& code, std::vector<int64_t> slots) {
  Result<int64_t> value = code.Evaluate(slots);
  REQUIRE(value.ok());
  return *value;
}

TEST_CASE("integer expressions become dimension code") {
  const PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m");
  const std::vector<PrimVar> slots = {n, m};
  const auto value = [&](const PrimExpr& expr, int64_t n_value, int64_t m_value) {
    Result<DimCode> code = LowerToDimCode(expr, slots);
    REQUIRE_MESSAGE(code.ok(), code.status().ToString());
    return Evaluate(*code, {n_value, m_value});
  };
  CHECK(value(n * m + 3, 4, 5) == 23);
  CHECK(value(ir::FloorDiv(n - m, Int64(2)), 0, 3) == -2);
  CHECK(value(ir::MakeBinary(ir::BinaryOp::kDiv, n + 1, Int64(2)), 4, 0) == 2);
  CHECK(value(ir::Max(ir::Min(n, m), Int64(2)), 1, 9) == 2);
  CHECK(value(ir::Select(n > m, n, m), 3, 8) == 8);
  CHECK(value(ir::IfThenElse(ir::And(n >= Int64(2), ir::Not(ir::Equal(m, n))), Int64(1), Int64(0)), 3, 3) == 0);
  CHECK(value(ir::Cast(DataType::Int(64), ir::Or(n < Int64(2), m < Int64(2))), 1, 5) == 1);

  const PrimVar lost = ir::MakePrimVar("lost");
  CHECK(LowerToDimCode(n + lost, slots).status().message() == "the symbolic variable \"lost\" is bound by no argument");
  CHECK(!LowerToDimCode(ir::MakeBinary(ir::BinaryOp::kDiv, n - m, Int64(2)), slots).ok());
  CHECK(!LowerToDimCode(ir::Cast(DataType::Int(32), n), slots).ok());
  PrimExpr sum = ir::Min(n, Int64(0));
  for (int i = 1; i < 16; ++i) sum = sum + ir::Min(m, Int64(i));
  CHECK(LowerToDimCode(sum, slots).ok());  // 63 steps
  CHECK(LowerToDimCode(sum + m, slots).status().message() == "a shape expression needs more than 64 steps");
}

// As the sizes of launches over the elements of a tensor are, whose dims are sums.
TEST_CASE("products that simplification multiplied out are short dimension code") {
  std::vector<PrimVar> slots;
  PrimExpr product = Int64(1);
  for (int i = 0; i < 5; ++i) {
    slots.push_back(ir::MakePrimVar("n" + std::to_string(i)));
    product = product * (slots.back() + (2 * i - 3));
  }
  const PrimExpr blocks = arith::Analyzer().Simplify(ir::FloorDiv(product + 255, Int64(256)));
  Result<DimCode> code = LowerToDimCode(blocks, slots);
  REQUIRE_MESSAGE(code.ok(), code.status().ToString());
  CHECK(code->steps().size() < 30);
  CHECK(Evaluate(*code, {10, 11, 12, 13, 14}) == (7 * 10 * 13 * 16 * 19 + 255) / 256);
}

// out[vi] = in0[vi] + in1[vj] ... as a block over iteration variables.
ir::PrimFunc BlockFunction(const std::vector<ir::Buffer>& buffers, const std::vector<PrimExpr>& domain,
                           const std::vector<ir::IterType>& types,
                           const std::function<ir::Stmt(const std::vector<PrimExpr>&)>& body,
                           const std::function<ir::Stmt(const std::vector<PrimExpr>&)>& init = nullptr) {
  std::vector<ir::IterVar> iter_vars;
  std::vector<PrimExpr> vars, loops;
  std::vector<PrimVar> loop_vars;
  for (size_t i = 0; i < domain.size(); ++i) {
    const PrimVar var = ir::MakePrimVar("v" + std::to_string(i));
    iter_vars.push_back(ir::Make<ir::IterVarNode>(ir::Range{Int64(0), domain[i]}, var, types[i]));
    vars.push_back(var);
    loop_vars.push_back(ir::MakePrimVar("i" + std::to_string(i)));
    loops.push_back(loop_vars.back());
  }
  const ir::Block block =
      ir::Make<ir::BlockNode>("b", iter_vars, std::vector<ir::BufferRegion>{}, std::vector<ir::BufferRegion>{},
                              body(vars), init ? init(vars) : ir::Stmt(nullptr));
  ir::Stmt stmt = ir::Make<ir::BlockRealizeNode>(loops, ir::BoolImm(true), block);
  for (size_t i = domain.size(); i-- > 0;) {
    stmt = ir::Make<ir::ForNode>(loop_vars[i], Int64(0), domain[i], ir::ForKind::kSerial, stmt);
  }
  const ir::Block root = ir::Make<ir::BlockNode>("root", std::vector<ir::IterVar>{}, std::vector<ir::BufferRegion>{},
                                                 std::vector<ir::BufferRegion>{}, stmt);
  return Function(buffers, ir::Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{}, ir::BoolImm(true), root));
}

constexpr ir::IterType kS = ir::IterType::kSpatial, kR = ir::IterType::kReduce;

TEST_CASE("the description of a matrix product") {
  const PrimVar n = ir::MakePrimVar("n"), k = ir::MakePrimVar("k");
  const ir::Buffer a = ir::MakeBuffer("A", kF32, {n, k});
  const ir::Buffer b = ir::MakeBuffer("B", kF32, {k, Int64(10)});
  const ir::Buffer c = ir::MakeBuffer("C", kF32, {n, Int64(10)});
  const ir::PrimFunc function = BlockFunction(
      {a, b, c}, {n, Int64(10), k}, {kS, kS, kR},
      [&](const auto& v) {
        return Store(c, Load(c, {v[0], v[1]}) + Load(a, {v[0], v[2]}) * Load(b, {v[2], v[1]}), {v[0], v[1]});
      },
      [&](const auto& v) {
        return Store(c, ir::FloatImm(kF32, 0), {v[0], v[1]});
      });
  Result<KernelDescription> result = DescribeKernel("matmul", function);
  REQUIRE(result.ok());
  const vm::Kernel& kernel = result->kernel;
  REQUIRE(kernel.ints.size() == 2);
  CHECK(kernel.ints[0].name == "n");
  CHECK(kernel.ints[1].name == "k");
  REQUIRE(kernel.params.size() == 3);
  CHECK(kernel.params[0].role == vm::ParamRole::kIn);
  CHECK(kernel.params[2].role == vm::ParamRole::kOut);
  CHECK(!kernel.params[2].in_place);
  CHECK(Evaluate(kernel.params[1].extents[0], {3, 7}) == 7);
  CHECK(Evaluate(kernel.flops, {3, 7}) == 2 * 3 * 10 * 7);
  CHECK(Evaluate(kernel.bytes, {3, 7}) == 4 * (3 * 7 + 7 * 10 + 3 * 10));
  CHECK(kernel.effects == 0);
  CHECK(kernel.variants.empty());
}

TEST_CASE("an output may share an input's memory only where elements correspond") {
  const PrimVar n = ir::MakePrimVar("n");
  const ir::Buffer a = ir::MakeBuffer("A", kF32, {n, n});
  const ir::Buffer b = ir::MakeBuffer("B", kF32, {n, n});
  const ir::Buffer c = ir::MakeBuffer("C", kF32, {n, n});
  const auto in_place_of = [&](const std::function<ir::Stmt(const std::vector<PrimExpr>&)>& body) {
    Result<KernelDescription> result = DescribeKernel("k", BlockFunction({a, b, c}, {n, n}, {kS, kS}, body));
    REQUIRE(result.ok());
    return result->kernel.params[2].in_place;
  };
  CHECK(in_place_of([&](const auto& v) {
          return Store(c, Load(a, {v[0], v[1]}) + Load(b, {v[0], v[1]}), {v[0], v[1]});
        }) == 0u);
  CHECK(in_place_of([&](const auto& v) {
          return Store(c, Load(a, {v[1], v[0]}) + Load(b, {v[0], v[1]}), {v[0], v[1]});  // A is transposed
        }) == 1u);
  CHECK(!in_place_of([&](const auto& v) {
    return Store(c, Load(a, {v[1], v[0]}) + Load(b, {v[0], v[0]}), {v[0], v[1]});
  }));
  CHECK(!in_place_of([&](const auto& v) {  // elements are visited more than once
    return Store(c, Load(a, {v[0], Int64(0)}), {v[0], Int64(0)});
  }));
  CHECK(!in_place_of([&](const auto& v) {  // read again behind the store
    return ir::MakeSeq({Store(c, Load(b, {v[0], v[1]}), {v[0], v[1]}), Store(a, Load(b, {v[0], v[1]}), {v[0], v[1]})});
  }));
  CHECK(in_place_of([&](const auto& v) {
          return ir::MakeSeq(
              {Store(a, Load(b, {v[0], v[1]}), {v[0], v[1]}), Store(c, Load(b, {v[0], v[1]}), {v[0], v[1]})});
        }) == 1u);
  CHECK(!in_place_of([&](const auto& v) {  // read again by the next turn of a loop in the block
    return Loop(Int64(2), [&](const PrimExpr&) {
      return Store(c, Load(a, {v[0], v[1]}) + Load(b, {v[0], v[1]}), {v[0], v[1]});
    });
  }));
}

TEST_CASE("scalar parameters follow the symbolic variables") {
  const PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m"), alpha = ir::MakePrimVar("alpha", kF32);
  const ir::Buffer a = ir::MakeBuffer("A", kF32, {n, m});
  const ir::PrimFunc function = Function({a},
                                         Loop(n,
                                              [&](const PrimExpr& i) {
                                                return Store(a, alpha, {i, Int64(0)});
                                              }),
                                         {alpha, m});
  const std::vector<PrimVar> ints = KernelIntArguments(function);
  REQUIRE(ints.size() == 3);
  CHECK(ints[0].same_as(n));
  CHECK(ints[1].same_as(alpha));
  CHECK(ints[2].same_as(m));  // a scalar parameter, although a shape names it too
}

TEST_CASE("a variant is added in front, and the workspace is the larger one") {
  vm::Kernel kernel;
  CompiledKernel small, large;
  small.name = large.name = "k";
  small.workspace = DimCode(64);
  large.workspace = DimCode(128);
  AddVariant(small, TargetNamed("x86-64-v3"), 0, &kernel);
  AddVariant(large, TargetNamed("x86-64-v4"), 1, &kernel);
  REQUIRE(kernel.variants.size() == 2);
  CHECK(kernel.variants[0].image == 1);
  CHECK(kernel.variants[0].required_features == TargetNamed("x86-64-v4").required_features);
  CHECK(Evaluate(kernel.workspace, {}) == 128);
}

TEST_CASE("a workspace that another variant has is no further term") {
  const DimCode n = DimCode::Slot(0), four = DimCode(4);
  CompiledKernel narrow, wide, other;
  narrow.name = wide.name = other.name = "k";
  narrow.workspace = DimCode::Binary(DimOp::kMax, DimCode::Binary(DimOp::kMul, n, four), DimCode::Slot(1));
  wide.workspace = DimCode::Select(n, DimCode::Binary(DimOp::kMul, n, n), four);
  other.workspace = DimCode::Binary(DimOp::kMul, n, n);  // stands in another formula, but is no term
  vm::Kernel kernel;
  uint32_t image = 0;
  for (const CompiledKernel* variant : {&narrow, &wide, &narrow, &wide}) {
    AddVariant(*variant, TargetNamed("x86-64-v3"), image++, &kernel);
  }
  CHECK(kernel.workspace == DimCode::Binary(DimOp::kMax, narrow.workspace, wide.workspace));
  AddVariant(other, TargetNamed("x86-64-v3"), image, &kernel);
  CHECK(Evaluate(kernel.workspace, {5, 1}) == 25);
  CHECK(Evaluate(kernel.workspace, {0, 1}) == 4);
  CHECK(kernel.variants.size() == 5);
}

}  // namespace
}  // namespace ingot::codegen::testing
