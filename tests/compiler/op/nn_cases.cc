// Cases of neural-network operators: activations, normalisations, convolutions, pools.
#include <string>
#include <string_view>

#include "compiler/op/reference.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

using ir::Attrs;
using ir::AttrValue;

AttrValue Ints(const IntList& values) { return AttrValue::Ints(values); }

void ActivationCases(CaseBuilder& b) {
  for (const char* op :
       {"nn.celu", "nn.elu", "nn.hard_sigmoid", "nn.selu", "nn.shrink", "nn.softplus", "nn.thresholded_relu"}) {
    UnaryCases(b, *FindOp(op));
  }
  const auto other = [&](const char* op, Attrs attrs) { b.Add(op, "attributes", {Data(kF32, {7})}, std::move(attrs)); };
  other("nn.celu", {{"alpha", 0.5}});
  other("nn.elu", {{"alpha", 2.0}});
  other("nn.hard_sigmoid", {{"alpha", 0.5}, {"beta", 0.25}});
  other("nn.selu", {{"alpha", 1.5}, {"scale", 2.0}});
  other("nn.shrink", {{"lambd", 1.5}, {"bias", 1.25}});
  other("nn.softplus", {{"beta", 2.0}, {"threshold", 3.0}});
  other("nn.thresholded_relu", {{"alpha", 2.5}});
  for (const char* op : {"nn.celu", "nn.elu", "nn.selu"}) {  // where exp(x) - 1 cancels
    OpCase& c = b.Add(op, "near_zero", {Of(kF32, {4}, {-1e-3, -1e-5, -1e-7, -1e-30})});
    c.atol = 0;
  }
  for (DataType dtype : FindOp("nn.prelu")->cases.dtypes) {
    b.Add("nn.prelu", dtype.ToString(), {Data(dtype, {2, 3, 4}), Data(dtype, {3}, 2)});
  }
  b.Add("nn.prelu", "last_axis", {Data(kF32, {2, 3}), Data(kF32, {3}, 2)}, {{"axis", -1}});
  b.Add("nn.prelu", "empty", {Data(kF32, {2, 0}), Data(kF32, {0}, 2)});
  b.Add("nn.prelu", "specials", {Specials(), Data(kF32, {8}, 2)}, {{"axis", 0}});
}

void NormalizationCases(CaseBuilder& b) {
  const ReferenceTensor specials = Of(kF32, {4, 2}, {kInf, 1, -kInf, 2, kNan, 3, 4, 5});
  const Attrs last = {{"axes", Ints({-1})}};
  for (DataType dtype : FindOp("nn.layer_norm")->cases.dtypes) {
    b.Add("nn.layer_norm", dtype.ToString(), {Data(dtype, {3, 8}), Data(dtype, {8}, 2), Data(dtype, {8}, 3)}, last);
  }
  const auto layer = [&](const char* label, IntList data, IntList params, Attrs attrs) {
    b.Add("nn.layer_norm", label, {Data(kF32, std::move(data)), Data(kF32, params, 2), Data(kF32, params, 3)},
          std::move(attrs));
  };
  layer("two_axes", {2, 3, 4}, {3, 4}, {{"axes", Ints({1, 2})}, {"epsilon", 0.5}});
  layer("first_axis", {4, 3}, {4}, {{"axes", Ints({0})}});
  layer("all_axes", {2, 3}, {2, 3}, {{"axes", Ints({0, 1})}});
  layer("square", {5, 5}, {5}, last);
  layer("no_center", {3, 4}, {4}, {{"axes", Ints({-1})}, {"center", false}});
  layer("plain", {3, 4}, {4}, {{"axes", Ints({-1})}, {"center", false}, {"scale", false}});
  layer("empty", {0, 4}, {4}, last);
  b.Add("nn.layer_norm", "no_beta", {Data(kF32, {3, 4}), Data(kF32, {4}, 2)}, last);
  b.Add("nn.layer_norm", "specials", {specials, Data(kF32, {2}, 2), Data(kF32, {2}, 3)}, last);

  for (DataType dtype : FindOp("nn.rms_norm")->cases.dtypes) {
    b.Add("nn.rms_norm", dtype.ToString(), {Data(dtype, {3, 8}), Data(dtype, {8}, 2)}, last);
  }
  b.Add("nn.rms_norm", "two_axes", {Data(kF32, {2, 3, 4}), Data(kF32, {3, 4}, 2)},
        {{"axes", Ints({-2, -1})}, {"epsilon", 0.5}});
  b.Add("nn.rms_norm", "empty", {Data(kF32, {0, 4}), Data(kF32, {4}, 2)}, last);
  b.Add("nn.rms_norm", "specials", {specials, Data(kF32, {2}, 2)}, last);

  const ReferenceTensor image = Of(kF32, {1, 2, 2}, {kInf, 1, 2, 3});
  const auto channels = [&](const char* op, const char* label, DataType dtype, IntList data, int64_t count,
                            Attrs attrs) {
    b.Add(op, label, {Data(dtype, std::move(data)), Data(dtype, {count}, 2), Data(dtype, {count}, 3)},
          std::move(attrs));
  };
  const Attrs spatial = {{"axes", Ints({2, 3})}};
  for (const char* op : {"nn.group_norm", "nn.instance_norm"}) {
    const auto with = [&](const Attrs& attrs, int64_t groups) {
      return op == std::string_view("nn.group_norm") ? attrs.With("num_groups", groups) : attrs;
    };
    for (DataType dtype : FindOp(op)->cases.dtypes) {
      channels(op, dtype.ToString().c_str(), dtype, {2, 6, 3, 4}, 6, with(spatial, 3));
    }
    channels(op, "one_axis", kF32, {3, 4, 5}, 4, with({{"axes", Ints({2})}, {"epsilon", 0.5}}, 4));
    channels(op, "channels_last", kF32, {2, 3, 3, 4}, 4,
             with({{"axes", Ints({1, 2})}, {"channel_axis", -1}, {"center", false}}, 2));
    channels(op, "plain", kF32, {2, 4, 3}, 4, with({{"axes", Ints({2})}, {"center", false}, {"scale", false}}, 1));
    channels(op, "empty", kF32, {0, 4, 3}, 4, with({{"axes", Ints({2})}}, 2));
    b.Add(op, "specials", {image, Data(kF32, {2}, 2), Data(kF32, {2}, 3)}, with({{"axes", Ints({2})}}, 2));
  }

  MoveCases(b, "nn.lrn", {{"size", 3}, {"alpha", 0.5}}, {2, 5, 2});
  b.Add("nn.lrn", "even_size", {Data(kF32, {1, 6, 2, 2})}, {{"size", 4}, {"beta", 0.5}, {"bias", 2.0}});
  b.Add("nn.lrn", "wide", {Data(kF32, {2, 3})}, {{"size", 9}, {"axis", -1}});
  b.Add("nn.lrn", "empty", {Data(kF32, {0, 4})}, {{"size", 3}});
  b.Add("nn.lrn", "specials", {specials}, {{"size", 1}});

  MoveCases(b, "nn.hardmax", {}, {3, 5});
  b.Add("nn.hardmax", "first_axis", {Data(kF32, {4, 3, 2})}, {{"axis", 0}});
  b.Add("nn.hardmax", "ties", {Of(kF32, {2, 3}, {1, 3, 3, 2, 2, 2})});
  b.Add("nn.hardmax", "empty", {Data(kF32, {0, 3})});
  b.Add("nn.hardmax", "specials", {Of(kF32, {4, 2}, {kInf, 1, -kInf, 2, kNan, 3, -kInf, -kInf})});
}

