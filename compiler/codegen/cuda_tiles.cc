// Which lane has which element of a fragment is the PTX manual's ("Matrix Fragments for mma.m16n8k16", "mma.m16n8k8" of
// .tf32, "ldmatrix"). A row of 16 bytes that ldmatrix loads as eight elements of 16 bits is four of float32, of which the
// lanes have what the fragments of tf32 have: such tiles are loaded alike, and half as many summands are a step.
#include "compiler/codegen/cuda_tiles.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/arith/linear_bound.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/target/cuda.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

// Of mma.sync.m16n8k16 and m16n8k8; a matrix that ldmatrix loads has 8 rows of 16 bytes, of which a step has two.
constexpr int64_t kRows = 16, kMatrix = 8, kStepBytes = 32;
constexpr int64_t kLanesOfRow = 4, kColumnsOfLane = 2;

PrimExpr WithoutCasts(PrimExpr expr) {
  while (const auto* cast = As<CastNode>(expr)) expr = cast->value;
  return expr;
}

// The pairs of a set of places that lie `distance` apart, in ascending order of the lower one; nothing where one is left.
std::optional<std::vector<int64_t>> LowerOfPairs(const std::map<int64_t, int64_t>& places, int64_t distance) {
  std::vector<int64_t> lower;
  std::map<int64_t, int64_t> left = places;
  while (!left.empty()) {
    const int64_t place = distance > 0 ? left.begin()->first : left.rbegin()->first;
    left.erase(place);
    if (left.erase(place + distance) == 0) return std::nullopt;
    lower.push_back(place);
  }
  return lower;
}

}  // namespace

llvm::CallInst* CallConvergent(llvm::IRBuilderBase& b, llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> types,
                               llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::CallInst* call = b.CreateCall(llvm::Intrinsic::getDeclaration(&module, id, types), arguments);
  call->setConvergent();
  return call;
}

CudaTiles::CudaTiles(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs)
    : function_(function), status_(status), memory_(memory), exprs_(exprs), b_(function.instructions()), numeric_(b_) {}

void CudaTiles::Fail(const std::string& what) { status_.Unsupported(what); }

llvm::Value* CudaTiles::Number(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

std::optional<CudaTiles::Place> CudaTiles::PlaceOf(const Buffer& buffer, const std::vector<PrimExpr>& indices,
                                                   const std::vector<PrimVar>& vars, arith::Analyzer& analyzer) {
  if (!buffer->strides.empty() || buffer->elem_offset) return std::nullopt;
  PrimExpr element = Int64(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!AsConstInt(buffer->shape[d]) || !indices[d]->dtype.is_scalar()) return std::nullopt;
    element = element * buffer->shape[d] + indices[d];
  }
  const std::optional<arith::LinearForm> linear = arith::DetectLinear(element, vars, analyzer);
  if (!linear) return std::nullopt;
  Place place{{}, analyzer.Simplify(linear->constant)};
  for (const PrimExpr& coefficient : linear->coefficients) {
    const auto step = AsConstInt(analyzer.Simplify(coefficient));
    if (!step) return std::nullopt;
    place.steps.push_back(*step);
  }
  return place;
}

