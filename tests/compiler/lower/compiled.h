// Modules as text that are compiled with and without optimisation and called, for the tests of the language.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/script/parser.h"
#include "tests/compiler/jit_module.h"
#include "vm/run/value_text.h"

namespace ingot::driver {

inline constexpr const char* kHead = R"(
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

@I.ir_module
class Module:
)";

inline Tensor New(DataType dtype, const std::vector<int64_t>& dims) { return Tensor::Allocate(dtype, dims).value(); }

inline Tensor Floats(const std::vector<int64_t>& dims, std::initializer_list<float> values) {
  Tensor tensor = New(DataType::Float(32), dims);
  std::copy(values.begin(), values.end(), static_cast<float*>(tensor.data()));
  return tensor;
}

inline Tensor Truth(bool value) {
  Tensor tensor = New(DataType::Bool(), {});
  *static_cast<bool*>(tensor.data()) = value;
  return tensor;
}

inline Tensor Integer(int64_t value) {
  Tensor tensor = New(DataType::Int(64), {});
  *static_cast<int64_t*>(tensor.data()) = value;
  return tensor;
}

inline std::vector<float> Elements(const vm::Value& value) {
  const Tensor& tensor = std::get<Tensor>(value);
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.view().num_elements};
}

using Numbers = std::vector<float>;

// A module whose functions stand in `body`, compiled at each level.
class Compiled {
 public:
  explicit Compiled(const std::string& body, vm::ContextOptions context = {}, vm::InstanceOptions instance = {}) {
    const Result<ir::IRModule> module = script::ParseModule(kHead + body, "module.py");
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    instance.num_threads = 1;
    for (int level : {0, 2}) {
      JitOptions options;
      options.compile.opt_level = level;
      options.context = context;
      options.instance = vm::Instance::Create(instance).value();
      Result<std::unique_ptr<JitModule>> compiled = test::CompileJit(*module, options);
      REQUIRE_MESSAGE(compiled.ok(), compiled.status().message());
      modules_.push_back(*std::move(compiled));
    }
  }

  // The results, which are the same at every level.
  std::vector<vm::Value> operator()(const char* function, const std::vector<vm::Value>& arguments) {
    std::vector<vm::Value> results;
    for (const auto& module : modules_) {
      Result<std::vector<vm::Value>> called = module->Invoke(function, arguments);
      REQUIRE_MESSAGE(called.ok(), called.status().message());
      results = *std::move(called);
    }
    return results;
  }
  std::string Failure(const char* function, const std::vector<vm::Value>& arguments) {
    std::string message;
    for (const auto& module : modules_) {
      const Result<std::vector<vm::Value>> called = module->Invoke(function, arguments);
      REQUIRE_FALSE(called.ok());
      message = called.status().message();
    }
    return message;
  }
  const std::vector<std::unique_ptr<JitModule>>& modules() const { return modules_; }  // per level
  // The outcome of a call as text, which is the same at every level: values, and tensors by their type, separated by
  // commas; or the failure's message without the module's name.
  std::string Outcome(const char* function, const std::vector<vm::Value>& arguments) {
    std::string outcome;
    for (const auto& module : modules_) {
      const Result<std::vector<vm::Value>> called = module->Invoke(function, arguments);
      std::string text = called.ok() ? "" : called.status().message().substr(std::string("in-process module: ").size());
      for (size_t i = 0; called.ok() && i < called->size(); ++i) {
        const bool is_tensor = std::holds_alternative<Tensor>((*called)[i]);
        text += (i == 0 ? "" : ", ") + (is_tensor ? vm::DescribeValue((*called)[i]) : vm::ValueText((*called)[i]));
      }
      if (&module != &modules_.front()) CHECK(text == outcome);
      outcome = std::move(text);
    }
    return outcome;
  }
  const vm::Program& program() const { return modules_.back()->executable().program(); }

 private:
  std::vector<std::unique_ptr<JitModule>> modules_;
};

inline bool Has(const vm::Program& program, const char* function, vm::Opcode opcode) {
  const vm::Function& found = *program.FindFunction(function);
  return std::any_of(found.code.begin(), found.code.end(),
                     [&](const vm::Instruction& instruction) { return instruction.opcode == opcode; });
}

}  // namespace ingot::driver
