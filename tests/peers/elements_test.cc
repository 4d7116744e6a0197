// Arithmetic, comparisons, conversions and shifts that are instructions of other virtual machines, and tensor functions
// here (tests/peers/README.md): each row is an expression over elements, compiled for this machine, and the results of
// calls. The operands are arguments, so that nothing is folded.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/compiler/jit_module.h"
#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

// An element's bits.
struct Element {
  uint64_t bits = 0;
};
Element I(int64_t value) { return {static_cast<uint64_t>(value)}; }
Element F(float value) { return {std::bit_cast<uint32_t>(value)}; }
Element D(double value) { return {std::bit_cast<uint64_t>(value)}; }

struct Call {
  std::vector<Element> arguments;
  Element result;
};

struct Row {
  std::string name;
  const char* from;        // the arguments' dtype
  const char* to;          // the result's
  std::string expression;  // over X, Y and Z
  std::vector<Call> calls;
};

// Counts leading zeros: the number of shifts to the right that give zero.
std::string LeadingZeros(int num_bits) {
  std::string sum = "T.int32(0)";
  const std::string dtype = "uint" + std::to_string(num_bits);
  for (int i = 0; i < num_bits; ++i) {
    sum += " + T.Cast(\"int32\", T.shift_right(X, T." + dtype + "(" + std::to_string(i) + ")) == T." + dtype + "(0))";
  }
  return sum;
}

std::vector<Row> Integers(const std::string& bits) {
  const std::string s = "int" + bits, u = "uint" + bits;
  const char* const sign = bits == "32" ? "int32" : "int64";
  const char* const none = bits == "32" ? "uint32" : "uint64";
  const int64_t largest = bits == "32" ? INT32_MAX : INT64_MAX, smallest = -largest - 1;
  std::vector<Row> rows = {
      {"add " + s, sign, sign, "X + Y", {{{I(1), I(1)}, I(2)}, {{I(largest), I(1)}, I(smallest)}}},
      {"subtract " + s, sign, sign, "X - Y", {{{I(3), I(2)}, I(1)}, {{I(smallest), I(1)}, I(largest)}}},
      {"multiply " + s, sign, sign, "X * Y", {{{I(2), I(2)}, I(4)}, {{I(largest), I(2)}, I(-2)}}},
      {"divide " + s, sign, sign, "T.truncdiv(X, Y)", {{{I(4), I(-2)}, I(-2)}, {{I(-7), I(2)}, I(-3)}}},
      {"divide " + u, none, none, "T.truncdiv(X, Y)", {{{I(4), I(2)}, I(2)}, {{I(-2), I(2)}, I(largest)}}},
      {"remainder " + s, sign, sign, "T.truncmod(X, Y)", {{{I(-3), I(-2)}, I(-1)}, {{I(-3), I(2)}, I(-1)}}},
      {"remainder " + u, none, none, "T.truncmod(X, Y)", {{{I(3), I(2)}, I(1)}, {{I(-1), I(2)}, I(1)}}},
      {"multiply_add " + s, sign, sign, "X * Y + Z", {{{I(2), I(3), I(5)}, I(11)}}},
      {"absolute " + s, sign, sign, "T.abs(X)", {{{I(-1)}, I(1)}, {{I(1)}, I(1)}}},
      {"not " + s, sign, sign, "T.bitwise_not(X)", {{{I(0)}, I(-1)}}},
      {"and " + s, sign, sign, "T.bitwise_and(X, Y)", {{{I(5), I(3)}, I(1)}}},
      {"or " + s, sign, sign, "T.bitwise_or(X, Y)", {{{I(5), I(3)}, I(7)}}},
      {"xor " + s, sign, sign, "T.bitwise_xor(X, Y)", {{{I(5), I(3)}, I(6)}}},
      {"shift_left " + s, sign, sign, "T.shift_left(X, Y)", {{{I(1), I(2)}, I(4)}}},
      {"shift_right " + s, sign, sign, "T.shift_right(X, Y)", {{{I(-1), I(2)}, I(-1)}}},
      {"shift_right " + u, none, none, "T.shift_right(X, Y)", {{{I(4), I(2)}, I(1)}, {{I(-4), I(1)}, I(largest - 1)}}},
      {"select " + s,
       sign,
       sign,
       "T.Select(X != T." + s + "(0), Y, Z)",
       {{{I(0), I(0), I(1)}, I(1)}, {{I(1), I(0), I(1)}, I(0)}}},
  };
  const int num_bits = std::stoi(bits);
  rows.push_back({"leading_zeros " + u,
                  none,
                  "int32",
                  LeadingZeros(num_bits),
                  {{{I(0)}, I(num_bits)}, {{I(1)}, I(num_bits - 1)}, {{I(-1)}, I(0)}}});
  // The same bits, compared as signed and as unsigned integers.
  struct Comparison {
    const char *name, *text;
    int with_sign[3], without[3];  // of -2 and 2, 2 and -2, 2 and 2
  };
  for (const Comparison& row : {Comparison{"less", "X < Y", {1, 0, 0}, {0, 1, 0}},
                                {"less_equal", "X <= Y", {1, 0, 1}, {0, 1, 1}},
                                {"greater", "X > Y", {0, 1, 0}, {1, 0, 0}},
                                {"greater_equal", "X >= Y", {0, 1, 1}, {1, 0, 1}}}) {
    const auto calls = [](const int* results) {
      return std::vector<Call>{
          {{I(-2), I(2)}, I(results[0])}, {{I(2), I(-2)}, I(results[1])}, {{I(2), I(2)}, I(results[2])}};
    };
    rows.push_back({row.name + (" " + s), sign, "bool", row.text, calls(row.with_sign)});
    rows.push_back({row.name + (" " + u), none, "bool", row.text, calls(row.without)});
  }
  return rows;
}