std::optional<CudaTiles::Product> CudaTiles::MatchProduct(const ForNode& nest, const ForNode& threads) {
  const auto no = [&](const char* what) -> std::optional<Product> {
    Fail("loop \"" + nest.var->name + "\" is no product of tiles by a warp: " + what);
    return std::nullopt;
  };
  const auto num_threads = AsConstInt(threads.extent);
  if (!num_threads || *num_threads % kCudaWarpThreads != 0) return no("its threads are no whole warps");
  arith::Analyzer analyzer;
  analyzer.Bind(threads.var, Range{threads.min, threads.extent});
  std::vector<PrimVar> vars;
  std::vector<int64_t> extents;
  Stmt stmt;
  for (const ForNode* loop = &nest; loop != nullptr; loop = As<ForNode>(stmt)) {
    const auto extent = AsConstInt(loop->extent);
    if (!extent || loop->for_kind != ForKind::kSerial) return no("a loop of it is not serial, of constant extent");
    analyzer.Bind(loop->var, Range{loop->min, loop->extent});
    vars.push_back(loop->var);
    extents.push_back(*extent);
    stmt = loop->body;
  }
  const auto* store = As<BufferStoreNode>(stmt);
  const auto* sum = store != nullptr ? As<BinaryNode>(store->value) : nullptr;
  if (sum == nullptr || sum->op != BinaryOp::kAdd) return no("it stores no sum");
  const auto is_own = [&](const PrimExpr& expr) {
    const auto* load = As<BufferLoadNode>(expr);
    return load != nullptr && load->buffer.same_as(store->buffer) &&
           std::ranges::equal(load->indices, store->indices,
                              [](const PrimExpr& x, const PrimExpr& y) { return StructuralEqual(x, y); });
  };
  if (!is_own(sum->a)) return no("it does not add to what it stores");
  const auto* product = As<BinaryNode>(sum->b);
  if (product == nullptr || product->op != BinaryOp::kMul) return no("it adds no product");
  const auto *a = As<BufferLoadNode>(WithoutCasts(product->a)), *b = As<BufferLoadNode>(WithoutCasts(product->b));
  if (a == nullptr || b == nullptr) return no("its factors are not elements of buffers");
  const DataType dtype = a->buffer->dtype;
  const bool takes_dtypes =
      (dtype == DataType::Float(16) || dtype == DataType::Bfloat16() || dtype == DataType::Float(32)) &&
      b->buffer->dtype == dtype && store->buffer->dtype == DataType::Float(32) && product->dtype == DataType::Float(32);
  if (!takes_dtypes) return no("there is no matrix instruction for its dtypes");
  if (store->buffer->scope != "local") return no("its sums are not the thread's own");

  const auto c_place = PlaceOf(store->buffer, store->indices, vars, analyzer);
  auto a_place = PlaceOf(a->buffer, a->indices, vars, analyzer);
  auto b_place = PlaceOf(b->buffer, b->indices, vars, analyzer);
  if (!c_place || !a_place || !b_place) return no("an access is not linear");
  const auto c_first = AsConstInt(c_place->first);
  if (!c_first) return no("the places of its sums are not constant");

  // Loops by what they move. The first factor is that of the rows, whose elements the lanes have by fours.
  const auto first_of = [&](const Place& place, int64_t thread) {
    return AsConstInt(analyzer.Simplify(Substitute(place.first, {{threads.var, Int64(thread)}}) -
                                        Substitute(place.first, {{threads.var, Int64(0)}})));
  };
  if (first_of(*a_place, 1).value_or(-1) != 0) {
    std::swap(a, b);
    std::swap(a_place, b_place);
  }
  Product p;
  p.a = a->buffer;
  p.b = b->buffer;
  p.c = store->buffer;
  p.c_first = *c_first;
  p.c_rows = p.c_columns = {{0, 0}};
  int64_t depth = 0;
  const auto spread = [](std::map<int64_t, int64_t>& places, int64_t extent, int64_t step, int64_t c_step) {
    std::map<int64_t, int64_t> all;
    for (const auto& [place, c] : places) {
      for (int64_t i = 0; i < extent; ++i) all[place + i * step] = c + i * c_step;
    }
    const bool is_apart = all.size() == places.size() * static_cast<size_t>(extent);
    places = std::move(all);
    return is_apart;
  };
  for (size_t i = 0; i < vars.size(); ++i) {
    const int64_t of_a = a_place->steps[i], of_b = b_place->steps[i], of_c = c_place->steps[i];
    bool takes = true;
    if (of_c == 0 && of_a != 0 && of_b != 0) {
      takes = depth == 0;
      depth = extents[i];
      p.a_depth_step = of_a;
      p.b_depth_step = of_b;
    } else if (of_c != 0 && of_b == 0 && of_a != 0) {
      takes = spread(p.c_rows, extents[i], of_a, of_c);
    } else if (of_c != 0 && of_a == 0 && of_b != 0) {
      takes = spread(p.c_columns, extents[i], of_b, of_c);
    } else {
      takes = false;
    }
    if (!takes) return no("one of its loops is of no kind that a product has");
  }
  p.step_depth = kStepBytes * 8 / dtype.bits;
  if (depth == 0 || depth % p.step_depth != 0) return no("it does not sum over whole steps");

  // What the lanes of a warp have.
  p.row_step = first_of(*a_place, kLanesOfRow).value_or(0);
  const int64_t columns_step = first_of(*b_place, 1).value_or(0);
  p.column_step = columns_step / kColumnsOfLane;
  if (p.row_step == 0 || columns_step == 0 || columns_step % kColumnsOfLane != 0) {
    return no("its lanes have no rows and columns of their own");
  }
  for (int64_t t = 0; t < *num_threads; ++t) {
    const int64_t lane = t % kCudaWarpThreads;
    const auto a_of = first_of(*a_place, t), a_of_first = first_of(*a_place, t - lane);
    const auto b_of = first_of(*b_place, t), b_of_first = first_of(*b_place, t - lane);
    if (!a_of || !a_of_first || !b_of || !b_of_first || *a_of - *a_of_first != lane / kLanesOfRow * p.row_step ||
        *b_of - *b_of_first != lane % kLanesOfRow * columns_step) {
      return no("a lane has other rows or columns");
    }
  }
  if (p.row_step != 1 && p.a_depth_step != 1) return no("the first tile has no rows of neighbours");
  if (p.column_step != 1 && p.b_depth_step != 1) return no("the second tile has no rows of neighbours");
  const auto row_pairs = LowerOfPairs(p.c_rows, kMatrix * p.row_step);
  const auto column_pairs = LowerOfPairs(p.c_columns, p.column_step);
  if (!row_pairs || !column_pairs) return no("it has no whole fragments");
  p.rows = *row_pairs;
  p.columns = *column_pairs;
  p.steps = depth / p.step_depth;
  if (p.b->scope == "warp") return no("its second factor is no tile in shared memory");
  if (p.a->scope == "warp") {
    if (dtype.bits != 16) return no("its warps keep no such factor");
    const int64_t warps = *num_threads / kCudaWarpThreads, of_warp = static_cast<int64_t>(p.rows.size()) * kRows;
    const bool takes_all = IsConstInt(p.a->shape[1], depth) && IsConstInt(p.a->shape[0], warps * of_warp) &&
                           p.a_depth_step == 1 && p.row_step == depth;
    bool begins = true;
    for (int64_t w = 0; w < warps; ++w) {
      begins &= IsConstInt(analyzer.Simplify(Substitute(a_place->first, {{threads.var, Int64(w * kCudaWarpThreads)}})),
                           w * of_warp * depth);
    }
    for (size_t i = 0; i < p.rows.size(); ++i) begins &= p.rows[i] == static_cast<int64_t>(i) * kRows * depth;
    if (!takes_all || !begins) return no("its first factor is not all that its warp keeps");
  }

  // Lanes 0 to 7 give the rows of the first matrix, 8 to 15 of the second one, and so on. Those of A: rows 0 to 7, rows 8
  // to 15, then both at the next half of the step. A matrix whose rows in memory run along its own side is turned while it
  // is loaded; of float32 a lane loads its element of each matrix itself.
  const int64_t half_step = p.step_depth / 2;
  p.loads_a_words = dtype.bits == 32 && p.a_depth_step != 1;
  p.loads_b_words = dtype.bits == 32 && p.b_depth_step != 1;
  llvm::Value* lane = b_.CreateAnd(exprs_.Find(threads.var.get()), b_.getInt64(kCudaWarpThreads - 1));
  const auto times = [&](llvm::Value* value, int64_t factor) {
    return b_.CreateNSWMul(value, b_.getInt64(static_cast<uint64_t>(factor)));
  };
  const auto bit = [&](unsigned shift) { return b_.CreateAnd(b_.CreateLShr(lane, shift), 1); };
  llvm::Value* row = b_.CreateAnd(lane, kMatrix - 1);
  const auto own_element = [&](int64_t side_step, int64_t depth_step) {
    return b_.CreateNSWAdd(times(b_.CreateUDiv(lane, Number(kLanesOfRow)), side_step),
                           times(b_.CreateURem(lane, Number(kLanesOfRow)), depth_step));
  };
  llvm::Value* a_lane = p.loads_a_words ? own_element(p.row_step, p.a_depth_step)
                                        : b_.CreateNSWAdd(times(row, p.a_depth_step != 1 ? p.a_depth_step : p.row_step),
                                                          b_.CreateNSWAdd(times(bit(3), kMatrix * p.row_step),
                                                                          times(bit(4), half_step * p.a_depth_step)));
  // Those of B: both halves of the step for 8 columns, then of the next 8.
  p.next_columns = p.columns.size() > 1 ? p.columns[1] - p.columns[0] : 0;
  llvm::Value* b_lane =
      p.loads_b_words
          ? own_element(p.column_step, p.b_depth_step)
          : b_.CreateNSWAdd(times(row, p.b_depth_step != 1 ? p.b_depth_step : p.column_step),
                            b_.CreateNSWAdd(times(bit(3), half_step * p.b_depth_step), times(bit(4), p.next_columns)));
  p.a_first = a_place->first;
  p.b_first = b_place->first;
  const auto places = [&](const Buffer& tile, const Place& place, llvm::Value* of_lane, const std::vector<int64_t>& own,
                          int64_t depth_step, const std::vector<int64_t>& of_words) {
    llvm::Value* of_thread = b_.CreateNSWAdd(OffsetOfFirst(place.first, threads, kCudaWarpThreads), of_lane);
    Product::Places all;
    for (int64_t step = 0; step < p.steps; ++step) {
      for (const int64_t elements : own) {
        for (const int64_t word : of_words) {
          const int64_t within = (elements + word + step * p.step_depth * depth_step) % PeriodOf(tile);
          llvm::Value*& moved = all[within];
          if (moved == nullptr) moved = Moved(tile, b_.CreateNSWAdd(of_thread, Number(within)));
        }
      }
    }
    return all;
  };
  const std::vector<int64_t> first = {0};
  p.a_places = places(p.a, *a_place, a_lane, p.rows, p.a_depth_step, p.loads_a_words ? p.WordsOfA() : first);
  p.b_places = places(p.b, *b_place, b_lane, p.columns, p.b_depth_step, p.loads_b_words ? p.WordsOfB() : first);
  const uint64_t registers = 2 * (4 * p.rows.size() + 2 * p.columns.size());
  p.fragments = function_.EntryAlloca(llvm::ArrayType::get(b_.getInt32Ty(), registers), 4, "fragments");
  return p;
}

