// How the functions are computed. All use fma, and integer arithmetic on the bit patterns of floats; polynomials are
// minimax fits by scripts/fit_polynomials.py. Constants that depend on the format stand in Format.
//
//   exp        x = n ln2 + r with n = round(x / ln2); exp(r) by a polynomial; scaled by 2^n and rounded once, in the
//              denormal range, too (expand_operations.h). exp2 the same with r = (x - n) ln2. Where the result is
//              0, as that of hidden scores, 0 is chosen: a product that vanishes takes a hundred times as long.
//   log        x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) by a polynomial in m - 1 (float32) or in
//              s = (m - 1) / (m + 1) (float64, as in fdlibm's e_log.c).
//   log1p      log(u) + (x - (u - 1)) / u with u = 1 + x rounded (Kahan).
//   tanh       u / (u + 1) with u = (exp(2 |x|) - 1) / 2 from the same polynomial without its constant 1, of r / 2. The
//              rest of ln2 does not matter: where n is large, the quotient is nearly 1.
//   sigmoid    1 / (1 + e) or e / (1 + e) with e = exp(-|x|), so that neither overflows nor loses the tail; 0 where that
//              is a denormal number: gates that are shut would give many, and what multiplies them take a hundred times
//              as long.
//   erf        |x| < 1: x P(x^2); else 1 - exp(P(|x|)), the polynomial fitting log(erfc).
//   sin, cos   x - n pi/2, in float64 for float32 arguments; float32 arguments of 2^28 and float64 arguments of 2^30
//              and more multiply the bits of 2 / pi that matter (Payne and Hanek), in a branch that is hardly ever taken.
//   sinh, cosh from exp(|x|) / 2 and exp(|x|) - 1, which come from one reduction.
//   asinh, acosh, atanh  log1p of an argument that is exact near the zero; log(2 x) where squares would overflow.
//   atan       x, (x - 1) / (x + 1) or -1 / x, whichever is in [-tan(pi/8), tan(pi/8)]: t + t z P(z).
//   asin, acos |x| <= 1/2: x + x z P(z); else 2 asin(sqrt((1 - |x|) / 2)) from pi / 2.
//   pow        exp(y log(x)) with the logarithm as an unevaluated sum of two float64; float32 through float64.
//   fmod       in float64, exactly: quotients of up to 50 bits at a time.
#include "compiler/codegen/vector_math.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/codegen/expand_operations.h"
#include "compiler/codegen/numeric.h"
#include "runtime/check.h"

