// A verified Program in the form in which it runs. Per function: where registers lie in the frame, code with operands
// resolved to frame offsets, kernels as function pointers with what their calls still have to do. Immutable and shared
// by all contexts; what differs per context (arenas, argument arrays) is laid out here and lives in an Activation
// (vm/run/activations.h).
//
// Fixed registers. A tensor register that is written once, by plan_view, const_tensor, state, or a view of a fixed
// register at an offset that is a formula over the symbols, has one address per activation as long as the symbols
// stay. Such addresses are computed when an activation is prepared, and stand in the kernels' argument arrays from
// then on. If nothing but kernel calls with proved extents uses the register, the instruction that writes it is not
// run at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/host_ops.h"
#include "runtime/kernel_abi.h"
#include "vm/program/frame_layout.h"
#include "vm/program/kernel_image.h"
#include "vm/program/program.h"
#include "vm/verify/shared_outputs.h"

namespace ingot::vm {

// An instruction whose registers, also those in formulas, are places in the frame, and whose labels are positions in
// linked code.
using FrameInstruction = BasicInstruction<FrameOffset>;

// A kernel argument that is copied from the frame before each call.
struct PointerGather {
  uint32_t index;         // in the activation's argument array
  uint32_t frame_offset;  // of the tensor register
};
struct IntGather {
  uint32_t index;         // in the activation's integer array
  uint32_t frame_offset;  // of the scalar register
  DataType dtype;         // of the kernel's argument
};
// A dim of an operand that is compared with the kernel's extent at each call.
struct ExtentCheck {
  uint32_t param;
  uint32_t axis;
  uint32_t frame_offset;  // of the dim
};
struct AlignmentCheck {
  uint32_t param;
};

struct KernelCall {
  const Kernel* kernel = nullptr;
  IngotKernelFn function = nullptr;  // null: the stub, or it is launched
  uint32_t first_argument = 0;       // in the activation's arrays
  uint32_t first_int = 0;
  std::vector<PointerGather> pointers;
  std::vector<IntGather> ints;
  std::vector<ExtentCheck> extents;
  std::vector<AlignmentCheck> alignments;
  bool has_dynamic_workspace = false;
  bool is_launched = false;  // by a device that launches kernels, which has its own workspace
};

enum class FixedSource : uint8_t { kArena, kConstant, kState };
struct FixedRegister {
  FixedSource source = FixedSource::kArena;
  uint32_t index = 0;    // plan entry, constant or state
  uint8_t device = 0;    // of a constant
  DimCode offset_bytes;  // over the symbols
  // The extent in bytes of what must be there: dims over the symbols, compared when the activation is prepared.
  DataType dtype;
  std::vector<DimCode> dims;  // over the symbols; only when needs_check
  bool needs_check = false;
};
struct FixedArgument {
  uint32_t index;  // in the argument array
  uint32_t fixed;  // FixedRegister
};
struct FixedInt {
  uint32_t index;
  DimCode value;  // over the symbols
};

// How a dim of an argument is checked when a function is called.
struct DimRule {
  enum class Kind : uint8_t { kAny, kConstant, kBind, kCompare } kind = Kind::kAny;
  int64_t value = 0;  // constant, or the symbol to bind
  DimCode code;       // kCompare: over the symbols
};
struct ParameterRule {
  std::vector<DimRule> dims;
  int64_t alignment = 1;  // that native code assumes of the parameter's memory
};

enum class LinkedOp : uint8_t {
  kInstruction,     // data: FrameInstruction; runs as its opcode says
  kKernelPrepared,  // data: KernelCall of which nothing has to be gathered or compared
  kKernel,          // data: KernelCall
  kJump,            // target
  kJumpBack,        // target, backwards
};
struct LinkedInstruction {
  LinkedOp op;
  uint32_t source = 0;  // index of the instruction in Function::code
  uint32_t target = 0;
  const void* data = nullptr;
};

struct LinkedFunction {
  const Function* function = nullptr;
  uint32_t id = 0;
  FrameLayout frame;
  std::vector<uint32_t> counted;        // frame offsets of words that hold a reference to an Object
  std::vector<uint32_t> tensor_owners;  // frame offsets of words that hold the owner of an owned tensor
  std::vector<LinkedInstruction> code;
  std::vector<std::unique_ptr<FrameInstruction>> instructions;  // what code points to
  std::vector<std::unique_ptr<KernelCall>> kernel_calls;
  uint32_t num_arguments = 0;
  uint32_t num_ints = 0;
  std::vector<FixedRegister> fixed;
  std::vector<FixedArgument> fixed_arguments;
  std::vector<FixedInt> fixed_ints;
  std::vector<ParameterRule> parameters;
  std::vector<SharedOutput> shared_outputs;
  bool needs_activation = false;  // it has a memory plan or calls kernels
  std::vector<bool> zeroes;       // by instruction of Function::code: alloc and alloc_output whose memory is zeroed
  bool zeroes_arenas = false;     // when they are reserved
};

struct LinkOptions {
  bool stub_kernels = false;
  // All memory is zeroed, not only what is not proved to be written first: nothing of the file is trusted.
  bool zeroes_all = false;
  // Kernels that this process has already, by name; looked up before the images. Null: none, or not this one.
  std::function<IngotKernelFn(const std::string& name)> find_kernel;
  int fd = -1;  // of the file in which KernelImage::file_offset lies
};

struct LinkedProgram {
  std::vector<std::unique_ptr<LinkedFunction>> functions;  // as in Program::functions
  std::vector<std::shared_ptr<const LoadedImage>> images;  // as in Program::images; null where none is used
  int64_t workspace_bytes = 0;                             // the largest constant workspace
};

// The program is verified and outlives the result. Fails where the CPU has no variant of a kernel, or the system does
// not let code be loaded.
Result<LinkedProgram> Link(const Program& program, const LinkOptions& options);

// The kernel's stub: reads every byte of its inputs, writes every byte of its outputs with a pattern of the kernel's
// name. `ints` are the kernel's integer arguments, buffers as the kernel takes them. A cancelled status when `poll`
// stops it.
Status RunStubKernel(const Kernel& kernel, void* const* buffers, const int64_t* ints, host::Poll poll);

}  // namespace ingot::vm
