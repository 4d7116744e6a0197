// The name map: which ONNX operator becomes which calls of operators. An entry's function sees one node through
// NodeImporter and returns its outputs as unbound expressions; node_outputs.h binds them to names.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/importer/shape_values.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::importer {

// The value of a name in the graph.
struct ImportedValue {
  // null: a stand-in, or known by its elements only until an operator needs the tensor
  ir::Expr expr;
  ir::Type type;  // null: unknown
  // Its elements, if shapes decide them; constants are read on demand. If they are not exact, expr is not null.
  std::optional<ShapeValue> known = {};
  bool stand_in = false;  // output of an unsupported node, or computed from one
  // The file's dtype where expr has another one: elements of less than a byte, strings (packed_values.h).
  std::optional<DataType> packed = {};
};

// Upper bounds of symbols that nodes which always run imply. The function's signature states them, and calls are
// checked against them.
using ImpliedBounds = std::vector<std::pair<ir::PrimVar, int64_t>>;

// One node while it is imported: its inputs as expressions, its attributes with defaults, and the calls it makes.
// Errors of kind kUnsupportedModel mean "report this node and go on"; all others end the import.
class NodeImporter {
 public:
  // inputs: null if left out; an input that is known by its elements gets its expression on demand. Bindings are
  // appended to `bindings`, bounds to `bounds`; bounds are null in a branch or a loop's body, which may not run.
  NodeImporter(const OnnxNode& node, int64_t opset, std::vector<ImportedValue*> inputs, ir::Span span,
               std::vector<ir::Binding>& bindings, ImpliedBounds* bounds)
      : node_(node),
        opset_(opset),
        inputs_(std::move(inputs)),
        span_(std::move(span)),
        bindings_(bindings),
        bounds_(bounds) {}

  // Returns the importer of another node in the place of this one.
  NodeImporter For(const OnnxNode& node, int64_t opset, std::vector<ImportedValue*> inputs) const {
    return {node, opset, std::move(inputs), span_, bindings_, bounds_};
  }

  const OnnxNode& node() const { return node_; }
  int64_t opset() const { return opset_; }
  const ir::Span& span() const { return span_; }
  // Whether the node runs once per call: it stands in no branch and in no loop's body.
  bool IsOutermost() const { return bounds_ != nullptr; }
  // The bindings so far, by which the calls of one function of the model are told apart.
  size_t num_bindings() const { return bindings_.size(); }

