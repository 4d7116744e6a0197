// Reads protobuf messages field by field into the plain values of onnx_model.h. Large initialisers are split off first
// (wire_split.h), so that protobuf never sees their bytes.
#include "compiler/importer/onnx_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_set>

#include "compiler/importer/node_order.h"
#include "compiler/importer/onnx_tensor.h"
#include "compiler/importer/wire_split.h"

namespace ingot::importer {
namespace {

constexpr int kMaxMessageNesting = 100;
// Fields that the installed libonnx_proto does not know.
constexpr int kNodeOverload = 8, kFunctionAttributeProto = 11, kFunctionOverload = 13;

template <typename Message>
std::string UnknownString(const Message& message, int number) {
  std::string text;
  const google::protobuf::UnknownFieldSet& fields = message.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      text = field.length_delimited();
    }
  }
  return text;
}

std::string DomainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Reads messages into values. Subgraphs nest like messages, so recursion is bounded by kMaxMessageNesting.
class Reader {
 public:
  Reader(std::shared_ptr<const void> owner, std::string directory, std::shared_ptr<StringTable> strings)
      : owner_(std::move(owner)), strings_(strings), tensors_(std::move(directory), std::move(strings)) {}

  TensorSource& tensors() { return tensors_; }
  Status ReadGraph(const onnx::GraphProto& proto, OnnxGraph& graph);
  Result<OnnxFunction> ReadFunction(const onnx::FunctionProto& proto);

 private:
  Result<OnnxAttribute> ReadAttribute(const onnx::AttributeProto& proto);
  Result<OnnxNode> ReadNode(const onnx::NodeProto& proto);

  std::shared_ptr<const void> owner_;
  std::shared_ptr<StringTable> strings_;
  TensorSource tensors_;
};

// Attributes whose strings are elements of tensors or are compared with those; all others are words of ONNX's own.
constexpr std::string_view kDataStrings[] = {
    "cats_strings", "classes_strings", "classlabels_strings", "default_string", "keys_strings",
    "pool_strings", "stopwords",       "value_string",        "value_strings",  "values_strings"};
bool HoldsData(const std::string& attribute) {
  return std::ranges::find(kDataStrings, attribute) != std::end(kDataStrings);
}

// The encoders of labels give this string where no other is said.
bool LacksDefaultString(const OnnxNode& node) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(node.attributes, name, &OnnxAttribute::name) != node.attributes.end();
  };
  const auto tensor = std::ranges::find(node.attributes, "values_tensor", &OnnxAttribute::name);
  const auto* values = tensor == node.attributes.end() ? nullptr : std::get_if<ConstantDataPtr>(&tensor->value);
  const bool has_tensor = values != nullptr && (*values)->dtype() == kStringElement;
  const bool is_encoder = node.op_type == "LabelEncoder" || node.op_type == "CategoryMapper";
  return is_encoder && (has("values_strings") || has("classes_strings") || has("cats_strings") || has_tensor) &&
         !has("default_string") && !has("default_tensor");
}

Result<OnnxAttribute> Reader::ReadAttribute(const onnx::AttributeProto& proto) {
  OnnxAttribute attribute;
  attribute.name = proto.name();
  attribute.reference = proto.ref_attr_name();
  if (!attribute.reference.empty()) return attribute;
  switch (proto.type()) {
    case onnx::AttributeProto::INT:
      attribute.value = static_cast<int64_t>(proto.i());
      break;
    case onnx::AttributeProto::FLOAT:
      attribute.value = proto.f();
      break;
    case onnx::AttributeProto::STRING: {
      attribute.value = proto.s();
      if (!HoldsData(proto.name())) break;
      INGOT_ASSIGN_OR_RETURN(attribute.value, strings_->Constant(std::span(&proto.s(), 1), {}, proto.name()));
      break;
    }
    case onnx::AttributeProto::INTS:
      attribute.value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      break;
    case onnx::AttributeProto::FLOATS:
      attribute.value = std::vector<float>(proto.floats().begin(), proto.floats().end());
      break;
    case onnx::AttributeProto::STRINGS: {
      attribute.value = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      if (!HoldsData(proto.name())) break;
      INGOT_ASSIGN_OR_RETURN(attribute.value,
                             strings_->Constant(proto.strings(), {proto.strings_size()}, proto.name()));
      break;
    }
    case onnx::AttributeProto::TENSOR: {
      INGOT_ASSIGN_OR_RETURN(attribute.value,
                             tensors_.Read(proto.t(), owner_, "in attribute \"" + proto.name() + "\"", nullptr));
      break;
    }
    case onnx::AttributeProto::SPARSE_TENSOR: {
      INGOT_ASSIGN_OR_RETURN(
          attribute.value, tensors_.ReadSparse(proto.sparse_tensor(), owner_, "in attribute \"" + proto.name() + "\""));
      break;
    }
    case onnx::AttributeProto::GRAPH: {
      auto graph = std::make_shared<OnnxGraph>();
      INGOT_RETURN_IF_ERROR(ReadGraph(proto.g(), *graph));
      attribute.value = std::shared_ptr<const OnnxGraph>(std::move(graph));
      break;
    }
    case onnx::AttributeProto::UNDEFINED:
    case onnx::AttributeProto::GRAPHS:
    case onnx::AttributeProto::TENSORS:
    case onnx::AttributeProto::SPARSE_TENSORS:
    case onnx::AttributeProto::TYPE_PROTO:
    case onnx::AttributeProto::TYPE_PROTOS:
      break;
  }
  return attribute;
}

