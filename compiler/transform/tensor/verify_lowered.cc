// Checks the rules of lowered.h on one function: form (kinds of statements, lanes, scopes, sizes), not meaning. Bounds
// and races are checked by the interpreter.
#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

class LoweredVerifier : public StmtVisitor {
 public:
  explicit LoweredVerifier(const Target& target) : target_(target) {}
  std::string error;
  int64_t stack_bytes = 0;

  void VisitStmt(const Stmt& stmt) override {
    const bool leading = leading_;
    if (As<AllocateNode>(stmt) == nullptr) leading_ = false;
    StmtVisitor::VisitStmt(stmt);
    leading_ = leading;
  }

 protected:
  using StmtVisitor::Visit;

  void Visit(const BlockNode& block) override { Fail("block \"" + block.name + "\" was not lowered"); }
  void Visit(const BlockRealizeNode& realize) override { Visit(*realize.block); }
  void Visit(const AttrStmtNode& attr) override {
    const auto* store = As<BufferStoreNode>(attr.body);
    const bool is_of_warp = target_.kind == Target::Kind::kCuda && attr.key == kCudaWarpReduce && store != nullptr &&
                            store->value->dtype.is_scalar() && WarpReduce::Of(attr).has_value();
    if (!is_of_warp) return Fail("attribute " + attr.key + " is left");
    StmtVisitor::Visit(attr);
  }
  void Visit(const ForNode& loop) override {
    const std::string name = "loop " + loop.var->name;
    Define(loop.var);
    if (!IsConstInt(loop.min, 0)) Fail(name + " does not start at 0");
    const bool is_thread = loop.for_kind == ForKind::kThreadBinding && target_.kind == Target::Kind::kCuda;
    if (loop.for_kind != ForKind::kSerial && loop.for_kind != ForKind::kParallel && !is_thread) {
      Fail(name + " has a kind left");
    }
    const bool awaits = loop.annotations.Find(schedule::kAwaitCopies) != nullptr;
    const bool is_device_loop = target_.kind == Target::Kind::kCuda ? schedule::IsDeviceLoop(loop)
                                                                    : target_.has_amx() && schedule::IsAmxProduct(loop);
    const bool has_kind = awaits ? is_thread : loop.for_kind == ForKind::kSerial;
    const bool is_known = is_device_loop && has_kind && loop.annotations.items().size() == 1;
    if (!loop.annotations.empty() && !is_known) Fail(name + " has annotations");
    const bool outer = inside_parallel_;
    if (loop.for_kind == ForKind::kParallel && outer) Fail(name + " is parallel inside of a parallel loop");
    inside_parallel_ = outer || loop.for_kind == ForKind::kParallel;
    StmtVisitor::Visit(loop);
    inside_parallel_ = outer;
  }
  void Visit(const AllocateNode& allocate) override {
    const Buffer& buffer = allocate.buffer;
    const std::string name = "buffer " + buffer->name;
    if (!allocated_.insert(buffer.get()).second) Fail(name + " is allocated twice");
    if (!buffer->strides.empty() || buffer->elem_offset) Fail(name + " is not compact");
    if (buffer->scope == "global") {
      if (!leading_) Fail(name + " is workspace and must be allocated outermost");
    } else if (buffer->scope == "local") {
      AddStack(buffer);
    } else if (buffer->scope == "thread" && target_.kind == Target::Kind::kCuda) {
      AddStack(buffer);
    } else if ((buffer->scope == "shared" || buffer->scope == "warp") && target_.kind == Target::Kind::kCuda) {
      if (BytesOf(buffer) < 0) Fail(name + " is shared and has no constant size");
    } else {
      Fail(name + " has scope " + buffer->scope);
    }
    StmtVisitor::Visit(allocate);
  }
  void Visit(const BufferStoreNode& store) override {
    CheckAccess(store.buffer, store.indices);
    const int lanes = store.indices.empty() ? 1 : store.indices.back()->dtype.lanes;
    if (store.value->dtype != store.buffer->dtype.with_lanes(lanes)) {
      Fail("a store of " + store.value->dtype.ToString() + " to " + store.buffer->name + " at " +
           std::to_string(lanes) + " places");
    }
    StmtVisitor::Visit(store);
  }
  void Visit(const BufferLoadNode& load) override {
    CheckAccess(load.buffer, load.indices);
    StmtVisitor::Visit(load);
  }
  void Visit(const IfStmtNode& node) override {
    if (node.condition->dtype.is_scalar()) {
      CheckCondition(node.condition, "an If");
    } else {
      CheckMaskedStores(node);
    }
    StmtVisitor::Visit(node);
  }
  void Visit(const WhileNode& node) override {
    CheckCondition(node.condition, "a While");
    StmtVisitor::Visit(node);
  }
  void Visit(const AssertStmtNode& node) override {
    CheckCondition(node.condition, "an Assert");
    StmtVisitor::Visit(node);
  }
  void Visit(const LetStmtNode& let) override {
    Define(let.var);
    StmtVisitor::Visit(let);
  }
  void Visit(const LetNode& let) override {
    Define(let.var);
    StmtVisitor::Visit(let);
  }
  void Visit(const BinaryNode& node) override {
    if (node.a->dtype != node.b->dtype) {
      Fail("operands of " + node.a->dtype.ToString() + " and " + node.b->dtype.ToString());
    }
    StmtVisitor::Visit(node);
  }
  void Visit(const SelectNode& node) override {
    if (node.condition->dtype.lanes != node.true_value->dtype.lanes ||
        node.true_value->dtype != node.false_value->dtype) {
      Fail("a Select of unequal lanes");
    }
    StmtVisitor::Visit(node);
  }
  void Visit(const PrimCallNode& call) override {
    if (call.op == Intrinsic::kIfThenElse) {
      const DataType condition = call.args[0]->dtype;
      if (!condition.is_bool() || (!condition.is_scalar() && condition.lanes != call.dtype.lanes)) {
        Fail("if_then_else has a condition of " + condition.ToString());
      }
    }
    StmtVisitor::Visit(call);
  }
  void Visit(const ReduceNode&) override { Fail("a Reduce is left"); }
  void Visit(const ProducerLoadNode&) override { Fail("a ProducerLoad is left"); }

