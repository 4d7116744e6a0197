// The parts of which rewrites are made: a table of rows, each with a pattern and a function that replaces its root. The
// pass (rewrite_patterns.cc) walks the bindings of a function in order and tries the rows on each call until none
// applies.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/op/fold.h"
#include "compiler/transform/pattern.h"
#include "compiler/transform/rewrite_table.h"

namespace ingot::transform {

// Makes the calls of one rewrite. A call that cannot be made (an argument is null, or type inference refuses it) is
// null, so that a rewrite is straight-line code and declines by returning null.
class RewriteContext {
 public:
  RewriteContext(const Definitions& definitions, bool is_dataflow)
      : definitions_(definitions), is_dataflow_(is_dataflow) {}

  const Definitions& definitions() const { return definitions_; }
  ir::Expr Resolve(const ir::Expr& expr) const { return transform::Resolve(expr, definitions_); }
  // Returns the operator call that expr is, or is bound to; null if it is none.
  ir::Call ResolveCall(const ir::Expr& expr) const;

  ir::Expr Call(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  // Like Call, bound to a new variable in front of the root; other variables stay as they are.
  ir::Expr Bind(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {});
  // Returns expr as an argument: a call is bound to a variable.
  ir::Expr AsArgument(const ir::Expr& expr);
  std::vector<ir::Binding>& pending() { return pending_; }

 private:
  const Definitions& definitions_;
  const bool is_dataflow_;  // whether the root is in a dataflow block
  std::vector<ir::Binding> pending_;
};

// How a rewrite of rewrites.def finds its root, and what replaces it.
struct RewriteRow {
  RewriteId id;
  Pattern pattern;
  // Returns the value that replaces the root, of an equal type; null declines.
  ir::Expr (*rewrite)(const Match& match, RewriteContext& context);
};

std::vector<RewriteRow> ArithmeticRewrites();  // rewrite_arithmetic.cc
std::vector<RewriteRow> ActivationRewrites();  // rewrite_activations.cc
std::vector<RewriteRow> ViewRewrites();        // rewrite_views.cc
std::vector<RewriteRow> AttentionRewrites();   // rewrite_attention.cc

// All of rewrite_patterns.
std::vector<RewriteRow> PatternRewrites();

// Runs those rows that are permitted; each application is added to the log.
Result<ir::IRModule> RewriteModule(ir::IRModule module, std::vector<RewriteRow> rows,
                                   const RewritePermissions& permissions, RewriteLog& log);

// ---- Questions that several families ask.
// Whether both are tensors of one dtype with provably equal dims.
bool SameType(const ir::Type& a, const ir::Type& b);
// Whether the expression is a constant with this value everywhere; -0 is not 0.
bool IsFilledWith(const ir::Expr& expr, double value);
// Whether every element is a NaN or has no sign bit: squares, exponentials, and values computed from these and from
// numbers.
bool HasNoSign(const RewriteContext& context, const ir::Expr& expr);
using op::NumberConstant;
ir::Expr ReshapeTo(RewriteContext& context, const ir::Expr& x, const std::vector<ir::PrimExpr>& dims);

}  // namespace ingot::transform
