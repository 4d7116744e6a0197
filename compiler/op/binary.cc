// Operators of two tensors with NumPy's broadcasting: one row of kBinary each (name, domain, float64 and int64
// reference, scalar expression), from which the operator's row is made.
#include <cmath>
#include <string_view>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/elementwise.h"

namespace ingot::op {
namespace {

using ir::PrimExpr;

struct Binary {
  const char* name;
  const char* summary;
  double (*of_float)(double, double);    // null: not for floats
  int64_t (*of_int)(int64_t, int64_t);   // null: floats alone; of bool for logical operators
  PrimExpr (*expr)(PrimExpr, PrimExpr);  // of the elements
  bool returns_bool = false;
  bool takes_bool = false;  // besides numbers; alone when of_float is null and it returns bool
  const char* prepare_builtin = nullptr;
  SignBit sign_bit = SignBit::kUnknown;
  bool divides = false;
};

double NanMin(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double NanMax(double a, double b) { return std::isnan(a) || a > b ? a : b; }
// Of integers sums, products and quotients wrap around, as kernels' do; a quotient by 0 is 0 here, an error there.
using UInt = uint64_t;
int64_t Negative(int64_t a) { return static_cast<int64_t>(-static_cast<UInt>(a)); }
int64_t Add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<UInt>(a) + static_cast<UInt>(b)); }
int64_t Multiply(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<UInt>(a) * static_cast<UInt>(b)); }
int64_t Divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? Negative(a) : a / b; }
int64_t Modulo(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return Divide(a, b);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
double FloorModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// A shift by a negative number, or by all bits or more, leaves the sign alone: 0, or -1 (right shift of a negative
// one).
int64_t ShiftLeft(int64_t a, int64_t b) {
  return b >= 0 && b < 64 ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : 0;
}
int64_t ShiftRight(int64_t a, int64_t b) { return b >= 0 && b < 64 ? a >> b : a < 0 ? -1 : 0; }
template <ir::Intrinsic op>
PrimExpr Shift(PrimExpr a, PrimExpr b) {
  const PrimExpr zero = ir::MakeConst(a->dtype, 0), last = ir::MakeConst(b->dtype, a->dtype.bits - 1);
  const PrimExpr in_range = ir::And(b >= ir::MakeConst(b->dtype, 0), b <= last);
  const PrimExpr shifted = ir::CallIntrinsic(op, {a, ir::Min(ir::Max(b, ir::MakeConst(b->dtype, 0)), last)});
  const bool has_sign = op == ir::Intrinsic::kShiftRight && a->dtype.is_int();
  return ir::Select(in_range, shifted, has_sign ? ir::Select(a < zero, ir::MakeConst(a->dtype, -1), zero) : zero);
}

// Integer powers, by squaring. With an exponent above 63 only the powers of -1, 0 and 1 fit; with a negative exponent
// only -1 and 1 have integer powers.
constexpr int kExponentBits = 6;
int64_t IntPower(int64_t a, int64_t b) {
  if (b < 0 || b >= int64_t{1} << kExponentBits) {
    const int64_t of_minus_one = b % 2 == 0 ? 1 : -1;
    return a == 1 ? 1 : a == -1 ? of_minus_one : 0;
  }
  uint64_t power = 1;
  for (int64_t i = 0; i < b; ++i) power *= static_cast<uint64_t>(a);
  return static_cast<int64_t>(power);
}
PrimExpr Power(PrimExpr a, PrimExpr b) {
  if (a->dtype.is_floating()) return ir::CallIntrinsic(ir::Intrinsic::kPow, {a, b});
  const auto constant = [&](int64_t value) { return ir::IntImm(a->dtype, value); };
  // Bits are tested by division and remainder, which fold for constants: a known exponent leaves products alone.
  const auto bit = [&](int i) {
    return ir::NotEqual(ir::FloorMod(ir::FloorDiv(b, constant(int64_t{1} << i)), constant(2)), constant(0));
  };
  PrimExpr power = ir::Select(bit(0), a, constant(1)), square = a;
  for (int i = 1; i < kExponentBits; ++i) {
    square = square * square;
    power = power * ir::Select(bit(i), square, constant(1));
  }
  const PrimExpr in_range = ir::And(b >= constant(0), b < constant(int64_t{1} << kExponentBits));
  PrimExpr others = ir::Select(ir::Equal(a, constant(1)), constant(1), constant(0));
  if (a->dtype.is_int()) {
    others = ir::Select(ir::Equal(a, constant(-1)), ir::Select(bit(0), constant(-1), constant(1)), others);
  }
  return ir::Select(in_range, power, others);
}
template <ir::Intrinsic op>
PrimExpr Intrin(PrimExpr a, PrimExpr b) {
  return ir::CallIntrinsic(op, {std::move(a), std::move(b)});
}

const Binary kBinary[] = {
    {"add", "x1 + x2", [](double a, double b) { return a + b; }, Add, [](PrimExpr a, PrimExpr b) { return a + b; },
     false, false, "add", SignBit::kOfArguments},
    {"bitwise_and", "x1 & x2", nullptr, [](int64_t a, int64_t b) { return a & b; }, Intrin<ir::Intrinsic::kBitwiseAnd>},
    {"bitwise_or", "x1 | x2", nullptr, [](int64_t a, int64_t b) { return a | b; }, Intrin<ir::Intrinsic::kBitwiseOr>},
    {"bitwise_xor", "x1 ^ x2", nullptr, [](int64_t a, int64_t b) { return a ^ b; }, Intrin<ir::Intrinsic::kBitwiseXor>},
    {"divide", "x1 / x2; integers truncate", [](double a, double b) { return a / b; }, Divide,
     [](PrimExpr a, PrimExpr b) { return a / b; }, false, false, "div", SignBit::kOfArguments, true},
    {"equal", "x1 == x2", [](double a, double b) { return a == b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a == b}; }, ir::Equal, true, true},
    {"floor_divide", "floor(x1 / x2)", [](double a, double b) { return std::floor(a / b); }, FloorDivide,
     [](PrimExpr a, PrimExpr b) {
       if (!a->dtype.is_floating()) return ir::FloorDiv(a, b);
       return ir::CallIntrinsic(ir::Intrinsic::kFloor, {a / b});
     },
     false, false, nullptr, SignBit::kUnknown, true},
    {"floor_mod", "the exact remainder with the sign of x2", FloorModulo,
     [](int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a - FloorDivide(a, b) * b; }, ir::FloorMod, false, false,
     nullptr, SignBit::kUnknown, true},
    {"greater", "x1 > x2", [](double a, double b) { return a > b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a > b}; }, [](PrimExpr a, PrimExpr b) { return a > b; }, true},
    {"greater_equal", "x1 >= x2", [](double a, double b) { return a >= b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a >= b}; }, [](PrimExpr a, PrimExpr b) { return a >= b; }, true},
    {"left_shift", "x1 << x2", nullptr, ShiftLeft, Shift<ir::Intrinsic::kShiftLeft>},
    {"less", "x1 < x2", [](double a, double b) { return a < b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a < b}; }, [](PrimExpr a, PrimExpr b) { return a < b; }, true},
    {"less_equal", "x1 <= x2", [](double a, double b) { return a <= b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a <= b}; }, [](PrimExpr a, PrimExpr b) { return a <= b; }, true},
    {"logical_and", "x1 and x2", nullptr, [](int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }, ir::And, true,
     true},
    {"logical_or", "x1 or x2", nullptr, [](int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }, ir::Or, true,
     true},
    {"logical_xor", "x1 != x2 of bool", nullptr, [](int64_t a, int64_t b) { return int64_t{(a != 0) != (b != 0)}; },
     ir::NotEqual, true, true},
    {"maximum", "the greater one; NaN wins", NanMax, [](int64_t a, int64_t b) { return a > b ? a : b; }, ir::Max, false,
     false, "maximum", SignBit::kOfArguments},
    {"minimum", "the lesser one; NaN wins", NanMin, [](int64_t a, int64_t b) { return a < b ? a : b; }, ir::Min, false,
     false, "minimum", SignBit::kOfArguments},
    {"mod", "x1 - trunc(x1 / x2) * x2", [](double a, double b) { return std::fmod(a, b); }, Modulo,
     [](PrimExpr a, PrimExpr b) {
       if (!a->dtype.is_floating()) return ir::MakeBinary(ir::BinaryOp::kTruncMod, a, b);
       return ir::CallIntrinsic(ir::Intrinsic::kFmod, {a, b});
     },
     false, false, nullptr, SignBit::kUnknown, true},
    {"multiply", "x1 * x2", [](double a, double b) { return a * b; }, Multiply,
     [](PrimExpr a, PrimExpr b) { return a * b; }, false, false, "mul", SignBit::kOfArguments},
    {"not_equal", "x1 != x2", [](double a, double b) { return a != b ? 1.0 : 0.0; },
     [](int64_t a, int64_t b) { return int64_t{a != b}; }, ir::NotEqual, true, true},
    {"power", "x1 to the power of x2", [](double a, double b) { return std::pow(a, b); }, IntPower, Power},
    {"right_shift", "x1 >> x2", nullptr, ShiftRight, Shift<ir::Intrinsic::kShiftRight>},
    {"subtract", "x1 - x2", [](double a, double b) { return a - b; },
     [](int64_t a, int64_t b) { return Add(a, Negative(b)); }, [](PrimExpr a, PrimExpr b) { return a - b; }, false,
     false, "sub"},
};

