// What rewrites are written with: a table of rows, each a pattern and what replaces its root. The pass
// (rewrite_patterns.cc) walks the bindings of a function in order and asks the rows about each call until none applies.
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

// Makes the calls of one rewrite. A call that cannot be (its arguments are null, or type inference refuses them) is
// null, so that a rewrite reads straight down and declines by returning null.
class RewriteContext {
 public:
  RewriteContext(const Definitions& definitions, bool is_dataflow)
      : definitions_(definitions), is_dataflow_(is_dataflow) {}

  const Definitions& definitions() const { return definitions_; }
  ir::Expr Resolve(const ir::Expr& expr) const { return transform::Resolve(expr, definitions_); }
  // The call of an operator that expr is or is bound to; null when it is none.
  ir::Call ResolveCall(const ir::Expr& expr) const;

  ir::Expr Call(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  // The same, bound to a new variable before the root; other variables stay as they are.
  ir::Expr Bind(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {});
  // expr as an argument: calls are bound.
  ir::Expr AsArgument(const ir::Expr& expr);
  std::vector<ir::Binding>& pending() { return pending_; }

 private:
  const Definitions& definitions_;
  const bool is_dataflow_;  // the block that the root stands in
  std::vector<ir::Binding> pending_;
};

// How a rewrite of rewrites.def finds what it replaces, and what by.
struct RewriteRow {
  RewriteId id;
  Pattern pattern;
  // The value that replaces the root, of an equal type; null declines.
  ir::Expr (*rewrite)(const Match& match, RewriteContext& context);
};

std::vector<RewriteRow> ArithmeticRewrites();  // rewrite_arithmetic.cc
std::vector<RewriteRow> ActivationRewrites();  // rewrite_activations.cc
std::vector<RewriteRow> ViewRewrites();        // rewrite_views.cc
std::vector<RewriteRow> AttentionRewrites();   // rewrite_attention.cc

// The pass under these permissions; what it applies is added to the log.
Result<ir::IRModule> RewriteModule(ir::IRModule module, const RewritePermissions& permissions, RewriteLog& log);

// ---- What several families ask.
// Tensors of one dtype and provably equal dims.
bool SameType(const ir::Type& a, const ir::Type& b);
// A constant with one value everywhere; -0 is not 0.
bool IsFilledWith(const ir::Expr& expr, double value);
// Every element is a NaN or has no sign: squares, exponentials, and what is made of them and of numbers.
bool HasNoSign(const RewriteContext& context, const ir::Expr& expr);
using op::NumberConstant;
ir::Expr ReshapeTo(RewriteContext& context, const ir::Expr& x, const std::vector<ir::PrimExpr>& dims);

}  // namespace ingot::transform
