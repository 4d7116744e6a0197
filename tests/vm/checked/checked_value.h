// Values of the checked interpreter. Each knows what it is, whatever the verifier concluded: its kind, and for a tensor
// dtype, dims, storage, whether it may be written, the plan entry that it lies in, and for each byte of its memory
// whether anybody wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm::checked {

enum class ByteState : uint8_t { kUnwritten, kWritten, kStale };  // stale: zero, or what an earlier call left there

struct Memory {
  Memory(Storage o, int64_t size, ByteState state)
      : origin(o), bytes(static_cast<size_t>(size)), states(static_cast<size_t>(size), state) {}
  const Storage origin;
  bool is_alive = true;  // an arena ends with its call
  std::vector<uint8_t> bytes;
  std::vector<ByteState> states;
};

struct CheckedTensor {
  std::shared_ptr<Memory> memory;
  int64_t offset = 0;
  DataType dtype;
  std::vector<int64_t> dims;
  Storage storage = Storage::kOwned;
  uint8_t device = 0;
  bool is_writable = true;
  int64_t entry = -1;  // of the plan of the function that runs

  int64_t size_bytes() const {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count * dtype.bits * dtype.lanes / 8;
  }
};

struct CheckedValue {
  bool is_present = false;  // a register that was written and not released
  ValueKind kind = ValueKind::kInt;
  int64_t number = 0;  // ints and bools
  double real = 0;
  std::string text;
  DataType dtype;
  std::vector<int64_t> extents;
  CheckedTensor tensor;
  // Of tuples; of optionals one or none; what a closure has captured.
  std::shared_ptr<const std::vector<CheckedValue>> elements;
  // Of closures: the function, and the types of its other parameters and its results.
  FunctionId function;
  std::shared_ptr<const Type> closure;

  static CheckedValue Of(ValueKind kind) {
    CheckedValue value;
    value.is_present = true;
    value.kind = kind;
    return value;
  }
  static CheckedValue Number(ValueKind kind, int64_t number) {
    CheckedValue value = Of(kind);
    value.number = number;
    return value;
  }
  static CheckedValue Holder(ValueKind kind, std::vector<CheckedValue> elements) {
    CheckedValue value = Of(kind);
    value.elements = std::make_shared<const std::vector<CheckedValue>>(std::move(elements));
    return value;
  }
};

}  // namespace ingot::vm::checked