void BatchNormCases(CaseBuilder& b) {
  const auto add = [&](const std::string& label, ReferenceTensor data, int64_t count, const Attrs& attrs) {
    const DataType dtype = data.dtype;
    ReferenceTensor variance = Data(dtype, {count}, 5);
    for (double& value : variance.floats) value = value * value + 0.5;
    variance = UnpackReference(dtype, variance.dims, PackReference(variance));  // exact in the dtype
    b.Add("nn.batch_norm", label,
          {std::move(data), Data(dtype, {count}, 2), Data(dtype, {count}, 3), Data(dtype, {count}, 4), variance},
          attrs);
  };
  const Attrs given = {{"axis", 1}, {"training", false}};
  const Attrs training = {{"axis", 1}, {"momentum", 0.75}};
  for (DataType dtype : FindOp("nn.batch_norm")->cases.dtypes) {
    add(dtype.ToString(), Data(dtype, {2, 3, 4}), 3, given);
    add("training_" + dtype.ToString(), Data(dtype, {2, 3, 4}), 3, training);
  }
  add("matrix", Data(kF32, {4, 3}), 3, given);
  add("channels_last", Data(kF32, {2, 3, 3, 4}), 4, given.With("axis", -1).With("epsilon", 0.5));
  add("training_last", Data(kF32, {2, 3, 3, 4}), 4, training.With("axis", 3));
  add("plain", Data(kF32, {2, 3, 4}), 3, given.With("center", false).With("scale", false));
  add("empty", Data(kF32, {0, 3, 4}), 3, given);
  add("specials", Of(kF32, {4, 2}, {kInf, 1, -kInf, 2, kNan, 3, 4, 5}), 2, given);
}

// Cases of an operator that takes data and a weight.
void ConvCase(CaseBuilder& b, const char* op, const std::string& label, IntList data, IntList weight, Attrs attrs,
              DataType dtype = kF32) {
  b.Add(op, label, {Data(dtype, std::move(data)), Data(dtype, std::move(weight), 2)}, std::move(attrs));
}

// An image with an infinity and a NaN.
ReferenceTensor BrokenImage(IntList dims) {
  ReferenceTensor image = Data(kF32, std::move(dims));
  image.floats[1] = kInf;
  image.floats.back() = kNan;
  return image;
}

void ConvolutionCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("nn.conv2d")->cases.dtypes) {
    ConvCase(b, "nn.conv2d", dtype.ToString(), {1, 3, 6, 5}, {4, 3, 3, 3}, {}, dtype);
    ConvCase(b, "nn.conv1d", dtype.ToString(), {2, 3, 9}, {4, 3, 3}, {{"padding", Ints({1, 2})}}, dtype);
    ConvCase(b, "nn.conv3d", dtype.ToString(), {1, 2, 4, 5, 4}, {3, 2, 2, 3, 2}, {{"padding", 1}}, dtype);
  }
  ConvCase(b, "nn.conv2d", "same", {2, 1, 8, 8}, {4, 1, 3, 3}, {{"padding", Ints({1, 1})}});
  ConvCase(b, "nn.conv2d", "strided", {1, 2, 9, 8}, {3, 2, 3, 2},
           {{"strides", Ints({2, 3})}, {"padding", Ints({1, 0, 2, 1})}});
  ConvCase(b, "nn.conv2d", "dilated", {1, 2, 9, 9}, {2, 2, 3, 3}, {{"dilation", Ints({2, 3})}, {"padding", 2}});
  ConvCase(b, "nn.conv2d", "groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {{"groups", 2}, {"padding", 1}});
  ConvCase(b, "nn.conv2d", "depthwise", {1, 4, 5, 5}, {4, 1, 3, 3}, {{"groups", 4}});
  ConvCase(b, "nn.conv2d", "pointwise", {1, 5, 4, 4}, {3, 5, 1, 1}, {});
  ConvCase(b, "nn.conv2d", "empty", {0, 2, 4, 4}, {3, 2, 3, 3}, {});
  ConvCase(b, "nn.conv2d", "integers", {1, 2, 4, 4}, {3, 2, 3, 3}, {}, kI32);
  b.Add("nn.conv2d", "specials", {BrokenImage({1, 1, 4, 4}), Data(kF32, {2, 1, 2, 2}, 2)});
  ConvCase(b, "nn.conv1d", "strided_dilated_groups", {2, 4, 12}, {6, 2, 3},
           {{"strides", 2}, {"dilation", 2}, {"groups", 2}, {"padding", 3}});
  ConvCase(b, "nn.conv1d", "empty", {0, 2, 4}, {3, 2, 3}, {});
  b.Add("nn.conv1d", "specials", {BrokenImage({1, 1, 6}), Data(kF32, {2, 1, 2}, 2)});
  ConvCase(b, "nn.conv3d", "strided_dilated_groups", {1, 4, 5, 6, 5}, {4, 2, 2, 2, 2},
           {{"strides", Ints({1, 2, 1})},
            {"dilation", Ints({2, 1, 2})},
            {"groups", 2},
            {"padding", Ints({0, 1, 0, 1, 0, 1})}});
  ConvCase(b, "nn.conv3d", "empty", {0, 2, 3, 3, 3}, {3, 2, 2, 2, 2}, {});
  b.Add("nn.conv3d", "specials", {BrokenImage({1, 1, 3, 3, 3}), Data(kF32, {1, 1, 2, 2, 2}, 2)});
}

