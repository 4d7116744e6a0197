// Cases of the operators that move, index and order elements.
#include "compiler/op/reference.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

using ir::Attrs;
using ir::AttrValue;
using ir::Expr;

AttrValue Ints(const IntList& values) { return AttrValue::Ints(values); }
const std::vector<DataType>& DataTypesOf(const char* op) { return FindOp(op)->cases.dtypes; }

ReferenceTensor Indices(IntList dims, const std::vector<double>& values, DataType dtype = kI64) {
  return Of(dtype, std::move(dims), values);
}
ReferenceTensor SpecialsOf(IntList dims) {
  ReferenceTensor tensor = Specials();
  tensor.dims = std::move(dims);
  return tensor;
}

void IndexingCases(CaseBuilder& b) {
  const ReferenceTensor places = Indices({2, 2}, {0, -1, 2, 1});
  for (DataType dtype : DataTypesOf("take")) {
    b.Add("take", dtype.ToString(), {Data(dtype, {4, 3}), places}, {{"axis", 0}});
  }
  b.Add("take", "last_axis", {Data(kF32, {2, 3, 4}), places}, {{"axis", -1}});
  b.Add("take", "middle", {Data(kF32, {2, 3, 4}), Indices({3}, {2, 0, -3}, kI32)}, {{"axis", 1}});
  b.Add("take", "scalar", {Data(kF32, {2, 3}), Indices({}, {-2})}, {{"axis", 1}});
  b.Add("take", "vector", {Data(kF32, {5}), Indices({2}, {4, -5}, DataType::Int(8))});
  b.Add("take", "unsigned", {Data(kF32, {5}), Indices({2}, {4, 0}, DataType::UInt(8))}, {{"axis", 0}});
  b.Add("take", "out_of_range", {Data(kF32, {4, 2}), Indices({4}, {4, 1000000, -5, -1000000})}, {{"axis", 0}});
  b.Add("take", "clip", {Data(kF32, {4, 2}), Indices({3}, {5, -1, 1})}, {{"axis", 0}, {"mode", "clip"}});
  b.Add("take", "wrap", {Data(kF32, {4, 2}), Indices({5}, {5, -1, 1, -9, 1000001})}, {{"axis", 0}, {"mode", "wrap"}});
  b.Add("take", "no_indices", {Data(kF32, {0, 2}), Indices({0}, {})}, {{"axis", 0}});
  b.Add("take", "empty", {Data(kF32, {3, 0}), Indices({2}, {1, 2})}, {{"axis", 0}});
  b.Add("take", "specials", {Specials(), Indices({3}, {0, 2, -1})}, {{"axis", 0}});

  for (DataType dtype : DataTypesOf("gather_elements")) {
    b.Add("gather_elements", dtype.ToString(), {Data(dtype, {3, 2}), Indices({2, 2}, {2, 0, -3, 1})});
  }
  b.Add("gather_elements", "last_axis", {Data(kF32, {3, 3}), Indices({3, 2}, {0, 2, 1, -1, 2, 2}, kI32)},
        {{"axis", -1}});
  b.Add("gather_elements", "narrow", {Data(kF32, {4, 3}), Indices({2, 3}, {0, 2, 1, -1, 2, 2})}, {{"axis", 1}});
  b.Add("gather_elements", "out_of_range", {Data(kF32, {3}), Indices({3}, {3, -4, 1 << 20})});
  b.Add("gather_elements", "empty", {Data(kF32, {3, 2}), Indices({0, 2}, {})});
  b.Add("gather_elements", "specials", {Specials(), Indices({2}, {0, 2})});

  for (DataType dtype : DataTypesOf("gather_nd")) {
    b.Add("gather_nd", dtype.ToString(), {Data(dtype, {3, 2, 2}), Indices({2, 2}, {2, 0, -1, 1})});
  }
  b.Add("gather_nd", "elements", {Data(kF32, {2, 3}), Indices({2, 2, 2}, {0, 0, 1, 2, 1, -3, -2, 1}, kI32)});
  b.Add("gather_nd", "slices", {Data(kF32, {3, 4}), Indices({2, 1}, {1, 2})});
  b.Add("gather_nd", "batch", {Data(kF32, {2, 3, 4}), Indices({2, 2, 1}, {0, 2, 1, -1})}, {{"batch_dims", 1}});
  b.Add("gather_nd", "batch_elements", {Data(kF32, {2, 2, 3}), Indices({2, 2, 1}, {0, 2, 1, -1})}, {{"batch_dims", 2}});
  b.Add("gather_nd", "out_of_range", {Data(kF32, {3, 2}), Indices({2, 2}, {3, -3, 1 << 20, 0})});
  b.Add("gather_nd", "empty", {Data(kF32, {3, 2}), Indices({0, 1}, {})});
  b.Add("gather_nd", "specials", {Specials(), Indices({2, 1}, {0, 2})});

  const auto values = [](double on, double off) { return Then({Scalar(on), Scalar(off)}); };
  for (DataType dtype : DataTypesOf("one_hot")) {
    b.Add("one_hot", dtype.ToString(), {Indices({2, 2}, {0, 2, 1, 5}, dtype)}, {{"depth", 3}}, values(1.5, -0.5));
  }
  b.Add("one_hot", "first_axis", {Indices({3}, {0, -1, -4})}, {{"depth", 3}, {"axis", 0}}, values(1, 0));
  b.Add("one_hot", "rank0", {Indices({}, {1})}, {{"depth", 2}}, values(1, 0));
  b.Add("one_hot", "empty", {Indices({0}, {})}, {{"depth", 2}}, values(1, 0));
}

