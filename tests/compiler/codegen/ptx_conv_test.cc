// Convolutions by the rules for CUDA on the GPU that is not there, beside the interpreter of the function as it was
// before its schedule: one to three axes, strides, dilations, padding, groups, batches, fixed and symbolic sizes,
// epilogues. The numbers are small integers, so that sums are exact in any order and results equal bit for bit.
// INGOT_LONG_TESTS=1 takes 300 convolutions in place of 20.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler/op/topi/nn.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/te/tensor.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen {
namespace {

using ir::Int64;
using ir::PrimExpr;
using testing::CompileForLater, testing::CountAccesses, testing::InterpretedResult, testing::KeepsAway,
    testing::SizedFunction, testing::SmallIntegers, testing::Wrong;

struct Convolution {
  int64_t batch = 1, inputs = 16, outputs = 16, groups = 1;  // channels of all groups
  std::vector<int64_t> image, taps;
  op::topi::Window window;
  DataType dtype = DataType::Float(32);
  bool taps_first = false;    // weights [taps..., inputs, outputs], as the pass pack_weights lays them out
  bool has_epilogue = false;  // a bias for each channel, a residual, clipped from below
  unsigned symbolic = 0;      // bits: batch, then the image's axes

  std::string Text() const {
    std::string text = dtype.ToString() + " " + std::to_string(batch) + "x" + std::to_string(inputs) + "->" +
                       std::to_string(outputs) + " groups " + std::to_string(groups) + " symbolic " +
                       std::to_string(symbolic) + (taps_first ? " taps first" : "") + (has_epilogue ? " epilogue" : "");
    for (size_t i = 0; i < image.size(); ++i) {
      text += ", " + std::to_string(image[i]) + " by " + std::to_string(taps[i]) + " strides " +
              std::to_string(window.strides[i]) + " dilation " + std::to_string(window.dilation[i]) + " padding " +
              std::to_string(window.padding[i]) + "+" + std::to_string(window.padding[image.size() + i]);
    }
    return text;
  }
  int64_t Places(size_t axis) const {
    const int64_t reach = (taps[axis] - 1) * window.dilation[axis] + 1;
    const int64_t room = image[axis] + window.padding[axis] + window.padding[image.size() + axis] - reach;
    return room / window.strides[axis] + 1;
  }
};

SizedFunction Define(const Convolution& c) {
  const auto size = [&](int64_t value, unsigned bit) {
    return (c.symbolic >> bit & 1u) != 0 ? PrimExpr(ir::MakePrimVar("s" + std::to_string(bit))) : Int64(value);
  };
  op::topi::Shape shape = {size(c.batch, 0), Int64(c.inputs)}, kernel = {Int64(c.outputs), Int64(c.inputs / c.groups)};
  SizedFunction sized{nullptr, {{c.batch, c.inputs}, {c.outputs, c.inputs / c.groups}}, {c.dtype, c.dtype}};
  std::vector<int64_t> places = {c.batch, c.outputs}, bias(c.image.size() + 1, 1);
  bias[0] = c.outputs;
  for (size_t i = 0; i < c.image.size(); ++i) {
    shape.push_back(size(c.image[i], static_cast<unsigned>(i) + 1));
    kernel.push_back(Int64(c.taps[i]));
    sized.dims[0].push_back(c.image[i]);
    sized.dims[1].push_back(c.taps[i]);
    places.push_back(c.Places(i));
  }
  std::vector<te::Tensor> args = {te::Placeholder(shape, c.dtype, "x"), te::Placeholder(kernel, c.dtype, "w")};
  te::Tensor weight = args[1];
  if (c.taps_first) {
    const auto taps_first = [](auto dims) {
      std::swap(dims[0], dims[1]);
      std::rotate(dims.begin(), dims.begin() + 2, dims.end());
      return dims;
    };
    sized.dims[1] = taps_first(sized.dims[1]);
    args[1] = te::Placeholder(taps_first(kernel), c.dtype, "w");
    weight = te::Compute(
        kernel, [&](const te::Indices& i) { return args[1](taps_first(i)); }, "kernel");
  }
  te::Tensor out = op::topi::Conv(args[0], weight, c.window, c.groups, c.dtype);
  if (c.has_epilogue) {
    const te::Tensor sum = out;
    const te::Tensor b = te::Placeholder({Int64(c.outputs)}, c.dtype, "b");
    const te::Tensor residual = te::Placeholder(sum.shape(), c.dtype, "r");
    const te::Tensor added = te::Compute(
        sum.shape(), [&](const te::Indices& i) { return sum(i) + b(std::vector<PrimExpr>{i[1]}) + residual(i); },
        "added");
    out = te::Compute(
        sum.shape(), [&](const te::Indices& i) { return ir::Max(added(i), ir::MakeConst(c.dtype, 0)); }, "clipped");
    args.insert(args.end(), {b, residual});
    sized.dims.insert(sized.dims.end(), {{c.outputs}, places});
    sized.dtypes.insert(sized.dtypes.end(), {c.dtype, c.dtype});
  }
  args.push_back(out);
  sized.dims.push_back(places);
  sized.dtypes.push_back(out.dtype());
  sized.function = te::CreatePrimFunc(args);
  return sized;
}

// The block of the sums.
std::string SumsOf(const Convolution& c) {
  const char* layouts[] = {"", "ncw", "nchw", "ncdhw"};
  const std::string rank = std::to_string(c.image.size());
  return std::string(c.groups > 1 ? "group_" : "") + "conv" + rank + "d_" + layouts[c.image.size()];
}

Convolution RandomConvolution(std::mt19937_64& generator) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(n)); };
  const auto one_of = [&](std::initializer_list<int64_t> values) { return values.begin()[below(std::ssize(values))]; };
  const DataType dtypes[] = {DataType::Float(32), DataType::Float(32), DataType::Float(32),
                             DataType::Float(16), DataType::Float(64), DataType::Int(32)};
  Convolution c;
  const auto rank = static_cast<size_t>(1 + below(3));
  c.dtype = dtypes[below(std::ssize(dtypes))];
  c.batch = one_of({1, 1, 2, 3});
  c.groups = one_of({1, 1, 1, 2, 3});
  c.inputs = c.groups * one_of({8, 9, 16, 20, rank < 3 ? 40 : 16});
  c.outputs = c.groups * one_of({8, 9, 16, 33, 64, 70});
  for (size_t i = 0; i < rank; ++i) {
    c.image.push_back(rank == 1 ? one_of({8, 30, 64, 130}) : rank == 2 ? one_of({4, 7, 8, 11, 14}) : one_of({3, 4, 5}));
    c.taps.push_back(one_of({1, 2, 3, 3}));
    c.window.strides.push_back(one_of({1, 1, 2, 3}));
    c.window.dilation.push_back(rank == 3 ? 1 : one_of({1, 1, 2}));
  }
  if (below(4) == 0) c.taps.assign(rank, 1);
  c.window.padding.assign(2 * rank, 0);
  for (int64_t& padding : c.window.padding) padding = below(3);
  c.has_epilogue = below(2) == 0;
  c.taps_first = below(2) == 0;
  // The numbers of places of three symbolic axes are too long a formula for a launch (the pass name_long_dims names them).
  c.symbolic = below(2) == 0 ? 0 : static_cast<unsigned>(below(2 << std::min<size_t>(rank, 2)));
  return c;
}

