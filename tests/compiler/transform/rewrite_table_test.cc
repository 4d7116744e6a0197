// Every rewrite keeps its contract: a module that triggers it is evaluated before and after, operator by operator with
// every result rounded to its dtype, on values for which rewrites that only look exact give different results: zeros of
// both signs, subnormal and greatest numbers, infinities, NaN, and numbers that round sums. A rewrite without a case
// here fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/driver/reference_evaluation.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/structural.h"
#include "compiler/op/reference.h"
#include "compiler/script/parser.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/pass_options.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/rewrite.h"
#include "compiler/transform/rewrite_table.h"

namespace ingot::transform {
namespace {

using Numbers = std::vector<double>;

const std::vector<const char*> kFloats = {"float32", "float64", "float16", "bfloat16"};
const std::vector<const char*> kWide = {"float32", "float64"};
const std::vector<const char*> kFloat32 = {"float32"};

struct Case {
  RewriteId id;
  std::string params;  // "x: R.Tensor((24,), dtype="DT")", DT standing for the dtype
  std::string body;    // bindings by lines, the last of which is gv
  std::vector<const char*> dtypes = kFloats;
  // The error in eps: of the result and of the operand at the same place, where that is as large as the result; of the
  // greatest element of the result for `bounded` and by permission.
  double eps = 0;
  const char* pass = "rewrite_patterns";
  bool keeps_non_finite = false;  // `bounded`, and yet NaN and infinities stay where they are
  bool is_loud = false;           // also by operands of about 100, as attention may have them: an error of 1e4 eps more

