// Tiles in shared memory: how their rows are spread over its banks, and copies to them.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <set>
#include <string>
#include <utility>

#include "compiler/arith/linear_bound.h"
#include "compiler/codegen/cuda_tiles.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kChunkBytes = 16;
// What the banks of shared memory give at once.
constexpr int64_t kBanksBytes = 128;

// The buffers in shared memory, and those that anything but copies of chunks stores to and products of warps load from.
struct TileAccesses : StmtVisitor {
  std::vector<Buffer> shared;
  std::set<const PrimVarNode*> others;
  using StmtVisitor::Visit;
  void Visit(const AllocateNode& allocate) override {
    if (allocate.buffer->scope == "shared") shared.push_back(allocate.buffer);
    StmtVisitor::Visit(allocate);
  }
  void Visit(const ForNode& loop) override {
    const bool copied = is_copy_, multiplied = is_product_;
    is_copy_ |= loop.annotations.Find(schedule::kChunkCopy) != nullptr;
    is_product_ |= loop.annotations.Find(schedule::kWarpProduct) != nullptr;
    StmtVisitor::Visit(loop);
    is_copy_ = copied;
    is_product_ = multiplied;
  }
  void Visit(const BufferStoreNode& store) override {
    if (!is_copy_) others.insert(store.buffer->data.get());
    StmtVisitor::Visit(store);
  }
  void Visit(const BufferLoadNode& load) override {
    if (!is_product_) others.insert(load.buffer->data.get());
    StmtVisitor::Visit(load);
  }

 private:
  bool is_copy_ = false, is_product_ = false;
};

}  // namespace

void CudaTiles::SpreadOverBanks(const Stmt& launch) {
  TileAccesses accesses;
  accesses.VisitStmt(launch);
  for (const Buffer& tile : accesses.shared) {
    const int64_t bytes = AsConstInt(tile->shape.back()).value_or(0) * tile->dtype.bits / 8;
    const bool takes = !accesses.others.contains(tile->data.get()) && tile->strides.empty() && !tile->elem_offset &&
                       bytes > kChunkBytes && std::has_single_bit(static_cast<uint64_t>(bytes));
    if (!takes) continue;
    const int64_t rows = std::max<int64_t>(kBanksBytes / bytes, 1);  // that lie in all banks together
    spreads_[tile->data.get()] = {static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(bytes * rows))),
                                  kBanksBytes / kChunkBytes / rows - 1};
  }
}

// Elements of so many bytes apart are moved by as much: that many rows repeat the numbers that move their chunks.
int64_t CudaTiles::PeriodOf(const Buffer& tile) const {
  const auto found = spreads_.find(tile->data.get());
  if (found == spreads_.end()) return 1;
  return ((found->second.mask + 1) << found->second.shift) * 8 / tile->dtype.bits;
}

// Where the element of a chunk's first byte lies in memory. What is added depends on the place within the period alone, so
// that places which lie whole periods apart have it in common.
llvm::Value* CudaTiles::Moved(const Buffer& tile, llvm::Value* offset) {
  const auto found = spreads_.find(tile->data.get());
  if (found == spreads_.end()) return offset;
  const unsigned elements_shift = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(tile->dtype.bits / 8)));
  const int64_t chunk = kChunkBytes >> elements_shift, in_banks = found->second.mask * chunk;
  llvm::Value* row = b_.CreateLShr(offset, found->second.shift - elements_shift);
  llvm::Value* own = b_.CreateAnd(offset, Number(in_banks));
  llvm::Value* by = b_.CreateMul(b_.CreateAnd(row, Number(found->second.mask)), Number(chunk));
  return b_.CreateNSWAdd(offset, b_.CreateNSWSub(b_.CreateXor(own, by), own));
}

llvm::Value* CudaTiles::Pointer(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
  const std::optional<Address> address = exprs_.EmitAddress(buffer, indices);
  if (!address) return nullptr;
  return b_.CreateGEP(numeric_.MemoryType(buffer->dtype), address->storage.base, address->offset);
}

