#include "tests/compiler/script/random_prim_func.h"

namespace ingot::script::testing {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

const DataType kI64 = DataType::Int(64), kI32 = DataType::Int(32), kBool = DataType::Bool(), kF32 = DataType::Float(32);

class PrimFuncGenerator {
 public:
  explicit PrimFuncGenerator(RandomSource& random) : random_(random) {}

  PrimFunc Function() {
    std::vector<PrimFuncParam> params;
    for (int64_t i = random_.Below(3); i > 0; --i) {
      const PrimVar scalar = MakePrimVar(random_.Name(), random_.Pick<DataType>({kI64, kI32, kF32, kBool}));
      vars_.push_back(scalar);
      params.push_back({scalar, nullptr});
    }
    std::vector<PrimVar> symbols;
    for (int64_t i = 1 + random_.Below(3); i > 0; --i) {
      if (random_.Chance(30)) symbols.push_back(MakePrimVar(random_.Name()));
      std::vector<PrimExpr> shape;
      // Lone symbols are bound before expressions of them.
      for (const PrimVar& symbol : symbols) shape.push_back(symbol);
      for (int64_t d = random_.Below(3); d > 0; --d) shape.push_back(RandomDim(random_, symbols));
      Buffer buffer = MakeBuffer(std::move(shape));
      params.push_back({MakePrimVar(buffer->name + "_handle", DataType::Handle()), buffer});
      buffers_.push_back(std::move(buffer));
    }
    vars_.insert(vars_.end(), symbols.begin(), symbols.end());
    Stmt body = Body(0);
    if (random_.Chance(60)) {
      BlockNode root("root", {}, {}, {}, nullptr);
      root.alloc_buffers = Allocations(2);
      root.body = Body(0);
      body = Make<BlockRealizeNode>(std::vector<PrimExpr>{}, BoolImm(true), Make<BlockNode>(std::move(root)));
    } else if (has_blocks_) {  // the text gives functions with blocks their root
      BlockNode root("root", {}, {}, {}, body);
      body = Make<BlockRealizeNode>(std::vector<PrimExpr>{}, BoolImm(true), Make<BlockNode>(std::move(root)));
    }
    return Make<PrimFuncNode>(std::move(params), std::move(body), random_.Chance(50), random_.Attributes());
  }

