// The walk over an ONNX graph: its state, and what its parts share. onnx.cc holds the walk over nodes and functions,
// and the report of unsupported nodes; control_flow.cc and loops.cc the nodes with graphs inside: branches, loops and
// scans; sequences.cc the operators of sequences and optional values. A part of compiler/importer/onnx.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/object_info.h"
#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/symbols.h"
#include "compiler/ir/visitor.h"

namespace ingot::importer {

using ir::Expr;

// Where names are looked up: the graph, the body of a function (which sees only its own values), or a branch (which
// also sees the values around it).
struct Scope {
  Scope* outer = nullptr;  // the scope around a branch; null otherwise
  std::unordered_map<std::string, ImportedValue> values;
  std::unordered_set<std::string> left_out;  // optional inputs of a function that the call leaves out
  std::unordered_map<std::string, const OnnxValueInfo*> declared;
  std::string prefix;  // prefix of node labels: "call/"
  int64_t opset = 0;
  const std::vector<OnnxAttribute>* attributes = nullptr;  // attributes of a function's call, the defaults last

  // Set for a branch or a loop's body, whose values do not exist outside of it.
  bool has_bindings = false;
  std::unordered_map<std::string, ImportedValue> captured;  // values from outside that are known by their elements

  ImportedValue* Find(const std::string& name) {
    if (const auto found = values.find(name); found != values.end()) return &found->second;
    if (const auto found = captured.find(name); found != captured.end()) return &found->second;
    ImportedValue* value = outer == nullptr ? nullptr : outer->Find(name);
    if (value == nullptr || !has_bindings || value->expr != nullptr || !value->known) return value;
    return &captured.emplace(name, *value).first->second;  // it gets a binding of its own in this scope
  }
  bool IsLeftOut(const std::string& name) const {
    return name.empty() || left_out.contains(name) || (outer != nullptr && outer->IsLeftOut(name));
  }
};

class GraphImporter {
 public:
  GraphImporter(const OnnxModel& model, const std::string& name, const ImportOptions& options)
      : model_(model), options_(options), source_(std::make_shared<ir::SourceText>(ir::SourceText{name, ""})) {}

  // Fills the report. Module() may be called only if the report has no unsupported nodes.
  Status Run();
  SupportReport& report() { return report_; }
  // The names of the operators of sequences and optional values.
  static std::vector<std::string_view> SequenceOperators();
  Result<ir::IRModule> Module();

 private:
  Status CheckOpset();
  Status BindConstants();
  Status ImportInputs();
  Result<ir::Type> InputType(const OnnxValueInfo& info, const InputShape* override_shape);
  Result<ir::Type> DeclaredType(const OnnxValueInfo& info);
  Status ImportNodes(const std::vector<OnnxNode>& nodes, Scope& scope);
  Status ImportNode(const OnnxNode& node, size_t index, Scope& scope);
  Status ImportResolved(const OnnxNode& node, const std::string& label, Scope& scope);
  Status ImportKnownBranch(const OnnxNode& node, const std::string& label, const NodeImporter& importer, bool condition,
                           Scope& scope);
  Status ImportFunction(const OnnxFunction& function, const OnnxNode& node, const std::string& label,
                        const std::vector<ImportedValue*>& inputs, Scope& scope);
  Status Enter(const std::string& label, const std::vector<OnnxNode>& nodes);
  Status TakeOutputs(const std::vector<std::string>& names, Scope& inner, const OnnxNode& node,
                     const std::string& label, Scope& scope);
  const OnnxFunction* FindFunction(const OnnxNode& node) const;
  void ReportUnsupported(const OnnxNode& node, const std::string& label, const std::vector<ImportedValue*>& inputs,
                         std::string reason);
  Status DefineStandIns(const OnnxNode& node, Scope& scope, const std::vector<Expr>& outputs = {});
  Status BindOutputs(const OnnxNode& node, const std::vector<Expr>& outputs, const ir::Span& span, Scope& scope);
  Status BindOutput(const std::string& name, ImportedValue value, const ir::Span& span, Scope& scope);

