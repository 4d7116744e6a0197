#include "tests/vm/run_directive.h"

#include <cstring>
#include <filesystem>
#include <sstream>

#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

template <typename T>
void Append(std::vector<uint8_t>& bytes, T value) {
  const auto* begin = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

}  // namespace

Result<Value> ParseArgument(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
  if (kind == "int") return Value(int64_t{std::stoll(rest)});
  if (kind == "float") return Value(std::stod(rest));
  if (kind == "bool") return Value(rest == "true");
  if (kind == "str") return MakeString(rest);
  std::vector<int64_t> dims;
  if (kind == "shape") {
    for (const std::string& part : Split(rest, ',')) dims.push_back(std::stoll(part));
    return Value(ShapeValue{dims});
  }
  const size_t bracket = kind.find('[');
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DataType::Parse(kind.substr(0, bracket)));
  for (const std::string& part : Split(kind.substr(bracket + 1, kind.size() - bracket - 2), ','))
    dims.push_back(std::stoll(part));
  std::vector<uint8_t> bytes;
  for (const std::string& part : Split(rest, ',')) {
    if (dtype == DataType::Float(32)) Append(bytes, std::stof(part));
    if (dtype == DataType::Float(64)) Append(bytes, std::stod(part));
    if (dtype == DataType::Int(64)) Append(bytes, static_cast<int64_t>(std::stoll(part)));
    if (dtype == DataType::Int(32)) Append(bytes, static_cast<int32_t>(std::stoll(part)));
    if (dtype.total_bits() == 8) Append(bytes, static_cast<uint8_t>(std::stoll(part)));
  }
  INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromBytes(dtype, dims, bytes));
  return Value(std::move(tensor));
}

namespace {

std::string ShowNumber(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

std::string ShowValue(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* f = std::get_if<double>(&value)) return ShowNumber(*f);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    std::string out = tensor->TypeToString() + " =";
    const auto list = [&](const auto& elements) {
      for (const auto& element : elements) out += " " + ShowNumber(static_cast<double>(element));
    };
    if (tensor->dtype() == DataType::Float(32)) list(tensor->Elements<float>());
    if (tensor->dtype() == DataType::Float(64)) list(tensor->Elements<double>());
    if (tensor->dtype() == DataType::Int(64)) list(tensor->Elements<int64_t>());
    if (tensor->dtype() == DataType::Int(32)) list(tensor->Elements<int32_t>());
    if (tensor->dtype().total_bits() == 8) list(tensor->Elements<uint8_t>());
    return out;
  }
  if (const auto* object = std::get_if<Ref<Object>>(&value)) {
    if (const auto* text = dynamic_cast<const StringObject*>(object->get())) return "\"" + text->text + "\"";
    if (const auto* tuple = dynamic_cast<const TupleObject*>(object->get())) {
      std::string out = std::string(ValueKindName(tuple->kind())) + "(";
      for (size_t i = 0; i < tuple->elements().size(); ++i) out += (i ? ", " : "") + ShowValue(tuple->elements()[i]);
      return out + ")";
    }
  }
  return DescribeValue(value);
}

Result<std::string> RunRun(const golden::Case& golden) {
  std::string log, entry;
  std::vector<Value> arguments;
  OpenOptions open;
  ContextOptions options;
  int times = 1;
  bool checks_finite = false;
  for (const std::string& word : Split(golden.arguments, ' ')) {
    if (entry.empty()) {
      entry = word;
    } else if (word == "--stub") {
      open.stub_kernels = true;
    } else if (word == "--twice") {
      times = 2;
    } else if (word == "--check-finite") {
      checks_finite = true;
    } else if (word.starts_with("--fuel=")) {
      options.fuel = std::stoll(word.substr(7));
    } else {
      INGOT_ASSIGN_OR_RETURN(Value value, ParseArgument(word));
      arguments.push_back(std::move(value));
    }
  }
  const std::string name = std::filesystem::path(golden.path).filename().string();
  INGOT_ASSIGN_OR_RETURN(const Program program, Assemble(golden.input, name));
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, EncodeProgram(program));
  test::CheckRoundTrip(program);
  InstanceOptions instance_options;
  instance_options.num_threads = 1;
  instance_options.log = [&](std::string_view message) { log += std::string(message) + "\n"; };
  INGOT_ASSIGN_OR_RETURN(auto instance, Instance::Create(instance_options));
  open.find_kernel = test::FindTestKernel;
  options.externals["double_it"].call = [](std::span<const Value> args) -> Result<std::vector<Value>> {
    return std::vector<Value>{Value(std::get<int64_t>(args[0]) * 2)};
  };
  options.externals["wrong"].call = [](std::span<const Value>) -> Result<std::vector<Value>> {
    return std::vector<Value>{Value(1.5)};
  };
  INGOT_ASSIGN_OR_RETURN(const auto executable,
                         Executable::OpenMemory(instance, SharedBytes::Own(std::move(bytes)), name, open));
  INGOT_ASSIGN_OR_RETURN(const auto context, Context::Create(executable, std::move(options)));
  context->set_check_finite(checks_finite);
  INGOT_ASSIGN_OR_RETURN(const Function* function, executable->Find(entry));
  std::string first;
  for (int i = 0; i < times; ++i) {
    log.clear();
    INGOT_ASSIGN_OR_RETURN(const std::vector<Value> results, context->Invoke(*function, arguments));
    std::string out = log;
    for (size_t k = 0; k < results.size(); ++k)
      out += function->signature.results[k].name + ": " + ShowValue(results[k]) + "\n";
    if (i > 0 && out != first) return Status(StatusCode::kFailed, "the second call gives\n" + out);
    first = out;
  }
  return first;
}

}  // namespace ingot::vm
