// name_long_dims
//   Before: parameters of tensor functions may have dims that are long formulas of symbols.
//   After:  a dim whose formula would take more than half of the steps that a formula of the file has is a symbol, which
//           the parameter's shape binds; the formula is replaced by it in the whole function. Callers compute its value
//           from their argument's type, in as many formulas as it takes.
//   Last, because fusion compares the formulas.
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

namespace {

using ir::Buffer;
using ir::PrimExpr;

bool IsLongDim(const PrimExpr& dim) {
  const std::vector<ir::PrimVar> vars = ir::FreePrimVars(dim);
  const Result<DimCode> code = codegen::LowerToDimCode(dim, vars);
  return !code.ok() || code->steps().size() > DimCode::kMaxSteps / 2;
}

// Replaces formulas by their symbols.
class DimNamer : public ir::StmtMutator {
 public:
  void Name(const PrimExpr& dim) {
    if (FindSymbol(dim) != nullptr) return;
    const ir::PrimVar symbol = ir::MakePrimVar("dim" + std::to_string(num_symbols_++), dim->dtype);
    symbols_.emplace(ir::IdentityHash(dim), std::pair(dim, symbol));
  }
  bool empty() const { return symbols_.empty(); }

  PrimExpr MutatePrim(const PrimExpr& expr) override {
    if (const PrimExpr symbol = FindSymbol(expr)) return symbol;
    return StmtMutator::MutatePrim(expr);
  }
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto [it, is_new] = buffers_.try_emplace(buffer, buffer);
    if (!is_new) return it->second;
    ir::BufferNode copy = *buffer;
    bool is_changed = false;
    const auto mutate = [&](PrimExpr& expr) {
      if (expr == nullptr) return;
      PrimExpr mutated = MutatePrim(expr);
      is_changed |= !mutated.same_as(expr);
      expr = std::move(mutated);
    };
    for (PrimExpr& dim : copy.shape) mutate(dim);
    for (PrimExpr& stride : copy.strides) mutate(stride);
    mutate(copy.elem_offset);
    return is_changed ? buffers_[buffer] = ir::Make<ir::BufferNode>(std::move(copy)) : buffer;
  }

 private:
  PrimExpr FindSymbol(const PrimExpr& expr) const {
    const auto [begin, end] = symbols_.equal_range(ir::IdentityHash(expr));
    for (auto it = begin; it != end; ++it) {
      if (ir::StructuralEqual(it->second.first, expr)) return it->second.second;
    }
    return nullptr;
  }

  std::unordered_multimap<uint64_t, std::pair<PrimExpr, ir::PrimVar>> symbols_;  // by the formula's hash
  std::unordered_map<Buffer, Buffer, ir::RefHash, ir::RefSame> buffers_;
  size_t num_symbols_ = 0;
};

}  // namespace

Result<ir::IRModule> NameLongDims(ir::IRModule module, PassContext&) {
  for (const ir::IRModule::Entry& entry : std::vector(module.functions().begin(), module.functions().end())) {
    const ir::PrimFunc function = module.FindPrimFunc(entry.var->name);
    if (function == nullptr) continue;
    DimNamer namer;
    for (const ir::PrimFuncParam& param : function->params) {
      if (param.buffer == nullptr) continue;
      for (const PrimExpr& dim : param.buffer->shape) {
        if (IsLongDim(dim)) namer.Name(dim);
      }
    }
    if (namer.empty()) continue;
    ir::PrimFuncNode copy = *function;
    for (ir::PrimFuncParam& param : copy.params) {
      if (param.buffer != nullptr) param.buffer = namer.MutateBuffer(param.buffer);
    }
    copy.body = namer.MutateStmt(copy.body);
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
