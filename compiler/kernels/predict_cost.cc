// A region is what one iteration of a loop runs outside of inner loops. Its cycles are those of the busiest of: the
// arithmetic ports, the two load ports, the store port, and the longest chain of operations on one accumulator. Equal
// expressions count once in a region, since LLVM computes them once; small buffers of the function's own at constant
// places are registers and cost nothing to load or store.
#include "compiler/kernels/predict_cost.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"

namespace ingot::kernels {

using namespace ir;  // NOLINT

namespace {

constexpr double kGigahertz = 2.8;
constexpr double kLatency = 4;  // of a multiply-add, in cycles
// Bytes per nanosecond that one core reads and writes, by the cache that all tensors of a call fit into.
constexpr double kBytesFromL2 = 64, kBytesFromL3 = 40, kBytesFromSharedCache = 18, kBytesFromMemory = 8;
constexpr double kSharedCacheBytes = 32 << 20;
// Fetching what a call needs of the machine, the loops' first values, the return.
constexpr double kNanosecondsOfCall = 20;

using Values = std::unordered_map<const PrimVarNode*, int64_t>;

// As constants fold; kLikelySize where there is no value: a division by zero, a number beyond 64 bits.
int64_t ValueOf(BinaryOp op, int64_t a, int64_t b) {
  const bool is_logical = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  const PrimExpr result =
      is_logical ? MakeBinary(op, BoolImm(a != 0), BoolImm(b != 0)) : MakeBinary(op, Int64(a), Int64(b));
  return AsConstInt(result).value_or(kLikelySize);
}

// Vector instructions that an elementary function takes, about; those of WideElementary work in float64.
double SlotsOf(Intrinsic op) {
  constexpr double kElementary = 28, kWide = 400, kRoot = 12;
  if (op == Intrinsic::kExp || op == Intrinsic::kExp2) return 20;
  if (op == Intrinsic::kSqrt || op == Intrinsic::kRsqrt) return kRoot;
  switch (GetIntrinsicRow(op).expansion) {
    case IntrinsicRow::kPlain:
      return 1;
    case IntrinsicRow::kElementary:
      return kElementary;
    case IntrinsicRow::kWideElementary:
      return kWide;
  }
  return 1;
}

struct Region {
  double arithmetic = 0, loads = 0, stores = 0, scalar = 0;
  std::unordered_map<uint64_t, int> updates;  // of each accumulator, by the place that is stored
  std::unordered_set<uint64_t> seen;

  double Cycles(int ports) const {
    int chain = 0;
    for (const auto& [place, count] : updates) chain = std::max(chain, count);
    constexpr double kLoadPorts = 2, kScalarPorts = 4;
    return std::max({arithmetic / ports, loads / kLoadPorts, stores, scalar / kScalarPorts, chain * kLatency});
  }
};

class CostWalk : public StmtVisitor {
 public:
  CostWalk(const PrimFunc& function, const Target& target) : target_(target) {
    for (const PrimFuncParam& param : function->params) {
      if (param.buffer) parameters_.insert(param.buffer->data.get());
    }
  }

  double cycles = 0, parallel_cycles = 0, stores = 0, vector_stores = 0;
  std::unordered_map<int, double> lanes;  // arithmetic in vectors of so many lanes

  void Run(const Stmt& body) {
    VisitStmt(body);
    Close();
  }

 protected:
  using StmtVisitor::Visit;

  void Visit(const ForNode& loop) override {
    constexpr double kOverhead = 1;
    const int64_t min = LikelyValue(loop.min, values_), extent = LikelyValue(loop.extent, values_);
    if (extent <= 0) return;
    if (schedule::IsAmxProduct(loop)) return CountTiles(loop);
    Region outer = std::exchange(region_, Region());
    const double outer_times = std::exchange(times_, times_ * static_cast<double>(extent));
    const bool outer_parallel = std::exchange(is_parallel_, is_parallel_ || loop.for_kind == ForKind::kParallel);
    const PrimVarNode* outer_var = std::exchange(loop_var_, loop.var.get());
    values_[loop.var.get()] = CheckedAdd(min, extent / 2).value_or(min);
    VisitStmt(loop.body);
    Spend(kOverhead);
    Close();
    loop_var_ = outer_var;
    is_parallel_ = outer_parallel;
    times_ = outer_times;
    region_ = std::move(outer);
  }
  void Visit(const WhileNode& loop) override {
    Region outer = std::exchange(region_, Region());
    const double outer_times = std::exchange(times_, times_ * static_cast<double>(kLikelySize));
    StmtVisitor::Visit(loop);
    Close();
    times_ = outer_times;
    region_ = std::move(outer);
  }
  void Visit(const IfStmtNode& node) override {
    VisitPrim(node.condition);
    if (LikelyValue(node.condition, values_) != 0) {
      VisitStmt(node.then_case);
    } else if (node.else_case) {
      VisitStmt(node.else_case);
    }
  }
  void Visit(const LetStmtNode& let) override {
    VisitPrim(let.value);
    if (!let.value->dtype.is_floating() && let.value->dtype.lanes == 1) {
      values_[let.var.get()] = LikelyValue(let.value, values_);
    }
    VisitStmt(let.body);
  }
  void Visit(const AssertStmtNode& node) override { VisitStmt(node.body); }

