// The function around a launch: parameters in, thread numbers from special registers, failures into global memory.
#include "compiler/codegen/cuda_kernel_emitter.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/bind_buffers.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/target/cuda.h"

namespace ingot::codegen {
namespace {

constexpr int64_t kSharedAlignment = 16;
// The failure record, in bytes.
constexpr uint64_t kFailureA = 8, kFailureB = 16;

// The special register of an axis.
std::string RegisterOf(std::string_view axis) {
  const std::string_view name = axis.starts_with("block") ? "ctaid" : "tid";
  return "llvm.nvvm.read.ptx.sreg." + std::string(name) + "." + std::string(axis.substr(axis.size() - 1));
}

// Whether tiles are multiplied or copied ahead: these loops need their registers for that.
bool HasDeviceLoops(const ir::Stmt& body) {
  struct Finder : ir::StmtVisitor {
    bool found = false;
    using StmtVisitor::Visit;
    void Visit(const ir::ForNode& loop) override {
      found |= schedule::IsDeviceLoop(loop);
      StmtVisitor::Visit(loop);
    }
  } finder;
  finder.VisitStmt(body);
  return finder.found;
}

}  // namespace

CudaKernelEmitter::CudaKernelEmitter(llvm::Module& module, const KernelSource& source, const CudaLaunch& launch,
                                     const std::string& symbol, const Target& target)
    : source_(source),
      launch_(launch),
      symbol_(symbol),
      ints_(KernelIntArguments(source.lowered)),
      function_(module),
      status_(source.name),
      memory_(function_, symbol, target),
      exprs_(function_, status_, memory_, *this, source.description),
      stmts_(function_, status_, memory_, exprs_, *this, *this, source.description),
      allocations_(function_, status_, memory_, exprs_, *this, target),
      tiles_(function_, status_, memory_, exprs_),
      target_(target) {}

Result<DimCode> CudaKernelEmitter::Emit() {
  llvm::Function* kernel = AddKernel();
  function_.Start(kernel);
  BindArguments(kernel);
  exprs_.ProveAlignment();
  tiles_.SpreadOverBanks(launch_.body);
  exprs_.set_prefers_predicates(!HasDeviceLoops(launch_.body));
  stmts_.Emit(launch_.body);
  function_.instructions().CreateRetVoid();
  SimplifyBarriers();
  INGOT_RETURN_IF_ERROR(status_.get());
  return allocations_.WorkspaceSize(ints_);
}

llvm::Function* CudaKernelEmitter::AddKernel() {
  llvm::IRBuilderBase& b = function_.instructions();
  llvm::Type* pointer = b.getPtrTy(kCudaGlobalMemory);
  std::vector<llvm::Type*> types;
  for (const ir::PrimFuncParam& param : source_.lowered->params) {
    if (param.buffer) types.push_back(pointer);
  }
  types.insert(types.end(), ints_.size(), b.getInt64Ty());
  types.insert(types.end(), 2, pointer);  // workspace, failure
  if (launch_.round) types.push_back(b.getInt64Ty());
  llvm::Function* kernel = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                                  llvm::GlobalValue::ExternalLinkage, symbol_, function_.module());
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  LimitThreads(kernel);
  return kernel;
}

// Tells the assembler how many threads a block has at most, which bounds the registers of each: where arguments decide how
// many there are, all that a block may have.
void CudaKernelEmitter::LimitThreads(llvm::Function* kernel) {
  llvm::IRBuilderBase& b = function_.instructions();
  std::array<int64_t, 3> most{1, 1, 1};
  int64_t known = 1;
  for (size_t i = 0; i < most.size(); ++i) {
    most[i] = std::max<int64_t>(ir::AsConstInt(launch_.extents[3 + i]).value_or(1), 1);
    known *= most[i];
  }
  const auto symbolic = std::find_if(launch_.extents.begin() + 3, launch_.extents.end(),
                                     [](const ir::PrimExpr& extent) { return !ir::AsConstInt(extent).has_value(); });
  // The product of the three counts, wherever it is said.
  if (symbolic != launch_.extents.end()) most[0] *= kCudaMaxBlockThreads / known;
  llvm::NamedMDNode* annotations = function_.module().getOrInsertNamedMetadata("nvvm.annotations");
  constexpr const char* kLimits[] = {"maxntidx", "maxntidy", "maxntidz"};
  for (size_t i = 0; i < most.size(); ++i) {
    annotations->addOperand(
        llvm::MDNode::get(function_.context(),
                          {llvm::ConstantAsMetadata::get(kernel), llvm::MDString::get(function_.context(), kLimits[i]),
                           llvm::ConstantAsMetadata::get(b.getInt32(static_cast<uint32_t>(most[i])))}));
  }
}

