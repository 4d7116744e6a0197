// PrimPrinter: prints scalar and vector expressions, attribute values and graph types, with the fewest parentheses that
// read back to the same tree. It is the base of the statement and graph printers, which define names. An undefined
// variable is a symbolic variable of the function (in a fragment, it is printed by its hint).
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/type.h"
#include "compiler/script/name_supply.h"

namespace ingot::script {

class PrimPrinter {
 public:
  // How int64 constants are printed: plain at the graph level (3), typed at the tensor level (T.int64(3)).
  enum class Dialect { kTensor, kGraph };
  explicit PrimPrinter(Dialect dialect) : dialect_(dialect) {}

  std::string Expr(const ir::PrimExpr& expr) { return Expr(expr, 0); }
  std::string Attr(const ir::AttrValue& value);
  std::string Dict(const ir::AttrDict& items);
  // Compound dimensions in a signature are quoted, as Python needs it.
  std::string Type(const ir::Type& type, bool in_signature = false);

  // (a, b); a tuple of one element has its comma.
  std::string Tuple(const std::vector<ir::PrimExpr>& exprs, bool in_signature = false);
  std::string List(const std::vector<ir::PrimExpr>& exprs, bool in_signature = false);
  std::string Region(const ir::BufferRegion& region);
  // Prints the end of [min, min + extent) such that the reader finds min and extent again.
  std::string RangeEnd(const ir::Range& range);
  std::string BufferName(const ir::Buffer& buffer);
  // Prints the arguments of T.Buffer after "(": shape, dtype, strides, offset, scope, alignment. float32 is left out on
  // request.
  std::string BufferArguments(const ir::Buffer& buffer, bool in_signature, bool omit_float32);

  NameSupply& names() { return names_; }
  // Symbolic variables that were used without a definition, in order.
  const std::vector<ir::PrimVar>& symbols() const { return symbols_; }
  void SetDialect(Dialect dialect) { dialect_ = dialect; }

 private:
  std::string Expr(const ir::PrimExpr& expr, int precedence);
  std::string Dim(const ir::PrimExpr& expr, bool in_signature);
  std::string VarText(const ir::PrimVarNode& var);
  std::string Binary(const ir::BinaryNode& node, int precedence);
  std::string Call(const ir::PrimCallNode& node, int precedence);
  std::string Access(const std::string& name, const std::vector<ir::PrimExpr>& indices);
  std::string TensorTypeText(const ir::TensorTypeNode& type, bool in_signature);

  Dialect dialect_;
  NameSupply names_;
  std::vector<ir::PrimVar> symbols_;
};

}  // namespace ingot::script
