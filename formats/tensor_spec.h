// Tensor specifications on command lines:
//   4xf32=1 2 3 4     dtype and dims, then elements
//   4xf32=@f.bin      raw bytes
//   @f.npy  @f.npz:key  @f.safetensors:key
//   rand  randint:lo,hi  zeros  ones     of the type that the signature asks for
// Short dtypes are MLIR's: f16 f32 f64 bf16 i1 i8 i16 i32 i64 ui8 ...; names like float32 are taken too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

// What the signature says of an input; used by rand, randint, zeros and ones.
struct ExpectedTensor {
  DataType dtype;
  std::span<const int64_t> dims;  // all known: the caller chose values for symbolic ones
};

// Makes the tensor. `seed` makes rand and randint repeatable: floats uniform in [-1, 1), integers in [0, 10), bools
// either. `expected` may be null; then the forms that need a type are refused.
Result<Tensor> MakeTensorFromSpec(std::string_view spec, const ExpectedTensor* expected, uint64_t seed);

}  // namespace ingot::formats