  void Visit(const BufferStoreNode& store) override {
    VisitPrim(store.value);
    const int lanes_of_store = LanesOf(store.indices);
    CountUpdate(store);
    if (IsRegister(*store.buffer, store.indices)) return;
    CountIndices(store.indices);
    region_.stores += CostOfAccess(store.buffer->dtype, store.indices);
    stores += times_ * lanes_of_store;
    if (lanes_of_store > 1) vector_stores += times_ * lanes_of_store;
  }
  void Visit(const BufferLoadNode& load) override {
    if (IsRegister(*load.buffer, load.indices)) return;
    CountIndices(load.indices);
    const double cost = CostOfAccess(load.buffer->dtype, load.indices);
    region_.loads += cost;
    const int lanes_of_load = LanesOf(load.indices);
    if (lanes_of_load > 1 && !IsSideBySide(load.indices.back())) AddArithmetic(cost, lanes_of_load);  // to join them
  }
  void Visit(const BinaryNode& node) override {
    StmtVisitor::Visit(node);
    const DataType dtype = node.a->dtype;
    const bool divides = node.op == BinaryOp::kDiv || node.op == BinaryOp::kTruncMod ||
                         node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
    if (dtype.is_floating()) {
      constexpr double kDivision = 10;
      // The product that a sum takes is one instruction with it.
      const bool is_fused = node.op == BinaryOp::kAdd && (IsProduct(node.a) || IsProduct(node.b));
      if (!is_fused) AddArithmetic(divides ? kDivision * Vectors(dtype) : Vectors(dtype), dtype.lanes);
      return;
    }
    constexpr double kByVariable = 20, kByConstant = 4;
    const double slots = !divides ? 1 : AsConstInt(node.b) ? kByConstant : kByVariable;
    if (dtype.lanes > 1) {
      AddArithmetic(divides ? slots * dtype.lanes : Vectors(dtype), dtype.lanes);
    } else {
      region_.scalar += slots;
    }
  }
  void Visit(const SelectNode& node) override {
    StmtVisitor::Visit(node);
    AddArithmetic(Vectors(node.dtype), node.dtype.lanes);
  }
  void Visit(const CastNode& node) override {
    StmtVisitor::Visit(node);
    const DataType from = node.value->dtype, to = node.dtype;
    // Between floats and int64 most CPUs convert single elements.
    const bool is_by_elements = from.is_floating() != to.is_floating() && (from.bits == 64 || to.bits == 64);
    constexpr double kOfElement = 3;
    AddArithmetic(is_by_elements ? kOfElement * to.lanes : std::max(Vectors(to), Vectors(from)), to.lanes);
  }
  void Visit(const ShuffleNode& node) override {
    StmtVisitor::Visit(node);
    AddArithmetic(node.vectors.size() > 2 ? static_cast<double>(node.vectors.size()) : Vectors(node.dtype),
                  node.dtype.lanes);
  }
  void Visit(const PrimCallNode& call) override {
    if (call.op == Intrinsic::kIfThenElse && call.dtype.lanes == 1 && call.args[0]->dtype.lanes == 1) {
      VisitPrim(call.args[0]);
      region_.scalar += 2;
      VisitPrim(call.args[LikelyValue(call.args[0], values_) != 0 ? 1 : 2]);
      return;
    }
    StmtVisitor::Visit(call);
    const DataType dtype = call.args.empty() ? call.dtype : call.args[0]->dtype;
    const double of_reduction = call.dtype.lanes < dtype.lanes ? 2 * std::log2(dtype.lanes) : 1;
    // A power by a constant is a few products, or a root.
    const bool is_simple_power = call.op == Intrinsic::kPow && IsConstant(call.args[1]);
    constexpr double kSimplePower = 4;
    AddArithmetic((is_simple_power ? kSimplePower : SlotsOf(call.op)) * of_reduction * Vectors(dtype), dtype.lanes);
  }
  void VisitPrim(const PrimExpr& expr) override {
    // Equal expressions are computed once.
    const bool is_leaf =
        expr->kind == PrimKind::kPrimVar || expr->kind == PrimKind::kIntImm || expr->kind == PrimKind::kFloatImm;
    if (is_leaf) return;
    if (!region_.seen.insert(IdentityHash(expr)).second) return;
    StmtVisitor::VisitPrim(expr);
  }