llvm::Value* CudaTiles::OffsetOfFirst(const PrimExpr& first, const ForNode& threads, int64_t of_threads) {
  const PrimVar together = MakePrimVar("together");
  exprs_.SetRange(together, Range{threads.min, threads.extent});
  exprs_.Bind(together.get(),
              b_.CreateAnd(exprs_.Find(threads.var.get()), b_.getInt64(~static_cast<uint64_t>(of_threads - 1))));
  return exprs_.EmitIndex(Substitute(first, {{threads.var, PrimExpr(together)}}));
}

// The registers of a step's fragments: four for each pair of rows, then two for each pair of columns.
llvm::Value* CudaTiles::FragmentSlot(const Product& p, int64_t step, int64_t number) {
  const auto all = static_cast<int64_t>(4 * p.rows.size() + 2 * p.columns.size());
  return b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), p.fragments, static_cast<uint64_t>(step % 2 * all + number));
}

// The place that is `elements` behind the lane's own one.
llvm::Value* CudaTiles::PlaceInTile(const Buffer& tile, const Product::Places& places, int64_t elements) {
  const Storage* storage = memory_.Find(tile->data.get());
  if (storage == nullptr || storage->base->getType()->getPointerAddressSpace() != kCudaSharedMemory) {
    Fail("tile \"" + tile->name + "\" is not in shared memory");
    return nullptr;
  }
  const int64_t within = elements % PeriodOf(tile);
  llvm::Value* offset = b_.CreateNSWAdd(places.at(within), Number(elements - within));
  return b_.CreateGEP(numeric_.MemoryType(tile->dtype), storage->base, offset);
}

