// Of the eight tiles four are sums: one for each block of 16 rows and each panel. Two are the first factor's blocks of
// rows, two its panels' words, which take turns. A step sums 16 words. What is left of the summands is copied to the
// stack first, where zeros stand behind the first factor's, so that it does not matter what stands behind the second's.
// The instructions, and the layout of their configuration, are those of Intel's Software Developer's Manual
// ("Intel AMX Instruction Set Reference", LDTILECFG, TDPBUSD).
#include "compiler/codegen/amx_products.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"

namespace ingot::codegen {

using namespace ir;  // NOLINT

namespace {

using schedule::kAmxSums;
constexpr int64_t kTileRows = schedule::kAmxRows, kTileColumns = schedule::kAmxColumns,
                  kTileWords = schedule::kAmxWords;
constexpr int64_t kTileWordBytes = 4, kTileRowBytes = 64, kFirstOfA = 4, kFirstOfB = 6, kTilesOfFactor = 2;
constexpr int64_t kConfigBytes = 64, kConfigColumnBytes = 16, kConfigRows = 48;

// An access over the variables of a nest: how many elements each moves it, and where it is while all are 0.
struct TilePlace {
  std::vector<PrimExpr> steps;
  std::vector<PrimExpr> first;
};

// How many elements one index more moves each dimension's access.
std::vector<PrimExpr> ElementStridesOf(const Buffer& buffer) {
  if (!buffer->strides.empty()) return buffer->strides;
  std::vector<PrimExpr> strides(buffer->shape.size());
  PrimExpr stride = Int64(1);
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * Cast(DataType::Int(64), buffer->shape[d]);
  }
  return strides;
}

std::optional<TilePlace> TilePlaceOf(const Buffer& buffer, const std::vector<PrimExpr>& indices,
                                     const std::vector<PrimVar>& vars, arith::Analyzer& analyzer) {
  TilePlace place{std::vector<PrimExpr>(vars.size(), Int64(0)), {}};
  const std::vector<PrimExpr> strides = ElementStridesOf(buffer);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]->dtype.is_scalar()) return std::nullopt;
    const std::optional<arith::LinearForm> linear = arith::DetectLinear(indices[d], vars, analyzer);
    if (!linear) return std::nullopt;
    for (size_t v = 0; v < vars.size(); ++v) {
      place.steps[v] = place.steps[v] + Cast(DataType::Int(64), linear->coefficients[v]) * strides[d];
    }
    place.first.push_back(linear->constant);
  }
  for (PrimExpr& step : place.steps) step = analyzer.Simplify(step);
  return place;
}

}  // namespace

struct AmxProducts::Product {
  Buffer a, b, c;
  std::vector<PrimExpr> a_first, b_first, c_first;
  bool starts_at_zero = false;
  PrimExpr rows = Int64(1), depth = Int64(1);
  int64_t row_blocks = 1, panels = 1, columns = 1;
  PrimExpr a_row = Int64(0), c_row = Int64(0), b_panel = Int64(0);  // from one to the next, in elements
};

AmxProducts::AmxProducts(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs)
    : function_(function), status_(status), memory_(memory), exprs_(exprs), b_(function.instructions()) {}

bool AmxProducts::AreIn(const Stmt& body, const KernelDescription& description) {
  struct Finder : StmtVisitor {
    bool found = false;
    using StmtVisitor::Visit;
    void Visit(const ForNode& loop) override {
      found |= schedule::IsAmxProduct(loop);
      StmtVisitor::Visit(loop);
    }
  } finder;
  finder.VisitStmt(body);
  return finder.found && description.externals.empty();
}

void AmxProducts::Fail(const std::string& what) { status_.Unsupported(what); }
llvm::Value* AmxProducts::Number(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
llvm::Value* AmxProducts::Tile(int64_t number) { return b_.getInt8(static_cast<uint8_t>(number)); }

void AmxProducts::Call(unsigned intrinsic, const std::vector<llvm::Value*>& arguments) {
  b_.CreateCall(llvm::Intrinsic::getDeclaration(&function_.module(), intrinsic), arguments);
}

llvm::AllocaInst* AmxProducts::Scratch(const std::string& name, int64_t bytes) {
  llvm::AllocaInst*& found = scratch_[{function_.function(), name}];
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes));
  if (found == nullptr) found = function_.EntryAlloca(type, kTileRowBytes, name);
  return found;
}

