// The ONNX importer: golden texts of small models (tests/data/onnx), and hostile bytes.
#include "compiler/importer/onnx.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/importer/op_list.h"
#include "compiler/op/registry.h"
#include "compiler/op/verifier.h"
#include "compiler/script/printer.h"
#include "formats/file.h"
#include "tests/compiler/round_trip.h"
#include "tests/golden.h"

namespace ingot::importer {
namespace {

SharedBytes ReadModel(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return SharedBytes::Own(std::vector<std::byte>(data, data + text.size()));
}

// import MODEL [--input-shape SPEC] [--dim SPEC]: the typed import as text.
Result<std::string> Import(const golden::Case& golden) {
  std::istringstream words(golden.arguments);
  std::string file, option, value;
  words >> file;
  ImportOptions options;
  options.directory = golden::TestDirectory() + "/data/onnx";
  while (words >> option >> value) {
    if (option == "--dim") {
      INGOT_ASSIGN_OR_RETURN(DimRange range, ParseDimRange(value));
      options.dims.push_back(std::move(range));
    } else {
      INGOT_ASSIGN_OR_RETURN(InputShape shape, ParseInputShape(value));
      options.input_shapes.push_back(std::move(shape));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const ImportResult result,
                         ImportOnnx(ReadModel(golden::TestDirectory() + "/data/" + file), file, options));
  INGOT_RETURN_IF_ERROR(op::VerifyModule(result.module));
  const std::string difference = script::testing::ReadBackDifference(result.module, {.spans = true});
  CHECK_MESSAGE(difference.empty(), golden.path << ": " << difference);
  return script::PrintModule(result.module, {.golden = true, .spans = true});
}

TEST_CASE("ONNX import: golden") {
  static constexpr golden::Directive kDirectives[] = {{"import", Import}};
  golden::RunArea("importer", kDirectives);
}

TEST_CASE("ONNX import: a call of an operator that is not there is unsupported, which a report goes on after") {
  std::vector<ir::Binding> bindings;
  ImpliedBounds bounds;
  const OnnxNode node;
  const NodeImporter importer(node, 18, {}, {}, bindings, &bounds);
  const Status status = importer.Call("nn.no_such_row", {}).status();
  CHECK(status.code() == StatusCode::kUnsupportedModel);
  CHECK(status.message() == "there is no operator \"nn.no_such_row\" to make of it");
}

TEST_CASE("every row of the ONNX name map names an operator row, in order") {
  std::pair<std::string_view, std::string_view> previous;
  for (const OnnxOpRow& row : OnnxOps()) {
    CAPTURE(row.op_type);
    const std::pair key(row.domain, row.op_type);
    CHECK(previous < key);
    previous = key;
    CHECK((row.row == nullptr) != (row.import == nullptr));
    if (row.row != nullptr) CHECK(op::FindOp(row.row) != nullptr);
    CHECK(FindOnnxOp(row.op_type, row.domain) == &row);
  }
  CHECK(FindOnnxOp("NoSuchOp") == nullptr);
}

TEST_CASE("the list of imported operators is ordered, and holds those of every table") {
  const std::vector<std::string> ops = ImportedOps();
  CHECK(std::is_sorted(ops.begin(), ops.end()));
  CHECK(std::adjacent_find(ops.begin(), ops.end()) == ops.end());
  for (const std::string_view name : {"Conv", "If", "Loop", "OptionalGetElement", "Scan", "SequenceMap", "Shape",
                                      "com.microsoft.DynamicQuantizeLSTM"}) {
    CAPTURE(name);
    CHECK(std::binary_search(ops.begin(), ops.end(), std::string(name)));
  }
}

TEST_CASE("what is taken of each imported operator is listed, and of no other") {
  std::vector<std::string> listed;
  for (const OpForms& forms : AllOpForms()) listed.emplace_back(forms.name);
  CHECK(listed == ImportedOps());
  REQUIRE(FindOpForms("Abs") != nullptr);
  CHECK(TakenVersions(*FindOpForms("Abs")) == "6 to 28");  // another meaning before
  CHECK(TakenVersions(*FindOpForms("MatMul")) == "1 to 28");
  CHECK(TakenVersions(*FindOpForms("Gelu")) == "20 to 28");  // new then
  CHECK(TakenVersions(*FindOpForms("ai.onnx.ml.LabelEncoder")) == "1 to 5");
  CHECK(TakenVersions(*FindOpForms("com.microsoft.Gelu")) == "1");
  CHECK(FindOpForms("NoSuchOp") == nullptr);
}

TEST_CASE("the weights are not copied, and calls know their node") {
  const SharedBytes file = ReadModel(golden::TestDirectory() + "/data/digits.onnx");
  Result<ImportResult> result = ImportOnnx(file, "digits.onnx");
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  const ir::Function main = result->module.FindFunction("main");
  const ir::Binding& first = main->body->blocks.at(0).bindings.at(0);
  CHECK(first.span.ToString() == "digits.onnx: node_Conv_23");
  const ir::Call call = ir::Downcast<ir::CallNode>(first.value);
  const ir::Constant weight = ir::Downcast<ir::ConstantNode>(call->args.at(1));
  CHECK(weight->name == "0.weight");
  CHECK(weight->data->owner().use_count() > 1);  // the parsed file, shared by all weights
  CHECK(main->attrs.GetInt("num_input") == 1);
  CHECK(result->report.opset == 18);
  CHECK(result->report.unsupported.empty());
}

TEST_CASE("a support report lists what is not supported without failing") {
  const std::string path = golden::TestDirectory() + "/data/onnx/bad-unsupported.onnx";
  Result<SupportReport> report = CheckOnnx(ReadModel(path), "m.onnx");
  REQUIRE(report.ok());
  REQUIRE(report->unsupported.size() == 3);
  CHECK(report->unsupported[0].domain == "acme");
  CHECK(report->unsupported[0].opset == 1);
  CHECK(report->unsupported[1].op_type == "StringConcat");
  CHECK(report->unsupported[1].inputs == std::vector<std::string>{"?", "float32[batch, 3]"});
  CHECK(report->operators.size() == 5);
}

// Weights of 4 KiB and more are split off the message before protobuf sees it.
TEST_CASE("large weights stay where they are in the file; small and external ones are read all the same") {
  const SharedBytes file = ReadModel(golden::TestDirectory() + "/data/digits.onnx");
  Result<OnnxModel> model = ParseOnnxModel(file, "");
  REQUIRE(model.ok());
  int num_in_file = 0;
  for (const auto& [name, data] : model->graph.initializers) {
    const bool is_in_file = data->bytes().data() >= file.data() && data->bytes().data() < file.data() + file.size();
    CHECK(is_in_file == (data->bytes().size() >= 4096));
    num_in_file += is_in_file ? 1 : 0;
  }
  CHECK(num_in_file > 0);
}

TEST_CASE("external data: only files beneath the folder") {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("ingot-external-" + std::to_string(getpid()));
  const std::filesystem::path folder = root / "model";
  std::filesystem::create_directories(folder / "sub");
  const auto write = [](const std::filesystem::path& path) { std::ofstream(path) << "12345678"; };
  write(root / "outside.bin");
  write(folder / "in.bin");
  write(folder / "sub" / "in.bin");
  write(folder / "twice.bin");
  std::filesystem::create_hard_link(folder / "twice.bin", folder / "again.bin");
  std::filesystem::create_symlink(root / "outside.bin", folder / "out_link.bin");
  std::filesystem::create_symlink("..", folder / "up");
  std::filesystem::create_symlink("in.bin", folder / "in_link.bin");
  const auto open = [&](const std::string& relative) {
    return formats::InputFile::OpenBeneath(folder.string(), relative).status();
  };
  for (const char* name : {"in.bin", "sub/in.bin", "./in.bin", "sub//in.bin", "in_link.bin"}) {
    CAPTURE(name);
    CHECK(open(name).ok());
  }
  for (const std::string& name :
       {std::string(), std::string("../outside.bin"), std::string("sub/../../outside.bin"), std::string("sub/.."),
        std::string(".."), (root / "outside.bin").string(), (folder / "in.bin").string(), std::string("out_link.bin"),
        std::string("up/outside.bin"), std::string("again.bin"), std::string("in.bin\0x", 8)}) {
    CAPTURE(name);
    CHECK(open(name).code() == StatusCode::kBadInput);
  }
  for (const char* name : {"absent.bin", "sub", "."}) {
    CAPTURE(name);
    CHECK(open(name).code() == StatusCode::kIo);
  }
  std::filesystem::remove_all(root);
}

TEST_CASE("inputs that become constants decide shapes") {
  const SharedBytes file = ReadModel(golden::TestDirectory() + "/data/onnx/bad-dynamic-reshape.onnx");
  const auto constant = [](std::vector<int64_t> values) {
    const auto bytes = std::as_bytes(std::span(values));
    return ir::ConstantData::FromBytes(DataType::Int(64), {static_cast<int64_t>(values.size())},
                                       {bytes.begin(), bytes.end()});
  };
  ImportOptions options;
  options.constants = {{"to", constant({2, 6})}};
  Result<ImportResult> result = ImportOnnx(file, "m.onnx", options);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  CHECK(result->module.FindFunction("main")->params.size() == 1);
  options.constants = {{"two", constant({2, 6})}};
  CHECK(ImportOnnx(file, "m.onnx", options).status().message().find("did you mean \"to\"") != std::string::npos);
  options.constants = {{"to", ir::ConstantData::FromBytes(DataType::Int(32), {2}, std::vector<std::byte>(8))}};
  CHECK(ImportOnnx(file, "m.onnx", options).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("options: bad texts are refused") {
  for (const char* text :
       {"", "x", "=1", "x=1,", "x=,1", "x=a b", "x=-1", "x=n!", "x=n+(m)", "x=99999999999999999999"}) {
    CAPTURE(text);
    CHECK(ParseInputShape(text).status().code() == StatusCode::kInvalidArgument);
  }
  for (const char* text : {"", "n", "n=", "n=1..", "n=..4", "n=4..1", "n=-1", "n=a"}) {
    CAPTURE(text);
    CHECK(ParseDimRange(text).status().code() == StatusCode::kInvalidArgument);
  }
  CHECK(ParseInputShape("a=b:0=1,n,?")->input == "a=b:0");
  CHECK(ParseInputShape("scalar=")->dims.empty());
  CHECK(ParseInputShape("mask=n,past+1")->dims.at(1).symbol == "past+1");
  CHECK(ParseDimRange("n=3..5")->max == 5);
}

// Bytes that are no model, or a damaged one, are refused, or imported to a module that verifies.
void ImportHostile(std::span<const std::byte> bytes) {
  const SharedBytes copy = SharedBytes::Own(std::vector<std::byte>(bytes.begin(), bytes.end()));  // exact: for ASan
  Result<ImportResult> result = ImportOnnx(copy, "hostile.onnx");
  if (!result.ok()) return;
  const Status valid = op::VerifyModule(result->module);
  CHECK_MESSAGE(valid.ok(), valid.message());
}

TEST_CASE("hostile bytes: every truncation and bit flip of the small models") {
  for (const char* name : {"conv", "gemm", "shapes", "constants", "elementwise", "batch_norm", "softmax_7",
                           "shape_chains", "functions", "sparse", "external"}) {
    const SharedBytes file = ReadModel(golden::TestDirectory() + "/data/onnx/" + name + ".onnx");
    std::vector<std::byte> bytes(file.bytes.begin(), file.bytes.end());
    for (size_t size = 0; size < bytes.size(); ++size) ImportHostile(std::span(bytes).first(size));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::byte original = bytes[i];
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] = original ^ std::byte(1 << bit);
        ImportHostile(bytes);
      }
      bytes[i] = std::byte{0xFF};
      ImportHostile(bytes);
      bytes[i] = original;
    }
  }
}

TEST_CASE("hostile bytes: truncations and byte flips of the digit model") {
  const SharedBytes file = ReadModel(golden::TestDirectory() + "/data/digits.onnx");
  std::vector<std::byte> bytes(file.bytes.begin(), file.bytes.end());
  for (size_t size = 0; size < bytes.size(); size += 4001) ImportHostile(std::span(bytes).first(size));
  for (size_t i = 0; i < bytes.size(); i += i < 4000 ? 13 : 1009) {
    bytes[i] ^= std::byte{0x81};
    ImportHostile(bytes);
    bytes[i] ^= std::byte{0x81};
  }
}

// A length-delimited protobuf field.
std::string Field(int number, const std::string& value) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t length = value.size();
  for (; length > 0x7F; length >>= 7) out += static_cast<char>((length & 0x7F) | 0x80);
  return out + static_cast<char>(length) + value;
}

TEST_CASE("hostile bytes: messages nested 100,000 deep") {
  // The type of an input: a sequence of sequences of ... (TypeProto.sequence_type.elem_type); built from the inside
  // out, backwards.
  std::string reversed;
  for (int i = 0; i < 100'000; ++i) {
    std::string length;
    for (size_t rest = reversed.size(); true; rest >>= 7) {
      length += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
      if (rest <= 0x7F) break;
    }
    reversed.append(length.rbegin(), length.rend());
    reversed += i % 2 == 0 ? '\x0A' : '\x22';
  }
  const std::string type(reversed.rbegin(), reversed.rend());
  const std::string model = Field(7, Field(11, Field(1, "x") + Field(2, type)));
  Result<ImportResult> result = ImportOnnx(SharedBytes({}, std::as_bytes(std::span(model))), "nested.onnx");
  REQUIRE(!result.ok());
  CHECK(result.status().message().find("nests more than 100 deep") != std::string::npos);
}

TEST_CASE("a chain of 100,000 nodes is imported") {
  // Relu nodes: graph.node, field 1 of GraphProto, field 7 of ModelProto.
  constexpr int kNodes = 100'000;
  const std::string type =
      Field(2, Field(1, std::string("\x08\x01", 2) + Field(2, Field(1, std::string("\x08\x03", 2)))));
  std::string graph;
  for (int i = 0; i < kNodes; ++i) {
    graph += Field(1, Field(1, "v" + std::to_string(i)) + Field(2, "v" + std::to_string(i + 1)) + Field(4, "Relu"));
  }
  graph += Field(11, Field(1, "v0") + type) + Field(12, Field(1, "v" + std::to_string(kNodes)));
  const std::string model = Field(7, graph) + Field(8, std::string("\x10\x12", 2));
  const auto* data = reinterpret_cast<const std::byte*>(model.data());
  Result<ImportResult> result =
      ImportOnnx(SharedBytes::Own(std::vector<std::byte>(data, data + model.size())), "chain.onnx");
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  CHECK(result->module.FindFunction("main")->body->blocks.at(0).bindings.size() == kNodes);
}

}  // namespace
}  // namespace ingot::importer
