// CompilePtx: lowered PrimFuncs for a CUDA architecture in, PTX text and the record of each kernel's launches out. What
// an entry's parameters are stands in cuda_kernel_emitter.h. Equal sources and target give equal text.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/target/target.h"
#include "runtime/dim_code.h"
#include "runtime/status.h"

namespace ingot::codegen {

// One launch of the device; all sizes are over the kernel's integer arguments. A launch of an empty grid does nothing
// and is left out by the caller, since drivers refuse it.
struct PtxLaunch {
  std::string entry;
  std::array<DimCode, 3> grid, block;
  int64_t shared_bytes = 0;  // of a block, besides the variables that the code has there
  // A launch that runs in rounds has the round's number as a further argument behind the others. Launches of one loop follow
  // each other, with the same rounds; the first one has the number 0.
  std::optional<DimCode> rounds;
  int64_t number_in_round = 0;
};
struct PtxKernel {
  std::string name;
  DimCode workspace;                // bytes
  std::vector<PtxLaunch> launches;  // one after the other; none: the kernel does nothing
};
struct PtxImage {
  std::string ptx;
  std::string llvm;                // with CodegenOptions::emit_llvm
  std::vector<PtxKernel> kernels;  // in the order of the sources
};

// Fails with kUnsupportedModel and the kernel's name if a kernel cannot be compiled or is not bound to threads, with
// kInvalidArgument if a name is no symbol, or stands for two kernels.
Result<PtxImage> CompilePtx(std::span<const KernelSource> sources, const Target& target,
                            const CodegenOptions& options = {});

}  // namespace ingot::codegen
