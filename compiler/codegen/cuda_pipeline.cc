// A loop of kPipelineStages: tiles of several iterations are on their way to shared memory at once, and fragments of the
// next step of a product to registers while the present one is multiplied.
//
//   for k in the first stages - 1 iterations:  copy the tiles of k to stage k; a group of copies ends
//   wait for the first group, and for all threads; load the first step's fragments
//   for k:
//     for each step but the last one:
//       load the fragments of the next step
//       first step: copy the tiles of k + stages - 1 to their stage, which all threads have read; a group ends
//       multiply
//     last step:
//       multiply one half
//       wait for the group of k + 1, and for all threads; load its first step's fragments
//       multiply the other half
//   wait for all threads
//
// Rows of symbolic lengths: the loop is there twice, for those of whole chunks as above, and for all others, whose copies
// may be of single elements, with the fragments of each step loaded just before they are multiplied.
//
// Stages are numbered modulo how many there are; each tile has a part of shared memory for each of them, with its rows
// spread over the banks (CudaTiles). Where the iterations end there are empty groups in the place of copies, and the last
// one loads fragments of its own tiles, which nobody needs, so that no branch keeps products and loads apart. The copies
// stand between loads and products, since an instruction that writes a register in which a copy has its address waits for
// the copy.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/codegen/cuda_kernel_emitter.h"
#include "compiler/codegen/cuda_pipeline.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/target/cuda.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kTileAlignment = 128;  // that of the banks

bool IsOneOf(const std::vector<Buffer>& tiles, const PrimVar& data) {
  return std::ranges::any_of(tiles, [&](const Buffer& tile) { return tile->data.same_as(data); });
}

// What a statement stores to, and whether it loads from anything but tiles and global memory.
struct TileUses : StmtVisitor {
  explicit TileUses(const std::vector<Buffer>& all) : tiles(all) {}
  const std::vector<Buffer>& tiles;
  bool stores_tiles = false, stores_others = false, stores_global = false, loads_tiles = false, loads_others = false;
  using StmtVisitor::Visit;
  void Visit(const BufferStoreNode& store) override {
    (IsOneOf(tiles, store.buffer->data) ? stores_tiles : stores_others) = true;
    stores_global |= store.buffer->scope == "global";
    StmtVisitor::Visit(store);
  }
  void Visit(const BufferLoadNode& load) override {
    loads_tiles |= IsOneOf(tiles, load.buffer->data);
    loads_others |= load.buffer->scope != "global" && !IsOneOf(tiles, load.buffer->data);
    StmtVisitor::Visit(load);
  }
};

}  // namespace

std::optional<PipelinedIteration> ReadPipelinedIteration(const ForNode& loop) {
  PipelinedIteration iteration;
  Stmt body = loop.body;
  while (const auto* allocate = As<AllocateNode>(body)) {
    if (allocate->buffer->scope != "shared") return std::nullopt;
    iteration.tiles.push_back(allocate->buffer);
    body = allocate->body;
  }
  const auto* seq = As<SeqNode>(body);
  if (seq == nullptr) return std::nullopt;
  for (const Stmt& part : seq->stmts) {
    const auto* threads = As<ForNode>(part);
    if (threads == nullptr || threads->thread_tag != "threadIdx.x" || iteration.threads != nullptr) return std::nullopt;
    TileUses reader(iteration.tiles);
    reader.VisitStmt(part);
    if (reader.stores_tiles) {
      if (reader.stores_others || reader.loads_tiles || reader.loads_others) return std::nullopt;
      iteration.copies.push_back(part);
      continue;
    }
    iteration.threads = threads;
    iteration.product = As<ForNode>(threads->body);
    const auto is_product = [&](const char* kind) {
      return iteration.product != nullptr && iteration.product->annotations.Find(kind) != nullptr;
    };
    iteration.is_of_groups = is_product(schedule::kGroupProduct);
    if (!iteration.is_of_groups && !is_product(schedule::kWarpProduct)) return std::nullopt;
    if (reader.stores_global) return std::nullopt;
  }
  if (iteration.copies.empty() || iteration.threads == nullptr) return std::nullopt;
  return iteration;
}

int64_t TileBytes(const Buffer& tile, int64_t alignment) {
  int64_t bytes = (tile->dtype.bits + 7) / 8;
  for (const PrimExpr& extent : tile->shape) bytes *= *AsConstInt(extent);
  return (bytes + alignment - 1) / alignment * alignment;
}

