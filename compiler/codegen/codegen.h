// CompileKernels: lowered PrimFuncs (compiler/transform/tensor/lowered.h) in, one kernel image out: an ELF shared
// object with one R+X segment, without imports and dynamic relocations (compiler/codegen/README.md), whose entries
// follow runtime/kernel_abi.h. Everything that LLVM and lld do happens behind this header. It chooses no schedule: it
// compiles the functions as they are. Equal sources, target and options give equal bytes, whatever num_threads is.
// CompileKernelObject and LinkKernels are its two halves, for callers that have objects already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "runtime/dim_code.h"
#include "runtime/status.h"

namespace ingot::codegen {

struct KernelSource {
  std::string name;  // the symbol: letters, digits, '_', '.' and '$'; unique among the sources
  ir::PrimFunc lowered;
  KernelDescription description;  // of the function before it was scheduled (DescribeKernel)
};

struct CodegenOptions {
  int opt_level = 3;       // 0: as emitted; 1 to 3: LLVM's pipelines of that level, without its vectorisers
  int num_threads = 1;     // kernels compiled at once
  bool emit_llvm = false;  // keep the optimised LLVM IR as text
  bool emit_asm = false;   // keep the assembly as text
  bool link = true;        // false: text forms alone, KernelImage::elf stays empty
};

// What LLVM makes of one kernel. Nothing in it depends on the kernel's name, which LinkKernels writes into the object.
struct KernelObject {
  std::string elf;          // a relocatable file, whose one global definition is the kernel
  DimCode workspace;        // bytes, over the kernel's integer arguments
  int64_t stack_bytes = 0;  // its own frame and that of its deepest task
  bool needs_memory_routines = false;
  std::string llvm, assembly;
};

struct CompiledKernel {
  std::string name;
  uint64_t offset = 0;      // of its entry in the image (its virtual address there)
  DimCode workspace;        // bytes, over the kernel's integer arguments
  int64_t stack_bytes = 0;  // its own frame and that of its deepest task
  std::string llvm, assembly;
};

struct KernelImage {
  std::vector<std::byte> elf;
  std::vector<CompiledKernel> kernels;  // in the order of the sources
};

// Fails with kUnsupportedModel and the kernel's name if a kernel cannot be compiled (a dtype, a stack or formula that
// is too large, a symbol that nothing defines), with kInvalidArgument if a name is no symbol or stands for two kernels.
Result<KernelImage> CompileKernels(std::span<const KernelSource> sources, const Target& target,
                                   const CodegenOptions& options = {});

// LLVM cannot be unwound, and aborts when memory is out. A program that ends in another way says how: `end_process`
// must not return. For programs alone, once: it holds for the whole process.
void OnOutOfMemory(void (*end_process)());

// Fails like CompileKernels, with the source's name.
Result<KernelObject> CompileKernelObject(const KernelSource& source, const Target& target,
                                         const CodegenOptions& options = {});
// The object of memset, memcpy and memmove, which some kernels need.
Result<std::string> CompileMemoryRoutines(const Target& target);
// Fails with kInvalidArgument if a name is no symbol or stands for two kernels.
Status CheckKernelNames(std::span<const std::string> names);
// Links the objects, in their order, under these names, which CheckKernelNames has accepted. `memory_routines` may be
// empty when no object needs them.
Result<KernelImage> LinkKernels(std::span<const std::string> names, std::span<const KernelObject* const> objects,
                                const std::string& memory_routines);

// What makes code: the version of LLVM, and the build ids of the loaded files that hold LLVM and this code, which
// change whenever either is built of other sources. Fails when one has no build id.
Result<std::string> CodegenIdentity();

// Adds the compiled kernel as the kernel's first (best) variant; `image` is the image's index in the program. The
// kernel's workspace becomes the maximum of its variants' workspaces.
void AddVariant(const CompiledKernel& compiled, const Target& target, uint32_t image, vm::Kernel* kernel);

}  // namespace ingot::codegen
