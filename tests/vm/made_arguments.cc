#include "tests/vm/made_arguments.h"

#include <algorithm>
#include <utility>

namespace ingot::test {
namespace {

std::optional<vm::Value> MakeArgument(const vm::Type& type, std::span<const int64_t> symbols) {
  std::vector<int64_t> dims;
  for (const vm::Dim& dim : type.dims) {
    const int64_t extent = dim ? dim->Evaluate(symbols).ok() ? *dim->Evaluate(symbols) : -1 : 1;
    if (extent < 0 || extent > 1024) return std::nullopt;
    dims.push_back(extent);
  }
  switch (type.kind) {
    case vm::ValueKind::kInt:
      return vm::Value(int64_t{3});
    case vm::ValueKind::kFloat:
      return vm::Value(1.5);
    case vm::ValueKind::kBool:
      return vm::Value(true);
    case vm::ValueKind::kShape:
      return vm::Value(vm::ShapeValue{dims});
    case vm::ValueKind::kTensor: {
      const Result<int64_t> count = CountElements(dims);
      if (!count.ok() || *count > 1 << 16) return std::nullopt;
      Result<Tensor> tensor = Tensor::Allocate(type.dtype, dims);
      if (!tensor.ok()) return std::nullopt;
      for (uint8_t& byte : tensor->mutable_bytes()) byte = 1;
      return vm::Value(std::move(*tensor));
    }
    case vm::ValueKind::kDataType:
      return vm::Value(DataType::Float(32));
    case vm::ValueKind::kString:
      return vm::MakeString("text");
    case vm::ValueKind::kTuple:
    case vm::ValueKind::kOptional:
    case vm::ValueKind::kClosure:
    case vm::ValueKind::kObject:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<vm::Value>> MakeArguments(const vm::Function& function) {
  std::vector<int64_t> symbols;
  for (const vm::Symbol& symbol : function.signature.symbols) symbols.push_back(std::max<int64_t>(symbol.min, 1));
  std::vector<vm::Value> arguments;
  for (const vm::NamedType& param : function.signature.params) {
    std::optional<vm::Value> value = MakeArgument(param.type, symbols);
    if (!value) return std::nullopt;
    arguments.push_back(std::move(*value));
  }
  return arguments;
}

}  // namespace ingot::test
