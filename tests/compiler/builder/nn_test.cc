// nn: names and order of parameters, exported text, and results against plain loops.
#include "compiler/builder/nn.h"

#include <doctest/doctest.h>

#include <cmath>

#include "compiler/builder/layers.h"
#include "compiler/script/printer.h"
#include "tests/compiler/jit_module.h"
#include "tests/compiler/round_trip.h"

namespace ingot::nn {
namespace {

struct Mlp : Layer {
  Linear& fc1 = Add<Linear>("fc1", 6, 5);
  Linear& fc2 = Add<Linear>("fc2", 5, 3);
  Value Forward(const Value& x) const override { return fc2.Forward(Relu(fc1.Forward(x))); }
};

Tensor Ramp(std::vector<int64_t> dims, float start) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), dims).value();
  int64_t i = 0;
  for (float& element : tensor.MutableElements<float>()) element = start + static_cast<float>(i++ * 7 % 11) * 0.25F - 1;
  return tensor;
}

// Sets every parameter to numbers of its own.
void Fill(const Module& module) {
  float start = 0;
  for (const Module::NamedParameter& named : module.NamedParameters()) {
    REQUIRE(named.parameter->SetData(Ramp(named.parameter->dims(), start += 0.125F)).ok());
  }
}

std::vector<Tensor> RunExported(const Exported& exported, const std::string& name, const std::vector<Tensor>& inputs) {
  const auto bound = transform::BindParams(exported.module, name, exported.Constants());
  REQUIRE_MESSAGE(bound.ok(), bound.status().message());
  CHECK(script::testing::ReadBackDifference(exported.module) == "");
  CHECK(script::testing::ReadBackDifference(*bound) == "");
  const auto jit = test::CompileJit(*bound);
  REQUIRE_MESSAGE(jit.ok(), jit.status().message());
  auto results = (*jit)->Call(name, inputs);
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  return *std::move(results);
}

TEST_CASE("an exported model takes inputs, then parameters in order of definition") {
  const auto exported = Export(Mlp(), {"x", {ir::Int64(1), ir::Int64(6)}});
  REQUIRE_MESSAGE(exported.ok(), exported.status().message());
  const ir::Function forward = exported->module.FindFunction("forward");
  std::string params;
  for (const ir::Var& param : forward->params) params += param->name + ": " + script::PrintType(param->type) + "\n";
  CHECK(params == R"(x: R.Tensor((1, 6), dtype="float32")
fc1_weight: R.Tensor((5, 6), dtype="float32")
fc1_bias: R.Tensor((5,), dtype="float32")
fc2_weight: R.Tensor((3, 5), dtype="float32")
fc2_bias: R.Tensor((3,), dtype="float32")
)");
  const std::string text = script::PrintFunction("forward", forward);
  CHECK(text.substr(text.find("    R.func_attr(")) == R"(    R.func_attr({"num_input": 1})
    with R.dataflow():
        permute_dims: R.Tensor((6, 5), dtype="float32") = R.permute_dims(fc1_weight, axes=None)
        matmul: R.Tensor((1, 5), dtype="float32") = R.matmul(x, permute_dims, out_dtype=None)
        add: R.Tensor((1, 5), dtype="float32") = R.add(matmul, fc1_bias)
        relu: R.Tensor((1, 5), dtype="float32") = R.nn.relu(add)
        permute_dims1: R.Tensor((5, 3), dtype="float32") = R.permute_dims(fc2_weight, axes=None)
        matmul1: R.Tensor((1, 3), dtype="float32") = R.matmul(relu, permute_dims1, out_dtype=None)
        gv: R.Tensor((1, 3), dtype="float32") = R.add(matmul1, fc2_bias)
        R.output(gv)
    return gv
)");
  std::string names;
  for (const ExportedParameter& parameter : exported->parameters) names += parameter.name + " ";
  CHECK(names == "fc1.weight fc1.bias fc2.weight fc2.bias ");
  CHECK(exported->Constants().empty());
}

TEST_CASE("linear layers compute what they say") {
  Mlp model;
  Fill(model);
  const auto exported = Export(model, {"x", {ir::MakePrimVar("n"), ir::Int64(6)}}, "main");
  REQUIRE_MESSAGE(exported.ok(), exported.status().message());
  CHECK(exported->Constants().size() == 4);
  const Tensor x = Ramp({2, 6}, 0.5F);
  const Tensor y = RunExported(*exported, "main", {x})[0];
  const auto dense = [](const std::vector<float>& in, const Tensor& w, const Tensor& b) {
    std::vector<float> out;
    for (int64_t i = 0; i < w.dim(0); ++i) {
      float sum = b.Elements<float>()[i];
      for (int64_t j = 0; j < w.dim(1); ++j) sum += in[j] * w.Elements<float>()[i * w.dim(1) + j];
      out.push_back(sum);
    }
    return out;
  };
  const std::vector<ExportedParameter>& p = exported->parameters;
  for (int64_t row = 0; row < 2; ++row) {
    const auto* begin = x.Elements<float>().data() + row * 6;
    std::vector<float> hidden = dense({begin, begin + 6}, p[0].data, p[1].data);
    for (float& h : hidden) h = std::max(h, 0.0F);
    const std::vector<float> out = dense(hidden, p[2].data, p[3].data);
    for (int64_t i = 0; i < 3; ++i) CHECK(y.Elements<float>()[row * 3 + i] == doctest::Approx(out[i]));
  }
}