void CudaKernelEmitter::BindArguments(llvm::Function* kernel) {
  unsigned index = 0;
  BindBuffers(source_, status_, memory_, [&](size_t, const std::string& name, int64_t alignment) {
    llvm::Argument* pointer = kernel->getArg(index++);
    pointer->setName(name);
    pointer->addAttr(
        llvm::Attribute::getWithAlignment(function_.context(), llvm::Align(static_cast<uint64_t>(alignment))));
    return pointer;
  });
  if (status_.failed()) return;
  for (const ir::PrimVar& var : ints_) {
    kernel->getArg(index)->setName(var->name);
    exprs_.BindWord(*var, kernel->getArg(index++));
  }
  llvm::Argument* workspace = kernel->getArg(index++);
  workspace->setName("workspace");
  workspace->addAttr(llvm::Attribute::getWithAlignment(function_.context(), llvm::Align(kBufferAlignment)));
  kernel->getArg(index++)->setName("failure");
  BindDims();
  if (!launch_.round) return;
  kernel->getArg(index)->setName("round");
  exprs_.BindWord(*launch_.round, kernel->getArg(index));
}

// A grid of nothing is not launched: dims of 0 that make it one are none here, so that divisions by them need no check.
void CudaKernelEmitter::BindDims() {
  for (const ir::PrimFuncParam& param : source_.lowered->params) {
    if (!param.buffer) continue;
    for (const ir::PrimExpr& dim : param.buffer->shape) {
      const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(dim);
      if (!var) continue;
      arith::Analyzer analyzer;
      const bool is_needed = std::ranges::any_of(launch_.extents, [&](const ir::PrimExpr& extent) {
        return ir::IsConstInt(analyzer.Simplify(ir::Substitute(extent, {{var, ir::IntImm(var->dtype, 0)}})), 0);
      });
      arith::Interval positive = arith::Interval::Everything();
      positive.min = 1;
      if (is_needed) exprs_.analyzer().Bind(var, positive);
    }
  }
}

llvm::Argument* CudaKernelEmitter::LastArgument(unsigned place) {
  const unsigned behind = launch_.round ? 1 : 0;
  return function_.function()->getArg(static_cast<unsigned>(function_.function()->arg_size()) - behind - place);
}

void CudaKernelEmitter::EmitIndependentLoop(const ir::ForNode& loop) {
  if (loop.for_kind != ir::ForKind::kThreadBinding) {
    return status_.Unsupported("loop \"" + loop.var->name + "\" is parallel, and bound to no threads");
  }
  llvm::IRBuilderBase& b = function_.instructions();
  const bool ends = launch_.has_barriers && loop.thread_tag.starts_with("threadIdx") && waiting_ == nullptr;
  BindThread(loop);
  llvm::BasicBlock* behind = ends ? function_.NewBlock("behind") : nullptr;
  if (ends) waiting_ = behind;
  const bool could_fail = std::exchange(can_fail_, false);
  const ir::ForNode* around = loop.thread_tag == "threadIdx.x" ? std::exchange(threads_, &loop) : threads_;
  ++thread_depth_;
  stmts_.Emit(loop.body);
  --thread_depth_;
  threads_ = around;
  const bool can_fail_here = can_fail_;
  can_fail_ |= could_fail;
  if (!ends) return;
  waiting_ = nullptr;
  b.CreateBr(behind);
  b.SetInsertPoint(behind);
  // A thread that failed goes no further. In a pipeline threads wait once for all of its loops.
  const bool awaits = loop.annotations.Find(kCudaAwaitCopies) != nullptr;
  if (awaits) b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::nvvm_cp_async_wait_all, {})->setConvergent();
  if (!in_pipeline_ && (can_fail_here || awaits || launch_.waits.contains(loop.var.get()))) EmitBarrier();
}