Result<OnnxNode> Reader::ReadNode(const onnx::NodeProto& proto) {
  OnnxNode node;
  node.op_type = proto.op_type();
  node.domain = DomainOf(proto.domain());
  node.overload = UnknownString(proto, kNodeOverload);
  node.name = proto.name();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto& attribute_proto : proto.attribute()) {
    Result<OnnxAttribute> attribute = ReadAttribute(attribute_proto);
    if (!attribute.ok()) return std::move(attribute).status().WithContext("node \"" + node.name + "\"");
    node.attributes.push_back(*std::move(attribute));
  }
  if (node.op_type == "StringNormalizer") {  // of a row without words there is an empty one
    constexpr std::string_view kEmpty[] = {""};
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr empty, strings_->Constant(std::span(kEmpty), {1}, node.op_type));
    node.attributes.push_back({"default_string", std::move(empty), {}});
  }
  if (LacksDefaultString(node)) {
    constexpr std::string_view kUnused[] = {"_Unused"};
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr unused, strings_->Constant(std::span(kUnused), {}, node.op_type));
    node.attributes.push_back({"default_string", std::move(unused), {}});
  }
  return node;
}

OnnxValueInfo ReadValueInfo(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo info;
  info.name = proto.name();
  const onnx::TypeProto* whole = &proto.type();
  info.is_optional = whole->has_optional_type();
  if (info.is_optional) whole = &whole->optional_type().elem_type();
  info.is_sequence = whole->has_sequence_type();
  if (info.is_sequence) whole = &whole->sequence_type().elem_type();
  if (!whole->has_tensor_type()) {
    info.is_optional = info.is_sequence = false;
    return info;
  }
  info.is_tensor = !info.is_optional && !info.is_sequence;
  const auto& type = whole->tensor_type();
  info.dtype = FindOnnxDataType(type.elem_type());
  if (!info.is_tensor && info.dtype == kStringElement) info.dtype.reset();  // sequences of strings are not supported
  if (!type.has_shape()) return info;
  info.dims.emplace();
  for (const auto& dim : type.shape().dim()) {
    OnnxDim& out = info.dims->emplace_back();
    // Exporters write -1 where a length is not known, or a mark such as "?", which is no name.
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      out.value = dim.dim_value();
    } else if (!dim.has_dim_value()) {
      const std::string& name = dim.dim_param();
      const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c >= 0x80; };
      if (std::ranges::any_of(name, is_letter)) out.param = name;
    }
  }
  return info;
}

void ReadValueInfos(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& protos,
                    std::vector<OnnxValueInfo>& out) {
  for (const auto& proto : protos) out.push_back(ReadValueInfo(proto));
}

// The tensors that a node takes for a shape: their length is a rank.
std::unordered_set<std::string_view> ShapesIn(const OnnxGraph& graph) {
  std::unordered_set<std::string_view> shapes;
  for (const OnnxNode& node : graph.nodes) {
    const size_t operand = node.op_type == "ConstantOfShape" ? 0 : 1;
    const bool takes_shape =
        operand == 0 || node.op_type == "Expand" || node.op_type == "Reshape" || node.op_type == "Tile";
    if (takes_shape && operand < node.inputs.size()) shapes.insert(node.inputs[operand]);
  }
  return shapes;
}

// A length of 0 in the signature of a model is one that its exporter did not know, except that a shape of no elements
// is a scalar's.
void FreeZeros(const OnnxGraph& graph, std::vector<OnnxValueInfo>& infos) {
  const std::unordered_set<std::string_view> shapes = ShapesIn(graph);
  for (OnnxValueInfo& info : infos) {
    if (!info.dims || (info.dims->size() == 1 && info.dims->front().value == 0 && shapes.contains(info.name))) continue;
    for (OnnxDim& dim : *info.dims) {
      if (dim.value == 0) dim.value.reset();
    }
  }
}

Status Reader::ReadGraph(const onnx::GraphProto& proto, OnnxGraph& graph) {
  for (const auto& tensor : proto.initializer()) {
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr data, tensors_.Read(tensor, owner_, "\"" + tensor.name() + "\"", nullptr));
    graph.initializers.emplace_back(tensor.name(), std::move(data));
  }
  for (const auto& sparse : proto.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr data, tensors_.ReadSparse(sparse, owner_, "\"" + name + "\""));
    graph.initializers.emplace_back(name, std::move(data));
  }
  ReadValueInfos(proto.input(), graph.inputs);
  ReadValueInfos(proto.output(), graph.outputs);
  ReadValueInfos(proto.value_info(), graph.values);
  for (const auto& node_proto : proto.node()) {
    INGOT_ASSIGN_OR_RETURN(OnnxNode node, ReadNode(node_proto));
    graph.nodes.push_back(std::move(node));
  }
  SortNodes(graph.nodes);
  return Status();
}

