// The buffer parameters of a kernel, bound to the pointers by which it gets them on any target. Private to code
// generation.
#pragma once

#include <functional>
#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"

namespace ingot::codegen {

// The pointer to a buffer, by its number among the buffer parameters, its name and its alignment in bytes.
using BufferPointer = std::function<llvm::Value*(size_t number, const std::string& name, int64_t alignment)>;

// Gives each buffer its pointer and an alias scope. Reports a dtype that kernels do not support.
void BindBuffers(const KernelSource& source, KernelStatus& status, MemoryAccess& memory, const BufferPointer& pointer);

}  // namespace ingot::codegen
