// Accesses of buffers: addresses from multi-dimensional indices, contiguous, strided and gathered vectors, and the
// alias scopes that tell LLVM which accesses are disjoint. A part of KernelEmitter (kernel_emitter.h).
#include <algorithm>
#include <bit>

#include "compiler/codegen/kernel_emitter.h"

namespace ingot::codegen {

int KernelEmitter::AddAliasScope(const std::string& name) {
  alias_scopes_.push_back(metadata_.createAnonymousAliasScope(alias_domain_, name));
  may_alias_.emplace_back();
  return static_cast<int>(alias_scopes_.size()) - 1;
}

const KernelEmitter::Storage* KernelEmitter::FindStorage(const ir::Buffer& buffer) {
  const auto found = storage_.find(buffer->data.get());
  if (found != storage_.end()) return &found->second;
  Unsupported("buffer \"" + buffer->name + "\" is neither a parameter nor allocated");
  return nullptr;
}

// An access is annotated with the scopes known when it is emitted: those of parameters and of everything allocated
// around or before it. Accesses of a later allocation say themselves that they are disjoint from this one.
template <typename Instruction>
Instruction* KernelEmitter::Annotate(Instruction* access, const Storage& storage) {
  std::vector<llvm::Metadata*> others;
  const std::vector<int>& shared = may_alias_[storage.alias_index];
  for (int i = 0; i < static_cast<int>(alias_scopes_.size()); ++i) {
    const bool may_meet = i == storage.alias_index || std::find(shared.begin(), shared.end(), i) != shared.end();
    if (!may_meet) others.push_back(alias_scopes_[i]);
  }
  llvm::LLVMContext& context = module_.getContext();
  access->setMetadata(llvm::LLVMContext::MD_alias_scope,
                      llvm::MDNode::get(context, {alias_scopes_[storage.alias_index]}));
  if (!others.empty()) access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context, others));
  return access;
}

KernelEmitter::Address KernelEmitter::EmitAddress(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices) {
  Address address;
  if (indices.size() != buffer->shape.size()) {
    Unsupported("an access of \"" + buffer->name + "\" has " + std::to_string(indices.size()) + " indices for " +
                std::to_string(buffer->shape.size()) + " dimensions");
    return address;
  }
  for (const ir::PrimExpr& index : indices) address.lanes = std::max<int>(address.lanes, index->dtype.lanes);
  // If one index is a ramp or a broadcast and the others are scalars, the offset grows by equal steps from lane to
  // lane.
  bool is_affine = true;
  int vector_indices = 0;
  for (const ir::PrimExpr& index : indices) {
    if (index->dtype.lanes == 1) continue;
    ++vector_indices;
    is_affine = is_affine && (ir::As<ir::RampNode>(index) != nullptr || ir::As<ir::BroadcastNode>(index) != nullptr);
  }
  is_affine = is_affine && vector_indices <= 1;

  ++index_depth_;
  llvm::Value* zero = b_.getInt64(0);
  llvm::Value* offset = buffer->elem_offset ? EmitIndex(buffer->elem_offset) : zero;
  llvm::Value* stride_between_lanes = zero;
  if (!is_affine) offset = numeric_.Broadcast(offset, address.lanes);
  // Row-major: dimension k counts the product of the extents behind it.
  llvm::Value* dim_stride = b_.getInt64(1);
  for (size_t k = indices.size(); k-- > 0 && !failed();) {
    if (!buffer->strides.empty()) dim_stride = EmitIndex(buffer->strides[k]);
    const ir::PrimExpr& index = indices[k];
    if (is_affine) {
      ir::PrimExpr base = index;
      if (const auto* ramp = ir::As<ir::RampNode>(index)) {
        base = ramp->base;
        stride_between_lanes = b_.CreateNSWMul(EmitIndex(ramp->stride), dim_stride);
      } else if (const auto* broadcast = ir::As<ir::BroadcastNode>(index)) {
        base = broadcast->value;
      }
      offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(EmitIndex(base), dim_stride));
    } else {
      llvm::Value* lanes = EmitIndex(index);
      if (!lanes->getType()->isVectorTy()) lanes = numeric_.Broadcast(lanes, address.lanes);
      offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(lanes, numeric_.Broadcast(dim_stride, address.lanes)));
    }
    if (buffer->strides.empty() && k > 0) dim_stride = b_.CreateNSWMul(dim_stride, EmitIndex(buffer->shape[k]));
  }
  --index_depth_;
  address.offset = offset;
  if (is_affine) {
    address.stride = stride_between_lanes;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(stride_between_lanes);
    address.contiguous = address.lanes == 1 || (constant != nullptr && constant->isOne());
  }
  return address;
}