// The first byte of shared memory that the launch gives the block, which has so many more of them from `first` on, a
// multiple of the alignment.
llvm::Value* CudaKernelEmitter::DynamicShared(int64_t bytes, int64_t alignment, int64_t* first) {
  *first = (shared_bytes_ + alignment - 1) / alignment * alignment;
  shared_bytes_ = *first + bytes;
  const int64_t most = CudaSharedBytes(target_);
  if (shared_bytes_ + static_shared_bytes_ > most) {
    status_.Unsupported("its blocks need " + std::to_string(shared_bytes_ + static_shared_bytes_) +
                        " bytes of shared memory, of " + std::to_string(most));
  }
  const std::string name = symbol_ + "$shared";
  llvm::GlobalVariable* found = function_.module().getGlobalVariable(name);
  if (found != nullptr) {
    found->setAlignment(std::max(found->getAlign().valueOrOne(), llvm::Align(static_cast<uint64_t>(alignment))));
    return found;
  }
  auto* variable = new llvm::GlobalVariable(
      function_.module(), llvm::ArrayType::get(function_.instructions().getInt8Ty(), 0), /*isConstant=*/false,
      llvm::GlobalValue::ExternalLinkage, nullptr, name, nullptr, llvm::GlobalValue::NotThreadLocal, kCudaSharedMemory);
  variable->setAlignment(llvm::Align(static_cast<uint64_t>(alignment)));
  return variable;
}

