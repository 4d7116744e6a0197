// The descriptor follows from the unscheduled PrimFunc alone: one walk over the body collects accesses, messages,
// externals and operation counts; roles, in-place pairs and the cost estimate are derived from them.
#include "compiler/codegen/kernel_descriptor.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::codegen {
namespace {

// How many operations one evaluation counts in the cost estimate.
int64_t FlopsOf(ir::Intrinsic op) {
  switch (op) {
#define INGOT_INTRINSIC(id, name, arity, result, traits, expansion, operations) \
  case ir::Intrinsic::k##id:                                                    \
    return operations;
#include "compiler/ir/intrinsics.def"
  }
  INGOT_UNREACHABLE("Intrinsic");
}

struct Access {
  const ir::BlockNode* block;  // the innermost one; null outside of blocks
  std::vector<ir::PrimExpr> indices;
  int statement;          // number of the statement in the function; the reads of a store have the store's number
  bool is_in_inner_loop;  // in a loop inside the block, which repeats the access
};
struct BufferUse {
  std::vector<Access> loads, stores;
};

// One walk over the body: accesses by buffer, messages, external functions, and float operations times trip counts.
class Survey : public ir::StmtVisitor {
 public:
  explicit Survey(std::span<const ir::PrimVar> ints) : ints_(ints) {}

  std::unordered_map<const ir::PrimVarNode*, BufferUse> uses;  // by data variable
  std::vector<std::string> messages, externals;
  std::vector<ir::PrimExpr> flops;  // the sum of these
  bool divides = false;

 protected:
  using ir::StmtVisitor::Visit;

  void Visit(const ir::ForNode& loop) override {
    std::vector<ir::PrimExpr> outer = trips_;
    // A trip count that depends on an outer loop is left out of the estimate.
    if (LowerToDimCode(loop.extent, ints_).ok()) trips_.push_back(ir::Cast(DataType::Int(64), loop.extent));
    VisitPrim(loop.min);
    VisitPrim(loop.extent);
    ++num_inner_loops_;
    VisitStmt(loop.body);
    --num_inner_loops_;
    trips_ = std::move(outer);
  }
  void Visit(const ir::BlockNode& block) override {
    const ir::BlockNode* outer = std::exchange(block_, &block);
    const int outer_loops = std::exchange(num_inner_loops_, 0);
    // Regions and domains are declarations. The init runs once per output element, so its operations are not counted.
    VisitStmt(block.body);
    if (block.init) {
      const int64_t before = std::exchange(pending_, 0);
      is_init_ = true;
      VisitStmt(block.init);
      is_init_ = false;
      pending_ = before;
    }
    block_ = outer;
    num_inner_loops_ = outer_loops;
  }
  void Visit(const ir::WhileNode& loop) override {
    ++num_inner_loops_;
    StmtVisitor::Visit(loop);
    --num_inner_loops_;
  }
  void Visit(const ir::BufferStoreNode& store) override {
    ++statement_;
    uses[store.buffer->data.get()].stores.push_back({block_, store.indices, statement_, num_inner_loops_ > 0});
    pending_ = 0;
    ir::StmtVisitor::Visit(store);
    ++statement_;
    if (pending_ == 0 || is_init_) return;
    ir::PrimExpr term = ir::Int64(pending_);
    for (const ir::PrimExpr& trip : trips_) term = term * trip;
    flops.push_back(std::move(term));
  }
  void Visit(const ir::BufferLoadNode& load) override {
    uses[load.buffer->data.get()].loads.push_back({block_, load.indices, statement_, num_inner_loops_ > 0});
    ir::StmtVisitor::Visit(load);
  }
  void Visit(const ir::BinaryNode& node) override {
    const DataType dtype = node.a->dtype;
    if (dtype.is_floating()) {
      pending_ += dtype.lanes;
    } else if (node.op == ir::BinaryOp::kDiv || node.op == ir::BinaryOp::kTruncMod ||
               node.op == ir::BinaryOp::kFloorDiv || node.op == ir::BinaryOp::kFloorMod) {
      const auto divisor = ir::AsConstInt(node.b);
      divides = divides || !divisor || *divisor == 0;
    }
    ir::StmtVisitor::Visit(node);
  }
  void Visit(const ir::PrimCallNode& call) override {
    if (call.dtype.is_floating()) pending_ += FlopsOf(call.op) * call.dtype.lanes;
    if (call.op == ir::Intrinsic::kCallExtern || call.op == ir::Intrinsic::kCallPacked) {
      if (!call.args.empty()) {
        if (const auto* name = ir::As<ir::StringImmNode>(call.args[0])) AddOnce(name->value, &externals);
      }
    }
    ir::StmtVisitor::Visit(call);
  }
  void Visit(const ir::AssertStmtNode& node) override {
    AddOnce(node.message, &messages);
    ir::StmtVisitor::Visit(node);
  }