llvm::Value* KernelEmitter::ElementPointer(const Storage& storage, DataType dtype, llvm::Value* offset) {
  return b_.CreateInBoundsGEP(numeric_.MemoryType(dtype.element_of()), storage.base, offset);
}

llvm::Value* KernelEmitter::LaneOffset(const Address& address, int lane) {
  if (address.stride == nullptr) return b_.CreateExtractElement(address.offset, static_cast<uint64_t>(lane));
  return b_.CreateNSWAdd(address.offset, b_.CreateNSWMul(address.stride, b_.getInt64(static_cast<uint64_t>(lane))));
}

llvm::Value* KernelEmitter::LanePointers(const Storage& storage, DataType dtype, const Address& address) {
  llvm::Value* offsets = address.offset;
  if (address.stride != nullptr) {
    std::vector<llvm::Constant*> lanes;
    for (int lane = 0; lane < address.lanes; ++lane) lanes.push_back(b_.getInt64(static_cast<uint64_t>(lane)));
    offsets =
        b_.CreateAdd(numeric_.Broadcast(offsets, address.lanes),
                     b_.CreateMul(numeric_.Broadcast(address.stride, address.lanes), llvm::ConstantVector::get(lanes)));
  }
  return b_.CreateGEP(numeric_.MemoryType(dtype.element_of()), storage.base, offsets);
}

// If the condition is a ramp of step 1 below a bound, it holds for the first lanes alone; returns how many (i32).
llvm::Value* KernelEmitter::CountOfFirstLanes(const ir::PrimExpr& condition) {
  const auto* less = ir::As<ir::BinaryNode>(condition);
  if (less == nullptr || less->op != ir::BinaryOp::kLT) return nullptr;
  const auto* ramp = ir::As<ir::RampNode>(less->a);
  const auto* bound = ir::As<ir::BroadcastNode>(less->b);
  if (ramp == nullptr || bound == nullptr || !ir::IsConstInt(ramp->stride, 1) || less->a->dtype.bits != 64) {
    return nullptr;
  }
  ++index_depth_;
  llvm::Value* rest = b_.CreateNSWSub(EmitExpr(bound->value), EmitExpr(ramp->base));
  --index_depth_;
  rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, b_.getInt64(0));
  rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rest, b_.getInt64(static_cast<uint64_t>(ramp->lanes)));
  return b_.CreateTrunc(rest, b_.getInt32Ty());
}

llvm::Value* KernelEmitter::FirstLanes(llvm::Value* count, int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int lane = 0; lane < lanes; ++lane) numbers.push_back(b_.getInt32(static_cast<uint32_t>(lane)));
  return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), numeric_.Broadcast(count, lanes));
}

// Stores the first `count` lanes as a half, a quarter, ... of the vector, one after the other, as the bits of the count
// say. Masked stores are slow if the machine has no mask registers, and a count that is the same for each row makes
// these branches predictable.
void KernelEmitter::StoreFirstLanes(const Storage& storage, llvm::Value* value, llvm::Value* offset, DataType dtype) {
  const llvm::Align alignment(static_cast<uint64_t>(dtype.is_bool() ? 1 : dtype.bits / 8));
  const auto lanes_of = [&](llvm::Value* vector, int first, int count) -> llvm::Value* {
    if (count == 1) return b_.CreateExtractElement(vector, static_cast<uint64_t>(first));
    std::vector<int> lanes(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) lanes[static_cast<size_t>(i)] = first + i;
    return b_.CreateShuffleVector(vector, lanes);
  };
  const auto store_if = [&](llvm::Value* condition, llvm::Value* part, llvm::BasicBlock* after) {
    llvm::BasicBlock* store = NewBlock("store");
    llvm::BasicBlock* next = NewBlock("next");
    b_.CreateCondBr(condition, store, next);
    b_.SetInsertPoint(store);
    Annotate(b_.CreateAlignedStore(part, ElementPointer(storage, dtype, offset), alignment), storage);
    b_.CreateBr(after != nullptr ? after : next);
    b_.SetInsertPoint(next);
  };
  llvm::BasicBlock* done = NewBlock("stored");
  store_if(b_.CreateICmpEQ(mask_count_, b_.getInt32(static_cast<uint32_t>(dtype.lanes))), value, done);
  for (int width = dtype.lanes / 2; width > 0; width /= 2) {
    llvm::Value* low = lanes_of(value, 0, width);
    llvm::Value* high = lanes_of(value, width, width);
    llvm::Value* takes =
        b_.CreateICmpNE(b_.CreateAnd(mask_count_, b_.getInt32(static_cast<uint32_t>(width))), b_.getInt32(0));
    store_if(takes, low, nullptr);
    value = b_.CreateSelect(takes, high, low);
    offset = b_.CreateSelect(takes, b_.CreateNSWAdd(offset, b_.getInt64(static_cast<uint64_t>(width))), offset);
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

bool KernelEmitter::IsMasked(int lanes) const {
  if (mask_ == nullptr || lanes == 1) return false;
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask_->getType())->getNumElements()) == lanes;
}