void ScatterCases(CaseBuilder& b) {
  const ReferenceTensor places = Indices({2, 2}, {2, 0, -3, 2});
  for (DataType dtype : DataTypesOf("scatter_elements")) {
    b.Add("scatter_elements", dtype.ToString(), {Data(dtype, {3, 2}), places, Data(dtype, {2, 2}, 2)});
  }
  for (const char* reduction : {"add", "mul", "max", "min"}) {
    for (DataType dtype : {kF32, kF16, kI32, DataType::UInt(8)}) {
      ReferenceTensor small = Data(dtype, {2, 3}, 2);
      for (int64_t i = 0; i < 6; ++i) SetNumber(small, i, static_cast<double>(i % 3) + 1);
      const std::string label = std::string(reduction) + "_" + dtype.ToString();
      b.Add("scatter_elements", label, {Data(dtype, {2, 3}), Indices({2, 3}, {0, 1, 0, -1, 1, 1}), small},
            {{"axis", 1}, {"reduction", reduction}});
      b.Add("scatter_nd", label, {Data(dtype, {2, 3}), Indices({2, 1}, {1, -1}), small}, {{"reduction", reduction}});
    }
  }
  b.Add("scatter_elements", "int32_indices",
        {Data(kF32, {3, 2}), Indices({1, 2}, {2, 0}, kI32), Data(kF32, {1, 2}, 2)});
  b.Add("scatter_elements", "empty", {Data(kF32, {0, 2}), Indices({0, 2}, {}), Data(kF32, {0, 2})});
  b.Add("scatter_elements", "no_updates", {Data(kF32, {3, 2}), Indices({0, 2}, {}), Data(kF32, {0, 2})});
  b.Add("scatter_elements", "specials", {Specials(), Indices({3}, {3, 2, 0}), Of(kF32, {3}, {kNan, 1, -kInf})});
  b.Add("scatter_elements", "specials_max", {Specials(), Indices({3}, {3, 2, 0}), Of(kF32, {3}, {kNan, 1, -kInf})},
        {{"reduction", "max"}});
  for (DataType dtype : DataTypesOf("scatter_nd")) {
    b.Add("scatter_nd", dtype.ToString(),
          {Data(dtype, {3, 2, 2}), Indices({2, 2}, {2, 0, -1, 1}), Data(dtype, {2, 2}, 2)});
  }
  b.Add("scatter_nd", "elements", {Data(kF32, {2, 3}), Indices({2, 2}, {0, 2, 1, -3}, kI32), Data(kF32, {2}, 2)});
  std::vector<double> often;  // places that many updates go to
  for (int64_t i = 0; i < 70; ++i) often.push_back(static_cast<double>(i * 7 % 11 - 4));
  for (const char* reduction : {"update", "add"}) {
    b.Add("scatter_nd", std::string("long_") + reduction,
          {Data(kF32, {7, 3}), Indices({70, 1}, often), Data(kF32, {70, 3}, 2)}, {{"reduction", reduction}});
  }
  // One place has most of them: several parts as a whole, and some before and behind these.
  std::vector<double> mostly;
  for (int64_t i = 0; i < 1200; ++i) mostly.push_back(static_cast<double>(i % 29 == 0 ? i % 5 : 3));
  std::vector<double> lines;
  for (int64_t i = 0; i < 40 * 3; ++i) lines.push_back(static_cast<double>(i * 7 % 9 - 4));
  for (const char* reduction : {"update", "add", "max"}) {
    b.Add("scatter_elements", std::string("long_") + reduction,
          {Data(kI32, {7}), Indices({1200}, mostly), Data(kI32, {1200}, 2)}, {{"reduction", reduction}});
    b.Add("scatter_elements", std::string("long_lines_") + reduction,
          {Data(kF32, {5, 4}), Indices({40, 3}, lines), Data(kF32, {40, 3}, 2)}, {{"reduction", reduction}});
  }
  for (int64_t length : {1, 16, 17, 39}) {  // of slices, in vectors
    for (const char* reduction : {"update", "max"}) {
      b.Add("scatter_nd", "slices_of_" + std::to_string(length) + "_" + reduction,
            {Data(kF32, {5, 2, length}), Indices({3, 1}, {4, -5, 4}), Data(kF32, {3, 2, length}, 2)},
            {{"reduction", reduction}});
    }
  }
  b.Add("scatter_nd", "twice", {Data(kF32, {4}), Indices({3, 1}, {1, 1, 1}), Data(kF32, {3}, 2)});
  b.Add("scatter_nd", "empty", {Data(kF32, {2, 0}), Indices({1, 1}, {1}), Data(kF32, {1, 0})});
  b.Add("scatter_nd", "no_updates", {Data(kF32, {3, 2}), Indices({0, 1}, {}), Data(kF32, {0, 2})});
  b.Add("scatter_nd", "specials", {Specials(), Indices({2, 1}, {3, 2}), Of(kF32, {2}, {kNan, kInf})});
}