namespace ingot::codegen {
namespace {

using llvm::Value;

struct Format {
  int mantissa_bits, bias;
  double round_magic;       // adding it leaves round(x) in the low bits of the sum
  double exp_min, exp_max;  // beyond them exp is 0 or infinite
  double exp_normal;        // from it on exp is a normal number
  double ln2_hi, ln2_lo;    // hi has trailing zeros: e * hi is exact
  double ln2, ln2_rest;     // ln2 rounded to the format, and the remainder
  double smallest_normal;
  int64_t sqrt_half_bits;
  double tanh_max;                                                  // above it tanh rounds to 1
  double erf_center, erf_max;                                       // of the polynomial for log(erfc)
  llvm::ArrayRef<double> exp, expm1, log, sin, cos, erf, log_erfc;  // expm1 also keeps small results exact
};

// float32
constexpr double kExp32[] = {0.499991387, 0.166664556, 0.041899208, 0.00837477949};
constexpr double kExpm132[] = {0.5, 0.166665182, 0.0416662022, 0.00836902484, 0.00139507046};
constexpr double kLog32[] = {0.333333164, -0.250008106, 0.200022861, -0.16624555,
                             0.141811863, -0.13128747,  0.128816843, -0.0785967335};
constexpr double kSin32[] = {-0.166666672, 0.0083333794, -0.000198530048, 2.83123904e-6};
constexpr double kCos32[] = {0.0416666679, -0.00138889812, 2.48224478e-5, -2.89181543e-7};
constexpr double kErf32[] = {0.128379167,   -0.37612626,     0.112835974,  -0.0268543586,
                             0.00518939132, -0.000801968446, 7.88555117e-5};
constexpr double kLogErfc32[] = {-7.80681515,     -5.35268068,   -0.943893492,   -0.0108587313, 0.00216259225,
                                 -0.000423923164, 7.81816416e-5, -8.19737761e-6, 5.19880678e-6, 7.84501083e-7};
// float64
constexpr double kExp64[] = {0.5,
                             0.16666666666666685,
                             0.041666666666666727,
                             0.0083333333333164873,
                             0.001388888888885805,
                             0.00019841269897692712,
                             2.4801587374431549e-5,
                             2.7557233594059823e-6,
                             2.7557232813378049e-7,
                             2.5112466960724326e-8,
                             2.092710320094855e-9};
constexpr double kLog64[] = {0.66666666666666663, 0.40000000000004937, 0.28571428569404195, 0.2222222260827825,
                             0.18181778235418816, 0.15386994588746752, 0.13252010376401227, 0.13236083906073837};
constexpr double kSin64[] = {-0.16666666666666666,    0.008333333333332955,   -0.00019841269840746716,
                             2.7557318881020584e-6,   -2.5051988135621927e-8, 1.6035873977300321e-10,
                             -5.3335131168933422e-13, -9.0765568423797791e-14};
constexpr double kCos64[] = {0.041666666666666664,   -0.0013888888888888243, 2.4801587300901479e-5,
                             -2.7557318854144929e-7, 2.0876645518691461e-9,  -1.1451711681231845e-11,
                             3.0573569565811119e-14, 6.2614119595145608e-15};
constexpr double kAtan64[] = {-0.33333333333333198,  0.19999999999953771,  -0.14285714280212822,  0.11111110784186982,
                              -0.090908977765131224, 0.076920605137623485, -0.066631070437332851, 0.058479080078911609,
                              -0.050393740351652186, 0.038065913083225565, -0.017908209148338985};
constexpr double kAsin64[] = {0.1666666666666666,    0.075000000000023978, 0.044642857139804433,  0.030381944639259757,
                              0.022372151757761676,  0.017352942304522608, 0.013961913648134381,  0.011585598186332145,
                              0.0094844770374312715, 0.010007955015487414, 0.0006850589905728966, 0.024828097913223907,
                              -0.026163706947764272, 0.033659907699678825};
constexpr double kErf64[] = {0.1283791670955126,     -0.37612638903183271,   0.1128379167092534,
                             -0.026866170637621551,  0.0052239775256722066,  -0.00085483190609068915,
                             0.00012054921072233257, -1.4911192122130828e-5, 1.6108708646746733e-6,
                             -1.0285914253009058e-7, -5.852148486948891e-8,  5.9449963456432959e-8,
                             -3.2712873888757855e-8, 1.0429504747174199e-8,  -1.4806101224424795e-9};
constexpr double kLogErfc64[] = {
    -14.112437402148174,     -7.2660995883651518,     -0.96675305474196493,    -0.0052256582218560034,
    0.00087368732019773849,  -0.00014729778493114434, 2.4386368919324692e-5,   -3.8895308181366022e-6,
    5.8566808818686884e-7,   -8.0665645945201497e-8,  9.492042762287559e-9,    -8.471292757073839e-10,
    -6.4025579855280376e-11, 4.13844018342833e-11,    1.8946835291161244e-11,  1.8566609487174382e-11,
    2.1366268749618816e-12,  -2.2725265187733513e-12, -1.7847938825506578e-12, -6.0527370228458088e-13,
    -1.1743853134903664e-13, -1.224647836897123e-14,  -4.7930147538312366e-16};

const Format kFloat32 = {23,           127,
                         0x1.8p23,     -104.0,
                         89.0,         -0x1.5d589ep+6,
                         0x1.62e4p-1,  0x1.7f7d1cp-20,
                         0x1.62e43p-1, -0x1.05c61p-29,
                         0x1p-126,     0x3F3504F3,
                         10.0,         2.5,
                         4.0,          kExp32,
                         kExpm132,     kLog32,
                         kSin32,       kCos32,
                         kErf32,       kLogErfc32};
const Format kFloat64 = {52,
                         1023,
                         0x1.8p52,
                         -746.0,
                         710.0,
                         -0x1.6232bdd7abcd2p+9,
                         0x1.62e42fefa3p-1,
                         0x1.3de6af278ece6p-42,
                         0x1.62e42fefa39efp-1,
                         0x1.abc9e3b39803fp-56,
                         0x1p-1022,
                         0x3FE6A09E667F3BCD,
                         22.0,
                         3.5,
                         6.0,
                         kExp64,
                         kExp64,
                         kLog64,
                         kSin64,
                         kCos64,
                         kErf64,
                         kLogErfc64};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2OfE = 1.4426950408889634074;
// pi / 2 as a sum of three float64, and 2 / pi.
constexpr double kHalfPi1 = 0x1.921fb54442d18p+0;
constexpr double kHalfPi2 = 0x1.1a62633145c07p-54;
constexpr double kHalfPi3 = -0x1.f1976b7ed8fbcp-110;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// 2 / pi in pieces of 24 bits: piece k counts 2^(-24 (k + 1)). Float32 arguments need the first of them.
constexpr uint32_t kTwoOverPiBits[] = {
    0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB,
    0xC561B7, 0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5,
    0x2EBB44, 0x84E99C, 0x7026B4, 0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8,
    0x97FFDE, 0x05980F, 0xEF2F11, 0x8B5A0A, 0x6D1F6D, 0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D,
    0x7527BA, 0xC7EBE5, 0xF17B3D, 0x0739F7, 0x8A5292, 0xEA6BFB, 0x5FB11F, 0x8D5D08, 0x560330};
constexpr size_t kFloat32Pieces = 11;
// Arguments below them are reduced by one multiplication.
constexpr double kMediumFloat32 = 0x1p28;
constexpr int kMediumExponent64 = 30;

// A whole number in two forms: as it is, and in the low bits of what the adding of round_magic gave.
struct Whole {
  Value* number = nullptr;
  Value* shifted = nullptr;
};

class VectorMath {
 public:
  VectorMath(llvm::IRBuilderBase& builder, llvm::Type* type)
      : b_(builder), type_(type), format_(type->getScalarType()->isFloatTy() ? kFloat32 : kFloat64) {
    const int bits = format_.mantissa_bits == 23 ? 32 : 64;
    int_type_ = b_.getIntNTy(bits);
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
      int_type_ = llvm::FixedVectorType::get(int_type_, vector->getNumElements());
    }
  }

  Value* Exp(Value* x) { return ExpBelowMax(Select(b_.CreateFCmpOGT(x, F(format_.exp_max)), F(format_.exp_max), x)); }

  // exp of arguments that are not above exp_max.
  Value* ExpBelowMax(Value* x) {
    Value* vanishes = b_.CreateFCmpOLT(x, F(format_.exp_min));
    Whole n;
    Value* r = ReduceByLn2(Select(vanishes, F(0), x), &n);
    return Select(vanishes, F(0), Scale(ExpOfReduced(r), n));
  }

  // exp of arguments whose result is a normal number: no argument is clamped, and one factor scales the result.
  Value* ExpOfModerate(Value* x) {
    Whole n;
    Value* r = ReduceByLn2(x, &n);
    return b_.CreateFMul(ExpOfReduced(r), PowerOfShifted(n.shifted));
  }

  Value* Exp2(Value* x) {
    const double max = format_.bias + 1, min = -(format_.bias + format_.mantissa_bits + 1.0);
    Value* clamped = Select(b_.CreateFCmpOGT(x, F(max)), F(max), x);
    Value* vanishes = b_.CreateFCmpOLT(x, F(min));
    clamped = Select(vanishes, F(0), clamped);
    const Whole n = WholeOf(b_.CreateFAdd(clamped, F(format_.round_magic)));
    Value* fraction = b_.CreateFSub(clamped, n.number);
    Value* result = Scale(ExpOfReduced(b_.CreateFMul(fraction, F(format_.ln2))), n);
    return Select(vanishes, F(0), result);
  }

