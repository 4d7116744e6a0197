#include "compiler/importer/onnx_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <exception>
#include <limits>

#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

constexpr int kMaxMessageNesting = 100;

// TensorProto.DataType (onnx.proto of ONNX 1.23). The packed sub-byte types store the first element in the low bits,
// as we do.
struct OnnxTypeRow {
  int64_t number;
  DataType dtype;
};
constexpr OnnxTypeRow kTypes[] = {
    {1, DataType::Float(32)},
    {2, DataType::UInt(8)},
    {3, DataType::Int(8)},
    {4, DataType::UInt(16)},
    {5, DataType::Int(16)},
    {6, DataType::Int(32)},
    {7, DataType::Int(64)},
    {9, DataType::Bool()},
    {10, DataType::Float(16)},
    {11, DataType::Float(64)},
    {12, DataType::UInt(32)},
    {13, DataType::UInt(64)},
    {16, DataType::Bfloat16()},
    {17, DataType(TypeCode::kFloat8E4M3FN, 8)},
    {18, DataType(TypeCode::kFloat8E4M3FNUZ, 8)},
    {19, DataType(TypeCode::kFloat8E5M2, 8)},
    {20, DataType(TypeCode::kFloat8E5M2FNUZ, 8)},
    {21, DataType::UInt(4)},
    {22, DataType::Int(4)},
    {24, DataType(TypeCode::kFloat8E8M0FNU, 8)},
};

std::optional<DataType> FindType(int64_t number) {
  for (const OnnxTypeRow& row : kTypes) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

Status BadTensor(const std::string& what, const std::string& message) {
  return Status(StatusCode::kBadInput, "tensor " + what + ": " + message);
}

// The elements of a typed field as packed bytes: shared where they already are (a repeated field is contiguous and the
// host little-endian), narrowed to Narrow otherwise.
template <typename Field>
SharedBytes ShareField(const Field& field, const std::shared_ptr<const void>& owner) {
  return {owner, std::as_bytes(std::span(field.data(), static_cast<size_t>(field.size())))};
}
template <typename Narrow, typename Field>
SharedBytes NarrowField(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(Narrow));
  for (int i = 0; i < field.size(); ++i) {
    const Narrow value = static_cast<Narrow>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(Narrow), &value, sizeof(Narrow));
  }
  return SharedBytes::Own(std::move(bytes));
}

// onnx.proto says which typed field holds which dtype.
SharedBytes TypedField(const onnx::TensorProto& tensor, DataType dtype, const std::shared_ptr<const void>& owner) {
  if (dtype == DataType::Float(32)) return ShareField(tensor.float_data(), owner);
  if (dtype == DataType::Float(64)) return ShareField(tensor.double_data(), owner);
  if (dtype == DataType::Int(64)) return ShareField(tensor.int64_data(), owner);
  if (dtype == DataType::UInt(64)) return ShareField(tensor.uint64_data(), owner);
  if (dtype == DataType::UInt(32)) return NarrowField<uint32_t>(tensor.uint64_data());
  if (dtype == DataType::Int(32)) return ShareField(tensor.int32_data(), owner);
  if (dtype.bits == 16) return NarrowField<uint16_t>(tensor.int32_data());
  return NarrowField<uint8_t>(tensor.int32_data());  // 8 bits, and packed pairs of 4
}

Result<ConstantDataPtr> ReadTensor(const onnx::TensorProto& tensor, const std::shared_ptr<const void>& owner,
                                   const std::string& what) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    std::string location;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") location = entry.value();
    }
    return Status(StatusCode::kUnsupportedModel,
                  "tensor " + what + ": its data is external (\"" + location +
                      "\"), which is not supported yet; save the model with its weights inside");
  }
  if (tensor.has_segment()) return BadTensor(what, "segments are not part of the format any more");
  Result<DataType> type = OnnxDataType(tensor.data_type());
  if (!type.ok()) return std::move(type).status().WithContext("tensor " + what);
  const DataType dtype = *type;
  std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  Result<int64_t> count = CountElements(dims);
  if (!count.ok()) return std::move(count).status().WithContext("tensor " + what);
  Result<int64_t> size = dtype.SizeBytes(*count);
  if (!size.ok()) return std::move(size).status().WithContext("tensor " + what);
  SharedBytes data = tensor.has_raw_data() ? SharedBytes(owner, std::as_bytes(std::span(tensor.raw_data())))
                                           : TypedField(tensor, dtype, owner);
  if (data.size() != static_cast<size_t>(*size)) {
    return BadTensor(what, "expected " + std::to_string(*size) + " bytes for " + ShapeToString(dtype, dims) + ", got " +
                               std::to_string(data.size()));
  }
  return ConstantDataPtr(
      std::make_shared<const ir::ConstantData>(dtype, std::move(dims), data.bytes, std::move(data.owner)));
}

