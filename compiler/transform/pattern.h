// Dataflow patterns: what a chain of operator calls looks like, written as one expression and matched backwards from a
// call through the variables that it reads. In the spirit of Relax's DPL, smaller: a pattern is a tree, and a name that
// occurs twice stands for the same value both times.
//
//   Product(Any("x"), Op("sigmoid", {Any("x")}))        // x * sigmoid(x), in either order
//
// Matching only reads. What is done with a match is the business of rewrite_patterns.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::transform {

// What variables in scope are bound to.
using Definitions = std::unordered_map<ir::Var, ir::Expr, ir::RefHash, ir::RefSame>;

// What the names of a pattern stand for.
class Match {
 public:
  // Null when the name did not occur on the way that matched.
  ir::Expr Find(std::string_view name) const;
  // INGOT_CHECKs that it did.
  ir::Expr Get(std::string_view name) const;
  ir::Call GetCall(std::string_view name) const;  // captured by As()
  double GetNumber(std::string_view name) const;  // captured by Number(name)

 private:
  friend class Matcher;
  std::vector<std::pair<std::string_view, ir::Expr>> captures_;
};

struct PatternNode;
class Pattern {
 public:
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  const PatternNode& node() const { return *node_; }
  // The same pattern; what it matches (a call, not the variable it is bound to) gets a name.
  Pattern As(std::string_view name) const;
  // The same pattern, where the call also fulfils a condition.
  Pattern Where(std::function<bool(const ir::Call&)> condition) const;

 private:
  std::shared_ptr<const PatternNode> node_;
};

// Names are string literals: they are kept as views.
Pattern Any();
Pattern Any(std::string_view name);
Pattern Constant(std::string_view name);  // any constant
Pattern Number(double value);             // a constant of one element: the value; up to rounding if float32 has it not
Pattern Number(std::string_view name);
Pattern Op(std::string_view row, std::vector<Pattern> args);  // as many arguments as given
Pattern Sum(Pattern a, Pattern b);                            // add in either order
Pattern Product(Pattern a, Pattern b);                        // multiply in either order
Pattern OneOf(std::vector<Pattern> alternatives);             // the first that matches
Pattern AnyOp();                                              // any operator's call

// Nothing when expr, or the value that the variable expr is bound to, is not what the pattern says.
std::optional<Match> MatchPattern(const Pattern& pattern, const ir::Expr& expr, const Definitions& definitions);
// The operators that a match can begin with; empty: any.
std::vector<std::string_view> RootsOf(const Pattern& pattern);

// The number of a constant of one element; nothing for anything else.
std::optional<double> AsNumber(const ir::Expr& expr);
// The value of a variable in scope, or expr itself.
ir::Expr Resolve(const ir::Expr& expr, const Definitions& definitions);

}  // namespace ingot::transform
