// The name map: which ONNX operator becomes which calls of operator rows. A row's function sees one node through
// NodeImporter and returns its outputs as unbound expressions; the graph importer (onnx.cc) binds them to names.
#pragma once

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

// What a name of the graph stands for.
struct ImportedValue {
  ir::Expr expr;                         // null: known by its elements alone until a row wants it, or a stand-in
  ir::Type type;                         // null: unknown
  std::optional<ShapeValue> known = {};  // its elements, where shapes decide them; constants are read when asked for
  bool stand_in = false;                 // made by an unsupported node, or from such a value
};

// Symbols that nodes which always run take to be at most so large; the function's signature then says so, and callers
// are checked.
using ImpliedBounds = std::vector<std::pair<ir::PrimVar, int64_t>>;

// One node while it is imported: its inputs as expressions, its attributes with defaults, and the calls it makes.
// Errors of kind kUnsupportedModel mean "report this node and go on"; all others end the import.
class NodeImporter {
 public:
  // inputs: null where left out; one that is known by its elements gets its expression when a row asks for it.
  // Bindings are appended to `bindings`, bounds to `bounds`; null: in a branch or a loop's body, which may not run.
  NodeImporter(const OnnxNode& node, int64_t opset, std::vector<ImportedValue*> inputs, ir::Span span,
               std::vector<ir::Binding>& bindings, ImpliedBounds* bounds)
      : node_(node),
        opset_(opset),
        inputs_(std::move(inputs)),
        span_(std::move(span)),
        bindings_(bindings),
        bounds_(bounds) {}

  const OnnxNode& node() const { return node_; }
  int64_t opset() const { return opset_; }
  const ir::Span& span() const { return span_; }

  size_t num_inputs() const { return inputs_.size(); }
  bool HasInput(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  Result<ir::Expr> Input(size_t i) const;
  // A tensor input's type; unsupported when rank or dtype are not known.
  Result<const ir::TensorTypeNode*> InputType(size_t i) const;
  // The one number of a constant input, or `default_value` where it is left out; unsupported when it is no constant.
  Result<double> ConstantNumber(size_t i, const char* what, double default_value) const;
  // The integers of a constant input of rank 0 or 1, int32 or int64; unsupported when it is no constant.
  Result<std::vector<int64_t>> ConstantInts(size_t i, const char* what) const;
  // The integers of an input of rank 0 or 1 as expressions over the graph's symbols: a target shape, bounds, ... . They
  // are constants, or follow from shapes by arithmetic (shape_values.h); unsupported when they depend on data.
  Result<std::vector<ir::PrimExpr>> SymbolicInts(size_t i, const char* what) const;
  // The same of any input: what depends on data gets a symbol per number, which the function binds when it runs.
  Result<std::vector<ir::PrimExpr>> DataInts(size_t i, const char* what) const;
  // The elements of an int64 tensor of rank 1 and constant length as symbols that are bound when the function runs.
  Result<std::vector<ir::PrimExpr>> NameElements(ir::Expr ints) const;
  // The elements of an input, where they are known.
  std::optional<ShapeValue> Known(size_t i) const;
  // The same without reading them: a constant that may be read, or a value known by its elements.
  bool MayBeKnown(size_t i) const;
  // The input is known, and no constant of the file.
  bool IsFromShapes(size_t i) const { return HasInput(i) && inputs_[i]->known.has_value(); }
  // The type of an input; null where it is unknown.
  ir::Type TypeOf(size_t i) const { return HasInput(i) ? inputs_[i]->type : nullptr; }

  // Attributes; of another type than asked for is kBadInput.
  bool HasAttr(std::string_view name) const { return FindAttr(name) != nullptr; }
  Result<int64_t> Int(std::string_view name, int64_t default_value) const;
  Result<double> Float(std::string_view name, double default_value) const;
  Result<std::string> String(std::string_view name, std::string default_value) const;
  // count >= 0: exactly that many are expected.
  Result<std::vector<int64_t>> Ints(std::string_view name, std::vector<int64_t> default_value,
                                    int64_t count = -1) const;
  const OnnxAttribute* FindAttr(std::string_view name) const;

  // A checked call of an operator row with this node's span; Bind gives it a variable of its own.
  Result<ir::Expr> Call(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  Result<ir::Expr> Bind(std::string_view row, std::vector<ir::Expr> args, ir::Attrs attrs = {}) const;
  // A variable of its own for any other value, such as a field of a tuple.
  ir::Expr BindValue(ir::Expr value, std::string name) const;
  // The value with a type that says more of its dims; it is checked at run time, which binds symbols that are new.
  ir::Expr Match(ir::Expr value, ir::Type type) const;
  // A rank-0 constant of the dtype: as float32, cast by a call where the dtype is another.
  Result<ir::Expr> Scalar(double value, DataType dtype) const;

  Status Unsupported(const std::string& reason) const { return Status(StatusCode::kUnsupportedModel, reason); }
  Status Invalid(const std::string& reason) const { return Status(StatusCode::kBadInput, reason); }

 private:
  // Symbolic dims of a broadcasting operator's operands that have to be equal and are not proved to be are checked at
  // run time.
  void MatchBroadcastDims(std::string_view row, std::vector<ir::Expr>& args) const;
  // The same for dims that a call's row takes to be equal (op/assumed_dims.h); true where arguments were changed.
  bool MatchAssumedDims(const ir::Call& call, std::vector<ir::Expr>& args) const;

  // n is at most 8 where it is the same as min(n, 8).
  void ImplyBounds(const std::vector<ir::PrimExpr>& a, const std::vector<ir::PrimExpr>& b) const;

  const OnnxNode& node_;
  int64_t opset_;
  std::vector<ImportedValue*> inputs_;
  ir::Span span_;
  std::vector<ir::Binding>& bindings_;
  ImpliedBounds* bounds_;
};

struct OnnxOpRow {
  std::string_view op_type;  // of ONNX's own domain
  const char* row;           // the operator row that takes the inputs as they are, without attributes; null: see import
  Result<std::vector<ir::Expr>> (*import)(const NodeImporter& node) = nullptr;
};
// Every row, ordered by name; FindOnnxOp gives null for an unknown one.
std::span<const OnnxOpRow> OnnxOps();
const OnnxOpRow* FindOnnxOp(std::string_view op_type);
Result<std::vector<ir::Expr>> ImportOnnxNode(const OnnxOpRow& row, const NodeImporter& node);

}  // namespace ingot::importer
