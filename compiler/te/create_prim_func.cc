// CreatePrimFunc: turns a graph of tensors into a PrimFunc of stages in order of dependence, each a loop nest around
// one block.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/block_util.h"
#include "compiler/ir/verify_prim_func.h"
#include "compiler/ir/visitor.h"
#include "compiler/te/stages.h"
#include "compiler/te/tensor.h"

namespace ingot::te {
namespace {

using ir::Block;
using ir::Buffer;
using ir::IterVar;
using ir::Make;
using ir::PrimExpr;
using ir::PrimVar;
using ir::Stmt;

const TensorNode& TensorOf(const ir::ProducerLoadNode& load) { return static_cast<const TensorNode&>(*load.producer); }

// The operations that an operation reads, by first occurrence.
std::vector<Operation> InputsOf(const Operation& operation) {
  struct Collector : ir::PrimVisitor {
    using PrimVisitor::Visit;
    std::vector<Operation> inputs;
    void Visit(const ir::ProducerLoadNode& load) override {
      inputs.push_back(TensorOf(load).operation);
      PrimVisitor::Visit(load);
    }
  } collector;
  for (const PrimExpr& body : operation->bodies) collector.VisitPrim(body);
  return std::move(collector.inputs);
}

// Producers before consumers; a worklist, since graphs may be deep.
std::vector<Operation> OrderStages(std::span<const Tensor> args) {
  struct Visiting {
    Operation operation;
    std::vector<Operation> inputs;
    size_t next = 0;
  };
  std::vector<Operation> order;
  std::unordered_set<Operation, ir::RefHash, ir::RefSame> seen;
  for (const Tensor& arg : args) {
    std::vector<Visiting> stack;
    if (seen.insert(arg->operation).second) stack.push_back({arg->operation, InputsOf(arg->operation)});
    while (!stack.empty()) {
      Visiting& top = stack.back();
      if (top.next == top.inputs.size()) {
        order.push_back(top.operation);
        stack.pop_back();
        continue;
      }
      const Operation input = top.inputs[top.next++];
      if (seen.insert(input).second) stack.push_back({input, InputsOf(input)});
    }
  }
  return order;
}

using Results = std::unordered_map<Operation, std::vector<Buffer>, ir::RefHash, ir::RefSame>;

// Rewrites a stage's body: axes become the block's variables, elements of tensors become loads.
class BodyRewriter : public ir::PrimMutator {
 public:
  BodyRewriter(const Results& results, const ir::PrimVarMap& vars) : results_(results), vars_(vars) {}

 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const ir::Ref<ir::PrimVarNode>& var) override {
    const auto it = vars_.find(var);
    return it == vars_.end() ? PrimExpr(var) : it->second;
  }
  PrimExpr Mutate(const ir::Ref<ir::ProducerLoadNode>& load) override {
    const TensorNode& tensor = TensorOf(*load);
    const Buffer& buffer = results_.at(tensor.operation)[static_cast<size_t>(tensor.value_index)];
    INGOT_CHECK(buffer.get() != nullptr, "a placeholder that is no argument");
    std::vector<PrimExpr> indices;
    for (const PrimExpr& index : load->indices) indices.push_back(MutatePrim(index));
    return Make<ir::BufferLoadNode>(buffer, std::move(indices));
  }

 private:
  const Results& results_;
  const ir::PrimVarMap& vars_;
};

class StageBuilder {
 public:
  StageBuilder(const Operation& operation, const Results& results, std::string block_name)
      : operation_(*operation),
        results_(results),
        outputs_(results.at(operation)),
        block_name_(std::move(block_name)) {}

