// A recursive match over the pattern tree. Captures are a stack: a failed attempt truncates it to its former length.
#include "compiler/transform/pattern.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/float_format.h"
#include "compiler/ir/structural.h"
#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "runtime/check.h"

namespace ingot::transform {

struct PatternNode {
  enum class Kind { kAny, kConstant, kNumber, kOp, kAnyOp, kOneOf };
  Kind kind = Kind::kAny;
  std::string_view name;          // the name under which the match is captured; empty: not captured
  std::optional<double> number;   // kNumber
  std::string_view row;           // kOp
  std::vector<Pattern> children;  // arguments or alternatives
  bool commutes = false;          // a kOp whose two arguments may be swapped
  std::vector<std::function<bool(const ir::Call&)>> conditions;
};

namespace {

using Kind = PatternNode::Kind;

Pattern Make(PatternNode node) { return Pattern(std::make_shared<const PatternNode>(std::move(node))); }

}  // namespace

Pattern Pattern::As(std::string_view name) const {
  PatternNode node = *node_;
  node.name = name;
  return Make(std::move(node));
}

Pattern Pattern::Where(std::function<bool(const ir::Call&)> condition) const {
  PatternNode node = *node_;
  node.conditions.push_back(std::move(condition));
  return Make(std::move(node));
}

Pattern Any() { return Make({}); }
Pattern Any(std::string_view name) { return Make({.kind = Kind::kAny, .name = name}); }
Pattern Constant(std::string_view name) { return Make({.kind = Kind::kConstant, .name = name}); }
Pattern Number(double value) { return Make({.kind = Kind::kNumber, .number = value}); }
Pattern Number(std::string_view name) { return Make({.kind = Kind::kNumber, .name = name}); }
Pattern Op(std::string_view row, std::vector<Pattern> args) {
  return Make({.kind = Kind::kOp, .row = row, .children = std::move(args)});
}
Pattern Sum(Pattern a, Pattern b) {
  return Make({.kind = Kind::kOp, .row = "add", .children = {std::move(a), std::move(b)}, .commutes = true});
}
Pattern Product(Pattern a, Pattern b) {
  return Make({.kind = Kind::kOp, .row = "multiply", .children = {std::move(a), std::move(b)}, .commutes = true});
}
Pattern OneOf(std::vector<Pattern> alternatives) {
  return Make({.kind = Kind::kOneOf, .children = std::move(alternatives)});
}
Pattern AnyOp() { return Make({.kind = Kind::kAnyOp}); }

ir::Expr Match::Find(std::string_view name) const {
  for (const auto& [known, expr] : captures_) {
    if (known == name) return expr;
  }
  return nullptr;
}
ir::Expr Match::Get(std::string_view name) const {
  ir::Expr expr = Find(name);
  INGOT_CHECK(expr.get() != nullptr, "a name that the pattern always captures");
  return expr;
}
ir::Call Match::GetCall(std::string_view name) const { return ir::Downcast<ir::CallNode>(Get(name)); }
double Match::GetNumber(std::string_view name) const {
  const std::optional<double> number = AsNumber(Get(name));
  INGOT_CHECK(number.has_value(), "a name that captures a number");
  return *number;
}

bool IsRounded(DataType dtype, double found, double number) {
  if (found == number) return true;
  if (!dtype.is_floating() || static_cast<double>(static_cast<float>(number)) == number) return false;
  const int digits = std::max(ir::FloatFormatOf(dtype).mantissa_bits, 23);
  return std::fabs(found - number) <= std::ldexp(std::fabs(number), 1 - digits);
}

std::optional<double> AsNumber(const ir::Expr& expr) {
  const auto* constant = ir::As<ir::ConstantNode>(expr);
  if (constant == nullptr || constant->data->num_elements() != 1) return std::nullopt;
  const op::ReferenceTensor tensor =
      op::UnpackReference(constant->data->dtype(), constant->data->dims(), constant->data->bytes());
  return op::GetNumber(tensor, 0);
}

ir::Expr Resolve(const ir::Expr& expr, const Definitions& definitions) {
  const ir::Var var = ir::AsRef<ir::VarNode>(expr);
  if (!var) return expr;
  const auto found = definitions.find(var);
  return found == definitions.end() ? expr : found->second;
}

// One attempt to match: captures of a way that fails are dropped.
class Matcher {
 public:
  explicit Matcher(const Definitions& definitions) : definitions_(definitions) {}
  Match match;

  bool Try(const Pattern& pattern, const ir::Expr& expr) {
    const size_t before = match.captures_.size();
    if (MatchNode(pattern.node(), expr)) return true;
    match.captures_.resize(before);
    return false;
  }

 private:
  bool MatchNode(const PatternNode& node, const ir::Expr& expr) {
    switch (node.kind) {
      case Kind::kAny:
        return Capture(node.name, expr);
      case Kind::kConstant:
        return ir::As<ir::ConstantNode>(expr) != nullptr && Capture(node.name, expr);
      case Kind::kNumber: {
        const std::optional<double> number = AsNumber(expr);
        if (!number) return false;
        const DataType dtype = ir::As<ir::ConstantNode>(expr)->data->dtype();
        if (node.number && !IsRounded(dtype, *number, *node.number)) return false;
        return Capture(node.name, expr);
      }
      case Kind::kOp:
      case Kind::kAnyOp:
        return MatchCall(node, Resolve(expr, definitions_));
      case Kind::kOneOf:
        for (const Pattern& alternative : node.children) {
          if (Try(alternative, expr)) return Capture(node.name, Resolve(expr, definitions_));
        }
        return false;
    }
    INGOT_UNREACHABLE("PatternNode::Kind");
  }

  bool MatchCall(const PatternNode& node, const ir::Expr& value) {
    const ir::Call call = ir::AsRef<ir::CallNode>(value);
    const op::OpRow* row = call ? op::RowOf(call) : nullptr;
    if (row == nullptr) return false;
    if (node.kind == Kind::kOp) {
      if (node.row != row->name || node.children.size() != call->args.size()) return false;
      if (!MatchArguments(node, call, false) && !(node.commutes && MatchArguments(node, call, true))) return false;
    }
    for (const auto& condition : node.conditions) {
      if (!condition(call)) return false;
    }
    return Capture(node.name, call);
  }

  bool MatchArguments(const PatternNode& node, const ir::Call& call, bool swapped) {
    const size_t before = match.captures_.size();
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (Try(node.children[i], call->args[swapped ? 1 - i : i])) continue;
      match.captures_.resize(before);
      return false;
    }
    return true;
  }

  bool Capture(std::string_view name, const ir::Expr& expr) {
    if (name.empty()) return true;
    const ir::Expr known = match.Find(name);
    if (known) return known.same_as(expr) || ir::StructuralEqual(known, expr);
    match.captures_.emplace_back(name, expr);
    return true;
  }

  const Definitions& definitions_;
};

std::optional<Match> MatchPattern(const Pattern& pattern, const ir::Expr& expr, const Definitions& definitions) {
  Matcher matcher(definitions);
  if (!matcher.Try(pattern, expr)) return std::nullopt;
  return std::move(matcher.match);
}

std::vector<std::string_view> RootsOf(const Pattern& pattern) {
  const PatternNode& node = pattern.node();
  if (node.kind == Kind::kOp) return {node.row};
  std::vector<std::string_view> roots;
  if (node.kind != Kind::kOneOf) return roots;
  for (const Pattern& alternative : node.children) {
    for (std::string_view root : RootsOf(alternative)) roots.push_back(root);
  }
  return roots;
}

}  // namespace ingot::transform
