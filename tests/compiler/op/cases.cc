#include "tests/compiler/op/cases.h"

#include <cmath>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "runtime/float4.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

using ir::Attrs;
using ir::AttrValue;
using ir::Expr;

void BinaryCases(CaseBuilder& b, const OpRow& row) {
  for (DataType dtype : row.cases.dtypes) {
    b.Add(row.name, dtype.ToString(), {Data(dtype, {3, 5}), Data(dtype, {3, 5}, 2)});
    b.Add(row.name, dtype.ToString() + "_broadcast", {Data(dtype, {3, 1, 5}), Data(dtype, {4, 1}, 2)});
  }
  const DataType first = row.cases.dtypes.front();
  b.Add(row.name, "rank0", {Data(first, {}), Data(first, {}, 2)});
  b.Add(row.name, "scalar_right", {Data(first, {2, 3}), Data(first, {}, 2)});
  b.Add(row.name, "empty", {Data(first, {0, 3}), Data(first, {1, 3}, 2)});
  if (!row.cases.non_finite) return;
  // Rounding down the quotient of a tiny and a huge number depends on whether it underflows.
  const bool floors = std::string_view(row.name).starts_with("floor") || row.name == std::string_view("mod");
  ReferenceTensor values = floors ? Of(kF32, {8}, {kInf, -kInf, kNan, 0.0, -0.0, 2, -3, 0.5}) : Specials();
  ReferenceTensor column = values;
  column.dims = {8, 1};
  b.Add(row.name, "specials", {column, values});
}

void CreateCases(CaseBuilder& b) {
  const auto shape = [](IntList dims) { return Then({ShapeOf(dims)}); };
  for (const char* op : {"zeros", "ones"}) {
    for (const char* dtype : {"float32", "int64", "bool"}) {
      b.Add(op, dtype, {}, {{"dtype", dtype}}, shape({2, 3}));
    }
    b.Add(op, "rank0", {}, {{"dtype", "float32"}}, shape({}));
    b.Add(op, "empty", {}, {{"dtype", "float32"}}, shape({0, 2}));
  }
  const auto first = [](IntList dims) {
    return [dims](const std::vector<Expr>& inputs) { return std::vector<Expr>{ShapeOf(dims), inputs[0]}; };
  };
  for (DataType dtype : {kF32, DataType::Int(64), kBool}) {
    b.Add("full", dtype.ToString(), {Data(dtype, {}, 3)}, {}, first({2, 3}));
  }
  b.Add("full", "rank0", {Data(kF32, {}, 3)}, {{"dtype", "float32"}}, first({}));
  b.Add("full", "empty", {Data(kF32, {}, 3)}, {}, first({0}));
  b.Add("shape_to_tensor", "int64", {}, {}, shape({2, 0, 7, 1}));
  b.Add("shape_to_tensor", "one", {}, {}, shape({5}));
  b.Add("shape_to_tensor", "empty", {}, {}, shape({}));
}