// The loop's variable is the number of the thread, or of the block.
void CudaKernelEmitter::BindThread(const ir::ForNode& loop) {
  llvm::IRBuilderBase& b = function_.instructions();
  const llvm::FunctionCallee read = function_.module().getOrInsertFunction(
      RegisterOf(loop.thread_tag), llvm::FunctionType::get(b.getInt32Ty(), false));
  llvm::CallInst* number = b.CreateCall(read);
  // What LLVM divides then has 32 bits.
  if (const auto extent = ir::AsConstInt(loop.extent); extent && *extent > 1) {
    number->setMetadata(llvm::LLVMContext::MD_range,
                        llvm::MDBuilder(function_.context())
                            .createRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<uint64_t>(*extent))));
  }
  llvm::Value* bound = number;
  if (const auto extent = ir::AsConstInt(loop.extent); extent && recomputes_of_thread_) {
    auto* same = llvm::InlineAsm::get(llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false),
                                      "mov.b32 $0, $1;", "=r,r", /*hasSideEffects=*/true);
    bound = b.CreateAnd(b.CreateCall(same, {number}), std::bit_ceil(static_cast<uint32_t>(*extent)) - 1);
  }
  exprs_.Bind(loop.var.get(), b.CreateZExt(bound, b.getInt64Ty(), loop.var->name));
  exprs_.SetRange(loop.var, ir::Range{loop.min, loop.extent});
}

void CudaKernelEmitter::EmitDeviceLoop(const ir::ForNode& loop) {
  if (const ir::AttrValue* stages = loop.annotations.Find(schedule::kPipelineStages)) {
    const int64_t* number = stages->get<int64_t>();
    return EmitPipeline(loop, number != nullptr ? *number : 0);
  }
  const bool has_one_axis = ir::IsConstInt(launch_.extents[4], 1) && ir::IsConstInt(launch_.extents[5], 1);
  if (threads_ == nullptr || !has_one_axis) {
    return status_.Unsupported("loop \"" + loop.var->name + "\" is in no loop over threads of one axis");
  }
  if (loop.annotations.Find(schedule::kWarpProduct) != nullptr) {
    const std::optional<CudaTiles::Product> product = tiles_.MatchProduct(loop, *threads_);
    for (int64_t step = 0; product && step < product->steps; ++step) {
      tiles_.LoadStep(*product, step);
      tiles_.MultiplyStep(*product, step, 0, product->rows.size());
    }
    return;
  }
  if (const ir::AttrValue* copies = loop.annotations.Find(schedule::kChunkCopy)) {
    const int64_t* value = copies->get<int64_t>();
    return tiles_.EmitCopy(loop, in_pipeline_ || (value != nullptr && *value == kCudaIsAwaited));
  }
  status_.Unsupported("loop \"" + loop.var->name + "\" has an annotation that means nothing");
}

// All threads of the block wait for each other. A thread that failed could not leave before: it says so here, and all of
// them leave.
void CudaKernelEmitter::EmitBarrier() {
  llvm::IRBuilderBase& b = function_.instructions();
  llvm::Value* failed = b.CreateLoad(b.getInt32Ty(), HasFailed());
  llvm::CallInst* any = b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_barrier0_or, {failed});
  any->setConvergent();
  llvm::BasicBlock* leave = function_.NewBlock("leave");
  llvm::BasicBlock* next = function_.NewBlock("next");
  barriers_.push_back({any, b.CreateCondBr(b.CreateICmpNE(any, b.getInt32(0)), leave, next)});
  b.SetInsertPoint(leave);
  b.CreateRetVoid();
  b.SetInsertPoint(next);
}

// Barriers of a launch in which no thread fails ask for nothing.
void CudaKernelEmitter::SimplifyBarriers() {
  if (can_fail_) return;
  for (const auto& [any, branch] : barriers_) {
    llvm::IRBuilder<> b(any);
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {})->setConvergent();
    branch->setCondition(b.getFalse());
    any->replaceAllUsesWith(b.getInt32(0));
    any->eraseFromParent();
  }
}

// Where a thread notes that it failed, 0 or 1.
llvm::Value* CudaKernelEmitter::HasFailed() {
  if (has_failed_ != nullptr) return has_failed_;
  llvm::IRBuilderBase& b = function_.instructions();
  has_failed_ = function_.EntryAlloca(b.getInt32Ty(), 4, "has_failed");
  llvm::IRBuilder<> entry(has_failed_->getNextNode());
  entry.CreateStore(entry.getInt32(0), has_failed_);
  return has_failed_;
}