void MovedCases(CaseBuilder& b) {
  MoveCases(b, "split", {{"indices_or_sections", Ints({1, 3})}, {"axis", -1}}, {2, 4});
  b.Add("split", "sections", {Data(kF32, {6, 2})}, {{"indices_or_sections", 3}});
  b.Add("split", "uneven", {Data(kF32, {5, 2})}, {{"indices_or_sections", 2}});
  b.Add("split", "one", {Data(kF32, {5})}, {{"indices_or_sections", 1}});
  b.Add("split", "many", {Data(kF32, {2, 9})}, {{"indices_or_sections", 9}, {"axis", 1}});
  b.Add("split", "beyond", {Data(kF32, {4})}, {{"indices_or_sections", Ints({2, 6})}});
  b.Add("split", "empty", {Data(kF32, {0, 4})}, {{"indices_or_sections", 2}, {"axis", 1}});
  b.Add("split", "specials", {Specials()}, {{"indices_or_sections", 2}});

  MoveCases(b, "tile", {{"repeats", Ints({2, 1, 3})}}, {2, 3});
  b.Add("tile", "short", {Data(kF32, {2, 3})}, {{"repeats", Ints({2})}});
  b.Add("tile", "none", {Data(kF32, {2, 3})}, {{"repeats", Ints({1, 0})}});
  b.Add("tile", "rank0", {Data(kF32, {})}, {{"repeats", Ints({3})}});
  b.Add("tile", "empty", {Data(kF32, {0, 2})}, {{"repeats", Ints({2, 2})}});
  b.Add("tile", "specials", {Specials()}, {{"repeats", Ints({2})}});

  MoveCases(b, "repeat", {{"repeats", 3}, {"axis", 1}}, {2, 3});
  b.Add("repeat", "flat", {Data(kF32, {2, 3})}, {{"repeats", 2}});
  b.Add("repeat", "none", {Data(kF32, {2, 3})}, {{"repeats", 0}, {"axis", 0}});
  b.Add("repeat", "rank0", {Data(kF32, {})}, {{"repeats", 2}});
  b.Add("repeat", "empty", {Data(kF32, {0, 3})}, {{"repeats", 2}, {"axis", 1}});
  b.Add("repeat", "specials", {Specials()}, {{"repeats", 2}, {"axis", 0}});

  MoveCases(b, "flip", {{"axis", 1}}, {2, 3});
  b.Add("flip", "first_axis", {Data(kF32, {3, 2})}, {{"axis", -2}});
  b.Add("flip", "empty", {Data(kF32, {0, 2})}, {{"axis", 0}});
  b.Add("flip", "specials", {Specials()}, {{"axis", 0}});

  for (DataType dtype : DataTypesOf("reverse_sequence")) {
    b.Add("reverse_sequence", dtype.ToString(), {Data(dtype, {3, 4, 2}), Indices({3}, {2, 4, 1})});
  }
  b.Add("reverse_sequence", "time_first", {Data(kF32, {4, 2}), Indices({2}, {3, 0}, kI32)},
        {{"seq_axis", 0}, {"batch_axis", 1}});
  b.Add("reverse_sequence", "out_of_range", {Data(kF32, {2, 3}), Indices({2}, {9, -2})});
  b.Add("reverse_sequence", "empty", {Data(kF32, {2, 0}), Indices({2}, {0, 0})});
  b.Add("reverse_sequence", "specials", {SpecialsOf({1, 8}), Indices({1}, {5})});

  for (const char* op : {"tril", "triu"}) {
    const auto diagonal = [](double k) { return Then({Scalar(k)}); };
    MoveCases(b, op, {}, {2, 3, 4}, diagonal(0));
    b.Add(op, "above", {Data(kF32, {4, 3})}, {}, diagonal(1));
    b.Add(op, "below", {Data(kF32, {3, 4})}, {}, diagonal(-2));
    b.Add(op, "far", {Data(kF32, {3, 3})}, {}, diagonal(7));
    b.Add(op, "empty", {Data(kF32, {0, 3})}, {}, diagonal(0));
    b.Add(op, "specials", {SpecialsOf({2, 4})}, {}, diagonal(0));
  }

  const auto range = [](double start, double end, double step) {
    return Then({Scalar(start), Scalar(end), Scalar(step)});
  };
  for (const char* dtype : {"float32", "float16", "int32", "int64"}) {
    b.Add("arange", dtype, {}, {{"dtype", dtype}}, range(2, 9, 3));
  }
  b.Add("arange", "down", {}, {{"dtype", "int64"}}, range(5, -2, -2));
  b.Add("arange", "fractions", {}, {{"dtype", "float32"}}, range(0.5, 2.25, 0.25));
  const auto far_range = [](int64_t start, int64_t end, int64_t step) {
    std::vector<ir::Expr> ends;
    for (int64_t value : {start, end, step}) ends.push_back(ir::Make<ir::PrimValueNode>(ir::Int64(value)));
    return Then(std::move(ends));
  };
  const int64_t least = std::numeric_limits<int64_t>::min(), greatest = std::numeric_limits<int64_t>::max();
  b.Add("arange", "least_step", {}, {{"dtype", "int64"}}, far_range(0, least, least));
  b.Add("arange", "least_steps", {}, {{"dtype", "int64"}}, far_range(greatest, least, least));
  b.Add("arange", "all_integers", {}, {{"dtype", "int64"}}, far_range(least, greatest, int64_t{1} << 62));
  b.Add("arange", "empty", {}, {{"dtype", "int64"}}, range(5, 5, 1));
  b.Add("arange", "backwards", {}, {{"dtype", "int64"}}, range(5, 2, 1));
  for (const char* dtype : {"float32", "float16", "int32", "int64"}) {
    b.Add("eye", dtype, {}, {{"dtype", dtype}}, range(3, 4, 1));
  }
  b.Add("eye", "below", {}, {{"dtype", "float32"}}, range(4, 3, -1));
  b.Add("eye", "empty", {}, {{"dtype", "float32"}}, range(0, 3, 0));

  for (const char* mode : {"reflect", "replicate", "circular"}) {
    const std::string label = mode;
    const Attrs attrs = {{"pad_width", Ints({1, 2, 2, 0})}, {"pad_mode", mode}};
    for (DataType dtype : DataTypesOf("nn.pad")) {
      b.Add("nn.pad", label + "_" + dtype.ToString(), {Data(dtype, {3, 3})}, attrs);
    }
    b.Add("nn.pad", label + "_far", {Data(kF32, {2, 3})}, {{"pad_width", Ints({5, 4, 7, 8})}, {"pad_mode", mode}});
    b.Add("nn.pad", label + "_one", {Data(kF32, {1})}, {{"pad_width", Ints({2, 1})}, {"pad_mode", mode}});
    b.Add("nn.pad", label + "_empty", {Data(kF32, {0, 2})}, {{"pad_width", Ints({0, 0, 1, 1})}, {"pad_mode", mode}});
  }
}

