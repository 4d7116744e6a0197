// MemoryAccess: loads and stores of buffers' elements: scalars, contiguous, strided and gathered vectors, masked where
// a condition per lane is in force. It owns where each buffer lies in the function that is being emitted, the alias
// scopes of the kernel, and the lane mask. Addresses come from ExprEmitter, memory from the target's allocations.
// Private to code generation.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "compiler/codegen/alias_scopes.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/numeric.h"
#include "compiler/ir/expr.h"
#include "compiler/target/target.h"

namespace ingot::codegen {

inline constexpr unsigned kCudaGlobalMemory = 1, kCudaSharedMemory = 3;  // NVPTX's address spaces

// Where a buffer is, within the function that is being emitted.
struct Storage {
  llvm::Value* base = nullptr;
  int alias_scope = -1;
  int64_t alignment = 1;
};

// The place of one access; offsets count elements.
struct Address {
  Storage storage;
  llvm::Value* offset = nullptr;  // i64; for strided accesses of the first lane; for gathered ones a vector
  llvm::Value* stride = nullptr;  // i64, between lanes; null: gathered
  bool contiguous = false;
  int lanes = 1;
  int64_t alignment = 1;  // of a vector, where it is known to be more than an element's: in bytes
};

// The lanes that take part in vector accesses of as many lanes; without one, all do.
struct LaneMask {
  llvm::Value* lanes = nullptr;  // i1 per lane
  llvm::Value* count = nullptr;  // how many lanes (i32), if they are the first ones
  bool is_of_stores = false;     // nothing but stores under the same mask uses what is computed
};

class MemoryAccess {
 public:
  using StorageMap = std::unordered_map<const ir::PrimVarNode*, Storage>;  // by the buffer's data variable

  MemoryAccess(FunctionBuilder& function, const std::string& kernel, const Target& target);

  AliasScopes& scopes() { return scopes_; }

  void Bind(const ir::PrimVarNode* data, const Storage& storage) { storage_[data] = storage; }
  const Storage* Find(const ir::PrimVarNode* data) const;
  // For a function inside of another one, which sees none of the other's storage.
  StorageMap ExchangeStorage(StorageMap storage);

  const LaneMask& mask() const { return mask_; }
  void set_mask(const LaneMask& mask) { mask_ = mask; }

  // On a GPU, loads that a condition guards without a branch. A condition that is set is in force for all loads of what
  // other threads see, until another one is; where it does not hold, they give 0 and touch no memory.
  bool has_predicates() const { return has_predicates_; }
  llvm::Value* predicate() const { return predicate_; }  // i1; null: all loads are made
  void set_predicate(llvm::Value* predicate) { predicate_ = predicate; }
  // Whether other threads see the memory: global or shared one of a GPU.
  static bool IsShared(const Storage& storage);
  // The scalar at this place if the condition holds (null: it does), else 0. A branch would let no other load start
  // before this one ends.
  llvm::Value* LoadIf(llvm::Value* condition, llvm::Type* type, llvm::Value* place);

  // The value of the dtype in registers (Numeric), with as many lanes as the address.
  llvm::Value* Load(const Address& address, DataType dtype);
  void Store(const Address& address, llvm::Value* value, DataType dtype);

 private:
  bool IsMasked(int lanes) const;               // whether accesses of so many lanes are masked
  static bool IsLocal(const Address& address);  // in an array that a task has for itself
  llvm::Value* LoadStrided(const Address& address, int64_t stride, DataType dtype);
  // Whether the vector lies in a local array of known size, which a task has for itself. All lanes are read and written
  // there, so that the array can become registers.
  bool IsInLocal(const Address& address, DataType dtype);
  llvm::Value* ElementPointer(const Address& address, DataType dtype, llvm::Value* offset);
  llvm::Value* LaneOffset(const Address& address, int lane);
  llvm::Value* LanePointers(const Address& address, DataType dtype);
  llvm::Value* LoadAt(const Address& address, llvm::Value* offset, DataType dtype);
  void StoreAt(const Address& address, llvm::Value* offset, llvm::Value* value, DataType dtype);
  llvm::Value* LoadMasked(const Address& address, DataType dtype);
  llvm::Value* LoadAtMasked(const Address& address, llvm::Value* offset, DataType dtype, llvm::Value* lanes);
  llvm::Value* MaskBetween(int64_t stride, int64_t begin, int lanes);
  void StoreMasked(const Address& address, llvm::Value* value, DataType dtype);
  void StoreFirstLanes(const Address& address, llvm::Value* value, DataType dtype);

  FunctionBuilder& function_;
  llvm::IRBuilderBase& b_;
  Numeric numeric_;
  const bool has_mask_registers_, has_predicates_;
  AliasScopes scopes_;
  StorageMap storage_;
  LaneMask mask_;
  llvm::Value* predicate_ = nullptr;
};

}  // namespace ingot::codegen
