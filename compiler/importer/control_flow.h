// Nodes that hold graphs: If with a condition that depends on data, Loop, Scan, SequenceMap and FlexAttention. It owns
// nothing of its own; each graph has a scope of its own while it is imported, and a list of bindings
// (binding_builder.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/importer/binding_builder.h"
#include "compiler/importer/loop_builder.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/report_builder.h"
#include "compiler/importer/scope.h"
#include "compiler/importer/sequence_builder.h"

namespace ingot::importer {

// Imports the nodes of a graph inside of a node, one level deeper than the node itself. The graph importer is one.
class BodyImporter {
 public:
  virtual Status ImportBody(const OnnxGraph& graph, const std::string& label, Scope& scope) = 0;

 protected:
  ~BodyImporter() = default;
};

// Returns the graph in this attribute of a node.
Result<const OnnxGraph*> GraphAttribute(const NodeImporter& node, const char* name);

// What runs if a condition holds, or if it does not.
struct ImportedBranch {
  std::vector<ir::Binding> bindings;
  std::vector<ir::Expr> results;
};

class ControlFlowImporter {
 public:
  ControlFlowImporter(BindingBuilder& builder, SequenceBuilder& sequences, LoopBuilder& loops, ReportBuilder& report,
                      BodyImporter& bodies)
      : builder_(builder), sequences_(sequences), loops_(loops), report_(report), bodies_(bodies) {}

  static bool Takes(const OnnxNode& node);
  // Returns the node's outputs; none if a node inside was reported as unsupported.
  Result<std::vector<ir::Expr>> Import(const NodeImporter& node, Scope& scope);
  // Returns what the node's first input decides: a tensor, or a number if it is known by its element.
  Result<ir::Expr> Condition(const NodeImporter& node);
  // Returns the results of the branch that the condition chooses; `outputs` have their names. Unsupported if results of
  // the same place are of unlike kinds, or of unlike ranks and no element or several; with may_differ_in_rank such a
  // result is a tensor of unknown rank.
  Result<std::vector<ir::Expr>> Join(const NodeImporter& node, const ir::Expr& condition, ImportedBranch yes,
                                     ImportedBranch no, const std::vector<OnnxValueInfo>& outputs,
                                     bool may_differ_in_rank = false);
  // Returns the graph's outputs after its nodes were imported; none if one of them is a stand-in. Unsupported if the
  // rank of one is unknown, unless that may be.
  Result<std::vector<ir::Expr>> ResultsOf(const std::vector<OnnxValueInfo>& outputs, const std::string& label,
                                          Scope& inner, bool may_have_any_rank = false);

 private:
  Result<std::vector<ir::Expr>> ImportIf(const std::string& label, const NodeImporter& importer, Scope& scope);
  Result<std::vector<ir::Expr>> ImportLoop(const std::string& label, const NodeImporter& importer, Scope& scope);
  Result<std::vector<ir::Expr>> ImportScan(const std::string& label, const NodeImporter& importer, Scope& scope);
  Result<std::vector<ir::Expr>> ImportSequenceMap(const std::string& label, const NodeImporter& node, Scope& scope);
  Result<std::vector<ir::Expr>> ImportFlexAttention(const std::string& label, const NodeImporter& node, Scope& scope);
  // Returns the graph's outputs; none if one of them is a stand-in.
  Result<std::vector<ir::Expr>> ImportBody(const OnnxGraph& graph, const std::string& label, Scope& inner);
  // The same for one trip of a loop; none as well if a node was reported as unsupported.
  Result<std::vector<ir::Expr>> ImportTrip(const OnnxGraph& graph, const std::string& label, Scope& inner);

  BindingBuilder& builder_;
  SequenceBuilder& sequences_;
  LoopBuilder& loops_;
  ReportBuilder& report_;
  BodyImporter& bodies_;
};

}  // namespace ingot::importer