void ConvTransposeCases(CaseBuilder& b) {
  for (DataType dtype : FindOp("nn.conv2d_transpose")->cases.dtypes) {
    ConvCase(b, "nn.conv1d_transpose", dtype.ToString(), {2, 3, 5}, {3, 2, 3}, {{"strides", 2}}, dtype);
    ConvCase(b, "nn.conv2d_transpose", dtype.ToString(), {1, 3, 4, 3}, {3, 2, 3, 3}, {}, dtype);
    ConvCase(b, "nn.conv3d_transpose", dtype.ToString(), {1, 2, 3, 2, 3}, {2, 3, 2, 3, 2}, {{"strides", 2}}, dtype);
  }
  ConvCase(b, "nn.conv2d_transpose", "strided", {1, 2, 4, 3}, {2, 3, 3, 2},
           {{"strides", Ints({2, 3})}, {"padding", Ints({1, 0, 2, 1})}, {"output_padding", Ints({1, 2})}});
  ConvCase(b, "nn.conv2d_transpose", "dilated", {1, 2, 4, 4}, {2, 1, 3, 2}, {{"dilation", Ints({2, 3})}});
  ConvCase(b, "nn.conv2d_transpose", "groups", {2, 4, 3, 3}, {4, 3, 3, 3},
           {{"groups", 2}, {"strides", 2}, {"padding", 1}, {"output_padding", 1}});
  ConvCase(b, "nn.conv2d_transpose", "cropped", {1, 2, 4, 4}, {2, 2, 2, 2}, {{"strides", 2}, {"padding", 3}});
  ConvCase(b, "nn.conv2d_transpose", "empty", {0, 2, 3, 3}, {2, 1, 2, 2}, {});
  ConvCase(b, "nn.conv1d_transpose", "groups", {2, 4, 5}, {4, 2, 4}, {{"groups", 2}, {"strides", 3}, {"padding", 1}});
  ConvCase(b, "nn.conv1d_transpose", "empty", {0, 2, 3}, {2, 1, 2}, {});
  ConvCase(b, "nn.conv3d_transpose", "padded", {1, 2, 3, 3, 3}, {2, 1, 3, 3, 3},
           {{"padding", 1}, {"dilation", Ints({1, 2, 1})}});
  ConvCase(b, "nn.conv3d_transpose", "empty", {0, 2, 2, 2, 2}, {2, 1, 2, 2, 2}, {});
  b.Add("nn.conv1d_transpose", "specials", {BrokenImage({1, 1, 6}), Data(kF32, {1, 1, 1}, 2)});
  b.Add("nn.conv2d_transpose", "specials", {BrokenImage({1, 1, 3, 3}), Data(kF32, {1, 1, 1, 1}, 2)});
  b.Add("nn.conv3d_transpose", "specials", {BrokenImage({1, 1, 2, 2, 2}), Data(kF32, {1, 1, 1, 1, 1}, 2)});
}

void FoldCases(CaseBuilder& b) {
  const auto fold = [&](const std::string& label, IntList dims, IntList size, Attrs attrs, DataType dtype = kF32) {
    b.Add("nn.fold", label, {Data(dtype, std::move(dims))}, std::move(attrs), Then({ShapeOf(size)}));
  };
  for (DataType dtype : FindOp("nn.fold")->cases.dtypes) {
    fold(dtype.ToString(), {2, 18, 20}, {6, 7}, {{"block", Ints({3, 3})}}, dtype);
  }
  fold("strided", {1, 12, 12}, {7, 9}, {{"block", Ints({2, 3})}, {"strides", Ints({2, 2})}});
  fold("padded", {1, 9, 35}, {5, 7}, {{"block", Ints({3, 3})}, {"padding", Ints({1, 1, 1, 1})}});
  fold("uneven", {1, 8, 12}, {9, 7},
       {{"block", Ints({2, 2})}, {"strides", Ints({3, 2})}, {"padding", Ints({1, 0, 0, 1})}});
  fold("dilated", {1, 4, 12}, {5, 6}, {{"block", Ints({2, 2})}, {"dilation", Ints({2, 2})}});
  fold("dilated_and_strided", {1, 4, 6}, {7, 8},
       {{"block", Ints({2, 2})}, {"dilation", Ints({2, 3})}, {"strides", Ints({3, 2})}});
  fold("row", {2, 6, 8}, {10}, {{"block", Ints({3})}});
  fold("volume", {1, 16, 12}, {3, 4, 3}, {{"block", Ints({2, 2, 2})}});
  fold("four_axes", {1, 16, 2}, {2, 2, 3, 2}, {{"block", Ints({2, 2, 2, 2})}});
  fold("apart", {1, 4, 4}, {4, 4}, {{"block", Ints({2, 2})}, {"strides", Ints({2, 2})}});
  fold("empty", {0, 4, 9}, {4, 4}, {{"block", Ints({2, 2})}});
  b.Add("nn.fold", "specials", {BrokenImage({1, 4, 4})}, {{"block", Ints({2, 2})}}, Then({ShapeOf({3, 3})}));
}

void PoolCases(CaseBuilder& b) {
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d", "nn.lp_pool2d"}) {
    MoveCases(b, op, {{"pool_size", 2}, {"strides", 2}}, {2, 3, 6, 6});
    b.Add(op, "padded", {Data(kF32, {1, 2, 7, 6})},
          {{"pool_size", 3}, {"strides", Ints({2, 1})}, {"padding", Ints({1, 1, 0, 1})}});
    b.Add(op, "dilated", {Data(kF32, {1, 2, 7, 7})}, {{"pool_size", 2}, {"dilation", Ints({2, 3})}, {"padding", 1}});
    b.Add(op, "ceil", {Data(kF32, {1, 1, 6, 7})},
          {{"pool_size", 3}, {"strides", 2}, {"ceil_mode", true}, {"padding", Ints({1, 0})}});
    b.Add(op, "ceil_drops_a_window", {Data(kF32, {1, 1, 4, 4})},
          {{"pool_size", 2}, {"strides", 3}, {"ceil_mode", true}, {"padding", 1}});
    b.Add(op, "empty", {Data(kF32, {0, 3, 4, 4})}, {{"pool_size", 2}});
    b.Add(op, "specials", {BrokenImage({1, 1, 4, 4})}, {{"pool_size", 2}, {"padding", Ints({1, 0})}});
  }
  const auto bytes = [&](const char* label, IntList data, IntList weight, Attrs attrs, int64_t edge) {
    ReferenceTensor image = Data(kI32, std::move(data), 4), words = Data(kI32, std::move(weight), 5);
    ReferenceTensor x = NewReference(DataType::UInt(8), image.dims), around = NewReference(DataType::UInt(8), {});
    for (size_t i = 0; i < x.ints.size(); ++i) {  // both ends of the range among others
      x.ints[i] = i % 5 == 0 ? 255 : i % 7 == 0 ? 0 : (image.ints[i] * 37 + static_cast<int64_t>(i)) & 255;
    }
    for (size_t i = 0; i < words.ints.size(); ++i) {
      uint32_t word = 0;
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t byte = (i + k) % 3 == 0 ? 128 : (i + k) % 5 == 0 ? 127 : (i * 29 + k * 71) & 255;
        word |= static_cast<uint32_t>(byte) << (8 * k);
      }
      words.ints[i] = static_cast<int32_t>(word);
    }
    around.ints[0] = edge;
    b.Add("nn.conv2d_bytes", label, {std::move(x), std::move(words), std::move(around)}, std::move(attrs));
  };
  bytes("uint8", {1, 2, 3, 13, 16}, {1, 2, 3, 3, 4, 16}, {{"padding", Ints({1, 1, 1, 1})}}, 255);
  bytes("strided", {2, 1, 5, 9, 16}, {3, 1, 2, 3, 4, 16}, {{"strides", Ints({2, 3})}, {"padding", Ints({1, 0, 2, 1})}},
        7);
  bytes("dilated", {1, 1, 7, 7, 16}, {2, 1, 3, 3, 4, 16}, {{"dilation", Ints({2, 1})}, {"padding", Ints({2, 2, 2, 2})}},
        128);
  bytes("groups", {1, 2, 2, 4, 16}, {2, 1, 1, 3, 4, 16}, {{"groups", 2}}, 1);
  bytes("pointwise", {1, 2, 1, 49, 16}, {3, 2, 1, 1, 4, 16}, {}, 0);
  bytes("point", {3, 2, 1, 1, 16}, {5, 2, 1, 1, 4, 16}, {}, 0);
  bytes("few", {1, 1, 5, 9, 4}, {2, 1, 3, 3, 1, 16}, {{"strides", Ints({2, 1})}, {"padding", Ints({1, 1, 1, 1})}}, 130);
  bytes("eight", {1, 2, 4, 5, 8}, {1, 2, 2, 2, 2, 16}, {}, 9);
  bytes("far_apart", {1, 1, 6, 9, 16}, {1, 1, 3, 3, 4, 16},
        {{"dilation", Ints({5, 6})}, {"padding", Ints({5, 6, 5, 6})}}, 77);
  bytes("empty", {0, 1, 3, 3, 16}, {1, 1, 1, 1, 4, 16}, {}, 3);
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    b.Add(op, "infinite_window", {Of(kF32, {1, 1, 2, 2}, {-kInf, -kInf, -kInf, -kInf})}, {{"pool_size", 2}});
    b.Add(op, "count_padding", {Data(kF32, {1, 1, 5, 5})},
          {{"pool_size", 3}, {"strides", 2}, {"padding", 1}, {"count_include_pad", true}, {"ceil_mode", true}});
  }
  for (int64_t p : {1, 3}) {
    b.Add("nn.lp_pool2d", "p" + std::to_string(p), {Data(kF32, {1, 2, 5, 5})}, {{"pool_size", 3}, {"p", p}});
  }
  for (const char* op : {"nn.max_pool1d", "nn.avg_pool1d", "nn.lp_pool1d"}) {
    MoveCases(b, op, {{"pool_size", 3}, {"strides", 2}, {"padding", Ints({1, 0})}, {"ceil_mode", true}}, {2, 3, 8});
    b.Add(op, "empty", {Data(kF32, {0, 3, 4})}, {{"pool_size", 2}});
    b.Add(op, "specials", {BrokenImage({1, 1, 6})}, {{"pool_size", 2}});
  }
  for (const char* op : {"nn.max_pool3d", "nn.avg_pool3d", "nn.lp_pool3d"}) {
    MoveCases(b, op, {{"pool_size", 2}, {"strides", Ints({2, 1, 2})}, {"padding", 1}}, {1, 2, 4, 3, 5});
    b.Add(op, "empty", {Data(kF32, {0, 3, 2, 2, 2})}, {{"pool_size", 2}});
    b.Add(op, "specials", {BrokenImage({1, 1, 3, 3, 3})}, {{"pool_size", 2}});
  }
}

