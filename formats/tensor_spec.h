// Tensor specifications on command lines:
//   4xf32=1 2 3 4     a type, then its elements (separated by spaces or commas, brackets are decoration); one element
//                     fills the whole tensor; f32=1 is a scalar
//   4xf32=@f.bin      the packed bytes of a file
//   @f.npy            a tensor file that holds one tensor
//   @f.npz:key  @f.safetensors:key
//   rand              floats in [-1, 1), integers in [0, 10), bools either
//   randint:lo,hi     whole numbers in [lo, hi)
//   zeros  ones
// The last four take the type that the signature asks for, or state one: 4xf32=rand. Short dtypes are MLIR's: f16 f32
// f64 bf16 i1 i8 i16 i32 i64 ui8 ...; names like float32 are taken too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

// The type that the signature gives an input; used by rand, randint, zeros and ones.
struct ExpectedTensor {
  DataType dtype;
  std::span<const int64_t> dims;  // all known: the caller chose values for symbolic ones
};

// Makes the tensor; rand and randint depend on the seed alone, on every machine. `expected` may be null; then the forms
// that need a type are refused. The caller checks whether a tensor that states its own type is the expected one.
Result<Tensor> MakeTensorFromSpec(std::string_view spec, const ExpectedTensor* expected, uint64_t seed);

}  // namespace ingot::formats
