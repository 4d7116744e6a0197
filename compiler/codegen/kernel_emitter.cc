// The function around a kernel and its statements: arguments, loops, tasks of parallel loops, allocations, asserts.
// Expressions, intrinsics and memory accesses are in the emit_*.cc files.
#include "compiler/codegen/kernel_emitter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;

// Collects the values from outside that a parallel loop's body uses: variables and buffers' data, by first occurrence.
class UsedOutside : public ir::StmtVisitor {
 public:
  std::vector<const ir::PrimVarNode*> variables;
  std::vector<const ir::PrimVarNode*> buffers;  // their data variables

 protected:
  using ir::StmtVisitor::Visit;
  void Visit(const ir::PrimVarNode& var) override {
    if (var.dtype.is_handle()) {
      Add(&var, &buffers);
    } else {
      Add(&var, &variables);
    }
  }
  void Visit(const ir::BufferLoadNode& load) override {
    AddBuffer(load.buffer);
    ir::StmtVisitor::Visit(load);
  }
  void Visit(const ir::BufferStoreNode& store) override {
    AddBuffer(store.buffer);
    ir::StmtVisitor::Visit(store);
  }

 private:
  static void Add(const ir::PrimVarNode* var, std::vector<const ir::PrimVarNode*>* list) {
    if (std::find(list->begin(), list->end(), var) == list->end()) list->push_back(var);
  }
  void AddBuffer(const ir::Buffer& buffer) {
    Add(buffer->data.get(), &buffers);
    for (const ir::PrimExpr& dim : buffer->shape) VisitPrim(dim);
    for (const ir::PrimExpr& stride : buffer->strides) VisitPrim(stride);
    if (buffer->elem_offset) VisitPrim(buffer->elem_offset);
  }
};

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const KernelSource& source, const Target& target)
    : module_(module),
      source_(source),
      target_(target),
      b_(module.getContext()),
      numeric_(b_),
      metadata_(module.getContext()) {}

void KernelEmitter::Unsupported(std::string message) {
  if (status_.ok()) {
    status_ = Status(StatusCode::kUnsupportedModel, "kernel \"" + source_.name + "\": " + std::move(message));
  }
}

Status KernelEmitter::Emit() {
  llvm::Type* ptr = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr, ptr, ptr}, false);
  kernel_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, source_.name, module_);
  kernel_->setDSOLocal(true);
  const char* names[] = {"context", "buffers", "ints"};
  for (llvm::Argument& argument : kernel_->args()) {
    argument.setName(names[argument.getArgNo()]);
    argument.addAttr(llvm::Attribute::NoAlias);
    argument.addAttr(llvm::Attribute::ReadOnly);
  }
  alias_domain_ = metadata_.createAnonymousAliasScopeDomain(source_.name);
  StartFunction(kernel_, kernel_->getArg(0));
  workspace_bytes_ = ir::Int64(0);
  INGOT_RETURN_IF_ERROR(BindArguments());
  EmitStmt(source_.lowered->body);
  b_.CreateRet(b_.getInt32(INGOT_KERNEL_OK));
  if (failed()) return std::move(status_);
  // The canonical form adds workspaces of equal size up to one term, which keeps the formula short.
  Result<DimCode> workspace = LowerToDimCode(arith::Analyzer().Simplify(workspace_bytes_), ints_);
  if (!workspace.ok()) Unsupported("the size of its workspaces: " + workspace.status().message());
  if (workspace.ok()) workspace_ = *std::move(workspace);
  return std::move(status_);
}

void KernelEmitter::StartFunction(llvm::Function* function, llvm::Argument* context) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // Makes LLVM report the size of every frame, which machine.cc collects; no warning is printed.
  function->addFnAttr("warn-stack-size", "0");
  function_ = function;
  context_ = context;
  values_.clear();
  storage_.clear();
  local_bytes_ = 0;
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
}