Result<OnnxAttribute> ReadAttribute(const onnx::AttributeProto& proto, const std::shared_ptr<const void>& owner) {
  OnnxAttribute attribute;
  attribute.name = proto.name();
  if (proto.has_ref_attr_name()) return attribute;  // only legal inside a function, which we do not inline
  switch (proto.type()) {
    case onnx::AttributeProto::INT:
      attribute.value = static_cast<int64_t>(proto.i());
      break;
    case onnx::AttributeProto::FLOAT:
      attribute.value = proto.f();
      break;
    case onnx::AttributeProto::STRING:
      attribute.value = proto.s();
      break;
    case onnx::AttributeProto::INTS:
      attribute.value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      break;
    case onnx::AttributeProto::FLOATS:
      attribute.value = std::vector<float>(proto.floats().begin(), proto.floats().end());
      break;
    case onnx::AttributeProto::STRINGS:
      attribute.value = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      break;
    case onnx::AttributeProto::TENSOR: {
      INGOT_ASSIGN_OR_RETURN(attribute.value, ReadTensor(proto.t(), owner, "in attribute \"" + proto.name() + "\""));
      break;
    }
    case onnx::AttributeProto::UNDEFINED:
    case onnx::AttributeProto::GRAPH:
    case onnx::AttributeProto::GRAPHS:
    case onnx::AttributeProto::TENSORS:
    case onnx::AttributeProto::SPARSE_TENSOR:
    case onnx::AttributeProto::SPARSE_TENSORS:
    case onnx::AttributeProto::TYPE_PROTO:
    case onnx::AttributeProto::TYPE_PROTOS:
      break;
  }
  return attribute;
}

Result<OnnxNode> ReadNode(const onnx::NodeProto& proto, const std::shared_ptr<const void>& owner) {
  OnnxNode node;
  node.op_type = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.name = proto.name();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto& attribute_proto : proto.attribute()) {
    Result<OnnxAttribute> attribute = ReadAttribute(attribute_proto, owner);
    if (!attribute.ok()) return std::move(attribute).status().WithContext("node \"" + node.name + "\"");
    node.attributes.push_back(*std::move(attribute));
  }
  return node;
}

Result<OnnxValueInfo> ReadValueInfo(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo info;
  info.name = proto.name();
  info.is_tensor = proto.type().has_tensor_type();
  if (!info.is_tensor) return info;
  const auto& type = proto.type().tensor_type();
  info.dtype = FindType(type.elem_type());
  if (!type.has_shape()) return info;
  info.dims.emplace();
  for (const auto& dim : type.shape().dim()) {
    OnnxDim& out = info.dims->emplace_back();
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0) {
        return Status(StatusCode::kBadInput, "value \"" + info.name + "\": dimension " +
                                                 std::to_string(info.dims->size() - 1) + " is " +
                                                 std::to_string(dim.dim_value()) + ", expected >= 0");
      }
      out.value = dim.dim_value();
    } else {
      out.param = dim.dim_param();
    }
  }
  return info;
}

Status ReadValueInfos(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& protos,
                      std::vector<OnnxValueInfo>& out) {
  for (const auto& proto : protos) {
    INGOT_ASSIGN_OR_RETURN(OnnxValueInfo info, ReadValueInfo(proto));
    out.push_back(std::move(info));
  }
  return Status();
}

// The message stays alive as long as a tensor points into it.
Result<std::shared_ptr<const onnx::ModelProto>> ParseMessage(std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Status(StatusCode::kBadInput, "larger than 2 GiB, which protobuf cannot hold");
  }
  google::protobuf::LogSilencer silence;  // we report errors ourselves
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxMessageNesting);
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Status(StatusCode::kBadInput,
                  "not an ONNX model: the protobuf message is malformed, truncated, or nests "
                  "more than 100 deep");
  }
  if (!model->has_graph()) return Status(StatusCode::kBadInput, "not an ONNX model: it holds no graph");
  return std::shared_ptr<const onnx::ModelProto>(std::move(model));
}

Result<OnnxModel> ReadModel(std::shared_ptr<const onnx::ModelProto> proto) {
  OnnxModel model;
  model.producer = proto->producer_name();
  for (const auto& opset : proto->opset_import()) {
    model.opsets.emplace_back(opset.domain() == "ai.onnx" ? "" : opset.domain(), opset.version());
  }
  const onnx::GraphProto& graph = proto->graph();
  if (graph.sparse_initializer_size() > 0) {
    return Status(StatusCode::kUnsupportedModel,
                  "tensor \"" + graph.sparse_initializer(0).values().name() + "\" is sparse, which is not supported");
  }
  for (const auto& tensor : graph.initializer()) {
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr data, ReadTensor(tensor, proto, "\"" + tensor.name() + "\""));
    model.initializers.emplace_back(tensor.name(), std::move(data));
  }
  INGOT_RETURN_IF_ERROR(ReadValueInfos(graph.input(), model.inputs));
  INGOT_RETURN_IF_ERROR(ReadValueInfos(graph.output(), model.outputs));
  INGOT_RETURN_IF_ERROR(ReadValueInfos(graph.value_info(), model.values));
  for (const auto& node_proto : graph.node()) {
    INGOT_ASSIGN_OR_RETURN(OnnxNode node, ReadNode(node_proto, proto));
    model.nodes.push_back(std::move(node));
  }
  return model;
}

}  // namespace

Result<DataType> OnnxDataType(int64_t number) {
  const std::optional<DataType> dtype = FindType(number);
  if (dtype.has_value()) return *dtype;
  return Status(StatusCode::kUnsupportedModel,
                "ONNX data type " + std::to_string(number) + (number == 8 ? " (string)" : "") + " is not supported");
}

Result<OnnxModel> ParseOnnxModel(const SharedBytes& file) {
  try {
    INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const onnx::ModelProto> proto, ParseMessage(file.bytes));
    return ReadModel(std::move(proto));
  } catch (const std::exception& error) {  // protobuf's checks and allocations
    return Status(StatusCode::kBadInput, std::string("reading the ONNX model failed: ") + error.what());
  }
}

}  // namespace ingot::importer
