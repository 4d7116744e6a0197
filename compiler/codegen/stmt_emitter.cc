// Statements by kind: stores, control flow and asserts.
#include "compiler/codegen/stmt_emitter.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"
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
      return EmitSeq(*ir::As<ir::SeqNode>(stmt));
    case ir::StmtKind::kIf:
      return EmitIf(*ir::As<ir::IfStmtNode>(stmt));
    case ir::StmtKind::kFor:
      return EmitFor(*ir::As<ir::ForNode>(stmt));
    case ir::StmtKind::kWhile:
      return EmitWhile(*ir::As<ir::WhileNode>(stmt));
    case ir::StmtKind::kLet: {
      const auto& let = *ir::As<ir::LetStmtNode>(stmt);
      exprs_.BindLet(let.var, let.value);
      return Emit(let.body);
    }
    case ir::StmtKind::kAssert:
      return EmitAssert(*ir::As<ir::AssertStmtNode>(stmt));
    case ir::StmtKind::kAllocate:
      return EmitAllocate(*ir::As<ir::AllocateNode>(stmt));
    case ir::StmtKind::kAttr:
      return EmitAttribute(*ir::As<ir::AttrStmtNode>(stmt));
    case ir::StmtKind::kBlock:
    case ir::StmtKind::kBlockRealize:
      return status_.Unsupported("a block was not lowered");
  }
}

void StmtEmitter::EmitSeq(const ir::SeqNode& seq) {
  for (size_t i = 0; i < seq.stmts.size() && !status_.failed();) {
    const size_t count = memory_.mask().lanes == nullptr ? InterleavedStores(std::span(seq.stmts).subspan(i)) : 1;
    if (count > 1) {
      EmitInterleaved(std::span(seq.stmts).subspan(i, count));
    } else {
      Emit(seq.stmts[i]);
    }
    i += count;
  }
}

namespace {

// The last index, where it alone moves.
const ir::RampNode* RampOf(const ir::BufferStoreNode& store) {
  if (store.indices.empty()) return nullptr;
  const auto is_scalar = [](const ir::PrimExpr& index) { return index->dtype.is_scalar(); };
  if (!std::all_of(store.indices.begin(), store.indices.end() - 1, is_scalar)) return nullptr;
  return ir::As<ir::RampNode>(store.indices.back());
}

// Whether two stores go to the same row.
bool IsSameRow(const ir::BufferStoreNode& a, const ir::BufferStoreNode& b) {
  return std::equal(a.indices.begin(), a.indices.end() - 1, b.indices.begin(), b.indices.end() - 1,
                    [](const ir::PrimExpr& x, const ir::PrimExpr& y) { return ir::StructuralEqual(x, y); });
}

// Whether an expression reads the buffer.
struct ReadFinder : ir::PrimVisitor {
  const ir::BufferNode* buffer = nullptr;
  bool found = false;
  using ir::PrimVisitor::Visit;
  void Visit(const ir::BufferLoadNode& load) override {
    found |= load.buffer.get() == buffer || load.buffer->data.same_as(buffer->data);
    ir::PrimVisitor::Visit(load);
  }
};

}  // namespace

// How many of the statements, from the first one on, store every s-th element, s of them, each one place behind the one
// before (what an unrolled loop over the rests of a place leaves); 1: they are of another kind.
size_t StmtEmitter::InterleavedStores(std::span<const ir::Stmt> stmts) {
  constexpr int64_t kMostRests = 8;
  const auto* first = ir::As<ir::BufferStoreNode>(stmts[0]);
  const ir::RampNode* ramp = first != nullptr ? RampOf(*first) : nullptr;
  const int64_t stride = ramp != nullptr ? ir::AsConstInt(ramp->stride).value_or(0) : 0;
  if (stride < 2 || stride > kMostRests || stmts.size() < static_cast<size_t>(stride)) return 1;
  if (!first->buffer->strides.empty()) return 1;
  arith::Analyzer analyzer;
  for (int64_t rest = 0; rest < stride; ++rest) {
    const auto* store = ir::As<ir::BufferStoreNode>(stmts[static_cast<size_t>(rest)]);
    const ir::RampNode* own = store != nullptr ? RampOf(*store) : nullptr;
    if (own == nullptr || !store->buffer.same_as(first->buffer) || own->lanes != ramp->lanes) return 1;
    if (!IsSameRow(*first, *store)) return 1;
    if (ir::AsConstInt(own->stride) != stride || store->value->dtype != first->value->dtype) return 1;
    if (!ir::IsConstInt(analyzer.Simplify(own->base - ramp->base), rest)) return 1;
    ReadFinder reads;
    reads.buffer = first->buffer.get();
    reads.VisitPrim(store->value);
    for (const ir::PrimExpr& index : store->indices) reads.VisitPrim(index);
    if (reads.found) return 1;
  }
  return static_cast<size_t>(stride);
}