template <typename Protos>
OnnxOpsets ReadOpsets(const Protos& protos) {
  OnnxOpsets opsets;
  for (const auto& opset : protos) opsets.emplace_back(DomainOf(opset.domain()), opset.version());
  return opsets;
}

bool ParseMessage(google::protobuf::MessageLite& message, std::span<const std::byte> bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxMessageNesting);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

Result<OnnxFunction> Reader::ReadFunction(const onnx::FunctionProto& proto) {
  OnnxFunction function;
  function.domain = DomainOf(proto.domain());
  function.name = proto.name();
  function.overload = UnknownString(proto, kFunctionOverload);
  function.inputs.assign(proto.input().begin(), proto.input().end());
  function.outputs.assign(proto.output().begin(), proto.output().end());
  function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  function.opsets = ReadOpsets(proto.opset_import());
  const google::protobuf::UnknownFieldSet& fields = proto.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kFunctionAttributeProto ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    auto attribute_proto = std::make_shared<onnx::AttributeProto>();
    if (!ParseMessage(*attribute_proto, std::as_bytes(std::span(field.length_delimited())))) {
      return Status(StatusCode::kBadInput, "function \"" + function.name + "\": a malformed attribute");
    }
    Reader nested(attribute_proto, "", strings_);
    INGOT_ASSIGN_OR_RETURN(OnnxAttribute attribute, nested.ReadAttribute(*attribute_proto));
    function.defaults.push_back(std::move(attribute));
  }
  for (const auto& node_proto : proto.node()) {
    INGOT_ASSIGN_OR_RETURN(OnnxNode node, ReadNode(node_proto));
    function.nodes.push_back(std::move(node));
  }
  return function;
}

Status TooLarge() {
  return Status(StatusCode::kBadInput, "larger than 2 GiB besides its weights, which protobuf cannot hold");
}

// The message lives as long as a tensor points into it.
Result<std::shared_ptr<const onnx::ModelProto>> ParseModel(std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return TooLarge();
  auto model = std::make_shared<onnx::ModelProto>();
  if (!ParseMessage(*model, bytes)) {
    return Status(StatusCode::kBadInput,
                  "not an ONNX model: the protobuf message is malformed, truncated, or nests "
                  "more than 100 deep");
  }
  if (!model->has_graph()) return Status(StatusCode::kBadInput, "not an ONNX model: it holds no graph");
  return std::shared_ptr<const onnx::ModelProto>(std::move(model));
}

// Reads the initialisers that were split off: their messages are small without their bytes.
Status ReadSplitTensors(const SharedBytes& file, const WireSplit& split, TensorSource& tensors, OnnxGraph& graph) {
  for (const WireTensor& wire : split.initializers) {
    auto proto = std::make_shared<onnx::TensorProto>();
    if (!ParseMessage(*proto, wire.message)) return Status(StatusCode::kBadInput, "a malformed initializer");
    const SharedBytes raw(file.owner, wire.raw);
    INGOT_ASSIGN_OR_RETURN(ConstantDataPtr data, tensors.Read(*proto, proto, "\"" + proto->name() + "\"", &raw));
    graph.initializers.emplace_back(proto->name(), std::move(data));
  }
  return Status();
}

Result<OnnxModel> ReadModel(const SharedBytes& file, const std::string& directory) {
  google::protobuf::LogSilencer silence;  // errors are reported as statuses instead
  // If the splitter cannot read the file, protobuf parses all of it and reports the error.
  const std::optional<WireSplit> split = SplitInitializers(file.bytes);
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<const onnx::ModelProto> proto,
                         ParseModel(split.has_value() ? std::span<const std::byte>(split->rest) : file.bytes));
  OnnxModel model;
  model.producer = proto->producer_name();
  model.opsets = ReadOpsets(proto->opset_import());
  const auto strings = std::make_shared<StringTable>();
  Reader reader(proto, directory, strings);
  if (split.has_value()) INGOT_RETURN_IF_ERROR(ReadSplitTensors(file, *split, reader.tensors(), model.graph));
  INGOT_RETURN_IF_ERROR(reader.ReadGraph(proto->graph(), model.graph));
  FreeZeros(model.graph, model.graph.inputs);
  FreeZeros(model.graph, model.graph.outputs);
  for (const auto& function_proto : proto->functions()) {
    INGOT_ASSIGN_OR_RETURN(OnnxFunction function, reader.ReadFunction(function_proto));
    model.functions.push_back(std::move(function));
  }
  model.strings = strings->TakeStrings();
  return model;
}

}  // namespace

Result<OnnxModel> ParseOnnxModel(const SharedBytes& file, const std::string& directory) {
  try {
    return ReadModel(file, directory);
  } catch (const std::exception& error) {  // of protobuf's checks and allocations
    return Status(StatusCode::kBadInput, std::string("reading the ONNX model failed: ") + error.what());
  }
}

}  // namespace ingot::importer