 private:
  static void AddOnce(const std::string& text, std::vector<std::string>* list) {
    if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
  }

  std::span<const ir::PrimVar> ints_;
  std::vector<ir::PrimExpr> trips_;  // of the loops around
  const ir::BlockNode* block_ = nullptr;
  int statement_ = 0, num_inner_loops_ = 0;
  int64_t pending_ = 0;  // operations of the statement that is being visited
  bool is_init_ = false;
};

// Sums the terms as long as the sum fits into one formula; for a function with very many statements, later terms are
// left out.
DimCode EstimateOf(const std::vector<ir::PrimExpr>& terms, std::span<const ir::PrimVar> ints) {
  DimCode estimate(0);
  ir::PrimExpr sum = ir::Int64(0);
  for (const ir::PrimExpr& term : terms) {
    sum = sum + term;
    Result<DimCode> code = LowerToDimCode(sum, ints);
    if (!code.ok()) break;
    estimate = *std::move(code);
  }
  return estimate;
}

bool SameExprs(const std::vector<ir::PrimExpr>& a, const std::vector<ir::PrimExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::PrimExpr& x, const ir::PrimExpr& y) { return ir::StructuralEqual(x, y); });
}

// Whether the block visits every element at most once: the indices are its spatial variables, each used at most once.
bool IndicesAreIterVars(const ir::BlockNode& block, const std::vector<ir::PrimExpr>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (ir::IsConstInt(indices[i], 0)) continue;
    const auto is_index = [&](const ir::IterVar& iter) {
      return iter->type == ir::IterType::kSpatial && iter->var.get() == indices[i].get();
    };
    if (std::none_of(block.iter_vars.begin(), block.iter_vars.end(), is_index)) return false;
    for (size_t k = 0; k < i; ++k) {
      if (indices[k].get() == indices[i].get()) return false;
    }
  }
  // A variable that is no index would make the block visit the element again.
  return std::all_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const ir::IterVar& iter) {
    return ir::IsConstInt(iter->domain.extent, 1) ||
           std::any_of(indices.begin(), indices.end(),
                       [&](const ir::PrimExpr& e) { return e.get() == iter->var.get(); });
  });
}

// Whether the output may lie in the input's memory: each element of the output is stored once, by a block that reads no
// other element of the input than the same one, and does not read it after the store; nothing else accesses either
// buffer.
bool MayShareMemory(const ir::Buffer& output, const BufferUse& output_use, const ir::Buffer& input,
                    const BufferUse& input_use) {
  if (output->dtype != input->dtype || !SameExprs(output->shape, input->shape)) return false;
  if (!output->strides.empty() || !input->strides.empty() || output->elem_offset || input->elem_offset) return false;
  if (!output_use.loads.empty() || output_use.stores.size() != 1 || !input_use.stores.empty()) return false;
  const Access& store = output_use.stores[0];
  if (store.block == nullptr || store.is_in_inner_loop || !IndicesAreIterVars(*store.block, store.indices))
    return false;
  return std::all_of(input_use.loads.begin(), input_use.loads.end(), [&](const Access& load) {
    return load.block == store.block && load.statement <= store.statement && SameExprs(load.indices, store.indices);
  });
}

}  // namespace

