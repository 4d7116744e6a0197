// Each map has a list of its keys in order of addition, so that leaving a scope removes what was added since.
#include "compiler/lower/register_scope.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/vm_types.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

RegisterScope::RegisterScope(ProgramLowering& program, vm::FunctionBuilder& builder, std::vector<PrimVar> symbols)
    : program_(program), builder_(builder), symbols_(std::move(symbols)) {
  for (size_t i = 0; i < symbols_.size(); ++i) BindInt(symbols_[i], builder_.symbol(i));
}

Result<vm::Type> RegisterScope::RegisterType(const Type& type, vm::Storage storage, const Span& span) const {
  return LowerType(type, symbols_, storage, span);
}

std::vector<vm::Dim> RegisterScope::RegisterDims(const std::vector<PrimExpr>& dims) const {
  return TypeDims(dims, symbols_);
}

bool RegisterScope::HasFormula(const PrimExpr& dim) const { return TypeDim(dim, symbols_).has_value(); }

bool RegisterScope::IsSymbol(const PrimVar& var) const {
  return std::ranges::any_of(symbols_, [&](const PrimVar& symbol) { return symbol.same_as(var); });
}

void RegisterScope::BindInt(const PrimVar& var, vm::RegisterId reg) {
  int_registers_[var] = reg;
  int_keys_.push_back(var);
  if (slot_vars_.size() <= reg.value) slot_vars_.resize(reg.value + 1);
  slot_vars_[reg.value] = var;
}

// Replaces parts of many steps, the innermost first, by variables whose registers hold their values. A formula evaluates
// all of its parts, so that computing one beforehand fails where the whole would have failed.
class RegisterScope::PartsInRegisters : public PrimMutator {
 public:
  explicit PartsInRegisters(RegisterScope& scope) : scope_(scope) {}

  PrimExpr MutatePrim(const PrimExpr& expr) override {
    if (const auto known = short_.find(expr); known != short_.end()) return known->second;
    return short_.emplace(expr, Shortened(PrimMutator::MutatePrim(expr))).first->second;
  }

 private:
  static constexpr size_t kLongPart = DimCode::kMaxSteps / 3;  // an operation has at most three parts

  PrimExpr Shortened(const PrimExpr& expr) {
    const Result<DimCode> code = codegen::LowerToDimCode(expr, scope_.slot_vars_);
    if (!code.ok() || code->steps().size() < kLongPart) return expr;
    if (expr->dtype.is_bool()) return MakeBinary(BinaryOp::kNE, VarOf(Select(expr, Int64(1), Int64(0))), Int64(0));
    return Cast(expr->dtype, VarOf(Cast(DataType::Int(64), expr)));
  }
  PrimExpr VarOf(const PrimExpr& expr) {
    const Result<vm::RegisterId> reg = scope_.IntRegister(expr);
    if (!reg.ok()) return expr;  // the whole fails as well
    if (scope_.slot_vars_.size() <= reg->value || scope_.slot_vars_[reg->value] == nullptr) {
      scope_.BindInt(MakePrimVar("part"), *reg);
    }
    return scope_.slot_vars_[reg->value];
  }

  RegisterScope& scope_;
  std::unordered_map<PrimExpr, PrimExpr, RefHash, RefSame> short_;
};

Result<DimCode> RegisterScope::Dim(const PrimExpr& dim) {
  Result<DimCode> code = codegen::LowerToDimCode(dim, slot_vars_);
  const std::vector<PrimVar> vars = FreePrimVars(dim);
  if (code.ok() || !std::ranges::all_of(vars, [&](const PrimVar& var) { return IsBound(var); })) return code;
  const PrimExpr in_parts = PartsInRegisters(*this).MutatePrim(dim);
  return codegen::LowerToDimCode(in_parts, slot_vars_);
}

Result<std::vector<DimCode>> RegisterScope::Dims(const std::vector<PrimExpr>& dims) {
  std::vector<DimCode> codes;
  for (const PrimExpr& dim : dims) {
    INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(dim));
    codes.push_back(std::move(code));
  }
  return codes;
}

Result<vm::RegisterId> RegisterScope::IntRegister(const PrimExpr& expr) {
  if (const PrimVar var = AsRef<PrimVarNode>(expr)) {
    if (auto it = int_registers_.find(var); it != int_registers_.end()) return it->second;
  }
  INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(expr));
  const std::string key = code.ToString();
  if (auto it = dim_registers_.find(key); it != dim_registers_.end()) return it->second;
  const vm::RegisterId reg = builder_.AddRegister(vm::Type::Int());
  builder_.Dim(reg, std::move(code));
  dim_registers_.emplace(key, reg);
  dim_keys_.push_back(key);
  return reg;
}

vm::RegisterId RegisterScope::ConstantRegister(const ConstantNode& constant) {
  const vm::ConstantId id = program_.AddConstant(constant);
  const auto [it, is_new] = constant_registers_.try_emplace(id.value);
  if (!is_new) return it->second;
  std::vector<vm::Dim> dims;
  for (int64_t dim : constant.data->dims()) dims.emplace_back(DimCode(dim));
  it->second = builder_.AddRegister(vm::Type::Tensor(constant.data->dtype(), std::move(dims), vm::Storage::kConstant));
  builder_.ConstTensor(it->second, id);
  constant_keys_.push_back(id.value);
  return it->second;
}

void RegisterScope::Leave(const Mark& mark) {
  for (; constant_keys_.size() > mark.constants; constant_keys_.pop_back()) {
    constant_registers_.erase(constant_keys_.back());
  }
  for (; dim_keys_.size() > mark.dims; dim_keys_.pop_back()) dim_registers_.erase(dim_keys_.back());
  for (; int_keys_.size() > mark.ints; int_keys_.pop_back()) {
    const auto bound = int_registers_.find(int_keys_.back());
    slot_vars_[bound->second.value] = nullptr;
    int_registers_.erase(bound);
  }
}

}  // namespace ingot::lower
