// Dims that a model leaves open. The cases of every operator are written as modules with a symbol for every dim, and
// run on tensors of which one dim after the other is changed. Dims that the operator refuses when they are constant are
// refused at run time; dims that it accepts are computed, 1 against n too. So the table of op/assumed_dims.h cannot
// lack an entry.
#include "compiler/op/assumed_dims.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "compiler/builder/block_builder.h"
#include "compiler/op/blocked.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "tests/compiler/jit_module.h"
#include "tests/compiler/op/cases.h"

namespace ingot::op {
namespace {

// Dims that an operator needs as constants: one dim of an operand (counted from the end when negative), all of them, or
// those from the third one on.
constexpr int kAll = 99, kSpatial = 98;
struct ConstantDim {
  std::string_view row;
  size_t operand;
  int axis;
};
constexpr ConstantDim kConstantDims[] = {
    // These are parts of what the operator is.
    {"gather_nd", 1, -1},
    {"matmul_bytes", 1, 2},
    {"matmul_integer", 2, -1},
    {"matmul_integer", 3, -2},
    {"matmul_packed", 1, 2},
    {"nn.attention", 0, 2},
    {"nn.attention", 0, 3},
    {"nn.attention", 1, 2},
    {"nn.conv2d_bytes", 0, 4},
    {"nn.conv2d_bytes", 1, 2},
    {"nn.conv2d_bytes", 1, 3},
    {"nn.conv2d_bytes", 1, 4},
    {"nn.conv2d_bytes", 1, 5},
    {"nn.conv2d_pairs", 0, 4},
    {"nn.conv2d_pairs", 1, 2},
    {"nn.conv2d_pairs", 1, 3},
    {"nn.conv2d_pairs", 1, 4},
    {"nn.conv2d_pairs", 1, 5},
    {"nn.gru", 0, 2},
    {"nn.gru", 1, kAll},
    {"nn.linear_attention", 0, 2},
    {"nn.linear_attention", 1, 2},
    {"nn.linear_attention", 2, 2},
    {"nn.linear_attention", 3, 1},
    {"nn.linear_attention", 3, 2},
    {"nn.linear_attention", 3, 3},
    {"nn.linear_attention", 4, 2},
    {"nn.linear_attention", 5, 2},
    {"nn.lstm", 0, 2},
    {"nn.lstm", 1, kAll},
    {"nn.rnn", 0, 2},
    {"nn.rnn", 1, kAll},
    {"nn.winograd_output", 0, 1},
    {"nn.winograd_output", 0, 2},
    {"pairwise_coupling", 0, 1},
    {"pairwise_coupling", 0, 2},
    {"scatter_nd", 1, -1},
    {"squeeze", 0, kAll},  // without names of axes a symbol is none of 1
};

bool IsConstant(const OpCase& c, size_t operand, size_t axis) {
  const auto rank = static_cast<int>(c.inputs[operand].dims.size());
  return std::ranges::any_of(kConstantDims, [&](const ConstantDim& dim) {
    const int at = dim.axis < 0 ? dim.axis + rank : dim.axis;
    const bool is_named = dim.axis == kAll || (dim.axis == kSpatial && axis >= 2) || at == static_cast<int>(axis);
    return dim.row == c.op && dim.operand == operand && is_named;
  });
}

// One dim of an operand.
struct Place {
  size_t operand, axis;
};

// A function of the case's call, each dim a symbol of its own, but one that may be known to be 0.
Result<ir::IRModule> SymbolicModule(const OpCase& c, std::optional<Place> empty = std::nullopt) {
  std::vector<ir::Var> params;
  std::vector<ir::Expr> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Dims dims;
    for (size_t axis = 0; axis < c.inputs[i].dims.size(); ++axis) {
      const std::string name = "n" + std::to_string(i) + std::to_string(axis);
      dims.push_back(IsConstant(c, i, axis) ? ir::Int64(c.inputs[i].dims[axis]) : ir::PrimExpr(ir::MakePrimVar(name)));
      if (empty && empty->operand == i && empty->axis == axis) dims.back() = ir::Int64(0);
    }
    params.push_back(ir::Make<ir::VarNode>("x" + std::to_string(i),
                                           ir::Make<ir::TensorTypeNode>(std::move(dims), c.inputs[i].dtype)));
    inputs.push_back(params.back());
  }
  builder::BlockBuilder builder;
  builder.Function("main", params, [&]() -> ir::Expr {
    return builder.EmitOp(c.op, c.args != nullptr ? c.args(inputs) : inputs, c.attrs);
  });
  return builder.Finish();
}

Tensor ToTensor(const ReferenceTensor& tensor) {
  const std::vector<std::byte> bytes = PackReference(tensor);
  return Tensor::FromBytes(tensor.dtype, tensor.dims, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()})
      .value();
}