  Value* Log(Value* x) {
    Value* e = nullptr;
    Value* f = SplitMantissa(x, &e);
    Value* result = nullptr;
    if (is_float32()) {
      Value* z = b_.CreateFMul(f, f);
      Value* y = b_.CreateFMul(b_.CreateFMul(f, z), Polynomial(format_.log, f));
      y = Fma(e, F(format_.ln2_lo), y);
      y = Fma(F(-0.5), z, y);
      result = Fma(e, F(format_.ln2_hi), b_.CreateFAdd(f, y));
    } else {
      Value *half_square = nullptr, *rest = nullptr;
      LogParts(f, &half_square, &rest);
      Value* low = Fma(e, F(format_.ln2_lo), rest);
      result = Fma(e, F(format_.ln2_hi), b_.CreateFSub(f, b_.CreateFSub(half_square, low)));
    }
    return LogSpecialCases(x, result);
  }

  Value* Log2(Value* x) {
    Value* e = nullptr;
    Value* f = SplitMantissa(x, &e);
    Value* log = nullptr;
    if (is_float32()) {
      Value* z = b_.CreateFMul(f, f);
      Value* y = b_.CreateFMul(b_.CreateFMul(f, z), Polynomial(format_.log, f));
      log = b_.CreateFAdd(f, Fma(F(-0.5), z, y));
    } else {
      Value *half_square = nullptr, *rest = nullptr;
      LogParts(f, &half_square, &rest);
      log = b_.CreateFSub(f, b_.CreateFSub(half_square, rest));
    }
    return LogSpecialCases(x, Fma(log, F(kLog2OfE), e));
  }

  Value* Log1p(Value* x) {
    Value* u = b_.CreateFAdd(x, F(1));
    Value* lost = Select(b_.CreateFCmpOGT(x, F(1)), b_.CreateFSub(F(1), b_.CreateFSub(u, x)),
                         b_.CreateFSub(x, b_.CreateFSub(u, F(1))));
    Value* is_ordinary = b_.CreateAnd(b_.CreateFCmpOGT(u, F(0)), b_.CreateFCmpOLT(u, F(kInfinity)));
    Value* correction = Select(is_ordinary, b_.CreateFDiv(lost, u), F(0));
    Value* result = b_.CreateFAdd(Log(u), correction);
    const double tiny = std::ldexp(1.0, -format_.mantissa_bits - 2);
    return Select(b_.CreateFCmpOLT(Abs(x), F(tiny)), x, result);
  }

  Value* Tanh(Value* x) {
    Value* a = Abs(x);
    a = Select(b_.CreateFCmpOGT(a, F(format_.tanh_max)), F(format_.tanh_max), a);
    Value* shifted = Fma(a, F(2 * kLog2OfE), F(format_.round_magic));
    Value* half_r = Fma(b_.CreateFSub(F(format_.round_magic), shifted), F(format_.ln2 / 2), a);
    llvm::SmallVector<double> doubled;  // (exp(2 h) - 1) / 2 = h + h^2 P(h)
    for (double c : format_.expm1) doubled.push_back(std::ldexp(c, static_cast<int>(doubled.size()) + 1));
    Value* expm1 = Fma(b_.CreateFMul(half_r, half_r), Polynomial(doubled, half_r), half_r);
    Value* scale = PowerOfShifted(shifted);
    Value* u = Fma(scale, expm1, Fma(scale, F(0.5), F(-0.5)));
    return WithSign(b_.CreateFDiv(u, b_.CreateFAdd(u, F(1))), x);
  }

  Value* Sigmoid(Value* x) {
    Value* argument = b_.CreateFNeg(Abs(x));
    Value* is_denormal = b_.CreateFCmpOLT(argument, F(format_.exp_normal));
    Value* e = ExpOfModerate(Select(is_denormal, F(format_.exp_normal), argument));
    e = Select(is_denormal, F(0), e);
    Value* is_negative = b_.CreateICmpSLT(Bits(x), Int(0));
    return b_.CreateFDiv(Select(is_negative, e, F(1)), b_.CreateFAdd(e, F(1)));
  }

  Value* Erf(Value* x) {
    Value* a = Abs(x);
    Value* small = Fma(x, Polynomial(format_.erf, b_.CreateFMul(x, x)), x);
    Value* clamped = Select(b_.CreateFCmpOGT(a, F(format_.erf_max)), F(format_.erf_max), a);
    Value* log_erfc = Polynomial(format_.log_erfc, b_.CreateFSub(clamped, F(format_.erf_center)));
    Value* large = CopySign(b_.CreateFSub(F(1), ExpOfModerate(log_erfc)), x);
    return Select(b_.CreateFCmpOLT(a, F(1)), small, large);
  }

  Value* Sin(Value* x) {
    const Reduced reduced = ReduceByHalfPi(x);
    return Select(b_.CreateFCmpOEQ(x, F(0)), x, SinOrCos(reduced, reduced.quadrant));
  }

  Value* Cos(Value* x) {
    const Reduced reduced = ReduceByHalfPi(x);
    return SinOrCos(reduced, b_.CreateAdd(reduced.quadrant, llvm::ConstantInt::get(int_type_, 1)));
  }

  Value* Tan(Value* x) {
    const Reduced reduced = ReduceByHalfPi(x);
    Value *sine = nullptr, *cosine = nullptr;
    SinAndCos(reduced, &sine, &cosine);
    Value* odd = IsOdd(reduced.quadrant);
    Value* result = b_.CreateFDiv(Select(odd, b_.CreateFNeg(cosine), sine), Select(odd, sine, cosine));
    return Select(b_.CreateFCmpOEQ(x, F(0)), x, result);
  }

  // The following are for float64 alone.
  Value* Sinh(Value* x) {
    Value *half_exp = nullptr, *expm1 = nullptr;
    Value* a = Abs(x);
    HalfExpAndExpMinus1(a, &half_exp, &expm1);
    Value* quotient = b_.CreateFDiv(expm1, b_.CreateFAdd(expm1, F(1)));
    Value* small = b_.CreateFMul(F(0.5), b_.CreateFAdd(expm1, quotient));
    return CopySign(Select(b_.CreateFCmpOLT(a, F(22)), small, half_exp), x);
  }