// The same over volumes: planes that see padding alone, are strided or lie far apart, short rows that make one tile with
// others, and weights that several planes share.
void BlockedVolumeCases(CaseBuilder& b) {
  const auto conv = [&](const char* label, IntList data, IntList weight, Attrs attrs, DataType dtype = kF32) {
    attrs = attrs.With("data_layout", data.size() == 5 ? "NCDHW" : "NDCHW16c").With("out_layout", "NDCHW16c");
    attrs = attrs.With("kernel_layout", weight.size() == 7 ? "OIDHW16i16o" : "OIDHW16o");
    ConvCase(b, "nn.conv3d", label, std::move(data), std::move(weight), std::move(attrs), dtype);
  };
  conv("blocked", {1, 3, 2, 3, 13, 16}, {1, 2, 3, 3, 3, 16, 16}, {{"padding", 1}});
  conv("blocked_plane", {2, 1, 1, 4, 4, 16}, {2, 1, 3, 3, 3, 16, 16}, {{"padding", 1}});
  conv("blocked_strided", {2, 4, 1, 5, 9, 16}, {3, 1, 3, 2, 3, 16, 16},
       {{"strides", Ints({2, 1, 3})}, {"padding", Ints({1, 0, 1, 1, 1, 0})}});
  conv("blocked_depth", {1, 5, 2, 1, 20, 16}, {3, 2, 3, 1, 1, 16, 16}, {{"padding", Ints({1, 0, 0, 1, 0, 0})}});
  conv("blocked_planes", {1, 3, 1, 5, 7, 16}, {2, 1, 1, 3, 3, 16, 16}, {{"padding", Ints({0, 1, 1, 0, 1, 1})}});
  conv("blocked_dilated", {1, 6, 1, 7, 7, 16}, {1, 1, 2, 3, 3, 16, 16},
       {{"dilation", Ints({3, 2, 1})}, {"padding", 2}});
  conv("blocked_far_apart", {1, 5, 1, 6, 9, 16}, {1, 1, 3, 3, 3, 16, 16},
       {{"dilation", Ints({4, 1, 5})}, {"padding", Ints({4, 1, 5, 4, 1, 5})}});
  conv("blocked_groups", {1, 2, 4, 3, 9, 16}, {2, 2, 2, 3, 3, 16, 16}, {{"groups", 2}, {"padding", 1}});
  conv("blocked_pointwise", {2, 2, 2, 1, 21, 16}, {3, 2, 1, 1, 1, 16, 16}, {});
  conv("blocked_point", {3, 1, 2, 1, 1, 16}, {5, 2, 1, 1, 1, 16, 16}, {});
  conv("blocked_first", {1, 3, 4, 5, 17}, {2, 3, 3, 3, 3, 16}, {{"strides", Ints({1, 2, 2})}, {"padding", 1}});
  conv("blocked_depthwise", {1, 3, 2, 5, 13, 16}, {2, 1, 3, 3, 3, 16}, {{"groups", 32}, {"padding", 1}});
  conv("blocked_empty", {0, 2, 1, 3, 3, 16}, {1, 1, 3, 3, 3, 16, 16}, {{"padding", 1}});
  for (const DataType narrow : {DataType::Float(16), DataType::Bfloat16()}) {
    const std::string label = "blocked_" + narrow.ToString();
    conv(label.c_str(), {1, 2, 1, 3, 5, 16}, {1, 1, 3, 3, 3, 16, 16}, {{"padding", 1}}, narrow);
  }
  for (const char* op : {"nn.max_pool3d", "nn.avg_pool3d"}) {
    for (const bool ceil : {false, true}) {
      b.Add(op, ceil ? "blocked_ceil" : "blocked", {Data(kF32, {2, 4, 1, 7, 9, 16})},
            {{"pool_size", 3},
             {"strides", 2},
             {"padding", Ints({1, 1, 0, 1, 0, 1})},
             {"ceil_mode", ceil},
             {"count_include_pad", ceil},
             {"layout", "NDCHW16c"}});
    }
  }
}