void CudaTiles::EmitCopy(const ForNode& loop, bool is_asynchronous) {
  const auto no = [&](const char* what) { Fail("loop \"" + loop.var->name + "\" copies no chunk: " + what); };
  const auto* store = As<BufferStoreNode>(loop.body);
  const auto lanes = AsConstInt(loop.extent);
  if (store == nullptr || !lanes) return no("it is no loop of one store");
  const auto* choice = As<PrimCallNode>(store->value);
  if (choice != nullptr && choice->op != Intrinsic::kIfThenElse) return no("it computes something");
  const auto is_zero = [](const PrimExpr& expr) {
    const auto* number = As<FloatImmNode>(expr);
    return number != nullptr && number->value == 0;
  };
  const bool is_padding = is_zero(store->value);  // what padding is left with where all of it lies outside
  const auto* load = As<BufferLoadNode>(choice != nullptr ? choice->args[1] : store->value);
  const DataType dtype = store->buffer->dtype;
  if (*lanes * dtype.bits != kChunkBytes * 8) return no("it does not store 16 bytes");
  if (!is_padding && (load == nullptr || load->buffer->dtype != dtype)) return no("it does not copy elements");
  if (choice != nullptr && !is_zero(choice->args[2])) return no("the rest is not 0");
  arith::Analyzer& analyzer = exprs_.analyzer();
  exprs_.SetRange(loop.var, Range{loop.min, loop.extent});
  const auto at = [&](const PrimExpr& expr, int64_t lane) {
    return analyzer.Simplify(Substitute(expr, {{loop.var, Int64(lane)}}));
  };
  const auto all_at = [&](const std::vector<PrimExpr>& indices, int64_t lane) {
    std::vector<PrimExpr> places;
    for (const PrimExpr& index : indices) places.push_back(at(index, lane));
    return places;
  };
  const auto are_neighbours = [&](const std::vector<PrimExpr>& indices) {
    for (int64_t lane = 1; lane < *lanes; ++lane) {
      for (size_t d = 0; d < indices.size(); ++d) {
        const int64_t step = d + 1 == indices.size() ? lane : 0;
        if (!IsConstInt(analyzer.Simplify(at(indices[d], lane) - at(indices[d], 0)), step)) return false;
      }
    }
    return true;
  };
  if (!are_neighbours(store->indices) || (load != nullptr && !are_neighbours(load->indices))) {
    return no("its elements are not next to each other");
  }
  // Whether an access is certain to be aligned, its memory being so.
  const auto is_aligned = [&](const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    const Storage* storage = memory_.Find(buffer->data.get());
    if (storage == nullptr || storage->alignment % kChunkBytes != 0) return false;
    if (!buffer->strides.empty() || buffer->elem_offset) return false;
    PrimExpr element = Int64(0);
    for (size_t d = 0; d < indices.size(); ++d) element = element * buffer->shape[d] + indices[d];
    return analyzer.ProveDivisible(analyzer.Simplify(element), *lanes);
  };
  const std::vector<PrimExpr> to = all_at(store->indices, 0);
  if (!is_aligned(store->buffer, to)) return no("the place that it stores to is not aligned");
  const std::optional<Address> address = exprs_.EmitAddress(store->buffer, to);
  if (!address) return;
  llvm::Value* target =
      b_.CreateGEP(numeric_.MemoryType(dtype), address->storage.base, Moved(store->buffer, address->offset));
  llvm::Type* type = llvm::FixedVectorType::get(numeric_.MemoryType(dtype), static_cast<unsigned>(*lanes));
  const llvm::Align alignment(kChunkBytes);
  if (is_padding) {
    b_.CreateAlignedStore(llvm::Constant::getNullValue(type), target, alignment);
    return;
  }
  const std::vector<PrimExpr> from = all_at(load->indices, 0);
  const bool is_certain = is_aligned(load->buffer, from);
  llvm::Value* source = Pointer(load->buffer, from);
  if (source == nullptr) return;

  // The condition holds for lanes that follow each other: it joins bounds that are linear in the lane.
  PrimExpr first, last;
  if (choice != nullptr) {
    for (const PrimExpr& part : ConjunctsOf(choice->args[0])) {
      const bool is_bound = !MentionsAny(part, {loop.var.get()}) || arith::BoundOf(part, loop.var, analyzer);
      if (!is_bound) return no("its condition is no bound");
    }
    first = at(choice->args[0], 0);
    last = at(choice->args[0], *lanes - 1);
  }
  const bool is_whole = choice == nullptr || StructuralEqual(first, last);
  const auto copy = [&](llvm::Value* is_there) {  // null: it is
    if (is_asynchronous) {
      if (is_there == nullptr) {
        CallConvergent(b_, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {}, {target, source});
        return;
      }
      const Storage* storage = memory_.Find(load->buffer->data.get());
      llvm::Value* bytes = b_.CreateSelect(is_there, b_.getInt32(kChunkBytes), b_.getInt32(0));
      llvm::Value* place = b_.CreateSelect(is_there, source, storage->base);  // nothing is read there
      CallConvergent(b_, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s, {}, {target, place, bytes});
      return;
    }
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* done = nullptr;
    if (is_there != nullptr) {
      llvm::BasicBlock* read = function_.NewBlock("read");
      done = function_.NewBlock("read.done");
      b_.CreateCondBr(is_there, read, done);
      b_.SetInsertPoint(read);
    }
    llvm::Value* value = b_.CreateAlignedLoad(type, source, alignment);
    if (done != nullptr) {
      llvm::BasicBlock* read = b_.GetInsertBlock();
      b_.CreateBr(done);
      b_.SetInsertPoint(done);
      llvm::PHINode* either = b_.CreatePHI(type, 2);
      either->addIncoming(value, read);
      either->addIncoming(llvm::Constant::getNullValue(type), before);
      value = either;
    }
    b_.CreateAlignedStore(value, target, alignment);
  };
  if (is_certain && is_whole) return copy(choice != nullptr ? exprs_.Emit(first) : nullptr);
  llvm::Value* fits = b_.getTrue();
  if (!is_certain) {
    llvm::Value* rest = b_.CreateAnd(b_.CreatePtrToInt(source, b_.getInt64Ty()), kChunkBytes - 1);
    fits = b_.CreateICmpEQ(rest, b_.getInt64(0));
  }
  if (!is_whole) fits = b_.CreateAnd(fits, b_.CreateAnd(exprs_.Emit(first), exprs_.Emit(last)));
  if (status_.failed()) return;
  llvm::BasicBlock* whole = function_.NewBlock("whole");
  llvm::BasicBlock* single = function_.NewBlock("single");
  llvm::BasicBlock* done = function_.NewBlock("copied");
  b_.CreateCondBr(fits, whole, single);
  b_.SetInsertPoint(whole);
  copy(choice != nullptr && is_whole ? exprs_.Emit(first) : nullptr);
  b_.CreateBr(done);
  b_.SetInsertPoint(single);
  std::vector<llvm::Value*> loaded;
  for (int64_t lane = 0; lane < *lanes; ++lane) {
    loaded.push_back(numeric_.ToMemory(exprs_.Emit(at(store->value, lane)), dtype));
    if (status_.failed()) return;
  }
  llvm::Value* elements = llvm::PoisonValue::get(type);
  for (size_t lane = 0; lane < loaded.size(); ++lane) elements = b_.CreateInsertElement(elements, loaded[lane], lane);
  b_.CreateAlignedStore(elements, target, alignment);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace ingot::codegen