  Value* Cosh(Value* x) {
    Value *half_exp = nullptr, *expm1 = nullptr;
    Value* a = Abs(x);
    HalfExpAndExpMinus1(a, &half_exp, &expm1);
    Value* small = b_.CreateFAdd(half_exp, b_.CreateFDiv(F(0.25), half_exp));
    return Select(b_.CreateFCmpOLT(a, F(22)), small, half_exp);
  }

  Value* Asinh(Value* x) {
    Value* a = Abs(x);
    Value* square = b_.CreateFMul(a, a);
    Value* root = Sqrt(b_.CreateFAdd(square, F(1)));
    Value* sum = b_.CreateFAdd(a, b_.CreateFDiv(square, b_.CreateFAdd(root, F(1))));
    return CopySign(Select(b_.CreateFCmpOGT(a, F(0x1p28)), LogOfTwice(a), Log1p(sum)), x);
  }

  Value* Acosh(Value* x) {
    Value* t = b_.CreateFSub(x, F(1));
    Value* root = Sqrt(Fma(t, t, b_.CreateFAdd(t, t)));
    Value* result = Select(b_.CreateFCmpOGT(x, F(0x1p28)), LogOfTwice(x), Log1p(b_.CreateFAdd(t, root)));
    return Select(b_.CreateFCmpOLT(x, F(1)), NaN(), result);
  }

  Value* Atanh(Value* x) {
    Value* a = Abs(x);
    Value* twice = b_.CreateFAdd(a, a);
    Value* rest = b_.CreateFSub(F(1), a);
    Value* small = b_.CreateFAdd(twice, b_.CreateFDiv(b_.CreateFMul(twice, a), rest));
    Value* argument = Select(b_.CreateFCmpOLT(a, F(0.5)), small, b_.CreateFDiv(twice, rest));
    return CopySign(b_.CreateFMul(F(0.5), Log1p(argument)), x);
  }

  Value* Atan(Value* x) {
    Value* a = Abs(x);
    Value* is_middle = b_.CreateFCmpOGT(a, F(0.41421356237309503));  // tan(pi / 8)
    Value* is_large = b_.CreateFCmpOGT(a, F(2.4142135623730949));    // tan(3 pi / 8)
    Value* numerator = Select(is_large, F(-1), Select(is_middle, b_.CreateFSub(a, F(1)), a));
    Value* denominator = Select(is_large, a, Select(is_middle, b_.CreateFAdd(a, F(1)), F(1)));
    Value* base = Select(is_large, F(kHalfPi1), Select(is_middle, F(kHalfPi1 / 2), F(0)));
    Value* base_rest = Select(is_large, F(kHalfPi2), Select(is_middle, F(kHalfPi2 / 2), F(0)));
    Value* t = b_.CreateFDiv(numerator, denominator);
    Value* z = b_.CreateFMul(t, t);
    Value* tail = Fma(b_.CreateFMul(t, z), Polynomial(kAtan64, z), base_rest);
    return CopySign(b_.CreateFAdd(base, b_.CreateFAdd(t, tail)), x);
  }

  Value* Asin(Value* x) {
    Value *is_small = nullptr, *tail = nullptr, *far = nullptr;
    ArcSineParts(x, &is_small, &tail, &far);
    Value* large = b_.CreateFSub(F(kHalfPi1), b_.CreateFSub(far, F(kHalfPi2)));
    return Select(is_small, b_.CreateFAdd(x, tail), CopySign(large, x));
  }

  Value* Acos(Value* x) {
    Value *is_small = nullptr, *tail = nullptr, *far = nullptr;
    ArcSineParts(x, &is_small, &tail, &far);
    Value* small = b_.CreateFSub(F(kHalfPi1), b_.CreateFSub(x, b_.CreateFSub(F(kHalfPi2), tail)));
    Value* negative = b_.CreateFSub(F(2 * kHalfPi1), b_.CreateFSub(far, F(2 * kHalfPi2)));
    return Select(is_small, small, Select(b_.CreateFCmpOLT(x, F(0)), negative, far));
  }

  Value* Pow(Value* x, Value* y) {
    Value* a = Abs(x);
    Value* e = nullptr;
    Value* f = SplitMantissa(a, &e);
    // log(1 + f) = 2 s + s z P(z); the quotient's rounding error is kept in s_rest.
    Value* divisor = b_.CreateFAdd(f, F(2));
    Value* divisor_rest = b_.CreateFSub(f, b_.CreateFSub(divisor, F(2)));
    Value* s = b_.CreateFDiv(f, divisor);
    Value* s_rest =
        b_.CreateFDiv(b_.CreateFSub(Fma(b_.CreateFNeg(s), divisor, f), b_.CreateFMul(s, divisor_rest)), divisor);
    Value* z = b_.CreateFMul(s, s);
    Value* tail = b_.CreateFMul(b_.CreateFMul(s, z), Polynomial(format_.log, z));
    Value* high = b_.CreateFMul(e, F(format_.ln2_hi));  // exact
    Value* twice_s = b_.CreateFAdd(s, s);
    Value* sum_rest = nullptr;
    Value* sum = TwoSum(high, twice_s, &sum_rest);
    Value* low = b_.CreateFAdd(sum_rest, Fma(e, F(format_.ln2_lo), Fma(F(2), s_rest, tail)));
    Value* log = b_.CreateFAdd(sum, low);
    Value* log_rest = b_.CreateFSub(low, b_.CreateFSub(log, sum));

    Value* product = b_.CreateFMul(y, log);
    Value* product_rest = Fma(y, log_rest, Fma(y, log, b_.CreateFNeg(product)));
    Value* in_range = b_.CreateFCmpOLT(Abs(product), F(1000));
    product_rest = Select(in_range, product_rest, F(0));
    Value* clamped = Select(b_.CreateFCmpOGT(product, F(format_.exp_max)), F(format_.exp_max), product);
    Value* vanishes = b_.CreateFCmpOLT(product, F(format_.exp_min));
    clamped = Select(vanishes, F(0), clamped);
    Whole n;
    Value* r = b_.CreateFAdd(ReduceByLn2(clamped, &n), product_rest);
    Value* result = Select(vanishes, F(0), Scale(ExpOfReduced(r), n));

    Value* y_is_positive = b_.CreateFCmpOGT(y, F(0));
    Value* y_is_integer = b_.CreateFCmpOEQ(Trunc(y), y);
    Value* half_y = b_.CreateFMul(y, F(0.5));
    Value* y_is_odd = b_.CreateAnd(y_is_integer, b_.CreateFCmpONE(Trunc(half_y), half_y));
    Value* x_is_signed = b_.CreateICmpSLT(Bits(x), llvm::ConstantInt::get(int_type_, 0));
    Value* a_is_infinite = b_.CreateFCmpOEQ(a, F(kInfinity));
    result = Select(b_.CreateFCmpOEQ(a, F(0)), Select(y_is_positive, F(0), F(kInfinity)), result);
    result = Select(a_is_infinite, Select(y_is_positive, F(kInfinity), F(0)), result);
    result = Select(b_.CreateFCmpOEQ(a, F(1)), F(1), result);
    result = Select(b_.CreateAnd(x_is_signed, y_is_odd), b_.CreateFNeg(result), result);
    Value* x_is_negative = b_.CreateAnd(b_.CreateFCmpOLT(x, F(0)), b_.CreateNot(a_is_infinite));
    result = Select(b_.CreateAnd(x_is_negative, b_.CreateNot(y_is_integer)), NaN(), result);
    result = Select(b_.CreateFCmpUNO(x, y), NaN(), result);
    Value* is_one = b_.CreateOr(b_.CreateFCmpOEQ(y, F(0)), b_.CreateFCmpOEQ(x, F(1)));
    return Select(is_one, F(1), result);
  }

