// Nodes whose axes are no constants: an input gives them when the model runs. There are as many ways as the rank allows;
// each becomes a branch in which the axes are constants, so that an operator has the same kernels as with constants.
#pragma once

#include <span>
#include <vector>

#include "compiler/importer/binding_builder.h"
#include "compiler/importer/control_flow.h"
#include "compiler/importer/expansion.h"
#include "compiler/importer/onnx_ops.h"

namespace ingot::importer {

class AxesChoice {
 public:
  AxesChoice(BindingBuilder& builder, ControlFlowImporter& control_flow, Expansion& expansion)
      : builder_(builder), control_flow_(control_flow), expansion_(expansion) {}

  // Whether the axes of this node are an input that only run time knows.
  static bool Takes(const NodeImporter& node);
  // Returns the node's outputs; `inputs` are its values. A call with other axes than a way has is refused when it runs.
  // Unsupported if there are too many ways, or if the number of axes decides the result's rank and is not known.
  Result<std::vector<ir::Expr>> Import(const OnnxOpRow& row, const NodeImporter& node,
                                       const std::vector<ImportedValue*>& inputs);

 private:
  struct Way {
    std::vector<int64_t> axes;
    int64_t code;  // the number of these axes; ways are ordered by it
  };

  Result<ImportedBranch> ImportWay(const OnnxOpRow& row, const NodeImporter& node,
                                   const std::vector<ImportedValue*>& inputs, size_t input, const Way& way,
                                   const ir::PrimExpr& code);
  // Returns the branch that the code chooses among these, of which there is one or more.
  Result<ImportedBranch> Choose(const NodeImporter& node, const ir::PrimExpr& code, std::span<const Way> ways,
                                std::span<ImportedBranch> branches);

  BindingBuilder& builder_;
  ControlFlowImporter& control_flow_;
  Expansion& expansion_;  // counts the ways
};

}  // namespace ingot::importer