template <typename Body>
void AmxProducts::Repeat(llvm::Value* count, const Body& body) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = function_.NewBlock("steps");
  llvm::BasicBlock* inside = function_.NewBlock("step");
  llvm::BasicBlock* done = function_.NewBlock("endsteps");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(Number(0), before);
  b_.CreateCondBr(b_.CreateICmpSLT(at, count), inside, done);
  b_.SetInsertPoint(inside);
  body(at);
  at->addIncoming(b_.CreateNSWAdd(at, Number(1)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

template <typename Body>
void AmxProducts::If(llvm::Value* condition, const Body& body) {
  llvm::BasicBlock* then = function_.NewBlock("then");
  llvm::BasicBlock* done = function_.NewBlock("endif");
  b_.CreateCondBr(condition, then, done);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

template <typename Body>
void AmxProducts::IfSome(const PrimExpr& count, const Body& body) {
  if (AsConstInt(count)) return body();  // Match refuses loops that never run
  llvm::Value* value = exprs_.EmitIndex(count);
  if (!status_.failed()) If(b_.CreateICmpSGT(value, Number(0)), body);
}

std::optional<AmxProducts::Product> AmxProducts::Match(const ForNode& nest) {
  const auto no = [&](const char* what) -> std::optional<Product> {
    Fail("loop \"" + nest.var->name + "\" is no product of bytes by tiles: " + what);
    return std::nullopt;
  };
  arith::Analyzer analyzer = exprs_.analyzer();
  std::vector<PrimVar> vars;
  std::vector<PrimExpr> extents;
  Stmt stmt = Make<ForNode>(nest);
  Ref<BufferStoreNode> start;
  while (const Ref<ForNode> loop = AsRef<ForNode>(stmt)) {
    if (start != nullptr && As<ForNode>(loop->body) != nullptr) return no("its sums start in front of two loops");
    if (loop->for_kind != ForKind::kSerial || !IsConstInt(loop->min, 0)) return no("a loop of it is not serial from 0");
    if (AsConstInt(loop->extent).value_or(1) < 1) return no("a loop of it never runs");
    if (ReadsMemory(loop->extent)) return no("how often a loop of it runs is read from memory");
    stmt = loop->body;
    if (IsConstInt(loop->extent, 1)) {
      stmt = Substitute(stmt, {{loop->var, Int64(0)}});
    } else {
      analyzer.Bind(loop->var, Range{loop->min, loop->extent});
      vars.push_back(loop->var);
      extents.push_back(loop->extent);
    }
    const auto* seq = As<SeqNode>(stmt);
    if (seq == nullptr) continue;
    const auto* zeros = start == nullptr && seq->stmts.size() == 2 ? As<BufferStoreNode>(seq->stmts[0]) : nullptr;
    if (zeros == nullptr || !IsConstInt(zeros->value, 0)) return no("one of its loops has several statements");
    start = AsRef<BufferStoreNode>(seq->stmts[0]);
    const Stmt rest = seq->stmts[1];  // the sequence goes with what held it
    stmt = rest;
  }
  const auto* store = As<BufferStoreNode>(stmt);
  const auto* sum = store != nullptr ? As<BinaryNode>(store->value) : nullptr;
  if (sum == nullptr || sum->op != BinaryOp::kAdd) return no("it stores no sum");
  const auto is_own = [&](const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    return buffer.same_as(store->buffer) &&
           std::ranges::equal(indices, store->indices,
                              [](const PrimExpr& x, const PrimExpr& y) { return StructuralEqual(x, y); });
  };
  const auto* own = As<BufferLoadNode>(sum->a);
  if (own == nullptr || !is_own(own->buffer, own->indices)) return no("it does not add to what it stores");
  if (start != nullptr && !is_own(start->buffer, start->indices)) return no("something else than its sums starts");
  const auto* dot = As<PrimCallNode>(sum->b);
  if (dot == nullptr || dot->op != Intrinsic::kDotBytes) return no("it adds no product of bytes");
  const auto *a = As<BufferLoadNode>(dot->args[0]), *b = As<BufferLoadNode>(dot->args[1]);
  if (a == nullptr || b == nullptr) return no("its factors are not elements of buffers");
  const Buffer& c = store->buffer;
  for (const Buffer& buffer : {c, a->buffer, b->buffer}) {
    if (buffer->dtype != DataType::Int(32)) return no("its elements are not int32");
  }
  // The nest reads both factors before it stores a sum.
  if (a->buffer->data.same_as(c->data) || b->buffer->data.same_as(c->data)) return no("it reads what it stores");
  for (const auto* indices : {&store->indices, &a->indices, &b->indices}) {
    if (std::ranges::any_of(*indices, ReadsMemory)) return no("places are read from memory");
  }
  const auto c_place = TilePlaceOf(store->buffer, store->indices, vars, analyzer);
  const auto a_place = TilePlaceOf(a->buffer, a->indices, vars, analyzer);
  const auto b_place = TilePlaceOf(b->buffer, b->indices, vars, analyzer);
  if (!c_place || !a_place || !b_place) return no("an access is not linear");

  Product p{a->buffer, b->buffer, store->buffer, a_place->first, b_place->first, c_place->first};
  p.starts_at_zero = start != nullptr;
  bool has_rows = false, has_depth = false, has_panels = false, has_columns = false;
  for (size_t i = 0; i < vars.size(); ++i) {
    const PrimExpr &of_a = a_place->steps[i], &of_b = b_place->steps[i], &of_c = c_place->steps[i];
    const bool moves_a = !IsConstInt(of_a, 0), moves_b = !IsConstInt(of_b, 0), moves_c = !IsConstInt(of_c, 0);
    const auto extent = AsConstInt(extents[i]);
    bool* has = nullptr;
    if (moves_a && moves_c && !moves_b) {
      has = &has_rows;
      p.rows = extents[i];
      p.a_row = of_a;
      p.c_row = of_c;
    } else if (moves_a && moves_b && !moves_c) {
      if (start != nullptr && i + 1 != vars.size()) return no("its sums start in front of another loop");
      if (!IsConstInt(of_a, 1) || !IsConstInt(of_b, kTileColumns)) return no("its summands are no rows of a panel");
      has = &has_depth;
      p.depth = extents[i];
    } else if (moves_b && moves_c && !moves_a && extent && IsConstInt(of_b, 1) && IsConstInt(of_c, 1)) {
      has = &has_columns;
      p.columns = *extent;
    } else if (moves_b && moves_c && !moves_a && extent && IsConstInt(of_c, kTileColumns)) {
      has = &has_panels;
      p.panels = *extent;
      p.b_panel = of_b;
    }
    if (has == nullptr || *has) return no("one of its loops is of no kind that a product has");
    *has = true;
  }
  if (p.columns > kTileColumns || (has_panels && p.columns != kTileColumns)) {
    return no("its panels have not 16 columns");
  }
  const auto rows = AsConstInt(p.rows);
  if (rows.value_or(1) > kTilesOfFactor * kTileRows || p.panels > kAmxSums) return no("it has too many sums");
  if (rows) {
    p.row_blocks = (*rows + kTileRows - 1) / kTileRows;
  } else if (analyzer.Bounds(p.rows).max > kTileRows) {
    return no("it may have more than 16 rows");
  }
  // Else one sum would be in two places of the tiles.
  const int64_t width = (p.panels - 1) * kTileColumns + p.columns;
  if (has_rows && !analyzer.ProveLessEqual(Int64(width), p.c_row)) return no("rows of its sums overlap");
  if (p.row_blocks * p.panels > kAmxSums) return no("it has too many sums");
  return p;
}

llvm::Value* AmxProducts::Pointer(const Buffer& buffer, const std::vector<PrimExpr>& first) {
  const std::optional<Address> address = exprs_.EmitAddress(buffer, first);
  return address ? b_.CreateGEP(b_.getInt32Ty(), address->storage.base, address->offset) : nullptr;
}

llvm::Value* AmxProducts::BytesOf(const PrimExpr& elements) {
  return b_.CreateMul(exprs_.EmitIndex(elements), Number(kTileWordBytes));
}

llvm::Value* AmxProducts::Moved(llvm::Value* from, llvm::Value* times, llvm::Value* bytes) {
  return b_.CreateGEP(b_.getInt8Ty(), from, b_.CreateMul(times, bytes));
}

// What says how the tiles are configured; 0: they are not.
llvm::AllocaInst* AmxProducts::Configured() {
  llvm::AllocaInst*& found = scratch_[{function_.function(), "configured"}];
  if (found != nullptr) return found;
  found = function_.EntryAlloca(b_.getInt64Ty(), kTileWordBytes * 2, "configured");
  llvm::IRBuilder<> entry(found->getParent(), std::next(found->getIterator()));
  entry.CreateStore(entry.getInt64(0), found);
  return found;
}

void AmxProducts::Forget() { b_.CreateStore(Number(0), Configured()); }

void AmxProducts::Finish() {
  for (const auto& [key, slot] : scratch_) {
    if (key.second != "configured") continue;
    for (llvm::BasicBlock& block : *key.first) {
      auto* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator());
      if (end == nullptr) continue;
      b_.SetInsertPoint(end);
      Call(llvm::Intrinsic::x86_tilerelease, {});
    }
  }
}

// The rows and the bytes of a row of each tile, unless the tiles have them: that takes some 200 cycles.
void AmxProducts::Configure(const Product& product) {
  llvm::Value* form = b_.CreateAdd(b_.CreateMul(exprs_.EmitIndex(product.rows), Number(kTileColumns * kAmxSums)),
                                   Number((product.panels - 1) * kTileColumns + product.columns));
  llvm::AllocaInst* configured = Configured();
  If(b_.CreateICmpNE(b_.CreateLoad(b_.getInt64Ty(), configured), form), [&] {
    LoadConfig(product);
    b_.CreateStore(form, configured);
  });
}

void AmxProducts::LoadConfig(const Product& product) {
  llvm::AllocaInst* config = Scratch("tile_config", kConfigBytes);
  const auto put = [&](int64_t at, llvm::Value* value) {
    b_.CreateAlignedStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), config, at), llvm::Align(1));
  };
  b_.CreateMemSet(config, b_.getInt8(0), kConfigBytes, llvm::Align(kConfigBytes));
  put(0, b_.getInt8(1));
  const auto tile = [&](int64_t number, llvm::Value* rows, int64_t row_bytes) {
    put(kConfigColumnBytes + 2 * number, b_.getInt16(static_cast<uint16_t>(row_bytes)));
    put(kConfigRows + number, rows);
  };
  const int64_t column_bytes = product.columns * kTileWordBytes;
  for (int64_t block = 0; block < product.row_blocks; ++block) {
    const auto all = AsConstInt(product.rows);
    llvm::Value* rows = all ? b_.getInt8(static_cast<uint8_t>(std::min(*all - block * kTileRows, kTileRows)))
                            : b_.CreateTrunc(exprs_.EmitIndex(product.rows), b_.getInt8Ty());
    tile(kFirstOfA + block, rows, kTileRowBytes);
    for (int64_t panel = 0; panel < product.panels; ++panel) {
      tile(block * product.panels + panel, rows, column_bytes);
    }
  }
  for (int64_t i = 0; i < kTilesOfFactor; ++i) tile(kFirstOfB + i, b_.getInt8(kTileWords), column_bytes);
  Call(llvm::Intrinsic::x86_ldtilecfg, {config});
}