  bool is_pattern() const { return std::string_view(pass) == "rewrite_patterns"; }
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

const char* kX = "x: R.Tensor((24,), dtype=\"DT\")";
const char* kImage = "x: R.Tensor((1, 2, 3, 3), dtype=\"DT\")";
const char* kOddChannels = "x: R.Tensor((1, 31, 7, 7), dtype=\"DT\")";
const char* kHeads =
    "q: R.Tensor((1, 2, 3, 4), dtype=\"DT\"), k: R.Tensor((1, 2, 5, 4), dtype=\"DT\"), "
    "v: R.Tensor((1, 2, 5, 4), dtype=\"DT\")";
const char* kSquareHeads =
    "q: R.Tensor((1, 3, 2, 4), dtype=\"DT\"), k: R.Tensor((1, 3, 2, 4), dtype=\"DT\"), "
    "v: R.Tensor((1, 3, 2, 4), dtype=\"DT\")";

std::string Number(const char* value) { return std::string("R.const(") + value + ", \"DT\")"; }
// A constant of these dims whose neighbours differ along every axis, so that it shows when elements change places.
std::string Weights(const std::vector<int64_t>& dims, int scale = 1) {
  std::vector<std::string> parts;
  for (int64_t i = 0; i < op::CountOf(dims); ++i) {
    char text[16];
    std::snprintf(text, sizeof text, scale == 1 ? "%.3f" : "%.0f",
                  scale * (static_cast<double>(i * 7 % 31 - 15) * 0.125 + 0.0625));
    parts.emplace_back(text);
  }
  for (size_t axis = dims.size(); axis-- > 0;) {
    std::vector<std::string> lists;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i % static_cast<size_t>(dims[axis]) == 0) lists.emplace_back("[");
      lists.back() += parts[i] + ((i + 1) % static_cast<size_t>(dims[axis]) == 0 ? "]" : ", ");
    }
    parts = std::move(lists);
  }
  return "R.const(" + parts[0] + ", \"DT\")";
}
// x_f or w_f: (bytes - zero point) * scale.
std::string Dequantised(const std::string& bytes, const std::string& zero, const std::string& dtype,
                        const std::string& scale) {
  const std::string name = bytes == "x" ? "x_f" : "w_f", narrow = ", \"" + dtype + "\")";
  return name + " = R.multiply(R.subtract(R.astype(" + bytes + ", dtype=\"float32\"), R.astype(R.const(" + zero +
         narrow + ", dtype=\"float32\")), R.const(" + scale + ", \"float32\"))\n";
}
std::string Gv(const std::string& value) { return "gv = " + value; }
std::string Attention(const std::string& scores) {
  return "kt = R.permute_dims(k, axes=[0, 1, 3, 2])\ns = R.matmul(q, kt)\nz = " + scores +
         "\np = R.nn.softmax(z, axis=-1)\ngv = R.matmul(p, v)";
}
std::string Gelu(const char* order) {
  std::string text =
      "a = R.divide(x, " + Number("1.4142135623730951") + ")\nb = R.erf(a)\nf = R.add(b, " + Number("1.0") + ")\n";
  return text + order;
}
std::string GeluTanh(const char* order) {
  return "a = R.multiply(R.multiply(x, x), x)\nb = R.add(x, R.multiply(a, " + Number("0.044715") +
         "))\nc = R.multiply(b, " + Number("0.7978845608028654") + ")\nf = R.add(R.tanh(c), " + Number("1.0") + ")\n" +
         order;
}
const char* kEarly = "h = R.multiply(x, R.const(0.5, \"DT\"))\ngv = R.multiply(h, f)";
const char* kLate = "h = R.multiply(x, f)\ngv = R.multiply(h, R.const(0.5, \"DT\"))";
const char* kNorm =
    "m = R.mean(x, axis=[-1], keepdims=True)\nd = R.subtract(x, m)\n"
    "s = R.mean(R.multiply(d, d), axis=[-1], keepdims=True)\n"
    "n = R.divide(d, R.sqrt(R.add(s, R.const(0.001, \"DT\"))))\n";
const char* kRelu6 = "r = R.clip(R.add(x, R.const(3.0, \"DT\")), R.prim_value(0), R.prim_value(6))\n";

std::vector<Case> Cases() {
  using Id = RewriteId;
  const std::string square = "a = R.add(R.multiply(x, x), " + Number("0.5") + ")\n";
  const std::string conv = "c = R.nn.conv2d(x, " + Weights({2, 2, 1, 1}) + ")\n";
  const std::string rows = "x: R.Tensor((6, 4), dtype=\"DT\")";
  const auto between = [](const std::string& value) {
    const std::string weights = Weights({31, 31, 3, 3}) + ", padding=[1, 1, 1, 1]";
    return "c = R.nn.conv2d(x, " + weights + ")\nd = " + value + "\n" + Gv("R.nn.conv2d(d, " + weights + ")");
  };
  std::vector<Case> cases = {
      {Id::kAddZero, kX, Gv("R.add(x, " + Number("-0.0") + ")")},
      {Id::kAddZero, kX, Gv("R.add(R.multiply(x, x), " + Number("0.0") + ")")},
      {Id::kAddZero, kX, Gv("R.add(x, " + Number("0") + ")"), {"int32", "int8", "uint8", "int64"}},
      {Id::kSubtractZero, kX, Gv("R.subtract(x, " + Number("0.0") + ")")},
      {Id::kSubtractZero, kX, Gv("R.subtract(x, " + Number("0") + ")"), {"int32", "uint16"}},
      {Id::kMultiplyOne, kX, Gv("R.multiply(x, " + Number("1.0") + ")")},
      {Id::kMultiplyOne, kX, Gv("R.multiply(x, " + Number("1") + ")"), {"int32", "int8"}},
      {Id::kDivideOne, kX, Gv("R.divide(x, " + Number("1.0") + ")")},
      {Id::kMultiplyMultiply, kX, Gv("R.multiply(R.multiply(x, " + Number("0.5") + "), " + Number("0.3") + ")"),
       kFloats, 1},
      {Id::kMultiplyMultiply, kX, Gv("R.multiply(R.multiply(x, " + Number("4.0") + "), " + Number("8.0") + ")"),
       kFloats, 1},
      {Id::kDivideNumber, kX, Gv("R.divide(x, " + Number("8.0") + ")")},
      {Id::kDivideNumber, kX, Gv("R.divide(x, " + Number("-0.125") + ")")},
      {Id::kErfOfQuotient, kX, Gv("R.erf(R.divide(x, " + Number("1.5") + "))"), {"float32", "float64"}, 4},
      {Id::kSmallPower, kX, Gv("R.power(x, " + Number("1.0") + ")"), kFloats, 2},
      {Id::kSmallPower, kX, Gv("R.power(x, " + Number("2.0") + ")"), kFloats, 2},
      {Id::kSmallPower, kX, Gv("R.power(x, " + Number("3.0") + ")"), kFloats, 2},
      {Id::kRootPower, kX, square + Gv("R.power(a, " + Number("0.5") + ")"), kFloats, 2},
      {Id::kRootPower, kX, square + Gv("R.power(a, " + Number("-0.5") + ")"), kFloats, 2},
      {Id::kRootPower, kX, Gv("R.power(R.multiply(x, x), " + Number("-0.5") + ")"), kFloats, 2},
      {Id::kReciprocalRoot, kX, Gv("R.divide(" + Number("1.0") + ", R.sqrt(x))"), kFloats, 2},
      {Id::kSameCast, kX, Gv("R.astype(x, dtype=\"DT\")"), {"float32", "float16", "int8", "bool"}},
      {Id::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"float32\"), dtype=\"float64\")"), {"float16", "bfloat16"}},
      {Id::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"float32\"), dtype=\"DT\")"), {"float16", "bfloat16"}},
      {Id::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"int64\"), dtype=\"int8\")"), {"int32", "int16", "bool"}},
      {Id::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"float16\"), dtype=\"float32\")"), {"bool"}},
      {Id::kKnownChoice, kX, Gv("R.where(R.const(True, \"bool\"), x, R.negative(x))")},
      {Id::kAndTrue, kX, Gv("R.logical_and(x, R.const(True, \"bool\"))"), {"bool"}},
      {Id::kSameBroadcast, kX, Gv("R.broadcast_to(x, R.shape([24]))")},
      {Id::kConcatOfOne, kX, Gv("R.concat((x,), axis=0)")},
      {Id::kWholeSlice, kX,
       Gv("R.strided_slice(x, (R.prim_value(0),), (R.prim_value(0),), (R.prim_value(24),), assume_inbound=False)")},
      {Id::kAddPositiveZero, kX, Gv("R.add(x, " + Number("0.0") + ")"), kFloats, 1},
      {Id::kAddAdd, kX, Gv("R.add(R.add(x, " + Number("2.5") + "), " + Number("-1.25") + ")"), kFloats, 4},
      {Id::kMultiplyMultiplyAny, kX, Gv("R.multiply(R.multiply(x, " + Number("300") + "), " + Number("0.01") + ")"),
       kFloats, 4},
      {Id::kRootPowerAny, kX, Gv("R.power(x, " + Number("0.5") + ")"), kFloats, 2},
      {Id::kRootPowerAny, kX, Gv("R.power(x, " + Number("-0.5") + ")"), kFloats, 2},

      {Id::kGelu, kX, Gelu(kEarly), kWide, 8},
      {Id::kGeluTanh, kX, GeluTanh(kEarly), kWide, 16},
      {Id::kSilu, kX, Gv("R.multiply(x, R.sigmoid(x))"), kFloats, 4},
      {Id::kHardSwish, kX, kRelu6 + Gv("R.multiply(x, R.divide(r, " + Number("6.0") + "))"), kFloats, 8},
      {Id::kGeluLateHalf, kX, Gelu(kLate), kWide, 8},
      {Id::kGeluTanhLateHalf, kX, GeluTanh(kLate), kWide, 16},
      {Id::kHardSwishLateSixth, kX, kRelu6 + Gv("R.divide(R.multiply(x, r), " + Number("6.0") + ")"), kFloats, 8},
      {Id::kLayerNorm, rows + ", g: R.Tensor((4,), dtype=\"DT\")", kNorm + Gv("R.multiply(n, g)"), kWide, 512},
      {Id::kLayerNormBeta, rows + ", g: R.Tensor((4,), dtype=\"DT\"), b: R.Tensor((4,), dtype=\"DT\")",
       kNorm + Gv("R.add(R.multiply(n, g), b)"), kWide, 512},
      {Id::kRmsNorm, rows + ", g: R.Tensor((4,), dtype=\"DT\")",
       "s = R.mean(R.multiply(x, x), axis=[-1], keepdims=True)\n"
       "n = R.divide(x, R.sqrt(R.add(s, R.const(0.001, \"DT\"))))\n" +
           Gv("R.multiply(n, g)"),
       kWide, 64},

      {Id::kViewView, rows, Gv("R.reshape(R.reshape(x, R.shape([4, 6])), R.shape([24]))")},
      {Id::kPermutePermute, "x: R.Tensor((2, 3, 4), dtype=\"DT\")",
       Gv("R.permute_dims(R.permute_dims(x, axes=[1, 2, 0]), axes=[0, 2, 1])")},
      {Id::kPermuteIsView, "x: R.Tensor((1, 6, 4), dtype=\"DT\")", Gv("R.permute_dims(x, axes=[1, 0, 2])")},
      {Id::kViewPermute, "x: R.Tensor((2, 3, 4), dtype=\"DT\")",
       Gv("R.reshape(R.permute_dims(x, axes=[1, 0, 2]), R.shape([1, 3, 2, 4]))")},
      {Id::kTakePermute, "x: R.Tensor((2, 3, 4), dtype=\"DT\")",
       Gv("R.take(R.permute_dims(x, axes=[0, 2, 1]), R.const(1, \"int64\"), axis=2)")},
      {Id::kUnaryView, rows, Gv("R.negative(R.reshape(R.abs(x), R.shape([24])))")},
      {Id::kBinaryView, rows + ", y: R.Tensor((2, 3, 4), dtype=\"DT\")",
       Gv("R.add(R.reshape(R.negative(x), R.shape([2, 3, 4])), y)")},
      {Id::kNormView, rows + ", g: R.Tensor((4,), dtype=\"DT\")",
       Gv("R.nn.rms_norm(R.reshape(R.negative(x), R.shape([2, 3, 4])), g, axes=[-1], epsilon=0.001)")},
      {Id::kProductView, rows + ", w: R.Tensor((4, 5), dtype=\"DT\")",
       Gv("R.matmul(R.reshape(x, R.shape([2, 3, 4])), w)"), kFloats, 8},

      {Id::kAttention, kHeads + std::string(", m: R.Tensor((3, 5), dtype=\"DT\")"), Attention("R.add(s, m)"), kFloats,
       64, "rewrite_patterns", true},
      {Id::kPermuteAttention, kHeads,
       Gv("R.nn.attention(R.permute_dims(q, axes=[0, 2, 1, 3]), R.permute_dims(k, axes=[0, 2, 1, 3]), "
          "R.permute_dims(v, axes=[0, 2, 1, 3]))")},
      {Id::kAttentionPermute, kSquareHeads, Gv("R.permute_dims(R.nn.attention(q, k, v), axes=[0, 2, 1, 3])")},
      {Id::kRepeatedHeads, kSquareHeads,
       "q4 = R.concat((q, q), axis=2)\n"
       "k4 = R.reshape(R.broadcast_to(R.reshape(k, R.shape([1, 3, 2, 1, 4])), R.shape([1, 3, 2, 2, 4])), "
       "R.shape([1, 3, 4, 4]))\n"
       "v4 = R.reshape(R.broadcast_to(R.reshape(v, R.shape([1, 3, 2, 1, 4])), R.shape([1, 3, 2, 2, 4])), "
       "R.shape([1, 3, 4, 4]))\n" +
           Gv("R.nn.attention(q4, k4, v4)")},
      {Id::kZeroMask, kSquareHeads, Gv("R.nn.attention(q, k, v, R.const([[0.0, 0.0, 0.0]], \"DT\"))")},
      {Id::kCausalMask, kSquareHeads,
       Gv("R.nn.attention(q, k, v, R.const([[0.0, -1e31, -1e31], [0.0, 0.0, -1e31], [0.0, 0.0, 0.0]], \"DT\"), "
          "stepwise=True)"),
       kFloats, 16},
      {Id::kCausalMask, kSquareHeads,
       Gv("R.nn.attention(q, k, v, R.const([[True, False, False], [True, True, False], [True, True, True]], \"bool\"), "
          "stepwise=True)"),
       kFloats, 16},

      {Id::kQuantisedMatmul, "x: R.Tensor((6, 4), dtype=\"uint8\")",
       Dequantised("x", "120", "uint8", "0.05") +
           Dequantised("R.const([[1, -2, 127], [-128, 3, 5], [7, 64, -9], [0, -1, 100]], \"int8\")", "[[1, -2, 3]]",
                       "int8", "[[0.02, 0.5, 3.0]]") +
           Gv("R.matmul(x_f, w_f)"),
       kFloat32, 256, "quantised_products"},
      // Weights by outputs, and no zero point.
      {Id::kQuantisedMatmul, "x: R.Tensor((2, 3, 4), dtype=\"int8\")",
       Dequantised("x", "-7", "int8", "0.05") +
           "w = R.astype(R.const([[1, -2, 127, -128], [3, 5, 7, 64]], \"int8\"), dtype=\"float32\")\n"
           "w_f = R.multiply(w, R.const([[0.02], [0.5]], \"float32\"))\n" +
           Gv("R.matmul(x_f, R.permute_dims(w_f, axes=[1, 0]))"),
       kFloat32, 256, "quantised_products"},
      {Id::kByteTable,
       "x: R.Tensor((16, 20), dtype=\"DT\")",
       Dequantised("x", "-7", "DT", "0.05") +
           "s = R.multiply(x_f, R.sigmoid(x_f))\nq = R.round(R.divide(s, R.const(0.03, \"float32\")))\n" +
           Gv("R.astype(R.clip(q, R.prim_value(-128), R.prim_value(127)), dtype=\"DT\")"),
       {"int8"},
       0,
       "fold_constants,tabulate_bytes"},
      {Id::kByteTable,
       "x: R.Tensor((16, 20), dtype=\"DT\")",
       Dequantised("x", "120", "DT", "0.05") +
           "q = R.round(R.multiply(R.sigmoid(x_f), R.const(255.0, \"float32\")))\n" +
           Gv("R.astype(R.clip(q, R.prim_value(0), R.prim_value(255)), dtype=\"DT\")"),
       {"uint8"},
       0,
       "fold_constants,tabulate_bytes"},
      {Id::kQuantisedConv, "x: R.Tensor((1, 9, 5, 4), dtype=\"uint8\")",
       Dequantised("x", "120", "uint8", "0.05") +
           Dequantised(Replaced(Weights({2, 9, 3, 3}, 8), "DT", "int8"), "[[[[1]]], [[[-2]]]]", "int8",
                       "[[[[0.02]]], [[[0.5]]]]") +
           Gv("R.nn.conv2d(x_f, w_f, strides=[2, 2], padding=[1, 1, 1, 1])"),
       kFloat32, 256, "quantised_products"},

      // Along y the first and the last tap see padding alone, along x the last one does.
      {Id::kCutTaps, "x: R.Tensor((1, 2, 3, 4), dtype=\"DT\")",
       Gv("R.nn.conv2d(x, " + Weights({2, 2, 3, 3}) + ", padding=[3, 1, 3, 3], dilation=[3, 3])"), kFloats, 0,
       "fit_windows"},
      {Id::kCutTaps, "x: R.Tensor((1, 2, 3), dtype=\"DT\")",
       Gv("R.nn.conv1d(x, " + Weights({2, 1, 4}) + ", padding=[5, 1], strides=[2], dilation=[2], groups=2)"), kFloats,
       0, "fit_windows"},
      {Id::kFillGroups,
       "x: R.Tensor((1, 40, 3, 4), dtype=\"DT\")",
       Gv("R.nn.conv2d(x, " + Weights({36, 20, 2, 1}, 8) + ", groups=2, out_dtype=\"int32\")"),
       {"int16"},
       0,
       "fit_windows"},

      {Id::kUnfoldBatchNorm, kImage,
       "n = R.nn.batch_norm(x, R.const([0.5, 2.0], \"DT\"), R.const([1.0, -1.0], \"DT\"), R.const([0.25, -3.0], "
       "\"DT\"), "
       "R.const([0.5, 4.0], \"DT\"), axis=1, epsilon=0.001, training=False)\n" +
           Gv("n[0]"),
       kFloats, 64, "unfold_batch_norms"},
      {Id::kFoldScale, kImage, conv + Gv("R.multiply(c, R.const([[[0.3]], [[-2.0]]], \"DT\"))"), kWide, 64,
       "fold_scales"},
      // A nearly dead channel.
      {Id::kFoldScale, kImage, conv + Gv("R.multiply(c, R.const([[[1e-10]], [[-2.0]]], \"DT\"))"), kWide, 64,
       "fold_scales"},
      {Id::kJoinBiases, kImage,
       conv + "d = R.add(c, R.const([[[0.3]], [[-2.0]]], \"DT\"))\n" +
           Gv("R.add(d, R.const([[[1.7]], [[5.0]]], \"DT\"))"),
       kFloats, 64, "fold_scales"},
      {Id::kPackWeights, rows, Gv("R.matmul(x, " + Weights({4, 40}) + ")"), kFloat32, 8, "pack_weights"},
      {Id::kBlockedLayout, "x: R.Tensor((1, 32, 7, 7), dtype=\"DT\")",
       Gv("R.nn.conv2d(x, " + Weights({32, 32, 3, 3}) + ", padding=[1, 1, 1, 1])"), kFloat32, 8, "convert_layout"},
      // Channels that do not fill their blocks: what fills them up becomes infinite, 1 or NaN between the convolutions.
      {Id::kBlockedLayout, kOddChannels, between("R.divide(" + Number("1.0") + ", c)"), kFloat32, 64, "convert_layout"},
      {Id::kBlockedLayout, kOddChannels, between("R.cos(c)"), kFloat32, 64, "convert_layout"},
      {Id::kBlockedLayout, kOddChannels, between("R.divide(c, R.abs(c))"), kFloat32, 64, "convert_layout"},
      {Id::kDenseGroups, "x: R.Tensor((1, 64, 5, 5), dtype=\"DT\")",
       Gv("R.nn.conv2d(x, " + Weights({64, 8, 7, 7}) + ", strides=[2, 2], padding=[3, 3, 3, 3], groups=8)"), kFloat32,
       64, "convert_layout"},
      {Id::kWinograd, "x: R.Tensor((1, 32, 15, 16), dtype=\"DT\")",
       Gv("R.nn.conv2d(x, " + Weights({32, 32, 3, 3}) + ", padding=[1, 1, 1, 1])"), kFloat32, 2048, "convert_layout"},
  };
  // Attention whose mask chooses between scores and a constant: hidden scores stay hidden, whatever the constant is.
  for (const char* hidden : {"-10000.0", "-1e9", "3.0"}) {
    for (const char* operands : {"m, s, HIDDEN", "m, HIDDEN, s"}) {
      const std::string choice = Replaced(std::string("R.where(") + operands + ")", "HIDDEN", Number(hidden));
      cases.push_back({Id::kAttention, kHeads + std::string(", m: R.Tensor((3, 5), dtype=\"bool\")"), Attention(choice),
                       kWide, 64, "rewrite_patterns", true, true});
    }
  }
  return cases;
}