// Convolutions over channels in blocks. The extents give tiles of several widths, tails, strips, and several blocks of
// output channels.
void BlockedCases(CaseBuilder& b) {
  const auto conv = [&](const char* label, IntList data, IntList weight, Attrs attrs) {
    attrs = attrs.With("data_layout", data.size() == 4 ? "NCHW" : "NCHW16c").With("out_layout", "NCHW16c");
    attrs = attrs.With("kernel_layout", weight.size() == 6 ? "OIHW16i16o" : "OIHW16o");
    ConvCase(b, "nn.conv2d", label, std::move(data), std::move(weight), std::move(attrs));
  };
  conv("blocked", {1, 2, 3, 13, 16}, {1, 2, 3, 3, 16, 16}, {{"padding", 1}});
  conv("blocked_strided", {2, 1, 5, 9, 16}, {3, 1, 2, 3, 16, 16},
       {{"strides", Ints({2, 3})}, {"padding", Ints({1, 0, 2, 1})}});
  conv("blocked_dilated", {1, 1, 7, 7, 16}, {1, 1, 3, 3, 16, 16}, {{"dilation", Ints({2, 1})}, {"padding", 2}});
  // Rows of windows that lie far apart, some of them in the padding for all places of a row.
  const Attrs far = {{"dilation", Ints({5, 6})}, {"padding", Ints({5, 6, 6, 7})}};
  conv("blocked_far_apart", {1, 2, 6, 29, 16}, {1, 2, 3, 3, 16, 16}, far);
  conv("blocked_far_strided", {2, 1, 9, 9, 16}, {3, 1, 3, 2, 16, 16}, far.With("strides", Ints({2, 1})));
  conv("blocked_far_depthwise", {1, 2, 4, 13, 16}, {2, 1, 3, 3, 16}, far.With("groups", 32));
  conv("blocked_far_first", {1, 3, 5, 17}, {2, 3, 3, 3, 16}, far);
  conv("blocked_groups", {1, 2, 2, 4, 16}, {2, 1, 1, 3, 16, 16}, {{"groups", 2}});
  conv("blocked_pointwise", {1, 2, 1, 49, 16}, {3, 2, 1, 1, 16, 16}, {});
  conv("blocked_wide", {2, 1, 1, 56, 16}, {2, 1, 1, 1, 16, 16}, {});
  conv("blocked_point", {3, 2, 1, 1, 16}, {5, 2, 1, 1, 16, 16}, {});
  conv("blocked_first", {1, 3, 5, 17}, {2, 3, 3, 3, 16}, {{"strides", 2}, {"padding", 1}});
  conv("blocked_depthwise", {1, 2, 5, 13, 16}, {2, 1, 3, 3, 16}, {{"groups", 32}, {"padding", 1}});
  conv("blocked_depthwise_strided", {2, 1, 7, 7, 16}, {1, 1, 5, 5, 16},
       {{"groups", 16}, {"padding", Ints({2, 1, 2, 2})}, {"strides", 2}});
  BlockedVolumeCases(b);
  // Floats of 16 bits are widened with the padding, or before it.
  for (const DataType narrow : {DataType::Float(16), DataType::Bfloat16()}) {
    const auto of_16_bits = [&](const std::string& label, IntList data, IntList weight, Attrs attrs) {
      attrs = attrs.With("data_layout", "NCHW16c").With("out_layout", "NCHW16c");
      attrs = attrs.With("kernel_layout", weight.size() == 6 ? "OIHW16i16o" : "OIHW16o");
      b.Add("nn.conv2d", label + "_" + narrow.ToString(),
            {Data(narrow, std::move(data)), Data(narrow, std::move(weight), 1)}, std::move(attrs));
    };
    of_16_bits("blocked", {1, 1, 3, 13, 16}, {1, 1, 3, 3, 16, 16}, {{"padding", 1}});
    of_16_bits("blocked_pointwise", {1, 2, 1, 9, 16}, {3, 2, 1, 1, 16, 16}, {});
    of_16_bits("blocked_far_apart", {1, 1, 6, 9, 16}, {1, 1, 3, 3, 16, 16}, far);
    of_16_bits("blocked_depthwise", {1, 1, 5, 7, 16}, {1, 1, 3, 3, 16}, {{"groups", 16}, {"padding", 1}});
  }
  const DataType int16 = DataType::Int(16);
  ConvCase(b, "nn.conv2d", "blocked_int16", {1, 2, 3, 7, 16}, {1, 2, 3, 3, 16, 16},
           {{"padding", 1},
            {"data_layout", "NCHW16c"},
            {"kernel_layout", "OIHW16i16o"},
            {"out_layout", "NCHW16c"},
            {"out_dtype", kI32}},
           int16);
  const auto pairs = [&](const char* label, IntList data, IntList weight, Attrs attrs) {
    ReferenceTensor words = Data(kI32, std::move(weight), 2), low = Data(int16, words.dims, 3);
    for (size_t i = 0; i < words.ints.size(); ++i) {  // both halves of a word have a sign of their own
      words.ints[i] = static_cast<int32_t>(words.ints[i] * 65536 + (low.ints[i] & 0xFFFF));
    }
    b.Add("nn.conv2d_pairs", label, {Data(int16, std::move(data)), std::move(words)}, std::move(attrs));
  };
  pairs("int16", {1, 2, 3, 13, 16}, {1, 2, 3, 3, 8, 16}, {{"padding", Ints({1, 1, 1, 1})}});
  pairs("strided", {2, 1, 5, 9, 16}, {3, 1, 2, 3, 8, 16}, {{"strides", Ints({2, 3})}, {"padding", Ints({1, 0, 2, 1})}});
  pairs("dilated", {1, 1, 7, 7, 16}, {2, 1, 3, 3, 8, 16},
        {{"dilation", Ints({2, 1})}, {"padding", Ints({2, 2, 2, 2})}});
  pairs("groups", {1, 2, 2, 4, 16}, {2, 1, 1, 3, 8, 16}, {{"groups", 2}});
  pairs("pointwise", {1, 2, 1, 49, 16}, {3, 2, 1, 1, 8, 16}, {});
  pairs("point", {3, 2, 1, 1, 16}, {5, 2, 1, 1, 8, 16}, {});
  pairs("empty", {0, 1, 3, 3, 16}, {1, 1, 1, 1, 8, 16}, {});
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const bool ceil : {false, true}) {
      b.Add(op, ceil ? "blocked_ceil" : "blocked", {Data(kF32, {2, 1, 7, 9, 16})},
            {{"pool_size", 3},
             {"strides", 2},
             {"padding", Ints({1, 0, 0, 1})},
             {"ceil_mode", ceil},
             {"count_include_pad", ceil},
             {"layout", "NCHW16c"}});
    }
    for (const DataType narrow : {DataType::Float(16), DataType::Bfloat16()}) {
      b.Add(op, "blocked_" + narrow.ToString(), {Data(narrow, {1, 2, 7, 9, 16})},
            {{"pool_size", 3}, {"strides", 2}, {"padding", 1}, {"layout", "NCHW16c"}});
      b.Add(op, "blocked_rows_" + narrow.ToString(), {Data(narrow, {2, 1, 5, 17, 16})},
            {{"pool_size", Ints({2, 3})}, {"strides", Ints({2, 1})}, {"layout", "NCHW16c"}});
    }
  }
}