 private:
  static bool IsProduct(const PrimExpr& expr) {
    const auto* binary = As<BinaryNode>(expr);
    return binary != nullptr && binary->op == BinaryOp::kMul;
  }
  static int LanesOf(const std::vector<PrimExpr>& indices) { return indices.empty() ? 1 : indices.back()->dtype.lanes; }
  static bool IsConstant(const PrimExpr& expr) {
    const auto* broadcast = As<BroadcastNode>(expr);
    return (broadcast != nullptr ? broadcast->value : expr)->kind == PrimKind::kFloatImm;
  }
  static bool IsSideBySide(const PrimExpr& index) {
    const auto* ramp = As<RampNode>(index);
    return ramp != nullptr && IsConstInt(ramp->stride, 1);
  }
  // A small buffer of the function's own, at a constant place, becomes registers.
  bool IsRegister(const BufferNode& buffer, const std::vector<PrimExpr>& indices) const {
    constexpr int64_t kMostElements = 1024;
    if (parameters_.contains(buffer.data.get())) return false;
    double elements = 1;
    for (const PrimExpr& dim : buffer.shape) {
      elements *= static_cast<double>(AsConstInt(dim).value_or(kMostElements + 1));
    }
    return elements <= kMostElements && std::ranges::all_of(indices, [](const PrimExpr& index) {
             const auto* ramp = As<RampNode>(index);
             return AsConstInt(ramp != nullptr ? ramp->base : index).has_value();
           });
  }

  // Vector registers that hold a value.
  double Vectors(DataType dtype) const {
    constexpr int kLeastBits = 8;
    const double bits = static_cast<double>(dtype.lanes) * std::max(static_cast<int>(dtype.bits), kLeastBits);
    return std::max(std::ceil(bits / target_.vector_bits), 1.0);
  }
  double CostOfAccess(DataType dtype, const std::vector<PrimExpr>& indices) const {
    const int num_lanes = LanesOf(indices);
    if (num_lanes == 1) return 1;
    return IsSideBySide(indices.back()) ? Vectors(dtype.with_lanes(num_lanes)) : num_lanes;
  }
  // Tables that tell places cost loads, divisions in places cost divisions; other arithmetic of places is part of
  // addresses.
  void CountIndices(const std::vector<PrimExpr>& indices) {
    struct Finder : PrimVisitor {
      std::vector<PrimExpr> found;
      void VisitPrim(const PrimExpr& expr) override {
        const auto* binary = As<BinaryNode>(expr);
        const bool divides =
            binary != nullptr && (binary->op == BinaryOp::kFloorDiv || binary->op == BinaryOp::kFloorMod);
        if (divides || As<BufferLoadNode>(expr) != nullptr) {
          found.push_back(expr);
        } else {
          PrimVisitor::VisitPrim(expr);
        }
      }
    } finder;
    for (const PrimExpr& index : indices) finder.VisitPrim(index);
    for (const PrimExpr& expr : finder.found) VisitPrim(expr);
  }
  // A tile instruction adds 16 x 16 x 16 products of words in as many cycles; a nest stores its sums.
  void CountTiles(const ForNode& nest) {
    constexpr double kWordsOfCycle = 256, kOverhead = 300;
    double sums = 1, words_of_sum = 1;  // the innermost loop is over words
    for (const ForNode* loop = &nest; loop != nullptr;) {
      sums *= words_of_sum;
      words_of_sum = static_cast<double>(std::max<int64_t>(LikelyValue(loop->extent, values_), 0));
      const auto* seq = As<SeqNode>(loop->body);
      loop = As<ForNode>(seq != nullptr ? seq->stmts.back() : loop->body);
    }
    const double words = sums * words_of_sum;
    Spend(words / kWordsOfCycle + kOverhead);
    stores += times_ * sums;
    vector_stores += times_ * sums;
    lanes[static_cast<int>(schedule::kAmxColumns)] += times_ * words;
  }
  // Counts the chain of updates of one accumulator: the store's value reads what it stores, at the place where the
  // loop's next iteration does so again.
  void CountUpdate(const BufferStoreNode& store) {
    const auto moves = [&](const PrimExpr& index) {
      return std::ranges::any_of(FreePrimVars(index), [&](const PrimVar& var) { return var.get() == loop_var_; });
    };
    if (loop_var_ == nullptr || std::ranges::any_of(store.indices, moves)) return;
    struct Finder : PrimVisitor {
      const BufferNode* buffer = nullptr;
      bool found = false;
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode& load) override {
        found |= load.buffer.get() == buffer;
        PrimVisitor::Visit(load);
      }
    } finder;
    finder.buffer = store.buffer.get();
    finder.VisitPrim(store.value);
    if (!finder.found) return;
    uint64_t place = reinterpret_cast<uintptr_t>(store.buffer.get());
    for (const PrimExpr& index : store.indices) place = place * 31 + IdentityHash(index);
    ++region_.updates[place];
  }
  void AddArithmetic(double slots, int lanes_of_value) {
    region_.arithmetic += slots;
    lanes[lanes_of_value] += slots * times_ * lanes_of_value;
  }
  void Spend(double more) {
    cycles += more * times_;
    if (is_parallel_) parallel_cycles += more * times_;
  }
  void Close() {
    Spend(region_.Cycles(target_.fma_ports));
    region_ = Region();
  }