const Binary& BinaryOf(const ir::Call& call) {
  const std::string_view name = RowOf(call)->name;
  for (const Binary& binary : kBinary) {
    if (name == binary.name) return binary;
  }
  INGOT_UNREACHABLE("no binary operator");
}

bool TakesDataType(const Binary& binary, DataType dtype) {
  if (dtype.is_bool()) return binary.takes_bool;
  if (dtype.is_floating()) return binary.of_float != nullptr;
  const bool bools_alone = binary.takes_bool && binary.of_float == nullptr;
  return dtype.is_integral() && binary.of_int != nullptr && !bools_alone;
}

Result<ir::Type> InferBinary(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType a, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType b, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(std::optional<DataType> dtype, CommonDataType(call, a, b));
  const Binary& binary = BinaryOf(call);
  if (dtype && !TakesDataType(binary, *dtype)) {
    return OpError(call, "unsupported dtype " + dtype->ToString() + " of " + Describe(a));
  }
  if (binary.returns_bool) dtype = DataType::Bool();
  if (a->dims && b->dims) {
    INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> dims, BroadcastDims(call, *a->dims, *b->dims));
    if (dims) return TensorOf(*dims, dtype, a);
  }
  return TensorOfRank(a->rank >= 0 && b->rank >= 0 ? std::max(a->rank, b->rank) : -1, dtype, a);
}