// Such stores as one of all elements between the first and the last.
void StmtEmitter::EmitInterleaved(std::span<const ir::Stmt> stores) {
  const auto& first = *ir::As<ir::BufferStoreNode>(stores[0]);
  const DataType dtype = first.value->dtype;
  std::vector<llvm::Value*> values;
  for (const ir::Stmt& store : stores) values.push_back(exprs_.Emit(ir::As<ir::BufferStoreNode>(store)->value));
  std::optional<Address> address = exprs_.EmitAddress(first.buffer, first.indices);
  if (!address) return;
  if (dtype != first.buffer->dtype.with_lanes(address->lanes)) return Emit(stores[0]);  // which reports it
  // All values side by side; then lane by lane, one of each. Both operands of a shuffle have the same type.
  const int lanes = dtype.lanes, count = static_cast<int>(stores.size());
  std::vector<int> widened(static_cast<size_t>(lanes * count), llvm::PoisonMaskElem);
  std::iota(widened.begin(), widened.begin() + lanes, 0);
  llvm::Value* all = nullptr;
  for (int i = 0; i < count; ++i) {
    llvm::Value* wide = b_.CreateShuffleVector(values[static_cast<size_t>(i)], widened);
    std::vector<int> joined(static_cast<size_t>(lanes * count), llvm::PoisonMaskElem);
    for (int k = 0; k < lanes * i; ++k) joined[static_cast<size_t>(k)] = k;
    for (int k = 0; k < lanes; ++k) joined[static_cast<size_t>(lanes * i + k)] = lanes * count + k;
    all = all == nullptr ? wide : b_.CreateShuffleVector(all, wide, joined);
  }
  std::vector<int> order;
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < count; ++i) order.push_back(i * lanes + lane);
  }
  address->lanes = lanes * count;
  address->stride = b_.getInt64(1);
  address->contiguous = true;
  memory_.Store(*address, b_.CreateShuffleVector(all, order), dtype.with_lanes(lanes * count));
}

void StmtEmitter::EmitStore(const ir::BufferStoreNode& store) { StoreValue(store, exprs_.Emit(store.value)); }

void StmtEmitter::StoreValue(const ir::BufferStoreNode& store, llvm::Value* value) {
  const DataType dtype = store.value->dtype;
  const std::optional<Address> address = exprs_.EmitAddress(store.buffer, store.indices);
  if (!address) return;
  if (dtype != store.buffer->dtype.with_lanes(address->lanes)) {
    return status_.Unsupported("a " + dtype.ToString() + " is stored to \"" + store.buffer->name + "\" of " +
                               store.buffer->dtype.ToString());
  }
  memory_.Store(*address, value, dtype);
}

// Of a thread's own memory, places that are known: they are registers.
bool StmtEmitter::StoresRegisters(const ir::Stmt& stmt) {
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    return std::ranges::all_of(seq->stmts, [&](const ir::Stmt& part) { return StoresRegisters(part); });
  }
  const auto* store = ir::As<ir::BufferStoreNode>(stmt);
  if (store == nullptr || store->buffer->scope != "local" || !store->value->dtype.is_scalar()) return false;
  for (size_t d = 0; d < store->indices.size(); ++d) {
    const auto index = ir::AsConstInt(store->indices[d]), extent = ir::AsConstInt(store->buffer->shape[d]);
    if (!index || !extent || *index < 0 || *index >= *extent) return false;
  }
  return exprs_.CanPredicate(store->value);
}

