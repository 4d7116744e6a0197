// Binds external functions by name, and refuses those that cannot be called as the program calls them.
#include "vm/run/externals.h"

namespace ingot::vm {
namespace {

bool IsCalledByInstructions(const Program& program, size_t external) {
  for (const Function& function : program.functions) {
    for (const Instruction& instruction : function.code) {
      if (instruction.opcode == Opcode::kCallExternal &&
          instruction.As<op::CallExternal>().external().value == external) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Status Externals::Bind(const Program& program, std::map<std::string, ExternalFunction> functions) {
  functions_ = std::move(functions);
  std::vector<bool> called_by_kernel(program.externals.size(), false);
  for (const Kernel& kernel : program.kernels) {
    for (ExternalId id : kernel.externals) called_by_kernel[id.value] = true;
  }
  for (const External& external : program.externals) {
    const auto found = functions_.find(external.name);
    if (found == functions_.end()) {
      return Status(StatusCode::kNotFound, {"external function \"", external.name, "\" is not registered; it is ",
                                            external.name, external.signature.ToString()});
    }
    if (called_by_kernel[bound_.size()] && !found->second.call_raw) {
      return Status(StatusCode::kInvalidArgument,
                    {"external function \"", external.name, "\" is called by kernels and has no raw form"});
    }
    if (!found->second.call && IsCalledByInstructions(program, bound_.size())) {
      return Status(StatusCode::kInvalidArgument,
                    {"external function \"", external.name, "\" has a raw form alone, which is for kernels"});
    }
    bound_.push_back(&found->second);
  }
  return Status();
}

}  // namespace ingot::vm
