// Construction and text of types and signatures. A few functions of Program, Constant and ParamRole stand here too.
#include "vm/program/type.h"

#include <algorithm>

#include "runtime/check.h"
#include "vm/program/program.h"
#include "vm/program/quote.h"

namespace ingot::vm {
namespace {

constexpr const char* kKindNames[kNumValueKinds] = {"int",    "float", "bool",     "string",  "dtype", "shape",
                                                    "tensor", "tuple", "optional", "closure", "object"};
constexpr const char* kStorageNames[kNumStorages] = {"owned", "arena", "constant", "borrowed", "borrowed_mut"};

std::string JoinTypes(const std::vector<Type>& types, std::span<const std::string> symbol_names) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + types[i].ToString(symbol_names);
  return out + ")";
}

std::string JoinDims(const std::vector<Dim>& dims, std::span<const std::string> symbol_names) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += dims[i] ? dims[i]->ToString(symbol_names) : "?";
  }
  return out + "]";
}

std::string JoinNamed(const std::vector<NamedType>& types, std::span<const std::string> symbol_names) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) {
    Type type = types[i].type;
    if (type.storage == Storage::kBorrowed) type.storage = Storage::kOwned;  // what every parameter is
    StrAppend(out, {i ? ", " : "", types[i].name, ": ", type.ToString(symbol_names)});
  }
  return out + ")";
}

}  // namespace

const char* ValueKindName(ValueKind kind) { return kKindNames[static_cast<int>(kind)]; }
const char* StorageName(Storage storage) { return kStorageNames[static_cast<int>(storage)]; }
const char* ParamRoleName(ParamRole role) {
  constexpr const char* kNames[] = {"in", "out", "inout"};
  return kNames[static_cast<int>(role)];
}

Type Type::Shape(std::vector<Dim> dims) {
  Type t = Scalar(ValueKind::kShape);
  t.dims = std::move(dims);
  return t;
}

Type Type::Tensor(DataType dtype, std::vector<Dim> dims, Storage storage, int device) {
  Type t = Scalar(ValueKind::kTensor);
  t.dtype = dtype;
  t.dims = std::move(dims);
  t.storage = storage;
  t.device = static_cast<uint8_t>(device);
  return t;
}

Type Type::Tuple(std::vector<Type> elements) {
  Type t = Scalar(ValueKind::kTuple);
  t.elements = std::move(elements);
  return t;
}

Type Type::Optional(Type element) {
  Type t = Scalar(ValueKind::kOptional);
  t.elements.push_back(std::move(element));
  return t;
}

Type Type::Closure(std::vector<Type> params, std::vector<Type> results) {
  Type t = Scalar(ValueKind::kClosure);
  t.elements = std::move(params);
  t.results = std::move(results);
  return t;
}

Type Type::Object(std::string class_name) {
  Type t = Scalar(ValueKind::kObject);
  t.class_name = std::move(class_name);
  return t;
}

bool Type::has_constant_dims() const {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim && dim->is_constant(); });
}

std::string Type::ToString(std::span<const std::string> symbol_names) const {
  switch (kind) {
    case ValueKind::kInt:
    case ValueKind::kFloat:
    case ValueKind::kBool:
    case ValueKind::kString:
    case ValueKind::kDataType:
      return ValueKindName(kind);
    case ValueKind::kShape:
      return StrCat({"shape", JoinDims(dims, symbol_names)});
    case ValueKind::kTensor:
      return (storage == Storage::kOwned ? "" : StrCat({StorageName(storage), " "})) + dtype.ToString() +
             JoinDims(dims, symbol_names) + (device ? StrCat({"@", device}) : "");
    case ValueKind::kTuple:
      return StrCat({"tuple", JoinTypes(elements, symbol_names)});
    case ValueKind::kOptional:
      return StrCat({"optional", JoinTypes(elements, symbol_names)});
    case ValueKind::kClosure:
      return StrCat({"fn", JoinTypes(elements, symbol_names), " -> ", JoinTypes(results, symbol_names)});
    case ValueKind::kObject:
      return StrCat({"object(", Quote(class_name), ")"});
  }
  INGOT_UNREACHABLE();
}

std::vector<std::string> Signature::symbol_names() const {
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols) names.push_back(symbol.name);
  return names;
}

std::string Signature::ToString() const {
  const std::vector<std::string> names = symbol_names();
  return StrCat({JoinNamed(params, names), " -> ", JoinNamed(results, names)});
}

int64_t Constant::size_bytes() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return dtype.SizeBytes(count).value();
}

const Function* Program::FindFunction(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace ingot::vm