template <typename Make>
std::vector<Row> Floating(const char* dtype, Make V) {
  const std::string s = dtype;
  const auto constant = [&](const char* value) { return "T." + s + "(" + value + ")"; };
  std::vector<Row> rows;
  const auto add = [&](const char* name, std::string expression, std::vector<double> arguments, double result) {
    std::vector<Element> elements;
    for (const double argument : arguments) elements.push_back(V(argument));
    rows.push_back({name + (" " + s), dtype, dtype, std::move(expression), {{elements, V(result)}}});
  };
  add("add", "X + Y", {1.5, 1.5}, 3);
  add("subtract", "X - Y", {3, 2.5}, 0.5);
  add("multiply", "X * Y", {2.5, 2.5}, 6.25);
  add("divide", "X / Y", {4, -2}, -2);
  // IEEE 754's remainder, of the nearest quotient.
  add("remainder", "X - T.nearbyint(X / Y) * Y", {-3, -2}, 1);
  add("remainder_truncated", "T.fmod(X, Y)", {-3, -2}, -1);
  add("multiply_add", "T.fma(X, Y, Z)", {2, 3, 5}, 11);
  add("absolute", "T.fabs(X)", {-1}, 1);
  add("negate", constant("0") + " - X", {-1}, 1);
  add("ceil", "T.ceil(X)", {1.5}, 2);
  add("floor", "T.floor(X)", {1.5}, 1);
  add("round", "T.round(X)", {2.5}, 3);
  add("round_to_even", "T.nearbyint(X)", {2.5}, 2);
  add("minimum", "T.min(X, Y)", {-3, -2}, -3);
  add("maximum", "T.max(X, Y)", {-3, -2}, -2);
  add("atan", "T.atan(X)", {1}, 0.7853981633974483);
  // The angle of a point (Y, X) by the half-angle formula, which holds but on the negative axis.
  add("atan2", constant("2") + " * T.atan(X / (T.sqrt(X * X + Y * Y) + Y))", {1, 0}, 1.5707963267948966);
  add("cos", "T.cos(X)", {0.5}, 0.8775825618903728);
  add("sin", "T.sin(X)", {0.5}, 0.479425538604203);
  add("exp", "T.exp(X)", {1}, 2.718281828459045);
  add("exp2", "T.exp2(X)", {2}, 4);
  add("expm1", "T.exp(X) - " + constant("1"), {2}, 6.38905609893065);
  add("log", "T.log(X)", {10}, 2.302585092994046);
  add("log10", "T.log(X) / T.log(" + constant("10") + ")", {10}, 1);
  add("log1p", "T.log1p(X)", {10}, 2.3978952727983707);
  add("log2", "T.log2(X)", {10}, 3.321928094887362);
  add("power", "T.pow(X, Y)", {3, 2}, 9);
  add("rsqrt", "T.rsqrt(X)", {4}, 0.5);
  add("sqrt", "T.sqrt(X)", {4}, 2);
  add("tanh", "T.tanh(X)", {0.5}, 0.46211715726000974);
  add("erf", "T.erf(X)", {0.5}, 0.5204998778130465);
  rows.push_back({"select " + s,
                  dtype,
                  dtype,
                  "T.Select(X != " + constant("0") + ", Y, Z)",
                  {{{V(0), V(0), V(1)}, V(1)}, {{V(1), V(0), V(1)}, V(0)}}});
  const std::vector<Element> up = {V(-4), V(4)}, down = {V(4), V(-4)}, same = {V(2), V(2)}, nan = {V(NAN), V(2)};
  rows.push_back({"less " + s, dtype, "bool", "X < Y", {{up, I(1)}, {down, I(0)}, {same, I(0)}, {nan, I(0)}}});
  rows.push_back({"less_equal " + s, dtype, "bool", "X <= Y", {{up, I(1)}, {down, I(0)}, {same, I(1)}, {nan, I(0)}}});
  rows.push_back({"greater " + s, dtype, "bool", "X > Y", {{up, I(0)}, {down, I(1)}, {same, I(0)}, {nan, I(0)}}});
  rows.push_back(
      {"greater_equal " + s, dtype, "bool", "X >= Y", {{up, I(0)}, {down, I(1)}, {same, I(1)}, {nan, I(0)}}});
  rows.push_back({"near " + s,
                  dtype,
                  "bool",
                  "T.fabs(X - Y) < " + constant("0.0001"),
                  {{{V(-2), V(2)}, I(0)}, {same, I(1)}, {{V(1.00002), V(1.00003)}, I(1)}, {{V(1.00002), V(2)}, I(0)}}});
  return rows;
}

