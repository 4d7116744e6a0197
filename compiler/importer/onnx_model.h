// An ONNX model as plain values: what ParseOnnxModel reads from the protobuf bytes and the importer works on. This is
// the border to protobuf: only onnx_model.cc and onnx_tensor.cc include its headers. Tensors are checked (dtype, dims,
// byte count) and keep pointing into the model's file, the parsed message, or the file of external data; names, shapes
// and the order of nodes are those of the file, unchecked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/data_type.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::importer {

using ConstantDataPtr = std::shared_ptr<const ir::ConstantData>;

// The dtype of strings. Each of them is a number, its place among OnnxModel::strings, in the model's tensors and in
// those attributes that list data (labels, keys, categories); such constants have this dtype and 8 bytes per element.
inline constexpr DataType kStringElement = DataType::Handle();

struct OnnxDim {
  std::optional<int64_t> value;  // >= 0
  std::string param;             // the symbol's name; with neither, the dimension is unknown
};
// A graph input or output, or an intermediate value of which the file declares the type.
struct OnnxValueInfo {
  std::string name;
  bool is_tensor = false;
  bool is_sequence = false, is_optional = false;  // of tensors; both: an optional sequence of tensors
  // dtype and dims of the tensor, or of the tensors in the sequence.
  std::optional<DataType> dtype;  // absent: none, or an unknown one
  std::optional<std::vector<OnnxDim>> dims;
};
struct OnnxGraph;
struct OnnxAttribute {
  std::string name;
  std::variant<std::monostate,  // a type, a list of tensors or graphs, or a reference
               int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
               ConstantDataPtr, std::shared_ptr<const OnnxGraph>>
      value;
  std::string reference;  // inside a function: the attribute of the call that gives this one its value
};
struct OnnxNode {
  std::string op_type;
  std::string domain;               // "" is ONNX's own ("ai.onnx" is read as "")
  std::string overload;             // tells functions of one name apart
  std::string name;                 // may be empty
  std::vector<std::string> inputs;  // "" for an optional input that is left out
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
};
struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, ConstantDataPtr>> initializers;
  std::vector<OnnxValueInfo> inputs, outputs, values;
};
using OnnxOpsets = std::vector<std::pair<std::string, int64_t>>;  // domain, version
// An operator that the model defines by a graph of others.
struct OnnxFunction {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // those without a default
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
  OnnxOpsets opsets;
};
struct OnnxModel {
  std::string producer;
  OnnxOpsets opsets;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  std::vector<std::string> strings;  // all that occur as data, each once; UTF-8
};

// Reads any bytes. kBadInput if they are no ONNX model or hold a malformed tensor, kUnsupportedModel for unknown
// dtypes. Messages nest at most 100 deep. External data is in files beneath the directory, which are mapped; without a
// directory it is refused.
Result<OnnxModel> ParseOnnxModel(const SharedBytes& file, const std::string& directory);

// Converts a TensorProto.DataType; an error names the number.
Result<DataType> OnnxDataType(int64_t number);
// Returns nothing for a number that stands for no supported dtype; kStringElement for strings.
std::optional<DataType> FindOnnxDataType(int64_t number);

}  // namespace ingot::importer
