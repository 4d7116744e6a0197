// Stack and workspace. Buffers begin at multiples of 64 bytes.
#include "compiler/codegen/allocations.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/structural.h"

namespace ingot::codegen {
namespace {

int64_t ElementBytes(const ir::Buffer& buffer) { return (buffer->dtype.total_bits() + 7) / 8; }

// The product of a number and extents.
struct Product {
  ir::PrimExpr number;
  std::vector<ir::PrimExpr> extents;
};

size_t FindExtent(const Product& product, const ir::PrimExpr& extent) {
  const auto& extents = product.extents;
  const auto is_equal = [&](const ir::PrimExpr& other) { return ir::StructuralEqual(other, extent); };
  return static_cast<size_t>(std::ranges::find_if(extents, is_equal) - extents.begin());
}

// Returns the sum of the products, with extents that several of them share outside of brackets.
ir::PrimExpr FactoredSum(std::vector<Product> products) {
  const ir::PrimExpr* shared = nullptr;
  std::ptrdiff_t most = 1;
  for (const Product& product : products) {
    for (const ir::PrimExpr& extent : product.extents) {
      const auto count = std::ranges::count_if(
          products, [&](const Product& other) { return FindExtent(other, extent) < other.extents.size(); });
      if (count > most) std::tie(shared, most) = std::pair(&extent, count);
    }
  }
  ir::PrimExpr sum = ir::Int64(0);
  if (shared == nullptr) {
    for (const auto& [number, extents] : products) {
      sum = sum + std::accumulate(extents.begin(), extents.end(), number, std::multiplies());
    }
    return sum;
  }
  const ir::PrimExpr factor = *shared;
  std::vector<Product> multiples, others;
  for (Product& product : products) {
    const size_t at = FindExtent(product, factor);
    const bool is_multiple = at < product.extents.size();
    if (is_multiple) product.extents.erase(product.extents.begin() + static_cast<std::ptrdiff_t>(at));
    (is_multiple ? multiples : others).push_back(std::move(product));
  }
  return factor * FactoredSum(std::move(multiples)) + FactoredSum(std::move(others));
}

}  // namespace

Allocations::Allocations(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs,
                         KernelRuntime& runtime, const Target& target)
    : function_(function),
      status_(status),
      memory_(memory),
      exprs_(exprs),
      runtime_(runtime),
      b_(function.instructions()),
      max_local_bytes_(target.max_stack_bytes),
      workspace_bytes_(ir::Int64(0)) {}

std::optional<Storage> Allocations::Allocate(const ir::Buffer& buffer, bool in_task) {
  llvm::Value* base = nullptr;
  if (buffer->scope == "local") {
    base = AllocateLocal(buffer);
  } else if (buffer->scope != "global") {
    status_.Unsupported("buffer \"" + buffer->name + "\" lies in \"" + buffer->scope +
                        "\", which kernels do not support yet");
  } else if (in_task) {
    status_.Unsupported("workspace \"" + buffer->name + "\" stands inside a parallel loop");
  } else {
    base = AllocateInWorkspace(buffer);
  }
  if (status_.failed()) return std::nullopt;
  return Storage{base, memory_.scopes().Add(buffer->name), kBufferAlignment};
}

llvm::Value* Allocations::AllocateLocal(const ir::Buffer& buffer) {
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

llvm::Value* Allocations::AllocateInWorkspace(const ir::Buffer& buffer) {
  ir::PrimExpr size = ir::Int64(ElementBytes(buffer));
  for (const ir::PrimExpr& dim : buffer->shape) size = size * ir::Cast(DataType::Int(64), dim);
  llvm::Value* workspace = runtime_.LoadWorkspace();
  llvm::Value* offset = exprs_.EmitIndex(workspace_bytes_);
  workspace_bytes_ =
      workspace_bytes_ + ir::FloorDiv(size + (kBufferAlignment - 1), ir::Int64(kBufferAlignment)) * kBufferAlignment;
  workspaces_.push_back(buffer);
  return b_.CreateInBoundsGEP(b_.getInt8Ty(), workspace, offset, buffer->name);
}

Result<DimCode> Allocations::WorkspaceSize(const std::vector<ir::PrimVar>& ints) {
  // The canonical form adds workspaces of equal size up to one term, which mostly keeps the formula short.
  arith::Analyzer analyzer;
  Result<DimCode> canonical = LowerToDimCode(analyzer.Simplify(workspace_bytes_), ints);
  constexpr size_t kShort = DimCode::kMaxSteps / 4;  // the formulas of all variants become one
  if (canonical.ok() && canonical->steps().size() <= kShort) return canonical;
  // It also multiplies sums out. Where that makes it long, the extents stay as they are, and a constant at the end has
  // room for the rounding of each buffer.
  std::vector<Product> products;
  for (const ir::Buffer& buffer : workspaces_) {
    Product& product = products.emplace_back(Product{ir::Int64(ElementBytes(buffer)), {}});
    for (const ir::PrimExpr& dim : buffer->shape) {
      if (const auto number = ir::AsConstInt(dim)) {
        product.number = product.number * *number;
      } else {
        product.extents.push_back(ir::Cast(DataType::Int(64), dim));
      }
    }
  }
  const int64_t rounding = (kBufferAlignment - 1) * std::ssize(workspaces_);
  Result<DimCode> factored = LowerToDimCode(FactoredSum(std::move(products)) + rounding, ints);
  const bool is_shorter = factored.ok() && (!canonical.ok() || factored->steps().size() < canonical->steps().size());
  if (canonical.ok()) return is_shorter ? factored : canonical;
  if (!factored.ok()) {
    status_.Unsupported("the size of its workspaces: " + factored.status().message());
    return status_.get();
  }
  return factored;
}

}  // namespace ingot::codegen
