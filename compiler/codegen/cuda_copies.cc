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

// The buffers in shared memory, those that anything but copies of chunks stores to and products of warps load from, those
// of which a product's summands do not lie next to each other, those that groups of warps multiply, and those whose chunks
// come from panels.
struct TileAccesses : StmtVisitor {
  std::vector<Buffer> shared;
  std::set<const PrimVarNode*> others, turned, of_groups, of_panels;
  using StmtVisitor::Visit;
  void Visit(const AllocateNode& allocate) override {
    if (allocate.buffer->scope == "shared") shared.push_back(allocate.buffer);
    StmtVisitor::Visit(allocate);
  }
  void Visit(const ForNode& loop) override {
    const bool copied = is_copy_, multiplied = is_product_, grouped = is_of_groups_;
    is_of_groups_ |= loop.annotations.Find(schedule::kGroupProduct) != nullptr;
    const ir::AttrValue* copies = loop.annotations.Find(schedule::kChunkCopy);
    is_copy_ |= copies != nullptr;
    const int64_t* kind = copies != nullptr ? copies->get<int64_t>() : nullptr;
    is_of_panel_ = kind != nullptr && *kind == schedule::kIsOfPanel;
    is_product_ |= loop.annotations.Find(schedule::kWarpProduct) != nullptr ||
                   loop.annotations.Find(schedule::kGroupProduct) != nullptr;
    if (is_product_ && !multiplied) summand_ = loop.var;
    StmtVisitor::Visit(loop);
    is_copy_ = copied;
    is_product_ = multiplied;
    is_of_groups_ = grouped;
  }
  void Visit(const BufferStoreNode& store) override {
    if (!is_copy_) others.insert(store.buffer->data.get());
    if (is_copy_ && is_of_panel_) of_panels.insert(store.buffer->data.get());
    StmtVisitor::Visit(store);
  }
  void Visit(const BufferLoadNode& load) override {
    if (!is_product_) others.insert(load.buffer->data.get());
    if (is_of_groups_) of_groups.insert(load.buffer->data.get());
    if (is_product_ && !load.indices.empty() && !UsesSummand(load)) turned.insert(load.buffer->data.get());
    StmtVisitor::Visit(load);
  }

 private:
  // Whether neighbours are summands, which the outermost loop of a product is over.
  bool UsesSummand(const BufferLoadNode& load) const {
    arith::Analyzer analyzer;
    const PrimExpr next = Substitute(load.indices.back(), {{summand_, PrimExpr(summand_) + 1}});
    return IsConstInt(analyzer.Simplify(next - load.indices.back()), 1);
  }
  bool is_copy_ = false, is_product_ = false, is_of_groups_ = false, is_of_panel_ = false;
  PrimVar summand_;
};

}  // namespace

void CudaTiles::SpreadOverBanks(const Stmt& launch) {
  TileAccesses accesses;
  accesses.VisitStmt(launch);
  for (const Buffer& tile : accesses.shared) {
    if (tile->shape.empty()) continue;
    const int64_t bytes = AsConstInt(tile->shape.back()).value_or(0) * tile->dtype.bits / 8;
    const bool takes = !accesses.others.contains(tile->data.get()) && tile->strides.empty() && !tile->elem_offset &&
                       bytes > kChunkBytes && std::has_single_bit(static_cast<uint64_t>(bytes));
    if (!takes) continue;
    const int64_t rows = std::max<int64_t>(kBanksBytes / bytes, 1);  // that lie in all banks together
    const bool loads_words = tile->dtype.bits == 32 && rows == 1 && accesses.turned.contains(tile->data.get());
    const int64_t chunks = loads_words ? 2 : 1;  // of eight words, which a warp loads of each row
    spreads_[tile->data.get()] = {
        static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(bytes * rows))),
        kBanksBytes / kChunkBytes / rows / chunks - 1, chunks,
        accesses.of_panels.contains(tile->data.get()) && chunks == 1 && !accesses.of_groups.contains(tile->data.get())};
  }
}