// ---- Values
bool IsFloat(const Tensor& tensor) { return tensor.dtype().is_floating(); }

Tensor TensorFrom(DataType dtype, const std::vector<int64_t>& dims, const Numbers& values) {
  op::ReferenceTensor tensor = op::NewReference(dtype, dims);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype.is_floating()) {
      tensor.floats[i] = ir::RoundToFloat(dtype, values[i]);
    } else {
      tensor.ints[i] = dtype.is_bool() ? values[i] > 0 : ir::WrapInt(dtype, static_cast<int64_t>(values[i]));
    }
  }
  return Tensor::FromShared(dtype, dims, SharedBytes::Own(op::PackReference(tensor))).value();
}

Numbers NumbersOf(const Tensor& tensor) {
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  const op::ReferenceTensor unpacked = op::UnpackReference(tensor.dtype(), dims, std::as_bytes(tensor.bytes()));
  Numbers numbers;
  for (int64_t i = 0; i < op::CountOf(dims); ++i) numbers.push_back(op::GetNumber(unpacked, i));
  return numbers;
}

struct Limits {
  double eps, least, greatest;
};
Limits LimitsOf(DataType dtype) {
  const ir::FloatFormat& format = ir::FloatFormatOf(dtype);
  return {std::ldexp(1.0, -format.mantissa_bits), std::ldexp(1.0, 1 - format.bias - format.mantissa_bits),
          ir::LargestFinite(dtype)};
}