Status KernelEmitter::BindArguments() {
  llvm::MDNode* none = llvm::MDNode::get(module_.getContext(), {});
  ints_ = KernelIntArguments(source_.lowered);
  for (size_t i = 0; i < ints_.size(); ++i) {
    const ir::PrimVar& var = ints_[i];
    if (!Numeric::IsSupported(var->dtype) || var->dtype.is_handle()) {
      Unsupported("scalar parameter \"" + var->name + "\" is " + var->dtype.ToString());
      return std::move(status_);
    }
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), kernel_->getArg(2), i);
    llvm::LoadInst* word = b_.CreateLoad(b_.getInt64Ty(), slot, var->name + ".word");
    word->setMetadata(llvm::LLVMContext::MD_invariant_load, none);
    // A value is in the low bytes of its word.
    llvm::Value* value = word;
    llvm::Type* type = numeric_.RegisterType(var->dtype);
    if (type->isFloatingPointTy()) {
      value = b_.CreateBitCast(b_.CreateTrunc(word, b_.getIntNTy(type->getScalarSizeInBits())), type, var->name);
    } else if (type != word->getType()) {
      value = b_.CreateTrunc(word, type, var->name);
    }
    values_[var.get()] = value;
  }
  size_t index = 0;
  std::vector<int> scopes;
  for (const ir::PrimFuncParam& param : source_.lowered->params) {
    if (!param.buffer) continue;
    if (!Numeric::IsSupported(param.buffer->dtype) || param.buffer->dtype.is_handle()) {
      Unsupported("parameter \"" + param.buffer->name + "\" is " + param.buffer->dtype.ToString() +
                  ", which kernels do not support yet");
      return std::move(status_);
    }
    INGOT_CHECK(index < source_.description.kernel.params.size(), "the description lacks a parameter");
    const vm::KernelParam& described = source_.description.kernel.params[index];
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), kernel_->getArg(1), index);
    llvm::LoadInst* pointer = b_.CreateLoad(b_.getPtrTy(), slot, param.buffer->name);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, none);
    llvm::Metadata* alignment = llvm::ConstantAsMetadata::get(b_.getInt64(static_cast<uint64_t>(described.alignment)));
    pointer->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(module_.getContext(), {alignment}));
    const int scope = AddAliasScope(param.buffer->name);
    scopes.push_back(scope);
    if (described.in_place) {
      const int other = scopes.at(*described.in_place);
      may_alias_[scope].push_back(other);
      may_alias_[other].push_back(scope);
    }
    storage_[param.buffer->data.get()] = {pointer, scope, described.alignment};
    ++index;
  }
  return Status();
}

llvm::BasicBlock* KernelEmitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::AllocaInst* KernelEmitter::EntryAlloca(llvm::Type* type, int64_t alignment, const char* name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  llvm::AllocaInst* slot = builder.CreateAlloca(type, nullptr, name);
  slot->setAlignment(llvm::Align(static_cast<uint64_t>(alignment)));
  return slot;
}

llvm::Value* KernelEmitter::LoadContextField(size_t offset, llvm::Type* type, const char* name) {
  llvm::Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offset);
  llvm::LoadInst* field = b_.CreateLoad(type, address, name);
  field->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
  return field;
}

