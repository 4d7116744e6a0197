// Stack and workspace. Buffers begin at multiples of 64 bytes.
#include "compiler/codegen/cpu_allocations.h"

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"

namespace ingot::codegen {
namespace {

constexpr int64_t kBufferAlignment = 64;

int64_t ElementBytes(const ir::Buffer& buffer) { return (buffer->dtype.total_bits() + 7) / 8; }

}  // namespace

CpuAllocations::CpuAllocations(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory,
                               ExprEmitter& exprs, CpuKernelContext& context, const Target& target)
    : function_(function),
      status_(status),
      memory_(memory),
      exprs_(exprs),
      context_(context),
      b_(function.instructions()),
      max_local_bytes_(target.max_stack_bytes),
      workspace_bytes_(ir::Int64(0)) {}

std::optional<Storage> CpuAllocations::Allocate(const ir::Buffer& buffer, bool in_task) {
  llvm::Value* base = nullptr;
  if (buffer->scope == "local") {
    base = AllocateLocal(buffer);
  } else if (buffer->scope != "global") {
    status_.Unsupported("buffer \"" + buffer->name + "\" lies in \"" + buffer->scope + "\", which a CPU does not have");
  } else if (in_task) {
    status_.Unsupported("workspace \"" + buffer->name + "\" stands inside a parallel loop");
  } else {
    base = AllocateInWorkspace(buffer);
  }
  if (status_.failed()) return std::nullopt;
  return Storage{base, memory_.scopes().Add(buffer->name), kBufferAlignment};
}

llvm::Value* CpuAllocations::AllocateLocal(const ir::Buffer& buffer) {
  int64_t num_elements = 1;
  for (const ir::PrimExpr& dim : buffer->shape) {
    const auto extent = ir::AsConstInt(dim);
    if (!extent || *extent < 0 || __builtin_mul_overflow(num_elements, *extent, &num_elements)) {
      status_.Unsupported("local buffer \"" + buffer->name + "\" has no constant extents");
      return nullptr;
    }
  }
  const int64_t element_bytes = ElementBytes(buffer);
  int64_t& local_bytes = local_bytes_[function_.function()];
  if (num_elements > max_local_bytes_ / element_bytes ||
      num_elements * element_bytes > max_local_bytes_ - local_bytes) {
    status_.Unsupported("local buffer \"" + buffer->name + "\" does not fit the " + std::to_string(max_local_bytes_) +
                        " bytes of stack that local buffers may take");
    return nullptr;
  }
  local_bytes += num_elements * element_bytes;
  auto* type = llvm::ArrayType::get(Numeric(b_).MemoryType(buffer->dtype), static_cast<uint64_t>(num_elements));
  return function_.EntryAlloca(type, kBufferAlignment, buffer->name);
}

llvm::Value* CpuAllocations::AllocateInWorkspace(const ir::Buffer& buffer) {
  ir::PrimExpr size = ir::Int64(ElementBytes(buffer));
  for (const ir::PrimExpr& dim : buffer->shape) size = size * ir::Cast(DataType::Int(64), dim);
  llvm::Value* workspace = context_.LoadWorkspace();
  llvm::Value* offset = exprs_.EmitIndex(workspace_bytes_);
  workspace_bytes_ =
      workspace_bytes_ + ir::FloorDiv(size + (kBufferAlignment - 1), ir::Int64(kBufferAlignment)) * kBufferAlignment;
  return b_.CreateInBoundsGEP(b_.getInt8Ty(), workspace, offset, buffer->name);
}

Result<DimCode> CpuAllocations::WorkspaceSize(const std::vector<ir::PrimVar>& ints) const {
  // The canonical form adds workspaces of equal size up to one term, which keeps the formula short.
  return LowerToDimCode(arith::Analyzer().Simplify(workspace_bytes_), ints);
}

}  // namespace ingot::codegen