void WinogradCases(CaseBuilder& b) {
  b.Add("nn.winograd_input", "whole_tiles", {Data(kF32, {1, 2, 8, 12, 16})}, {{"padding", Ints({1, 1, 1, 1})}});
  b.Add("nn.winograd_input", "rest", {Data(kF32, {2, 1, 7, 9, 16})}, {{"padding", Ints({0, 2, 1, 0})}});
  b.Add("nn.winograd_input", "wide_rows", {Data(kF32, {1, 1, 10, 109, 16})}, {{"padding", Ints({1, 1, 1, 1})}});
  b.Add("nn.winograd_input", "empty", {Data(kF32, {0, 1, 8, 8, 16})}, {});
  b.Add("nn.winograd_output", "whole_tiles", {Data(kF32, {1, 6, 6, 2, 2, 3, 16})}, {}, Then({ShapeOf({8, 12})}));
  b.Add("nn.winograd_output", "rest", {Data(kF32, {4, 6, 6, 1, 2, 3, 16})}, {}, Then({ShapeOf({6, 11})}));
  for (const DataType dtype : {DataType::Float(16), DataType::Bfloat16()}) {
    const std::string name = dtype.ToString();
    b.Add("nn.winograd_input", name, {Data(dtype, {1, 1, 7, 9, 16})}, {{"padding", Ints({0, 2, 1, 0})}});
    b.Add("nn.winograd_input", name + "_to_float32", {Data(dtype, {1, 2, 6, 9, 16})},
          {{"padding", Ints({1, 1, 1, 1})}, {"out_dtype", kF32}});
    b.Add("nn.winograd_output", name, {Data(dtype, {1, 6, 6, 1, 2, 3, 16})}, {}, Then({ShapeOf({6, 11})}));
    b.Add("nn.winograd_output", name + "_of_float32", {Data(kF32, {1, 6, 6, 2, 2, 3, 16})}, {{"out_dtype", dtype}},
          Then({ShapeOf({7, 12})}));
  }
  b.Add("nn.winograd_output", "empty", {Data(kF32, {0, 6, 6, 1, 1, 1, 16})}, {}, Then({ShapeOf({4, 4})}));
}

AttrValue Floats(const std::vector<double>& values) {
  ir::AttrList list;
  for (double value : values) list.emplace_back(value);
  return AttrValue(list);
}

void ResizeWeightsCases(CaseBuilder& b) {
  // lengths: of the data, of the result, of the longest window
  const auto weights = [&](const std::string& label, IntList lengths, IntList ratios, Attrs attrs) {
    b.Add("image.resize_weights", label, {}, std::move(attrs), Then({ShapeOf(lengths), ShapeOf(ratios)}));
  };
  for (const char* method : {"linear", "cubic"}) {
    for (const char* places :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
      const Attrs attrs = {{"method", method}, {"coordinate_transformation_mode", places}};
      weights(std::string(method) + "_" + places, {9, 4, 9}, {4, 9}, attrs);
      weights(std::string(method) + "_" + places + "_scale", {9, 5, 8}, {}, attrs.With("scale", 0.6));
    }
    weights(std::string(method) + "_exclude", {7, 3, 7}, {3, 7}, {{"method", method}, {"cubic_exclude", true}});
  }
  weights("float32", {4, 7, 4}, {7, 4}, {});
  weights("to_one", {5, 1, 5}, {1, 5}, {{"coordinate_transformation_mode", "pytorch_half_pixel"}});
  weights("not_larger", {8, 4, 6}, {4, 8, 7, 8}, {});
  weights("not_smaller", {8, 7, 4}, {4, 8, 7, 8}, {{"policy", "not_smaller"}});
  weights("wide", {1000, 3, 668}, {3, 1000}, {});
  weights("empty", {0, 3, 1}, {3, 2}, {});
  weights("no_taps", {3, 2, 0}, {2, 3}, {});
}

void WindowSumCases(CaseBuilder& b) {
  const auto sums = [&](const std::string& label, ReferenceTensor x, ReferenceTensor weights,
                        const std::vector<double>& begins, Attrs attrs) {
    const IntList windows = {weights.dims[0]};
    b.Add("window_sum", label, {std::move(x), std::move(weights), Of(kI64, windows, begins)}, std::move(attrs));
  };
  for (DataType dtype : FindOp("window_sum")->cases.dtypes) {
    sums(dtype.ToString(), Data(dtype, {2, 3, 7, 5}), Data(kF32, {4, 3}, 2), {0, 1, 2, 4}, {{"axis", 2}});
  }
  sums("last_axis", Data(kF32, {3, 9}), Data(kF32, {5, 2}, 2), {7, 0, 3, 3, 1}, {});
  sums("wide_weights", Data(kF64, {3, 9}), Data(kF64, {2, 4}, 2), {0, 5}, {});
  sums("first_axis", Data(kF32, {9, 37}), Data(kF32, {5, 2}, 2), {7, 0, 3, 3, 1}, {{"axis", 0}});
  sums("beyond_the_ends", Data(kF32, {4}), Data(kF32, {3, 3}, 2), {-2, 3, 1e9}, {});
  // Infinities and NaN that a window does not take, or takes times 0.
  sums("specials", Of(kF32, {2, 4}, {kInf, 1, 2, 3, 4, -kInf, kNan, 5}), Of(kF32, {4, 2}, {1, 0, 0, 2, 0.5, 0.5, 0, 0}),
       {0, 1, 2, 3}, {});
  sums("no_taps", Data(kF32, {2, 4}), Data(kF32, {3, 0}), {0, 1, 2}, {});
  sums("no_windows", Data(kF32, {2, 4}), Data(kF32, {0, 2}), {}, {});
  sums("no_elements", Data(kF32, {2, 0}), Data(kF32, {3, 2}), {0, 0, 0}, {});
  sums("empty", Data(kF32, {0, 4}), Data(kF32, {3, 2}), {0, 1, 2}, {});
}