llvm::Value* KernelEmitter::EmitLoad(const ir::BufferLoadNode& load) {
  const DataType dtype = load.dtype;
  const Storage* storage = FindStorage(load.buffer);
  if (storage == nullptr) return Error(dtype);
  const Address address = EmitAddress(load.buffer, load.indices);
  if (failed()) return Error(dtype);
  const llvm::Align alignment(static_cast<uint64_t>(dtype.is_bool() ? 1 : dtype.bits / 8));
  const auto load_at = [&](llvm::Value* offset, DataType type) -> llvm::Value* {
    llvm::Value* pointer = ElementPointer(*storage, dtype, offset);
    return Annotate(b_.CreateAlignedLoad(numeric_.MemoryType(type), pointer, alignment), *storage);
  };
  llvm::Value* value = nullptr;
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(address.stride);
  if (IsMasked(address.lanes) && (stride == nullptr || !stride->isZero())) {
    llvm::Type* type = numeric_.MemoryType(dtype);
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    llvm::CallInst* access =
        address.contiguous
            ? b_.CreateMaskedLoad(type, ElementPointer(*storage, dtype, address.offset), alignment, mask_, zero)
            : b_.CreateMaskedGather(type, LanePointers(*storage, dtype, address), alignment, mask_, zero);
    value = Annotate(access, *storage);
  } else if (address.contiguous) {
    value = load_at(address.offset, dtype);
  } else if (stride != nullptr && stride->isZero()) {
    value = numeric_.Broadcast(load_at(address.offset, dtype.element_of()), dtype.lanes);
  } else {
    value = llvm::PoisonValue::get(numeric_.MemoryType(dtype));
    for (int lane = 0; lane < dtype.lanes; ++lane) {
      value = b_.CreateInsertElement(value, load_at(LaneOffset(address, lane), dtype.element_of()),
                                     static_cast<uint64_t>(lane));
    }
  }
  return numeric_.FromMemory(value, dtype);
}

void KernelEmitter::EmitStore(const ir::BufferStoreNode& store) {
  const DataType dtype = store.value->dtype;
  llvm::Value* value = EmitExpr(store.value);
  const Storage* storage = FindStorage(store.buffer);
  if (failed()) return;
  const Address address = EmitAddress(store.buffer, store.indices);
  if (failed()) return;
  if (dtype != store.buffer->dtype.with_lanes(address.lanes)) {
    return Unsupported("a " + dtype.ToString() + " is stored to \"" + store.buffer->name + "\" of " +
                       store.buffer->dtype.ToString());
  }
  value = numeric_.ToMemory(value, dtype);
  const llvm::Align alignment(static_cast<uint64_t>(dtype.is_bool() ? 1 : dtype.bits / 8));
  const bool has_mask_registers = target_.vector_bits >= 512;
  if (IsMasked(address.lanes) && address.contiguous && mask_count_ != nullptr && !has_mask_registers &&
      std::has_single_bit(static_cast<unsigned>(address.lanes))) {
    return StoreFirstLanes(*storage, value, address.offset, dtype);
  }
  if (IsMasked(address.lanes)) {
    Annotate(address.contiguous
                 ? b_.CreateMaskedStore(value, ElementPointer(*storage, dtype, address.offset), alignment, mask_)
                 : b_.CreateMaskedScatter(value, LanePointers(*storage, dtype, address), alignment, mask_),
             *storage);
    return;
  }
  if (address.contiguous) {
    Annotate(b_.CreateAlignedStore(value, ElementPointer(*storage, dtype, address.offset), alignment), *storage);
    return;
  }
  for (int lane = 0; lane < address.lanes; ++lane) {
    llvm::Value* element = b_.CreateExtractElement(value, static_cast<uint64_t>(lane));
    llvm::Value* pointer = ElementPointer(*storage, dtype, LaneOffset(address, lane));
    Annotate(b_.CreateAlignedStore(element, pointer, alignment), *storage);
  }
}

}  // namespace ingot::codegen