 private:
  // Removes the variables and buffers that were defined during its life.
  class Scope {
   public:
    explicit Scope(PrimFuncGenerator& g) : g_(g), vars_(g.vars_.size()), buffers_(g.buffers_.size()) {}
    ~Scope() {
      g_.vars_.resize(vars_);
      g_.buffers_.resize(buffers_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PrimFuncGenerator& g_;
    const size_t vars_, buffers_;
  };

  DataType Element() {
    return random_.Pick<DataType>({kF32, kF32, DataType::Float(16), DataType::Bfloat16(), DataType::Float(64), kI32,
                                   kI64, DataType::Int(8), DataType::UInt(8), DataType::Int(4), kBool});
  }
  DataType Number() { return random_.Pick<DataType>({kF32, kF32, DataType::Float(16), kI32, kI64, DataType::UInt(8)}); }

  Buffer MakeBuffer(std::vector<PrimExpr> shape) {
    BufferNode buffer(random_.Name(), Element(), std::move(shape));
    if (random_.Chance(15)) {
      for (size_t i = 0; i < buffer.shape.size(); ++i) buffer.strides.push_back(Int64(1 + random_.Below(9)));
    }
    if (random_.Chance(15)) buffer.elem_offset = Int64(1 + random_.Below(64));
    if (random_.Chance(20)) buffer.scope = random_.Pick<std::string>({"local", "shared", "shared.dyn"});
    if (random_.Chance(10)) buffer.alignment = 128;
    return Make<BufferNode>(std::move(buffer));
  }
  std::vector<Buffer> Allocations(int64_t most) {
    std::vector<Buffer> buffers;
    for (int64_t i = random_.Below(most + 1); i > 0; --i) {
      std::vector<PrimExpr> shape;
      for (int64_t d = random_.Below(3); d > 0; --d) shape.push_back(Index());
      buffers.push_back(MakeBuffer(std::move(shape)));
    }
    buffers_.insert(buffers_.end(), buffers.begin(), buffers.end());
    return buffers;
  }

  // ---- Expressions
  PrimExpr Leaf(DataType dtype) {
    std::vector<PrimExpr> known;
    for (const PrimVar& var : vars_) {
      if (var->dtype == dtype) known.emplace_back(var);
    }
    if (!known.empty() && random_.Chance(70)) return random_.Pick(known);
    if (dtype.is_floating()) return FloatImm(dtype, random_.Float());
    return IntImm(dtype, random_.Int(dtype));
  }
  PrimExpr Index(int depth = 2) { return random_.Chance(50) ? Leaf(kI64) : Expr(kI64, depth + 1); }
  std::vector<PrimExpr> Indices(const Buffer& buffer) {
    std::vector<PrimExpr> indices;
    for (size_t i = 0; i < buffer->shape.size(); ++i) indices.push_back(Index());
    return indices;
  }

  PrimExpr Expr(DataType dtype, int depth) {
    if (depth > 4 || random_.Chance(20)) return Leaf(dtype);
    if (dtype.is_bool()) return Condition(depth);
    const auto sub = [&](DataType t) { return Expr(t, depth + 1); };
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2: {
        const std::vector<BinaryOp> ops =
            dtype.is_floating() ? std::vector{BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul,
                                              BinaryOp::kDiv, BinaryOp::kMin, BinaryOp::kMax}
                                : std::vector{BinaryOp::kAdd,      BinaryOp::kSub,      BinaryOp::kMul,
                                              BinaryOp::kDiv,      BinaryOp::kTruncMod, BinaryOp::kFloorDiv,
                                              BinaryOp::kFloorMod, BinaryOp::kMin,      BinaryOp::kMax};
        const BinaryOp op = random_.Pick(ops);
        PrimExpr a = sub(dtype), b = sub(dtype);
        return Make<BinaryNode>(op, std::move(a), std::move(b));
      }
      case 3:
        return Make<SelectNode>(sub(kBool), sub(dtype), sub(dtype));
      case 4: {
        const DataType from = random_.Pick<DataType>({kF32, kI32, kI64, kBool, DataType::Float(16)});
        return from == dtype ? sub(dtype) : PrimExpr(Make<CastNode>(dtype, sub(from)));
      }
      case 5: {
        std::vector<Buffer> fitting;
        for (const Buffer& buffer : buffers_) {
          if (buffer->dtype == dtype) fitting.push_back(buffer);
        }
        if (fitting.empty()) return Leaf(dtype);
        const Buffer buffer = random_.Pick(fitting);
        return Make<BufferLoadNode>(buffer, Indices(buffer));
      }
      case 6: {
        const DataType bound = random_.Pick<DataType>({kF32, kI64});
        PrimExpr value = sub(bound);
        const Scope scope(*this);
        const PrimVar var = MakePrimVar(random_.Name(), bound);
        vars_.push_back(var);
        return Make<LetNode>(var, std::move(value), sub(dtype));
      }
      case 7:
        return Make<PrimCallNode>(dtype, Intrinsic::kIfThenElse,
                                  std::vector<PrimExpr>{sub(kBool), sub(dtype), sub(dtype)});
      case 8:
        return Intrinsics(dtype, depth);
      case 9:
        return Make<PrimCallNode>(dtype, Intrinsic::kCallExtern,
                                  std::vector<PrimExpr>{StringImm("external"), sub(dtype)});
      case 10:
        if (dtype.bits == 32 && (dtype == kF32 || dtype == kI32)) {
          return Make<PrimCallNode>(dtype, Intrinsic::kReinterpret,
                                    std::vector<PrimExpr>{sub(dtype == kF32 ? kI32 : kF32)});
        }
        return Leaf(dtype);
      default:
        return Make<PrimCallNode>(dtype, Intrinsic::kVectorReduceAdd,
                                  std::vector<PrimExpr>{Vector(dtype, 4, depth + 1)});
    }
  }
  PrimExpr Intrinsics(DataType dtype, int depth) {
    const auto sub = [&] { return Expr(dtype, depth + 1); };
    if (dtype.is_floating()) {
      const Intrinsic op =
          random_.Pick<Intrinsic>({Intrinsic::kExp, Intrinsic::kSqrt, Intrinsic::kTanh, Intrinsic::kErf,
                                   Intrinsic::kPow, Intrinsic::kFloor, Intrinsic::kFma, Intrinsic::kFabs});
      std::vector<PrimExpr> args;
      for (int i = GetIntrinsicRow(op).arity; i > 0; --i) args.push_back(sub());
      return Make<PrimCallNode>(dtype, op, std::move(args));
    }
    const Intrinsic op =
        random_.Pick<Intrinsic>({Intrinsic::kShiftLeft, Intrinsic::kShiftRight, Intrinsic::kBitwiseAnd,
                                 Intrinsic::kBitwiseOr, Intrinsic::kBitwiseXor, Intrinsic::kBitwiseNot});
    std::vector<PrimExpr> args;
    for (int i = GetIntrinsicRow(op).arity; i > 0; --i) args.push_back(sub());
    return Make<PrimCallNode>(dtype, op, std::move(args));
  }
  PrimExpr Condition(int depth) {
    const auto sub = [&] { return Expr(kBool, depth + 1); };
    switch (random_.Below(6)) {
      case 0:
        return Make<NotNode>(sub());
      case 1: {
        PrimExpr a = sub(), b = sub();
        return Make<BinaryNode>(random_.Chance(50) ? BinaryOp::kAnd : BinaryOp::kOr, std::move(a), std::move(b));
      }
      case 2:
        return Make<PrimCallNode>(kBool, Intrinsic::kIsNan, std::vector<PrimExpr>{Expr(kF32, depth + 1)});
      case 3:
        return Make<PrimCallNode>(kBool, Intrinsic::kLikely, std::vector<PrimExpr>{sub()});
      default: {
        const DataType dtype = Number();
        const BinaryOp op = random_.Pick<BinaryOp>(
            {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT, BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE});
        PrimExpr a = Expr(dtype, depth + 1), b = Expr(dtype, depth + 1);
        return Make<BinaryNode>(op, std::move(a), std::move(b));
      }
    }
  }
  PrimExpr Vector(DataType dtype, int lanes, int depth) {
    if (dtype.is_integral() && random_.Chance(40)) {
      return Make<RampNode>(Expr(dtype, depth + 1), IntImm(dtype, 1 + random_.Below(3)), lanes);
    }
    if (depth < 4 && random_.Chance(40)) {
      PrimExpr a = Vector(dtype, lanes, depth + 1), b = Vector(dtype, lanes, depth + 1);
      return Make<BinaryNode>(dtype.is_bool() ? BinaryOp::kOr : BinaryOp::kAdd, std::move(a), std::move(b));
    }
    if (depth < 4 && random_.Chance(30)) {
      std::vector<PrimExpr> vectors = {Vector(dtype, lanes, depth + 1), Vector(dtype, lanes, depth + 1)};
      std::vector<int64_t> order;
      for (int i = 0; i < lanes; ++i) order.push_back(random_.Below(2 * lanes));
      return Make<ShuffleNode>(std::move(vectors), std::move(order));
    }
    return Make<BroadcastNode>(Expr(dtype, depth + 1), lanes);
  }