Result<std::vector<ReferenceTensor>> Run(driver::JitModule& module, const std::vector<ReferenceTensor>& inputs) {
  std::vector<Tensor> tensors;
  for (const ReferenceTensor& input : inputs) tensors.push_back(ToTensor(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Tensor> results, module.Call("main", tensors));
  std::vector<ReferenceTensor> references;
  for (const Tensor& result : results) {
    const std::span<const uint8_t> bytes = result.bytes();
    references.push_back(UnpackReference(result.dtype(), {result.dims().begin(), result.dims().end()},
                                         {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
  }
  return references;
}

// The tensor with another extent along the axis; its elements are repeated to fill it.
ReferenceTensor Resized(const ReferenceTensor& tensor, size_t axis, int64_t extent) {
  std::vector<int64_t> dims = tensor.dims;
  dims[axis] = extent;
  ReferenceTensor result = NewReference(tensor.dtype, dims);
  const int64_t count = CountOf(dims), have = CountOf(tensor.dims);
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.dtype.is_floating()) {
      SetNumber(result, i, GetNumber(tensor, i % have));
    } else {
      result.ints[static_cast<size_t>(i)] = tensor.ints[static_cast<size_t>(i % have)];
    }
  }
  return result;
}

// What the case does with constant dims: it is refused, or gives results. Nothing when the reference evaluation fails
// (an index outside of the data).
struct Expected {
  bool refused = false;
  std::vector<ReferenceTensor> results;
};
std::optional<Expected> ExpectedOf(const OpCase& c) {
  const Result<ir::Call> call = CallOf(c);
  if (!call.ok()) return Expected{true, {}};
  Result<std::vector<ReferenceTensor>> results = FindOp(c.op)->reference(*call, c.inputs);
  if (!results.ok()) return std::nullopt;
  return Expected{false, *std::move(results)};
}

// A few cases of an operator, of different ranks, whose tensors have elements.
std::vector<const OpCase*> CasesOf(const OpRow& row) {
  const size_t most = row.fusion == FusionClass::kOpaque || row.fusion == FusionClass::kOutFusible ? 2 : 1;
  std::set<std::string> seen;
  std::vector<const OpCase*> cases;
  for (const OpCase& c : AllCases()) {
    if (c.op != row.name || c.inputs.empty() || cases.size() == most) continue;
    std::string kind;
    bool has_dims = false, has_elements = true;
    for (const ReferenceTensor& input : c.inputs) {
      kind += std::to_string(input.dims.size()) + ",";
      has_dims = has_dims || !input.dims.empty();
      has_elements = has_elements && CountOf(input.dims) > 0;
    }
    const Result<ir::Call> call = CallOf(c);
    const bool has_blocks = call.ok() && HasBlocks(*call);  // of layouts that come later than symbols of a model
    if (has_dims && has_elements && !has_blocks && seen.insert(kind).second) cases.push_back(&c);
  }
  return cases;
}

void CheckCase(const OpCase& c) {
  CAPTURE(c.Name());
  const Result<ir::IRModule> built = SymbolicModule(c);
  CHECK_MESSAGE(built.ok(), built.status().message());
  if (!built.ok()) return;
  const std::string text = script::PrintModule(*built);
  const Result<ir::IRModule> module = script::ParseModule(text, "module.py");
  CHECK_MESSAGE(module.ok(), module.status().message(), text);
  if (!module.ok()) return;
  driver::JitOptions options;
  options.compile.opt_level = 1;
  vm::InstanceOptions instance;
  instance.num_threads = 1;
  options.instance = vm::Instance::Create(instance).value();
  const Result<std::unique_ptr<driver::JitModule>> jit = driver::JitModule::Compile(*module, options);
  CHECK_MESSAGE(jit.ok(), jit.status().message(), text);
  if (!jit.ok()) return;
  const auto check = [&](const OpCase& changed, const std::string& what) {
    // A threshold that is left out has no elements, as its type says; one of a symbolic length has one.
    const bool is_left_out = c.op == "vision.all_class_non_max_suppression" && CountOf(changed.inputs[4].dims) == 0;
    if (is_left_out) return;
    const std::optional<Expected> expected = ExpectedOf(changed);
    if (!expected) return;
    CAPTURE(what);
    const Result<std::vector<ReferenceTensor>> got = Run(**jit, changed.inputs);
    if (expected->refused) {
      CHECK_MESSAGE(!got.ok(), "not refused");
      return;
    }
    CHECK_MESSAGE(got.ok(), got.status().message());
    if (!got.ok()) return;
    REQUIRE(got->size() == expected->results.size());
    const std::string difference = Compare(changed, expected->results, *got);
    CHECK_MESSAGE(difference.empty(), difference);
  };
  check(c, "as it is");
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    for (size_t axis = 0; axis < c.inputs[i].dims.size(); ++axis) {
      if (IsConstant(c, i, axis)) continue;
      const int64_t extent = c.inputs[i].dims[axis];
      for (int64_t other : std::set<int64_t>{0, 1, extent - 1, extent + 1}) {
        if (other == extent || other < 0) continue;
        OpCase changed = c;
        changed.inputs[i] = Resized(c.inputs[i], axis, other);
        check(changed, "dim " + std::to_string(axis) + " of input " + std::to_string(i) + ": " + std::to_string(other) +
                           " for " + std::to_string(extent));
      }
    }
  }
}

TEST_CASE("dims that nobody proved equal are compared at run time, for every operator") {
  for (const OpRow* row : AllOps()) {
    if (row->is_primitive) continue;
    // An element-wise operator of one tensor assumes nothing: the result has the tensor's dims.
    if (row->fusion == FusionClass::kElementwise && row->arg_names.size() == 1) continue;
    for (const OpCase* c : CasesOf(*row)) CheckCase(*c);
  }
}

// The operands of a call in which one dim is 0, and all others that are no constants as well if everything is.
OpCase Emptied(const OpCase& c, Place place, bool everything) {
  OpCase emptied = c;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    for (size_t axis = 0; axis < c.inputs[i].dims.size(); ++axis) {
      const bool is_place = i == place.operand && axis == place.axis;
      if (is_place || (everything && !IsConstant(c, i, axis))) {
        emptied.inputs[i] = Resized(emptied.inputs[i], axis, 0);
      }
    }
  }
  return emptied;
}