void CudaKernelEmitter::EmitPipeline(const ForNode& loop, int64_t stages) {
  llvm::IRBuilderBase& b = function_.instructions();
  const std::optional<PipelinedIteration> iteration = ReadPipelinedIteration(loop);
  if (!iteration || stages < 2 || thread_depth_ == 0 || threads_ != nullptr || in_pipeline_) {
    return status_.Unsupported("loop \"" + loop.var->name + "\" is none whose tiles can be copied ahead");
  }
  if (iteration->is_of_groups) return EmitGroupPipeline(loop, stages, *iteration);
  const int64_t ahead = stages - 1;
  const auto number = [&](int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); };
  const auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments) {
    b.CreateCall(llvm::Intrinsic::getDeclaration(&function_.module(), id), arguments)->setConvergent();
  };
  BindThread(*iteration->threads);
  const std::optional<CudaTiles::Product> product = tiles_.MatchProduct(*iteration->product, *iteration->threads);
  if (!product) return;
  if (product->steps % 2 != 0) return status_.Unsupported("a product that is pipelined has an odd number of steps");
  int64_t first_byte = 0, stage_bytes = 0;
  for (const Buffer& tile : iteration->tiles) stage_bytes += TileBytes(tile, kTileAlignment);
  llvm::Value* memory = DynamicShared(stage_bytes * stages, kTileAlignment, &first_byte);
  std::vector<int> scopes;
  for (const Buffer& tile : iteration->tiles) scopes.push_back(memory_.scopes().Add(tile->name));
  const auto bind = [&](llvm::Value* k, llvm::Value* stage) {
    exprs_.Bind(loop.var.get(), k);
    llvm::Value* begin = b.CreateNSWAdd(b.CreateNSWMul(stage, number(stage_bytes)), number(first_byte));
    int64_t place = 0;
    for (size_t i = 0; i < iteration->tiles.size(); ++i) {
      llvm::Value* base = b.CreateGEP(b.getInt8Ty(), memory, b.CreateNSWAdd(begin, number(place)));
      memory_.Bind(iteration->tiles[i]->data.get(), {base, scopes[i], kTileAlignment});
      place += TileBytes(iteration->tiles[i], kTileAlignment);
    }
  };
  llvm::Value* extent = exprs_.EmitWithoutOverflow(loop.extent);
  if (status_.failed()) return;
  exprs_.SetRange(loop.var, Range{loop.min, loop.extent});
  in_pipeline_ = true;
  bool loads_any_rows = false;  // of which none is certain to be aligned
  // Emits what is done if there is an iteration k.
  const auto if_any = [&](llvm::Value* k, const auto& emit) {
    llvm::BasicBlock* some = function_.NewBlock("some");
    llvm::BasicBlock* next = function_.NewBlock("next");
    b.CreateCondBr(b.CreateICmpSLT(k, extent), some, next);
    b.SetInsertPoint(some);
    emit();
    b.CreateBr(next);
    b.SetInsertPoint(next);
  };
  // In the loop for any rows those of another factor than the one with other rows may be whole.
  const auto copy_part = [&](const Stmt& part) {
    const std::optional<PrimExpr> condition = loads_any_rows ? tiles_.WholeRows({part}) : std::nullopt;
    if (!condition) return stmts_.Emit(part);
    llvm::Value* is_whole = exprs_.Emit(*condition);
    if (status_.failed()) return;
    llvm::BasicBlock* whole = function_.NewBlock("whole_part");
    llvm::BasicBlock* others = function_.NewBlock("any_part");
    llvm::BasicBlock* both = function_.NewBlock("part");
    b.CreateCondBr(is_whole, whole, others);
    b.SetInsertPoint(whole);
    tiles_.AssumeWholeRows(true);
    stmts_.Emit(part);
    tiles_.AssumeWholeRows(false);
    b.CreateBr(both);
    b.SetInsertPoint(others);
    tiles_.AssumeOtherRows(true);
    recomputes_of_thread_ = true;
    stmts_.Emit(part);
    recomputes_of_thread_ = false;
    tiles_.AssumeOtherRows(false);
    b.CreateBr(both);
    b.SetInsertPoint(both);
  };
  const auto copy = [&](llvm::Value* k, llvm::Value* stage) {
    if_any(k, [&] {
      bind(k, stage);
      for (const Stmt& part : iteration->copies) copy_part(part);
    });
    call(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  };
  // When the tiles of k are there, the groups behind theirs are on their way.
  const auto load_first = [&](llvm::Value* k, llvm::Value* stage) {
    call(llvm::Intrinsic::nvvm_cp_async_wait_group, {b.getInt32(static_cast<uint32_t>(ahead - 1))});
    EmitBarrier();
    bind(k, stage);
    tiles_.LoadStep(*product, 0);
  };
  const auto iteration_ahead = [&](llvm::Value* k, llvm::Value* stage, llvm::Value* free_stage,
                                   llvm::Value* following) {
    const size_t rows = product->rows.size(), half = rows / 2;
    for (int64_t step = 0; step + 1 < product->steps; ++step) {
      bind(k, stage);
      tiles_.LoadStep(*product, step + 1);
      if (step == 0) copy(b.CreateNSWAdd(k, number(ahead)), free_stage);
      tiles_.MultiplyStep(*product, step, 0, rows);
    }
    tiles_.MultiplyStep(*product, product->steps - 1, 0, half);
    load_first(b.CreateNSWAdd(k, number(1)), following);
    tiles_.MultiplyStep(*product, product->steps - 1, half, rows);
  };
  // When the tiles of k are there and all threads have read those of k - 1. Fragments are loaded when they are needed:
  // copies of elements one by one need the registers.
  const auto plain_iteration = [&](llvm::Value* k, llvm::Value* stage, llvm::Value* free_stage) {
    call(llvm::Intrinsic::nvvm_cp_async_wait_group, {b.getInt32(static_cast<uint32_t>(ahead - 1))});
    EmitBarrier();
    copy(b.CreateNSWAdd(k, number(ahead)), free_stage);
    bind(k, stage);
    for (int64_t step = 0; step < product->steps; ++step) {
      tiles_.LoadStep(*product, step);
      tiles_.MultiplyStep(*product, step, 0, product->rows.size());
    }
  };
  const auto emit_loop = [&](bool loads_ahead) {
    for (int64_t k = 0; k < ahead; ++k) copy(number(k), number(k));
    if (loads_ahead) if_any(number(0), [&] { load_first(number(0), number(0)); });

    llvm::BasicBlock* before = b.GetInsertBlock();
    llvm::BasicBlock* head = function_.NewBlock("loop");
    llvm::BasicBlock* body = function_.NewBlock("body");
    llvm::BasicBlock* done = function_.NewBlock("endloop");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* k = b.CreatePHI(b.getInt64Ty(), 2, loop.var->name);
    llvm::PHINode* stage = b.CreatePHI(b.getInt64Ty(), 2, "stage");
    llvm::PHINode* free_stage = b.CreatePHI(b.getInt64Ty(), 2, "free");
    k->addIncoming(number(0), before);
    stage->addIncoming(number(0), before);
    free_stage->addIncoming(number(ahead), before);
    b.CreateCondBr(b.CreateICmpSLT(k, extent), body, done);
    b.SetInsertPoint(body);
    llvm::Value* next = b.CreateNSWAdd(k, number(1));
    llvm::Value* after = b.CreateNSWAdd(stage, number(1));
    llvm::Value* following = b.CreateSelect(b.CreateICmpEQ(after, number(stages)), number(0), after);
    if (loads_ahead) {
      iteration_ahead(k, stage, free_stage, b.CreateSelect(b.CreateICmpSLT(next, extent), following, stage));
    } else {
      plain_iteration(k, stage, free_stage);
    }
    llvm::BasicBlock* last = b.GetInsertBlock();
    free_stage->addIncoming(stage, last);
    stage->addIncoming(following, last);
    k->addIncoming(next, last);
    b.CreateBr(head);
    b.SetInsertPoint(done);
  };
  if (const std::optional<PrimExpr> condition = tiles_.WholeRows(iteration->copies)) {
    llvm::BasicBlock* whole = function_.NewBlock("whole_rows");
    llvm::BasicBlock* others = function_.NewBlock("any_rows");
    llvm::BasicBlock* both = function_.NewBlock("rows");
    llvm::Value* is_whole = exprs_.Emit(*condition);
    if (status_.failed()) return;
    b.CreateCondBr(is_whole, whole, others);
    b.SetInsertPoint(whole);
    tiles_.AssumeWholeRows(true);
    emit_loop(true);
    tiles_.AssumeWholeRows(false);
    b.CreateBr(both);
    b.SetInsertPoint(others);
    loads_any_rows = true;
    emit_loop(false);
    b.CreateBr(both);
    b.SetInsertPoint(both);
  } else {
    emit_loop(true);
  }
  in_pipeline_ = false;
  call(llvm::Intrinsic::nvvm_cp_async_wait_all, {});
  EmitBarrier();
}

}  // namespace ingot::codegen
