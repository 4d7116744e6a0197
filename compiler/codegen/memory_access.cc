// The instructions of one access: a plain, masked or gathered one, or one per lane. Booleans take a byte in memory.
#include "compiler/codegen/memory_access.h"

#include <llvm/Analysis/Loads.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/check.h"

namespace ingot::codegen {
namespace {

llvm::Align ElementAlignment(DataType dtype) {
  return llvm::Align(static_cast<uint64_t>(dtype.is_bool() ? 1 : dtype.bits / 8));
}

// Of the access of all lanes of the address.
llvm::Align AlignmentOf(const Address& address, const llvm::Value* offset, DataType dtype) {
  const llvm::Align of_element = ElementAlignment(dtype);
  if (offset != address.offset || dtype.lanes != address.lanes) return of_element;
  return std::max(of_element, llvm::Align(static_cast<uint64_t>(address.alignment)));
}

}  // namespace

MemoryAccess::MemoryAccess(FunctionBuilder& function, const std::string& kernel, const Target& target)
    : function_(function),
      b_(function.instructions()),
      numeric_(b_),
      has_mask_registers_(target.vector_bits >= 512),
      has_predicates_(target.kind == Target::Kind::kCuda),
      scopes_(function.context(), kernel) {}

const Storage* MemoryAccess::Find(const ir::PrimVarNode* data) const {
  const auto found = storage_.find(data);
  return found == storage_.end() ? nullptr : &found->second;
}

MemoryAccess::StorageMap MemoryAccess::ExchangeStorage(StorageMap storage) {
  return std::exchange(storage_, std::move(storage));
}

bool MemoryAccess::IsMasked(int lanes) const {
  if (mask_.lanes == nullptr || lanes == 1) return false;
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask_.lanes->getType())->getNumElements()) == lanes;
}

llvm::Value* MemoryAccess::ElementPointer(const Address& address, DataType dtype, llvm::Value* offset) {
  llvm::Type* type = numeric_.MemoryType(dtype.element_of());
  if (predicate_ != nullptr && IsShared(address.storage)) return b_.CreateGEP(type, address.storage.base, offset);
  return b_.CreateInBoundsGEP(type, address.storage.base, offset);
}

llvm::Value* MemoryAccess::LaneOffset(const Address& address, int lane) {
  if (address.stride == nullptr) return b_.CreateExtractElement(address.offset, static_cast<uint64_t>(lane));
  return b_.CreateNSWAdd(address.offset, b_.CreateNSWMul(address.stride, b_.getInt64(static_cast<uint64_t>(lane))));
}

llvm::Value* MemoryAccess::LanePointers(const Address& address, DataType dtype) {
  llvm::Value* offsets = address.offset;
  if (address.stride != nullptr) {
    std::vector<llvm::Constant*> lanes;
    for (int lane = 0; lane < address.lanes; ++lane) lanes.push_back(b_.getInt64(static_cast<uint64_t>(lane)));
    offsets =
        b_.CreateAdd(numeric_.Broadcast(offsets, address.lanes),
                     b_.CreateMul(numeric_.Broadcast(address.stride, address.lanes), llvm::ConstantVector::get(lanes)));
  }
  return b_.CreateGEP(numeric_.MemoryType(dtype.element_of()), address.storage.base, offsets);
}

llvm::Value* MemoryAccess::LoadAt(const Address& address, llvm::Value* offset, DataType dtype) {
  llvm::Value* pointer = ElementPointer(address, dtype, offset);
  if (predicate_ != nullptr && IsShared(address.storage)) {
    INGOT_CHECK(dtype.is_scalar(), "a vector is loaded by a condition");
    return LoadIf(predicate_, numeric_.MemoryType(dtype), pointer);
  }
  llvm::LoadInst* load = b_.CreateAlignedLoad(numeric_.MemoryType(dtype), pointer, AlignmentOf(address, offset, dtype));
  scopes_.Annotate(load, address.storage.alias_scope);
  return load;
}

