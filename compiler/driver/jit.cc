// Compiles, opens the program with native code trusted, and makes one context; calls only convert arguments and
// results.
#include "compiler/driver/jit.h"

namespace ingot::driver {

namespace {

Status TakeTensors(std::string_view function, const vm::Value& value, std::vector<Tensor>& tensors) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    tensors.push_back(*tensor);
    return Status();
  }
  const auto* object = std::get_if<Ref<vm::Object>>(&value);
  if (object == nullptr || !*object || (*object)->kind() != vm::ValueKind::kTuple) {
    return Status(StatusCode::kInvalidArgument, "function \"" + std::string(function) + "\" gives " +
                                                    vm::DescribeValue(value) + ", which is no tensor: use Invoke");
  }
  for (const vm::Value& element : static_cast<const vm::TupleObject&>(**object).elements()) {
    INGOT_RETURN_IF_ERROR(TakeTensors(function, element, tensors));
  }
  return Status();
}

bool WritesParameters(const vm::Function& function) {
  for (const vm::NamedType& param : function.signature.params) {
    if (param.type.is_tensor() && param.type.storage == vm::Storage::kBorrowedMut) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<JitModule>> JitModule::Compile(ir::IRModule module, JitOptions options,
                                                      const CompileObserver& observer) {
  if (options.compile.target.variants.empty()) {
    options.compile.target_text = "cpu:native";
    INGOT_ASSIGN_OR_RETURN(options.compile.target, ParseTarget(options.compile.target_text));
  }
  INGOT_ASSIGN_OR_RETURN(module, PrepareModule(std::move(module)));
  INGOT_ASSIGN_OR_RETURN(vm::Program program, CompileModule(module, options.compile, observer));
  if (options.instance == nullptr) {
    INGOT_ASSIGN_OR_RETURN(options.instance, vm::Instance::Create());
  }
  auto jit = std::unique_ptr<JitModule>(new JitModule());
  vm::OpenOptions open;
  open.trust = vm::Trust::kFile;  // this process made it, and the caller asked for it
  INGOT_ASSIGN_OR_RETURN(jit->executable_, vm::Executable::FromProgram(std::move(options.instance), std::move(program),
                                                                       "in-process module", open));
  INGOT_ASSIGN_OR_RETURN(jit->context_, vm::Context::Create(jit->executable_, std::move(options.context)));
  return jit;
}

Result<std::vector<vm::Value>> JitModule::Invoke(std::string_view function, std::span<const vm::Value> arguments) {
  INGOT_ASSIGN_OR_RETURN(const vm::Function* found, executable_->Find(function));
  return context_->Invoke(*found, arguments);
}

Result<std::vector<Tensor>> JitModule::Call(std::string_view function, std::span<const Tensor> inputs) {
  const std::vector<vm::Value> arguments(inputs.begin(), inputs.end());
  INGOT_ASSIGN_OR_RETURN(const std::vector<vm::Value> results, Invoke(function, arguments));
  std::vector<Tensor> tensors;
  for (const vm::Value& result : results) INGOT_RETURN_IF_ERROR(TakeTensors(function, result, tensors));
  return tensors;
}

Status JitModule::CallInto(std::string_view function, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  INGOT_ASSIGN_OR_RETURN(const vm::Function* found, executable_->Find(function));
  std::vector<TensorView> in, out;
  for (const Tensor& input : inputs) in.push_back(input.view());
  std::vector<TensorView>& into = WritesParameters(*found) ? in : out;
  for (const Tensor& output : outputs) into.push_back(output.view());
  return context_->InvokeInto(*found, in, out);
}

}  // namespace ingot::driver
