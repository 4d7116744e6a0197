// In-process use: a module of a front end or builder goes in, and its functions can be called from the same program;
// there is no file in between. The kernels are compiled for this machine unless a target says otherwise, and run by the
// same VM that runs files. Tensors are those of runtime/tensor.h; runtime/dlpack.h converts from DLPack and back.
//
//     ir::IRModule module;
//     module.Add("add_one", te::CreatePrimFunc({x, y}));
//     INGOT_ASSIGN_OR_RETURN(auto jit, driver::JitModule::Compile(module));
//     INGOT_RETURN_IF_ERROR(jit->CallInto("add_one", {input}, {output}));
//
// A program that wants the C API instead hands vm::EncodeProgram's bytes of jit->executable().program() to
// ingot_executable_open_memory.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/ir/module.h"
#include "runtime/tensor.h"
#include "vm/run/context.h"

namespace ingot::driver {

struct JitOptions {
  CompileOptions compile;                  // a target without variants: this machine
  std::shared_ptr<vm::Instance> instance;  // null: one of its own, with a thread per processor
  vm::ContextOptions context;              // memory cap, fuel, external functions
};

// One compiled module and one context to call it in. Like the context it is for one thread at a time; further threads
// make contexts of their own over executable().
class JitModule {
 public:
  static Result<std::unique_ptr<JitModule>> Compile(ir::IRModule module, JitOptions options = {},
                                                    const CompileObserver& observer = {});

  const vm::Executable& executable() const { return *executable_; }
  const std::shared_ptr<const vm::Executable>& shared_executable() const { return executable_; }
  vm::Context& context() { return *context_; }

  // Calls an exported function (graph functions and prim functions that are not private) with any values.
  Result<std::vector<vm::Value>> Invoke(std::string_view function, std::span<const vm::Value> arguments);
  // Like Invoke, with tensors alone. Results must be tensors or tuples of tensors; tuples are flattened.
  Result<std::vector<Tensor>> Call(std::string_view function, std::span<const Tensor> inputs);
  Result<std::vector<Tensor>> Call(std::string_view function, std::initializer_list<Tensor> inputs) {
    return Call(function, std::span(inputs.begin(), inputs.size()));
  }
  // Writes the results into the caller's tensors. A PrimFunc's outputs are its last parameters.
  Status CallInto(std::string_view function, std::span<const Tensor> inputs, std::span<const Tensor> outputs);
  Status CallInto(std::string_view function, std::initializer_list<Tensor> inputs,
                  std::initializer_list<Tensor> outputs) {
    return CallInto(function, std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }

 private:
  JitModule() = default;
  std::shared_ptr<const vm::Executable> executable_;
  std::unique_ptr<vm::Context> context_;
};

}  // namespace ingot::driver