bool CudaTiles::IsSwizzled(const Buffer& tile) const {
  constexpr unsigned kRowShift = 7;
  constexpr int64_t kRows = 8;
  const auto found = spreads_.find(tile->data.get());
  return found != spreads_.end() && found->second.shift == kRowShift && found->second.mask == kRows - 1 &&
         found->second.chunks == 1 && !found->second.is_rotated;
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
  const int64_t chunk = (kChunkBytes >> elements_shift) * found->second.chunks, in_banks = found->second.mask * chunk;
  llvm::Value* row = b_.CreateLShr(offset, found->second.shift - elements_shift);
  llvm::Value* own = b_.CreateAnd(offset, Number(in_banks));
  llvm::Value* number = b_.CreateAnd(row, Number(found->second.mask));
  if (found->second.is_rotated) {
    const int bits = std::bit_width(static_cast<uint64_t>(found->second.mask));
    number = b_.CreateOr(b_.CreateAnd(b_.CreateShl(row, 1), Number(found->second.mask - 1)),
                         b_.CreateLShr(number, static_cast<uint64_t>(bits - 1)));
  }
  llvm::Value* by = b_.CreateMul(number, Number(chunk));
  return b_.CreateNSWAdd(offset, b_.CreateNSWSub(b_.CreateXor(own, by), own));
}

llvm::Value* CudaTiles::Pointer(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
  const std::optional<Address> address = exprs_.EmitAddress(buffer, indices);
  if (!address) return nullptr;
  return b_.CreateGEP(numeric_.MemoryType(buffer->dtype), address->storage.base, address->offset);
}

// What a loop of kChunkCopy stores, and where it comes from.
struct CudaTiles::ChunkCopy {
  const BufferStoreNode* store = nullptr;
  const PrimCallNode* choice = nullptr;  // between the elements and zeros; null: there are elements alone
  const BufferLoadNode* load = nullptr;  // null: it stores zeros
  int64_t lanes = 0;
};

std::optional<CudaTiles::ChunkCopy> CudaTiles::MatchCopy(const ForNode& loop) {
  const auto no = [&](const char* what) -> std::optional<ChunkCopy> {
    Fail("loop \"" + loop.var->name + "\" copies no chunk: " + what);
    return std::nullopt;
  };
  ChunkCopy copy;
  copy.store = As<BufferStoreNode>(loop.body);
  copy.lanes = AsConstInt(loop.extent).value_or(0);
  if (copy.store == nullptr || copy.lanes == 0) return no("it is no loop of one store");
  copy.choice = As<PrimCallNode>(copy.store->value);
  if (copy.choice != nullptr && copy.choice->op != Intrinsic::kIfThenElse) return no("it computes something");
  const auto is_zero = [](const PrimExpr& expr) {
    const auto* number = As<FloatImmNode>(expr);
    return number != nullptr && number->value == 0;
  };
  const bool is_padding = is_zero(copy.store->value);  // what padding is left with where all of it lies outside
  copy.load = As<BufferLoadNode>(copy.choice != nullptr ? copy.choice->args[1] : copy.store->value);
  const DataType dtype = copy.store->buffer->dtype;
  if (copy.lanes * dtype.bits != kChunkBytes * 8) return no("it does not store 16 bytes");
  if (!is_padding && (copy.load == nullptr || copy.load->buffer->dtype != dtype))
    return no("it does not copy elements");
  if (copy.choice != nullptr && !is_zero(copy.choice->args[2])) return no("the rest is not 0");
  arith::Analyzer& analyzer = exprs_.analyzer();
  exprs_.SetRange(loop.var, Range{loop.min, loop.extent});
  const auto are_neighbours = [&](const std::vector<PrimExpr>& indices) {
    if (indices.empty()) return false;
    for (int64_t lane = 1; lane < copy.lanes; ++lane) {
      for (size_t d = 0; d < indices.size(); ++d) {
        const int64_t step = d + 1 == indices.size() ? lane : 0;
        const PrimExpr distance = AtLane(loop, indices[d], lane) - AtLane(loop, indices[d], 0);
        if (!IsConstInt(analyzer.Simplify(distance), step)) return false;
      }
    }
    return true;
  };
  if (!are_neighbours(copy.store->indices) || (copy.load != nullptr && !are_neighbours(copy.load->indices))) {
    return no("its elements are not next to each other");
  }
  return copy;
}

PrimExpr CudaTiles::AtLane(const ForNode& loop, const PrimExpr& expr, int64_t lane) {
  return exprs_.analyzer().Simplify(Substitute(expr, {{loop.var, Int64(lane)}}));
}
std::vector<PrimExpr> CudaTiles::AtFirstLane(const ForNode& loop, const std::vector<PrimExpr>& indices) {
  std::vector<PrimExpr> places;
  for (const PrimExpr& index : indices) places.push_back(AtLane(loop, index, 0));
  return places;
}

