#include "tests/compiler/codegen/jit.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "runtime/check.h"
#include "runtime/cpu_features.h"

namespace ingot::codegen::testing {

Target TargetNamed(const std::string& name) {
  Result<TargetFamily> family = ParseTarget("cpu:" + name);
  INGOT_CHECK(family.ok(), family.status().message().c_str());
  return family->variants.at(0);
}

bool HostRuns(const Target& target) { return CpuFeatures::Detect().Covers({target.required_features}); }

LoadedImage::LoadedImage(std::span<const std::byte> elf) : size_(elf.size()) {
  base_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  INGOT_CHECK(base_ != MAP_FAILED);
  std::memcpy(base_, elf.data(), size_);
  INGOT_CHECK(mprotect(base_, size_, PROT_READ | PROT_EXEC) == 0);
}

LoadedImage::~LoadedImage() { munmap(base_, size_); }

IngotKernelFn LoadedImage::Entry(uint64_t offset) const {
  return reinterpret_cast<IngotKernelFn>(static_cast<char*>(base_) + offset);
}

KernelSource Source(std::string name, const ir::PrimFunc& lowered) {
  Result<KernelDescription> description = DescribeKernel(name, lowered);
  INGOT_CHECK(description.ok(), description.status().message().c_str());
  return {std::move(name), lowered, *std::move(description)};
}

Kernel::Kernel(const ir::PrimFunc& lowered, const Target& target, const CodegenOptions& options) {
  const KernelSource source = Source("kernel", lowered);
  description = source.description;
  Result<KernelImage> image = CompileKernels({&source, 1}, target, options);
  INGOT_CHECK(image.ok(), image.status().message().c_str());
  compiled = image->kernels.at(0);
  image_bytes = image->elf.size();
  if (!image->elf.empty()) {
    image_ = std::make_unique<LoadedImage>(image->elf);
    entry_ = image_->Entry(compiled.offset);
  }
}

int32_t Kernel::Run(std::vector<void*> buffers, std::vector<int64_t> ints, ThreadPool* pool) {
  KernelContext context(pool, &cancel);
  const Result<int64_t> size = compiled.workspace.Evaluate(ints);
  INGOT_CHECK(size.ok(), size.status().message().c_str());
  const std::unique_ptr<void, decltype(&std::free)> workspace(
      std::aligned_alloc(64, static_cast<size_t>(*size + 63) / 64 * 64), &std::free);
  context.set_workspace(workspace.get(), *size);
  context.set_external(external, external_user_data);
  const int32_t code = context.Call(entry_, buffers.data(), ints.data());
  failure = context.TakeFailure();
  return code;
}

ir::PrimFuncParam BufferParam(const ir::Buffer& buffer) { return {buffer->data, buffer}; }

ir::PrimFunc Function(std::vector<ir::Buffer> buffers, ir::Stmt body, std::vector<ir::PrimVar> scalars) {
  std::vector<ir::PrimFuncParam> params;
  for (const ir::PrimVar& scalar : scalars) params.push_back({scalar, nullptr});
  for (const ir::Buffer& buffer : buffers) params.push_back(BufferParam(buffer));
  return ir::Make<ir::PrimFuncNode>(std::move(params), std::move(body));
}

ir::Stmt Store(const ir::Buffer& buffer, ir::PrimExpr value, std::vector<ir::PrimExpr> indices) {
  return ir::Make<ir::BufferStoreNode>(buffer, std::move(value), std::move(indices));
}

ir::PrimExpr Load(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices) {
  return ir::Make<ir::BufferLoadNode>(buffer, std::move(indices));
}

ir::PrimExpr Ramp(ir::PrimExpr base, int lanes) {
  return lanes == 1 ? base : ir::Make<ir::RampNode>(base, ir::Int64(1), lanes);
}

ir::PrimExpr Broadcast(ir::PrimExpr value, int lanes) {
  return lanes == 1 ? value : ir::Make<ir::BroadcastNode>(value, lanes);
}

ir::Stmt Loop(ir::PrimExpr extent, const std::function<ir::Stmt(ir::PrimExpr)>& body, ir::ForKind kind) {
  const ir::PrimVar i = ir::MakePrimVar("i");
  return ir::Make<ir::ForNode>(i, ir::Int64(0), std::move(extent), kind, body(i));
}

ir::PrimFunc Elementwise(const std::vector<DataType>& inputs, DataType output, int64_t n, int lanes,
                         const std::function<ir::PrimExpr(const std::vector<ir::PrimExpr>&)>& f) {
  std::vector<ir::Buffer> buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    buffers.push_back(ir::MakeBuffer("in" + std::to_string(i), inputs[i], {ir::Int64(n)}));
  }
  const ir::Buffer out = ir::MakeBuffer("out", output, {ir::Int64(n)});
  const auto step = [&](const ir::PrimExpr& base, int width) {
    std::vector<ir::PrimExpr> values;
    for (const ir::Buffer& buffer : buffers) values.push_back(Load(buffer, {Ramp(base, width)}));
    return Store(out, f(values), {Ramp(base, width)});
  };
  const int64_t full = n / lanes;
  std::vector<ir::Stmt> parts;
  if (full > 0) parts.push_back(Loop(ir::Int64(full), [&](const ir::PrimExpr& i) { return step(i * lanes, lanes); }));
  if (n % lanes != 0) {
    parts.push_back(Loop(ir::Int64(n % lanes), [&](const ir::PrimExpr& i) { return step(i + full * lanes, 1); }));
  }
  const ir::Stmt body = ir::MakeSeq(std::move(parts));
  buffers.push_back(out);
  return Function(std::move(buffers), body);
}

