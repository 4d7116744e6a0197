// One method per production of the grammar of types; formulas are parsed by DimCode::Parse.
#include "vm/text/assembler_types.h"

#include "vm/program/limits.h"

namespace ingot::vm {

Signature TypeParser::ParseSignature() {
  Signature signature;
  if (in_.Take("[")) {
    while (in_.ok() && !in_.Take("]")) {
      Symbol symbol;
      symbol.name = in_.ExpectName();
      if (in_.Take("in")) {
        symbol.min = in_.ExpectInt();
        in_.Expect("..");
        symbol.max = in_.ExpectInt();
      }
      if (in_.Take("state")) {
        in_.Expect("#");
        symbol.state = StateId(static_cast<uint32_t>(in_.ExpectUnsigned(UINT32_MAX - 1)));
      }
      signature.symbols.push_back(std::move(symbol));
      if (!in_.Peek("]")) in_.Expect(",");
    }
  }
  const std::vector<std::string> names = signature.symbol_names();
  signature.params = ParseNamedTypes(names, Storage::kBorrowed);
  in_.Expect("->");
  signature.results = ParseNamedTypes(names, Storage::kOwned);
  return signature;
}

std::vector<NamedType> TypeParser::ParseNamedTypes(std::span<const std::string> names, Storage usual) {
  std::vector<NamedType> types;
  in_.Expect("(");
  while (in_.ok() && !in_.Take(")")) {
    NamedType type;
    type.name = in_.ExpectName();
    in_.Expect(":");
    type.type = ParseType(names, usual, 0);
    types.push_back(std::move(type));
    if (!in_.Peek(")")) in_.Expect(",");
  }
  return types;
}

std::vector<Type> TypeParser::ParseTypes(std::span<const std::string> names, int depth) {
  std::vector<Type> types;
  in_.Expect("(");
  while (in_.ok() && !in_.Take(")")) {
    types.push_back(ParseType(names, Storage::kOwned, depth + 1));
    if (!in_.Peek(")")) in_.Expect(",");
  }
  return types;
}

Type TypeParser::ParseType(std::span<const std::string> names, Storage usual, int depth) {
  const size_t at = in_.position();
  if (depth > kMaxTypeDepth) in_.Fail("types nested deeper than " + std::to_string(kMaxTypeDepth));
  std::string word = in_.ExpectWord("a type");
  Storage storage = usual;
  for (int i = 0; i < kNumStorages; ++i) {
    if (word != StorageName(static_cast<Storage>(i))) continue;
    storage = static_cast<Storage>(i);
    word = in_.ExpectWord("an element type");
    break;
  }
  if (!in_.ok()) return Type();
  if (word == "shape") return Type::Shape(ParseTypeDims(names));
  if (word == "tuple") return Type::Tuple(ParseTypes(names, depth));
  if (word == "fn") {
    std::vector<Type> params = ParseTypes(names, depth);
    in_.Expect("->");
    return Type::Closure(std::move(params), ParseTypes(names, depth));
  }
  if (word == "optional") {
    std::vector<Type> types = ParseTypes(names, depth);
    if (in_.ok() && types.size() != 1) in_.FailAt(at, "an optional has one type");
    return in_.ok() ? Type::Optional(std::move(types[0])) : Type();
  }
  if (word == "object") {
    in_.Expect("(");
    std::string class_name = in_.ExpectString();
    in_.Expect(")");
    return Type::Object(std::move(class_name));
  }
  if (!in_.Peek("[")) {
    for (ValueKind kind :
         {ValueKind::kInt, ValueKind::kFloat, ValueKind::kBool, ValueKind::kString, ValueKind::kDataType}) {
      if (word == ValueKindName(kind)) return Type::Scalar(kind);
    }
  }
  const Result<DataType> dtype = DataType::Parse(word);
  if (!dtype.ok()) {
    in_.FailAt(at, "expected a type: " + dtype.status().message());
    return Type();
  }
  std::vector<vm::Dim> dims = ParseTypeDims(names);
  int device = 0;
  if (in_.Take("@")) device = static_cast<int>(in_.ExpectUnsigned(UINT8_MAX));
  return Type::Tensor(*dtype, std::move(dims), storage, device);
}

std::vector<vm::Dim> TypeParser::ParseTypeDims(std::span<const std::string> names) {
  std::vector<vm::Dim> dims;
  in_.Expect("[");
  while (in_.ok() && !in_.Take("]")) {
    if (in_.Take("?")) {
      dims.emplace_back();
    } else {
      dims.emplace_back(ParseDim(",]", names));
    }
    if (!in_.Peek("]")) in_.Expect(",");
  }
  return dims;
}

DataType TypeParser::ParseDataType() {
  const size_t at = in_.position();
  const std::string word = in_.ExpectWord("an element type");
  if (!in_.ok()) return {};
  const Result<DataType> dtype = DataType::Parse(word);
  if (!dtype.ok()) in_.FailAt(at, dtype.status().message());
  return dtype.ok() ? *dtype : DataType();
}

DimCode TypeParser::ParseDim(std::string_view stops, std::span<const std::string> names) {
  const size_t at = in_.position();
  return ToDim(at, in_.TakeUntil(stops), names);
}

DimCode TypeParser::ToDim(size_t at, std::string_view text, std::span<const std::string> names) {
  if (!in_.ok()) return DimCode();
  Result<DimCode> code = DimCode::Parse(text, names);
  if (!code.ok()) in_.FailAt(at, code.status().message());
  return code.ok() ? std::move(*code) : DimCode();
}

std::vector<DimCode> TypeParser::ParseDimList(std::span<const std::string> names) {
  std::vector<DimCode> dims;
  in_.Expect("[");
  while (in_.ok() && !in_.Take("]")) {
    dims.push_back(ParseDim(",]", names));
    if (!in_.Peek("]")) in_.Expect(",");
  }
  return dims;
}

}  // namespace ingot::vm
