// The inputs of the graph, which become the parameters of "main" or, by --params, constants. It owns the parameters and
// their names in the file.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/scope.h"
#include "compiler/importer/sequence_builder.h"
#include "compiler/importer/symbols.h"
#include "compiler/ir/expr.h"

namespace ingot::importer {

class GraphInputs {
 public:
  GraphInputs(const ImportOptions& options, Symbols& symbols) : options_(options), symbols_(symbols) {}

  // Binds inputs to the constants that the options give.
  Status BindConstants(const OnnxGraph& graph, Scope& scope) const;
  // Makes a parameter of every input that has no value in the scope yet.
  Status MakeParameters(const OnnxGraph& graph, Scope& scope, SequenceBuilder& sequences);

  const std::vector<ir::Var>& params() const { return params_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  Result<ir::Type> TypeOf(const OnnxValueInfo& info, const InputShape* override_shape);

  const ImportOptions& options_;
  Symbols& symbols_;
  std::vector<ir::Var> params_;
  std::vector<std::string> names_;
};

}  // namespace ingot::importer