ir::PrimFunc TiledGemm(int64_t m, int64_t n, int64_t k, int rows, int columns, int lanes, bool parallel) {
  const ir::Buffer a = ir::MakeBuffer("A", DataType::Float(32), {ir::Int64(m), ir::Int64(k)});
  const ir::Buffer b = ir::MakeBuffer("B", DataType::Float(32), {ir::Int64(k), ir::Int64(n)});
  const ir::Buffer c = ir::MakeBuffer("C", DataType::Float(32), {ir::Int64(m), ir::Int64(n)});
  const auto tile_body = [&](const ir::PrimExpr& i0, const ir::PrimExpr& j0) {
    const ir::Buffer acc =
        ir::MakeBuffer("acc", DataType::Float(32), {ir::Int64(rows), ir::Int64(columns * lanes)}, "local");
    const auto at = [&](int r, int v) {
      return std::vector<ir::PrimExpr>{ir::Int64(r), Ramp(ir::Int64(v * lanes), lanes)};
    };
    const auto each = [&](const std::function<ir::Stmt(int, int)>& f) {
      std::vector<ir::Stmt> stmts;
      for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < columns; ++v) stmts.push_back(f(r, v));
      }
      return ir::MakeSeq(std::move(stmts));
    };
    std::vector<ir::Stmt> parts;
    parts.push_back(each(
        [&](int r, int v) { return Store(acc, ir::MakeConst(DataType::Float(32).with_lanes(lanes), 0), at(r, v)); }));
    parts.push_back(Loop(ir::Int64(k), [&](const ir::PrimExpr& kk) {
      return each([&](int r, int v) {
        const ir::PrimExpr x = Broadcast(Load(a, {i0 * rows + r, kk}), lanes);
        const ir::PrimExpr y = Load(b, {kk, Ramp(j0 * (columns * lanes) + v * lanes, lanes)});
        return Store(acc, Load(acc, at(r, v)) + x * y, at(r, v));
      });
    }));
    parts.push_back(each([&](int r, int v) {
      return Store(c, Load(acc, at(r, v)), {i0 * rows + r, Ramp(j0 * (columns * lanes) + v * lanes, lanes)});
    }));
    return ir::Stmt(ir::Make<ir::AllocateNode>(acc, ir::MakeSeq(std::move(parts))));
  };
  const ir::Stmt body = Loop(
      ir::Int64(n / (columns * lanes)),
      [&](const ir::PrimExpr& j0) {
        return Loop(ir::Int64(m / rows), [&](const ir::PrimExpr& i0) { return tile_body(i0, j0); });
      },
      parallel ? ir::ForKind::kParallel : ir::ForKind::kSerial);
  return Function({a, b, c}, body);
}

}  // namespace ingot::codegen::testing
