// LLVM's TargetMachine: made from a target record; modules in, object files or assembly out. Private to code
// generation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/status.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace ingot::codegen {

struct MachineCode {
  std::string object;                          // an ELF relocatable file
  std::map<std::string, int64_t> frame_bytes;  // stack frames by function; functions without a frame are left out
  std::vector<std::string> undefined;          // symbols that the object needs from elsewhere
};

// Position-independent code, a section per function. Thread-safe.
Result<std::shared_ptr<llvm::TargetMachine>> CreateTargetMachine(const Target& target, int opt_level);
// The module must have been made for the machine (PrepareModule) and is consumed.
Result<MachineCode> EmitObject(llvm::Module& module, llvm::TargetMachine& machine);
std::string EmitAssembly(const llvm::Module& module, llvm::TargetMachine& machine);
// The same, and the module is of no more use. LLVM's NVPTX back end keeps what it read of a module's annotations by the
// module's address until it printed that very module, so every module for CUDA has to end here.
std::string EmitLastAssembly(llvm::Module& module, llvm::TargetMachine& machine);
void PrepareModule(llvm::Module& module, const llvm::TargetMachine& machine);

}  // namespace ingot::codegen
