// The BlockBuilder: what it builds as text, what runs, and what it refuses.
#include "compiler/builder/block_builder.h"

#include <doctest/doctest.h>

#include "compiler/script/printer.h"
#include "tests/compiler/jit_module.h"
#include "tests/compiler/round_trip.h"

namespace ingot::builder {
namespace {

using ir::Expr;
using ir::Var;

std::string Text(const BlockBuilder& b) {
  const Result<ir::IRModule> module = b.Finish();
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  CHECK(script::testing::ReadBackDifference(*module) == "");
  const std::string text = script::PrintModule(*module);
  return text;
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("nested calls are bound and typed, outputs leave their block without aliases") {
  BlockBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Var x = TensorVar("x", {n, ir::Int64(8)}), w = TensorVar("w", {ir::Int64(8), ir::Int64(4)});
  b.Function("main", {x, w}, [&]() -> Expr {
    Var out;
    b.Dataflow([&] {
      const Var last = b.EmitOp("nn.softmax", {b.Call("add", {b.Call("matmul", {x, w}), b.Call("matmul", {x, w})})});
      out = b.EmitOutput(last, "out");
    });
    return out;
  });
  const std::string text = Text(b);
  CHECK_MESSAGE(Has(text, R"(
        with R.dataflow():
            lv: R.Tensor((n, 4), dtype="float32") = R.matmul(x, w, out_dtype=None)
            lv1: R.Tensor((n, 4), dtype="float32") = R.matmul(x, w, out_dtype=None)
            lv2: R.Tensor((n, 4), dtype="float32") = R.add(lv, lv1)
            out: R.Tensor((n, 4), dtype="float32") = R.nn.softmax(lv2, axis=-1)
            R.output(out)
        return out)"),
                text);
}

TEST_CASE("branches, tuples, match_cast, closures and recursion") {
  BlockBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n"), m = ir::MakePrimVar("m");
  const Var flag = TensorVar("flag", {}, DataType::Bool()), x = TensorVar("x", {n});
  const ir::Type vector = ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{n}, DataType::Float(32));
  b.Function("main", {flag, x}, [&]() -> Expr {
    const Var chosen = b.If(
        flag, [&] { return b.Call("exp", {x}); }, [&] { return b.Call("negative", {x}); }, "chosen");
    const Var pair = b.Emit(ir::Make<ir::TupleNode>(std::vector<Expr>{chosen, x}));
    const Var first = b.Emit(ir::Make<ir::TupleGetItemNode>(pair, 0));
    const Var y = TensorVar("y", {m});
    const Var local = b.LocalFunction("twice", {y}, [&](const Var& self) -> Expr {
      CHECK(self == nullptr);
      return b.Call("add", {y, y});
    });
    const Var doubled = b.Emit(ir::Make<ir::CallNode>(local, std::vector<Expr>{first}));
    return b.MatchCast(doubled, vector);
  });
  const Var count = TensorVar("count", {}, DataType::Int(64));
  const ir::Type scalar = ir::Make<ir::TensorTypeNode>(std::vector<ir::PrimExpr>{}, DataType::Int(64));
  const ir::GlobalVar loop = b.Declare("loop", {count}, scalar);
  b.Define(loop, {count}, [&]() -> Expr {
    const Var done = b.EmitOp("less_equal", {count, count});
    return b.If(
        done, [&]() -> Expr { return count; },
        [&]() -> Expr { return ir::Make<ir::CallNode>(loop, std::vector<Expr>{count}); });
  });
  const std::string text = Text(b);
  CHECK_MESSAGE(Has(text, "if flag:"), text);
  CHECK_MESSAGE(Has(text, "chosen: R.Tensor((n,), dtype=\"float32\") = gv"), text);
  CHECK_MESSAGE(Has(text, "R.match_cast("), text);
  CHECK_MESSAGE(Has(text, "cls.loop(count)"), text);
}

TEST_CASE("tensor expressions become shared tensor functions, which run") {
  BlockBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Var x = TensorVar("x", {n});
  const auto twice = [](std::span<const te::Tensor> in) {
    const te::Tensor& a = in[0];
    return std::vector{te::Compute(
        a.shape(), [&](const te::Indices& i) { return a(i) + a(i); }, "twice")};
  };
  b.Function("main", {x}, [&]() -> Expr { return b.EmitTe("twice", {b.EmitTe("twice", {x}, twice)}, twice); });
  const Result<ir::IRModule> module = b.Finish();
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  CHECK(module->size() == 2);
  CHECK(script::testing::ReadBackDifference(*module) == "");
  const auto jit = test::CompileJit(*module);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  const Tensor input = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{3}).value();
  for (int i = 0; i < 3; ++i) input.MutableElements<float>()[i] = static_cast<float>(i) + 0.5F;
  const auto results = (*jit)->Call("main", {input});
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  for (int i = 0; i < 3; ++i) CHECK((*results)[0].Elements<float>()[i] == 4 * input.Elements<float>()[i]);
}

TEST_CASE("extents that no dimension is alone become scalars of the tensor function") {
  BlockBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Var x = TensorVar("x", {n}), y = TensorVar("y", {n * ir::Int64(2)});
  b.Function("main", {x, y}, [&]() -> Expr {
    return b.EmitTe("head", {y}, [](std::span<const te::Tensor> in) {
      const te::Tensor& a = in[0];
      return std::vector{te::Compute(
          a.shape(), [&](const te::Indices& i) { return a(i); }, "head")};
    });
  });
  const std::string text = Text(b);
  CHECK_MESSAGE(Has(text, "R.call_tir(cls.head, (y,), R.shape([n]), out_ty=R.Tensor((n * 2,), dtype=\"float32\"))"),
                text);
}

std::string Refusal(const std::function<void(BlockBuilder& b, const Var& x)>& body) {
  BlockBuilder b;
  const Var x = TensorVar("x", {ir::Int64(4)});
  b.Function("main", {x}, [&]() -> Expr {
    body(b, x);
    return b.EmitOp("nn.relu", {x});
  });
  const Result<ir::IRModule> module = b.Finish();
  CHECK_FALSE(module.ok());
  return module.ok() ? "" : module.status().message();
}

TEST_CASE("the first refusal is told, and nothing happens after it") {
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) { b.EmitOp("nn.reluu", {x}); }), "did you mean \"nn.relu\""));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) {
              const Var y = TensorVar("y", {ir::Int64(5)});
              b.EmitOp("add", {x, y});
            }),
            "function \"main\": add"));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) { b.EmitOutput(x); }), "outside of a dataflow block"));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) {
              b.Dataflow([&] {
                b.If(
                    x, [&]() -> Expr { return x; }, [&]() -> Expr { return x; });
              });
            }),
            "a branch in a dataflow block"));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) { b.Emit(ir::Make<ir::TupleGetItemNode>(x, 0)); }), "element 0"));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var&) { b.Emit(nullptr); }), "null"));
  CHECK(Has(Refusal([](BlockBuilder& b, const Var& x) { b.Function("main", {x}, [&]() -> Expr { return x; }); }),
            "the module has a function \"main\" already"));
  BlockBuilder outside;
  outside.EmitOp("nn.relu", {TensorVar("x", {ir::Int64(4)})});
  CHECK(Has(outside.Finish().status().message(), "outside of a function"));
  // A variable of another function.
  BlockBuilder stray;
  const Var x = TensorVar("x", {ir::Int64(4)});
  stray.Function("main", {}, [&]() -> Expr { return stray.Call("exp", {x}); });
  CHECK(Has(stray.Finish().status().message(), "x is not defined here"));
}

}  // namespace
}  // namespace ingot::builder