// Whether an access is certain to be aligned, its memory being so.
bool CudaTiles::IsAligned(const Buffer& buffer, const std::vector<PrimExpr>& indices, int64_t lanes) {
  const Storage* storage = memory_.Find(buffer->data.get());
  if (storage == nullptr || storage->alignment % kChunkBytes != 0) return false;
  if (!buffer->strides.empty() || buffer->elem_offset) return false;
  arith::Analyzer& analyzer = exprs_.analyzer();
  if (assumes_whole_rows_ && analyzer.ProveDivisible(indices.back(), lanes)) return true;
  PrimExpr element = Int64(0);
  for (size_t d = 0; d < indices.size(); ++d) element = element * buffer->shape[d] + indices[d];
  return analyzer.ProveDivisible(analyzer.Simplify(element), lanes);
}

// Whether a value is certain to be a multiple of a chunk, the lengths of rows being so if that is assumed.
bool CudaTiles::IsMultiple(const Buffer& buffer, const PrimExpr& value, int64_t lanes) {
  const PrimExpr& row = buffer->shape.back();
  PrimExpr simple = value;
  if (const PrimVar length = AsRef<PrimVarNode>(row); assumes_whole_rows_ && length) {
    simple = Substitute(value, {{length, PrimExpr(MakePrimVar("chunks")) * lanes}});
  }
  return exprs_.analyzer().ProveDivisible(exprs_.analyzer().Simplify(simple), lanes);
}

std::optional<PrimExpr> CudaTiles::WholeRows(const std::vector<Stmt>& copies) {
  struct Loops : StmtVisitor {
    std::vector<const ForNode*> chunks;
    using StmtVisitor::Visit;
    void Visit(const ForNode& loop) override {
      if (loop.annotations.Find(schedule::kChunkCopy) != nullptr) chunks.push_back(&loop);
      StmtVisitor::Visit(loop);
    }
  } loops;
  for (const Stmt& part : copies) loops.VisitStmt(part);
  std::optional<PrimExpr> all;
  std::vector<PrimExpr> lengths;
  bool is_needed = false;
  for (const ForNode* loop : loops.chunks) {
    const std::optional<ChunkCopy> copy = MatchCopy(*loop);
    if (!copy || copy->load == nullptr) continue;
    const Buffer& buffer = copy->load->buffer;
    const std::vector<PrimExpr> from = AtFirstLane(*loop, copy->load->indices);
    const bool is_aligned = IsAligned(buffer, from, copy->lanes);
    is_needed |= !is_aligned;
    const PrimExpr& row = buffer->shape.back();
    if (is_aligned && AsConstInt(row)) continue;
    assumes_whole_rows_ = true;
    const bool fits = IsAligned(buffer, from, copy->lanes);
    assumes_whole_rows_ = false;
    if (!fits || AsConstInt(row)) return std::nullopt;
    if (std::ranges::any_of(lengths, [&](const PrimExpr& other) { return StructuralEqual(other, row); })) continue;
    lengths.push_back(row);
    const PrimExpr is_multiple = Equal(FloorMod(row, Int64(copy->lanes)), Int64(0));
    all = all ? And(*all, is_multiple) : is_multiple;
  }
  return is_needed ? all : std::nullopt;
}

