// The entry points of the importer: parse the model, walk its graph, and return the module or the report.
#include "compiler/importer/onnx.h"

#include <utility>

#include "compiler/importer/graph_importer.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/report_builder.h"

namespace ingot::importer {

Result<ImportResult> ImportOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file, options.directory);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, file.size(), name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  if (!importer.report().unsupported.empty()) return UnsupportedError(importer.report()).WithContext(name);
  Result<ir::IRModule> module = importer.Module();
  if (!module.ok()) return std::move(module).status().WithContext(name);
  return ImportResult{*std::move(module), std::move(importer.report())};
}

Result<SupportReport> CheckOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options) {
  Result<OnnxModel> model = ParseOnnxModel(file, options.directory);
  if (!model.ok()) return std::move(model).status().WithContext(name);
  GraphImporter importer(*model, file.size(), name, options);
  Status status = importer.Run();
  if (!status.ok()) return std::move(status).WithContext(name);
  return std::move(importer.report());
}

}  // namespace ingot::importer
