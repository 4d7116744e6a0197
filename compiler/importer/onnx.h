// The ONNX importer: bytes of a model in, an IRModule with one typed graph function "main" out. Nothing is optimised
// here; each node becomes calls of operators (onnx_ops.cc maps the names), in the file's order, in one dataflow block.
//   - Initialisers and Constant nodes stay inline constants under their names, sharing the parsed bytes.
//   - A dimension's name is one symbolic variable for the whole graph; an unnamed unknown dimension gets its own.
//   - Function attributes: "num_input", "input_names" and "output_names" (as in the file, any characters), and
//     "tir_var_lower_bound"/"tir_var_upper_bound" (symbol name -> integer) for bounded symbols.
//   - Every call's span names the file and the ONNX node.
//   - Functions of the model are expanded; so is an If whose condition follows from shapes and constants. Any other If
//     is R.if, and a Loop or Scan is a function inside of main that calls itself (control_flow.h).
//   - Sequences and optional values are R.Object, handled by R.sequence.* (sequences.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::importer {

// Function attributes of a model with strings among its inputs or results: all strings, by whose places they are given,
// and the names of those inputs and results.
inline constexpr const char* kStringsAttr = "strings";
inline constexpr const char* kStringTensorsAttr = "string_tensors";

// The versions of ONNX's own operator set that are supported.
inline constexpr int64_t kMinOpset = 7;
inline constexpr int64_t kMaxOpset = 28;

// --input-shape image=1,3,224,224: a number fixes a dimension, a name makes it that symbol, arithmetic on names ("past+1")
// that formula, which calls are held to, "?" keeps it as in the file.
struct InputShape {
  struct Dim {
    std::optional<int64_t> value;
    std::string symbol;  // or a formula
  };
  std::string input;
  std::vector<Dim> dims;
};
Result<InputShape> ParseInputShape(std::string_view text);

// --dim batch=1..64 bounds a symbol, --dim batch=8 fixes it.
struct DimRange {
  std::string symbol;
  int64_t min = 0, max = 0;  // inclusive; equal: fixed
};
Result<DimRange> ParseDimRange(std::string_view text);

struct ImportOptions {
  std::vector<InputShape> input_shapes;
  std::vector<DimRange> dims;
  // Inputs that become constants, by name (--params).
  std::vector<std::pair<std::string, std::shared_ptr<const ir::ConstantData>>> constants = {};
  // The folder that contains external data; empty: a model with external data is refused.
  std::string directory = {};
};

// One node that cannot be imported.
struct UnsupportedOperator {
  std::string op_type;
  std::string domain;
  std::string node;  // name in the file, or "#INDEX"
  int64_t opset = 0;
  std::vector<std::string> inputs;  // such as "float32[batch, 3]"; "?" if the type is unknown
  std::string reason;
  std::string ToString() const;
};
struct OperatorCount {
  std::string op_type;
  std::string domain;
  int64_t count = 0;
};
struct SupportReport {
  std::string producer;
  int64_t opset = 0;
  std::vector<OperatorCount> operators;  // all operators of the model, by name
  std::vector<UnsupportedOperator> unsupported;
};

struct ImportResult {
  ir::IRModule module;
  SupportReport report;
};

// name is the file's, for spans and messages. Errors: one kUnsupportedModel error that lists all unsupported nodes,
// kBadInput for a malformed model, kInvalidArgument for a wrong option.
Result<ImportResult> ImportOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options = {});
// Makes the same walk for `vm-compile --check`: unsupported nodes are no error.
Result<SupportReport> CheckOnnx(const SharedBytes& file, const std::string& name, const ImportOptions& options = {});

}  // namespace ingot::importer
