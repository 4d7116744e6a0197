// A dim that broadcasting leaves open is a nest of Selects over its alternatives; BroadcastDim takes such nests apart
// and joins their alternatives, each once.
#include "compiler/op/broadcast.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"

namespace ingot::op {

namespace {

// Adds the dims among which a formula of BroadcastDim chooses: it is the first one that is not 1, or the last one.
void AddAlternatives(const ir::PrimExpr& dim, Dims& alternatives) {
  const auto add = [&](const ir::PrimExpr& alternative) {
    for (const ir::PrimExpr& known : alternatives) {
      if (DimsEqual(known, alternative)) return;
    }
    alternatives.push_back(alternative);
  };
  const ir::PrimExpr* rest = &dim;
  while (const auto* select = ir::As<ir::SelectNode>(*rest)) {
    const auto* test = ir::As<ir::BinaryNode>(select->condition);
    const bool is_alternative = test != nullptr && test->op == ir::BinaryOp::kEQ && ir::IsConstInt(test->b, 1) &&
                                DimsEqual(test->a, select->false_value);
    if (!is_alternative) break;
    add(select->false_value);
    rest = &select->true_value;
  }
  add(*rest);
}

// Whether the other dim is 1 wherever the symbol is 1.
bool IsOneWith(const ir::PrimExpr& symbol, const ir::PrimExpr& other) {
  const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(symbol);
  return var != nullptr && ir::IsConstInt(SimplifyDim(ir::Substitute(other, {{var, ir::Int64(1)}})), 1);
}

}  // namespace

ir::PrimExpr BroadcastDim(const ir::PrimExpr& a, const ir::PrimExpr& b) {
  if (ir::IsConstInt(a, 1)) return b;
  if (ir::IsConstInt(b, 1) || ir::AsConstInt(a) || DimsEqual(a, b)) return a;
  if (ir::AsConstInt(b)) return b;
  Dims alternatives;
  AddAlternatives(a, alternatives);
  const size_t of_a = alternatives.size();
  AddAlternatives(b, alternatives);
  for (const ir::PrimExpr& dim : alternatives) {
    if (ir::AsConstInt(dim)) return dim;
  }
  if (alternatives.size() == of_a) return a;
  const Dims all = alternatives;
  std::erase_if(alternatives, [&](const ir::PrimExpr& dim) {
    return std::ranges::any_of(all,
                               [&](const ir::PrimExpr& other) { return !other.same_as(dim) && IsOneWith(other, dim); });
  });
  ir::PrimExpr dim = alternatives.back();
  for (size_t i = alternatives.size() - 1; i-- > 0;) {
    dim = ir::Select(ir::Equal(alternatives[i], ir::Int64(1)), dim, alternatives[i]);
  }
  return dim;
}

bool BroadcastAsEqual(const ir::PrimExpr& a, const ir::PrimExpr& b) {
  const ir::PrimVar var = ir::AsRef<ir::PrimVarNode>(a);
  if (var == nullptr) return ir::As<ir::PrimVarNode>(b) != nullptr && BroadcastAsEqual(b, a);
  if (!IsOneWith(a, b) || !ir::IsConstInt(SimplifyDim(ir::Substitute(b, {{var, ir::Int64(0)}})), 0)) return false;
  arith::Analyzer analyzer;
  analyzer.Bind(var, arith::Interval{.min = 2});
  return analyzer.ProveLess(ir::Int64(1), b);
}

ir::PrimExpr BroadcastIndex(const ir::PrimExpr& own, const ir::PrimExpr& extent, const ir::PrimExpr& index) {
  if (own.same_as(extent) || DimsEqual(own, extent)) return index;
  if (arith::Analyzer().ProveLessEqual(own, ir::Int64(1))) return ir::Int64(0);
  return ir::Select(ir::Equal(own, extent), index, ir::Int64(0));
}

}  // namespace ingot::op