  const Target& target_;
  std::unordered_set<const PrimVarNode*> parameters_;  // data of buffers that the caller gives
  const PrimVarNode* loop_var_ = nullptr;              // of the innermost loop
  Values values_;
  Region region_;
  double times_ = 1;
  bool is_parallel_ = false;
};

}  // namespace

int64_t LikelyValue(const PrimExpr& expr, const Values& values) {
  if (const auto constant = AsConstInt(expr)) return *constant;
  if (const auto* var = As<PrimVarNode>(expr)) {
    const auto found = values.find(var);
    return found != values.end() ? found->second : kLikelySize;
  }
  if (const auto* cast = As<CastNode>(expr)) return LikelyValue(cast->value, values);
  if (const auto* binary = As<BinaryNode>(expr)) {
    return ValueOf(binary->op, LikelyValue(binary->a, values), LikelyValue(binary->b, values));
  }
  if (const auto* negation = As<NotNode>(expr)) return LikelyValue(negation->a, values) == 0 ? 1 : 0;
  if (const auto* select = As<SelectNode>(expr)) {
    return LikelyValue(LikelyValue(select->condition, values) != 0 ? select->true_value : select->false_value, values);
  }
  const auto* call = As<PrimCallNode>(expr);
  if (call != nullptr && call->op == Intrinsic::kLikely) return LikelyValue(call->args[0], values);
  if (call != nullptr && call->op == Intrinsic::kIfThenElse) {
    return LikelyValue(call->args[LikelyValue(call->args[0], values) != 0 ? 1 : 2], values);
  }
  return kLikelySize;  // an element of a tensor, for example
}

PredictedCost PredictCost(const PrimFunc& lowered, const Target& target, double bytes) {
  CostWalk walk(lowered, target);
  walk.Run(lowered->body);
  PredictedCost cost;
  cost.stores = walk.stores;
  cost.vector_stores = walk.vector_stores;
  const auto most = std::ranges::max_element(walk.lanes, {}, [](const auto& entry) { return entry.second; });
  if (most != walk.lanes.end()) cost.lanes = most->first;
  cost.parallel = walk.cycles > 0 ? walk.parallel_cycles / walk.cycles : 0;
  const double in_cache = walk.cycles / kGigahertz;
  const auto exceeds = [&](int64_t size) { return bytes > static_cast<double>(size); };
  const double rate = bytes > kSharedCacheBytes  ? kBytesFromMemory
                      : exceeds(target.l3_bytes) ? kBytesFromSharedCache
                      : exceeds(target.l2_bytes) ? kBytesFromL3
                                                 : kBytesFromL2;
  const double of_memory = exceeds(target.l1_bytes) ? bytes / rate : 0;
  cost.is_bound_by_memory = of_memory > in_cache;
  cost.nanoseconds = kNanosecondsOfCall + std::max(in_cache, of_memory);
  return cost;
}

}  // namespace ingot::kernels