void TransformCases(CaseBuilder& b) {
  const auto shape = [](IntList dims) { return Then({ShapeOf(dims)}); };
  const auto ints = [](IntList values) { return AttrValue::Ints(values); };
  MoveCases(b, "reshape", {}, {2, 6}, shape({3, -1}));
  b.Add("reshape", "rank0", {Data(kF32, {})}, {}, shape({1, 1}));
  b.Add("reshape", "empty", {Data(kF32, {0, 3})}, {}, shape({3, 0, 2}));
  b.Add("reshape", "specials", {Specials()}, {}, shape({2, 2, 2}));
  MoveCases(b, "flatten", {}, {2, 1, 3});
  b.Add("flatten", "rank0", {Data(kF32, {})});
  b.Add("flatten", "empty", {Data(kF32, {2, 0})});
  b.Add("flatten", "specials", {Specials()});
  MoveCases(b, "expand_dims", {{"axis", ints({0, -1})}}, {2, 3});
  b.Add("expand_dims", "rank0", {Data(kF32, {})}, {{"axis", 0}});
  b.Add("expand_dims", "empty", {Data(kF32, {0})}, {{"axis", 1}});
  b.Add("expand_dims", "specials", {Specials()}, {{"axis", 1}});
  MoveCases(b, "squeeze", {}, {1, 2, 1, 3});
  b.Add("squeeze", "axis", {Data(kF32, {1, 2, 1})}, {{"axis", ints({-1})}});
  b.Add("squeeze", "rank0", {Data(kF32, {})});
  b.Add("squeeze", "empty", {Data(kF32, {1, 0})});
  ReferenceTensor row = Specials();
  row.dims = {1, 8};
  b.Add("squeeze", "specials", {row});
  MoveCases(b, "permute_dims", {{"axes", ints({2, 0, -2})}}, {2, 3, 4});
  for (DataType dtype : FindOp("permute_dims")->cases.dtypes) {  // squares of every size, and rests
    b.Add("permute_dims", "squares_" + dtype.ToString(), {Data(dtype, {2, 31, 45})}, {{"axes", ints({0, 2, 1})}});
  }
  b.Add("permute_dims", "reverse", {Data(kF32, {2, 3, 4})});
  b.Add("permute_dims", "rank0", {Data(kF32, {})});
  b.Add("permute_dims", "empty", {Data(kF32, {0, 3})});
  b.Add("permute_dims", "specials", {row});
  MoveCases(b, "broadcast_to", {}, {3, 1}, shape({2, 3, 4}));
  b.Add("broadcast_to", "rank0", {Data(kF32, {})}, {}, shape({2, 2}));
  b.Add("broadcast_to", "empty", {Data(kF32, {1, 3})}, {}, shape({0, 3}));
  b.Add("broadcast_to", "empty_input", {Data(kF32, {0, 1})}, {}, shape({0, 3}));
  b.Add("broadcast_to", "specials", {Specials()}, {}, shape({2, 8}));

  for (DataType dtype : FindOp("concat")->cases.dtypes) {
    b.Add("concat", dtype.ToString(), {Data(dtype, {2, 3}), Data(dtype, {2, 1}, 2), Data(dtype, {2, 2}, 3)},
          {{"axis", -1}}, AsTuple);
  }
  b.Add("concat", "first_axis", {Data(kF32, {2, 3}), Data(kF32, {1, 3}, 2)}, {}, AsTuple);
  b.Add("concat", "one", {Data(kF32, {2, 3})}, {}, AsTuple);
  b.Add("concat", "empty", {Data(kF32, {0, 3}), Data(kF32, {2, 3}, 2)}, {}, AsTuple);
  b.Add("concat", "specials", {Specials(), Data(kF32, {1})}, {}, AsTuple);

  const auto slice = [](IntList axes, IntList begin, IntList end, IntList strides) {
    return Then({IntTuple(axes), IntTuple(begin), IntTuple(end), IntTuple(strides)});
  };
  MoveCases(b, "kv_cache.view", {}, {2, 5, 3}, shape({2, 3, 3}));
  b.Add("kv_cache.view", "rank0", {Data(kF32, {})}, {}, shape({}));
  b.Add("kv_cache.view", "empty", {Data(kF32, {2, 5})}, {}, shape({2, 0}));
  b.Add("kv_cache.view", "specials", {Specials()}, {}, shape({7}));
  MoveCases(b, "strided_slice", {}, {4, 5}, slice({0, 1}, {1, 4}, {4, -6}, {2, -1}));
  b.Add("strided_slice", "no_strides", {Data(kF32, {4, 5})}, {},
        Then({IntTuple({1}), IntTuple({-3}), IntTuple({100})}));
  b.Add("strided_slice", "nothing", {Data(kF32, {4})}, {}, slice({0}, {3}, {1}, {1}));
  b.Add("strided_slice", "empty", {Data(kF32, {0, 4})}, {}, slice({0, 1}, {0, 1}, {5, 3}, {1, 1}));
  b.Add("strided_slice", "specials", {Specials()}, {}, slice({0}, {7}, {-100}, {-3}));

  MoveCases(b, "nn.pad", {{"pad_width", ints({1, 0, 0, 2})}, {"pad_value", 2.0}}, {2, 3});
  b.Add("nn.pad", "rank0", {Data(kF32, {})}, {{"pad_width", ints({})}});
  b.Add("nn.pad", "empty", {Data(kF32, {0, 2})}, {{"pad_width", ints({1, 1, 0, 1})}, {"pad_value", -1.5}});
  b.Add("nn.pad", "none", {Data(kF32, {2})}, {{"pad_width", ints({0, 0})}});
  b.Add("nn.pad", "specials", {Specials()}, {{"pad_width", ints({2, 1})}});
}