// Adds the products of 16 words.
void AmxProducts::MultiplyStep(const Product& product, const Factors& factors) {
  for (int64_t block = 0; block < product.row_blocks; ++block) {
    llvm::Value* rows = Moved(factors.a, Number(block * kTileRows), factors.a_row);
    Call(llvm::Intrinsic::x86_tileloadd64, {Tile(kFirstOfA + block), rows, factors.a_row});
  }
  for (int64_t panel = 0; panel < product.panels; ++panel) {
    llvm::Value* words = Tile(kFirstOfB + panel % kTilesOfFactor);
    llvm::Value* place = Moved(factors.b, Number(panel), factors.b_panel);
    Call(llvm::Intrinsic::x86_tileloadd64, {words, place, Number(kTileRowBytes)});
    for (int64_t block = 0; block < product.row_blocks; ++block) {
      Call(llvm::Intrinsic::x86_tdpbusd, {Tile(block * product.panels + panel), Tile(kFirstOfA + block), words});
    }
  }
}

// Adds the products of the last words, from the first of them on, of which there are less than 16.
void AmxProducts::MultiplyRest(const Product& product, const Factors& factors, llvm::Value* first, llvm::Value* left) {
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kTileWords);
  llvm::AllocaInst* a = Scratch("last_words", kTilesOfFactor * kTileRows * kTileRowBytes);
  llvm::AllocaInst* b = Scratch("last_rows", kAmxSums * kTileWords * kTileRowBytes);
  llvm::Value* lanes = b_.CreateICmpULT(b_.CreateStepVector(words),
                                        b_.CreateVectorSplat(kTileWords, b_.CreateTrunc(left, b_.getInt32Ty())));
  llvm::Value* columns =
      b_.CreateICmpULT(b_.CreateStepVector(words),
                       b_.CreateVectorSplat(kTileWords, b_.getInt32(static_cast<uint32_t>(product.columns))));
  llvm::Value* a_rest = Moved(factors.a, first, Number(kTileWordBytes));
  Repeat(exprs_.EmitIndex(product.rows), [&](llvm::Value* row) {
    llvm::Value* value = b_.CreateMaskedLoad(words, Moved(a_rest, row, factors.a_row), llvm::Align(kTileWordBytes),
                                             lanes, llvm::Constant::getNullValue(words));
    b_.CreateAlignedStore(value, Moved(a, row, Number(kTileRowBytes)), llvm::Align(kTileRowBytes));
  });
  llvm::Value* b_rest = Moved(factors.b, first, Number(kTileRowBytes));
  for (int64_t panel = 0; panel < product.panels; ++panel) {
    llvm::Value* from = Moved(b_rest, Number(panel), factors.b_panel);
    llvm::Value* to = Moved(b, Number(panel), Number(kTileWords * kTileRowBytes));
    Repeat(left, [&](llvm::Value* row) {
      llvm::Value* value =
          b_.CreateMaskedLoad(words, Moved(from, row, Number(kTileRowBytes)), llvm::Align(kTileWordBytes), columns,
                              llvm::Constant::getNullValue(words));
      b_.CreateAlignedStore(value, Moved(to, row, Number(kTileRowBytes)), llvm::Align(kTileRowBytes));
    });
  }
  MultiplyStep(product, {a, b, Number(kTileRowBytes), Number(kTileWords * kTileRowBytes)});
}

