// PrimReader: syntax to scalar and vector expressions, regions, dtypes and attribute values. Nodes are built as
// written, without simplification, so that text and IR stay each other's image. Plain numbers take the dtype of the
// other operand (int64 and float32 where nothing decides); unequal dtypes are promoted by explicit casts as TVM does.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/stmt.h"
#include "compiler/script/expanded_intrinsics.h"
#include "compiler/script/read_context.h"

namespace ingot::script {

class PrimReader {
 public:
  PrimReader(ReadContext& context, ScopeTable& scope) : context_(context), scope_(scope) {}

  // Null after a report. A plain number becomes one of number_type when it is of the same kind (whole or not).
  ir::PrimExpr Read(const Syntax& syntax, DataType number_type = DataType::Int(64));
  // The value converted to a dtype: numbers take it, others are cast.
  ir::PrimExpr ReadAs(const Syntax& syntax, DataType dtype);
  ir::PrimExpr ReadCondition(const Syntax& syntax);
  // A dimension: a number, a name, an expression, or any of these in quotes; unknown names in quotes become symbols.
  ir::PrimExpr ReadDim(const Syntax& syntax);
  // The expression in a string; unknown names in it become symbols.
  ir::PrimExpr ReadQuoted(const Syntax& string);
  std::optional<std::vector<ir::PrimExpr>> ReadDims(const Syntax& syntax);  // of a tuple or list, or a single one
  std::optional<DataType> ReadDataType(const Syntax& syntax);               // "float32", T.float32
  // The dtype of a declared variable: T.int64(), T.int64(is_size_var=True), T.Var("n", "int64"); nothing, without a
  // report, for anything else.
  std::optional<DataType> ReadVarDeclaration(const Syntax& syntax);
  ir::Buffer ReadBuffer(const Syntax& syntax);  // a name
  // B[i, a:b]
  std::optional<ir::BufferRegion> ReadRegion(const Syntax& syntax);
  // Indices of a load or store; a slice is a ramp.
  std::optional<std::vector<ir::PrimExpr>> ReadIndices(const Syntax& subscript, const ir::Buffer& buffer);
  // The layout of a view over another buffer's memory that has not one compact dimension: to the reader alone, which
  // reads its accesses as those of the one dimension that `flat` has.
  struct ViewLayout {
    std::vector<ir::PrimExpr> shape, strides;
    ir::PrimExpr offset;
  };
  void AddView(const ir::Buffer& flat, ViewLayout layout) { views_.emplace(flat.get(), std::move(layout)); }
  // [0, stop), or [start, stop) when start is given; numbers take the other's dtype.
  std::optional<ir::Range> ReadRange(const Syntax* start, const Syntax& stop, DataType number_type = DataType::Int(64));
  // start, stop as written: [min, min + extent).
  ir::Range MakeRange(ir::PrimExpr start, ir::PrimExpr stop);
  std::optional<ir::AttrValue> ReadAttr(const Syntax& syntax);
  std::optional<ir::Attrs> ReadAttrs(const Syntax& syntax);  // of a dictionary
  // "nan", "inf", "-inf", "bits:0x7ff8000000000001".
  std::optional<double> FloatWord(const Syntax& syntax);
  // Reports what the name could have been.
  std::nullptr_t UnknownName(const Syntax& syntax);

  ReadContext& context() { return context_; }
  ScopeTable& scope() { return scope_; }

 private:
  // An expression, and whether it is a plain number that may take another dtype.
  struct Operand {
    ir::PrimExpr expr;
    bool is_number = false;
  };
  Operand ReadOperand(const Syntax& syntax);
  Operand ReadName(const Syntax& syntax);
  Operand ReadUnary(const Syntax& syntax);
  Operand ReadBinary(const Syntax& syntax);
  Operand ReadSubscript(const Syntax& syntax);
  Operand ReadAttribute(const Syntax& syntax);
  Operand ReadConditional(const Syntax& syntax);
  // A plain number with a point has its full value (as float64) until it is known what it becomes: float32 where
  // nothing else decides.
  void Settle(Operand& operand, const Syntax& where);
  // A plain number takes the dtype when it is of the same kind.
  void SetNumberType(Operand& operand, DataType number_type, const Syntax& where);
  // As many as the buffer, or the view, has.
  const std::vector<ir::PrimExpr>& ShapeOf(const ir::Buffer& buffer) const;
  std::vector<ir::PrimExpr> FlatIndices(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices) const;
  ir::BufferRegion FlatRegion(ir::BufferRegion region) const;
  // A scalar integer, or a report.
  bool CheckInteger(const ir::PrimExpr& expr, const Syntax& where);
  // One dtype for both, or a report.
  bool Match(Operand& a, Operand& b, const Syntax& where);
  ir::PrimExpr Convert(const Operand& operand, DataType dtype, const Syntax& where);
  ir::PrimExpr MakeBinary(ir::BinaryOp op, Operand a, Operand b, const Syntax& where);

  // ---- Calls of T functions (prim_calls.cc)
  ir::PrimExpr ReadCall(const Syntax& call);
  ir::PrimExpr ReadTypedNumber(const Syntax& call, DataType dtype);
  ir::PrimExpr ReadIntrinsic(const Syntax& call, const ir::IntrinsicRow& row);
  ir::PrimExpr ReadExpanded(const Syntax& call, const ExpandedIntrinsic& row);
  ir::PrimExpr ReadJunction(const Syntax& call, ir::BinaryOp op);  // T.all, T.any
  ir::PrimExpr ReadLet(const Syntax& call);
  ir::PrimExpr ReadVector(const Syntax& call, const std::string& function);
  ir::PrimExpr ReadShuffle(const Syntax& call);

  template <typename T, typename... Args>
  ir::Ref<T> MakeAt(const Syntax& syntax, Args&&... args) {
    T node(std::forward<Args>(args)...);
    node.span = context_.SpanOf(syntax.place);
    return ir::Make<T>(std::move(node));
  }

  ReadContext& context_;
  ScopeTable& scope_;
  std::unordered_map<const ir::Node*, ViewLayout> views_;
  bool new_symbols_ = false;  // unknown names become symbols
};

}  // namespace ingot::script
