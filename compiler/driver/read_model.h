// The stage "import": a model's file in, a module out that is typed, in A-normal form, and in the form of its own text.
#pragma once

#include <string>
#include <utility>

#include "compiler/driver/options.h"
#include "compiler/importer/onnx.h"
#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::driver {

// Reads model.onnx or module.py by its extension, detaches weights, binds --params, adds states and a softmax as the
// options say, and infers types. The module is not verified yet.
Result<ir::IRModule> ReadModel(const std::string& path, const CompileOptions& options);

// Infers types and brings the module into A-normal form, then into the form of its own text.
Result<ir::IRModule> InferTypes(ir::IRModule module);

// Reports which operators of an ONNX model are not supported; compiles nothing.
Result<importer::SupportReport> CheckModel(const std::string& path, const CompileOptions& options);

// Parses "past_k=present_k", the argument of --state.
Result<std::pair<std::string, std::string>> ParseState(const std::string& text);

}  // namespace ingot::driver