void StmtEmitter::EmitChosen(llvm::Value* condition, const ir::Stmt& stmt) {
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const ir::Stmt& part : seq->stmts) EmitChosen(condition, part);
    return;
  }
  const auto& store = *ir::As<ir::BufferStoreNode>(stmt);
  memory_.set_predicate(condition);
  llvm::Value* value = exprs_.Emit(store.value);
  memory_.set_predicate(nullptr);
  llvm::Value* old = exprs_.Emit(ir::Make<ir::BufferLoadNode>(store.buffer, store.indices));
  if (!status_.failed()) StoreValue(store, b_.CreateSelect(condition, value, old));
}

void StmtEmitter::EmitIf(const ir::IfStmtNode& node) {
  if (node.condition->dtype.is_scalar() && !node.else_case && StoresRegisters(node.then_case)) {
    llvm::Value* chosen_by = exprs_.Emit(node.condition);
    return status_.failed() ? void() : EmitChosen(chosen_by, node.then_case);
  }
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
      return loop.annotations.empty() ? EmitSerialFor(loop) : target_.EmitDeviceLoop(loop);
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

namespace {

// Whether vectors are stored to a buffer.
class VectorStores : public ir::StmtVisitor {
 public:
  explicit VectorStores(const ir::Buffer& buffer) : buffer_(buffer) {}
  bool found = false;

 protected:
  using ir::StmtVisitor::Visit;
  void Visit(const ir::BufferStoreNode& store) override {
    found |= store.buffer.same_as(buffer_) && !store.value->dtype.is_scalar();
  }

 private:
  const ir::Buffer& buffer_;
};

}  // namespace

void StmtEmitter::EmitAllocate(const ir::AllocateNode& allocate) {
  const ir::Buffer& buffer = allocate.buffer;
  if (!Numeric::IsSupported(buffer->dtype) || buffer->dtype.is_handle()) {
    return status_.Unsupported("buffer \"" + buffer->name + "\" is " + buffer->dtype.ToString() +
                               ", which kernels do not support yet");
  }
  const std::optional<Storage> storage = target_.Allocate(buffer);
  if (!storage) return;
  memory_.Bind(buffer->data.get(), *storage);
  BeginUnwritten(allocate, *storage);
  Emit(allocate.body);
}

// An array of vectors lives from here on, in each iteration of the loops around. Without saying so, the lanes that no
// mask takes keep what their register held before, such as denormals, which slow arithmetic down. No instruction is left
// of it where LLVM optimises. What is read there is undefined and no poison, so that a condition which does not hold
// guards such a read also where both sides of an `and` are computed.
void StmtEmitter::BeginUnwritten(const ir::AllocateNode& allocate, const Storage& storage) {
  auto* array = llvm::dyn_cast<llvm::AllocaInst>(storage.base);
  if (array == nullptr) return;
  VectorStores stores(allocate.buffer);
  stores.VisitStmt(allocate.body);
  if (!stores.found) return;
  const std::optional<llvm::TypeSize> size =
      array->getAllocationSize(b_.GetInsertBlock()->getModule()->getDataLayout());
  b_.CreateMemSet(array, llvm::UndefValue::get(b_.getInt8Ty()), size->getFixedValue(), array->getAlign());
}

void StmtEmitter::EmitAttribute(const ir::AttrStmtNode& attribute) {
  const auto* store = ir::As<ir::BufferStoreNode>(attribute.body);
  const std::optional<transform::WarpReduce> reduce = transform::WarpReduce::Of(attribute);
  if (!reduce || store == nullptr || !store->value->dtype.is_scalar()) {
    return status_.Unsupported("attribute \"" + attribute.key + "\" was not lowered");
  }
  llvm::Value* own = exprs_.Emit(store->value);
  if (status_.failed()) return;
  llvm::Value* reduced = target_.ReduceInWarp(*reduce, store->value->dtype, own);
  if (reduced == nullptr) return status_.Unsupported("it exchanges values between threads of a warp");
  StoreValue(*store, reduced);
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