 private:
  void Fail(const std::string& what) {
    if (error.empty()) error = what;
  }
  void Define(const PrimVar& var) {
    if (!defined_.insert(var.get()).second) Fail("variable " + var->name + " is bound twice");
  }
  void CheckCondition(const PrimExpr& condition, const std::string& where) {
    if (!condition->dtype.is_bool() || !condition->dtype.is_scalar()) {
      Fail(where + " has a condition of " + condition->dtype.ToString());
    }
  }
  void CheckMaskedStores(const IfStmtNode& node) {
    const auto* seq = As<SeqNode>(node.then_case);
    const std::vector<Stmt> stmts = seq != nullptr ? seq->stmts : std::vector<Stmt>{node.then_case};
    const bool stores_lanes = std::all_of(stmts.begin(), stmts.end(), [&](const Stmt& stmt) {
      const auto* store = As<BufferStoreNode>(stmt);
      return store != nullptr && store->value->dtype.lanes == node.condition->dtype.lanes;
    });
    if (!node.condition->dtype.is_bool() || node.else_case || !stores_lanes) {
      Fail("an If of a condition per lane holds something other than stores of as many lanes");
    }
  }
  void CheckAccess(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    if (indices.size() != buffer->shape.size()) {
      return Fail("buffer " + buffer->name + " of rank " + std::to_string(buffer->shape.size()) + " at " +
                  std::to_string(indices.size()) + " indices");
    }
    for (const PrimExpr& index : indices) {
      const int lanes = index->dtype.lanes;
      if (index->dtype.element_of() != DataType::Int(64)) {
        Fail("buffer " + buffer->name + " at an index that is not int64");
      }
      if (lanes != 1 && index.get() != indices.back().get()) {
        Fail("buffer " + buffer->name + " has lanes in another index than the last");
      }
    }
  }
  // -1: the size is not constant.
  static int64_t BytesOf(const Buffer& buffer) {
    int64_t elements = 1;
    for (const PrimExpr& extent : buffer->shape) {
      const auto constant = AsConstInt(extent);
      if (!constant) return -1;
      elements *= *constant;
    }
    const Result<int64_t> bytes = buffer->dtype.SizeBytes(elements);
    return bytes.ok() ? *bytes : 0;
  }
  void AddStack(const Buffer& buffer) {
    const int64_t bytes = BytesOf(buffer);
    if (bytes < 0) return Fail("buffer " + buffer->name + " is " + buffer->scope + " and has no constant size");
    const bool is_of_threads = buffer->scope == "thread";
    stack_bytes += is_of_threads ? bytes / std::max<int64_t>(*AsConstInt(buffer->shape[0]), 1) : bytes;
    if (stack_bytes > target_.max_stack_bytes) {
      Fail("local buffers exceed " + std::to_string(target_.max_stack_bytes) + " bytes");
    }
  }

  const Target& target_;
  std::unordered_set<const BufferNode*> allocated_;
  std::unordered_set<const PrimVarNode*> defined_;
  bool leading_ = true;
  bool inside_parallel_ = false;
};

}  // namespace

std::optional<WarpReduce> WarpReduce::Of(const AttrStmtNode& attribute) {
  const AttrList* list = attribute.value.get<AttrList>();
  if (attribute.key != kCudaWarpReduce || list == nullptr || list->size() != 3) return {};
  std::array<int64_t, 3> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t* value = (*list)[i].get<int64_t>();
    if (value == nullptr || *value < 0) return {};
    values[i] = *value;
  }
  const auto [op, lanes, step] = values;
  const auto is_power = [](int64_t value) { return std::has_single_bit(static_cast<uint64_t>(value)); };
  if (!is_power(lanes) || !is_power(step) || step >= lanes || lanes > kCudaWarpThreads) return {};
  return WarpReduce{static_cast<BinaryOp>(op), lanes, step};
}

Status VerifyLowered(const PrimFunc& function, const Target& target) {
  LoweredVerifier verifier(target);
  verifier.VisitStmt(function->body);
  if (verifier.error.empty()) return Status();
  return Status(StatusCode::kInvalidArgument, "not a lowered function: " + verifier.error);
}

}  // namespace ingot::transform