void ResizeCases(CaseBuilder& b) {
  ResizeWeightsCases(b);
  WindowSumCases(b);
  const auto resize = [&](const std::string& label, IntList dims, IntList size, Attrs attrs, DataType dtype = kF32) {
    b.Add("image.resize", label, {Data(dtype, std::move(dims))}, std::move(attrs), Then({ShapeOf(size)}));
  };
  const Attrs spatial = {{"axes", Ints({2, 3})}};
  for (DataType dtype : FindOp("image.resize")->cases.dtypes) {
    resize(dtype.ToString(), {2, 3, 4, 5}, {2, 3, 8, 15}, spatial, dtype);
    resize(dtype.ToString() + "_linear", {1, 2, 4, 5}, {1, 2, 7, 3}, spatial.With("method", "linear"), dtype);
    if (!dtype.is_floating()) {
      resize(dtype.ToString() + "_cubic", {1, 2, 4, 5}, {1, 2, 8, 3}, spatial.With("method", "cubic"), dtype);
      resize(dtype.ToString() + "_by_scales", {1, 1, 9, 4}, {1, 1, 3, 8},
             spatial.With("method", "linear").With("scales", Floats({1.0F / 3, 2})), dtype);
    }
  }
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    resize("centred_" + std::string(rounding), {38, 33}, {25, 49},
           Attrs{{"scales", Floats({2.0F / 3, 1.5})},
                 {"coordinate_transformation_mode", "half_pixel_symmetric"},
                 {"rounding_method", rounding}});
    resize("beside_the_middle_" + std::string(rounding), {30}, {9},
           Attrs{{"scales", Floats({0.3F})}, {"rounding_method", rounding}});
  }
  for (const char* places : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                             "tf_half_pixel_for_nn", "tf_crop_and_resize"}) {
    Attrs attrs = spatial.With("coordinate_transformation_mode", places);
    if (std::string_view(places) == "tf_crop_and_resize") {
      attrs = attrs.With("roi", Floats({0.25, 0.5, 0.75, 1.25})).With("extrapolation_value", 9.0);
    }
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "by_scale"}) {
      const std::string label = std::string(places) + "_" + rounding;
      resize(label, {1, 1, 5, 4}, {1, 1, 8, 6}, attrs.With("rounding_method", rounding));
    }
    for (const char* method : {"linear", "cubic"}) {
      resize(std::string(places) + "_" + method, {1, 2, 5, 4}, {1, 2, 3, 9}, attrs.With("method", method));
    }
    resize(std::string(places) + "_to_one", {1, 1, 5, 4}, {1, 1, 1, 3}, attrs.With("method", "linear"));
  }
  resize("scales", {1, 1, 3, 5}, {1, 1, 4, 3},
         spatial.With("scales", Floats({1.5, 0.65})).With("method", "cubic").With("cubic_alpha", -0.5));
  resize("scales_symmetric", {1, 1, 3, 5}, {1, 1, 4, 3},
         spatial.With("scales", Floats({1.5, 0.65}))
             .With("method", "linear")
             .With("coordinate_transformation_mode", "half_pixel_symmetric"));
  resize("exclude_outside", {1, 1, 4, 3}, {1, 1, 6, 7}, spatial.With("method", "cubic").With("cubic_exclude", true));
  for (const char* policy : {"not_larger", "not_smaller"}) {  // a scale of 3/4, of 1
    const bool is_least = std::string_view(policy) == "not_larger";
    const IntList size = is_least ? IntList{1, 1, 3, 6} : IntList{1, 1, 4, 8};
    b.Add("image.resize", policy, {Data(kF32, {1, 1, 4, 8})}, spatial.With("method", "linear").With("policy", policy),
          Then({ShapeOf(size), ShapeOf({3, 4, 8, 8})}));
  }
  // Scales as a tensor; of 33/9 in float32 place 11 lies at 3.
  const auto by_scales = [](const IntList& size) -> Arguments {
    return [size](const std::vector<ir::Expr>& inputs) {
      return std::vector<ir::Expr>{inputs[0], ShapeOf(size), inputs[1]};
    };
  };
  b.Add("image.resize", "scale_tensor", {Data(kF32, {1, 2, 5, 4}), Of(kF32, {2}, {1.5, 0.6})},
        spatial.With("method", "cubic"), by_scales({1, 2, 7, 2}));
  const ReferenceTensor thirds = Of(kF32, {1}, {static_cast<double>(33.0F / 9.0F)});
  b.Add("image.resize", "scale_tensor_nearest", {Data(kF32, {2, 9}), thirds},
        {{"axes", Ints({1})}, {"coordinate_transformation_mode", "asymmetric"}, {"rounding_method", "floor"}},
        by_scales({2, 33}));
  // Up along an axis that gets shorter, down along the other.
  const Attrs old = spatial.With("coordinate_transformation_mode", "asymmetric").With("rounding_method", "by_scale");
  resize("scales_nearest", {1, 1, 7, 5}, {1, 1, 4, 13}, old.With("scales", Floats({0.6, 2.6})));
  b.Add("image.resize", "scale_tensor_by_scale", {Data(kF32, {1, 1, 7, 5}), Of(kF32, {2}, {0.6, 2.6})}, old,
        by_scales({1, 1, 4, 13}));
  resize("all_axes", {2, 3, 2}, {3, 2, 4}, {{"method", "linear"}});
  resize("unchanged", {2, 3}, {2, 3}, {{"method", "linear"}});
  resize("empty", {0, 2, 3}, {0, 2, 6}, {{"axes", Ints({2})}});
  b.Add("image.resize", "specials", {Specials()}, {}, Then({ShapeOf({16})}));
  // What an axis that is kept holds elsewhere has no part in a row, cropped or not.
  const ReferenceTensor rows = Of(kF32, {3, 3}, {1, 2, 3, kInf, kNan, -kInf, 4, 5, 6});
  const Attrs linear = {{"method", "linear"}};
  b.Add("image.resize", "kept_axes", {rows}, linear, Then({ShapeOf({3, 5})}));
  b.Add("image.resize", "kept_axes_cropped", {rows},
        linear.With("coordinate_transformation_mode", "tf_crop_and_resize").With("roi", Floats({0, 0.25, 1, 0.75})),
        Then({ShapeOf({3, 5})}));

  const auto grid = [](IntList dims) {  // somewhat beyond -1 .. 1
    ReferenceTensor places = Data(kF32, std::move(dims), 5);
    for (double& place : places.floats) place = place * 0.3 + 0.0625;
    return places;
  };
  for (DataType dtype : FindOp("image.grid_sample")->cases.dtypes) {
    b.Add("image.grid_sample", dtype.ToString(), {Data(dtype, {2, 3, 4, 5}), grid({2, 3, 2, 2})});
  }
  for (const char* method : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (bool align : {false, true}) {
        b.Add("image.grid_sample", std::string(method) + "_" + padding + (align ? "_corners" : ""),
              {Data(kF32, {1, 2, 4, 3}), grid({1, 3, 4, 2})},
              {{"method", method}, {"padding_mode", padding}, {"align_corners", align}});
      }
    }
  }
  b.Add("image.grid_sample", "volume", {Data(kF32, {1, 2, 3, 4, 2}), grid({1, 2, 2, 3, 3})});
  b.Add("image.grid_sample", "empty", {Data(kF32, {0, 2, 3, 3}), grid({0, 2, 2, 2})});
  b.Add("image.grid_sample", "specials", {BrokenImage({1, 1, 3, 3}), Of(kF32, {1, 1, 2, 2}, {0, 0, 0.5, 0.25})});
}

