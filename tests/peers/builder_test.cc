// Programs made by FunctionBuilder that run, and programs that are refused (tests/peers/README.md).
#include <doctest/doctest.h>

#include "tests/vm/round_trip.h"
#include "vm/program/program_builder.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

Type Vector() { return Type::Tensor(DataType::Float(32), {DimCode(4)}); }
Signature Of(std::vector<Type> params, std::vector<Type> results) {
  Signature signature;
  for (Type& type : params) {
    if (type.is_tensor()) type.storage = vm::Storage::kBorrowed;
    signature.params.push_back({"p" + std::to_string(signature.params.size()), std::move(type)});
  }
  for (Type& type : results)
    signature.results.push_back({"r" + std::to_string(signature.results.size()), std::move(type)});
  return signature;
}

Program With(std::vector<Function> functions) {
  Program program;
  program.devices.push_back({"cpu", 0});
  program.functions = std::move(functions);
  return program;
}

Function OfTwoVectors(const char* name, Builtin builtin) {
  FunctionBuilder f(name, Of({Vector(), Vector()}, {Vector()}));
  const RegisterId y = f.AddRegister(Vector());
  f.AllocOutput(y, 0, {DimCode(4)});
  f.CallBuiltin({}, builtin, {y, f.param(0), f.param(1)}, 0);
  f.Return({y});
  return std::move(f).Finish();
}

struct Running {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Context> context;
  explicit Running(Program program) {
    test::CheckRoundTrip(program);
    auto opened = Executable::FromProgram(*Instance::Create(), std::move(program), "m", OpenOptions());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    executable = *std::move(opened);
    context = *Context::Create(executable);
  }
  std::vector<Value> operator()(const char* name, const std::vector<Value>& arguments) const {
    auto results = context->Invoke(**executable->Find(name), arguments);
    REQUIRE_MESSAGE(results.ok(), results.status().message());
    return *std::move(results);
  }
};

Value Floats(std::vector<float> values) {
  Tensor tensor = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.MutableElements<float>().begin());
  return tensor;
}
std::vector<float> Elements(const Value& value) {
  const auto elements = std::get<Tensor>(value).Elements<float>();
  return {elements.begin(), elements.end()};
}