// Numbers of a dtype for which rewrites that only look exact give different results.
Numbers Adversarial(DataType dtype) {
  if (!dtype.is_floating()) return {0, 1, -1, 2, 127, 128, -128, 255, 32767, 65536, 2147483647.0, -2147483648.0};
  const double inf = std::numeric_limits<double>::infinity();
  const Limits limits = LimitsOf(dtype);
  Numbers numbers = {0,    1,     0.5, 3, 7.25, 1e-3, 11.09, 88.7, 104, 300, 1536, 12582912, 6755399441055744,
                     1e30, 1e-30, inf};
  for (double x : {limits.least, limits.least * 3, limits.least / limits.eps, limits.greatest, limits.greatest / 1.5,
                   limits.greatest / 3, std::sqrt(limits.greatest) * 2}) {
    numbers.push_back(x);
  }
  const size_t positive = numbers.size();
  for (size_t i = 0; i < positive; ++i) numbers.push_back(-numbers[i]);
  numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  return numbers;
}

// How the elements of a round are drawn.
enum class Kind : uint8_t {
  kTame,      // about 1
  kLoud,      // about 100
  kSpecials,  // about 1, some of them infinite or NaN
  kAny,       // adversarial all
};

Tensor Draw(const ir::TensorTypeNode& type, Kind kind, bool is_first, std::mt19937& random) {
  std::vector<int64_t> dims;
  for (const ir::PrimExpr& dim : *type.dims) dims.push_back(*ir::AsConstInt(dim));
  const Numbers adversarial = Adversarial(*type.dtype);
  std::normal_distribution<double> normal;
  Numbers values;
  for (int64_t i = 0; i < op::CountOf(dims); ++i) {
    double x = normal(random) * (kind == Kind::kLoud ? 100 : 1);
    if (kind == Kind::kSpecials && random() % 8 == 0) {
      const double inf = std::numeric_limits<double>::infinity();
      const double specials[] = {inf, -inf, std::nan("")};
      x = specials[random() % 3];
    }
    if (kind == Kind::kAny) x = adversarial[random() % adversarial.size()];
    values.push_back(x);
  }
  // Elements of one sign, so that a hidden score may be greater than all visible ones.
  if (kind == Kind::kLoud && random() % 2 == 0) {
    for (double& x : values) x = is_first ? std::fabs(x) : -std::fabs(x);
  }
  return TensorFrom(*type.dtype, dims, values);
}