std::optional<Storage> CudaKernelEmitter::Allocate(const ir::Buffer& buffer) {
  if (buffer->scope != "shared") return allocations_.Allocate(buffer, thread_depth_ > 0);
  uint64_t count = 1;
  for (const ir::PrimExpr& extent : buffer->shape) count *= static_cast<uint64_t>(*ir::AsConstInt(extent));
  const int64_t bytes = static_cast<int64_t>(count) * ((buffer->dtype.bits + 7) / 8);
  if (static_shared_bytes_ + bytes > kCudaUsualSharedBytes) {
    llvm::IRBuilderBase& b = function_.instructions();
    int64_t place = 0;
    llvm::Value* memory = DynamicShared(bytes, kSharedAlignment, &place);
    return Storage{b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), memory, static_cast<uint64_t>(place)),
                   memory_.scopes().Add(buffer->name), kSharedAlignment};
  }
  static_shared_bytes_ += bytes;
  auto* type = llvm::ArrayType::get(Numeric(function_.instructions()).MemoryType(buffer->dtype), count);
  auto* variable = new llvm::GlobalVariable(
      function_.module(), type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
      symbol_ + "$" + buffer->name, nullptr, llvm::GlobalValue::NotThreadLocal, kCudaSharedMemory);
  variable->setAlignment(llvm::Align(uint64_t{kSharedAlignment}));
  return Storage{variable, memory_.scopes().Add(buffer->name), kSharedAlignment};
}

// A butterfly: in each step a lane gets the value of the lane half as far away, so that all of them end with the same
// bits. Words of 32 bits travel; a narrower value takes one, a wider one two.
llvm::Value* CudaKernelEmitter::ReduceInWarp(const transform::WarpReduce& reduce, DataType dtype, llvm::Value* value) {
  llvm::IRBuilderBase& b = function_.instructions();
  const Numeric numeric(b);
  const Arithmetic arithmetic(function_, *this);
  constexpr uint32_t kAllLanes = 0xffffffff, kWholeWarp = 31;
  for (auto distance = static_cast<uint32_t>(reduce.lanes / 2); distance >= reduce.step; distance /= 2) {
    const auto exchange = [&](llvm::Value* word) -> llvm::Value* {
      llvm::CallInst* other =
          b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                            {b.getInt32(kAllLanes), word, b.getInt32(distance), b.getInt32(kWholeWarp)});
      other->setConvergent();
      return other;
    };
    llvm::Value* stored = numeric.ToMemory(value, dtype);
    llvm::Type* type = stored->getType();
    llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits()));
    llvm::Value* word = b.CreateBitCast(stored, bits);
    if (bits->getIntegerBitWidth() <= 32) {
      word = b.CreateTrunc(exchange(b.CreateZExt(word, b.getInt32Ty())), bits);
    } else {
      llvm::Value* low = b.CreateZExt(exchange(b.CreateTrunc(word, b.getInt32Ty())), bits);
      llvm::Value* high = b.CreateZExt(exchange(b.CreateTrunc(b.CreateLShr(word, 32), b.getInt32Ty())), bits);
      word = b.CreateOr(low, b.CreateShl(high, 32));
    }
    llvm::Value* other = numeric.FromMemory(b.CreateBitCast(word, type), dtype);
    value = arithmetic.Binary(reduce.op, dtype, value, other, /*no_wrap=*/false);
  }
  return value;
}

llvm::Value* CudaKernelEmitter::LoadWorkspace() { return LastArgument(2); }

void CudaKernelEmitter::FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b_value) {
  llvm::IRBuilderBase& b = function_.instructions();
  llvm::BasicBlock* next = function_.EnterUnlikely(condition, "fail", "checked");
  llvm::Value* record = LastArgument(1);
  llvm::Value* exchanged =
      b.CreateAtomicCmpXchg(record, b.getInt32(0), b.getInt32(static_cast<uint32_t>(code)), llvm::MaybeAlign(8),
                            llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* tell = function_.NewBlock("tell");
  llvm::BasicBlock* end = function_.NewBlock("end");
  b.CreateCondBr(b.CreateExtractValue(exchanged, 1), tell, end);
  b.SetInsertPoint(tell);
  b.CreateAlignedStore(a, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), record, kFailureA), llvm::Align(8));
  b.CreateAlignedStore(b_value, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), record, kFailureB), llvm::Align(8));
  b.CreateBr(end);
  b.SetInsertPoint(end);
  if (waiting_ == nullptr) {
    b.CreateRetVoid();
  } else {
    can_fail_ = true;
    b.CreateStore(b.getInt32(1), HasFailed());
    b.CreateBr(waiting_);
  }
  b.SetInsertPoint(next);
}

void CudaKernelEmitter::CallExternal(size_t index, llvm::ArrayRef<llvm::Value*>, llvm::ArrayRef<llvm::Value*>) {
  status_.Unsupported("it calls the external function \"" + source_.description.externals.at(index) +
                      "\", which runs on the host alone");
}

}  // namespace ingot::codegen