  Value* Fmod(Value* x, Value* y) {
    Value* is_nan = b_.CreateOr(b_.CreateFCmpUNO(x, y),
                                b_.CreateOr(b_.CreateFCmpOEQ(Abs(x), F(kInfinity)), b_.CreateFCmpOEQ(y, F(0))));
    Value* y_is_infinite = b_.CreateFCmpOEQ(Abs(y), F(kInfinity));
    // Lanes whose result is decided already go on with harmless values.
    Value* decided = b_.CreateOr(is_nan, y_is_infinite);
    Value* dividend = Select(decided, F(0), Abs(x));
    Value* divisor = Select(decided, F(1), Abs(y));

    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::Function* function = before->getParent();
    auto* head = llvm::BasicBlock::Create(b_.getContext(), "fmod.head", function);
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "fmod.body", function);
    auto* done = llvm::BasicBlock::Create(b_.getContext(), "fmod.done", function);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* rest = b_.CreatePHI(type_, 2);
    rest->addIncoming(dividend, before);
    Value* is_far = b_.CreateFCmpOGT(rest, b_.CreateFMul(divisor, F(0x1p50)));
    b_.CreateCondBr(AnyLane(b_, is_far), body, done);
    b_.SetInsertPoint(body);
    // The divisor times a power of two that makes the quotient at most 50 bits long.
    Value* shift = b_.CreateSub(b_.CreateSub(Exponent(rest), Exponent(divisor)), Int(49));
    shift = Select(b_.CreateICmpSLT(shift, Int(0)), Int(0), shift);
    shift = Select(b_.CreateICmpSGT(shift, Int(2000)), Int(2000), shift);
    Value* reduced = RemainderStep(rest, ScaleTwice(divisor, shift));
    rest->addIncoming(reduced, b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
    Value* result = CopySign(RemainderStep(rest, divisor), x);
    return Select(is_nan, NaN(), Select(y_is_infinite, x, result));
  }

 private:
  bool is_float32() const { return format_.mantissa_bits == 23; }
  Value* F(double value) { return llvm::ConstantFP::get(type_, value); }
  Value* Int(int64_t value) { return llvm::ConstantInt::get(int_type_, static_cast<uint64_t>(value), true); }
  Value* NaN() { return llvm::ConstantFP::getNaN(type_); }
  Value* Bits(Value* x) { return b_.CreateBitCast(x, int_type_); }
  Value* FromBits(Value* x) { return b_.CreateBitCast(x, type_); }
  Value* Select(Value* c, Value* t, Value* f) { return b_.CreateSelect(c, t, f); }
  Value* Fma(Value* x, Value* y, Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* Sqrt(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  Value* Trunc(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x); }
  // A value that is not negative, with the sign of another.
  Value* WithSign(Value* x, Value* sign) {
    const unsigned sign_bit = int_type_->getScalarSizeInBits() - 1;
    Value* mask = b_.CreateShl(llvm::ConstantInt::get(int_type_, 1), sign_bit);
    return FromBits(b_.CreateOr(Bits(x), b_.CreateAnd(Bits(sign), mask)));
  }
  Value* CopySign(Value* x, Value* sign) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }

  // Coefficients from the lowest degree up. Long float32 polynomials are computed in two chains, of even and odd
  // degrees, because the latency of a single chain would limit the whole.
  Value* Polynomial(llvm::ArrayRef<double> c, Value* x) {
    constexpr size_t kLong = 6;
    if (!is_float32() || c.size() < kLong) return Horner(c, x, 0, 1);
    Value* square = b_.CreateFMul(x, x);
    return Fma(Horner(c, square, 1, 2), x, Horner(c, square, 0, 2));
  }
  // c[first] + c[first + step] x + c[first + 2 step] x^2 + ...
  Value* Horner(llvm::ArrayRef<double> c, Value* x, size_t first, size_t step) {
    size_t i = first + (c.size() - 1 - first) / step * step;
    Value* sum = llvm::ConstantFP::get(x->getType(), c[i]);
    while (i != first) {
      i -= step;
      sum = Fma(sum, x, llvm::ConstantFP::get(x->getType(), c[i]));
    }
    return sum;
  }