void CudaTiles::EmitCopy(const ForNode& loop, bool is_asynchronous) {
  const std::optional<ChunkCopy> chunk = MatchCopy(loop);
  if (!chunk) return;
  const auto no = [&](const char* what) { Fail("loop \"" + loop.var->name + "\" copies no chunk: " + what); };
  arith::Analyzer& analyzer = exprs_.analyzer();
  const auto& [store, choice, load, lanes] = *chunk;
  const DataType dtype = store->buffer->dtype;
  const std::vector<PrimExpr> to = AtFirstLane(loop, store->indices);
  if (!IsAligned(store->buffer, to, lanes)) return no("the place that it stores to is not aligned");
  const std::optional<Address> address = exprs_.EmitAddress(store->buffer, to);
  if (!address) return;
  llvm::Value* target =
      b_.CreateGEP(numeric_.MemoryType(dtype), address->storage.base, Moved(store->buffer, address->offset));
  llvm::Type* type = llvm::FixedVectorType::get(numeric_.MemoryType(dtype), static_cast<unsigned>(lanes));
  const llvm::Align alignment(kChunkBytes);
  if (load == nullptr) {
    b_.CreateAlignedStore(llvm::Constant::getNullValue(type), target, alignment);
    return;
  }
  const std::vector<PrimExpr> from = AtFirstLane(loop, load->indices);
  const bool is_certain = IsAligned(load->buffer, from, lanes);
  llvm::Value* source = Pointer(load->buffer, from);
  if (source == nullptr) return;

  // The condition holds for lanes that follow each other: it joins bounds that are linear in the lane. One that changes
  // nowhere but between chunks is that of the first lane, and lanes below another one are counted.
  PrimExpr first;                      // null: no part of the condition is the same for all lanes
  PrimExpr count;                      // of the lanes below all other bounds; null: there is none
  std::vector<PrimExpr> other_bounds;  // those that hold from a lane on
  if (choice != nullptr) {
    for (const PrimExpr& part : ConjunctsOf(choice->args[0])) {
      const auto bound = arith::BoundOf(part, loop.var, analyzer);
      if (MentionsAny(part, {loop.var.get()}) && !bound) return no("its condition is no bound");
      const PrimExpr place = bound ? analyzer.Simplify(bound->Place()) : nullptr;
      if (!bound || IsMultiple(load->buffer, place, lanes)) {
        const PrimExpr at_first = AtLane(loop, part, 0);
        first = first ? And(first, at_first) : at_first;
      } else if (bound->holds_after()) {
        other_bounds.push_back(part);
      } else {
        count = count ? Min(count, place) : place;
      }
    }
  }
  const auto condition = [&] { return first ? exprs_.Emit(first) : nullptr; };
  // How many lanes there are, if the rest of the condition holds.
  const auto lanes_there = [&] {
    llvm::Value* counted = exprs_.Emit(Max(Min(count, Int64(lanes)), Int64(0)));
    return status_.failed() ? b_.getInt64(0) : counted;
  };
  const auto copy = [&](llvm::Value* is_there, llvm::Value* number) {  // null: it is, and all are
    if (is_asynchronous) {
      if (is_there == nullptr && number == nullptr) {
        CallConvergent(b_, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {}, {target, source});
        return;
      }
      // Nothing is read where there is nothing, so that the place does not matter.
      llvm::Value* bytes = b_.getInt32(kChunkBytes);
      if (number != nullptr) {
        bytes =
            b_.CreateMul(b_.CreateTrunc(number, b_.getInt32Ty()), b_.getInt32(static_cast<uint32_t>(dtype.bits / 8)));
      }
      if (is_there != nullptr) bytes = b_.CreateSelect(is_there, bytes, b_.getInt32(0));
      CallConvergent(b_, llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s, {}, {target, source, bytes});
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
  const bool is_whole = !count && other_bounds.empty();
  if (is_certain && is_whole) return copy(condition(), nullptr);
  if (is_certain && is_asynchronous && other_bounds.empty()) return copy(condition(), lanes_there());
  const bool copies_elements = !is_certain && assumes_other_rows_;
  llvm::Value* fits = b_.getTrue();
  if (!is_certain && !copies_elements) {
    llvm::Value* rest = b_.CreateAnd(b_.CreatePtrToInt(source, b_.getInt64Ty()), kChunkBytes - 1);
    fits = b_.CreateICmpEQ(rest, b_.getInt64(0));
  }
  if (!is_whole && !copies_elements) {
    for (const int64_t lane : {int64_t{0}, lanes - 1}) {
      fits = b_.CreateAnd(fits, exprs_.Emit(AtLane(loop, choice->args[0], lane)));
      if (status_.failed()) return;
    }
  }
  const auto store_elements = [&](const auto& load_lane) {
    std::vector<llvm::Value*> loaded;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      loaded.push_back(load_lane(lane));
      if (status_.failed()) return;
    }
    // When all are there: a vector in parts would go through branches.
    llvm::Value* elements = llvm::PoisonValue::get(type);
    for (size_t lane = 0; lane < loaded.size(); ++lane) elements = b_.CreateInsertElement(elements, loaded[lane], lane);
    b_.CreateAlignedStore(elements, target, alignment);
  };
  if (copies_elements) {
    return store_elements([&](int64_t lane) -> llvm::Value* {
      llvm::Value* is_there = choice != nullptr ? exprs_.Emit(AtLane(loop, choice->args[0], lane)) : nullptr;
      if (status_.failed()) return nullptr;
      llvm::Type* element = numeric_.MemoryType(dtype);
      return memory_.LoadIf(is_there, element, b_.CreateGEP(element, source, Number(lane)));
    });
  }
  llvm::BasicBlock* whole = function_.NewBlock("whole");
  llvm::BasicBlock* single = function_.NewBlock("single");
  llvm::BasicBlock* done = function_.NewBlock("copied");
  b_.CreateCondBr(fits, whole, single);
  b_.SetInsertPoint(whole);
  copy(is_whole ? condition() : nullptr, nullptr);
  b_.CreateBr(done);
  b_.SetInsertPoint(single);
  store_elements([&](int64_t lane) { return numeric_.ToMemory(exprs_.Emit(AtLane(loop, store->value, lane)), dtype); });
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace ingot::codegen