// What addresses are made of is computed only where the loops would compute it.
void AmxProducts::EmitProduct(const Product& p) {
  llvm::Value *c = Pointer(p.c, p.c_first), *c_row = BytesOf(p.c_row);
  if (status_.failed()) return;
  Configure(p);
  const auto for_sums = [&](unsigned intrinsic) {
    for (int64_t block = 0; block < p.row_blocks; ++block) {
      llvm::Value* row = Moved(c, Number(block * kTileRows), c_row);
      for (int64_t panel = 0; panel < p.panels; ++panel) {
        llvm::Value* place = Moved(row, Number(panel), Number(kTileRowBytes));
        Call(intrinsic, {Tile(block * p.panels + panel), place, c_row});
      }
    }
  };
  if (p.starts_at_zero) {
    for (int64_t sum = 0; sum < p.row_blocks * p.panels; ++sum) Call(llvm::Intrinsic::x86_tilezero, {Tile(sum)});
  } else {
    for_sums(llvm::Intrinsic::x86_tileloadd64);
  }
  IfSome(p.depth, [&] { MultiplyAll(p); });
  for_sums(llvm::Intrinsic::x86_tilestored64);
}

void AmxProducts::MultiplyAll(const Product& p) {
  llvm::Value *a = Pointer(p.a, p.a_first), *b = Pointer(p.b, p.b_first), *depth = exprs_.EmitIndex(p.depth);
  llvm::Value *a_row = BytesOf(p.a_row), *b_panel = BytesOf(p.b_panel);
  if (status_.failed()) return;
  llvm::Value* full = b_.CreateUDiv(depth, Number(kTileWords));
  Repeat(full, [&](llvm::Value* step) {
    MultiplyStep(
        p, {Moved(a, step, Number(kTileRowBytes)), Moved(b, step, Number(kTileWords * kTileRowBytes)), a_row, b_panel});
  });
  llvm::Value* first = b_.CreateMul(full, Number(kTileWords));
  llvm::Value* left = b_.CreateSub(depth, first);
  const auto number = AsConstInt(p.depth);
  if (number && *number % kTileWords == 0) return;
  const auto multiply_rest = [&] { MultiplyRest(p, {a, b, a_row, b_panel}, first, left); };
  number ? multiply_rest() : If(b_.CreateICmpSGT(left, Number(0)), multiply_rest);
}

void AmxProducts::Emit(const ForNode& nest) {
  const std::optional<Product> product = Match(nest);
  if (!product) return;
  // A tile has at least one row; sums that no loop starts are not touched where nothing is added to them.
  IfSome(product->rows, [&] {
    if (product->starts_at_zero) return EmitProduct(*product);
    IfSome(product->depth, [&] { EmitProduct(*product); });
  });
}

}  // namespace ingot::codegen
