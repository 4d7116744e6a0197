// Dataflow patterns: the shape of a chain of operator calls, written as one expression and matched backwards from a
// call through the variables that it reads. It follows Relax's DPL in small: a pattern is a tree, and a name that
// occurs twice stands for the same value both times.
//
//   Product(Any("x"), Op("sigmoid", {Any("x")}))        // x * sigmoid(x), in either order
//
// Matching only reads; rewrite_patterns.cc replaces what is matched.
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

// The values to which the variables in scope are bound.
using Definitions = std::unordered_map<ir::Var, ir::Expr, ir::RefHash, ir::RefSame>;

// The captures of a match, by name.
class Match {
 public:
  // Returns null if the alternative that matched does not contain the name.
  ir::Expr Find(std::string_view name) const;
  // Like Find; it is an INGOT_CHECK failure if the name is missing.
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
  // Returns the same pattern with a name for what it matches (a call, not the variable that it is bound to).
  Pattern As(std::string_view name) const;
  // Returns the same pattern with a condition on the call.
  Pattern Where(std::function<bool(const ir::Call&)> condition) const;

 private:
  std::shared_ptr<const PatternNode> node_;
};

// Names must be string literals: they are kept as views.
Pattern Any();
Pattern Any(std::string_view name);
Pattern Constant(std::string_view name);  // any constant
// a constant of one element with this value, or its rounding (IsRounded)
Pattern Number(double value);
Pattern Number(std::string_view name);
Pattern Op(std::string_view row, std::vector<Pattern> args);  // with exactly these arguments
Pattern Sum(Pattern a, Pattern b);                            // add in either order
Pattern Product(Pattern a, Pattern b);                        // multiply in either order
Pattern OneOf(std::vector<Pattern> alternatives);             // the first that matches
Pattern AnyOp();                                              // any operator's call

// Returns nothing if expr, or the value that the variable expr is bound to, does not match.
std::optional<Match> MatchPattern(const Pattern& pattern, const ir::Expr& expr, const Definitions& definitions);
// Returns the operators at which a match can begin; empty: any.
std::vector<std::string_view> RootsOf(const Pattern& pattern);

// Whether it is the number; if float32 cannot represent the number (1 / sqrt(2) and the like), rounding errors of two
// operations of the dtype are allowed, or of float32 where that has more digits.
bool IsRounded(DataType dtype, double found, double number);
// Returns the number of a constant of one element; nothing for anything else.
std::optional<double> AsNumber(const ir::Expr& expr);
// Returns the value of a variable in scope, or expr itself.
ir::Expr Resolve(const ir::Expr& expr, const Definitions& definitions);

}  // namespace ingot::transform