  Value* TwoSum(Value* a, Value* b, Value** rest) {
    Value* sum = b_.CreateFAdd(a, b);
    Value* b_part = b_.CreateFSub(sum, a);
    Value* a_part = b_.CreateFSub(sum, b_part);
    *rest = b_.CreateFAdd(b_.CreateFSub(a, a_part), b_.CreateFSub(b, b_part));
    return sum;
  }

  // r = x - n ln2 with n = round(x / ln2), |x| small enough for the exponent range.
  Value* ReduceByLn2(Value* x, Whole* n) {
    *n = WholeOf(Fma(x, F(kLog2OfE), F(format_.round_magic)));
    return Fma(n->number, F(-format_.ln2_rest), Fma(n->number, F(-format_.ln2), x));
  }
  Whole WholeOf(Value* shifted) { return {b_.CreateFSub(shifted, F(format_.round_magic)), shifted}; }

  // Moves the low bits of shifted to the exponent; its other bits are shifted out.
  Value* ExponentOfShifted(Value* shifted) { return b_.CreateShl(Bits(shifted), format_.mantissa_bits); }
  Value* PowerOfShifted(Value* shifted) {  // n in the exponent range of normal numbers
    return FromBits(b_.CreateAdd(ExponentOfShifted(shifted), Int(int64_t{format_.bias} << format_.mantissa_bits)));
  }
  Value* Scale(Value* x, const Whole& n) {
    return b_.CreateCall(ScaleMarker(*b_.GetInsertBlock()->getModule(), type_), {x, n.number, n.shifted});
  }

  Value* ExpOfReduced(Value* r) { return Fma(Fma(Polynomial(format_.exp, r), r, F(1)), r, F(1)); }

  Value* ExpMinus1OfReduced(Value* r) { return Fma(b_.CreateFMul(r, r), Polynomial(format_.expm1, r), r); }

  Value* PowerOfTwo(Value* n) {  // n in the exponent range of normal numbers
    return FromBits(b_.CreateShl(b_.CreateAdd(n, Int(format_.bias)), format_.mantissa_bits));
  }

  Value* ScaleTwice(Value* x, Value* n) {
    Value* half = b_.CreateAShr(n, 1);
    return b_.CreateFMul(b_.CreateFMul(x, PowerOfTwo(half)), PowerOfTwo(b_.CreateSub(n, half)));
  }

  // Computes exp(a) / 2 and exp(a) - 1 for a >= 0; the second only for a below half of the argument that overflows.
  void HalfExpAndExpMinus1(Value* a, Value** half_exp, Value** expm1) {
    Value* clamped = Select(b_.CreateFCmpOGT(a, F(711)), F(711), a);
    Whole n;
    Value* p = ExpMinus1OfReduced(ReduceByLn2(clamped, &n));
    *half_exp = Scale(b_.CreateFMul(b_.CreateFAdd(p, F(1)), F(0.5)), n);
    Value* scale = PowerOfShifted(n.shifted);
    *expm1 = Fma(scale, p, b_.CreateFSub(scale, F(1)));
  }

  Value* LogOfTwice(Value* x) { return b_.CreateFAdd(Log(x), F(format_.ln2)); }

  // |x| <= 1/2: asin(x) = x + tail. Beyond, far = 2 asin(s) = acos(|x|) with s = sqrt((1 - |x|) / 2).
  void ArcSineParts(Value* x, Value** is_small, Value** tail, Value** far) {
    Value* a = Abs(x);
    *is_small = b_.CreateFCmpOLE(a, F(0.5));
    Value* half_rest = b_.CreateFMul(F(0.5), b_.CreateFSub(F(1), a));
    Value* z = Select(*is_small, b_.CreateFMul(x, x), half_rest);
    Value* s = Select(*is_small, x, Sqrt(half_rest));
    *tail = b_.CreateFMul(b_.CreateFMul(s, z), Polynomial(kAsin64, z));
    // What the rounding of the root lost.
    Value* lost = b_.CreateFDiv(Fma(b_.CreateFNeg(s), s, z), b_.CreateFAdd(s, s));
    lost = Select(b_.CreateFCmpOEQ(z, F(0)), F(0), lost);
    *far = b_.CreateFMul(F(2), b_.CreateFAdd(s, b_.CreateFAdd(*tail, lost)));
  }

  // An integer of at most mantissa_bits - 1 bits as a float.
  Value* ToFloat(Value* n) {
    return b_.CreateFSub(FromBits(b_.CreateAdd(n, Bits(F(format_.round_magic)))), F(format_.round_magic));
  }

  // x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x.
  Value* SplitMantissa(Value* x, Value** e) {
    const int lift = format_.mantissa_bits + 2;
    Value* is_tiny = b_.CreateFCmpOLT(x, F(format_.smallest_normal));
    Value* lifted = Select(is_tiny, b_.CreateFMul(x, F(std::ldexp(1.0, lift))), x);
    Value* bits = b_.CreateSub(Bits(lifted), Int(format_.sqrt_half_bits));
    Value* exponent = b_.CreateAShr(bits, format_.mantissa_bits);
    Value* mantissa = b_.CreateAnd(bits, Int((int64_t{1} << format_.mantissa_bits) - 1));
    *e = ToFloat(b_.CreateAdd(exponent, Select(is_tiny, Int(-lift), Int(0))));
    return b_.CreateFSub(FromBits(b_.CreateAdd(mantissa, Int(format_.sqrt_half_bits))), F(1));
  }

