// From values to buffers to bytecode: golden texts (tests/golden/lower). Modules are given after the graph passes.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/lower/bytecode.h"
#include "compiler/memory/passes.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/passes.h"
#include "tests/golden.h"
#include "vm/text/disassembler.h"
#include "vm/verify/verifier.h"

namespace ingot::lower {
namespace {

// The module with types, after the lowering passes up to the named one.
Result<ir::IRModule> Lowered(const golden::Case& golden, const std::string& last_pass) {
  transform::PassContext context;
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, script::ParseModule(golden.input, "input.py"));
  INGOT_ASSIGN_OR_RETURN(module, transform::Normalize(std::move(module), context));
  std::vector<transform::Pass> passes;
  for (const transform::Pass& pass : memory::MemoryPasses()) {
    passes.push_back(pass);
    if (pass.name == last_pass) break;
  }
  transform::VerifyPasses verify;
  context.instruments = {&verify};
  return transform::RunPasses(std::move(module), passes, context);
}

// lower PASS: the module after PASS.
Result<std::string> RunLower(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, Lowered(golden, golden.arguments));
  // Tensor functions are as they were: only the graph functions are shown.
  std::string shown;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::As<ir::FunctionNode>(entry.function) != nullptr)
      shown += script::PrintFunction(entry.var->name, entry.function) + "\n";
  }
  return shown;
}

// bytecode: the functions as assembler text; the program passes the verifier.
Result<std::string> RunBytecode(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, Lowered(golden, "plan_memory"));
  std::vector<codegen::KernelDescription> kernels;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::PrimFunc prim = ir::AsRef<ir::PrimFuncNode>(entry.function)) {
      INGOT_ASSIGN_OR_RETURN(codegen::KernelDescription description, codegen::DescribeKernel(entry.var->name, prim));
      kernels.push_back(std::move(description));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const vm::Program program, LowerToBytecode(module, std::move(kernels)));
  INGOT_RETURN_IF_ERROR(vm::Verify(program));
  std::string text;
  for (const vm::Function& function : program.functions) text += vm::DisassembleFunction(program, function);
  return text;
}

TEST_CASE("lowering: golden") {
  static constexpr golden::Directive kDirectives[] = {{"lower", RunLower}, {"bytecode", RunBytecode}};
  golden::RunArea("lower", kDirectives);
}

}  // namespace
}  // namespace ingot::lower
