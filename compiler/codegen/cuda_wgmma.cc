// A loop of kPipelineStages whose product is one of kGroupProduct: by wgmma, of which those of one iteration still run
// while the next ones are started.
//
//   for k in the first stages - 2 iterations:  copy the tiles of k to stage k; a group of copies ends
//   for k:
//     wait for the copies of k; make what the thread copied visible to wgmma; wait for all threads
//     start the products of k; a group of products ends
//     copy the tiles of k + stages - 2 to their stage; a group of copies ends
//     wait for the products of k - 1
//   wait for the products, and for all threads
//
// The stage that is copied to in k is that of k - 2, whose products each thread has waited for before all of them met.
//
// Both factors are read from shared memory through descriptors, whose fields are the PTX manual's ("Matrix Descriptor
// Format", "Canonical Layouts"), in units of 16 bytes. Rows of a tile have 128 bytes, along k or along the factor's own
// side, and their parts of 16 bytes are swapped (128-byte swizzling): eight rows of 1024 bytes are what repeats.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/codegen/cuda_kernel_emitter.h"
#include "compiler/target/cuda.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kRowElements = 64, kRowsOfPattern = 8;  // of 16 bits; of the swizzle
constexpr int64_t kElementBytes = 2, kDescriptorUnit = 16;
constexpr int64_t kPatternBytes = kRowsOfPattern * kRowElements * kElementBytes;
constexpr int64_t kGroupThreads = 4 * kCudaWarpThreads;
// Of an instruction: rows, of which each warp has 16, and summands; columns come by 8.
constexpr int64_t kGroupRows = 64, kGroupWarpRows = 16, kGroupDepth = 16, kMatrixColumns = 8, kMostColumns = 256;

// How the instruction finds a factor in its tile.
struct Factor {
  bool is_turned = false;   // its rows in memory run along its own side, not along k
  int64_t panel_bytes = 0;  // of a turned one: from 64 elements to the next
  int64_t step_bytes = 0;   // from 16 summands to the next
};

// `side_step` and `depth_step` in elements, `panel_step` from 64 elements of the side to the next; nothing where the tile
// lies in another way.
std::optional<Factor> FactorOf(int64_t side_step, int64_t depth_step, int64_t panel_step) {
  if (depth_step == 1 && side_step == kRowElements) return Factor{false, 0, kGroupDepth * kElementBytes};
  const bool is_turned =
      side_step == 1 && depth_step == kRowElements && panel_step * kElementBytes % kPatternBytes == 0;
  if (is_turned) return Factor{true, panel_step * kElementBytes, kGroupDepth * kRowElements * kElementBytes};
  return std::nullopt;
}

// All but where it begins.
uint64_t DescriptorOf(const Factor& factor) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr unsigned kLeading = 16, kStride = 32;
  const auto leading = static_cast<uint64_t>(factor.is_turned ? factor.panel_bytes / kDescriptorUnit : 1);
  return kSwizzle128 | leading << kLeading | static_cast<uint64_t>(kPatternBytes / kDescriptorUnit) << kStride;
}

// "$first, $first+1, ...", so many.
std::string OperandList(size_t first, size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i) list += (i != 0 ? ", $" : "$") + std::to_string(first + i);
  return list;
}

}  // namespace

