// Calls of the operators in kAssociative become trees of calls of at most kMaxTensorsOfCall tensors each, of fewer where
// their dims have many symbols.
#include "compiler/op/narrow_calls.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/ir/visitor.h"

namespace ingot::op {
namespace {

using ir::Expr;

// How many tensors one call takes. The time in which a kernel is compiled grows much faster than the formulas of its
// places, which are sums of as many extents as it has tensors.
size_t MostTensorsOfCall(const std::vector<Expr>& fields) {
  constexpr size_t kMostSymbols = 8;
  std::unordered_set<ir::PrimVar, ir::RefHash, ir::RefSame> symbols;
  for (const Expr& field : fields) {
    for (const ir::PrimVar& symbol : ir::FreePrimVars(field->type)) symbols.insert(symbol);
  }
  return symbols.size() > kMostSymbols ? kMostSymbols : kMaxTensorsOfCall;
}

// A tree of calls for an operator of one tuple argument, which may be applied to runs of the fields first.
Result<ir::Call> NarrowTuple(const ir::Call& call, const std::function<Expr(const ir::Call&)>& bind, size_t most) {
  std::vector<Expr> fields = ir::As<ir::TupleNode>(call->args[0])->fields;
  const auto with_fields = [&](std::vector<Expr> some) -> Result<ir::Call> {
    std::vector<ir::Type> types;
    for (const Expr& field : some) types.push_back(field->type);
    const Expr tuple = ir::Make<ir::TupleNode>(std::move(some), ir::Make<ir::TupleTypeNode>(std::move(types)));
    INGOT_ASSIGN_OR_RETURN(const ir::Call made, MakeCall(RowOf(call)->name, {tuple}, call->attrs));
    ir::CallNode spanned = *made;
    spanned.span = call->span;
    return ir::Make<ir::CallNode>(std::move(spanned));
  };
  while (fields.size() > most) {
    std::vector<Expr> joined;
    for (size_t begin = 0; begin < fields.size(); begin += most) {
      const size_t end = std::min(begin + most, fields.size());
      if (end - begin == 1) {
        joined.push_back(fields[begin]);
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(const ir::Call part, with_fields({fields.begin() + static_cast<std::ptrdiff_t>(begin),
                                                               fields.begin() + static_cast<std::ptrdiff_t>(end)}));
      joined.push_back(bind(part));
    }
    fields = std::move(joined);
  }
  INGOT_ASSIGN_OR_RETURN(const ir::Call whole, with_fields(std::move(fields)));
  ir::CallNode typed = *whole;
  typed.type = call->type;
  return ir::Make<ir::CallNode>(std::move(typed));
}

// Operators of one tuple argument that are associative, bitwise.
constexpr std::string_view kAssociative[] = {"concat"};

}  // namespace

Result<ir::Call> NarrowCall(const ir::Call& call, const std::function<Expr(const ir::Call&)>& bind) {
  const OpRow* row = RowOf(call);
  const bool is_associative = row != nullptr && std::ranges::find(kAssociative, row->name) != std::end(kAssociative);
  const auto* tuple = is_associative ? ir::As<ir::TupleNode>(call->args[0]) : nullptr;
  if (tuple == nullptr) return call;
  const size_t most = MostTensorsOfCall(tuple->fields);
  return tuple->fields.size() <= most ? call : NarrowTuple(call, bind, most);
}

}  // namespace ingot::op