std::vector<ir::PrimVar> KernelIntArguments(const ir::PrimFunc& function) {
  std::vector<ir::PrimVar> scalars;
  for (const ir::PrimFuncParam& param : function->params) {
    if (!param.buffer) scalars.push_back(param.var);
  }
  const auto contains = [](const std::vector<ir::PrimVar>& list, const ir::PrimVar& var) {
    return std::any_of(list.begin(), list.end(), [&](const ir::PrimVar& x) { return x.same_as(var); });
  };
  std::vector<ir::PrimVar> ints;
  const auto add_free = [&](const ir::PrimExpr& expr) {
    for (const ir::PrimVar& var : ir::FreePrimVars(expr)) {
      if (!contains(scalars, var) && !contains(ints, var)) ints.push_back(var);
    }
  };
  for (const ir::PrimFuncParam& param : function->params) {
    if (!param.buffer) continue;
    for (const ir::PrimExpr& dim : param.buffer->shape) add_free(dim);
    for (const ir::PrimExpr& stride : param.buffer->strides) add_free(stride);
    if (param.buffer->elem_offset) add_free(param.buffer->elem_offset);
  }
  ints.insert(ints.end(), scalars.begin(), scalars.end());
  return ints;
}

Result<KernelDescription> DescribeKernel(std::string name, const ir::PrimFunc& function) {
  KernelDescription description;
  vm::Kernel& kernel = description.kernel;
  kernel.name = std::move(name);
  const std::vector<ir::PrimVar> ints = KernelIntArguments(function);
  for (const ir::PrimVar& var : ints) kernel.ints.push_back({var->name, var->dtype});

  Survey survey(ints);
  survey.VisitStmt(function->body);
  kernel.messages = std::move(survey.messages);
  description.externals = std::move(survey.externals);
  kernel.flops = EstimateOf(survey.flops, ints);
  // An external function may do anything.
  if (!description.externals.empty()) kernel.effects |= vm::kAllEffects;
  if (!kernel.messages.empty() || survey.divides) kernel.effects |= vm::kEffectMayFail;

  std::vector<int64_t> in_out;
  if (function->attrs.Find("ingot.in_out") != nullptr) in_out = function->attrs.GetInts("ingot.in_out");
  std::vector<ir::Buffer> buffers;
  std::vector<ir::PrimExpr> bytes;
  for (const ir::PrimFuncParam& param : function->params) {
    if (!param.buffer) continue;
    const ir::Buffer& buffer = param.buffer;
    vm::KernelParam described;
    described.name = buffer->name;
    described.dtype = buffer->dtype;
    described.alignment = std::clamp<int64_t>(buffer->alignment, 1, 64);
    const bool is_in_out =
        std::find(in_out.begin(), in_out.end(), static_cast<int64_t>(buffers.size())) != in_out.end();
    const bool is_written = !survey.uses[buffer->data.get()].stores.empty();
    described.role = is_in_out ? vm::ParamRole::kInOut : is_written ? vm::ParamRole::kOut : vm::ParamRole::kIn;
    ir::PrimExpr size = ir::Int64((buffer->dtype.total_bits() + 7) / 8);
    for (const ir::PrimExpr& dim : buffer->shape) {
      Result<DimCode> extent = LowerToDimCode(dim, ints);
      if (!extent.ok()) {
        return std::move(extent).status().WithContext("kernel \"" + kernel.name + "\", parameter \"" + buffer->name +
                                                      "\"");
      }
      described.extents.push_back(*std::move(extent));
      size = size * ir::Cast(DataType::Int(64), dim);
    }
    bytes.push_back(std::move(size));
    kernel.params.push_back(std::move(described));
    buffers.push_back(buffer);
  }
  kernel.bytes = EstimateOf(bytes, ints);

  std::vector<bool> is_taken(buffers.size(), false);
  for (size_t out = 0; out < buffers.size(); ++out) {
    if (kernel.params[out].role != vm::ParamRole::kOut || !description.externals.empty()) continue;
    for (size_t in = 0; in < out; ++in) {
      if (kernel.params[in].role != vm::ParamRole::kIn || is_taken[in]) continue;
      if (!MayShareMemory(buffers[out], survey.uses[buffers[out]->data.get()], buffers[in],
                          survey.uses[buffers[in]->data.get()])) {
        continue;
      }
      kernel.params[out].in_place = static_cast<uint32_t>(in);
      is_taken[in] = true;
      break;
    }
  }
  return description;
}

}  // namespace ingot::codegen
