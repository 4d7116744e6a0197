// PrimReader: reads syntax to scalar and vector expressions, regions, dtypes and attribute values. Nodes are built as
// written, without simplification, so that printing gives the same text. Plain numbers take the dtype of the other
// operand (int64 or float32 if nothing decides); unequal dtypes are promoted by explicit casts as TVM does.
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

  // Returns null after a report. A plain number takes number_type if it is of the same kind (integer or not).
  ir::PrimExpr Read(const Syntax& syntax, DataType number_type = DataType::Int(64));
  // Returns the value in the given dtype: plain numbers take it, other values are cast.
  ir::PrimExpr ReadAs(const Syntax& syntax, DataType dtype);
  ir::PrimExpr ReadCondition(const Syntax& syntax);
  // Reads a dimension: a number, a name, an expression, or any of these in quotes; unknown names in quotes become
  // symbols.
  ir::PrimExpr ReadDim(const Syntax& syntax);
  // Reads the expression in a string; unknown names in it become symbols.
  ir::PrimExpr ReadQuoted(const Syntax& string);
  std::optional<std::vector<ir::PrimExpr>> ReadDims(const Syntax& syntax);  // a tuple or list, or a single dimension
  std::optional<DataType> ReadDataType(const Syntax& syntax);               // "float32", T.float32
  // Returns the dtype of a declared variable: T.int64(), T.int64(is_size_var=True), T.Var("n", "int64"). Returns
  // nothing, without a report, for anything else.
  std::optional<DataType> ReadVarDeclaration(const Syntax& syntax);
  ir::Buffer ReadBuffer(const Syntax& syntax);  // a name
  // B[i, a:b]
  std::optional<ir::BufferRegion> ReadRegion(const Syntax& syntax);
  // Reads the indices of a load or store; a slice becomes a ramp.
  std::optional<std::vector<ir::PrimExpr>> ReadIndices(const Syntax& subscript, const ir::Buffer& buffer);
  // The layout of a view over another buffer's memory that is not one compact dimension. Only the reader knows it: it
  // turns accesses of the view into accesses of `flat`, which has one dimension.
  struct ViewLayout {
    std::vector<ir::PrimExpr> shape, strides;
    ir::PrimExpr offset;
    DataType dtype;  // of the view's elements; if it is not that of `flat`, accesses are of the bits of its elements
  };
  void AddView(const ir::Buffer& flat, ViewLayout layout) { views_.emplace(flat.get(), std::move(layout)); }
  const std::vector<ir::PrimExpr>& DimsOf(const ir::Buffer& buffer) const { return ShapeOf(buffer); }
  // The dtype of the buffer, or of the view that it stands for.
  DataType DTypeOf(const ir::Buffer& buffer) const;
  // An element of the buffer or view at indices that ReadIndices gave; null after a report.
  ir::PrimExpr Load(const Syntax& syntax, const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices);
  // The stores that write a value there.
  std::vector<ir::Stmt> Store(const Syntax& syntax, const ir::Buffer& buffer, ir::PrimExpr value,
                              std::vector<ir::PrimExpr> indices);
  // Reads [0, stop), or [start, stop) if start is given; a plain number takes the other's dtype.
  std::optional<ir::Range> ReadRange(const Syntax* start, const Syntax& stop, DataType number_type = DataType::Int(64));
  // [start, stop) as [min, min + extent).
  ir::Range MakeRange(ir::PrimExpr start, ir::PrimExpr stop);
  std::optional<ir::AttrValue> ReadAttr(const Syntax& syntax);
  std::optional<ir::Attrs> ReadAttrs(const Syntax& syntax);  // a dictionary
  // Reads the words "nan", "inf", "-inf", "bits:0x7ff8000000000001"; nothing for other syntax.
  std::optional<double> FloatWord(const Syntax& syntax);
  // Reports the unknown name, with a suggestion.
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
  Operand ReadLayout(const Syntax& syntax);
  Operand ReadAttribute(const Syntax& syntax);
  Operand ReadConditional(const Syntax& syntax);
  // Decides a plain number with a point, which has its full value (as float64) until then: it becomes float32.
  void Settle(Operand& operand, const Syntax& where);
  // A plain number takes the dtype if it is of the same kind.
  void SetNumberType(Operand& operand, DataType number_type, const Syntax& where);
  // The shape of the buffer, or of the view that it stands for.
  const std::vector<ir::PrimExpr>& ShapeOf(const ir::Buffer& buffer) const;
  std::vector<ir::PrimExpr> FlatIndices(const ir::Buffer& buffer, std::vector<ir::PrimExpr> indices) const;
  ir::BufferRegion FlatRegion(ir::BufferRegion region) const;
  // Reports anything but a scalar integer.
  bool CheckInteger(const ir::PrimExpr& expr, const Syntax& where);
  // Gives both operands one dtype, or reports that they have none in common.
  bool Match(Operand& a, Operand& b, const Syntax& where);
  ir::PrimExpr Convert(const Operand& operand, DataType dtype, const Syntax& where);
  ir::PrimExpr MakeBinary(ir::BinaryOp op, Operand a, Operand b, const Syntax& where);

  // ---- Calls of T functions (prim_calls.cc)
  ir::PrimExpr ReadCall(const Syntax& call);
  ir::PrimExpr ReadTypedNumber(const Syntax& call, DataType dtype);
  ir::PrimExpr ReadIntrinsic(const Syntax& call, const ir::IntrinsicRow& row);
  ir::PrimExpr ReadExpanded(const Syntax& call, const ExpandedIntrinsic& row);
  ir::PrimExpr ReadDeviceCall(const Syntax& call, const std::string& function);  // device_calls.cc
  ir::PrimExpr ReadReducer(const Syntax& call);
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
  bool new_symbols_ = false;  // whether unknown names become symbols
};

}  // namespace ingot::script
