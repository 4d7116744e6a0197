// The symbolic dimensions of a graph: one variable per name, with what --dim and --input-shape say about it. A name that
// reads as arithmetic on others ("past + 1") is a name: exporters write such names, which need not hold of all calls that
// the graph takes (of a prompt's, in this case), and ONNX compares no dims by them. Of --input-shape they are formulas. It
// owns the variables, and what is known of their values: the options' bounds, and those that nodes imply.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/attrs.h"
#include "compiler/ir/count_nodes.h"
#include "compiler/ir/prim_expr.h"
#include "runtime/status.h"

namespace ingot::importer {

// Returns a name that the text form can write as it is.
std::string Identifier(std::string_view name);


// Names that are each given out once.
class FreeNames {
 public:
  // Returns the name, or one that begins with it.
  std::string Take(std::string name);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> numbers_;  // the last number behind a name that was taken
};

class Symbols {
 public:
  // Takes the options: a symbol may be fixed (--dim batch=8), bounded, or renamed (--input-shape x=n,...).
  Status Configure(const ImportOptions& options);
  // Announces the names on which --input-shape may have arithmetic.
  void Announce(std::unordered_set<std::string> names) { announced_ = std::move(names); }
  // Replaces this symbol everywhere by a number or another symbol, as --input-shape says.
  Status Replace(const std::string& symbol, const InputShape::Dim& with);
  // Returns the dimension of this name in the file: a symbol, or what --input-shape says in its place.
  Result<ir::PrimExpr> Named(const std::string& name);
  // Returns the meaning of a text of --input-shape: a symbol, or arithmetic on announced ones.
  Result<ir::PrimExpr> Given(const std::string& text);
  // Returns a new symbol for an unnamed dimension; --dim can refer to it, too.
  ir::PrimExpr Fresh(const std::string& hint) { return Resolve(hint); }

  // Returns the type that the file declares for an intermediate value; null if it declares none.
  ir::Type DeclaredType(const OnnxValueInfo& info);

  // Call it after all inputs are read: an error if a --dim found no symbol. From then on the analyzer knows the bounds.
  Status Finish();
  arith::Analyzer& analyzer() { return analyzer_; }
  ImpliedBounds& implied_bounds() { return implied_bounds_; }
  // Gives a dim of an input an upper bound, which a call checks; false if the symbol is none.
  bool LimitDim(const ir::PrimVar& symbol, int64_t most);
  // Adds function attributes for bounded symbols: bounds from the options, and bounds that nodes imply.
  ir::Attrs WithBounds(ir::Attrs attrs) const;

 private:
  struct Range {
    int64_t min, max;
    bool used;
  };
  ir::PrimExpr Resolve(const std::string& symbol);
  ir::PrimExpr ParseSum(std::string_view& text);
  ir::PrimExpr ParseProduct(std::string_view& text);
  ir::PrimExpr ParseAtom(std::string_view& text);

  std::map<std::string, Range> ranges_;
  std::map<std::string, InputShape::Dim> replaced_;
  std::unordered_map<std::string, ir::PrimVar> vars_;
  std::unordered_set<std::string> announced_;
  FreeNames taken_;
  std::vector<std::string> order_;
  size_t num_of_inputs_ = 0;  // the first symbols are those of inputs
  arith::Analyzer analyzer_;
  ImpliedBounds implied_bounds_;
};

}  // namespace ingot::importer