void ReductionCases(CaseBuilder& b) {
  for (const char* op : {"sum", "prod", "max", "min", "mean", "variance", "log_sum_exp"}) {
    const std::string_view name = op;
    const OpRow& row = *FindOp(op);
    for (DataType dtype : row.cases.dtypes) {
      ReferenceTensor x = Data(dtype, {3, 4, 2});
      if (name == "prod") {  // keeps products of integers far from overflow
        for (int64_t i = 0; i < CountOf(x.dims); ++i)
          SetNumber(x, i, dtype.is_floating() ? 1 + GetNumber(x, i) / 64 : (i % 3) - 1);
      }
      b.Add(op, dtype.ToString(), {x}, {{"axis", AttrValue::Ints({0, -1})}});
      b.Add(op, dtype.ToString() + "_all", {x});
      b.Add(op, dtype.ToString() + "_keepdims", {x}, {{"axis", 1}, {"keepdims", true}});
      if (name == "mean" && dtype.is_integral()) {  // neither the sum nor the count fits into the dtype of bytes
        ReferenceTensor large = Data(dtype, {2, 256});
        const double greatest = std::ldexp(1.0, dtype.bits - 1) - 1;
        for (int64_t i = 0; i < CountOf(large.dims); ++i) SetNumber(large, i, greatest - static_cast<double>(i % 2));
        b.Add(op, dtype.ToString() + "_wraps", {large}, {{"axis", 1}});
      }
    }
    b.Add(op, "rank0", {Data(kF32, {})});
    b.Add(op, "empty", {Data(kF32, {0, 3})}, {{"axis", 1}});
    b.Add(op, "empty_axis", {Data(kF32, {2, 0})}, {{"axis", 1}});
    b.Add(op, "no_axes", {Data(kF32, {2, 2})}, {{"axis", ir::AttrList{}}});
    b.Add(op, "specials", {Of(kF32, {5, 2}, {kInf, 1, -kInf, 2, kNan, 3, kInf, -kInf, -kInf, -kInf})}, {{"axis", 1}});
  }
  for (const char* op : {"nn.softmax", "nn.log_softmax"}) {
    MoveCases(b, op, {}, {3, 4, 5});
    b.Add(op, "first_axis", {Data(kF32, {4, 3})}, {{"axis", 0}});
    b.Add(op, "large", {Of(kF32, {2, 3}, {1000, 1001, 1002, -1000, -1001, 88})}, {{"axis", 1}});
    b.Add(op, "empty", {Data(kF32, {0, 3})});
    b.Add(op, "specials", {Of(kF32, {4, 2}, {kInf, 1, -kInf, 2, kNan, 3, -kInf, -kInf})});
  }
}

void LinearCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("matmul")->cases.dtypes) {
    b.Add("matmul", dtype.ToString(), {Data(dtype, {3, 7}), Data(dtype, {7, 4}, 2)});
  }
  b.Add("matmul", "batches", {Data(kF32, {2, 1, 3, 4}), Data(kF32, {5, 4, 2}, 2)});
  b.Add("matmul", "shared_right", {Data(kF32, {2, 3, 4}), Data(kF32, {4, 2}, 2)});
  b.Add("matmul", "vector_vector", {Data(kF32, {5}), Data(kF32, {5}, 2)});
  b.Add("matmul", "vector_matrix", {Data(kF32, {5}), Data(kF32, {2, 5, 3}, 2)});
  b.Add("matmul", "matrix_vector", {Data(kF32, {2, 3, 5}), Data(kF32, {5}, 2)});
  b.Add("matmul", "rank_5", {Data(kF32, {1, 4, 2, 9, 9}), Data(kF32, {1, 4, 2, 9, 16}, 2)});
  b.Add("matmul", "empty", {Data(kF32, {0, 3}), Data(kF32, {3, 2}, 2)});
  b.Add("matmul", "nothing_to_sum", {Data(kF32, {2, 0}), Data(kF32, {0, 3}, 2)});
  b.Add("matmul", "wider", {Data(DataType::Int(8), {2, 6}), Data(DataType::Int(8), {6, 2}, 2)},
        {{"out_dtype", "int32"}});
  b.Add("matmul", "specials", {Of(kF32, {2, 2}, {kInf, 0, kNan, 1}), Of(kF32, {2, 2}, {0, 1, 2, -1})});

  // Sums in float16 itself would be off by more than a rounding of the result.
  b.Add("matmul", "long_narrow_sum", {Data(kF16, {2, 300}), Data(kF16, {300, 20}, 2)});
  const auto packed = [&](std::string label, DataType dtype, IntList x, int64_t units) {
    const IntList panels{(units + 15) / 16, x.back(), 16};
    b.Add("matmul_packed", std::move(label), {Data(dtype, std::move(x)), Data(dtype, panels, 2)}, {{"units", units}});
  };
  for (DataType dtype : FindOp("matmul_packed")->cases.dtypes) packed(dtype.ToString(), dtype, {5, 7}, 20);
  packed("tiles", kF32, {29, 7}, 50);
  packed("vector", kF32, {9}, 33);
  packed("row", kF32, {1, 9}, 140);
  packed("batch", kF32, {2, 13, 3}, 16);
  packed("empty", kF32, {0, 3}, 17);
  packed("nothing_to_sum", kF32, {2, 0}, 17);
  b.Add("matmul_packed", "specials", {Of(kF32, {2, 2}, {kInf, 0, kNan, 1}), Data(kF32, {1, 2, 16})}, {{"units", 3}});
}

// Bytes of all values.
ReferenceTensor Bytes(DataType dtype, IntList dims, uint64_t seed) {
  ReferenceTensor tensor = NewReference(dtype, std::move(dims));
  for (int64_t& value : tensor.ints) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto byte = static_cast<uint8_t>(seed >> 40);
    value = dtype.is_int() ? int64_t{static_cast<int8_t>(byte)} : int64_t{byte};
  }
  return tensor;
}

// Words of four such bytes.
ReferenceTensor Words(IntList dims, uint64_t seed) {
  ReferenceTensor tensor = NewReference(kI32, std::move(dims));
  for (int64_t& value : tensor.ints) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<int32_t>(seed >> 32);
  }
  return tensor;
}

void ByteProductCases(CaseBuilder& b) {
  const DataType uint8 = DataType::UInt(8);
  for (DataType dtype : {uint8, kI8}) {
    b.Add("pack_bytes", dtype.ToString(), {Bytes(dtype, {3, 8}, 1)});
    b.Add("pack_bytes", "flip_" + dtype.ToString(), {Bytes(dtype, {2, 3, 4}, 2)}, {{"flip", true}});
  }
  b.Add("pack_bytes", "int16", {Data(DataType::Int(16), {3, 6}, 1)});
  b.Add("pack_bytes", "vector", {Bytes(kI8, {84}, 3)});
  b.Add("pack_bytes", "empty", {Bytes(kI8, {0, 8}, 1)});
  const auto product = [&](std::string label, IntList x, int64_t units, int64_t columns = 16) {
    const IntList panels{(units + columns - 1) / columns, x.back(), columns};
    b.Add("matmul_bytes", std::move(label), {Words(std::move(x), 1), Words(panels, 2)}, {{"units", units}});
  };
  product("int32", {5, 7}, 20);
  product("tiles", {29, 7}, 50);
  product("vector", {9}, 33);
  product("row", {1, 9}, 140);
  product("batch", {2, 13, 3}, 16);
  product("narrow", {4, 3}, 5, 5);
  product("column", {4, 3}, 1, 1);
  product("empty", {0, 3}, 17);
  product("nothing_to_sum", {2, 0}, 17);
  for (const auto& [left, right] : {std::pair{uint8, kI8}, {uint8, uint8}, {kI8, kI8}, {kI8, uint8}}) {
    b.Add("matmul_integer", left.ToString() + "_" + right.ToString(),
          {Bytes(left, {5, 7}, 1), Bytes(right, {7, 20}, 2), Bytes(left, {}, 3), Bytes(right, {20}, 4)});
  }
  b.Add("matmul_integer", "rows",
        {Bytes(uint8, {5, 7}, 1), Bytes(kI8, {7, 4}, 2), Bytes(uint8, {5, 1}, 3), Bytes(kI8, {1, 4}, 4)});
  b.Add("matmul_integer", "batches",
        {Bytes(uint8, {2, 1, 3, 4}, 1), Bytes(kI8, {5, 4, 2}, 2), Bytes(uint8, {1}, 3), Bytes(kI8, {}, 4)});
  b.Add("matmul_integer", "vectors",
        {Bytes(uint8, {5}, 1), Bytes(kI8, {5}, 2), Bytes(uint8, {1}, 3), Bytes(kI8, {}, 4)});
  b.Add("matmul_integer", "empty",
        {Bytes(uint8, {0, 3}, 1), Bytes(kI8, {3, 2}, 2), Bytes(uint8, {}, 3), Bytes(kI8, {}, 4)});
}

