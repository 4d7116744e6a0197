// Values of a graph that is evaluated on the host (evaluate.h): tensors over shared bytes (tensors that share memory in
// a memory plan share it here too), shapes, scalars, tuples, sequences and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::validate {

struct Environment;

using Bytes = std::vector<std::byte>;

// A compact, row-major tensor at an offset in bytes that other tensors may share.
struct HostTensor {
  DataType dtype;
  std::vector<int64_t> dims;
  std::shared_ptr<Bytes> storage;
  size_t offset = 0;
  size_t size_bytes = 0;
  uint64_t tenant = 0;  // which tensor of an arena it is (arena_tenants.h); 0: of none

  std::span<std::byte> bytes() const { return std::span(*storage).subspan(offset, size_bytes); }
  // "float32[2, 3]".
  std::string TypeToString() const;
  // Returns a copy with bytes of its own.
  HostTensor Copy() const;
};
// Returns a tensor whose bytes are all `fill`. kDeadlineExceeded for 2^40 bytes or more; an error if dims are negative
// or their product overflows.
Result<HostTensor> NewTensor(DataType dtype, std::vector<int64_t> dims, std::byte fill = std::byte{0});

enum class ValueKind : uint8_t {
  kNothing,   // a string, a dtype, the result of a message
  kTensor,    // tensor
  kShape,     // shape
  kPrim,      // shape[0], integers and truth values alone
  kTuple,     // fields; sequences, too
  kStorage,   // tensor: bytes without a type
  kFunction,  // function, environment; fields: bound last arguments
};
struct Value {
  ValueKind kind = ValueKind::kNothing;
  HostTensor tensor;
  std::vector<int64_t> shape;
  std::vector<Value> fields;
  ir::Function function;
  std::shared_ptr<Environment> environment;  // of a function in a function

  static Value Of(HostTensor tensor);
  static Value OfShape(std::vector<int64_t> shape);
  static Value OfPrim(int64_t value);
  static Value OfTuple(std::vector<Value> fields);
};

// The tensors of the values; tuples are flattened, shapes and scalars become tensors of int64.
std::vector<HostTensor> TensorsOf(std::span<const Value> values);

}  // namespace ingot::validate