// Loads `count` matrices of the tile into the registers of the step from `number` on.
void CudaTiles::LoadMatrices(const Product& p, const Buffer& tile, const Product::Places& places, int64_t elements,
                             bool turned, int count, int64_t step, int64_t number) {
  llvm::Value* place = PlaceInTile(tile, places, elements);
  if (place == nullptr) return;
  const llvm::Intrinsic::ID four = turned ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                          : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16;
  const llvm::Intrinsic::ID two = turned ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16
                                         : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16;
  llvm::Value* loaded = CallConvergent(b_, count == 4 ? four : two, {place->getType()}, {place});
  for (int i = 0; i < count; ++i) {
    b_.CreateAlignedStore(b_.CreateExtractValue(loaded, static_cast<unsigned>(i)), FragmentSlot(p, step, number + i),
                          llvm::Align(4));
  }
}

// Loads one register of the step.
void CudaTiles::LoadWord(const Product& p, const Buffer& tile, const Product::Places& places, int64_t elements,
                         int64_t step, int64_t number) {
  llvm::Value* place = PlaceInTile(tile, places, elements);
  if (place == nullptr) return;
  b_.CreateAlignedStore(b_.CreateAlignedLoad(b_.getInt32Ty(), place, llvm::Align(4)), FragmentSlot(p, step, number),
                        llvm::Align(4));
}

// The registers of 16 rows that the lane keeps (cuda_warp_memory).
void CudaTiles::LoadKept(const Product& p, int64_t rows, int64_t step, int64_t number) {
  const Storage* storage = memory_.Find(p.a->data.get());
  if (storage == nullptr) return Fail("tile \"" + p.a->name + "\" is allocated nowhere");
  for (int64_t i = 0; i < 4; ++i) {
    llvm::Value* place = b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), storage->base,
                                                       static_cast<uint64_t>((rows * p.steps + step) * 4 + i));
    b_.CreateAlignedStore(b_.CreateAlignedLoad(b_.getInt32Ty(), place, llvm::Align(4)),
                          FragmentSlot(p, step, number + i), llvm::Align(4));
  }
}