// Elements of less than a byte: every dtype, last bytes that are partly filled, and numbers out of range.
void PackedElementCases(CaseBuilder& b) {
  const DataType uint8 = DataType::UInt(8), e4m3(TypeCode::kFloat8E4M3FN, 8);
  const std::vector<DataType> packed = {DataType::Int(2), DataType::UInt(2), DataType::Int(4), DataType::UInt(4),
                                        kFloat4E2M1FN};
  for (const DataType to : packed) {
    for (const DataType from : FindOp("narrow")->cases.dtypes) {
      b.Add("narrow", from.ToString() + "_to_" + to.ToString(), {Data(from, {3, 5})}, {{"dtype", to}});
    }
    b.Add("narrow", "specials_to_" + to.ToString(), {Specials()}, {{"dtype", to}});
    b.Add("narrow", "ties_to_" + to.ToString(),
          {Of(kF32, {20}, {0.25, 0.75,  1.25,  1.75, 2.5,  3.5,        5,          5.5,  6.5,  7.5,
                           -0.2, -0.25, -0.75, -9,   -8.5, 2147483520, 2147483648, -3e9, 1e10, 15.9})},
          {{"dtype", to}});
    const ReferenceTensor bytes = Bytes(uint8, {7}, 3), rows = Bytes(uint8, {2, 5}, 4);
    const int64_t count = 8 / to.bits;
    b.Add("unpack_bits", to.ToString(), {bytes}, {{"dtype", to}}, Then({ShapeOf({7 * count})}));
    b.Add("unpack_bits", to.ToString() + "_part", {bytes}, {{"dtype", to}}, Then({ShapeOf({7 * count - 1})}));
    b.Add("unpack_bits", to.ToString() + "_rows", {rows}, {{"dtype", to}}, Then({ShapeOf({2, 5 * count - 1})}));
    if (to.is_floating()) continue;
    const DataType byte(to.code, 8);
    b.Add("pack_bits", to.ToString(), {Bytes(byte, {8}, 1)}, {{"dtype", to}});
    b.Add("pack_bits", to.ToString() + "_odd", {Bytes(byte, {3, 9}, 2)}, {{"dtype", to}});
  }
  b.Add("narrow", "rank0", {Data(kF32, {})}, {{"dtype", packed[2]}});
  b.Add("narrow", "empty", {Data(kF32, {0, 3})}, {{"dtype", packed[2]}});
  b.Add("unpack_bits", "empty", {Bytes(uint8, {0}, 1)}, {{"dtype", packed[2]}}, Then({ShapeOf({0})}));
  b.Add("pack_bits", "empty", {Bytes(kI8, {0}, 1)}, {{"dtype", packed[2]}});
  b.Add("pack_bits", "float4_e2m1fn",
        {Of(e4m3, {17}, {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6, 6})},
        {{"dtype", kFloat4E2M1FN}});
  const std::pair<DataType, DataType> same_width[] = {{kF32, kI32},
                                                      {kI32, kF32},
                                                      {kF16, DataType::UInt(16)},
                                                      {DataType::Bfloat16(), DataType::Int(16)},
                                                      {kF64, kI64},
                                                      {kI64, kF64},
                                                      {uint8, kI8},
                                                      {uint8, e4m3},
                                                      {kI8, uint8},
                                                      {kBool, uint8},
                                                      {kF32, kF32},
                                                      {DataType::Int(16), kF16}};
  for (const auto& [from, to] : same_width) {
    b.Add("bitcast", from.ToString() + "_as_" + to.ToString(), {Data(from, {3, 5})}, {{"dtype", to}});
  }
  b.Add("bitcast", "uint8_as_bool", {Of(uint8, {3}, {0, 1, 1})}, {{"dtype", kBool}});
  b.Add("bitcast", "rank0", {Data(kF32, {})}, {{"dtype", kI32}});
  b.Add("bitcast", "empty", {Data(kF32, {0, 3})}, {{"dtype", kI32}});
}