Convolution Layer(int64_t inputs, int64_t outputs, int64_t image, int64_t taps, int64_t stride, int64_t groups = 1) {
  Convolution c;
  c.inputs = inputs;
  c.outputs = outputs;
  c.groups = groups;
  c.image = {image, image};
  c.taps = {taps, taps};
  c.window = {{stride, stride}, std::vector<int64_t>(4, taps / 2), {1, 1}};
  c.has_epilogue = true;
  c.taps_first = groups == 1;
  return c;
}

bool HasPlaces(const Convolution& c) {
  for (size_t axis = 0; axis < c.image.size(); ++axis) {
    if (c.Places(axis) < 1) return false;
  }
  return true;
}

size_t NumRandom() { return std::getenv("INGOT_LONG_TESTS") != nullptr ? 300 : 20; }

TEST_CASE("convolutions in tiles on the stand-in GPU are those of the interpreter") {
  std::mt19937_64 generator(21);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < NumRandom();) {
    const Convolution c = RandomConvolution(generator);
    int64_t places = c.batch;
    for (size_t axis = 0; axis < c.image.size(); ++axis) places *= c.Places(axis);
    if (!HasPlaces(c) || (places < 8 && c.symbolic == 0)) continue;  // the rule takes no fewer
    CAPTURE(c.Text());
    const SizedFunction sized = Define(c);
    CHECK(KeepsAway(sized.function, "cuda_matmul", SumsOf(c)) == "");
    CHECK(WrongBesideInterpreter(sized, i++, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("convolutions whose sums blocks share on the stand-in GPU are those of the interpreter") {
  std::vector<KernelSource> sources;
  std::vector<Convolution> layers = {Layer(48, 40, 7, 3, 1), Layer(64, 72, 9, 3, 2), Layer(512, 8, 4, 1, 1),
                                     Layer(66, 20, 6, 3, 1, 2)};
  layers[1].batch = 2;
  layers[2].has_epilogue = false;
  layers[3].taps_first = true;
  for (const Convolution& c : layers) {
    CAPTURE(c.Text());
    CHECK(WrongBesideInterpreter(Define(c), 1, sources) == "");
    const Result<PtxImage> image = CompilePtx({&sources.back(), 1}, testing::Sm("sm_80"));
    REQUIRE(image.ok());
    CHECK(image->kernels[0].launches.size() == 2);
  }
  CompileForLater(sources);
}

// Channels in whole chunks go to the tiles of matrix instructions, from copies that have them last.
TEST_CASE("convolutions by matrix instructions on the stand-in GPU are those of the interpreter") {
  std::mt19937_64 generator(24);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < NumRandom() / 2;) {
    Convolution c = RandomConvolution(generator);
    c.dtype = i % 2 == 0 ? DataType::Float(16) : DataType::Bfloat16();
    c.groups = 1;
    c.inputs = i % 4 == 0 ? 72 : 8 * (1 + static_cast<int64_t>(i) % 5);
    c.outputs = std::max<int64_t>(c.outputs, 9);
    int64_t places = c.batch;
    for (size_t axis = 0; axis < c.image.size(); ++axis) places *= c.Places(axis);
    if (!HasPlaces(c) || (places < 9 && c.symbolic == 0)) continue;  // the rule takes no fewer
    if (i % 5 == 3) {
      const DataType dtype = c.dtype;
      c = Layer(24, 40, i % 2 == 0 ? 16 : 7, 1, 1);  // chunks of places, or of channels
      c.dtype = dtype;
    }
    CAPTURE(c.Text());
    const SizedFunction sized = Define(c);
    CHECK(KeepsAway(sized.function, "cuda_mma", SumsOf(c)) == "");
    CHECK(WrongBesideInterpreter(sized, i++, sources) == "");
    const Result<PtxImage> image = CompilePtx({&sources.back(), 1}, testing::Sm("sm_80"));
    REQUIRE(image.ok());
    CHECK(image->ptx.find("mma.sync") != std::string::npos);
  }
  CompileForLater(sources);
}

// Of float32 where it may be rounded to tf32: 4 channels are a chunk.
TEST_CASE("convolutions by tf32 on the stand-in GPU are those of the interpreter") {
  std::mt19937_64 generator(25);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < NumRandom() / 4;) {
    Convolution c = RandomConvolution(generator);
    c.dtype = DataType::Float(32);
    c.groups = 1;
    c.inputs = i % 4 == 0 ? 68 : 4 * (2 + static_cast<int64_t>(i) % 5);
    c.outputs = std::max<int64_t>(c.outputs, 9);
    int64_t places = c.batch;
    for (size_t axis = 0; axis < c.image.size(); ++axis) places *= c.Places(axis);
    if (!HasPlaces(c) || (places < 9 && c.symbolic == 0)) continue;  // the rule takes no fewer
    if (i % 5 == 3) c = Layer(24, 40, i % 2 == 0 ? 16 : 7, 1, 1);    // chunks of places, or of channels
    CAPTURE(c.Text());
    SizedFunction sized = Define(c);
    ir::PrimFuncNode permitted = *sized.function;
    permitted.attrs = permitted.attrs.With(schedule::kTf32Attr, true);
    sized.function = ir::Make<ir::PrimFuncNode>(std::move(permitted));
    CHECK(KeepsAway(sized.function, "cuda_mma", SumsOf(c)) == "");
    CHECK(WrongBesideInterpreter(sized, i++, sources) == "");
    const Result<PtxImage> image = CompilePtx({&sources.back(), 1}, testing::Sm("sm_80"));
    REQUIRE(image.ok());
    CHECK(image->ptx.find("tf32") != std::string::npos);
  }
  CompileForLater(sources);
}

TEST_CASE("depthwise convolutions on the stand-in GPU are those of the interpreter") {
  std::mt19937_64 generator(22);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < NumRandom();) {
    Convolution c = RandomConvolution(generator);
    if (!HasPlaces(c)) continue;
    c.groups = c.inputs = std::min<int64_t>(c.inputs, 16);
    c.outputs = c.groups * (i % 4 == 0 ? 2 : 1);
    CAPTURE(c.Text());
    const SizedFunction sized = Define(c);
    CHECK(KeepsAway(sized.function, "cuda_windows", SumsOf(c)) == "");
    CHECK(WrongBesideInterpreter(sized, i++, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("pools on the stand-in GPU are those of the interpreter") {
  std::vector<KernelSource> sources;
  for (const int64_t stride : {1, 2}) {
    for (const int64_t taps : {2, 3, 9}) {
      const op::topi::Window window{{stride, stride}, {1, 0, 1, 1}, {1, 1}};
      const std::vector<int64_t> places = {2, 5, (12 - taps + 2) / stride + 1, (14 - taps + 1) / stride + 1};
      op::topi::Shape shape;
      for (const int64_t extent : places) shape.push_back(Int64(extent));
      const te::Tensor x = te::Placeholder({Int64(2), Int64(5), Int64(12), Int64(14)}, DataType::Float(32), "x");
      for (const bool is_max : {false, true}) {
        CAPTURE(stride);
        CAPTURE(taps);
        CAPTURE(is_max);
        const te::Tensor out = is_max ? op::topi::MaxPool(x, {taps, taps}, window, shape)
                                      : op::topi::AvgPool(x, {taps, taps}, window, shape, false);
        const SizedFunction sized{te::CreatePrimFunc({x, out}), {{2, 5, 12, 14}, places}, {x.dtype(), out.dtype()}};
        CHECK(WrongBesideInterpreter(sized, 1, sources) == "");
      }
    }
  }
  CompileForLater(sources);
}

TEST_CASE("each block of the kernels of convolutions of symbolic sizes runs for some size") {
  for (const bool is_depthwise : {false, true}) {
    for (const DataType& dtype : {DataType::Float(32), DataType::Float(16)}) {
      std::mt19937_64 generator(3);
      const auto any = [&](std::initializer_list<int64_t> sizes) {
        return generator() % 2 == 0 ? static_cast<int64_t>(1 + generator() % 24)
                                    : sizes.begin()[generator() % sizes.size()];
      };
      Convolution c = Layer(16, 16, 8, 3, 1, is_depthwise ? 16 : 1);
      c.dtype = dtype;
      c.symbolic = 7;
      CHECK(testing::BlocksLeftOut(
                [&](size_t) {
                  c.batch = any({1, 2, 3});
                  c.image = {any({1, 3, 8, 16, 20}), any({1, 3, 8, 16, 20})};
                  return Define(c);
                },
                80) == 0);
    }
  }
}

// How often each warp touches memory and how many instructions it runs, with these rules and without them. In the long form
// the layers of ResNet-50 and MobileNetV2 as they are, else ones that are like them.
TEST_CASE("convolutions read memory less often, and shared memory without conflicts") {
  struct Bound {
    Convolution layer;
    double sectors, instructions;  // at most so much of those without the rules
  };
  std::vector<Bound> bounds = {
      {Layer(3, 64, 32, 7, 2), 0.1, 0.5},       {Layer(32, 64, 14, 3, 1), 0.1, 0.5},
      {Layer(64, 64, 16, 1, 1), 0.2, 0.5},      {Layer(32, 64, 28, 3, 2), 0.1, 0.5},
      {Layer(128, 64, 7, 3, 1), 0.1, 0.5},      {Layer(16, 16, 28, 3, 1, 16), 0.8, 0.6},
      {Layer(16, 16, 28, 3, 2, 16), 0.8, 0.85},
  };
  if (std::getenv("INGOT_LONG_TESTS") != nullptr) {
    bounds = {{Layer(3, 64, 224, 7, 2), 0.1, 0.5},      {Layer(64, 64, 56, 3, 1), 0.1, 0.5},
              {Layer(256, 64, 56, 1, 1), 0.2, 0.5},     {Layer(128, 128, 56, 3, 2), 0.1, 0.5},
              {Layer(512, 512, 7, 3, 1), 0.1, 0.5},     {Layer(144, 144, 56, 3, 1, 144), 0.8, 0.6},
              {Layer(96, 96, 112, 3, 2, 96), 0.8, 0.85}};
  }
  for (const Bound& bound : bounds) {
    CAPTURE(bound.layer.Text());
    const SizedFunction sized = Define(bound.layer);
    const Result<ptx::LaunchCounts> before = CountAccesses(sized, {"cuda_matmul", "cuda_windows"});
    const Result<ptx::LaunchCounts> after = CountAccesses(sized, {});
    REQUIRE_MESSAGE(before.ok(), before.status().message());
    REQUIRE_MESSAGE(after.ok(), after.status().message());
    MESSAGE(before->global_sectors, " sectors before, ", after->global_sectors, " after; ", before->warp_instructions,
            " instructions before, ", after->warp_instructions, " after; ", after->shared_requests,
            " accesses of shared memory in ", after->shared_wavefronts, " passes");
    CHECK(static_cast<double>(after->global_sectors) < bound.sectors * static_cast<double>(before->global_sectors));
    CHECK(static_cast<double>(after->warp_instructions) <
          bound.instructions * static_cast<double>(before->warp_instructions));
    CHECK(after->shared_wavefronts <= 4 * after->shared_requests);
  }
}

}  // namespace
}  // namespace ingot::codegen
