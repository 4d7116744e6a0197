// The walk over an ONNX graph: it imports the nodes once, in order, and keeps the value of each name (scope.h). Each
// kind of node has an importer of its own: rows of the name map (onnx_ops.h), sequence operators (sequences.h), and
// nodes that hold graphs (control_flow.h). The graph importer owns these collaborators and the scope of the main graph,
// joins them, and makes the module at the end.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/importer/axes_choice.h"
#include "compiler/importer/binding_builder.h"
#include "compiler/importer/control_flow.h"
#include "compiler/importer/expansion.h"
#include "compiler/importer/graph_inputs.h"
#include "compiler/importer/loop_builder.h"
#include "compiler/importer/node_outputs.h"
#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/report_builder.h"
#include "compiler/importer/scope.h"
#include "compiler/importer/sequence_builder.h"
#include "compiler/importer/sequences.h"
#include "compiler/importer/symbols.h"

namespace ingot::importer {

class GraphImporter final : private BodyImporter {
 public:
  // file_bytes: what the model takes, from which follows to how much it may expand.
  GraphImporter(const OnnxModel& model, size_t file_bytes, const std::string& name, const ImportOptions& options)
      : model_(model), options_(options), report_(model), builder_(name), expansion_(file_bytes) {}

  // Fills the report. Module() may be called only if the report has no unsupported nodes.
  Status Run();
  SupportReport& report() { return report_.report(); }
  Result<ir::IRModule> Module();

 private:
  struct Inputs {
    std::vector<ImportedValue*> values;  // null: left out
    bool has_stand_in = false;
    bool has_unknown = false;  // one has no type
  };

  // The nodes behind the one that is imported, and the results of their graph; null: the results of a graph around
  // them, which are not known here.
  struct Rest {
    std::span<const OnnxNode> nodes;
    const std::vector<OnnxValueInfo>* outputs = nullptr;
    bool ends_model = false;  // the results are those of the model
    bool is_done = false;     // they were imported with that node
  };

  Status UnpackParameters();
  // outputs: the results of the graph that ends with these nodes, or null.
  Status ImportNodes(std::span<const OnnxNode> nodes, const std::vector<OnnxValueInfo>* outputs, Scope& scope);
  Status ImportBody(const OnnxGraph& graph, const std::string& label, Scope& scope) override;
  Status ImportNode(const OnnxNode& node, const std::string& label, Scope& scope);
  Status ImportResolved(const OnnxNode& node, const std::string& label, Scope& scope);
  // Imports a node of ONNX's own domain by its tensors.
  Status ImportTensors(const NodeImporter& importer, const Inputs& inputs, Scope& scope);
  // Returns the outputs of a node of the name map; `inputs` are its values.
  Result<std::vector<ir::Expr>> ImportByRow(const OnnxOpRow& row, const NodeImporter& importer);
  // Imports a node once more, from inputs that have symbols for long dims, if dims of the outputs became too long.
  Result<std::vector<ir::Expr>> ShortenDims(const OnnxOpRow& row, const NodeImporter& importer, const Inputs& inputs,
                                            std::vector<ir::Expr> outputs, size_t num_bindings);
  Status ImportOperator(const OnnxOpRow& row, const NodeImporter& importer, const Inputs& inputs, Scope& scope);
  Status ImportSequenceOperator(const SequenceImporter::Row& row, const NodeImporter& importer, const Inputs& inputs,
                                Scope& scope);
  Status ImportOther(const NodeImporter& importer, const Inputs& inputs, Scope& scope);
  Status ImportKnownBranch(const NodeImporter& importer, bool condition, Scope& scope);
  Status ImportControlFlow(const NodeImporter& importer, Scope& scope);
  // Imports a node in one of two ways: the way for which a condition holds, or the other.
  using ImportWay = std::function<Status(bool condition, Scope& scope)>;
  // Imports a node of which a condition, known when the model runs, decides the ranks of its outputs: each way with the
  // nodes behind the node. Returns false, and nothing is imported, if neither way works or the results cannot be joined.
  Result<bool> ImportWithRest(const NodeImporter& importer, const ir::Expr& condition, const ImportWay& way,
                              Scope& scope);
  Result<ImportedBranch> TryWay(const NodeImporter& importer, bool condition, const ImportWay& way, const Rest& rest,
                                Scope& scope);
  // Imports a Squeeze without axes: a symbolic dim may be 1 or not. Returns false, and nothing is imported, if no dim
  // is symbolic or there are too many ways.
  Result<bool> ImportSqueeze(const NodeImporter& importer, Scope& scope);
  // What is known of the question whether a dim is 1, in the branch that is imported.
  std::optional<bool> IsOne(const ir::PrimExpr& dim);
  Status ImportFunction(const OnnxFunction& function, const NodeImporter& importer, const Inputs& inputs, Scope& scope);
  const OnnxFunction* FindFunction(const OnnxNode& node) const;
  Status Fail(const NodeImporter& importer, const Inputs& inputs, const Status& status, Scope& scope);

  const OnnxModel& model_;
  const ImportOptions& options_;
  ReportBuilder report_;
  Symbols symbols_;
  BindingBuilder builder_;
  SequenceBuilder sequences_{builder_, symbols_.analyzer()};
  LoopBuilder loops_{builder_, sequences_, symbols_.analyzer(), report_};
  SequenceImporter sequence_operators_{builder_, sequences_, loops_, symbols_.analyzer()};
  ControlFlowImporter control_flow_{builder_, sequences_, loops_, report_, *this};
  NodeOutputs outputs_{builder_, sequences_, symbols_};
  GraphInputs inputs_{options_, symbols_};
  Scope graph_;
  Expansion expansion_;
  AxesChoice axes_choice_{builder_, control_flow_, expansion_};
  Rest rest_;
  std::optional<int64_t> channel_block_;               // as soon as a node needs it
  std::vector<std::pair<ir::PrimExpr, bool>> is_one_;  // the dims of which a branch around the node knows it
};

}  // namespace ingot::importer
