// CudaTiles: loops that move and multiply tiles in shared memory as instructions of a warp: cp.async, ldmatrix and
// mma.sync. The loops say themselves what is computed (schedule/device_loops.h has their annotations); each is matched
// here, and one of another form fails by name. Private to code generation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/ir/stmt.h"

namespace ingot::codegen {

llvm::CallInst* CallConvergent(llvm::IRBuilderBase& builder, llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> types,
                               llvm::ArrayRef<llvm::Value*> arguments);

class CudaTiles {
 public:
  CudaTiles(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs);

  // A nest of kWarpProduct in a loop over threadIdx.x, the only axis of the block's threads:
  //   C[c] = C[c] + cast(A[a]) * cast(B[b])
  // Of the nest's loops one runs over k, in steps of 16; some move a alone, by rows, others b alone, by columns. Thread t
  // of a warp has the rows t / 4 and t / 4 + 8 of each 16, and the columns 2 * (t % 4) and the next one of each 8: what
  // mma.sync.m16n8k16 leaves to it. C is the thread's own, A and B are float16 or bfloat16 in shared memory, or A in the
  // warp's (cuda_warp_memory). Those of float32 are rounded to tf32 and multiplied by m16n8k8, in steps of 8.
  struct Product {
    // By a number of elements below the period of the tile's layout: where that many behind the lane's own place lie, in
    // elements of the tile.
    using Places = std::map<int64_t, llvm::Value*>;
    ir::Buffer a, b, c;
    // The first row of each two, and the first column of each two, that a fragment has of the thread's, in elements of A
    // and of B; and by all of them how many elements C moves.
    std::vector<int64_t> rows, columns;
    std::map<int64_t, int64_t> c_rows, c_columns;
    int64_t c_first = 0;
    int64_t row_step = 0, column_step = 0;  // from one to the next, in elements
    int64_t a_depth_step = 0, b_depth_step = 0;
    int64_t steps = 0;
    int64_t step_depth = 0;  // summands of a step
    // Whether rows of A and B in memory run along their own side, so that elements of float32 are loaded one by one: a
    // matrix can be turned while it is loaded where its elements have 16 bits.
    bool loads_a_words = false, loads_b_words = false;
    ir::PrimExpr a_first, b_first;          // where the thread's first element is, over the thread
    Places a_places, b_places;              // of what the lane gives to ldmatrix, or loads
    llvm::AllocaInst* fragments = nullptr;  // those of two steps
    int64_t next_columns = 0;               // from the columns of one matrix to those of the next
    std::vector<int64_t> WordsOfA() const, WordsOfB() const;
  };
  // Nothing after a failure.
  std::optional<Product> MatchProduct(const ir::ForNode& nest, const ir::ForNode& threads);
  // The parts of a step: the fragments are loaded from where the tiles lie now, and stay for MultiplyStep until those of
  // the step after the next one are loaded. It multiplies the fragments of rows from one number to another.
  void LoadStep(const Product& product, int64_t step);
  void MultiplyStep(const Product& product, int64_t step, size_t begin, size_t end);

  // The place of the first one of so many threads, the thread among them: a power of two.
  llvm::Value* OffsetOfFirst(const ir::PrimExpr& first, const ir::ForNode& threads, int64_t of_threads);
  // Whether rows of 128 bytes are spread as the 128-byte swizzle of wgmma does: chunk c of row r lies at c ^ (r % 8).
  bool IsSwizzled(const ir::Buffer& tile) const;

  // Spreads the rows of the launch's tiles over the banks of shared memory, so that eight rows have a chunk at the same
  // place in different ones: a row of at least 128 bytes begins with the chunk of its number modulo 8, two rows of 64 bytes
  // share one of 128. Where chunks come from panels, four rows of two chunks are stored at once: the bits of their number
  // are rotated by one then, so that these lie in different banks, too (not where groups of warps multiply, whose
  // instructions say where chunks lie). Rows of float32 that run along their own side change places by two chunks, and
  // repeat after four rows: of those a warp loads 8 elements from each of four. Before anything is emitted. These are the
  // buffers that chunks are copied to and products of warps are made of, and nothing else touches, whose rows are a power
  // of two.
  void SpreadOverBanks(const ir::Stmt& launch);

  // A loop of kChunkCopy:  S[s + i] = G[g + i]  or  if_then_else(condition, G[g + i], 0)
  // for 16 bytes. Asynchronous: it becomes cp.async where the source is certain to be aligned, of the elements that are
  // there. Else it is found out when it runs whether it is aligned and all is copied or nothing; if not, elements are
  // loaded one by one: all of them are on their way at once, as no branch depends on one.
  void EmitCopy(const ir::ForNode& loop, bool is_asynchronous);
  // What must hold for all copies to be aligned that are not certain to be: symbolic rows have whole chunks. Nothing: all
  // are aligned, or some cannot be. While it is assumed, copies are emitted for that case.
  std::optional<ir::PrimExpr> WholeRows(const std::vector<ir::Stmt>& copies);
  // If they are not, it is no more found out where.
  void AssumeWholeRows(bool assumes) { assumes_whole_rows_ = assumes; }
  void AssumeOtherRows(bool assumes) { assumes_other_rows_ = assumes; }

 private:
  // An access of a tile as a number of elements: first + the sum of the nest's variables times steps.
  struct Place {
    std::vector<int64_t> steps;  // by loop of the nest
    ir::PrimExpr first;          // over the thread and what is around it
  };

  // The chunk's number within 128 bytes is changed by `mask` of the bits of an offset in bytes from `shift` on, each of
  // which is worth `chunks`; perhaps rotated by one bit.
  struct Spread {
    unsigned shift = 0;
    int64_t mask = 0, chunks = 1;
    bool is_rotated = false;
  };

  llvm::Value* Number(int64_t value);
  int64_t PeriodOf(const ir::Buffer& tile) const;
  llvm::Value* Moved(const ir::Buffer& tile, llvm::Value* offset);
  std::optional<Place> PlaceOf(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices,
                               const std::vector<ir::PrimVar>& vars, arith::Analyzer& analyzer);
  llvm::Value* FragmentSlot(const Product& product, int64_t step, int64_t number);
  void LoadKept(const Product& product, int64_t rows, int64_t step, int64_t number);
  void LoadMatrices(const Product& product, const ir::Buffer& tile, const Product::Places& places, int64_t elements,
                    bool turned, int count, int64_t step, int64_t number);
  void LoadWord(const Product& product, const ir::Buffer& tile, const Product::Places& places, int64_t elements,
                int64_t step, int64_t number);
  llvm::Value* PlaceInTile(const ir::Buffer& tile, const Product::Places& places, int64_t elements);  // null: it failed
  struct ChunkCopy;
  std::optional<ChunkCopy> MatchCopy(const ir::ForNode& loop);  // nothing after a failure
  ir::PrimExpr AtLane(const ir::ForNode& loop, const ir::PrimExpr& expr, int64_t lane);
  std::vector<ir::PrimExpr> AtFirstLane(const ir::ForNode& loop, const std::vector<ir::PrimExpr>& indices);
  bool IsAligned(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices, int64_t lanes);
  bool IsMultiple(const ir::Buffer& buffer, const ir::PrimExpr& value, int64_t lanes);
  llvm::Value* Pointer(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices);
  void Fail(const std::string& what);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  ExprEmitter& exprs_;
  llvm::IRBuilderBase& b_;
  Numeric numeric_;
  std::map<const ir::PrimVarNode*, Spread> spreads_;  // of tiles
  bool assumes_whole_rows_ = false, assumes_other_rows_ = false;
};

}  // namespace ingot::codegen
