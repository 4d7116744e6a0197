// Matrix products of 8-bit integers: matmul_integer, as models have it, and what packing.h makes of it: the bytes of
// both factors as words of four (pack_bytes), and a product of words (matmul_bytes), which kernels compute with the
// instructions that CPUs have for it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/linear.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/byte_products.h"

namespace ingot::op {
namespace {

const DataType kInt32 = DataType::Int(32);
const DataType kInt16 = DataType::Int(16);

bool IsByte(DataType dtype) { return dtype == DataType::Int(8) || dtype == DataType::UInt(8); }

// ---- pack_bytes
Result<ir::Type> InferPackBytes(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  const bool is_known = x->dtype && (IsByte(*x->dtype) || (x->dtype == kInt16 && !call->attrs.GetBool("flip")));
  if ((x->dtype && !is_known) || x->rank == 0) {
    return OpError(call, "expected int8, uint8 or (not to flip) int16 of rank 1 or more, got " + Describe(x));
  }
  if (!x->dims || !x->dtype) return TensorOfRank(x->rank, kInt32, x);
  Dims dims = *x->dims;
  const int64_t per_word = topi::ElementsPerWord(*x->dtype);
  if (const auto count = ir::AsConstInt(dims.back()); count && *count % per_word != 0) {
    return OpError(call, "expected a multiple of 4 bytes along the last axis, got " + Describe(x));
  }
  dims.back() = SimplifyDim(ir::FloorDiv(dims.back(), ir::Int64(per_word)));
  return TensorOf(std::move(dims), kInt32, x);
}

// Bytes in memory's order, the first of each word lowest.
std::vector<uint32_t> WordsOf(std::span<const uint8_t> bytes, bool flip) {
  std::vector<uint32_t> words(bytes.size() / topi::kBytesPerWord);
  for (size_t i = 0; i < words.size() * topi::kBytesPerWord; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i] ^ (flip ? 0x80 : 0));
    words[i / topi::kBytesPerWord] |= uint32_t{byte} << (8 * (i % topi::kBytesPerWord));
  }
  return words;
}

Result<std::vector<ReferenceTensor>> ReferencePackBytes(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(kInt32, dims);
  std::vector<uint8_t> bytes;
  for (int64_t value : inputs[0].ints) {
    bytes.push_back(static_cast<uint8_t>(value));
    if (inputs[0].dtype == kInt16) bytes.push_back(static_cast<uint8_t>(value >> 8));
  }
  const std::vector<uint32_t> words = WordsOf(bytes, call->attrs.GetBool("flip"));
  std::ranges::transform(words, out.ints.begin(), [](uint32_t word) { return static_cast<int32_t>(word); });
  return OneReference(std::move(out));
}

Result<ConstantPtr> FoldPackBytes(const ir::Call& call, std::span<const ConstantPtr> inputs) {
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ConstantDims(call, call->type));
  const std::span<const std::byte> data = inputs[0]->bytes();
  const std::vector<uint32_t> words =
      WordsOf({reinterpret_cast<const uint8_t*>(data.data()), data.size()}, call->attrs.GetBool("flip"));
  std::vector<std::byte> bytes(words.size() * sizeof(uint32_t));
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return ir::ConstantData::FromBytes(kInt32, std::move(dims), std::move(bytes));
}

// Stays alone: its operand's bytes are computed in rows, not four rows of every fourth byte.
te::Tensor DefinePackBytes(const TeArgs& args) {
  return topi::PackBytes(args.input(0), args.call()->attrs.GetBool("flip"));
}