  // log(1 + f) = f - (half_square - rest), float64.
  void LogParts(Value* f, Value** half_square, Value** rest) {
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, F(2)));
    Value* z = b_.CreateFMul(s, s);
    *half_square = b_.CreateFMul(F(0.5), b_.CreateFMul(f, f));
    *rest = b_.CreateFMul(s, Fma(z, Polynomial(format_.log, z), *half_square));
  }

  Value* LogSpecialCases(Value* x, Value* result) {
    result = Select(b_.CreateFCmpUGE(x, F(kInfinity)), x, result);  // infinity and NaN
    result = Select(b_.CreateFCmpOLT(x, F(0)), NaN(), result);
    return Select(b_.CreateFCmpOEQ(x, F(0)), F(-kInfinity), result);
  }

  struct Reduced {
    Value* r;         // in [-pi/4, pi/4]
    Value* quadrant;  // its two lowest bits count
  };

  Reduced ReduceByHalfPi(Value* x) {
    if (!is_float32()) {
      return ReduceHuge(x, ReduceFloat64(x), std::ldexp(1.0, kMediumExponent64), [&] { return PayneHanek(x); });
    }
    llvm::Type* wide_type = WithLanesOf(b_.getDoubleTy(), x);
    VectorMath wide(b_, wide_type);
    Value* wide_x = b_.CreateFPExt(x, wide_type);
    Value* shifted = wide.Fma(wide_x, wide.F(kTwoOverPi), wide.F(kFloat64.round_magic));
    Value* minus_n = b_.CreateFSub(wide.F(kFloat64.round_magic), shifted);
    Value* r = wide.Fma(minus_n, wide.F(kHalfPi2), wide.Fma(minus_n, wide.F(kHalfPi1), wide_x));
    const Reduced reduced =
        ReduceHuge(x, {r, wide.Bits(shifted)}, kMediumFloat32, [&] { return wide.PayneHanekOfFloat32(wide_x); });
    return {b_.CreateFPTrunc(reduced.r, type_), b_.CreateTrunc(reduced.quadrant, int_type_)};
  }

  // Replaces what is not right for arguments from this size on by `slow`'s results, which are computed if there are any.
  template <typename Slow>
  Reduced ReduceHuge(Value* x, const Reduced& reduced, double least, const Slow& slow) {
    Value* is_huge = b_.CreateFCmpOGE(Abs(x), F(least));
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::Function* function = before->getParent();
    auto* huge = llvm::BasicBlock::Create(b_.getContext(), "trig.huge", function);
    auto* done = llvm::BasicBlock::Create(b_.getContext(), "trig.done", function);
    llvm::MDNode* unlikely = llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 16);
    b_.CreateCondBr(AnyLane(b_, is_huge), huge, done, unlikely);
    b_.SetInsertPoint(huge);
    const Reduced exact = slow();
    Value* exact_r = Select(is_huge, exact.r, reduced.r);
    Value* exact_quadrant = Select(is_huge, exact.quadrant, reduced.quadrant);
    llvm::BasicBlock* huge_end = b_.GetInsertBlock();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    const auto merge = [&](Value* fast_value, Value* slow_value) {
      llvm::PHINode* phi = b_.CreatePHI(fast_value->getType(), 2);
      phi->addIncoming(fast_value, before);
      phi->addIncoming(slow_value, huge_end);
      return phi;
    };
    Value* r = merge(reduced.r, exact_r);
    return {r, merge(reduced.quadrant, exact_quadrant)};
  }

  // The remainder of an exact product by 4, with its sign, so that it is exact, too. It has the same quadrant and
  // fraction.
  Value* Modulo4(Value* product) { return Fma(Trunc(b_.CreateFMul(product, F(0.25))), F(-4), product); }

  // x is a float32's value in float64: its products with 24 bits of 2 / pi are exact, and so are their remainders by 4.
  Reduced PayneHanekOfFloat32(Value* x) {
    Value *sum = F(0), *rest = F(0);
    int shift = 0;
    for (uint32_t bits : llvm::ArrayRef(kTwoOverPiBits).take_front(kFloat32Pieces)) {
      shift -= 24;
      Value* lost = nullptr;
      sum = TwoSum(sum, Modulo4(b_.CreateFMul(x, F(std::ldexp(static_cast<double>(bits), shift)))), &lost);
      rest = b_.CreateFAdd(rest, lost);
    }
    Value* shifted = b_.CreateFAdd(sum, F(format_.round_magic));
    Value* n = b_.CreateFSub(shifted, F(format_.round_magic));
    Value* fraction = b_.CreateFAdd(b_.CreateFSub(sum, n), rest);
    return {b_.CreateFMul(fraction, F(kHalfPi1)), Bits(shifted)};
  }

  // For float64 of 2^kMediumExponent64 and more. Of the pieces of 2 / pi, those before the first `skipped` make
  // multiples of 4 with x, and those behind the next kPieces too little to matter for the float64 that is nearest to a
  // multiple of pi / 2 (2^-61 from it, so that 2^-120 matters). x is taken as 2^(24 skipped) y, in two halves whose
  // products with a piece are exact. Three numbers hold the sum.
  Reduced PayneHanek(Value* x) {
    constexpr size_t kPieces = 9;
    Value* exponent = b_.CreateAnd(b_.CreateLShr(Bits(x), format_.mantissa_bits), Int(2 * format_.bias + 1));
    Value* excess = b_.CreateSub(exponent, Int(format_.bias + kMediumExponent64));
    // (excess * 2731) >> 16 is excess / 24 where excess < 1024.
    Value* skipped = b_.CreateLShr(b_.CreateMul(excess, Int(2731)), 16);
    Value* lowered = b_.CreateShl(b_.CreateMul(skipped, Int(24)), format_.mantissa_bits);
    Value* not_finite = b_.CreateFSub(x, x);  // NaN, or 0
    Value* y = b_.CreateFAdd(FromBits(b_.CreateSub(Bits(x), lowered)), not_finite);
    Value* high = FromBits(b_.CreateAnd(Bits(y), Int(-(int64_t{1} << 27))));
    Value* low = b_.CreateFSub(y, high);

    Value *sum = F(0), *rest = F(0), *last = F(0), *lost = nullptr;
    double scale = 1;
    for (Value* piece : PiecesFrom(skipped, kPieces)) {
      piece = b_.CreateFMul(piece, F(scale));
      for (Value* half : {high, low}) {
        sum = TwoSum(sum, Modulo4(b_.CreateFMul(half, piece)), &lost);
        rest = TwoSum(rest, lost, &lost);
        last = b_.CreateFAdd(last, lost);
      }
      scale = std::ldexp(scale, -24);
    }
    Value* shifted = b_.CreateFAdd(sum, F(format_.round_magic));
    Value* fraction = b_.CreateFSub(sum, b_.CreateFSub(shifted, F(format_.round_magic)));
    fraction = TwoSum(fraction, rest, &lost);
    lost = b_.CreateFAdd(lost, last);
    return {Fma(fraction, F(kHalfPi1), Fma(fraction, F(kHalfPi2), b_.CreateFMul(lost, F(kHalfPi1)))), Bits(shifted)};
  }

  // The pieces of 2 / pi from `first` on, of which number 0 is 0 and number k + 1 is kTwoOverPiBits[k]: one bit of
  // `first` after another moves them, from the highest on.
  llvm::SmallVector<Value*> PiecesFrom(Value* first, size_t count) {
    llvm::SmallVector<Value*> pieces = {F(0)};
    for (uint32_t bits : kTwoOverPiBits) pieces.push_back(F(bits));
    for (size_t step = 32; step > 0; step /= 2) {
      Value* moves = b_.CreateICmpNE(b_.CreateAnd(first, Int(static_cast<int64_t>(step))), Int(0));
      llvm::SmallVector<Value*> moved;
      for (size_t i = 0; i < std::min(pieces.size(), count + step - 1); ++i) {
        moved.push_back(i + step < pieces.size() ? Select(moves, pieces[i + step], pieces[i]) : pieces[i]);
      }
      pieces = std::move(moved);
    }
    return pieces;
  }

  // For arguments below 2^kMediumExponent64.
  Reduced ReduceFloat64(Value* x) {
    Value* shifted = Fma(x, F(kTwoOverPi), F(format_.round_magic));
    Value* n = b_.CreateFSub(shifted, F(format_.round_magic));
    Value* first = Fma(b_.CreateFNeg(n), F(kHalfPi1), x);
    Value* product = b_.CreateFMul(n, F(kHalfPi2));
    Value* product_rest = Fma(n, F(kHalfPi2), b_.CreateFNeg(product));
    Value* lost = nullptr;
    Value* second = TwoSum(first, b_.CreateFNeg(product), &lost);
    Value* low = b_.CreateFSub(lost, Fma(n, F(kHalfPi3), product_rest));
    return {b_.CreateFAdd(second, low), Bits(shifted)};
  }

  Value* IsOdd(Value* quadrant) { return b_.CreateICmpNE(b_.CreateAnd(quadrant, Int(1)), Int(0)); }

  void SinAndCos(const Reduced& reduced, Value** sine, Value** cosine) {
    Value* z = b_.CreateFMul(reduced.r, reduced.r);
    *sine = Fma(b_.CreateFMul(reduced.r, z), Polynomial(format_.sin, z), reduced.r);
    *cosine = Fma(z, Fma(z, Polynomial(format_.cos, z), F(-0.5)), F(1));
  }

  Value* SinOrCos(const Reduced& reduced, Value* quadrant) {
    Value *sine = nullptr, *cosine = nullptr;
    SinAndCos(reduced, &sine, &cosine);
    Value* magnitude = Select(IsOdd(quadrant), cosine, sine);
    const unsigned sign_bit = int_type_->getScalarSizeInBits() - 1;
    Value* sign = b_.CreateShl(b_.CreateLShr(b_.CreateAnd(quadrant, Int(2)), 1), sign_bit);
    return FromBits(b_.CreateXor(Bits(magnitude), sign));
  }

  // floor(log2(x)) for positive float64, denormals included.
  Value* Exponent(Value* x) {
    Value* is_tiny = b_.CreateFCmpOLT(x, F(format_.smallest_normal));
    Value* lifted = Select(is_tiny, b_.CreateFMul(x, F(0x1p54)), x);
    Value* exponent = b_.CreateLShr(Bits(lifted), format_.mantissa_bits);
    return b_.CreateSub(exponent, Select(is_tiny, Int(format_.bias + 54), Int(format_.bias)));
  }

  // x - y trunc(x / y) for x / y < 2^51: the rounded quotient may be one off, the fma is exact.
  Value* RemainderStep(Value* x, Value* y) {
    Value* quotient = Trunc(b_.CreateFDiv(x, y));
    Value* rest = Fma(b_.CreateFNeg(quotient), y, x);
    rest = Select(b_.CreateFCmpOLT(rest, F(0)), b_.CreateFAdd(rest, y), rest);
    return Select(b_.CreateFCmpOGE(rest, y), b_.CreateFSub(rest, y), rest);
  }

  llvm::IRBuilderBase& b_;
  llvm::Type* type_;
  llvm::Type* int_type_;
  const Format& format_;
};

}  // namespace

