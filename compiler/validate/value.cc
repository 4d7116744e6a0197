// Constructors of values, and their flattening to tensors; the evaluator and the draws both use them.
#include "compiler/validate/value.h"

#include <cstring>

#include "runtime/tensor.h"

namespace ingot::validate {

std::string HostTensor::TypeToString() const { return ShapeToString(dtype, dims); }

HostTensor HostTensor::Copy() const {
  HostTensor copy = *this;
  const std::span<const std::byte> all = bytes();
  copy.storage = std::make_shared<Bytes>(all.begin(), all.end());
  copy.offset = 0;
  copy.tenant = 0;
  return copy;
}

Result<HostTensor> NewTensor(DataType dtype, std::vector<int64_t> dims, std::byte fill) {
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t size, dtype.SizeBytes(count));
  if (size >= int64_t{1} << 40) {
    return Status(StatusCode::kDeadlineExceeded, "a tensor of " + std::to_string(size) + " bytes");
  }
  const auto size_bytes = static_cast<size_t>(size);
  return HostTensor{dtype, std::move(dims), std::make_shared<Bytes>(size_bytes, fill), 0, size_bytes};
}

Value Value::Of(HostTensor tensor) {
  Value value;
  value.kind = ValueKind::kTensor;
  value.tensor = std::move(tensor);
  return value;
}

Value Value::OfShape(std::vector<int64_t> shape) {
  Value value;
  value.kind = ValueKind::kShape;
  value.shape = std::move(shape);
  return value;
}

Value Value::OfPrim(int64_t number) {
  Value value;
  value.kind = ValueKind::kPrim;
  value.shape = {number};
  return value;
}

Value Value::OfTuple(std::vector<Value> fields) {
  Value value;
  value.kind = ValueKind::kTuple;
  value.fields = std::move(fields);
  return value;
}

std::vector<HostTensor> TensorsOf(std::span<const Value> values) {
  std::vector<HostTensor> tensors;
  for (const Value& value : values) {
    if (value.kind == ValueKind::kTensor) tensors.push_back(value.tensor);
    if (value.kind == ValueKind::kShape || value.kind == ValueKind::kPrim) {
      HostTensor numbers = *NewTensor(DataType::Int(64), {static_cast<int64_t>(value.shape.size())});
      std::memcpy(numbers.bytes().data(), value.shape.data(), numbers.size_bytes);
      tensors.push_back(std::move(numbers));
    }
    if (value.kind == ValueKind::kTuple) {
      const std::vector<HostTensor> inner = TensorsOf(value.fields);
      tensors.insert(tensors.end(), inner.begin(), inner.end());
    }
  }
  return tensors;
}

}  // namespace ingot::validate