void ElementwiseCases(CaseBuilder& b) {
  UnaryCases(b, *FindOp("clip"), {}, Then({Scalar(-1.5), Scalar(2)}));
  for (DataType dtype : FindOp("clip")->cases.dtypes) {
    b.Add("clip", "crossed_bounds_" + dtype.ToString(), {Data(dtype, {3, 5})}, {}, Then({Scalar(2), Scalar(-1)}));
  }
  b.Add("clip", "crossed_bounds_specials", {Specials()}, {}, Then({Scalar(2), Scalar(-1)}));
  UnaryCases(b, *FindOp("nn.leakyrelu"), {{"alpha", 0.125}});
  for (DataType from : FindOp("astype")->cases.dtypes) {
    for (DataType to : FindOp("astype")->cases.dtypes) {
      if (from != kF32 && to != kF32 && from.is_floating() == to.is_floating()) continue;
      OpCase& c = b.Add("astype", from.ToString() + "_to_" + to.ToString(), {Data(from, {3, 5})}, {{"dtype", to}});
      if (to == kF16) c.rtol = 1e-3;
    }
  }
  for (TypeCode code :
       {TypeCode::kFloat8E4M3FN, TypeCode::kFloat8E4M3FNUZ, TypeCode::kFloat8E5M2, TypeCode::kFloat8E5M2FNUZ}) {
    const DataType float8(code, 8);
    b.Add("astype", float8.ToString() + "_to_float32", {Data(float8, {3, 5})}, {{"dtype", kF32}});
    b.Add("astype", "float16_to_" + float8.ToString(), {Data(kF16, {3, 5})}, {{"dtype", float8}});
    b.Add("astype", "int32_to_" + float8.ToString(), {Data(kI32, {3, 5})}, {{"dtype", float8}});
    b.Add("astype", "specials_to_" + float8.ToString(), {Specials()}, {{"dtype", float8}});
  }
  const DataType powers(TypeCode::kFloat8E8M0FNU, 8);
  b.Add("astype", powers.ToString() + "_to_float32", {Of(powers, {5}, {1, 0.25, 1024, 1e-38, kNan})},
        {{"dtype", kF32}});
  b.Add("astype", "float32_to_" + powers.ToString(), {Of(kF32, {9}, {1, 1.4, 1.5, 3, 1e-40, 1.1e-38, -1, kNan, 3e38})},
        {{"dtype", powers}});
  b.Add("astype", "rank0", {Data(kF32, {})}, {{"dtype", kI32}});
  b.Add("astype", "empty", {Data(kF32, {0, 3})}, {{"dtype", kI32}});
  b.Add("astype", "specials", {Specials()}, {{"dtype", kI32}});
  b.Add("astype", "specials_to_half", {Specials()}, {{"dtype", kF16}});
  b.Add("astype", "specials_to_bool", {Specials()}, {{"dtype", kBool}});
  b.Add("astype", "wraps", {Of(kI32, {4}, {300, -1, 128, 65535})}, {{"dtype", "int8"}});
  b.Add("where", "bool", {Data(kBool, {3, 5}), Data(kF32, {3, 5}), Data(kF32, {3, 5}, 2)});
  b.Add("where", "broadcast", {Data(kBool, {3, 1}), Data(kI32, {4}), Data(kI32, {2, 1, 1}, 2)});
  b.Add("where", "rank0", {Data(kBool, {}), Data(kF32, {}), Data(kF32, {}, 2)});
  b.Add("where", "empty", {Data(kBool, {0}), Data(kF32, {1}), Data(kF32, {}, 2)});
  b.Add("where", "specials", {Data(kBool, {8}), Specials(), Data(kF32, {8})});
}

