// The loop over a module's functions: each function, exported PrimFunc and closure entry is lowered by its own class
// (FunctionLowering, LowerPrimEntry, ProgramLowering); this file only puts the results into one program, in order.
#include "compiler/lower/bytecode.h"

#include <algorithm>
#include <utility>

#include "compiler/lower/function_lowering.h"
#include "compiler/lower/place_on_device.h"
#include "compiler/lower/prim_entry.h"
#include "compiler/lower/program_lowering.h"

namespace ingot::lower {

Result<vm::Program> LowerToBytecode(const ir::IRModule& module, std::vector<codegen::KernelDescription> kernels) {
  ProgramLowering program(module, std::move(kernels));
  INGOT_RETURN_IF_ERROR(program.Declare());
  for (const ir::IRModule::Entry& entry : module.functions()) {
    const std::string& name = entry.var->name;
    if (const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function)) {
      Result<vm::Function> lowered = FunctionLowering(program, name, function).Run();
      if (!lowered.ok()) return std::move(lowered).status().WithContext("function \"" + name + "\"");
      program.program().functions.push_back(*std::move(lowered));
    } else if (const auto prim = ir::Downcast<ir::PrimFuncNode>(entry.function); !prim->is_private) {
      program.program().functions.push_back(
          LowerPrimEntry(name, *program.FindKernel(name), program.signature(*program.FindFunction(name)), prim));
    }
  }
  for (vm::Function& entry : program.LowerClosureEntries()) program.program().functions.push_back(std::move(entry));
  if (std::ranges::any_of(program.program().kernels, [](const vm::Kernel& kernel) { return kernel.device != 0; })) {
    program.program().devices.push_back({std::string(vm::kCudaDevice), 0});
    PlaceOnDevice(program.program());
  }
  return std::move(program.program());
}

}  // namespace ingot::lower