// The pooled values are made by the pool's own reference.
void PoolIndicesCases(CaseBuilder& b) {
  const auto add = [&](const std::string& label, ReferenceTensor data, const Attrs& attrs, bool column_major = false) {
    const OpCase pool{"nn.max_pool" + std::to_string(data.dims.size() - 2) + "d", label, {data}, attrs, nullptr};
    ReferenceTensor pooled = EvaluateReference(pool)->at(0);
    b.Add("nn.max_pool_indices", label, {std::move(data), std::move(pooled)}, attrs.With("column_major", column_major));
  };
  const Attrs plain = {{"pool_size", Ints({2, 2})},
                       {"strides", Ints({2, 1})},
                       {"dilation", Ints({1, 1})},
                       {"padding", Ints({0, 0, 0, 0})}};
  for (DataType dtype : FindOp("nn.max_pool_indices")->cases.dtypes) {
    if (dtype.is_floating()) add(dtype.ToString(), Data(dtype, {2, 2, 4, 5}), plain);
  }
  for (DataType dtype : {kI8, DataType::UInt(8)}) {
    b.Add("nn.max_pool_indices", dtype.ToString(),
          {Of(dtype, {1, 1, 2, 3}, {1, 5, 5, 2, 0, 3}), Of(dtype, {1, 1, 1, 2}, {5, 5})}, plain);
  }
  const Attrs padded = plain.With("pool_size", Ints({3, 3})).With("padding", Ints({1, 1, 1, 1}));
  add("padded", Data(kF32, {1, 2, 5, 4}), padded);
  add("dilated", Data(kF32, {1, 2, 6, 6}), padded.With("dilation", Ints({2, 1})));
  add("column_major", Data(kF32, {1, 2, 5, 4}), padded, true);
  add("line", Data(kF32, {2, 3, 7}),
      {{"pool_size", Ints({3})}, {"strides", Ints({2})}, {"dilation", Ints({1})}, {"padding", Ints({0, 0})}});
  add("empty", Data(kF32, {0, 2, 4, 5}), plain);
  add("specials", Of(kF32, {1, 1, 2, 4}, {kInf, 1, kNan, 3, -kInf, -kInf, -kInf, 4}), plain);
}

void VisionCases(CaseBuilder& b) {
  const Attrs bins = {{"pooled_size", Ints({3, 2})}, {"sample_ratio", 2}, {"spatial_scale", 0.5}};
  const auto align = [&](const std::string& label, const Attrs& attrs, DataType dtype = kF32) {
    b.Add("vision.roi_align", label,
          {Data(dtype, {2, 3, 5, 6}), Of(dtype, {3, 4}, {1, 2, 7.5, 8, -4, -3, 14, 12, 3, 3, 3.25, 3.5}),
           Of(kI64, {3}, {1, 0, 1})},
          attrs);
  };
  for (DataType dtype : FindOp("vision.roi_align")->cases.dtypes) align(dtype.ToString(), bins, dtype);
  align("aligned", bins.With("aligned", true));
  align("max", bins.With("mode", "max"));
  align("max_place", bins.With("mode", "max_place"));
  align("max_place_aligned", bins.With("mode", "max_place").With("aligned", true));
  align("one_sample", {{"pooled_size", Ints({1, 1})}, {"sample_ratio", 1}});
  const Attrs adaptive = bins.With("sample_ratio", 0);
  align("adaptive", adaptive);
  align("adaptive_aligned", adaptive.With("aligned", true));
  align("adaptive_max", adaptive.With("mode", "max"));
  // Bins of whole numbers, as many samples, and some of these right at the edge, behind which nothing counts.
  const ReferenceTensor at_edges = Of(kF32, {3, 4}, {-9, -20, 5, 1, -8, -17, 6, 4, -9, -16, 5, 5});
  for (const int64_t samples : {0, 7}) {
    b.Add("vision.roi_align", "at_edges_" + std::to_string(samples),
          {Data(kF32, {1, 2, 3, 4}), at_edges, Of(kI64, {3}, {0, 0, 0})},
          {{"pooled_size", Ints({3, 2})}, {"sample_ratio", samples}, {"aligned", true}});
  }
  // A box that ends before it begins has no samples.
  b.Add("vision.roi_align", "no_samples",
        {Data(kF32, {1, 2, 3, 3}), Of(kF32, {1, 4}, {2, 2, 1, 1}), Of(kI64, {1}, {0})}, adaptive.With("aligned", true));
  b.Add("vision.roi_align", "empty", {Data(kF32, {1, 2, 3, 3}), Data(kF32, {0, 4}), Of(kI64, {0}, {})}, bins);
}

void TreeCases(CaseBuilder& b) {
  const auto add = [&](const std::string& label, const ReferenceTensor& data, const ReferenceTensor& roots,
                       int64_t depth) {
    b.Add("tree_leaves", label,
          {data, Of(kI32, {9}, {1, 0, 9, -3, 0, 0, 0, 1, 0}), Of(data.dtype, {9}, {0.5, -1, 2, kNan, 0, kNan, 0, 0, 0}),
           // Of the leaves 4 to 8 the fourth has other children than itself, which no walk goes to.
           Of(kI32, {9, 3}, {1, 2, 4, 4, 5, 5, 3, 6, 9, 7, 8, -1, 4, 4, 4, 5, 5, 5, 6, 6, 6, 0, 1, 2, 8, 8, 8}), roots},
          {{"depth", depth}, {"inner", 4}});
  };
  const ReferenceTensor rows = Of(kF32, {6, 2}, {0, 0.5, -2, 0.25, 1, kInf, kNan, kNan, -kInf, 1, -1, kNan});
  add("float32", rows, Of(kI32, {3}, {0, 1, 7}), 3);
  add("float64", Of(kF64, {2, 2}, {-1 + 1e-12, 0.5 + 1e-12, -1 - 1e-12, 0.5}), Of(kI32, {3}, {0, 1, 7}), 3);
  add("many_rows", Data(kF32, {67, 2}), Of(kI32, {11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, -3, 20}), 3);
  add("cut", rows, Of(kI32, {2}, {0, 17}), 1);  // walks that end before a leaf, a root that does not exist
  add("no_walk", rows, Of(kI32, {1}, {5}), 0);
  add("empty", Data(kF32, {0, 2}), Of(kI32, {3}, {0, 1, 2}), 3);
  add("no_trees", rows, Of(kI32, {0}, {}), 3);
}

void CouplingCases(CaseBuilder& b) {
  const auto add = [&](const std::string& label, const ReferenceTensor& data) {
    b.Add("pairwise_coupling", label, {data});
  };
  add("float32", Of(kF32, {3, 3, 3}, {0,    0.9, 0.6,  0.1,  0,    0.3, 0.4,   0.7,  0,        // a plain row
                                      0,    1,   1,    1e-7, 0,    1,   1e-7,  1e-7, 0,        // a sure one
                                      kNan, 0.5, kInf, 0.5,  kNan, 0.5, -kInf, 0.5,  kNan}));  // none that ends
  add("nan", Of(kF32, {1, 2, 2}, {0, kNan, kNan, 0}));
  add("two", Of(kF32, {2, 2, 2}, {7, 0.25, 0.75, 7, 0, 1 - 1e-7, 1e-7, 0}));
  add("one", Of(kF32, {2, 1, 1}, {0, kNan}));
  add("empty", Data(kF32, {0, 4, 4}));
}

}  // namespace

void NnCases(CaseBuilder& b) {
  WinogradCases(b);
  TreeCases(b);
  CouplingCases(b);
  BlockedCases(b);
  ActivationCases(b);
  NormalizationCases(b);
  BatchNormCases(b);
  ConvolutionCases(b);
  ConvTransposeCases(b);
  FoldCases(b);
  PoolCases(b);
  PoolIndicesCases(b);
  ResizeCases(b);
  VisionCases(b);
}

}  // namespace ingot::op