std::vector<OpCase> MakeCases() {
  CaseBuilder b;
  for (const OpRow* row : AllOps()) {
    const bool plain = row->attrs.empty() && row->num_optional_args == 0 && !row->is_primitive && !row->is_view;
    if (plain && row->fusion == FusionClass::kElementwise && row->arg_names.size() == 1) UnaryCases(b, *row);
    if (plain && row->fusion == FusionClass::kBroadcast && row->arg_names[0] == std::string_view("x1"))
      BinaryCases(b, *row);
  }
  ElementwiseCases(b);
  CreateCases(b);
  TransformCases(b);
  ReductionCases(b);
  LinearCases(b);
  ByteProductCases(b);
  PackedElementCases(b);
  AttentionCases(b);
  DynamicShapeCases(b);
  MovementCases(b);
  NnCases(b);
  RecurrentCases(b);
  return std::move(b.cases);
}

}  // namespace

const std::vector<OpCase>& AllCases() {
  static const std::vector<OpCase> cases = MakeCases();
  return cases;
}

Result<ir::Call> CallOf(const OpCase& op_case, const ir::PrimVar& symbolic) {
  int64_t replaced = -1;
  if (symbolic != nullptr && !op_case.inputs.empty() && !op_case.inputs[0].dims.empty()) {
    replaced = op_case.inputs[0].dims[0];
  }
  std::vector<ir::Expr> variables;
  for (const ReferenceTensor& input : op_case.inputs) {
    Dims dims;
    for (int64_t dim : input.dims) {
      dims.push_back(dim == replaced && dim != 1 ? ir::PrimExpr(symbolic) : ir::Int64(dim));
    }
    variables.push_back(ir::Make<ir::VarNode>("x" + std::to_string(variables.size()),
                                              ir::Make<ir::TensorTypeNode>(std::move(dims), input.dtype)));
  }
  return MakeCall(op_case.op, op_case.args != nullptr ? op_case.args(variables) : variables, op_case.attrs);
}

Result<std::vector<ReferenceTensor>> EvaluateReference(const OpCase& op_case) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, CallOf(op_case));
  return FindOp(op_case.op)->reference(call, op_case.inputs);
}

std::string Compare(const OpCase& op_case, const std::vector<ReferenceTensor>& expected,
                    const std::vector<ReferenceTensor>& got) {
  if (expected.size() != got.size()) return "another number of results";
  for (size_t t = 0; t < expected.size(); ++t) {
    const ReferenceTensor& want = expected[t];
    const ReferenceTensor& have = got[t];
    if (want.dtype != have.dtype || want.dims != have.dims) return "another dtype or shape";
    for (int64_t i = 0; i < CountOf(want.dims); ++i) {
      double x = GetNumber(want, i);
      double y = GetNumber(have, i);
      if (want.dtype == kF32) x = static_cast<float>(x);  // what is out of range is infinite
      const bool equal = std::isnan(x)   ? std::isnan(y)
                         : std::isinf(x) ? x == y
                                         : std::fabs(x - y) <= op_case.atol + op_case.rtol * std::fabs(x);
      const bool exact =
          want.dtype.is_floating() || want.ints[static_cast<size_t>(i)] == have.ints[static_cast<size_t>(i)];
      if (!equal || !exact) {
        return "element " + std::to_string(i) + ": expected " + std::to_string(x) + ", got " + std::to_string(y);
      }
    }
  }
  return "";
}

}  // namespace ingot::op