void KernelEmitter::FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) {
  llvm::BasicBlock* fail = NewBlock("fail");
  llvm::BasicBlock* next = NewBlock("checked");
  b_.CreateCondBr(condition, fail, next, metadata_.createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(fail);
  llvm::Value* callee = LoadContextField(offsetof(IngotKernelContext, fail), b_.getPtrTy(), "fail.fn");
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(),
                                       {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  b_.CreateRet(b_.CreateCall(type, callee, {context_, b_.getInt32(static_cast<uint32_t>(code)), a, b}));
  b_.SetInsertPoint(next);
}

void KernelEmitter::ReturnIfNonZero(llvm::Value* code) {
  llvm::BasicBlock* fail = NewBlock("failed");
  llvm::BasicBlock* next = NewBlock("continued");
  b_.CreateCondBr(b_.CreateICmpNE(code, b_.getInt32(0)), fail, next, metadata_.createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(fail);
  b_.CreateRet(code);
  b_.SetInsertPoint(next);
}

void KernelEmitter::EmitStmt(const ir::Stmt& stmt) {
  if (failed()) return;
  switch (stmt->kind) {
    case ir::StmtKind::kBufferStore:
      return EmitStore(*ir::As<ir::BufferStoreNode>(stmt));
    case ir::StmtKind::kEvaluate:
      EmitExpr(ir::As<ir::EvaluateNode>(stmt)->value);
      return;
    case ir::StmtKind::kSeq:
      for (const ir::Stmt& part : ir::As<ir::SeqNode>(stmt)->stmts) EmitStmt(part);
      return;
    case ir::StmtKind::kIf:
      return EmitIf(*ir::As<ir::IfStmtNode>(stmt));
    case ir::StmtKind::kFor: {
      const auto& loop = *ir::As<ir::ForNode>(stmt);
      switch (loop.for_kind) {
        case ir::ForKind::kSerial:
          return EmitSerialFor(loop);
        case ir::ForKind::kParallel:
          return EmitParallelFor(loop);
        case ir::ForKind::kVectorized:
        case ir::ForKind::kUnrolled:
        case ir::ForKind::kThreadBinding:
          return Unsupported("loop \"" + loop.var->name + "\" was not lowered");
      }
      return;
    }
    case ir::StmtKind::kWhile:
      return EmitWhile(*ir::As<ir::WhileNode>(stmt));
    case ir::StmtKind::kLet: {
      const auto& let = *ir::As<ir::LetStmtNode>(stmt);
      values_[let.var.get()] = EmitExpr(let.value);
      return EmitStmt(let.body);
    }
    case ir::StmtKind::kAssert:
      return EmitAssert(*ir::As<ir::AssertStmtNode>(stmt));
    case ir::StmtKind::kAllocate:
      return EmitAllocate(*ir::As<ir::AllocateNode>(stmt));
    case ir::StmtKind::kAttr:
      return Unsupported("attribute \"" + ir::As<ir::AttrStmtNode>(stmt)->key + "\" was not lowered");
    case ir::StmtKind::kBlock:
    case ir::StmtKind::kBlockRealize:
      return Unsupported("a block was not lowered");
  }
}

void KernelEmitter::EmitIf(const ir::IfStmtNode& node) {
  llvm::Value* const outer_mask = mask_;
  llvm::Value* const outer_count = mask_count_;
  llvm::Value* condition = nullptr;
  if (node.condition->dtype.is_scalar()) {
    condition = EmitExpr(node.condition);
  } else {  // stores of the lanes where it holds
    mask_count_ = outer_mask == nullptr ? CountOfFirstLanes(node.condition) : nullptr;
    condition = EmitExpr(node.condition);
    if (failed()) return;
    mask_ = outer_mask != nullptr ? b_.CreateAnd(outer_mask, condition) : condition;
    condition = mask_count_ != nullptr ? b_.CreateICmpSGT(mask_count_, b_.getInt32(0)) : b_.CreateOrReduce(mask_);
  }
  if (failed()) return;
  llvm::BasicBlock* then_block = NewBlock("then");
  llvm::BasicBlock* else_block = node.else_case ? NewBlock("else") : nullptr;
  llvm::BasicBlock* done = NewBlock("endif");
  b_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : done);
  b_.SetInsertPoint(then_block);
  EmitStmt(node.then_case);
  b_.CreateBr(done);
  mask_ = outer_mask;
  mask_count_ = outer_count;
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    EmitStmt(node.else_case);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

void KernelEmitter::EmitSerialFor(const ir::ForNode& loop) {
  llvm::Type* type = numeric_.RegisterType(loop.var->dtype);
  ++index_depth_;
  llvm::Value* begin = EmitExpr(loop.min);
  llvm::Value* extent = EmitExpr(loop.extent);
  --index_depth_;
  if (failed()) return;
  llvm::Value* end = b_.CreateNSWAdd(begin, extent);
  analyzer_.Bind(loop.var, ir::Range{loop.min, loop.extent});
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = NewBlock("loop");
  llvm::BasicBlock* body = NewBlock("body");
  llvm::BasicBlock* done = NewBlock("endloop");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* var = b_.CreatePHI(type, 2, loop.var->name);
  var->addIncoming(begin, before);
  b_.CreateCondBr(b_.CreateICmpSLT(var, end), body, done);
  b_.SetInsertPoint(body);
  values_[loop.var.get()] = var;
  EmitStmt(loop.body);
  var->addIncoming(b_.CreateNSWAdd(var, llvm::ConstantInt::get(type, 1)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

void KernelEmitter::EmitWhile(const ir::WhileNode& loop) {
  llvm::BasicBlock* head = NewBlock("while");
  llvm::BasicBlock* body = NewBlock("body");
  llvm::BasicBlock* done = NewBlock("endwhile");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* condition = EmitExpr(loop.condition);
  if (failed()) return;
  b_.CreateCondBr(condition, body, done);
  b_.SetInsertPoint(body);
  EmitStmt(loop.body);
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

void KernelEmitter::EmitParallelFor(const ir::ForNode& loop) {
  ++index_depth_;
  llvm::Value* begin = EmitIndex(loop.min);
  llvm::Value* extent = EmitIndex(loop.extent);
  --index_depth_;
  if (failed()) return;
  analyzer_.Bind(loop.var, ir::Range{loop.min, loop.extent});

  // The closure: the loop's first index, then every variable and buffer from outside that the body uses.
  UsedOutside used;
  used.VisitStmt(loop.body);
  std::vector<const ir::PrimVarNode*> variables, buffers;
  std::vector<llvm::Value*> captured{begin};
  std::vector<llvm::Type*> fields{b_.getInt64Ty()};
  const auto capture = [&](llvm::Value* value) {
    captured.push_back(value);
    fields.push_back(value->getType());
  };
  for (const ir::PrimVarNode* var : used.variables) {
    const auto found = values_.find(var);
    if (found == values_.end()) continue;  // defined inside the body
    variables.push_back(var);
    capture(found->second);
  }
  for (const ir::PrimVarNode* data : used.buffers) {
    const auto found = storage_.find(data);
    if (found == storage_.end()) continue;
    buffers.push_back(data);
    capture(found->second.base);
  }
  auto* closure_type = llvm::StructType::get(module_.getContext(), fields);
  llvm::Value* closure = EntryAlloca(closure_type, 64, "closure");
  for (size_t i = 0; i < captured.size(); ++i) {
    b_.CreateStore(captured[i], b_.CreateStructGEP(closure_type, closure, static_cast<unsigned>(i)));
  }

  auto* task_type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  llvm::Function* task =
      llvm::Function::Create(task_type, llvm::GlobalValue::InternalLinkage,
                             source_.name + ".task" + std::to_string(num_tasks_functions_++), module_);
  auto* run_type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  llvm::Value* run = LoadContextField(offsetof(IngotKernelContext, parallel_for), b_.getPtrTy(), "parallel_for.fn");
  llvm::Value* code = b_.CreateCall(run_type, run, {context_, task, closure, extent}, "code");

  const llvm::IRBuilderBase::InsertPoint outer_point = b_.saveIP();
  llvm::Function* outer_function = function_;
  llvm::Value* outer_context = context_;
  ValueMap outer_values = std::move(values_);
  StorageMap outer_storage = std::move(storage_);
  const int64_t outer_local_bytes = local_bytes_;
  const bool outer_in_task = std::exchange(in_task_, true);

  const char* names[] = {"context", "closure", "task"};
  for (llvm::Argument& argument : task->args()) {
    argument.setName(names[argument.getArgNo()]);
    if (argument.getType()->isPointerTy()) {
      argument.addAttr(llvm::Attribute::NoAlias);
      argument.addAttr(llvm::Attribute::ReadOnly);
    }
  }
  StartFunction(task, task->getArg(0));
  llvm::Value* cancel = LoadContextField(offsetof(IngotKernelContext, cancel), b_.getPtrTy(), "cancel");
  llvm::LoadInst* cancelled = b_.CreateLoad(b_.getInt32Ty(), cancel, /*isVolatile=*/true);
  FailIf(b_.CreateICmpNE(cancelled, b_.getInt32(0)), INGOT_KERNEL_CANCELLED, b_.getInt64(0), b_.getInt64(0));
  const auto load_field = [&](size_t i) {
    llvm::LoadInst* value =
        b_.CreateLoad(fields[i], b_.CreateStructGEP(closure_type, task->getArg(1), static_cast<unsigned>(i)));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
    return value;
  };
  size_t field = 1;
  for (const ir::PrimVarNode* var : variables) {
    values_[var] = load_field(field++);
    values_[var]->setName(var->name);
  }
  for (const ir::PrimVarNode* data : buffers) {
    Storage storage = outer_storage.at(data);
    llvm::LoadInst* base = load_field(field++);
    llvm::Metadata* alignment = llvm::ConstantAsMetadata::get(b_.getInt64(static_cast<uint64_t>(storage.alignment)));
    base->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(module_.getContext(), {alignment}));
    base->setName(data->name);
    storage.base = base;
    storage_[data] = storage;
  }
  llvm::Value* var = b_.CreateNSWAdd(load_field(0), task->getArg(2));
  values_[loop.var.get()] = b_.CreateTrunc(var, numeric_.RegisterType(loop.var->dtype), loop.var->name);
  EmitStmt(loop.body);
  b_.CreateRet(b_.getInt32(INGOT_KERNEL_OK));

  function_ = outer_function;
  context_ = outer_context;
  values_ = std::move(outer_values);
  storage_ = std::move(outer_storage);
  local_bytes_ = outer_local_bytes;
  in_task_ = outer_in_task;
  b_.restoreIP(outer_point);
  ReturnIfNonZero(code);
}

void KernelEmitter::EmitAllocate(const ir::AllocateNode& allocate) {
  const ir::Buffer& buffer = allocate.buffer;
  if (!Numeric::IsSupported(buffer->dtype) || buffer->dtype.is_handle()) {
    return Unsupported("buffer \"" + buffer->name + "\" is " + buffer->dtype.ToString() +
                       ", which kernels do not support yet");
  }
  Storage storage;
  storage.alignment = kWorkspaceAlignment;
  if (buffer->scope == "local") {
    int64_t num_elements = 1;
    for (const ir::PrimExpr& dim : buffer->shape) {
      const auto extent = ir::AsConstInt(dim);
      if (!extent || *extent < 0 || __builtin_mul_overflow(num_elements, *extent, &num_elements)) {
        return Unsupported("local buffer \"" + buffer->name + "\" has no constant extents");
      }
    }
    const int64_t element_bytes = (buffer->dtype.total_bits() + 7) / 8;
    if (num_elements > target_.max_stack_bytes / element_bytes ||
        num_elements * element_bytes > target_.max_stack_bytes - local_bytes_) {
      return Unsupported("local buffer \"" + buffer->name + "\" does not fit the " +
                         std::to_string(target_.max_stack_bytes) + " bytes of stack that local buffers may take");
    }
    local_bytes_ += num_elements * element_bytes;
    auto* type = llvm::ArrayType::get(numeric_.MemoryType(buffer->dtype), static_cast<uint64_t>(num_elements));
    storage.base = EntryAlloca(type, kWorkspaceAlignment, buffer->name.c_str());
    storage.alias_index = AddAliasScope(buffer->name);
  } else if (buffer->scope == "global") {
    if (in_task_) return Unsupported("workspace \"" + buffer->name + "\" stands inside a parallel loop");
    ir::PrimExpr size = ir::Int64((buffer->dtype.total_bits() + 7) / 8);
    for (const ir::PrimExpr& dim : buffer->shape) size = size * ir::Cast(DataType::Int(64), dim);
    llvm::Value* base = LoadContextField(offsetof(IngotKernelContext, workspace), b_.getPtrTy(), "workspace");
    storage.base = b_.CreateInBoundsGEP(b_.getInt8Ty(), base, EmitIndex(workspace_bytes_), buffer->name);
    workspace_bytes_ =
        workspace_bytes_ +
        ir::FloorDiv(size + (kWorkspaceAlignment - 1), ir::Int64(kWorkspaceAlignment)) * kWorkspaceAlignment;
    storage.alias_index = AddAliasScope(buffer->name);
  } else {
    return Unsupported("buffer \"" + buffer->name + "\" lies in \"" + buffer->scope + "\", which a CPU does not have");
  }
  storage_[buffer->data.get()] = storage;
  EmitStmt(allocate.body);
}

void KernelEmitter::EmitAssert(const ir::AssertStmtNode& node) {
  const std::vector<std::string>& messages = source_.description.kernel.messages;
  const auto found = std::find(messages.begin(), messages.end(), node.message);
  INGOT_CHECK(found != messages.end(), node.message.c_str());
  llvm::Value* condition = EmitExpr(node.condition);
  if (failed()) return;
  FailIf(b_.CreateNot(condition), INGOT_KERNEL_ASSERT, b_.getInt64(static_cast<uint64_t>(found - messages.begin())),
         b_.getInt64(0));
  EmitStmt(node.body);
}

}  // namespace ingot::codegen