// Casts to integers truncate; rounding first rounds halves away from zero.
std::vector<Row> Conversions() {
  const std::string round32 = "T.Cast(\"int32\", T.round(X))", round64 = "T.Cast(\"int64\", T.round(X))";
  return {
      {"int32 to uint8", "int32", "uint8", "T.Cast(\"uint8\", X)", {{{I(INT32_MAX)}, I(255)}}},
      {"int32 to uint16", "int32", "uint16", "T.Cast(\"uint16\", X)", {{{I(INT32_MAX)}, I(65535)}}},
      {"int64 to uint32", "int64", "uint32", "T.Cast(\"uint32\", X)", {{{I(INT64_MAX)}, I(4294967295)}}},
      {"bits of int32 as float32", "int32", "float32", "T.reinterpret(\"float32\", X)", {{{I(0x40B00000)}, F(5.5F)}}},
      {"bits of float32 as int32", "float32", "int32", "T.reinterpret(\"int32\", X)", {{{F(5.5F)}, I(0x40B00000)}}},
      {"bits of int64 as float64",
       "int64",
       "float64",
       "T.reinterpret(\"float64\", X)",
       {{{I(0x4016000000000000)}, D(5.5)}}},
      {"bits of float64 as int64",
       "float64",
       "int64",
       "T.reinterpret(\"int64\", X)",
       {{{D(5.5)}, I(0x4016000000000000)}}},
      {"int32 to float32",
       "int32",
       "float32",
       "T.Cast(\"float32\", X)",
       {{{I(INT32_MAX)}, F(2147483648.0F)}, {{I(INT32_MIN)}, F(-2147483648.0F)}}},
      {"uint32 to float32", "uint32", "float32", "T.Cast(\"float32\", X)", {{{I(4294967295)}, F(4294967296.0F)}}},
      {"int64 to float64",
       "int64",
       "float64",
       "T.Cast(\"float64\", X)",
       {{{I(INT32_MAX)}, D(2147483647)}, {{I(INT32_MIN)}, D(-2147483648.0)}}},
      {"uint64 to float64", "uint64", "float64", "T.Cast(\"float64\", X)", {{{I(4294967295)}, D(4294967295)}}},
      {"float32 to int32",
       "float32",
       "int32",
       "T.Cast(\"int32\", X)",
       {{{I(0x4effffff)}, I(0x7fffff80)}, {{F(-2147483648.0F)}, I(INT32_MIN)}, {{F(2.5F)}, I(2)}, {{F(-2.5F)}, I(-2)}}},
      {"float32 rounded to int32", "float32", "int32", round32, {{{F(2.5F)}, I(3)}, {{F(-2.5F)}, I(-3)}}},
      {"float32 to int64",
       "float32",
       "int64",
       "T.Cast(\"int64\", X)",
       {{{I(0x5effffff)}, I(0x7fffff8000000000)}, {{F(-9223372036854775808.0F)}, I(INT64_MIN)}}},
      {"float32 rounded to int64", "float32", "int64", round64, {{{F(2.5F)}, I(3)}, {{F(-2.5F)}, I(-3)}}},
      {"float32 to uint32", "float32", "uint32", "T.Cast(\"uint32\", X)", {{{I(0x4f7fffff)}, I(0xffffff00)}}},
      {"float32 rounded to uint32", "float32", "uint32", "T.Cast(\"uint32\", T.round(X))", {{{F(2.5F)}, I(3)}}},
      {"float32 to uint64", "float32", "uint64", "T.Cast(\"uint64\", X)", {{{I(0x5f7fffff)}, {0xffffff0000000000}}}},
      {"float32 rounded to uint64", "float32", "uint64", "T.Cast(\"uint64\", T.round(X))", {{{F(2.5F)}, I(3)}}},
      {"float64 to int64", "float64", "int64", "T.Cast(\"int64\", X)", {{{D(-2147483648.0)}, I(INT32_MIN)}}},
      {"float64 rounded to int64", "float64", "int64", round64, {{{D(2.5)}, I(3)}, {{D(-2.5)}, I(-3)}}},
      {"float64 rounded to uint64", "float64", "uint64", "T.Cast(\"uint64\", T.round(X))", {{{D(2.5)}, I(3)}}},
  };
}