TEST_CASE("peers: builder") {
  const Value a = Floats({1, 2, 3, 4}), b = Floats({5, 6, 7, 8});
  SUBCASE("execute") {
    const Running run(With({OfTwoVectors("main", Builtin::kAdd)}));
    CHECK(Elements(run("main", {a, b})[0]) == std::vector<float>{6, 8, 10, 12});
  }
  SUBCASE("several functions") {
    const Running run(With({OfTwoVectors("sum", Builtin::kAdd), OfTwoVectors("product", Builtin::kMul)}));
    CHECK(Elements(run("product", {a, b})[0]) == std::vector<float>{5, 12, 21, 32});
    CHECK(Elements(run("sum", {a, b})[0]) == std::vector<float>{6, 8, 10, 12});
  }
  SUBCASE("what was never written") {
    FunctionBuilder f("main", Of({Vector()}, {}));
    const RegisterId x = f.AddRegister(Vector()), y = f.AddRegister(Vector());
    f.Alloc(y, {DimCode(4)});
    f.CallBuiltin({}, Builtin::kAdd, {y, f.param(0), x}, 0);
    f.Return({});
    const auto opened = Executable::FromProgram(*Instance::Create(), With({std::move(f).Finish()}), "m", OpenOptions());
    CHECK(opened.status().message() ==
          "m: function \"main\": instruction 1 (call_builtin): register r1 is not written on every path, or released "
          "[WrittenBeforeRead]");
  }
  SUBCASE("negative numbers") {
    FunctionBuilder f("main", Of({Type::Int()}, {Type::Int(), Type::Int()}));
    const RegisterId minus = f.AddRegister(Type::Int()), sum = f.AddRegister(Type::Int());
    f.ConstInt(minus, -3);
    f.Dim(sum, DimCode::Binary(DimOp::kAdd, DimCode::Slot(f.param(0).value), DimCode(-3)));
    f.Return({minus, sum});
    const Running run(With({std::move(f).Finish()}));
    for (const int64_t i : {1, -3}) {
      const std::vector<Value> results = run("main", {i});
      CHECK(std::get<int64_t>(results[0]) == -3);
      CHECK(std::get<int64_t>(results[1]) == i - 3);
    }
  }
  SUBCASE("operands") {
    FunctionBuilder f("main", Of({Type::Int(), Type::Int(), Type::DType()}, {Type::Int(), Type::DType()}));
    const RegisterId sum = f.AddRegister(Type::Int());
    f.Dim(sum, DimCode::Binary(DimOp::kAdd, DimCode::Slot(f.param(0).value), DimCode::Slot(f.param(1).value)));
    f.Return({sum, f.param(2)});
    const Running run(With({std::move(f).Finish()}));
    const std::vector<Value> results = run("main", {int64_t{2}, int64_t{3}, DataType::Int(8)});
    CHECK(std::get<int64_t>(results[0]) == 5);
    CHECK(std::get<DataType>(results[1]) == DataType::Int(8));
  }
  SUBCASE("jump") {
    FunctionBuilder f("main", Of({Vector(), Vector()}, {Vector()}));
    const RegisterId y = f.AddRegister(Vector());
    const LabelId done = f.NewLabel();
    f.Alloc(y, {DimCode(4)});
    f.CallBuiltin({}, Builtin::kAdd, {y, f.param(0), f.param(1)}, 0);
    f.Jump(done);
    f.CallBuiltin({}, Builtin::kMul, {y, f.param(0), f.param(1)}, 0);
    f.Bind(done);
    f.Return({y});
    const Running run(With({std::move(f).Finish()}));
    CHECK(Elements(run("main", {a, b})[0]) == std::vector<float>{6, 8, 10, 12});
  }
  SUBCASE("branch") {
    FunctionBuilder f("main", Of({Type::Bool(), Vector(), Vector()}, {Vector()}));
    const RegisterId y = f.AddRegister(Vector());
    const LabelId sum = f.NewLabel(), product = f.NewLabel(), done = f.NewLabel();
    f.Alloc(y, {DimCode(4)});
    f.Branch(f.param(0), sum, product);
    f.Bind(sum);
    f.CallBuiltin({}, Builtin::kAdd, {y, f.param(1), f.param(2)}, 0);
    f.Jump(done);
    f.Bind(product);
    f.CallBuiltin({}, Builtin::kMul, {y, f.param(1), f.param(2)}, 0);
    f.Bind(done);
    f.Return({y});
    const Running run(With({std::move(f).Finish()}));
    CHECK(Elements(run("main", {false, a, b})[0]) == std::vector<float>{5, 12, 21, 32});
    CHECK(Elements(run("main", {true, a, b})[0]) == std::vector<float>{6, 8, 10, 12});
  }
  SUBCASE("closures from outside") {
    // lifted(w, x, y, z) adds its arguments; main binds the first two and returns the closure, which another function
    // calls.
    FunctionBuilder lifted("lifted", Of({Vector(), Vector(), Vector(), Vector()}, {Vector()}), false);
    const RegisterId t = lifted.AddRegister(Vector()), u = lifted.AddRegister(Vector());
    lifted.Alloc(t, {DimCode(4)});
    lifted.Alloc(u, {DimCode(4)});
    lifted.CallBuiltin({}, Builtin::kAdd, {t, lifted.param(0), lifted.param(1)}, 0);
    lifted.CallBuiltin({}, Builtin::kAdd, {u, t, lifted.param(2)}, 0);
    lifted.CallBuiltin({}, Builtin::kAdd, {t, u, lifted.param(3)}, 0);
    lifted.Return({t});
    Type borrowed = Vector();
    borrowed.storage = vm::Storage::kBorrowed;
    const Type remaining = Type::Closure({borrowed, borrowed}, {Vector()});
    FunctionBuilder main("main", Of({Vector(), Vector()}, {remaining}));
    const RegisterId w = main.AddRegister(Vector()), x = main.AddRegister(Vector()), made = main.AddRegister(remaining);
    main.Copy(w, main.param(0), 0);
    main.Copy(x, main.param(1), 0);
    main.MakeClosure(made, FunctionId(0), {w, x});
    main.Return({made});
    FunctionBuilder apply("apply", Of({remaining, Vector(), Vector()}, {Vector()}));
    const RegisterId y = apply.AddRegister(Vector());
    apply.CallClosure({y}, apply.param(0), {apply.param(1), apply.param(2)});
    apply.Return({y});
    const Running run(With({std::move(lifted).Finish(), std::move(main).Finish(), std::move(apply).Finish()}));
    const Value closure = run("main", {a, b})[0];
    CHECK(Elements(run("apply", {closure, a, a})[0]) == std::vector<float>{8, 12, 16, 20});
    CHECK(Elements(run("apply", {closure, a, b})[0]) == std::vector<float>{12, 16, 20, 24});
  }
}

}  // namespace
}  // namespace ingot::vm
