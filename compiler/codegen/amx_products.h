// AmxProducts: nests of loops that add products of words of bytes to sums, as tile instructions of x86-64 (AMX): one
// multiplies up to 16 rows of 64 bytes by 16 columns. The loops say themselves what is computed (kAmxProduct of
// schedule/device_loops.h); a nest of another form fails by name. Private to code generation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/ir/stmt.h"

namespace ingot::codegen {

class AmxProducts {
 public:
  AmxProducts(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs);

  // Whether the function has such nests that can be tiles: none where it calls external functions, which may use tiles
  // themselves.
  static bool AreIn(const ir::Stmt& body, const KernelDescription& description);
  // A nest of serial loops over rows, panels of columns, columns of a panel and summands, in any order:
  //   C[c] = C[c] + T.dot_bytes(A[a], B[b])
  // Where the loop over summands is the innermost one, C[c] = 0 may stand in front of it.
  //
  // Rows move A and C; there are at most 32, of a constant number, or at most 16. Columns move B and C: at most 16 that
  // are neighbours in both, or 16 of each of a few panels, 16 elements apart in C. Summands are neighbours in A, and rows
  // of 16 elements in B. Panels times blocks of 16 rows are at most 4: the tiles of the sums. All elements are int32, and
  // no place is read from memory.
  void Emit(const ir::ForNode& nest);
  // Other code runs on this thread, which may leave the tiles in another form.
  void Forget();
  // Behind everything else: a task leaves the tiles as it found them.
  void Finish();

 private:
  struct Product;
  // Where the factors are, and the bytes from one row, or from one panel, to the next.
  struct Factors {
    llvm::Value *a, *b, *a_row, *b_panel;
  };
  std::optional<Product> Match(const ir::ForNode& nest);  // nothing after a failure
  llvm::Value* Pointer(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& first);
  llvm::Value* Moved(llvm::Value* from, llvm::Value* times, llvm::Value* bytes);
  llvm::Value* BytesOf(const ir::PrimExpr& elements);
  void EmitProduct(const Product& product);
  void MultiplyAll(const Product& product);
  void Configure(const Product& product);
  void LoadConfig(const Product& product);
  void MultiplyStep(const Product& product, const Factors& factors);
  void MultiplyRest(const Product& product, const Factors& factors, llvm::Value* first, llvm::Value* left);
  // What the body emits, where the condition holds.
  template <typename Body>
  void If(llvm::Value* condition, const Body& body);
  // The same where the count is above 0.
  template <typename Body>
  void IfSome(const ir::PrimExpr& count, const Body& body);
  // The body of a loop over [0, count), which is emitted with the loop's variable.
  template <typename Body>
  void Repeat(llvm::Value* count, const Body& body);
  void Call(unsigned intrinsic, const std::vector<llvm::Value*>& arguments);
  llvm::Value* Number(int64_t value);
  llvm::Value* Tile(int64_t number);
  // So many bytes in the frame of the function that is being emitted, the same for all of its nests: one runs at a time.
  llvm::AllocaInst* Scratch(const std::string& name, int64_t bytes);
  llvm::AllocaInst* Configured();
  void Fail(const std::string& what);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  ExprEmitter& exprs_;
  llvm::IRBuilderBase& b_;
  std::map<std::pair<llvm::Function*, std::string>, llvm::AllocaInst*> scratch_;
};

}  // namespace ingot::codegen