std::string FunctionText(const Row& row, const std::string& name) {
  std::string text = "    @T.prim_func(s_tir=True)\n    def " + name + "(";
  const std::string one = ": T.Buffer((T.int64(1),), \"";
  std::string expression;
  for (size_t i = 0; i < row.calls[0].arguments.size(); ++i)
    text += std::string(1, "xyz"[i]) + one + row.from + "\"), ";
  for (const char c : row.expression) {
    expression += c >= 'X' && c <= 'Z' ? std::string(1, static_cast<char>(c - 'X' + 'x')) + "[vi]" : std::string(1, c);
  }
  return text + "r" + one + row.to + "\")):\n        for i in range(T.int64(1)):\n            with T.sblock(\"b\"):\n" +
         "                vi = T.axis.spatial(T.int64(1), i)\n                r[vi] = " + expression + "\n\n";
}

class Functions {
 public:
  explicit Functions(std::vector<Row> rows) : rows_(std::move(rows)) {
    std::string text = kHead;
    for (size_t i = 0; i < rows_.size(); ++i) text += FunctionText(rows_[i], "f" + std::to_string(i));
    const Result<ir::IRModule> module = script::ParseModule(text, "module.py");
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    Result<std::unique_ptr<JitModule>> compiled = test::CompileJit(*module);
    REQUIRE_MESSAGE(compiled.ok(), compiled.status().message());
    jit_ = *std::move(compiled);
  }

  void Check() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      DOCTEST_SUBCASE(rows_[i].name.c_str()) {
        for (const Call& call : rows_[i].calls) CheckCall("f" + std::to_string(i), rows_[i], call);
      }
    }
  }

 private:
  static Tensor Scalar(const char* dtype, Element element) {
    Tensor tensor = New(*DataType::Parse(dtype), {1});
    std::memcpy(tensor.data(), &element.bits, static_cast<size_t>(tensor.dtype().bits + 7) / 8);
    return tensor;
  }
  void CheckCall(const std::string& function, const Row& row, const Call& call) {
    std::vector<Tensor> inputs;
    for (const Element& argument : call.arguments) inputs.push_back(Scalar(row.from, argument));
    const std::vector<Tensor> outputs = {New(*DataType::Parse(row.to), {1})};
    REQUIRE(jit_->CallInto(function, inputs, outputs).ok());
    const Tensor expected = Scalar(row.to, call.result);
    if (expected.dtype() == DataType::Float(32)) {
      CHECK(outputs[0].Elements<float>()[0] == doctest::Approx(expected.Elements<float>()[0]).epsilon(1e-6));
    } else if (expected.dtype() == DataType::Float(64)) {
      CHECK(outputs[0].Elements<double>()[0] == doctest::Approx(expected.Elements<double>()[0]).epsilon(1e-14));
    } else {
      CHECK(outputs[0].view().TypeToString() == expected.view().TypeToString());
      CHECK(std::memcmp(outputs[0].data(), expected.data(), static_cast<size_t>(expected.dtype().bits + 7) / 8) == 0);
    }
  }

  std::vector<Row> rows_;
  std::unique_ptr<JitModule> jit_;
};

// A test case runs once per subcase; its functions are compiled once.
TEST_CASE("peers: elements of 32-bit integers") {
  static Functions functions(Integers("32"));
  functions.Check();
}
TEST_CASE("peers: elements of 64-bit integers") {
  static Functions functions(Integers("64"));
  functions.Check();
}
TEST_CASE("peers: elements of float32") {
  static Functions functions(Floating("float32", [](double value) { return F(static_cast<float>(value)); }));
  functions.Check();
}
TEST_CASE("peers: elements of float64") {
  static Functions functions(Floating("float64", [](double value) { return D(value); }));
  functions.Check();
}
TEST_CASE("peers: conversions of elements") {
  static Functions functions(Conversions());
  functions.Check();
}

}  // namespace
}  // namespace ingot::driver
