// AddMemoryRoutines: memset, memcpy and memmove as LLVM IR. LLVM turns loops and struct copies into calls of them, and
// a kernel image imports nothing. Private to code generation.
#pragma once

#include <string_view>

namespace llvm {
class Module;
}

namespace ingot::codegen {

// Defines all three, hidden, each in a section of its own, so that the linker drops what no kernel calls.
void AddMemoryRoutines(llvm::Module& module);
bool IsMemoryRoutine(std::string_view symbol);

}  // namespace ingot::codegen