// ---- Comparisons
bool SameBits(double a, double b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

// Empty when the contract holds for an element, else the difference. Errors are measured in eps times scale.
std::string Difference(Exactness exactness, const Case& row, Kind kind, double before, double after, double scale,
                       const Limits& limits) {
  if (SameBits(before, after)) return "";
  const auto tell = [&](const char* what) {
    char text[128];
    std::snprintf(text, sizeof text, "%s: %.17g became %.17g", what, before, after);
    return std::string(text);
  };
  if (exactness == Exactness::kBitwise) return tell("bits differ");
  const bool is_tame = kind == Kind::kTame || kind == Kind::kLoud;
  if (exactness == Exactness::kByPermission && !is_tame) return "";
  const bool is_strict = exactness == Exactness::kRoundingOnly || row.keeps_non_finite;
  // Whether a result next to the overflow threshold overflows is a matter of rounding, too.
  const auto is_at_border = [&](double x) { return std::fabs(x) >= limits.greatest * (1 - 8 * limits.eps); };
  if (std::isinf(before) != std::isinf(after) && is_at_border(before) && is_at_border(after)) return "";
  if (!std::isfinite(before) || !std::isfinite(after)) {
    if (exactness == Exactness::kBounded && kind == Kind::kAny) return "";  // beyond the contract's magnitude
    if (!std::isfinite(before) && std::isfinite(after)) return tell("not finite, and became finite");
    if (std::isfinite(before) && (is_strict || is_tame)) return tell("finite, and became not finite");
    return is_strict && !(std::isnan(before) && std::isnan(after)) ? tell("another infinity") : "";
  }
  if (exactness == Exactness::kBounded && kind == Kind::kAny) return "";
  const double factor = row.eps * (kind == Kind::kLoud ? 1e4 : 1);
  const double allowed = factor * limits.eps * std::max(std::fabs(before), scale) +
                         limits.least * (4 + (std::isfinite(scale) ? scale : 0));
  return std::fabs(before - after) <= allowed ? "" : tell("beyond the bound");
}

// ---- A run
struct Run {
  ir::IRModule before, after;
  RewriteLog log;
};

Run Transform(const Case& row, const char* dtype, const RewritePermissions& permissions) {
  std::string lines;
  for (size_t at = 0; at < row.body.size();) {
    const size_t end = std::min(row.body.find('\n', at), row.body.size());
    lines += "            " + row.body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  std::string text = "@I.ir_module\nclass Module:\n    @R.function\n    def main(" + row.params +
                     "):\n        with R.dataflow():\n" + lines + "            R.output(gv)\n        return gv\n";
  text = Replaced(text, "DT", dtype);
  CAPTURE(text);
  Result<ir::IRModule> module = script::ParseModule(text, "case.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  PassContext context;
  context.options.target = ParseTarget("cpu:x86-64-v3").value();
  context.options.rewrites = permissions;
  module = Normalize(*std::move(module), context);
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  Run run{*module, *module, {}};
  Result<ir::IRModule> after = row.is_pattern() ? RewriteModule(*module, PatternRewrites(), permissions, run.log)
                                                : RunPasses(*module, FindPasses(SplitList(row.pass)).value(), context);
  REQUIRE_MESSAGE(after.ok(), after.status().message());
  run.after = *std::move(after);
  if (!row.is_pattern()) run.log = context.rewrites;
  return run;
}

void CheckValues(const Case& row, const Run& run, Exactness exactness) {
  std::mt19937 random(7);
  // Images are large, and slow to evaluate.
  const size_t rounds = std::string_view(row.pass) == "convert_layout" ? 1 : 10;
  std::vector<Kind> kinds(rounds, Kind::kTame);
  kinds.insert(kinds.end(), rounds, Kind::kSpecials);
  kinds.insert(kinds.end(), rounds * 2, Kind::kAny);
  if (row.is_loud) kinds.insert(kinds.end(), 20, Kind::kLoud);
  const ir::Function function = run.before.FindFunction("main");
  for (Kind kind : kinds) {
    std::vector<Tensor> inputs;
    for (const ir::Var& param : function->params) {
      inputs.push_back(Draw(*ir::As<ir::TensorTypeNode>(param->type), kind, inputs.empty(), random));
    }
    const auto before = driver::EvaluateByReference(run.before, inputs, driver::Rounding::kEveryOperator);
    const auto after = driver::EvaluateByReference(run.after, inputs, driver::Rounding::kEveryOperator);
    REQUIRE_MESSAGE(before.ok(), before.status().message());
    REQUIRE_MESSAGE(after.ok(), after.status().message());
    const Tensor& result = before->at(0);
    const Numbers a = NumbersOf(result), b = NumbersOf(after->at(0)), x = NumbersOf(inputs[0]);
    REQUIRE(a.size() == b.size());
    if (!IsFloat(result)) {
      CHECK(a == b);
      continue;
    }
    double greatest = 1;
    for (double element : a) greatest = std::isfinite(element) ? std::max(greatest, std::fabs(element)) : greatest;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool is_local = exactness == Exactness::kRoundingOnly && x.size() == a.size();
      const double at = is_local ? std::fabs(x[i]) : greatest;
      const double scale = is_local && (row.eps == 0 || !std::isfinite(at)) ? 0 : at;
      const std::string difference = Difference(exactness, row, kind, a[i], b[i], scale, LimitsOf(result.dtype()));
      if (difference.empty()) continue;
      CAPTURE(static_cast<int>(kind));
      CAPTURE(i);
      FAIL_CHECK(difference);
      return;
    }
  }
}

TEST_CASE("every rewrite keeps its contract on adversarial values in each dtype") {
  std::set<RewriteId> seen;
  for (const Case& row : Cases()) {
    const Rewrite& rewrite = GetRewrite(row.id);
    CAPTURE(rewrite.name);
    CAPTURE(row.body);
    for (const char* dtype : row.dtypes) {
      CAPTURE(dtype);
      const Run by_default = Transform(row, dtype, {});
      const bool is_permitted = rewrite.exactness != Exactness::kByPermission;
      CHECK((by_default.log.count(row.id) > 0) == is_permitted);
      CHECK(by_default.log.applied().empty() == ir::StructuralEqual(by_default.before, by_default.after));
      CheckValues(row, by_default,
                  std::max(by_default.log.LoosestSince({}), is_permitted ? rewrite.exactness : Exactness::kBitwise));
      const Run strict = Transform(row, dtype, {.strict_math = true});
      CHECK((strict.log.count(row.id) > 0) == (rewrite.exactness == Exactness::kBitwise));
      CHECK(strict.log.LoosestSince({}) == Exactness::kBitwise);
      if (!strict.log.applied().empty()) CheckValues(row, strict, Exactness::kBitwise);
      if (!is_permitted) {
        const Run permitted = Transform(row, dtype, {.fast_math = {std::string(rewrite.group())}});
        CHECK(permitted.log.count(row.id) > 0);
        CheckValues(row, permitted, Exactness::kByPermission);
      }
    }
    seen.insert(row.id);
  }
  // What kernels carry out shows in compiled results, which compile_test.cc compares.
  for (const Rewrite& rewrite : RewriteTable()) {
    if (rewrite.by == CarriedOutBy::kKernels) continue;
    CHECK_MESSAGE(seen.contains(rewrite.id), rewrite.name << " has no case");
  }
}

// Modules to which a rewrite seems to apply but must not: results may change by roundings only.
TEST_CASE("what is no rewrite without permission stays as it is") {
  const std::string rows = "x: R.Tensor((6, 4), dtype=\"DT\")";
  const std::string conv = "w = R.broadcast_to(R.const(0.5, \"DT\"), R.shape([2, 2, 1, 1]))\nc = R.nn.conv2d(x, w)\n";
  const std::vector<Case> cases = {
      {RewriteId::kMultiplyMultiply, kX, Gv("R.multiply(R.multiply(x, " + Number("300") + "), " + Number("300") + ")")},
      {RewriteId::kMultiplyMultiply, kX,
       Gv("R.multiply(R.multiply(x, " + Number("8.0") + "), " + Number("0.25") + ")")},
      {RewriteId::kAddAdd, kX, Gv("R.add(R.add(x, " + Number("12582912") + "), " + Number("-12582912") + ")")},
      {RewriteId::kAddAdd, kX, Gv("R.add(R.add(x, " + Number("1536") + "), " + Number("-1536") + ")")},
      {RewriteId::kAddZero, kX, Gv("R.add(x, " + Number("0.0") + ")")},
      {RewriteId::kSubtractZero, kX, Gv("R.subtract(x, " + Number("-0.0") + ")")},
      {RewriteId::kDivideNumber, kX, Gv("R.floor(R.divide(x, " + Number("49.0") + "))")},
      {RewriteId::kRootPower, kX, Gv("R.power(R.negative(R.multiply(x, x)), " + Number("-0.5") + ")")},
      {RewriteId::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"float16\"), dtype=\"DT\")"), {"float32", "bfloat16"}},
      {RewriteId::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"int32\"), dtype=\"DT\")"), {"float32", "float16"}},
      // Conversions that lose values on their way: by range, by sign, or to a truth value.
      {RewriteId::kCastCast,
       kX,
       Gv("R.astype(R.astype(x, dtype=\"int8\"), dtype=\"int32\")"),
       {"int32", "uint8", "int16"}},
      {RewriteId::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"uint8\"), dtype=\"int32\")"), {"int8", "int16"}},
      {RewriteId::kCastCast, kX, Gv("R.astype(R.astype(x, dtype=\"bool\"), dtype=\"int32\")"), {"int32", "uint8"}},
      {RewriteId::kCastCast,
       kX,
       Gv("R.astype(R.astype(x, dtype=\"float32\"), dtype=\"float16\")"),
       {"int32", "float64"}},
      // The reciprocal is infinite, or is rounded.
      {RewriteId::kDivideNumber, kX, Gv("R.divide(x, " + Number("1.401298464324817e-45") + ")"), kFloat32},
      {RewriteId::kDivideNumber, kX, Gv("R.divide(x, " + Number("3.0") + ")")},
      {RewriteId::kMultiplyOne, kX, Gv("R.multiply(x, " + Number("-1.0") + ")")},
      {RewriteId::kMultiplyMultiply, kX,
       Gv("R.multiply(R.multiply(x, " + Number("1e-30") + "), " + Number("1e-20") + ")"), kFloat32},
      {RewriteId::kMultiplyMultiply, kX, Gv("R.multiply(R.multiply(x, " + Number("0.3") + "), " + Number("0.7") + ")")},
      {RewriteId::kKnownChoice, "c: R.Tensor((24,), dtype=\"bool\"), " + std::string(kX),
       Gv("R.where(c, x, R.negative(x))")},
      {RewriteId::kWholeSlice, kX,
       Gv("R.strided_slice(x, (R.prim_value(0),), (R.prim_value(1),), (R.prim_value(24),), assume_inbound=False)")},
      {RewriteId::kWholeSlice, kX,
       Gv("R.strided_slice(x, (R.prim_value(0),), (R.prim_value(23),), (R.prim_value(-25),), (R.prim_value(-1),), "
          "assume_inbound=False)")},
      // What depends on places does not let views pass.
      {RewriteId::kUnaryView, rows, Gv("R.cumsum(R.reshape(R.abs(x), R.shape([2, 3, 4])), axis=1)")},
      {RewriteId::kUnaryView, rows, Gv("R.nn.softmax(R.reshape(R.abs(x), R.shape([2, 3, 4])), axis=1)")},
      {RewriteId::kUnaryView, rows, Gv("R.flip(R.reshape(R.abs(x), R.shape([24])), axis=0)")},
      {RewriteId::kUnaryView, rows, Gv("R.triu(R.reshape(R.abs(x), R.shape([2, 3, 4])), 1)")},
      {RewriteId::kNormView, rows + ", g: R.Tensor((3, 4), dtype=\"DT\")",
       Gv("R.nn.rms_norm(R.reshape(R.negative(x), R.shape([2, 3, 4])), g, axes=[-2, -1], epsilon=0.001)")},
      {RewriteId::kPermuteIsView, "x: R.Tensor((2, 6, 4), dtype=\"DT\")", Gv("R.permute_dims(x, axes=[1, 0, 2])")},
      {RewriteId::kTakePermute, "x: R.Tensor((2, 3, 4), dtype=\"DT\")",
       Gv("R.take(R.permute_dims(x, axes=[0, 2, 1]), R.const([1, 0], \"int64\"), axis=2)")},
      {RewriteId::kRepeatedHeads, kSquareHeads,
       "k4 = R.reshape(R.broadcast_to(R.reshape(k, R.shape([1, 3, 1, 2, 4])), R.shape([1, 3, 2, 2, 4])), "
       "R.shape([1, 3, 4, 4]))\n"
       "v4 = R.reshape(R.broadcast_to(R.reshape(v, R.shape([1, 3, 1, 2, 4])), R.shape([1, 3, 2, 2, 4])), "
       "R.shape([1, 3, 4, 4]))\n" +
           Gv("R.nn.attention(R.concat((q, q), axis=2), k4, v4)")},
      {RewriteId::kZeroMask, kSquareHeads, Gv("R.nn.attention(q, k, v, R.const([[0.0, 1.0, 0.0]], \"DT\"))")},
      {RewriteId::kCausalMask, kSquareHeads,
       Gv("R.nn.attention(q, k, v, R.const([[0.0, -1e31, -1e31], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], \"DT\"), "
          "stepwise=True)")},
      {RewriteId::kCausalMask, kSquareHeads,
       Gv("R.nn.attention(q, k, v, R.const([[0.0, -9.0, -9.0], [0.0, 0.0, -9.0], [0.0, 0.0, 0.0]], \"DT\"), "
          "stepwise=True)")},
      // The sum of the biases rounds what the convolution's digits alone would keep.
      {RewriteId::kJoinBiases, kImage,
       "w = R.broadcast_to(R.const(0.3, \"DT\"), R.shape([2, 2, 1, 1]))\nc = R.nn.conv2d(x, w)\n"
       "d = R.add(c, R.const([[[6144.0]], [[6144.0]]], \"DT\"))\n" +
           Gv("R.add(d, R.const([[[-6144.0]], [[-6144.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
      {RewriteId::kFoldScale, kImage, conv + Gv("R.multiply(c, R.const([[[1e8]], [[1.0]]], \"DT\"))"), kFloat32, 0,
       "fold_scales"},
      {RewriteId::kFoldScale,
       kImage,
       conv + Gv("R.multiply(c, R.const([[[0.5]], [[1.0]]], \"DT\"))"),
       {"float16"},
       0,
       "fold_scales"},
      {RewriteId::kJoinBiases, kImage,
       "w = R.broadcast_to(R.const(0.3, \"DT\"), R.shape([2, 2, 1, 1]))\nc = R.nn.conv2d(x, w)\n"
       "d = R.add(c, R.const([[[12582912.0]], [[12582912.0]]], \"DT\"))\n" +
           Gv("R.add(d, R.const([[[-12582912.0]], [[-12582912.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
      // The large numbers are computed from weights.
      {RewriteId::kJoinBiases, kImage,
       conv + "m = R.broadcast_to(R.const(12582912.0, \"DT\"), R.shape([1, 2, 1, 1]))\nd = R.add(c, m)\n" +
           Gv("R.add(d, R.const([[[-12582912.0]], [[-12582912.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
      {RewriteId::kJoinBiases, kImage,
       conv +
           "m = R.multiply(R.const([[[4096.0]], [[4096.0]]], \"DT\"), R.const(4096.0, \"DT\"))\n"
           "d = R.add(c, m)\n" +
           Gv("R.add(d, R.const([[[-12582912.0]], [[-12582912.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
      // The scaled weights overflow, underflow, or would undo an overflow.
      {RewriteId::kFoldScale, kImage, conv + Gv("R.multiply(c, R.const([[[1e38]], [[1e38]]], \"DT\"))"), kFloat32, 0,
       "fold_scales"},
      {RewriteId::kFoldScale, kImage, conv + Gv("R.multiply(c, R.const([[[1e-38]], [[1.0]]], \"DT\"))"), kFloat32, 0,
       "fold_scales"},
      {RewriteId::kFoldScale, kImage,
       "w = R.broadcast_to(R.const(1e38, \"DT\"), R.shape([2, 2, 1, 1]))\nc = R.nn.conv2d(x, w)\n" +
           Gv("R.multiply(c, R.const([[[100.0]], [[1.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
      {RewriteId::kFoldScale, kImage,
       conv + "d = R.add(c, R.const([[[1e38]], [[1.0]]], \"DT\"))\n" +
           Gv("R.multiply(d, R.const([[[100.0]], [[1.0]]], \"DT\"))"),
       kFloat32, 0, "fold_scales"},
  };
  for (const Case& row : cases) {
    CAPTURE(row.body);
    for (const char* dtype : row.dtypes) {
      CAPTURE(dtype);
      const Run run = Transform(row, dtype, {});
      CHECK(run.log.count(row.id) == 0);
      CheckValues(row, run, Exactness::kBitwise);
    }
  }
}

// Counts the arguments that calls of tensor functions take after binding scalars.
size_t CountArguments(const std::string& value, const RewritePermissions& permissions) {
  const Case row = {RewriteId::kBoundPower, kX, Gv(value), kFloat32, 0, "normalize,legalize,bind_scalars"};
  const Run run = Transform(row, "float32", permissions);
  size_t count = 0;
  for (const ir::BindingBlock& block : run.after.FindFunction("main")->body->blocks) {
    for (const ir::Binding& binding : block.bindings) {
      if (const std::optional<CallTir> call = AsCallTir(binding.value)) count += call->args.size();
    }
  }
  return count;
}

TEST_CASE("strict permissions leave an exponent that makes products an operand, and bind all other scalars") {
  for (const char* exponent : {"2.0", "3.0", "-1.0"}) {
    CHECK(CountArguments("R.power(x, " + Number(exponent) + ")", {}) == 1);
    CHECK(CountArguments("R.power(x, " + Number(exponent) + ")", {.strict_math = true}) == 2);
  }
  for (const std::string& value : {"R.power(x, " + Number("1.0") + ")", "R.power(x, " + Number("0.7") + ")",
                                   "R.power(" + Number("2.0") + ", x)", "R.add(x, " + Number("2.0") + ")"}) {
    CAPTURE(value);
    CHECK(CountArguments(value, {.strict_math = true}) == 1);
  }
}

TEST_CASE("permissions are checked by name, and the log tells what was applied") {
  PassContext context;
  context.options.rewrites = {.strict_math = true, .fast_math = {"all"}};
  CHECK(RunPasses(ir::IRModule(), {}, context).status().message() == "strict math and fast math exclude each other");
  CHECK(CheckPermissions({}).ok());
  CHECK(CheckPermissions({.fast_math = {"all", "reassociate"}}).ok());
  CHECK(CheckPermissions({.fast_math = {"reasociate"}}).message() ==
        "there is no group of rewrites \"reasociate\"; did you mean \"reassociate\"? (groups: all, signed_zeros, "
        "reassociate, special_values, overflow, tf32)");
  CHECK(CheckPermissions({.strict_math = true, .fast_math = {"all"}}).message() ==
        "strict math and fast math exclude each other");
  RewriteLog log;
  log.Count(RewriteId::kAddZero);
  const RewriteLog before = log;
  CHECK(before.LoosestSince({}) == Exactness::kBitwise);
  log.Count(RewriteId::kWinograd);
  log.Count(RewriteId::kWinograd);
  CHECK(log.LoosestSince(before) == Exactness::kBounded);
  RewriteLog of_kernels;
  of_kernels.Count(RewriteId::kFusedMultiplyAdd);
  CHECK(of_kernels.LoosestSince({}) == Exactness::kBitwise);
  CHECK(log.ToString() ==
        "add_zero                 bitwise            1  x + 0 = x\n"
        "winograd                 bounded            2  3 x 3 convolutions by Winograd's algorithm F(4 x 4, 3 x 3)\n");
}

}  // namespace
}  // namespace ingot::transform
