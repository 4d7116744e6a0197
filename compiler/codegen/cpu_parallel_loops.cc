// The closure is stored before the call and loaded at the start of the task, so that the task sees values of its own.
#include "compiler/codegen/cpu_parallel_loops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {
namespace {

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

CpuParallelLoops::CpuParallelLoops(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory,
                                   ExprEmitter& exprs, StmtEmitter& stmts, CpuKernelContext& context,
                                   std::string kernel)
    : function_(function),
      status_(status),
      memory_(memory),
      exprs_(exprs),
      stmts_(stmts),
      context_(context),
      b_(function.instructions()),
      kernel_(std::move(kernel)) {}

void CpuParallelLoops::Emit(const ir::ForNode& loop) {
  llvm::Value* begin = exprs_.EmitIndex(loop.min);
  llvm::Value* extent = exprs_.EmitIndex(loop.extent);
  if (status_.failed()) return;
  exprs_.SetRange(loop.var, ir::Range{loop.min, loop.extent});
  const Closure closure = StoreClosure(loop, begin);
  llvm::Function* task = AddTask();
  llvm::Value* code = context_.RunTasks(task, closure.values, extent);

  const llvm::IRBuilderBase::InsertPoint after_call = b_.saveIP();
  const bool was_in_task = std::exchange(in_task_, true);
  EmitTask(task, loop, closure);
  in_task_ = was_in_task;
  b_.restoreIP(after_call);
  context_.ReturnIfNonZero(code);
}

CpuParallelLoops::Closure CpuParallelLoops::StoreClosure(const ir::ForNode& loop, llvm::Value* begin) {
  UsedOutside used;
  used.VisitStmt(loop.body);
  Closure closure;
  std::vector<llvm::Value*> values{begin};
  for (const ir::PrimVarNode* var : used.variables) {
    llvm::Value* value = exprs_.Find(var);
    if (value == nullptr) continue;  // defined inside the body
    closure.variables.push_back(var);
    values.push_back(value);
  }
  for (const ir::PrimVarNode* data : used.buffers) {
    const Storage* storage = memory_.Find(data);
    if (storage == nullptr) continue;
    closure.buffers.push_back(data);
    values.push_back(storage->base);
  }
  std::vector<llvm::Type*> fields;
  for (const llvm::Value* value : values) fields.push_back(value->getType());
  closure.type = llvm::StructType::get(function_.context(), fields);
  closure.values = function_.EntryAlloca(closure.type, 64, "closure");
  for (size_t i = 0; i < values.size(); ++i) {
    b_.CreateStore(values[i], b_.CreateStructGEP(closure.type, closure.values, static_cast<unsigned>(i)));
  }
  return closure;
}

llvm::Function* CpuParallelLoops::AddTask() {
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  llvm::Function* task = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                                kernel_ + ".task" + std::to_string(num_tasks_++), function_.module());
  const char* names[] = {"context", "closure", "task"};
  for (llvm::Argument& argument : task->args()) {
    argument.setName(names[argument.getArgNo()]);
    if (argument.getType()->isPointerTy()) {
      argument.addAttr(llvm::Attribute::NoAlias);
      argument.addAttr(llvm::Attribute::ReadOnly);
    }
  }
  return task;
}

void CpuParallelLoops::EmitTask(llvm::Function* task, const ir::ForNode& loop, const Closure& closure) {
  ExprEmitter::VariableMap outer_variables = exprs_.ExchangeVariables({});
  MemoryAccess::StorageMap outer_storage = memory_.ExchangeStorage({});
  function_.Start(task);
  context_.FailIfCancelled();
  BindClosure(task, loop, closure, outer_storage);
  stmts_.Emit(loop.body);
  b_.CreateRet(b_.getInt32(INGOT_KERNEL_OK));
  exprs_.ExchangeVariables(std::move(outer_variables));
  memory_.ExchangeStorage(std::move(outer_storage));
}

void CpuParallelLoops::BindClosure(llvm::Function* task, const ir::ForNode& loop, const Closure& closure,
                                   const MemoryAccess::StorageMap& outer_storage) {
  unsigned next_field = 1;
  const auto load_field = [&](unsigned field) {
    llvm::Value* address = b_.CreateStructGEP(closure.type, task->getArg(1), field);
    return function_.LoadInvariant(closure.type->getElementType(field), address);
  };
  for (const ir::PrimVarNode* var : closure.variables) {
    llvm::LoadInst* value = load_field(next_field++);
    value->setName(var->name);
    exprs_.Bind(var, value);
  }
  for (const ir::PrimVarNode* data : closure.buffers) {
    Storage storage = outer_storage.at(data);
    llvm::LoadInst* base = load_field(next_field++);
    function_.SetPointerAlignment(base, storage.alignment);
    base->setName(data->name);
    storage.base = base;
    memory_.Bind(data, storage);
  }
  llvm::Value* index = b_.CreateNSWAdd(load_field(0), task->getArg(2));
  llvm::Type* type = Numeric(b_).RegisterType(loop.var->dtype);
  exprs_.Bind(loop.var.get(), b_.CreateTrunc(index, type, loop.var->name));
}

}  // namespace ingot::codegen
