// Collects the support report while a model is imported. It owns the report: the versions and operators of the model,
// and the nodes that are not supported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/importer/onnx.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"

namespace ingot::importer {

class ReportBuilder {
 public:
  explicit ReportBuilder(const OnnxModel& model) : model_(model) {}

  // Notes the version of ONNX's own operator set; an error if it is not supported.
  Status ReadOpset();
  void CountOperators();
  void AddUnsupported(const OnnxNode& node, const std::string& label, const std::vector<ImportedValue*>& inputs,
                      std::string reason);
  size_t num_unsupported() const { return report_.unsupported.size(); }
  // Forgets all unsupported nodes but the first `count`: they will be imported again.
  void KeepUnsupported(size_t count) { report_.unsupported.resize(count); }
  SupportReport& report() { return report_; }

 private:
  const OnnxModel& model_;
  SupportReport report_;
};

// Returns the opset, from kMinOpset down, since which an operator of ONNX's own domain means what it meant in kMinOpset.
int64_t FirstOpsetOf(std::string_view op_type);
// Prints a type such as "float32[batch, 3]", as far as it is known.
std::string TypeText(const ir::Type& type);
// Returns how messages about a node begin.
std::string NodePrefix(const OnnxNode& node, const std::string& label);
// Returns the error that lists the unsupported nodes of a report.
Status UnsupportedError(const SupportReport& report);

}  // namespace ingot::importer