bool MemoryAccess::IsShared(const Storage& storage) {
  const unsigned space = storage.base->getType()->getPointerAddressSpace();
  return space == kCudaGlobalMemory || space == kCudaSharedMemory;
}

llvm::Value* MemoryAccess::LoadIf(llvm::Value* condition, llvm::Type* type, llvm::Value* place) {
  const auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
  if (condition == nullptr) return b_.CreateAlignedLoad(type, place, llvm::Align(bits / 8));
  const unsigned of_word = std::max(bits, 16U);  // there are no registers of bytes
  const char* memory = place->getType()->getPointerAddressSpace() == kCudaSharedMemory ? "shared" : "global";
  const std::string text = "mov.b" + std::to_string(of_word) + " $0, 0; @$2 ld." + memory + (bits == 8 ? ".u" : ".b") +
                           std::to_string(bits) + " $0, [$1];";
  llvm::Type* word = b_.getIntNTy(of_word);
  llvm::InlineAsm* load =
      llvm::InlineAsm::get(llvm::FunctionType::get(word, {place->getType(), b_.getInt1Ty()}, false), text,
                           of_word == 16   ? "=&h,l,b"
                           : of_word == 32 ? "=&r,l,b"
                                           : "=&l,l,b",
                           /*hasSideEffects=*/false);
  llvm::CallInst* value = b_.CreateCall(load, {place, condition});
  value->setOnlyReadsMemory();  // equal ones become one
  return b_.CreateBitCast(b_.CreateTrunc(value, b_.getIntNTy(bits)), type);
}

void MemoryAccess::StoreAt(const Address& address, llvm::Value* offset, llvm::Value* value, DataType dtype) {
  llvm::Value* pointer = ElementPointer(address, dtype, offset);
  scopes_.Annotate(b_.CreateAlignedStore(value, pointer, AlignmentOf(address, offset, dtype)),
                   address.storage.alias_scope);
}

bool MemoryAccess::IsLocal(const Address& address) {
  return llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address.storage.base));
}

bool MemoryAccess::IsInLocal(const Address& address, DataType dtype) {
  if (!address.contiguous || !IsLocal(address)) return false;
  const llvm::Value* pointer = ElementPointer(address, dtype, address.offset);
  return llvm::isDereferenceablePointer(pointer, numeric_.MemoryType(dtype),
                                        b_.GetInsertBlock()->getModule()->getDataLayout());
}

llvm::Value* MemoryAccess::LoadAtMasked(const Address& address, llvm::Value* offset, DataType dtype,
                                        llvm::Value* lanes) {
  llvm::Type* type = numeric_.MemoryType(dtype);
  llvm::CallInst* load = b_.CreateMaskedLoad(type, ElementPointer(address, dtype, offset), ElementAlignment(dtype),
                                             lanes, llvm::Constant::getNullValue(type));
  scopes_.Annotate(load, address.storage.alias_scope);
  return load;
}

llvm::Value* MemoryAccess::LoadMasked(const Address& address, DataType dtype) {
  if (address.contiguous) return LoadAtMasked(address, address.offset, dtype, mask_.lanes);
  llvm::Type* type = numeric_.MemoryType(dtype);
  llvm::CallInst* load = b_.CreateMaskedGather(type, LanePointers(address, dtype), ElementAlignment(dtype), mask_.lanes,
                                               llvm::Constant::getNullValue(type));
  scopes_.Annotate(load, address.storage.alias_scope);
  return load;
}

void MemoryAccess::StoreMasked(const Address& address, llvm::Value* value, DataType dtype) {
  const llvm::Align alignment = ElementAlignment(dtype);
  llvm::CallInst* store =
      address.contiguous
          ? b_.CreateMaskedStore(value, ElementPointer(address, dtype, address.offset), alignment, mask_.lanes)
          : b_.CreateMaskedScatter(value, LanePointers(address, dtype), alignment, mask_.lanes);
  scopes_.Annotate(store, address.storage.alias_scope);
}

