// Running what a target has opened, and what a program asks for before it runs.
#include "tests/fuzz_targets/target.h"
#include "tests/vm/made_arguments.h"
#include "vm/run/context.h"

namespace ingot::fuzz {

std::shared_ptr<vm::Instance> TheInstance() {
  static const std::shared_ptr<vm::Instance> instance = [] {
    vm::InstanceOptions options;
    options.num_threads = 1;
    return *vm::Instance::Create(options);
  }();
  return instance;
}

void RunFunctions(const std::shared_ptr<const vm::Executable>& executable) {
  vm::ContextOptions options;
  options.fuel = 1'000;
  options.max_memory_bytes = 16 << 20;
  options.deadline_seconds = 0.5;
  const auto context = vm::Context::Create(executable, std::move(options));
  if (!context.ok()) return;
  for (const vm::Function& function : executable->program().functions) {
    if (!function.exported) continue;
    if (const auto arguments = test::MakeArguments(function)) (void)(*context)->Invoke(function, *arguments);
  }
  (void)(*context)->ResetStates();
}

uint64_t ConstantBytes(const vm::Program& program) {
  uint64_t bytes = 0;
  for (const vm::Constant& constant : program.constants) bytes += constant.bytes.size();
  return bytes;
}

}  // namespace ingot::fuzz
