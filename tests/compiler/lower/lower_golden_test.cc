// From buffers to bytecode: golden texts (tests/golden/lower). Modules are given after the graph passes.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/lower/bytecode.h"
#include "tests/compiler/memory/memory_passes.h"
#include "tests/golden.h"
#include "vm/text/disassembler.h"
#include "vm/verify/verifier.h"

namespace ingot::lower {
namespace {

// The functions as assembler text, with all kernels on this device; the program passes the verifier.
Result<std::string> Lowered(const golden::Case& golden, uint8_t device) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, memory::testing::ModuleAfter("plan_memory", golden.input));
  std::vector<codegen::KernelDescription> kernels;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::PrimFunc prim = ir::AsRef<ir::PrimFuncNode>(entry.function)) {
      INGOT_ASSIGN_OR_RETURN(codegen::KernelDescription description, codegen::DescribeKernel(entry.var->name, prim));
      description.kernel.device = device;
      kernels.push_back(std::move(description));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const vm::Program program, LowerToBytecode(module, std::move(kernels)));
  INGOT_RETURN_IF_ERROR(vm::Verify(program));
  std::string text;
  for (const vm::Function& function : program.functions) text += vm::DisassembleFunction(program, function);
  return text;
}

// bytecode: with kernels on the host. The same with kernels on a GPU has to pass the verifier, too.
Result<std::string> RunBytecode(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(std::string text, Lowered(golden, 0));
  INGOT_RETURN_IF_ERROR(Lowered(golden, 1).status().WithContext("on device 1"));
  return text;
}
// bytecode_on_device: with kernels on a GPU.
Result<std::string> RunOnDevice(const golden::Case& golden) { return Lowered(golden, 1); }

TEST_CASE("lowering: golden") {
  static constexpr golden::Directive kDirectives[] = {{"bytecode", RunBytecode}, {"bytecode_on_device", RunOnDevice}};
  golden::RunArea("lower", kDirectives);
}

}  // namespace
}  // namespace ingot::lower