  // ---- Nodes that hold graphs (control_flow.cc)
  // The result of one trip, from the carried values.
  struct Turn {
    Expr condition;  // null: the loop goes on
    std::vector<Expr> carried, rows;
    bool is_imported = true;  // false: a node in it is not supported, and was reported
  };

  struct LoopPlan {
    std::string label;
    ir::PrimExpr trips;  // null: there is no limit, the condition alone ends the loop
    Expr condition;      // null: there is no condition
    std::vector<Expr> initial;
    std::vector<bool> is_row_reversed;  // per stacked value: its rows are written from the last one on
    std::function<Result<Turn>(const ir::PrimVar& i, const Expr& condition, const std::vector<Expr>& carried)> turn;
  };
  struct LoopBody;
  struct LoopArguments;
  using LooseDims = std::vector<bool>;  // which dims of a value change from trip to trip, or from branch to branch
  // What is known of a carried value in every trip.
  struct CarriedType {
    LooseDims loose;                   // for a tensor
    std::optional<ObjectInfo> object;  // for any other value
  };
  static bool IsControlFlow(std::string_view op_type);
  // Imports an If whose condition depends on data, a Loop or a Scan.
  Status ImportControlFlow(const OnnxNode& node, const std::string& label, const NodeImporter& importer, Scope& scope);
  static Result<const OnnxGraph*> GraphOf(const NodeImporter& importer, const char* attribute_name);
  Status OpenGraph(const OnnxGraph& graph, const std::string& label, Scope& outer, Scope& inner);
  Status ImportGraph(const OnnxGraph& graph, const std::string& label, Scope& inner);
  // Returns the graph's outputs; none if one of them is a stand-in.
  Result<std::vector<Expr>> ResultsOf(const OnnxGraph& graph, const std::string& label, Scope& inner);
  // These three are in control_flow.cc. Empty results: an unsupported node was reported.
  Result<std::vector<Expr>> ImportIf(const std::string& label, const NodeImporter& importer, Scope& scope);
  Result<std::vector<Expr>> ImportLoop(const std::string& label, const NodeImporter& importer, Scope& scope);
  Result<std::vector<Expr>> ImportScan(const std::string& label, const NodeImporter& importer, Scope& scope);
  // loops.cc: returns the last carried values, then the stacked ones.
  Result<std::vector<Expr>> BuildLoop(LoopPlan plan);
  // Imports the body once for what its turn notes, and drops the result.
  Status TryLoopBody(const LoopPlan& plan);
  Result<std::vector<CarriedType>> FirstCarriedTypes(const LoopPlan& plan) const;
  Result<LoopBody> ImportLoopBody(const LoopPlan& plan, const std::vector<CarriedType>& types);
  // Joins what a trip returns into the type; true if that adds anything new.
  Result<bool> Widen(CarriedType& type, const Expr& in, const Expr& out, size_t k) const;
  Result<std::vector<Expr>> FinishLoop(const LoopPlan& plan, LoopBody body, const std::vector<CarriedType>& types,
                                       const ir::Span& span);
  Status StackRow(const LoopPlan& plan, size_t k, LoopBody& body, LoopArguments& arguments, const ir::Span& span);
  Expr CallLoop(const LoopPlan& plan, LoopBody body, const LoopArguments& arguments, const ir::Span& span);
  Result<Expr> BindCall(std::string_view row, std::vector<Expr> args, ir::Attrs attrs, const ir::Span& span);
  Expr BindExpr(Expr value, const std::string& name, const ir::Span& span);
  Expr MatchType(Expr value, ir::Type type, const std::string& name, const ir::Span& span);
  Expr WithNewSymbols(const Expr& value, const std::vector<ir::PrimExpr>& dims, const LooseDims& loose, DataType dtype,
                      const std::string& name, const ir::Span& span);
  Expr AsDeclared(const Expr& value, const ir::Type& before, const OnnxValueInfo& info, const ir::Span& span);
  Result<ir::PrimExpr> ReadInteger(Expr tensor, const std::string& name, const ir::Span& span);
  // For values that are carried or chosen: makes a sequence an optional that holds it.
  Result<Expr> AsOptional(const Expr& value, const ir::Span& span);