  Stmt Build() {
    for (const IterVar& axis : operation_.axes) AddAxis(axis);
    const auto* reduce = ir::As<ir::ReduceNode>(operation_.bodies[0]);
    if (reduce != nullptr) {
      for (const IterVar& axis : reduce->axes) AddAxis(axis);
    }
    for (const IterVar& axis : operation_.axes) indices_.push_back(vars_.at(axis->var));
    if (iter_vars_.empty()) {
      // The block of a scalar has one variable of extent 1, since every block has at least one.
      const PrimVar var = ir::MakePrimVar("vi");
      iter_vars_.push_back(Make<ir::IterVarNode>(ir::Range{ir::Int64(0), ir::Int64(1)}, var, ir::IterType::kSpatial));
      iter_values_.push_back(ir::Int64(0));
    }
    Stmt init;
    const Stmt body = reduce == nullptr ? StoreAll(operation_.bodies) : Update(*reduce, init);
    ir::BlockNode block(block_name_, iter_vars_, {}, {}, body, init);
    block.annotations = operation_.attrs;
    arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block);
    block.reads = std::move(regions.reads);
    block.writes = std::move(regions.writes);
    Stmt nest = Make<ir::BlockRealizeNode>(iter_values_, ir::BoolImm(true), Make<ir::BlockNode>(std::move(block)));
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      nest = Make<ir::ForNode>(loop->var, loop->range.min, loop->range.extent, ir::ForKind::kSerial, nest);
    }
    return nest;
  }

 private:
  struct Loop {
    PrimVar var;
    ir::Range range;
  };

  void AddAxis(const IterVar& axis) {
    const DataType dtype = axis->var->dtype;
    const PrimVar loop = ir::MakePrimVar(axis->var->name, dtype);
    const PrimVar var = ir::MakePrimVar("v_" + axis->var->name, dtype);
    loops_.push_back({loop, axis->domain});
    iter_values_.push_back(loop);
    iter_vars_.push_back(Make<ir::IterVarNode>(axis->domain, var, axis->type));
    vars_[axis->var] = var;
    // A variable of extent 1 is not bound to its value, so that it stays in the accesses, where schedules find it.
    if (!ir::IsConstInt(axis->domain.extent, 1)) analyzer_.Bind(var, axis->domain);
  }

  PrimExpr Rewrite(const PrimExpr& expr) { return analyzer_.Simplify(BodyRewriter(results_, vars_).MutatePrim(expr)); }

  Stmt Store(size_t i, PrimExpr value) { return Make<ir::BufferStoreNode>(outputs_[i], std::move(value), indices_); }

  Stmt StoreAll(const std::vector<PrimExpr>& bodies) {
    std::vector<Stmt> stores;
    for (size_t i = 0; i < bodies.size(); ++i) stores.push_back(Store(i, Rewrite(bodies[i])));
    return ir::MakeSeq(std::move(stores));
  }

  // out = combine(out, source), with out = identity before the first step.
  Stmt Update(const ir::ReduceNode& reduce, Stmt& init) {
    const ir::CommReducer& reducer = reduce.combiner;
    const std::vector<PrimExpr>& first = reduce.init.empty() ? reducer.identity : reduce.init;
    std::vector<Stmt> inits;
    for (size_t i = 0; i < first.size(); ++i) inits.push_back(Store(i, Rewrite(first[i])));
    init = ir::MakeSeq(std::move(inits));
    ir::PrimVarMap operands;
    for (size_t i = 0; i < reduce.source.size(); ++i) {
      operands[reducer.lhs[i]] = Make<ir::BufferLoadNode>(outputs_[i], indices_);
      const PrimExpr source = ir::IfThenElse(reduce.condition, reduce.source[i], reducer.identity[i]);
      operands[reducer.rhs[i]] = Rewrite(source);
    }
    std::vector<PrimExpr> values;
    for (const PrimExpr& result : reducer.result) values.push_back(ir::Substitute(result, operands));
    if (values.size() == 1) return Store(0, values[0]);
    // Every new value is made from the old ones before any is stored.
    std::vector<PrimVar> lets;
    std::vector<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      lets.push_back(ir::MakePrimVar("v_" + outputs_[i]->name, values[i]->dtype));
      stores.push_back(Store(i, lets[i]));
    }
    Stmt body = ir::MakeSeq(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) body = Make<ir::LetStmtNode>(lets[i], values[i], body);
    return body;
  }

  const OperationNode& operation_;
  const Results& results_;
  const std::vector<Buffer>& outputs_;
  const std::string block_name_;
  arith::Analyzer analyzer_;
  ir::PrimVarMap vars_;  // axis -> variable of the block
  std::vector<Loop> loops_;
  std::vector<IterVar> iter_vars_;
  std::vector<PrimExpr> iter_values_;
  std::vector<PrimExpr> indices_;
};

}  // namespace

std::vector<NamedStage> StagesOf(std::span<const Tensor> args) {
  std::vector<NamedStage> stages;
  std::unordered_set<std::string> names;
  for (Operation& operation : OrderStages(args)) {
    std::string block;
    if (!operation->is_placeholder()) {
      block = operation->name;
      for (int n = 1; !names.insert(block).second; ++n) block = operation->name + "_" + std::to_string(n);
    }
    stages.push_back({std::move(operation), std::move(block)});
  }
  return stages;
}

ir::PrimFunc CreatePrimFunc(std::span<const Tensor> args, std::vector<PrimVar> scalars) {
  const std::vector<NamedStage> stages = StagesOf(args);
  Results results;
  for (const auto& [stage, _] : stages) results[stage].resize(std::max<size_t>(stage->bodies.size(), 1));

  std::vector<ir::PrimFuncParam> params;
  for (const Tensor& arg : args) {
    Buffer& buffer = results.at(arg->operation)[static_cast<size_t>(arg->value_index)];
    INGOT_CHECK(buffer.get() == nullptr, "an argument stands twice");
    buffer = ir::MakeBuffer(arg->name, arg->dtype, arg->shape);
    params.push_back({buffer->data, buffer});
  }
  for (PrimVar& scalar : scalars) params.push_back({std::move(scalar), nullptr});

  std::vector<Buffer> intermediates;
  std::vector<Stmt> nests;
  for (const auto& [stage, block_name] : stages) {
    if (stage->is_placeholder()) continue;
    std::vector<Buffer>& buffers = results.at(stage);
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i]) continue;
      std::vector<PrimExpr> shape;
      for (const IterVar& axis : stage->axes) shape.push_back(axis->domain.extent);
      std::string name = buffers.size() == 1 ? stage->name : stage->name + "_v" + std::to_string(i);
      buffers[i] = ir::MakeBuffer(std::move(name), stage->bodies[i]->dtype, std::move(shape));
      intermediates.push_back(buffers[i]);
    }
    nests.push_back(StageBuilder(stage, results, block_name).Build());
  }

  ir::BlockNode root("root", {}, {}, {}, ir::MakeSeq(std::move(nests)));
  root.alloc_buffers = std::move(intermediates);
  const Stmt body =
      Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{}, ir::BoolImm(true), Make<ir::BlockNode>(std::move(root)));
  ir::PrimFunc function =
      Make<ir::PrimFuncNode>(std::move(params), body, false, ir::Attrs{{"tirx.noalias", ir::AttrValue(true)}});
  const Status status = ir::VerifyPrimFunc(function);
  if (!status.ok()) CheckFailed(__FILE__, __LINE__, "the tensors make a valid function", status.message().c_str());
  return function;
}

}  // namespace ingot::te