bool IsVectorMath(ir::Intrinsic op) { return ir::GetIntrinsicRow(op).expansion != ir::IntrinsicRow::kPlain; }

llvm::Value* EmitVectorMath(llvm::IRBuilderBase& builder, ir::Intrinsic op, llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::Type* type = arguments[0]->getType();
  const bool is_wide = ir::GetIntrinsicRow(op).expansion == ir::IntrinsicRow::kWideElementary;
  llvm::Type* work_type = is_wide ? WithLanesOf(builder.getDoubleTy(), arguments[0]) : type;
  VectorMath math(builder, work_type);
  llvm::SmallVector<Value*, 2> x;
  for (Value* argument : arguments) x.push_back(builder.CreateFPExt(argument, work_type));
  const auto apply = [&]<typename... Values>(Value* (VectorMath::*function)(Values...)) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return builder.CreateFPTrunc((math.*function)(x[i]...), type);
    }
    (std::index_sequence_for<Values...>());
  };
  switch (op) {
#define INGOT_CASE_Plain(id) \
  case ir::Intrinsic::k##id: \
    break;
#define INGOT_CASE_Elementary(id) \
  case ir::Intrinsic::k##id:      \
    return apply(&VectorMath::id);
#define INGOT_CASE_WideElementary(id) INGOT_CASE_Elementary(id)
#define INGOT_INTRINSIC(id, name, arity, result, traits, expansion, operations) INGOT_CASE_##expansion(id)
#include "compiler/ir/intrinsics.def"
#undef INGOT_CASE_Plain
#undef INGOT_CASE_Elementary
#undef INGOT_CASE_WideElementary
  }
  INGOT_UNREACHABLE("not an intrinsic of vector math");
}

}  // namespace ingot::codegen