// Every layer in one model: an image and a sequence go in.
struct Everything : Module {
  Sequential& image = Add<Sequential>("image");
  Embedding& embed = Add<Embedding>("embed", 10, 8);
  RMSNorm& before = Add<RMSNorm>("before", std::vector<int64_t>{8});
  MultiHeadAttention& attention =
      Add<MultiHeadAttention>("attention", 8, 4, AttentionOptions{.num_kv_heads = 2, .causal = true});
  LayerNorm& after = Add<LayerNorm>("after", std::vector<int64_t>{8});
  GELU& gelu = Add<GELU>("gelu");
  Everything() {
    image.Append<Conv2D>(2, 4, std::array<int64_t, 2>{3, 3}, Conv2DOptions{.padding = {1, 1}});
    image.Append<SiLU>();
    image.Append<Conv2D>(4, 4, std::array<int64_t, 2>{1, 1}, Conv2DOptions{.groups = 2, .bias = false});
    image.Append<ReLU>();
  }
  std::vector<Value> Forward(std::span<const Value> in) const {
    const Value tokens = embed.Forward(in[1]);
    const Value attended = tokens + attention.Forward(before.Forward(tokens));
    return {image.Forward(in[0]), gelu.Forward(after.Forward(attended))};
  }
};

TEST_CASE("every layer exports, compiles and runs") {
  Everything model;
  Fill(model);
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Method method{"main",
                      {{"image", {ir::Int64(1), ir::Int64(2), ir::Int64(5), ir::Int64(5)}},
                       {"tokens", {ir::Int64(1), n}, DataType::Int(64)}},
                      [&](std::span<const Value> in) { return model.Forward(in); }};
  const auto exported = Export(model, std::span(&method, 1));
  REQUIRE_MESSAGE(exported.ok(), exported.status().message());
  std::string names;
  for (const ExportedParameter& parameter : exported->parameters) names += parameter.name + " ";
  CHECK(names ==
        "image.0.weight image.0.bias image.2.weight embed.weight before.weight attention.q_proj.weight "
        "attention.q_proj.bias attention.k_proj.weight attention.k_proj.bias attention.v_proj.weight "
        "attention.v_proj.bias attention.out_proj.weight attention.out_proj.bias after.weight after.bias ");
  Tensor tokens = Tensor::Allocate(DataType::Int(64), std::vector<int64_t>{1, 3}).value();
  for (int64_t i = 0; i < 3; ++i) tokens.MutableElements<int64_t>()[i] = 3 * i + 1;
  const std::vector<Tensor> results = RunExported(*exported, "main", {Ramp({1, 2, 5, 5}, 0), tokens});
  REQUIRE(results.size() == 2);
  CHECK(results[0].TypeToString() == "float32[1, 4, 5, 5]");
  CHECK(results[1].TypeToString() == "float32[1, 3, 8]");
  for (const Tensor& result : results) {
    for (float element : result.Elements<float>()) CHECK(std::isfinite(element));
  }
  // With a causal mask no position sees later ones, so a shorter sequence gives the same first results.
  Tensor fewer = Tensor::Allocate(DataType::Int(64), std::vector<int64_t>{1, 2}).value();
  for (int64_t i = 0; i < 2; ++i) fewer.MutableElements<int64_t>()[i] = 3 * i + 1;
  const std::vector<Tensor> shorter = RunExported(*exported, "main", {Ramp({1, 2, 5, 5}, 0), fewer});
  for (size_t i = 0; i < 16; ++i) {
    CHECK(shorter[1].Elements<float>()[i] == doctest::Approx(results[1].Elements<float>()[i]));
  }
}

TEST_CASE("wrong parameters and shapes are named") {
  Mlp model;
  const std::vector<std::pair<std::string, Tensor>> unknown{{"fc1.weigth", Ramp({5, 6}, 0)}};
  CHECK(model.LoadParameters(unknown).message().find("did you mean \"fc1.weight\"") != std::string::npos);
  const std::vector<std::pair<std::string, Tensor>> wrong{{"fc1.weight", Ramp({6, 5}, 0)}};
  CHECK(model.LoadParameters(wrong).message() == "parameter \"fc1.weight\": expected float32[5, 6], got float32[6, 5]");
  const auto exported = Export(model, {"x", {ir::Int64(1), ir::Int64(7)}});
  REQUIRE_FALSE(exported.ok());
  CHECK_MESSAGE(exported.status().message().find("function \"forward\": matmul") != std::string::npos,
                exported.status().message());
}

}  // namespace
}  // namespace ingot::nn