// ---- matmul_bytes
Result<ir::Type> InferMatmulBytes(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType panels, TensorArg(call, 1));
  const int64_t units = call->attrs.GetInt("units");
  const auto error = [&](const std::string& expected) {
    return OpError(call, "expected " + expected + ", got " + Describe(x) + " and " + Describe(panels));
  };
  for (const ir::TensorType& type : {x, panels}) {
    if (type->dtype && *type->dtype != kInt32) return error("words (int32)");
  }
  if (x->rank == 0 || (panels->rank >= 0 && panels->rank != 3)) return error("x[.., k] and panels[p, k, c]");
  if (!x->dims || !panels->dims) return TensorOfRank(x->rank, kInt32, x);
  const auto width = ir::AsConstInt((*panels->dims)[2]);
  if (!width || *width < 1 || units < 1) return error("panels of a constant width and units >= 1");
  const ir::PrimExpr count = ir::Int64((units - 1) / *width + 1);
  Dims dims = *x->dims;
  if (DimsDiffer(dims.back(), (*panels->dims)[1]) || DimsDiffer(count, (*panels->dims)[0])) {
    return error(Describe(count) + " panels of " + Describe(dims.back()) + " rows for " + std::to_string(units) +
                 " units");
  }
  dims.back() = ir::Int64(units);
  return TensorOf(std::move(dims), kInt32, x);
}

Result<std::vector<ReferenceTensor>> ReferenceMatmulBytes(const ir::Call& call,
                                                          std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& panels = inputs[1];
  const int64_t depth = x.dims.back(), columns = panels.dims[2], units = call->attrs.GetInt("units");
  std::vector<int64_t> dims = x.dims;
  dims.back() = units;
  ReferenceTensor out = NewReference(kInt32, dims);
  for (int64_t at = 0; at < CountOf(dims); ++at) {
    const int64_t row = at / units, column = at % units;
    uint32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t left = x.ints[static_cast<size_t>(row * depth + k)];
      const int64_t right =
          panels.ints[static_cast<size_t>((column / columns * depth + k) * columns + column % columns)];
      for (int shift = 0; shift < 32; shift += 8) {
        sum +=
            static_cast<uint32_t>(int32_t{static_cast<uint8_t>(left >> shift)} * static_cast<int8_t>(right >> shift));
      }
    }
    out.ints[static_cast<size_t>(at)] = static_cast<int32_t>(sum);
  }
  return OneReference(std::move(out));
}

te::Tensor DefineMatmulBytes(const TeArgs& args) {
  return topi::MatmulBytes(args.input(0), args.input(1), args.call()->attrs.GetInt("units"));
}

// ---- matmul_integer
// A zero point broadcasts to its tensor and is the same for all elements of the summed axis.
Status CheckZeroPoint(const ir::Call& call, const ir::TensorType& x, const ir::TensorType& zero, int summed) {
  const Status error = OpError(call, "expected a zero point that broadcasts to " + Describe(x) +
                                         " and has one element along the summed axis, got " + Describe(zero));
  if (zero->dtype && x->dtype && zero->dtype != x->dtype) return error;
  if (zero->rank > x->rank && x->rank >= 0) return error;
  if (!zero->dims || !x->dims) return Status();
  const size_t rank = zero->dims->size();
  for (size_t i = 1; i <= rank; ++i) {
    const ir::PrimExpr& own = (*zero->dims)[rank - i];
    const bool is_summed = static_cast<int>(i) == summed;
    const ir::PrimExpr whole = is_summed ? ir::Int64(1) : (*x->dims)[x->dims->size() - i];
    if (is_summed ? !ir::IsConstInt(own, 1) : !ir::IsConstInt(own, 1) && DimsDiffer(own, whole)) return error;
  }
  return Status();
}

