// Types of registers, parameters and results. A tensor type states dtype, dims, device and storage: where the memory
// comes from, on which the verifier's lifetime rules depend. A dim is a formula over the function's symbols, or unknown
// ("?"): unknown dims are compared when the value is used, known ones are proved when the file is opened. A register
// has one type for the whole function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data_type.h"
#include "runtime/dim_code.h"
#include "vm/program/ids.h"

namespace ingot::vm {

// Kinds of values; the numbers are in the file and only grow.
enum class ValueKind : uint8_t {
  kInt = 0,    // int64
  kFloat = 1,  // float64
  kBool = 2,
  kString = 3,
  kDataType = 4,
  kShape = 5,  // a list of int64 extents
  kTensor = 6,
  kTuple = 7,
  kOptional = 8,
  kClosure = 9,
  kObject = 10,  // anything else, known by a class name; class "any" holds a value of any kind
};
constexpr int kNumValueKinds = 11;
const char* ValueKindName(ValueKind kind);

// Where a tensor register's memory comes from.
enum class Storage : uint8_t {
  kOwned = 0,        // reference-counted; the only one that may be returned, captured, or put into a tuple
  kArena = 1,        // a slot of this function's memory plan; ends with the activation
  kConstant = 2,     // the file's bytes; read only
  kBorrowed = 3,     // the caller's, read only: tensor parameters
  kBorrowedMut = 4,  // the caller's or the context's (state), may be written: output parameters of prim functions
};
constexpr int kNumStorages = 5;
const char* StorageName(Storage storage);

using Dim = std::optional<DimCode>;  // nullopt: unknown

struct Type {
  ValueKind kind = ValueKind::kInt;
  // Tensors.
  DataType dtype;
  Storage storage = Storage::kOwned;
  uint8_t device = 0;     // index into Program::devices
  std::vector<Dim> dims;  // tensors and shapes: one per axis, over the function's symbols
  // Tuples: the elements. Optionals: one. Closures: the parameters.
  std::vector<Type> elements;
  std::vector<Type> results;  // closures
  std::string class_name;     // objects

  static Type Scalar(ValueKind kind) {
    Type t;
    t.kind = kind;
    return t;
  }
  static Type Int() { return Scalar(ValueKind::kInt); }
  static Type Float() { return Scalar(ValueKind::kFloat); }
  static Type Bool() { return Scalar(ValueKind::kBool); }
  static Type String() { return Scalar(ValueKind::kString); }
  static Type DType() { return Scalar(ValueKind::kDataType); }
  static Type Shape(std::vector<Dim> dims);
  static Type Tensor(DataType dtype, std::vector<Dim> dims, Storage storage = Storage::kOwned, int device = 0);
  static Type Tuple(std::vector<Type> elements);
  static Type Optional(Type element);
  static Type Closure(std::vector<Type> params, std::vector<Type> results);
  static Type Object(std::string class_name);

  bool is_tensor() const { return kind == ValueKind::kTensor; }
  int rank() const { return static_cast<int>(dims.size()); }
  // All dims of a tensor or shape are constants.
  bool has_constant_dims() const;
  // Such as "float32[n, 64]", "arena float32[?]@1", "tuple(int, float32[])", "fn(int) -> (int)", "object(\"any\")".
  // Storage "owned" is the default and not printed.
  std::string ToString(std::span<const std::string> symbol_names = {}) const;

  friend bool operator==(const Type&, const Type&) = default;
};

// A symbolic integer of a signature. It is bound by a parameter's dim, or by the value of an int64 state of rank 0 (how
// far a cache is filled), with which dims of parameters are then compared. min <= value <= max is checked when it is
// bound, and that no argument's dim is above kMaxBoundDim: formulas of some dims then stay within 64 bits.
struct Symbol {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
  std::optional<StateId> state = std::nullopt;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct NamedType {
  std::string name;
  Type type;
  friend bool operator==(const NamedType&, const NamedType&) = default;
};

// Symbols, parameters and results. Tensor parameters are borrowed (or borrowed_mut, when the function
// writes them), results are owned. A symbol is bound by the first parameter dim (then shape element) that is this
// symbol alone; every other known dim is compared. A result's dim may be unknown.
struct Signature {
  std::vector<Symbol> symbols;
  std::vector<NamedType> params;
  std::vector<NamedType> results;
  std::vector<std::string> symbol_names() const;
  // Such as "(image: float32[n, 1, 8, 8]) -> (logits: float32[n, 10])".
  std::string ToString() const;
  friend bool operator==(const Signature&, const Signature&) = default;
};

}  // namespace ingot::vm
