// bind_scalars
//   Before: tensor functions take every operand as a tensor, also constants of one element (an epsilon, an exponent,
//           the 0.5 of an activation).
//   After:  constants of one number are immediates of the functions that read them, which are specialised for each
//           value: x ** 3 is two products, x / 2 needs no load. Functions of equal value are shared. An exponent that
//           would make products of a power stays an operand under strict permissions. So does an operand that has
//           many values: the scales of a quantised network, one for each layer, would make a kernel of each.
//   After legalising, since operators have no bodies before; before classes and fusion, which then see fewer operands.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/power.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Buffer;
using ir::Expr;
using ir::PrimExpr;

namespace {

// Returns the number of a constant of one element; nothing for others, and for formats that are rarely used.
std::optional<PrimExpr> NumberOf(const Expr& arg) {
  const auto* constant = As<ir::ConstantNode>(arg);
  if (constant == nullptr || constant->data->num_elements() != 1) return std::nullopt;
  const DataType dtype = constant->data->dtype();
  const std::byte* bytes = constant->data->bytes().data();
  const auto read = [bytes](auto value) {
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  };
  if (dtype == DataType::Float(32)) return ir::FloatImm(dtype, read(float()));
  if (dtype == DataType::Float(64)) return ir::FloatImm(dtype, read(double()));
  if (dtype == DataType::Int(32)) return ir::IntImm(dtype, read(int32_t()));
  if (dtype == DataType::Int(64)) return ir::IntImm(dtype, read(int64_t()));
  return std::nullopt;
}

// Replaces loads by numbers, and removes the regions that were read.
class LoadReplacer : public ir::StmtMutator {
 public:
  std::unordered_map<Buffer, PrimExpr, ir::RefHash, ir::RefSame> numbers;
  bool fits = true;  // only loads refer to these buffers

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const ir::Ref<ir::BufferLoadNode>& load) override {
    const auto it = numbers.find(load->buffer);
    return it != numbers.end() ? it->second : StmtMutator::Mutate(load);
  }
  ir::Stmt Mutate(const ir::Ref<ir::BufferStoreNode>& store) override {
    fits &= !numbers.contains(store->buffer);
    return StmtMutator::Mutate(store);
  }
  ir::Stmt Mutate(const ir::Block& block) override {
    ir::BlockNode copy = *block;
    std::erase_if(copy.reads, [&](const ir::BufferRegion& region) { return numbers.contains(region.buffer); });
    for (const ir::MatchBufferRegion& match : copy.match_buffers) fits &= !numbers.contains(match.source.buffer);
    return StmtMutator::Mutate(ir::Make<ir::BlockNode>(std::move(copy)));
  }
};

// Returns how many powers of a body code generation computes by products or a quotient. x^1 is x in any case.
int64_t CountProductPowers(const ir::Stmt& body) {
  struct Counter : ir::StmtVisitor {
    using ir::StmtVisitor::Visit;
    void Visit(const ir::PrimCallNode& call) override {
      if (ir::ProductExponent(call).value_or(1) != 1) ++count;
      ir::StmtVisitor::Visit(call);
    }
    int64_t count = 0;
  };
  Counter counter;
  counter.VisitStmt(body);
  return counter.count;
}

// Whether this number in place of the buffer's loads makes products of a power.
bool MakesProducts(const ir::PrimFunc& function, const Buffer& buffer, const PrimExpr& number) {
  LoadReplacer replacer;
  replacer.numbers.emplace(buffer, number);
  return CountProductPowers(replacer.MutateStmt(function->body)) > CountProductPowers(function->body);
}

// The different numbers that calls in a module give for each parameter of each tensor function.
class NumbersGiven : public ir::ExprVisitor {
 public:
  void VisitExpr(const Expr& expr) override {
    const std::optional<CallTir> tir = AsCallTir(expr);
    for (size_t i = 0; tir.has_value() && i < tir->args.size(); ++i) {
      const std::optional<PrimExpr> number = NumberOf(tir->args[i]);
      if (!number.has_value()) continue;
      std::vector<PrimExpr>& known = numbers_[{tir->callee->name, i}];
      const auto is_same = [&](const PrimExpr& other) { return ir::StructuralEqual(other, *number); };
      if (std::ssize(known) <= kMany && std::ranges::none_of(known, is_same)) known.push_back(*number);
    }
    ir::ExprVisitor::VisitExpr(expr);
  }
  bool AreMany(const std::string& function, size_t param) const {
    const auto found = numbers_.find({function, param});
    return found != numbers_.end() && std::ssize(found->second) > kMany;
  }

 private:
  static constexpr std::ptrdiff_t kMany = 4;
  std::map<std::pair<std::string, size_t>, std::vector<PrimExpr>> numbers_;
};

class ScalarBinder : public ir::ExprMutator {
 public:
  ScalarBinder(ir::IRModule& module, PassContext& context, const NumbersGiven& given)
      : module_(module), context_(context), given_(given), shared_(module) {}

 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const ir::Call& call) override {
    const std::optional<CallTir> tir = AsCallTir(call);
    if (!tir.has_value() || tir->tir_vars.get() != nullptr) return ExprMutator::Mutate(call);
    const ir::PrimFunc function = module_.FindPrimFunc(tir->callee->name);
    if (function == nullptr || function->params.size() < tir->args.size()) return call;
    const std::string& function_name = tir->callee->name;
    LoadReplacer binder;
    std::vector<Expr> args;
    ir::PrimFuncNode bound = *function;
    bound.params.clear();
    bool binds_power = false;
    for (size_t i = 0; i < function->params.size(); ++i) {
      const ir::PrimFuncParam& param = function->params[i];
      const std::optional<PrimExpr> number = i < tir->args.size() ? NumberOf(tir->args[i]) : std::nullopt;
      const bool fits = number.has_value() && param.buffer != nullptr && param.buffer->dtype == (*number)->dtype;
      const bool makes_products = fits && MakesProducts(function, param.buffer, *number);
      const bool is_worth_it = makes_products ? IsPermitted(RewriteId::kBoundPower, context_.options.rewrites)
                                              : fits && !given_.AreMany(function_name, i);
      const bool binds = fits && is_worth_it;
      binds_power |= binds && makes_products;
      if (binds) {
        binder.numbers.emplace(param.buffer, *number);
      } else {
        bound.params.push_back(param);
        if (i < tir->args.size()) args.push_back(tir->args[i]);
      }
    }
    if (binder.numbers.empty() || args.empty()) return call;
    bound.body = binder.MutateStmt(function->body);
    if (!binder.fits) return call;
    if (binds_power) context_.rewrites.Count(RewriteId::kBoundPower, tir->callee->name, call->span);
    ir::CallNode result = *op::MakeCallTIR(shared_.Add(ir::Make<ir::PrimFuncNode>(std::move(bound)), tir->callee->name),
                                           args, tir->results);
    result.span = call->span;
    return ir::Make<ir::CallNode>(std::move(result));
  }

 private:
  ir::IRModule& module_;
  PassContext& context_;
  const NumbersGiven& given_;
  SharedFunctions shared_;
};

}  // namespace

Result<ir::IRModule> BindScalars(ir::IRModule module, PassContext& context) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  NumbersGiven given;
  for (const ir::IRModule::Entry& entry : entries) {
    if (const auto* function = As<ir::FunctionNode>(entry.function)) given.VisitExpr(function->body);
  }
  ScalarBinder binder(module, context, given);
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (function == nullptr || function->attrs.Find(kPrepareAttr) != nullptr) continue;
    module.Set(entry.var, binder.MutateFunction(function));
  }
  return module;
}

}  // namespace ingot::transform