void CudaKernelEmitter::EmitGroupPipeline(const ForNode& loop, int64_t stages, const PipelinedIteration& iteration) {
  llvm::IRBuilderBase& b = function_.instructions();
  const auto no = [&](const char* what) {
    status_.Unsupported("loop \"" + loop.var->name + "\" is no product of tiles by four warps: " + what);
  };
  const CudaArch* arch = FindCudaArch(target_);
  if (arch == nullptr || !arch->is_exact) return no("the target has no such instructions");
  if (stages < 3) return no("it has too few stages");
  BindThread(*iteration.threads);
  const std::optional<CudaTiles::Product> product = tiles_.MatchProduct(*iteration.product, *iteration.threads);
  if (!product) return;

  // The places of the rows and columns that a thread has, as the instruction leaves them to it.
  const CudaTiles::Product& p = *product;
  const auto columns = std::ssize(p.columns) * kMatrixColumns;
  const int64_t a_row = p.a_depth_step == 1 ? p.row_step : kRowElements;  // 64 rows are one panel
  const int64_t b_panel =
      p.columns.size() > kRowElements / kMatrixColumns ? p.columns[kRowElements / kMatrixColumns] - p.columns[0] : 0;
  const std::optional<Factor> a = FactorOf(p.row_step, p.a_depth_step, kGroupRows * kRowElements);
  const std::optional<Factor> of_b = FactorOf(p.column_step, p.b_depth_step, b_panel);
  if (!a || !of_b || columns > kMostColumns) return no("its tiles lie in another way");
  for (int64_t j = 0; j < std::ssize(p.columns); ++j) {
    const int64_t column = j * kMatrixColumns;
    const int64_t place =
        of_b->is_turned ? column / kRowElements * b_panel + column % kRowElements : column * kRowElements;
    if (p.columns[static_cast<size_t>(j)] - p.columns[0] != place) return no("a thread has other columns");
  }
  const auto num_threads = AsConstInt(iteration.threads->extent);
  if (!num_threads || *num_threads % kGroupThreads != 0) return no("its threads are no whole groups of warps");
  arith::Analyzer& analyzer = exprs_.analyzer();
  const auto place_of = [&](const PrimExpr& first, int64_t thread) {
    return AsConstInt(analyzer.Simplify(Substitute(first, {{iteration.threads->var, Int64(thread)}}))).value_or(-1);
  };
  for (int64_t thread = 0; thread < *num_threads; thread += kCudaWarpThreads) {
    const int64_t group = thread / kGroupThreads * kGroupThreads, warp = (thread - group) / kCudaWarpThreads;
    const int64_t a_group = place_of(p.a_first, group), b_group = place_of(p.b_first, group);
    const bool is_there = a_group >= 0 && b_group >= 0 && a_group * kElementBytes % kPatternBytes == 0 &&
                          b_group * kElementBytes % kPatternBytes == 0 &&
                          place_of(p.a_first, thread) - a_group == warp * kGroupWarpRows * p.row_step &&
                          place_of(p.b_first, thread) == b_group;
    if (!is_there) return no("a warp has other rows or columns");
  }
  for (const int64_t row : p.rows) {
    if (row * kElementBytes % kPatternBytes != 0 || (row != 0 && row % (kGroupRows * a_row) != 0)) {
      return no("a thread has other rows");
    }
  }

  // The memory of the stages.
  int64_t first_byte = 0, stage_bytes = 0;
  for (const Buffer& tile : iteration.tiles) stage_bytes += TileBytes(tile, kPatternBytes);
  llvm::Value* memory = DynamicShared(stage_bytes * stages, kPatternBytes, &first_byte);
  std::vector<int> scopes;
  for (const Buffer& tile : iteration.tiles) {
    if (!tiles_.IsSwizzled(tile)) return no("its tiles have other rows than those of 128 bytes");
    scopes.push_back(memory_.scopes().Add(tile->name));
  }
  const auto number = [&](int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); };
  const auto bind = [&](llvm::Value* k, llvm::Value* stage) {
    exprs_.Bind(loop.var.get(), k);
    llvm::Value* begin = b.CreateNSWAdd(b.CreateNSWMul(stage, number(stage_bytes)), number(first_byte));
    int64_t place = 0;
    for (size_t i = 0; i < iteration.tiles.size(); ++i) {
      llvm::Value* base = b.CreateGEP(b.getInt8Ty(), memory, b.CreateNSWAdd(begin, number(place)));
      memory_.Bind(iteration.tiles[i]->data.get(), {base, scopes[i], kPatternBytes});
      place += TileBytes(iteration.tiles[i], kPatternBytes);
    }
  };
  const auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments) {
    b.CreateCall(llvm::Intrinsic::getDeclaration(&function_.module(), id), arguments)->setConvergent();
  };
  const auto emit = [&](const std::string& text, const std::string& constraints, llvm::Type* result,
                        llvm::ArrayRef<llvm::Value*> arguments) {
    std::vector<llvm::Type*> types;
    for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
    llvm::InlineAsm* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text,
                                                     constraints + (constraints.empty() ? "" : ",") + "~{memory}",
                                                     /*hasSideEffects=*/true);
    llvm::CallInst* made = b.CreateCall(assembly, arguments);
    made->setConvergent();
    return made;
  };
  const auto say = [&](const std::string& text) { emit(text, "", b.getVoidTy(), {}); };

  // The sums, in the order of the instruction's registers: by instruction, by 8 columns, the upper row and the lower one,
  // two columns.
  const Storage* sums = memory_.Find(p.c->data.get());
  if (sums == nullptr) return no("its sums are allocated nowhere");
  std::vector<llvm::Value*> places;
  for (const int64_t row : p.rows) {
    for (const int64_t column : p.columns) {
      for (int64_t part = 0; part < 4; ++part) {
        const int64_t of_row = p.c_rows.at(row + (part / 2 != 0 ? kRowsOfPattern * p.row_step : 0));
        const int64_t of_column = p.c_columns.at(column + (part % 2 != 0 ? p.column_step : 0));
        places.push_back(b.CreateConstInBoundsGEP1_64(b.getFloatTy(), sums->base,
                                                      static_cast<uint64_t>(p.c_first + of_row + of_column)));
      }
    }
  }
  std::vector<llvm::Type*> floats(places.size(), b.getFloatTy());
  llvm::Type* all_sums = llvm::StructType::get(function_.context(), floats);
  std::string tied;
  for (size_t i = 0; i < places.size(); ++i) tied += i != 0 ? ",=f" : "=f";
  // Runs instructions on the sums, `inputs` behind them.
  const auto on_sums = [&](const std::string& text, const std::vector<llvm::Value*>& inputs) {
    std::vector<llvm::Value*> arguments = inputs;
    std::string constraints = tied;
    for (size_t i = 0; i < inputs.size(); ++i) constraints += ",l";
    for (size_t i = 0; i < places.size(); ++i) {
      arguments.push_back(b.CreateAlignedLoad(b.getFloatTy(), places[i], llvm::Align(4)));
      constraints += "," + std::to_string(i);
    }
    llvm::Value* result = emit(text, constraints, all_sums, arguments);
    for (size_t i = 0; i < places.size(); ++i) {
      b.CreateAlignedStore(b.CreateExtractValue(result, static_cast<unsigned>(i)), places[i], llvm::Align(4));
    }
  };
  const std::string dtype = p.a->dtype == DataType::Float(16) ? "f16" : "bf16";
  const size_t own = places.size() / p.rows.size();  // sums of an instruction
  const auto descriptor = [&](const Buffer& tile, const PrimExpr& first, int64_t elements, const Factor& factor) {
    llvm::Value* offset =
        b.CreateNSWMul(tiles_.OffsetOfFirst(first, *iteration.threads, kGroupThreads), number(kElementBytes));
    llvm::Value* place = b.CreateGEP(b.getInt8Ty(), memory_.Find(tile->data.get())->base,
                                     b.CreateNSWAdd(offset, number(elements * kElementBytes)));
    constexpr uint64_t kPlaces = 0x3ffff;  // of shared memory
    llvm::Value* begin = b.CreateAnd(b.CreatePtrToInt(place, b.getInt64Ty()), kPlaces);
    return b.CreateOr(b.CreateLShr(begin, number(4)), b.getInt64(DescriptorOf(factor)));
  };
  const auto multiply = [&] {
    std::vector<llvm::Value*> descriptors;
    std::string text = "wgmma.fence.sync.aligned;\n";
    for (int64_t step = 0; step < p.steps; ++step) {
      const size_t b_operand = places.size() + descriptors.size();
      const auto behind = [&](llvm::Value* of_step_0, const Factor& factor) {
        return b.CreateAdd(of_step_0, number(step * factor.step_bytes / kDescriptorUnit));
      };
      descriptors.push_back(behind(descriptor(p.b, p.b_first, p.columns[0], *of_b), *of_b));
      for (size_t m = 0; m < p.rows.size(); ++m) {
        const size_t a_operand = places.size() + descriptors.size();
        descriptors.push_back(behind(descriptor(p.a, p.a_first, p.rows[m], *a), *a));
        text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + dtype + "." + dtype +
                " {" + OperandList(m * own, own) + "}, $" + std::to_string(a_operand) + ", $" +
                std::to_string(b_operand) + ", 1, 1, 1, " + (a->is_turned ? "1" : "0") + ", " +
                (of_b->is_turned ? "1" : "0") + ";\n";
      }
    }
    on_sums(text + "wgmma.commit_group.sync.aligned;", descriptors);
  };

  llvm::Value* extent = exprs_.EmitWithoutOverflow(loop.extent);
  if (status_.failed()) return;
  exprs_.SetRange(loop.var, Range{loop.min, loop.extent});
  in_pipeline_ = true;
  const auto copy = [&](llvm::Value* k, llvm::Value* stage) {
    llvm::BasicBlock* some = function_.NewBlock("some");
    llvm::BasicBlock* next = function_.NewBlock("next");
    b.CreateCondBr(b.CreateICmpSLT(k, extent), some, next);
    b.SetInsertPoint(some);
    bind(k, stage);
    for (const Stmt& part : iteration.copies) stmts_.Emit(part);
    b.CreateBr(next);
    b.SetInsertPoint(next);
    call(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  };
  const int64_t ahead = stages - 2;
  for (int64_t k = 0; k < ahead; ++k) copy(number(k), number(k));

  // At least once: where the sums might go around the loop, ptxas would let no two products run at once.
  llvm::BasicBlock* before = function_.NewBlock("before");
  llvm::BasicBlock* body = function_.NewBlock("body");
  llvm::BasicBlock* behind_loop = function_.NewBlock("endloop");
  llvm::BasicBlock* done = function_.NewBlock("done");
  b.CreateCondBr(b.CreateICmpSLT(number(0), extent), before, done);
  b.SetInsertPoint(before);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  llvm::PHINode* k = b.CreatePHI(b.getInt64Ty(), 2, loop.var->name);
  llvm::PHINode* stage = b.CreatePHI(b.getInt64Ty(), 2, "stage");
  llvm::PHINode* free_stage = b.CreatePHI(b.getInt64Ty(), 2, "free");
  k->addIncoming(number(0), before);
  stage->addIncoming(number(0), before);
  free_stage->addIncoming(number(ahead), before);
  const auto after = [&](llvm::Value* of) {
    llvm::Value* next = b.CreateNSWAdd(of, number(1));
    return b.CreateSelect(b.CreateICmpEQ(next, number(stages)), number(0), next);
  };
  call(llvm::Intrinsic::nvvm_cp_async_wait_group, {b.getInt32(static_cast<uint32_t>(ahead - 1))});
  say("fence.proxy.async.shared::cta;");
  EmitBarrier();
  bind(k, stage);
  multiply();
  copy(b.CreateNSWAdd(k, number(ahead)), free_stage);
  say("wgmma.wait_group.sync.aligned 1;");
  llvm::Value* next = b.CreateNSWAdd(k, number(1));
  stage->addIncoming(after(stage), b.GetInsertBlock());
  free_stage->addIncoming(after(free_stage), b.GetInsertBlock());
  k->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, extent), body, behind_loop);
  b.SetInsertPoint(behind_loop);
  on_sums("wgmma.wait_group.sync.aligned 0;", {});
  b.CreateBr(done);
  b.SetInsertPoint(done);
  in_pipeline_ = false;
  call(llvm::Intrinsic::nvvm_cp_async_wait_all, {});
  EmitBarrier();
}

}  // namespace ingot::codegen
