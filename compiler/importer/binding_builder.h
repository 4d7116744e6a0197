// Makes calls and other values that belong to no single row of the name map, and binds them to variables. It owns the
// list of bindings that the importer is filling: that of "main", or of the branch or loop body inside of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::importer {

using LooseDims = std::vector<bool>;  // which dims of a value change from trip to trip, or from branch to branch

class BindingBuilder {
 public:
  explicit BindingBuilder(const std::string& file)
      : source_(std::make_shared<ir::SourceText>(ir::SourceText{file, ""})) {}

  // While it lives, bindings go into a list of their own, which starts with the given ones.
  class Nested {
   public:
    explicit Nested(BindingBuilder& builder, std::vector<ir::Binding> bindings = {})
        : builder_(builder),
          outer_(std::exchange(builder.bindings_, std::move(bindings))),
          num_named_(builder.named_dims_.size()) {}
    ~Nested() {
      builder_.bindings_ = std::move(outer_);
      builder_.named_dims_.resize(num_named_);
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    std::vector<ir::Binding> Take() { return std::exchange(builder_.bindings_, {}); }

   private:
    BindingBuilder& builder_;
    std::vector<ir::Binding> outer_;
    size_t num_named_;
  };

  ir::Span SpanOf(const std::string& label) const {
    return {source_, 0, 0, 0, std::make_shared<const std::string>(label)};
  }
  std::vector<ir::Binding>& bindings() { return bindings_; }

  // Binds the value to a new variable, or to this one.
  ir::Expr Bind(ir::Expr value, const std::string& name, const ir::Span& span);
  void BindTo(ir::Var var, ir::Expr value, const ir::Span& span);
  Result<ir::Expr> BindCall(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs, const ir::Span& span);
  // Gives the value a type that is checked when the program runs, which binds new symbols.
  ir::Expr Match(ir::Expr value, ir::Type type, const std::string& name, const ir::Span& span);
  // Returns the same value with new symbols for the loose dims.
  ir::Expr WithNewSymbols(const ir::Expr& value, const std::vector<ir::PrimExpr>& dims, const LooseDims& loose,
                          DataType dtype, const std::string& name, const ir::Span& span);
  // Returns the same value with symbols for dims that are formulas of more than a few terms. Equal formulas get equal
  // symbols. It keeps what is computed from the value apart from what computes it: they are not fused.
  ir::Expr WithShortDims(const ir::Expr& value, const std::string& name, const ir::Span& span);
  // If the file declares constant dims which are not proved (to be those that the value had before, or to be constants
  // at all), the declared dims are checked when the program runs. `before` may be null.
  ir::Expr AsDeclared(const ir::Expr& value, const ir::Type& before, const OnnxValueInfo& info, const ir::Span& span);
  // Returns a tensor of one element with as many dims of 1 as the file declares; any other value as it is. Exporters
  // take scalars and vectors of one element for the same, so that branches and trips of loops give both.
  Result<ir::Expr> WithDeclaredRank(const ir::Expr& value, const OnnxValueInfo& info, const ir::Span& span);
  // Returns one integer or truth value of a tensor as an expression, which is read when the program runs.
  Result<ir::PrimExpr> ReadInteger(ir::Expr tensor, const std::string& name, const ir::Span& span);
  // Returns the slice of a tensor at a place along one axis, without that axis.
  Result<ir::Expr> SliceAt(const ir::Expr& tensor, const ir::PrimExpr& place, int64_t axis, const ir::Span& span);

 private:
  std::shared_ptr<const ir::SourceText> source_;
  std::vector<ir::Binding> bindings_;
  std::vector<std::pair<ir::PrimExpr, ir::PrimVar>> named_dims_;  // the formulas that have symbols here
};

}  // namespace ingot::importer