Result<ir::Type> InferMatmulInteger(const ir::Call& call) {
  std::vector<ir::TensorType> types;
  for (size_t i = 0; i < 4; ++i) {
    INGOT_ASSIGN_OR_RETURN(ir::TensorType type, TensorArg(call, i));
    types.push_back(std::move(type));
  }
  const ir::TensorType &a = types[0], &b = types[1];
  for (const ir::TensorType& type : {a, b}) {
    if ((type->dtype && !IsByte(*type->dtype)) || type->rank == 0) {
      return OpError(call, "expected int8 or uint8 of rank 1 or more, got " + Describe(type));
    }
  }
  INGOT_RETURN_IF_ERROR(CheckZeroPoint(call, a, types[2], 1));
  INGOT_RETURN_IF_ERROR(CheckZeroPoint(call, b, types[3], b->rank == 1 ? 1 : 2));
  if (!a->dims || !b->dims) {
    if (a->rank < 0 || b->rank < 0) return TensorOfRank(-1, kInt32, a);
    const int vectors = (a->rank == 1 ? 1 : 0) + (b->rank == 1 ? 1 : 0);
    return TensorOfRank(std::max(std::max(a->rank, b->rank), 2) - vectors, kInt32, a);
  }
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, MatmulDims(call, a, b));
  return dims ? TensorOf(*dims, kInt32, a) : TensorOfRank(std::max(a->rank, b->rank), kInt32, a);
}

Result<std::vector<ReferenceTensor>> ReferenceMatmulInteger(const ir::Call& call,
                                                            std::span<const ReferenceTensor> inputs) {
  std::vector<ReferenceTensor> factors;
  for (size_t i = 0; i < 2; ++i) {
    const ReferenceTensor &x = inputs[i], &zero = inputs[2 + i];
    ReferenceTensor factor = NewReference(kInt32, x.dims);
    ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
      factor.ints[static_cast<size_t>(flat)] =
          x.ints[static_cast<size_t>(flat)] - zero.ints[static_cast<size_t>(FlattenBroadcast(zero.dims, index))];
    });
    factors.push_back(std::move(factor));
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<ReferenceTensor> products, FindOp("matmul")->reference(call, factors));
  return OneReference(std::move(products[0]));
}

te::Tensor DefineMatmulInteger(const TeArgs& args) {
  return topi::MatmulInteger(args.input(0), args.input(1), args.input(2), args.input(3));
}

}  // namespace

std::vector<OpRow> ByteProductOps() {
  const std::vector<DataType> bytes = {DataType::UInt(8), DataType::Int(8)};
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "pack_bytes",
       .summary = "four bytes, or two int16, along the last axis as one int32, the first one lowest",
       .arg_names = {"x"},
       .attrs = {{"flip", AttrType::kBool, false}},
       .infer = InferPackBytes,
       .reference = ReferencePackBytes,
       .fold = FoldPackBytes,
       .implementations = {{"te", Always, ElementsOfResult, {}, BuildAs<FusionClass::kOpaque, DefinePackBytes>}},
       .cases = {.rank0 = false, .non_finite = false, .dtypes = {DataType::UInt(8), DataType::Int(8), kInt16}}});
  rows.push_back({.name = "matmul_bytes",
                  .summary = "sum over k of dot_bytes(x[.., k], panels[n / c, k, n % c]), n < units",
                  .arg_names = {"x", "panels"},
                  .attrs = {{"units", AttrType::kInt, {}, true}},
                  .infer = InferMatmulBytes,
                  .reference = ReferenceMatmulBytes,
                  .fold = FoldByReference,
                  .implementations = {{"direct", Always, MatmulCost, {}, Build<DefineMatmulBytes>}},
                  .cases = {.rank0 = false, .non_finite = false, .dtypes = {kInt32}}});
  rows.push_back({.name = "matmul_integer",
                  .summary = "the matrix product of x1 - x1_zero_point and x2 - x2_zero_point in int32",
                  .arg_names = {"x1", "x2", "x1_zero_point", "x2_zero_point"},
                  .infer = InferMatmulInteger,
                  .reference = ReferenceMatmulInteger,
                  .implementations = {{"direct", Always, MatmulCost, {}, Build<DefineMatmulInteger>}},
                  .cases = {.rank0 = false, .broadcast = true, .non_finite = false, .dtypes = bytes}});
  return rows;
}

}  // namespace ingot::op