void OrderingCases(CaseBuilder& b) {
  const ReferenceTensor ties = Of(kF32, {2, 6}, {1, 3, 2, 3, 1, 0, -kInf, -kInf, kInf, 0, kInf, 0});
  const ReferenceTensor nans = Of(kF32, {2, 5}, {1, kNan, 3, kNan, -kInf, kNan, kNan, kNan, kNan, kNan});
  for (const char* op : {"argmax", "argmin"}) {
    MoveCases(b, op, {{"axis", 1}}, {2, 5, 3});
    b.Add(op, "keepdims", {Data(kF32, {3, 4})}, {{"axis", -1}, {"keepdims", true}});
    b.Add(op, "first_axis", {Data(kF32, {5, 3})}, {{"axis", 0}});
    b.Add(op, "ties", {ties}, {{"axis", 1}});
    b.Add(op, "ties_last", {ties}, {{"axis", 1}, {"select_last_index", true}});
    b.Add(op, "all_infinite", {Of(kF32, {3}, {-kInf, -kInf, -kInf})}, {{"axis", 0}});
    b.Add(op, "empty", {Data(kF32, {0, 3})}, {{"axis", 1}});
    b.Add(op, "specials", {nans}, {{"axis", 1}});
    b.Add(op, "specials_last", {nans}, {{"axis", 1}, {"select_last_index", true}});
    b.Add(op, "nan_first", {Of(kF32, {2, 4}, {kNan, 3, kNan, 1, kInf, kNan, -kInf, kNan})}, {{"axis", 1}});
    b.Add(op, "nan_columns", {Of(kF32, {3, 4}, {kNan, 3, 1, 2, 5, kNan, 0, kNan, -kInf, 2, kNan, 2})}, {{"axis", 0}});
  }
  for (const char* op : {"cumsum", "cumprod"}) {
    const bool product = std::string_view(op) == "cumprod";
    for (DataType dtype : DataTypesOf(op)) {
      ReferenceTensor x = Data(dtype, {2, 4, 3});
      for (int64_t i = 0; i < CountOf(x.dims); ++i) {  // small: integers do not overflow, floats keep their precision
        SetNumber(x, i, dtype.is_uint() || product ? static_cast<double>(i % 3) : static_cast<double>(i % 7) - 3);
      }
      b.Add(op, dtype.ToString(), {x}, {{"axis", 1}});
      b.Add(op, dtype.ToString() + "_exclusive", {x}, {{"axis", -1}, {"exclusive", true}});
    }
    b.Add(op, "wider", {Of(DataType::Int(8), {3}, {100, 2, 100})}, {{"axis", 0}, {"dtype", "int32"}});
    ReferenceTensor rows = Data(kF32, {150, 2});  // sums of parts, of which the last one is shorter
    for (int64_t i = 0; i < 300; ++i)
      SetNumber(rows, i, product ? 1 - static_cast<double>(i % 5 == 3) * 2 : i % 7 - 3.0);
    b.Add(op, "long", {rows}, {{"axis", 0}});
    b.Add(op, "empty", {Data(kF32, {2, 0})}, {{"axis", 1}});
    b.Add(op, "specials", {Of(kF32, {6}, {1, kInf, 2, -kInf, 3, kNan})}, {{"axis", 0}});
  }
  // Rows of several vectors: equal best elements far apart, and NaN in the first place, in others and everywhere.
  ReferenceTensor best = Data(kF32, {4, 83});
  for (int64_t i = 0; i < 83; ++i) {
    SetNumber(best, i, static_cast<double>(i % 40));
    SetNumber(best, 83 + i, i == 0 ? kNan : static_cast<double>(-i));
    SetNumber(best, 166 + i, i % 3 == 1 ? kNan : -kInf);
    SetNumber(best, 249 + i, kNan);
  }
  for (const char* op : {"argmax", "argmin"}) {
    for (const bool last : {false, true}) {
      const std::string which = last ? "long_last" : "long_first";
      b.Add(op, which, {best}, {{"axis", 1}, {"select_last_index", last}});
      b.Add(op, which + "_of_columns", {best}, {{"axis", 0}, {"keepdims", true}, {"select_last_index", last}});
    }
  }
  for (const char* op : {"sort", "argsort"}) {
    MoveCases(b, op, {{"axis", 1}}, {2, 7, 2});
    b.Add(op, "descending", {Data(kF32, {3, 9})}, {{"descending", true}});
    b.Add(op, "ties", {ties});
    b.Add(op, "ties_descending", {ties}, {{"descending", true}});
    b.Add(op, "long", {Data(kF32, {1, 100})});
    b.Add(op, "rows", {Data(kF32, {3, 200})});
    b.Add(op, "columns", {Data(kF32, {200, 3})}, {{"axis", 0}});
    b.Add(op, "few", {Data(kF32, {9})});
    b.Add(op, "one", {Data(kF32, {3, 1})});
    b.Add(op, "empty", {Data(kF32, {2, 0})});
    b.Add(op, "specials", {nans});
    // By digits: of all dtypes, equal elements, the least and greatest ones, and both signs.
    for (DataType dtype : DataTypesOf(op)) {
      ReferenceTensor many = Data(dtype, {130});
      for (int64_t i = 0; i < 130; i += 4) CopyElement(many, i / 8, many, i);
      SetNumber(many, 1, dtype.is_floating() ? -kInf : dtype.is_uint() || dtype.is_bool() ? 0 : -128);
      SetNumber(many, 2, dtype.is_floating() ? kInf : dtype.is_bool() ? 1 : 127);
      if (dtype.is_floating()) SetNumber(many, 3, kNan);
      if (dtype.is_floating()) SetNumber(many, 7, -0.0);
      if (dtype.is_floating()) SetNumber(many, 9, 0.0);
      b.Add(op, dtype.ToString() + "_many", {many});
      b.Add(op, dtype.ToString() + "_many_descending", {many}, {{"descending", true}});
    }
    const std::vector<int64_t> extremes = {INT64_MAX, INT64_MIN, -1, 0, 1, int64_t{1} << 32, -(int64_t{1} << 32), 255};
    for (const DataType dtype : {DataType::Int(64), DataType::UInt(64), DataType::Int(32), DataType::UInt(32)}) {
      ReferenceTensor wide = Data(dtype, {128});
      for (int64_t i = 0; i < 128; ++i) {
        const int64_t x = extremes[static_cast<size_t>(i * 5 % 8)] ^ (i / 64);
        const int64_t narrow = dtype.is_uint() ? int64_t{static_cast<uint32_t>(x)} : static_cast<int32_t>(x);
        wide.ints[static_cast<size_t>(i)] = dtype.bits == 64 ? x : narrow;
      }
      b.Add(op, dtype.ToString() + "_extremes", {wide});
      b.Add(op, dtype.ToString() + "_extremes_descending", {wide}, {{"descending", true}});
    }
  }
  b.Add("argsort", "int64", {Data(kF32, {2, 5})}, {{"dtype", "int64"}});
  MoveCases(b, "topk", {{"k", 3}, {"axis", 1}}, {2, 7, 2});
  ReferenceTensor often = Data(kF32, {2, 300});  // equal elements in several parts
  for (int64_t i = 0; i < 600; ++i) SetNumber(often, i, i % 97 == 5 ? kNan : static_cast<double>(i * 7 % 31));
  b.Add("topk", "long", {often}, {{"k", 3}});
  b.Add("topk", "long_smallest", {often}, {{"k", 40}, {"largest", false}});
  b.Add("topk", "smallest", {Data(kF32, {3, 9})}, {{"k", 4}, {"largest", false}, {"dtype", "int64"}});
  b.Add("topk", "values", {Data(kF32, {3, 5})}, {{"k", 5}, {"ret_type", "values"}});
  b.Add("topk", "indices", {Data(kF32, {3, 5})}, {{"k", 1}, {"ret_type", "indices"}});
  b.Add("topk", "ties", {ties}, {{"k", 4}});
  b.Add("topk", "nothing", {Data(kF32, {2, 3})}, {{"k", 0}});
  b.Add("topk", "empty", {Data(kF32, {0, 3})}, {{"k", 2}});
  b.Add("topk", "specials", {nans}, {{"k", 3}});
  b.Add("topk", "specials_smallest", {nans}, {{"k", 4}, {"largest", false}});
  // Rows that rise, fall and repeat: every further element displaces one, none does, and equal ones stay in order.
  ReferenceTensor rows = Data(kF32, {3, 100});
  for (int64_t i = 0; i < 100; ++i) {
    SetNumber(rows, i, static_cast<double>(i));
    SetNumber(rows, 100 + i, static_cast<double>(-i));
    SetNumber(rows, 200 + i, static_cast<double>(i * 7 % 5));
  }
  for (const int64_t k : {1, 2, 31, 100}) {
    for (const bool largest : {false, true}) {
      b.Add("topk", std::to_string(k) + (largest ? "_greatest" : "_least"), {rows}, {{"k", k}, {"largest", largest}});
    }
  }
  b.Add("topk", "of_all", {Data(kF32, {2, 5000})}, {{"k", 4999}});  // more than local buffers hold
}

}  // namespace

void MovementCases(CaseBuilder& b) {
  IndexingCases(b);
  ScatterCases(b);
  MovedCases(b);
  OrderingCases(b);
}

}  // namespace ingot::op