  const std::vector<ImportedValue*>& inputs() const { return inputs_; }
  size_t num_inputs() const { return inputs_.size(); }
  bool HasInput(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  Result<ir::Expr> Input(size_t i) const;
  // Returns a tensor input's type; unsupported if rank or dtype are not known.
  Result<const ir::TensorTypeNode*> InputType(size_t i) const;
  // Returns the dtype of a tensor input as the file has it, of less than a byte too.
  Result<DataType> ElementType(size_t i) const;
  // Returns the number in a constant input, or `default_value` if it is left out; unsupported if it is no constant, or
  // an integer that a double does not hold.
  Result<double> ConstantNumber(size_t i, const char* what, double default_value) const;
  // Returns the integers of a constant input of rank 0 or 1, int32 or int64; unsupported if it is no constant.
  Result<std::vector<int64_t>> ConstantInts(size_t i, const char* what) const;
  // Returns the integers of an input of rank 0 or 1 as expressions over the graph's symbols: a target shape, bounds,
  // and the like. They are constants, or follow from shapes by arithmetic (shape_values.h); unsupported if they are
  // data-dependent.
  Result<std::vector<ir::PrimExpr>> SymbolicInts(size_t i, const char* what) const;
  // Like SymbolicInts, for any input: each data-dependent number becomes a symbol, which the function binds when it
  // runs. Run time refuses those that are negative, since all that is derived from symbols takes them for lengths.
  // count: how many numbers the node needs, as which an input of unknown length is read; run time compares.
  Result<std::vector<ir::PrimExpr>> DataInts(size_t i, const char* what, std::optional<int64_t> count = {}) const;
  // The same for numbers that count from the end where they are negative: nothing may be derived from them.
  Result<std::vector<ir::PrimExpr>> DataPlaces(size_t i, const char* what) const;
  // Returns the elements of an int64 tensor of rank 1 and constant length as symbols, bound when the function runs. They
  // are computed so that they are not negative; those that may be are refused by NameLengths.
  Result<std::vector<ir::PrimExpr>> NameElements(ir::Expr ints) const;
  Result<std::vector<ir::PrimExpr>> NameLengths(ir::Expr ints) const;
  // Returns the elements of an input, if they are known.
  std::optional<ShapeValue> Known(size_t i) const;
  bool IsConstant(size_t i) const;  // whether they are known, and no symbols are among them
  // Like Known, and those that an input has under conditions alone, for what computes further or checks them.
  std::optional<ShapeValue> Formula(size_t i) const;
  // The same for what takes the elements for lengths: the conditions are checked at run time.
  std::optional<ShapeValue> CheckedFormula(size_t i) const;
  // Whether an input may be known, without reading it: a constant that may be read, or a value known by its elements,
  // perhaps under conditions (which SymbolicInts checks at run time).
  bool MayBeKnown(size_t i) const;
  // Whether the input is known by shape arithmetic and is no constant of the file.
  bool IsFromShapes(size_t i) const { return HasInput(i) && inputs_[i]->known.has_value(); }
  // Returns the file's dtype of an input whose elements take less than a byte.
  std::optional<DataType> PackedType(size_t i) const { return HasInput(i) ? inputs_[i]->packed : std::nullopt; }
  // Returns the type of an input; null if it is unknown.
  ir::Type TypeOf(size_t i) const { return HasInput(i) ? inputs_[i]->type : nullptr; }

  // Attributes; kBadInput if an attribute has another type than the one asked for.
  bool HasAttr(std::string_view name) const { return FindAttr(name) != nullptr; }
  Result<int64_t> Int(std::string_view name, int64_t default_value) const;
  Result<double> Float(std::string_view name, double default_value) const;
  Result<std::string> String(std::string_view name, std::string default_value) const;
  // count >= 0: exactly that many integers are expected.
  Result<std::vector<int64_t>> Ints(std::string_view name, std::vector<int64_t> default_value,
                                    int64_t count = -1) const;
  const OnnxAttribute* FindAttr(std::string_view name) const;

  // Makes a checked call of an operator, with this node's span; Bind also binds it to a variable.
  Result<ir::Expr> Call(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  Result<ir::Expr> Bind(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  // Binds any other value, such as a field of a tuple, to a variable.
  ir::Expr BindValue(ir::Expr value, std::string name) const;
  // Gives the value a type that says more of its dims; the type is checked at run time, which binds new symbols.
  ir::Expr Match(ir::Expr value, ir::Type type) const;
  // Returns a rank-0 constant of the dtype: where float32 holds it a float32 constant, which a call casts. Unsupported
  // for a number that an integer dtype does not hold.
  Result<ir::Expr> Scalar(double value, DataType dtype) const;
  template <std::integral T>
  Result<ir::Expr> Scalar(T value, DataType dtype) const {
    return ScalarOfInteger(int64_t{value}, dtype);
  }

  Status Unsupported(const std::string& reason) const { return Status(StatusCode::kUnsupportedModel, reason); }
  Status Invalid(const std::string& reason) const { return Status(StatusCode::kBadInput, reason); }

 private:
  // Names the numbers of an input that only data give.
  Result<std::vector<ir::PrimExpr>> NamedInts(size_t i, const char* what, std::optional<int64_t> count) const;
  void RefuseNegative(const std::vector<ir::PrimExpr>& symbols) const;  // when the function runs
  Result<ir::Expr> ScalarOfInteger(int64_t value, DataType dtype) const;
  Result<ir::Expr> ScalarOfFloat(double value, DataType dtype) const;
  // Makes run-time checks for symbolic dims of a broadcasting operator's operands that must be equal but are not proved
  // to be.
  void MatchBroadcastDims(std::string_view name, std::vector<ir::Expr>& args) const;
  // Does the same for dims that an operator assumes to be equal (op/assumed_dims.h); true if arguments were changed.
  bool MatchAssumedDims(const ir::Call& call, std::vector<ir::Expr>& args) const;

  // If n must equal min(n, 8), notes the bound n <= 8.
  void ImplyBounds(const std::vector<ir::PrimExpr>& a, const std::vector<ir::PrimExpr>& b) const;

  const OnnxNode& node_;
  int64_t opset_;
  std::vector<ImportedValue*> inputs_;
  ir::Span span_;
  std::vector<ir::Binding>& bindings_;
  ImpliedBounds* bounds_;
};

struct OnnxOpRow {
  std::string_view op_type;
  // the operator that takes the inputs as they are, without attributes; null: `import` is called
  const char* row;
  Result<std::vector<ir::Expr>> (*import)(const NodeImporter& node) = nullptr;
  std::string_view domain = {};  // empty: ONNX's own
};
// All entries, ordered by domain and name; FindOnnxOp returns null for an unknown name.
std::span<const OnnxOpRow> OnnxOps();
const OnnxOpRow* FindOnnxOp(std::string_view op_type, std::string_view domain = {});
Result<std::vector<ir::Expr>> ImportOnnxNode(const OnnxOpRow& row, const NodeImporter& node);

}  // namespace ingot::importer