// By register of a fragment, how far behind the lane's own element it lies.
std::vector<int64_t> CudaTiles::Product::WordsOfA() const {
  const int64_t below = kMatrix * row_step, behind = step_depth / 2 * a_depth_step;
  return {0, below, behind, below + behind};
}
std::vector<int64_t> CudaTiles::Product::WordsOfB() const { return {0, step_depth / 2 * b_depth_step}; }

void CudaTiles::LoadStep(const Product& p, int64_t step) {
  int64_t number = 0;
  for (const int64_t row : p.rows) {
    const int64_t elements = row + step * p.step_depth * p.a_depth_step;
    if (p.a->scope == "warp") {
      LoadKept(p, row / (kRows * p.row_step), step, number);
      number += 4;
    } else if (p.loads_a_words) {
      for (const int64_t word : p.WordsOfA()) LoadWord(p, p.a, p.a_places, elements + word, step, number++);
    } else {
      LoadMatrices(p, p.a, p.a_places, elements, p.a_depth_step != 1, 4, step, number);
      number += 4;
    }
  }
  for (size_t n = 0; n < p.columns.size();) {
    const int64_t elements = p.columns[n] + step * p.step_depth * p.b_depth_step;
    if (p.loads_b_words) {
      for (const int64_t word : p.WordsOfB()) LoadWord(p, p.b, p.b_places, elements + word, step, number++);
      ++n;
      continue;
    }
    const bool has_next = n + 1 < p.columns.size() && p.columns[n + 1] - p.columns[n] == p.next_columns;
    const int count = has_next ? 4 : 2;
    LoadMatrices(p, p.b, p.b_places, elements, p.b_depth_step != 1, count, step, number);
    number += count;
    n += has_next ? 2 : 1;
  }
}

void CudaTiles::MultiplyStep(const Product& p, int64_t step, size_t begin, size_t end) {
  const Storage* sums = memory_.Find(p.c->data.get());
  if (sums == nullptr) return Fail("the sums of a product are allocated nowhere");
  const bool is_half = p.a->dtype == DataType::Float(16), is_float = p.a->dtype == DataType::Float(32);
  llvm::Type* pair =
      is_half ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b_.getHalfTy(), 2)) : b_.getInt32Ty();
  const auto fragment = [&](size_t number) -> llvm::Value* {
    llvm::Value* slot = FragmentSlot(p, step, static_cast<int64_t>(number));
    llvm::Type* type = is_float ? b_.getFloatTy() : b_.getInt32Ty();
    llvm::Value* value = b_.CreateAlignedLoad(type, slot, llvm::Align(4));
    // The instruction would cut off what tf32 does not have.
    if (is_float) return b_.CreateIntrinsic(b_.getInt32Ty(), llvm::Intrinsic::nvvm_f2tf32_rna, {value});
    return b_.CreateBitCast(value, pair);
  };
  const llvm::Intrinsic::ID instruction = is_float  ? llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32
                                          : is_half ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                                                    : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
  for (size_t m = begin; m < end; ++m) {
    for (size_t n = 0; n < p.columns.size(); ++n) {
      std::vector<llvm::Value*> arguments;
      for (size_t i = 0; i < 4; ++i) arguments.push_back(fragment(4 * m + i));
      for (size_t i = 0; i < 2; ++i) arguments.push_back(fragment(4 * p.rows.size() + 2 * n + i));
      // The sums: both columns of the upper row, then of the lower one.
      llvm::Value* places[4];
      for (unsigned part = 0; part < 4; ++part) {
        const int64_t row = p.rows[m] + (part / 2 != 0 ? kMatrix * p.row_step : 0);
        const int64_t column = p.columns[n] + (part % 2 != 0 ? p.column_step : 0);
        places[part] = b_.CreateConstInBoundsGEP1_64(
            b_.getFloatTy(), sums->base, static_cast<uint64_t>(p.c_first + p.c_rows.at(row) + p.c_columns.at(column)));
        arguments.push_back(b_.CreateAlignedLoad(b_.getFloatTy(), places[part], llvm::Align(4)));
      }
      llvm::Value* result = CallConvergent(b_, instruction, {}, arguments);
      for (unsigned part = 0; part < 4; ++part) {
        b_.CreateAlignedStore(b_.CreateExtractValue(result, part), places[part], llvm::Align(4));
      }
    }
  }
}

}  // namespace ingot::codegen