// The low bits of an integer, as its dtype holds them.
int64_t Wrap(DataType dtype, int64_t value) {
  const int shift = 64 - dtype.bits;
  const auto bits = static_cast<uint64_t>(value) << shift;
  return dtype.is_int() ? static_cast<int64_t>(bits) >> shift : static_cast<int64_t>(bits >> shift);
}

// The references of uint64, whose upper half int64 takes for negative: of all others int64 holds every number.
struct UnsignedBinary {
  const char* name;
  UInt (*of)(UInt, UInt);
};
constexpr UnsignedBinary kUnsigned[] = {
    {"divide", [](UInt a, UInt b) { return b == 0 ? 0 : a / b; }},
    {"floor_divide", [](UInt a, UInt b) { return b == 0 ? 0 : a / b; }},
    {"floor_mod", [](UInt a, UInt b) { return b == 0 ? 0 : a % b; }},
    {"greater", [](UInt a, UInt b) { return UInt{a > b}; }},
    {"greater_equal", [](UInt a, UInt b) { return UInt{a >= b}; }},
    {"less", [](UInt a, UInt b) { return UInt{a < b}; }},
    {"less_equal", [](UInt a, UInt b) { return UInt{a <= b}; }},
    {"maximum", [](UInt a, UInt b) { return a > b ? a : b; }},
    {"minimum", [](UInt a, UInt b) { return a < b ? a : b; }},
    {"mod", [](UInt a, UInt b) { return b == 0 ? 0 : a % b; }},
    {"right_shift", [](UInt a, UInt b) { return b < 64 ? a >> b : 0; }},
};