  // ---- Statements
  Stmt Body(int depth) {
    const Scope scope(*this);
    std::vector<Stmt> stmts;
    for (int64_t i = 1 + random_.Below(depth < 3 ? 3 : 1); i > 0; --i) stmts.push_back(Statement(depth));
    return MakeSeq(std::move(stmts));
  }
  Stmt Store() {
    Buffer buffer = random_.Pick(buffers_);
    if (random_.Chance(10)) {  // through a view of its elements
      BufferNode view(buffer->name, buffer->dtype, {Int64(1 + random_.Below(64))}, buffer->scope);
      view.data = buffer->data;
      buffer = Make<BufferNode>(std::move(view));
    }
    const bool vector = !buffer->shape.empty() && buffer->dtype.bits >= 8 && random_.Chance(15);
    std::vector<PrimExpr> indices = Indices(buffer);
    if (!vector) return Make<BufferStoreNode>(buffer, Expr(buffer->dtype, 0), std::move(indices));
    indices.back() = Make<RampNode>(indices.back(), Int64(1), 4);
    return Make<BufferStoreNode>(buffer, Vector(buffer->dtype, 4, 1), std::move(indices));
  }
  Stmt Statement(int depth) {
    if (depth > 4) return Store();
    switch (random_.Below(14)) {
      case 0:
        return Make<IfStmtNode>(Expr(kBool, 1), Body(depth + 1), random_.Chance(50) ? Body(depth + 1) : Stmt());
      case 1:
      case 2:
        return Loop(depth);
      case 3:
        return Make<WhileNode>(Expr(kBool, 1), Body(depth + 1));
      case 4: {
        PrimExpr value = Expr(Number(), 1);
        const Scope scope(*this);
        const PrimVar var = MakePrimVar(random_.Name(), value->dtype);
        vars_.push_back(var);
        return Make<LetStmtNode>(var, std::move(value), Body(depth + 1));
      }
      case 5:
        return Make<AssertStmtNode>(Expr(kBool, 1), random_.Text(), Body(depth + 1));
      case 6: {
        const Scope scope(*this);
        const std::vector<Buffer> buffers = Allocations(1);
        if (buffers.empty()) return Store();
        return Make<AllocateNode>(buffers[0], Body(depth + 1), random_.Attributes());
      }
      case 7:
        return Attribute(depth);
      case 8:
        return Evaluate();
      case 9:
      case 10:
      case 11:
        return Block(depth);
      default:
        return Store();
    }
  }
  Stmt Evaluate() {
    const Buffer buffer = random_.Pick(buffers_);
    if (random_.Chance(30)) return Make<EvaluateNode>(IntImm(kI32, random_.Below(3)));
    if (random_.Chance(50)) {
      return Make<EvaluateNode>(Make<PrimCallNode>(
          kI32, Intrinsic::kCallPacked, std::vector<PrimExpr>{StringImm(random_.Text()), Expr(kF32, 2), buffer->data}));
    }
    return Make<EvaluateNode>(Make<PrimCallNode>(kI32, Intrinsic::kCallExtern,
                                                 std::vector<PrimExpr>{StringImm("f"), buffer->data, Expr(kI64, 2)}));
  }
  Stmt Loop(int depth) {
    const ForKind kind = random_.Pick<ForKind>({ForKind::kSerial, ForKind::kSerial, ForKind::kParallel,
                                                ForKind::kVectorized, ForKind::kUnrolled, ForKind::kThreadBinding});
    const DataType dtype = random_.Chance(80) ? kI64 : kI32;
    PrimExpr min = random_.Chance(80) ? IntImm(dtype, 0) : Expr(dtype, 3);
    PrimExpr extent = random_.Chance(60) ? IntImm(dtype, 1 + random_.Below(16)) : Expr(dtype, 3);
    const Scope scope(*this);
    const PrimVar var = MakePrimVar(random_.Name(), dtype);
    vars_.push_back(var);
    return Make<ForNode>(var, std::move(min), std::move(extent), kind, Body(depth + 1),
                         kind == ForKind::kThreadBinding ? "threadIdx.x" : "", random_.Attributes());
  }
  Stmt Attribute(int depth) {
    if (random_.Chance(40)) {
      const Scope scope(*this);
      const PrimVar var = MakePrimVar(random_.Name());
      const Range domain{Int64(0), Int64(1 + random_.Below(64))};
      const Ref<Node> axis = Make<IterVarNode>(domain, var, IterType::kThread, "blockIdx.y");
      vars_.push_back(var);
      return Make<AttrStmtNode>(axis, "thread_extent", AttrValue(domain.extent), Body(depth + 1));
    }
    Ref<Node> node;
    if (random_.Chance(50)) node = random_.Pick(buffers_);
    return Make<AttrStmtNode>(node, "pragma_" + std::to_string(random_.Below(3)), random_.Attr(), Body(depth + 1));
  }
  std::vector<BufferRegion> Regions() {
    std::vector<BufferRegion> regions;
    for (int64_t i = random_.Below(3); i > 0; --i) {
      BufferRegion region{random_.Pick(buffers_), {}};
      for (size_t d = 0; d < region.buffer->shape.size(); ++d) {
        region.region.push_back({Index(), random_.Chance(50) ? Int64(1) : Int64(2 + random_.Below(9))});
      }
      regions.push_back(std::move(region));
    }
    return regions;
  }
  Stmt Block(int depth) {
    has_blocks_ = true;
    std::vector<PrimExpr> values;
    PrimExpr predicate = random_.Chance(70) ? BoolImm(true) : Expr(kBool, 2);
    for (int64_t i = random_.Below(4); i > 0; --i) values.push_back(Leaf(kI64));
    const Scope scope(*this);
    std::vector<IterVar> axes;
    for (size_t i = 0; i < values.size(); ++i) {
      const IterType type =
          random_.Pick<IterType>({IterType::kSpatial, IterType::kReduce, IterType::kScan, IterType::kOpaque});
      Range domain{random_.Chance(80) ? Int64(0) : Int64(2),
                   random_.Chance(70) ? Int64(1 + random_.Below(9)) : Index()};
      axes.push_back(Make<IterVarNode>(std::move(domain), MakePrimVar(random_.Name()), type));
      vars_.push_back(axes.back()->var);
    }
    BlockNode block(random_.Chance(50) ? "compute" : random_.Text(), std::move(axes), {}, {}, nullptr);
    block.reads = Regions();  // of buffers outside: its own are nobody else's matter
    block.writes = Regions();
    block.alloc_buffers = Allocations(1);
    if (random_.Chance(20)) {
      BufferRegion source{random_.Pick(buffers_), {}};
      std::vector<PrimExpr> shape;
      for (size_t d = 0; d < source.buffer->shape.size(); ++d) {
        source.region.push_back({Leaf(kI64), Int64(4)});
        shape.push_back(Int64(4));
      }
      BufferNode view(random_.Name(), source.buffer->dtype, std::move(shape), source.buffer->scope);
      block.match_buffers.push_back({Make<BufferNode>(std::move(view)), std::move(source)});
      buffers_.push_back(block.match_buffers.back().buffer);
    }
    block.annotations = random_.Attributes();
    if (random_.Chance(30)) block.init = Body(depth + 2);
    block.body = Body(depth + 1);
    return Make<BlockRealizeNode>(std::move(values), std::move(predicate), Make<BlockNode>(std::move(block)));
  }

  RandomSource& random_;
  std::vector<PrimVar> vars_;
  std::vector<Buffer> buffers_;
  bool has_blocks_ = false;
};

}  // namespace

PrimExpr RandomDim(RandomSource& random, const std::vector<PrimVar>& symbols, int depth) {
  if (symbols.empty() || depth > 2 || random.Chance(40)) return Int64(1 + random.Below(16));
  if (random.Chance(40)) return random.Pick(symbols);
  const BinaryOp op = random.Pick<BinaryOp>({BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kFloorDiv,
                                             BinaryOp::kFloorMod, BinaryOp::kMin, BinaryOp::kMax});
  PrimExpr a = RandomDim(random, symbols, depth + 1), b = RandomDim(random, symbols, depth + 1);
  return Make<BinaryNode>(op, std::move(a), std::move(b));
}

PrimFunc RandomPrimFunc(RandomSource& random) { return PrimFuncGenerator(random).Function(); }

}  // namespace ingot::script::testing
