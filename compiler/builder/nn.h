// nn: models as C++ classes. A Module owns named parameters and named children in order of definition; a Layer takes
// one value and gives one. Export runs the forward functions once over symbolic values and gives an IRModule, whose
// functions take the inputs and then every parameter, and the list of parameters with those data that are set.
//
//     struct Mlp : nn::Layer {
//       nn::Linear& fc1 = Add<nn::Linear>("fc1", 784, 256);
//       nn::Linear& fc2 = Add<nn::Linear>("fc2", 256, 10);
//       nn::Value Forward(const nn::Value& x) const override { return fc2.Forward(nn::Relu(fc1.Forward(x))); }
//     };
//     auto exported = nn::Export(Mlp(), {"x", {1, 784}});  // forward(x, fc1_weight, fc1_bias, fc2_weight, fc2_bias)
//
// A refused operation (such as shapes that do not fit) makes Export fail with its message; later ones are ignored.
// Parameters hold values of their own only so that models can be loaded and exported with them; training is not here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/builder/block_builder.h"
#include "compiler/transform/params.h"
#include "runtime/tensor.h"

namespace ingot::nn {

class Parameter;

// A forward function under construction: its builder and the variables of the parameters.
class Graph {
 public:
  explicit Graph(builder::BlockBuilder& builder) : builder_(builder) {}
  builder::BlockBuilder& builder() { return builder_; }
  void Bind(const Parameter& parameter, ir::Var var) { variables_[&parameter] = std::move(var); }
  ir::Var VariableOf(const Parameter& parameter) const;  // INGOT_CHECKs that it belongs to the exported module

 private:
  builder::BlockBuilder& builder_;
  std::unordered_map<const Parameter*, ir::Var> variables_;
};

// A tensor of a forward function.
class Value {
 public:
  Value() = default;
  Value(Graph* graph, ir::Expr expr) : graph_(graph), expr_(std::move(expr)) {}
  Graph& graph() const { return *graph_; }
  const ir::Expr& expr() const { return expr_; }
  // Empty and float32 when an earlier step was refused.
  std::vector<ir::PrimExpr> dims() const;
  DataType dtype() const;

 private:
  Graph* graph_ = nullptr;
  ir::Expr expr_;
};

// ---- Operations on values: operators of the table (compiler/op), whose summaries say what they do.
// Apply calls any operator by name.
Value Apply(std::string_view op, std::span<const Value> inputs, ir::Attrs attrs = {});
inline Value Apply(std::string_view op, std::initializer_list<Value> inputs, ir::Attrs attrs = {}) {
  return Apply(op, std::span(inputs.begin(), inputs.size()), std::move(attrs));
}
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value MatMul(const Value& a, const Value& b);
Value PermuteDims(const Value& x, std::optional<std::vector<int64_t>> axes = std::nullopt);  // none: reversed
Value Reshape(const Value& x, std::vector<ir::PrimExpr> dims);
Value Relu(const Value& x);
Value Gelu(const Value& x);
Value Silu(const Value& x);
Value Softmax(const Value& x, int64_t axis = -1);

// ---- Modules.

class Parameter {
 public:
  Parameter(std::vector<int64_t> dims, DataType dtype) : dims_(std::move(dims)), dtype_(dtype) {}
  const std::vector<int64_t>& dims() const { return dims_; }
  DataType dtype() const { return dtype_; }
  // The parameter as a value of the function that x belongs to.
  Value In(const Value& x) const { return Value(&x.graph(), x.graph().VariableOf(*this)); }
  // Sets the data, which is shared if it is compact; an error unless it has exactly these dims and this dtype.
  Status SetData(const Tensor& data);
  const Tensor& data() const { return data_; }

 private:
  std::vector<int64_t> dims_;
  DataType dtype_;
  Tensor data_;
};

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  struct NamedParameter {
    std::string name;  // "fc1.weight"
    Parameter* parameter;
  };
  // The parameters in order of definition, those of children included.
  std::vector<NamedParameter> NamedParameters() const;
  // Sets parameters by name; a tensor whose name no parameter has is an error.
  Status LoadParameters(std::span<const std::pair<std::string, Tensor>> tensors);

 protected:
  Parameter& AddParameter(std::string name, std::vector<int64_t> dims, DataType dtype = DataType::Float(32));
  template <typename M, typename... Args>
  M& Add(std::string name, Args&&... args) {
    auto child = std::make_unique<M>(std::forward<Args>(args)...);
    M& added = *child;
    members_.push_back({std::move(name), nullptr, std::move(child)});
    return added;
  }

 private:
  struct Member {  // either a parameter or a child
    std::string name;
    std::unique_ptr<Parameter> parameter;
    std::unique_ptr<Module> child;
  };
  std::vector<Member> members_;
};

class Layer : public Module {
 public:
  virtual Value Forward(const Value& x) const = 0;
};

// ---- Export.

struct InputSpec {
  std::string name;
  std::vector<ir::PrimExpr> dims;  // symbolic variables are shared by the inputs of a function
  DataType dtype = DataType::Float(32);
};
struct Method {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<std::vector<Value>(std::span<const Value> inputs)> forward;  // several results become a tuple
};
struct ExportedParameter {
  std::string name;      // "fc1.weight"
  std::string variable;  // "fc1_weight": the parameter of the functions
  std::vector<int64_t> dims;
  DataType dtype;
  Tensor data;  // none when it was not set
};
struct Exported {
  // Each function has the attribute "num_input": the number of inputs, which stand before the parameters.
  ir::IRModule module;
  std::vector<ExportedParameter> parameters;  // in order of definition
  // The parameters that have data, as transform::BindParams takes them.
  std::vector<transform::NamedConstant> Constants() const;
};
Result<Exported> Export(const Module& module, std::span<const Method> methods);
Result<Exported> Export(const Layer& layer, const InputSpec& input, const std::string& name = "forward");

}  // namespace ingot::nn