int64_t OfInts(const Binary& binary, DataType dtype, int64_t a, int64_t b) {
  if (dtype == DataType::UInt(64)) {
    for (const UnsignedBinary& row : kUnsigned) {
      if (std::string_view(row.name) == binary.name) {
        return static_cast<int64_t>(row.of(static_cast<UInt>(a), static_cast<UInt>(b)));
      }
    }
  }
  return binary.of_int(a, b);
}

Result<std::vector<ReferenceTensor>> ReferenceBinary(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const Binary& binary = BinaryOf(call);
  const ReferenceTensor& a = inputs[0];
  const ReferenceTensor& b = inputs[1];
  ReferenceTensor out =
      NewReference(binary.returns_bool ? DataType::Bool() : a.dtype, BroadcastReferenceDims(a.dims, b.dims));
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    const auto i = static_cast<size_t>(FlattenBroadcast(a.dims, index));
    const auto j = static_cast<size_t>(FlattenBroadcast(b.dims, index));
    if (a.dtype.is_floating()) {
      SetNumber(out, flat, binary.of_float(a.floats[i], b.floats[j]));
    } else {
      const int64_t value = OfInts(binary, a.dtype, a.ints[i], b.ints[j]);
      out.ints[static_cast<size_t>(flat)] = out.dtype.is_bool() ? value : Wrap(out.dtype, value);
    }
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

Result<PrepareCall> PrepareBinary(const ir::Call& call) {
  return PrepareCall{BinaryOf(call).prepare_builtin, {InputIndex{0}, InputIndex{1}}};
}

// Functions of several steps round sixteen-bit floats once.
te::Tensor DefineBinary(const TeArgs& args) {
  const Binary& binary = BinaryOf(args.call());
  return topi::BroadcastMap(
      args.inputs(), args.out_dims(),
      [&](const std::vector<PrimExpr>& e) {
        return ir::Cast(args.out_dtype(), binary.expr(topi::Wide(e[0]), topi::Wide(e[1])));
      },
      "T_" + std::string(binary.name));
}

}  // namespace

std::vector<OpRow> BinaryOps() {
  std::vector<OpRow> rows;
  for (const Binary& binary : kBinary) {
    OpRow row{.name = binary.name,
              .summary = binary.summary,
              .arg_names = {"x1", "x2"},
              .fusion = FusionClass::kBroadcast,
              .sign_bit = binary.sign_bit,
              .divides = binary.divides,
              .infer = InferBinary,
              .reference = ReferenceBinary,
              .implementations = {TeImplementation<DefineBinary>()}};
    row.cases.broadcast = true;
    row.cases.non_finite = binary.of_float != nullptr;
    for (DataType dtype : {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16(),
                           DataType::Int(32), DataType::Int(64), DataType::Bool()}) {
      if (TakesDataType(binary, dtype)) row.cases.dtypes.push_back(dtype);
    }
    if (binary.prepare_builtin != nullptr) {
      row.prepare = PrepareBinary;
      row.fold = FoldByPrepare;
    } else if (binary.returns_bool || binary.of_float == nullptr) {
      row.fold = FoldExact;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ingot::op
