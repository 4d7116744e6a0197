// PrimPrinter: scalar and vector expressions, attribute values and graph types as text, with the least parentheses
// that read back to the same tree. The base of the statement and graph printers, which define names; a variable that
// nobody defined is a symbolic variable of the function (or, in a fragment, goes by its hint).
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
  // How int64 constants stand: plain at the graph level (3), typed at the tensor level (T.int64(3)).
  enum class Dialect { kTensor, kGraph };
  explicit PrimPrinter(Dialect dialect) : dialect_(dialect) {}

  std::string Expr(const ir::PrimExpr& expr) { return Expr(expr, 0); }
  std::string Attr(const ir::AttrValue& value);
  std::string Dict(const ir::AttrDict& items);
  // Dimensions in a signature are quoted when they are compound, as Python needs it.
  std::string Type(const ir::Type& type, bool in_signature = false);

  // (a, b), with the comma of a single one.
  std::string Tuple(const std::vector<ir::PrimExpr>& exprs, bool in_signature = false);
  std::string List(const std::vector<ir::PrimExpr>& exprs, bool in_signature = false);
  std::string Region(const ir::BufferRegion& region);
  // The end of [min, min + extent), so that the reader finds min and extent again.
  std::string RangeEnd(const ir::Range& range);
  std::string BufferName(const ir::Buffer& buffer);
  // T.Buffer's arguments after "(": shape, dtype, strides, offset, scope, alignment. Float32 is left out when asked
  // for.
  std::string BufferArguments(const ir::Buffer& buffer, bool in_signature, bool omit_float32);

  NameSupply& names() { return names_; }
  // Symbolic variables that were met undefined, in order.
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
