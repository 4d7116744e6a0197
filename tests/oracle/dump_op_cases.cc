// Writes every case of tests/compiler/op/cases.h, with what the reference evaluation gives, as JSON to stdout:
// tests/oracle/op_reference.py compares them with NumPy and ONNX Runtime.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "compiler/op/reference.h"
#include "tests/compiler/op/cases.h"

namespace ingot::op {
namespace {

using Json = nlohmann::json;

// Numbers as text, since JSON has neither NaN nor infinities.
Json ToJson(const ReferenceTensor& tensor) {
  Json values = Json::array();
  for (int64_t i = 0; i < CountOf(tensor.dims); ++i) {
    const auto at = static_cast<size_t>(i);
    if (!tensor.dtype.is_floating()) {
      values.push_back(std::to_string(tensor.ints[at]));
      continue;
    }
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", tensor.floats[at]);
    values.push_back(text);
  }
  return {{"dtype", tensor.dtype.ToString()}, {"dims", tensor.dims}, {"values", values}};
}

Json ToJson(const ir::AttrValue& value) {
  if (const auto* number = value.get<bool>()) return *number;
  if (const auto* number = value.get<int64_t>()) return *number;
  if (const auto* number = value.get<double>()) return *number;
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* dtype = value.get<DataType>()) return dtype->ToString();
  Json list;  // None stays null
  if (const auto* items = value.get<ir::AttrList>()) {
    list = Json::array();
    for (const ir::AttrValue& item : *items) list.push_back(ToJson(item));
  }
  return list;
}

Json ToJson(const ir::PrimExpr& value) {
  if (const auto* number = ir::As<ir::FloatImmNode>(value)) return number->value;
  return *ir::AsConstInt(value);
}

// An argument that is no tensor: a number, or a list of them; null for a tensor.
Json ToJson(const ir::Expr& arg) {
  if (const auto* scalar = ir::As<ir::PrimValueNode>(arg)) return ToJson(scalar->value);
  Json list;
  if (const auto* shape = ir::As<ir::ShapeExprNode>(arg)) {
    list = Json::array();
    for (const ir::PrimExpr& dim : shape->dims) list.push_back(ToJson(dim));
  }
  if (const auto* tuple = ir::As<ir::TupleNode>(arg)) {
    list = Json::array();
    for (const ir::Expr& field : tuple->fields) list.push_back(ToJson(field));
  }
  return list;
}

int Dump() {
  Json cases = Json::array();
  for (const OpCase& c : AllCases()) {
    const Result<ir::Call> call = CallOf(c);
    const Result<std::vector<ReferenceTensor>> result = EvaluateReference(c);
    if (!call.ok() || !result.ok()) {
      std::cerr << c.Name() << ": " << (call.ok() ? result.status() : call.status()).message() << "\n";
      return 1;
    }
    Json inputs = Json::array();
    for (const ReferenceTensor& input : c.inputs) inputs.push_back(ToJson(input));
    Json outputs = Json::array();
    for (const ReferenceTensor& output : *result) outputs.push_back(ToJson(output));
    Json args = Json::array();
    for (const ir::Expr& arg : (*call)->args) args.push_back(ToJson(arg));
    Json attrs = Json::object();
    for (const auto& [name, value] : (*call)->attrs.items()) attrs[name] = ToJson(value);
    cases.push_back(
        {{"op", c.op}, {"label", c.label}, {"attrs", attrs}, {"args", args}, {"inputs", inputs}, {"outputs", outputs}});
  }
  std::cout << cases.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace ingot::op

int main() { return ingot::op::Dump(); }