TEST_CASE("a dim that is known to be 0 is refused only where every call with it would be") {
  size_t num_refused = 0;
  for (const OpRow* row : AllOps()) {
    if (row->is_primitive) continue;
    for (const OpCase* c : CasesOf(*row)) {
      for (size_t i = 0; i < c->inputs.size(); ++i) {
        for (size_t axis = 0; axis < c->inputs[i].dims.size(); ++axis) {
          if (IsConstant(*c, i, axis)) continue;
          const Result<ir::IRModule> built = SymbolicModule(*c, Place{i, axis});
          if (built.ok()) continue;
          ++num_refused;
          for (const bool everything : {false, true}) {
            const Result<ir::Call> call = CallOf(Emptied(*c, {i, axis}, everything));
            CHECK_MESSAGE(!call.ok(), c->Name(), ", input ", i, ", axis ", axis, ", everything ", everything, ": ",
                          built.status().message());
          }
        }
      }
    }
  }
  CHECK(num_refused > 0);
}

// The two dims that differ, each by its name and value, however many alternatives the formula has.
TEST_CASE("the message of dims that do not broadcast names them") {
  const Result<ir::IRModule> module = script::ParseModule(R"(
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", "k"), "float32"), z: R.Tensor(("p", 4), "float32")):
        a = R.add(x, y)
        b = R.add(a, z)
        return b
)",
                                                          "module.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const Result<std::unique_ptr<driver::JitModule>> jit = driver::JitModule::Compile(*module, {});
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const auto message = [&](std::vector<int64_t> x, std::vector<int64_t> y, std::vector<int64_t> z) -> std::string {
    const DataType dtype = DataType::Float(32);
    const auto results = Run(**jit, {NewReference(dtype, x), NewReference(dtype, y), NewReference(dtype, z)});
    return std::string(results.status().message());
  };
  CHECK(message({2, 4}, {1, 1}, {2, 4}) == "");
  CHECK(message({1, 4}, {3, 4}, {3, 4}) == "");
  CHECK(message({2, 4}, {3, 4}, {2, 4}).find("is m = 3, expected n = 2") != std::string::npos);
  CHECK(message({2, 4}, {2, 3}, {2, 4}).find("is k = 3, expected 4") != std::string::npos);
  CHECK(message({2, 4}, {1, 4}, {3, 4}).find("is p = 3, expected n = 2") != std::string::npos);
  CHECK(message({1, 4}, {2, 4}, {3, 4}).find("is p = 3, expected 2") != std::string::npos);
}

// Operands may stand in a tuple that is a variable: the result of another call, or a tuple that is bound to a name.
TEST_CASE("operands that a tuple variable holds are compared, too") {
  const Result<ir::IRModule> module = script::ParseModule(R"(
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", "k"), "float32")):
        t = (x, y)
        z = R.concat(t, axis=0)
        parts = R.split(z, 2, axis=1)
        w = R.concat(parts, axis=-1)
        return w
)",
                                                          "module.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const Result<std::unique_ptr<driver::JitModule>> jit = driver::JitModule::Compile(*module, {});
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const auto called = [&](std::vector<int64_t> dims) {
    return Run(**jit, {NewReference(DataType::Float(32), {2, 4}), NewReference(DataType::Float(32), std::move(dims))});
  };
  CHECK(called({3, 4}).ok());
  CHECK_FALSE(called({3, 5}).ok());
  CHECK_FALSE(called({3, 3}).ok());
}

}  // namespace
}  // namespace ingot::op
