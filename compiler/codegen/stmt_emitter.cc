// Statements by kind: stores, control flow and asserts.
#include "compiler/codegen/stmt_emitter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/check.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {

StmtEmitter::StmtEmitter(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs,
                         KernelRuntime& runtime, TargetStatements& target, const KernelDescription& description)
    : function_(function),
      status_(status),
      memory_(memory),
      exprs_(exprs),
      runtime_(runtime),
      target_(target),
      description_(description),
      b_(function.instructions()),
      numeric_(b_) {}

void StmtEmitter::Emit(const ir::Stmt& stmt) {
  if (status_.failed()) return;
  switch (stmt->kind) {
    case ir::StmtKind::kBufferStore:
      return EmitStore(*ir::As<ir::BufferStoreNode>(stmt));
    case ir::StmtKind::kEvaluate:
      exprs_.Emit(ir::As<ir::EvaluateNode>(stmt)->value);
      return;
    case ir::StmtKind::kSeq:
      for (const ir::Stmt& part : ir::As<ir::SeqNode>(stmt)->stmts) Emit(part);
      return;
    case ir::StmtKind::kIf:
      return EmitIf(*ir::As<ir::IfStmtNode>(stmt));
    case ir::StmtKind::kFor:
      return EmitFor(*ir::As<ir::ForNode>(stmt));
    case ir::StmtKind::kWhile:
      return EmitWhile(*ir::As<ir::WhileNode>(stmt));
    case ir::StmtKind::kLet: {
      const auto& let = *ir::As<ir::LetStmtNode>(stmt);
      exprs_.Bind(let.var.get(), exprs_.Emit(let.value));
      return Emit(let.body);
    }
    case ir::StmtKind::kAssert:
      return EmitAssert(*ir::As<ir::AssertStmtNode>(stmt));
    case ir::StmtKind::kAllocate:
      return EmitAllocate(*ir::As<ir::AllocateNode>(stmt));
    case ir::StmtKind::kAttr:
      return status_.Unsupported("attribute \"" + ir::As<ir::AttrStmtNode>(stmt)->key + "\" was not lowered");
    case ir::StmtKind::kBlock:
    case ir::StmtKind::kBlockRealize:
      return status_.Unsupported("a block was not lowered");
  }
}

void StmtEmitter::EmitStore(const ir::BufferStoreNode& store) {
  const DataType dtype = store.value->dtype;
  llvm::Value* value = exprs_.Emit(store.value);
  const std::optional<Address> address = exprs_.EmitAddress(store.buffer, store.indices);
  if (!address) return;
  if (dtype != store.buffer->dtype.with_lanes(address->lanes)) {
    return status_.Unsupported("a " + dtype.ToString() + " is stored to \"" + store.buffer->name + "\" of " +
                               store.buffer->dtype.ToString());
  }
  memory_.Store(*address, value, dtype);
}

void StmtEmitter::EmitIf(const ir::IfStmtNode& node) {
  const LaneMask outer = memory_.mask();
  LaneMask inner = outer;
  llvm::Value* condition = nullptr;
  if (node.condition->dtype.is_scalar()) {
    condition = exprs_.Emit(node.condition);
  } else {  // stores of the lanes where it holds
    inner.count = outer.lanes == nullptr ? exprs_.EmitCountOfFirstLanes(node.condition) : nullptr;
    condition = exprs_.Emit(node.condition);
    if (status_.failed()) return;
    inner.is_of_stores = true;
    inner.lanes = outer.lanes != nullptr ? b_.CreateLogicalAnd(outer.lanes, condition) : condition;
    condition = inner.count != nullptr ? b_.CreateICmpSGT(inner.count, b_.getInt32(0)) : b_.CreateOrReduce(inner.lanes);
  }
  if (status_.failed()) return;
  llvm::BasicBlock* then_block = function_.NewBlock("then");
  llvm::BasicBlock* else_block = node.else_case ? function_.NewBlock("else") : nullptr;
  llvm::BasicBlock* done = function_.NewBlock("endif");
  b_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : done);
  b_.SetInsertPoint(then_block);
  memory_.set_mask(inner);
  Emit(node.then_case);
  memory_.set_mask(outer);
  b_.CreateBr(done);
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    Emit(node.else_case);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

void StmtEmitter::EmitFor(const ir::ForNode& loop) {
  switch (loop.for_kind) {
    case ir::ForKind::kSerial:
      return EmitSerialFor(loop);
    case ir::ForKind::kParallel:
    case ir::ForKind::kThreadBinding:
      return target_.EmitIndependentLoop(loop);
    case ir::ForKind::kVectorized:
    case ir::ForKind::kUnrolled:
      return status_.Unsupported("loop \"" + loop.var->name + "\" was not lowered");
  }
}

void StmtEmitter::EmitSerialFor(const ir::ForNode& loop) {
  llvm::Type* type = numeric_.RegisterType(loop.var->dtype);
  llvm::Value* begin = exprs_.EmitWithoutOverflow(loop.min);
  llvm::Value* extent = exprs_.EmitWithoutOverflow(loop.extent);
  if (status_.failed()) return;
  llvm::Value* end = b_.CreateNSWAdd(begin, extent);
  exprs_.SetRange(loop.var, ir::Range{loop.min, loop.extent});
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = function_.NewBlock("loop");
  llvm::BasicBlock* body = function_.NewBlock("body");
  llvm::BasicBlock* done = function_.NewBlock("endloop");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* var = b_.CreatePHI(type, 2, loop.var->name);
  var->addIncoming(begin, before);
  b_.CreateCondBr(b_.CreateICmpSLT(var, end), body, done);
  b_.SetInsertPoint(body);
  exprs_.Bind(loop.var.get(), var);
  Emit(loop.body);
  var->addIncoming(b_.CreateNSWAdd(var, llvm::ConstantInt::get(type, 1)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

void StmtEmitter::EmitWhile(const ir::WhileNode& loop) {
  llvm::BasicBlock* head = function_.NewBlock("while");
  llvm::BasicBlock* body = function_.NewBlock("body");
  llvm::BasicBlock* done = function_.NewBlock("endwhile");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* condition = exprs_.Emit(loop.condition);
  if (status_.failed()) return;
  b_.CreateCondBr(condition, body, done);
  b_.SetInsertPoint(body);
  Emit(loop.body);
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

void StmtEmitter::EmitAllocate(const ir::AllocateNode& allocate) {
  const ir::Buffer& buffer = allocate.buffer;
  if (!Numeric::IsSupported(buffer->dtype) || buffer->dtype.is_handle()) {
    return status_.Unsupported("buffer \"" + buffer->name + "\" is " + buffer->dtype.ToString() +
                               ", which kernels do not support yet");
  }
  const std::optional<Storage> storage = target_.Allocate(buffer);
  if (!storage) return;
  memory_.Bind(buffer->data.get(), *storage);
  Emit(allocate.body);
}

void StmtEmitter::EmitAssert(const ir::AssertStmtNode& node) {
  const std::vector<std::string>& messages = description_.kernel.messages;
  const auto found = std::find(messages.begin(), messages.end(), node.message);
  INGOT_CHECK(found != messages.end(), node.message.c_str());
  llvm::Value* condition = exprs_.Emit(node.condition);
  if (status_.failed()) return;
  runtime_.FailIf(b_.CreateNot(condition), INGOT_KERNEL_ASSERT,
                  b_.getInt64(static_cast<uint64_t>(found - messages.begin())), b_.getInt64(0));
  Emit(node.body);
}

}  // namespace ingot::codegen