  // ---- Sequences and optional values (sequences.cc)
  struct SequenceRow;
  static std::span<const SequenceRow> SequenceRows();
  static const SequenceRow* FindSequenceOperator(std::string_view op_type);
  Status ImportSequenceOperator(const SequenceRow& row, const OnnxNode& node, const std::string& label,
                                const NodeImporter& importer, const std::vector<ImportedValue*>& inputs, Scope& scope);
  Result<ImportedValue> SequenceConstruct(const NodeImporter& node);
  Result<ImportedValue> SequenceEmpty(const NodeImporter& node);
  Result<ImportedValue> SequenceInsert(const NodeImporter& node);
  Result<ImportedValue> SequenceErase(const NodeImporter& node);
  Result<ImportedValue> SequenceAt(const NodeImporter& node);
  Result<ImportedValue> SequenceLength(const NodeImporter& node);
  Result<ImportedValue> ConcatFromSequence(const NodeImporter& node);
  Result<ImportedValue> SplitToSequence(const NodeImporter& node);
  Result<ImportedValue> Optional(const NodeImporter& node);
  Result<ImportedValue> OptionalHasElement(const NodeImporter& node);
  Result<ImportedValue> OptionalGetElement(const NodeImporter& node);
  // Returns null for a tensor.
  const ObjectInfo* ObjectOf(const Expr& expr) const;
  Result<const ObjectInfo*> SequenceInput(const NodeImporter& node, size_t i) const;
  Result<Expr> MakeSequence(std::vector<Expr> elements, ObjectInfo info, const ir::Span& span);
  Result<Expr> InsertAt(const Expr& sequence, const Expr& value, const ir::PrimExpr& place, const ir::Span& span);
  // Returns an element. `declared` is the element's type in the file, used if nothing else is known; may be null.
  Result<Expr> ElementAt(const Expr& sequence, const ir::PrimExpr& place, const OnnxValueInfo* declared,
                         const ir::Span& span);
  Result<ir::PrimExpr> LengthOf(const Expr& sequence, const ir::Span& span);
  Result<Expr> Piece(const Expr& tensor, int64_t axis, const ir::PrimExpr& begin, const ir::PrimExpr& end,
                     bool keeps_axis, const ir::Span& span);
  Result<std::vector<Expr>> ImportSequenceMap(const std::string& label, const NodeImporter& importer, Scope& scope);

  Result<Expr> SliceAt(const Expr& tensor, const ir::PrimExpr& place, int64_t axis, const ir::Span& span);

  Status DefineKnown(const OnnxNode& node, std::vector<ShapeValue> outputs, bool stand_in, Scope& scope);
  Status Define(Scope& scope, const std::string& name, ImportedValue value) {
    if (scope.values.emplace(name, std::move(value)).second) return Status();
    return Status(StatusCode::kBadInput, "the value \"" + name + "\" is defined twice");
  }
  Status Define(Scope& scope, const std::string& name, Expr expr) {
    ir::Type type = expr->type;
    return Define(scope, name, ImportedValue{.expr = std::move(expr), .type = std::move(type), .known = std::nullopt});
  }
  Status MaterialiseResults();
  void CountOperators();
  ir::Span SpanOf(const std::string& label) const {
    return {source_, 0, 0, 0, std::make_shared<const std::string>(label)};
  }

  const OnnxModel& model_;
  const ImportOptions& options_;
  std::shared_ptr<const ir::SourceText> source_;
  Symbols symbols_;
  SupportReport report_;
  Scope graph_;
  arith::Analyzer analyzer_;                           // knows the symbols' bounds
  std::vector<const OnnxFunction*> active_functions_;  // functions that are being expanded
  size_t nesting_ = 0;
  int64_t expanded_nodes_ = 0;
  std::unordered_set<std::string> output_names_;
  std::vector<ir::Var> params_;
  std::vector<std::string> input_names_;
  std::vector<ir::Binding> bindings_;
  ImpliedBounds implied_bounds_;
  std::unordered_map<Expr, ObjectInfo, ir::RefHash, ir::RefSame> objects_;  // values that are no tensors
};

}  // namespace ingot::importer