// Stores the first lanes as a half, a quarter, ... of the vector, one after the other, as the bits of their count say.
// Masked stores are slow if the machine has no mask registers, and a count that is the same for each row makes these
// branches predictable.
void MemoryAccess::StoreFirstLanes(const Address& address, llvm::Value* value, DataType dtype) {
  const auto lanes_of = [&](llvm::Value* vector, int first, int count) -> llvm::Value* {
    if (count == 1) return b_.CreateExtractElement(vector, static_cast<uint64_t>(first));
    std::vector<int> lanes(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) lanes[static_cast<size_t>(i)] = first + i;
    return b_.CreateShuffleVector(vector, lanes);
  };
  llvm::Value* offset = address.offset;
  const auto store_if = [&](llvm::Value* condition, llvm::Value* part, llvm::BasicBlock* after) {
    llvm::BasicBlock* store = function_.NewBlock("store");
    llvm::BasicBlock* next = function_.NewBlock("next");
    b_.CreateCondBr(condition, store, next);
    b_.SetInsertPoint(store);
    StoreAt(address, offset, part, dtype);
    b_.CreateBr(after != nullptr ? after : next);
    b_.SetInsertPoint(next);
  };
  llvm::BasicBlock* done = function_.NewBlock("stored");
  store_if(b_.CreateICmpEQ(mask_.count, b_.getInt32(static_cast<uint32_t>(dtype.lanes))), value, done);
  for (int width = dtype.lanes / 2; width > 0; width /= 2) {
    llvm::Value* low = lanes_of(value, 0, width);
    llvm::Value* high = lanes_of(value, width, width);
    llvm::Value* takes =
        b_.CreateICmpNE(b_.CreateAnd(mask_.count, b_.getInt32(static_cast<uint32_t>(width))), b_.getInt32(0));
    store_if(takes, low, nullptr);
    value = b_.CreateSelect(takes, high, low);
    offset = b_.CreateSelect(takes, b_.CreateNSWAdd(offset, b_.getInt64(static_cast<uint64_t>(width))), offset);
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Elements a few steps apart: whole vectors of all elements from the first one to the last one, of which the lanes are
// chosen. Every element between belongs to the buffer, since the first and the last do. Under a mask the vectors are
// masked too.
llvm::Value* MemoryAccess::LoadStrided(const Address& address, int64_t stride, DataType dtype) {
  const int64_t lanes = dtype.lanes, last = (lanes - 1) * stride;
  llvm::Value* all = nullptr;
  std::vector<int64_t> places;  // of the elements of `all`, from the first lane's on
  for (int64_t k = 0; k < stride; ++k) {
    const int64_t begin = std::min(k * lanes, last + 1 - lanes);
    llvm::Value* offset = b_.CreateNSWAdd(address.offset, b_.getInt64(static_cast<uint64_t>(begin)));
    llvm::Value* part = IsMasked(address.lanes)
                            ? LoadAtMasked(address, offset, dtype, MaskBetween(stride, begin, dtype.lanes))
                            : LoadAt(address, offset, dtype);
    for (int64_t lane = 0; lane < lanes; ++lane) places.push_back(begin + lane);
    if (all == nullptr) {
      all = part;
      continue;
    }
    // Both operands of a shuffle have the same type.
    std::vector<int> widened(static_cast<size_t>(k * lanes), llvm::PoisonMaskElem);
    std::vector<int> joined(static_cast<size_t>((k + 1) * lanes));
    std::iota(widened.begin(), widened.begin() + lanes, 0);
    if (k > 1) part = b_.CreateShuffleVector(part, widened);
    std::iota(joined.begin(), joined.end(), 0);
    all = b_.CreateShuffleVector(all, part, joined);
  }
  std::vector<int> chosen;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    chosen.push_back(static_cast<int>(std::ranges::find(places, lane * stride) - places.begin()));
  }
  return b_.CreateShuffleVector(all, chosen);
}

// The mask of `lanes` elements from the given one on, where every stride-th element is a lane of the mask in force:
// those of the lanes, or all up to the last lane's.
llvm::Value* MemoryAccess::MaskBetween(int64_t stride, int64_t begin, int lanes) {
  if (mask_.count != nullptr) {
    std::vector<llvm::Constant*> elements;
    for (int64_t i = 0; i < lanes; ++i) elements.push_back(b_.getInt32(static_cast<uint32_t>(begin + i)));
    // Behind the last lane's element come stride - 1 others: those before the next lane's.
    llvm::Value* end = b_.CreateNSWSub(b_.CreateNSWMul(mask_.count, b_.getInt32(static_cast<uint32_t>(stride))),
                                       b_.getInt32(static_cast<uint32_t>(stride - 1)));
    return b_.CreateICmpSLT(llvm::ConstantVector::get(elements), numeric_.Broadcast(end, lanes));
  }
  std::vector<int> of_lanes;
  for (int64_t place = begin; place < begin + lanes; ++place) {
    of_lanes.push_back(static_cast<int>(place % stride == 0 ? place / stride : lanes));  // lane `lanes`: none
  }
  return b_.CreateShuffleVector(mask_.lanes, llvm::Constant::getNullValue(mask_.lanes->getType()), of_lanes);
}

llvm::Value* MemoryAccess::Load(const Address& address, DataType dtype) {
  constexpr int64_t kMostStride = 4;
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(address.stride);
  const bool is_splat = stride != nullptr && stride->isZero();
  const bool has_close_elements =
      stride != nullptr && stride->getSExtValue() > 1 && stride->getSExtValue() <= kMostStride && !IsLocal(address);
  llvm::Value* value = nullptr;
  if (IsMasked(address.lanes) && has_close_elements) {
    value = LoadStrided(address, stride->getSExtValue(), dtype);
  } else if (IsMasked(address.lanes) && !is_splat) {
    value = mask_.is_of_stores && IsInLocal(address, dtype) ? LoadAt(address, address.offset, dtype)
                                                            : LoadMasked(address, dtype);
  } else if (address.contiguous) {
    value = LoadAt(address, address.offset, dtype);
  } else if (is_splat) {
    value = numeric_.Broadcast(LoadAt(address, address.offset, dtype.element_of()), dtype.lanes);
  } else if (has_close_elements) {
    value = LoadStrided(address, stride->getSExtValue(), dtype);
  } else {
    value = llvm::PoisonValue::get(numeric_.MemoryType(dtype));
    for (int lane = 0; lane < dtype.lanes; ++lane) {
      llvm::Value* element = LoadAt(address, LaneOffset(address, lane), dtype.element_of());
      value = b_.CreateInsertElement(value, element, static_cast<uint64_t>(lane));
    }
  }
  return numeric_.FromMemory(value, dtype);
}

void MemoryAccess::Store(const Address& address, llvm::Value* value, DataType dtype) {
  value = numeric_.ToMemory(value, dtype);
  if (IsMasked(address.lanes)) {
    if (IsInLocal(address, dtype)) {
      llvm::Value* old = LoadAt(address, address.offset, dtype);
      return StoreAt(address, address.offset, b_.CreateSelect(mask_.lanes, value, old), dtype);
    }
    const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(address.lanes));
    if (address.contiguous && mask_.count != nullptr && !has_mask_registers_ && is_power_of_two) {
      return StoreFirstLanes(address, value, dtype);
    }
    return StoreMasked(address, value, dtype);
  }
  if (address.contiguous) return StoreAt(address, address.offset, value, dtype);
  for (int lane = 0; lane < address.lanes; ++lane) {
    llvm::Value* element = b_.CreateExtractElement(value, static_cast<uint64_t>(lane));
    StoreAt(address, LaneOffset(address, lane), element, dtype);
  }
}

}  // namespace ingot::codegen
