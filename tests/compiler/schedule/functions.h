// Tensor functions that the tests of schedules share, and running one on random inputs in the interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::schedule::testing {

// A function and the concrete sizes to run it with: one list of dims per buffer parameter, outputs last.
struct Case {
  std::string name;
  ir::PrimFunc function;
  int num_outputs;
  std::vector<std::vector<std::vector<int64_t>>> shapes;
};

ir::PrimExpr N();  // the symbolic dimension that cases share within one function

// relu(A[m, k] B[k, n] + bias[n]), or A B alone.
ir::PrimFunc Dense(ir::PrimExpr m, ir::PrimExpr k, ir::PrimExpr n, bool epilogue);
ir::PrimFunc BatchedMatmul(ir::PrimExpr b, ir::PrimExpr m, ir::PrimExpr k, ir::PrimExpr n);
// A[m, 20] times 40 columns in panels of 16.
ir::PrimFunc PanelProduct(ir::PrimExpr m);
// relu(conv(X[n, ci, h, h], W[co, ci, ks, ks]) + bias[co]), padded.
ir::PrimFunc Conv(ir::PrimExpr n, int64_t ci, int64_t h, int64_t co, int64_t ks, int64_t stride, int64_t pad);
// Windows of three over each of height and width that is not 1, channels in blocks of 16.
ir::PrimFunc BlockedConv(int64_t height, int64_t width);
ir::PrimFunc GroupedConv(int64_t groups, int64_t ci, int64_t co, ir::PrimExpr width);
// Of one channel, by windows of nine elements every four: [n, 1, width * 4 + 5] -> [n, co, width].
ir::PrimFunc StridedConv(ir::PrimExpr n, int64_t co, ir::PrimExpr width);
ir::PrimFunc MaxPool(ir::PrimExpr n, int64_t c, int64_t h);
// The largest of each `window` neighbours of a row: [rows, columns * window] -> [rows, columns].
ir::PrimFunc WindowMax(ir::PrimExpr rows, int64_t window, ir::PrimExpr columns);
ir::PrimFunc Softmax(ir::PrimExpr m, ir::PrimExpr n);
ir::PrimFunc RowSum(ir::PrimExpr m, ir::PrimExpr n);
ir::PrimFunc GlobalMean(ir::PrimExpr m, ir::PrimExpr n);  // of everything: a scalar
// tanh(X[a, b] * Y[b] + 1): three stages.
ir::PrimFunc ElementwiseChain(ir::PrimExpr a, ir::PrimExpr b);
ir::PrimFunc Transpose(ir::PrimExpr a, ir::PrimExpr b);
// X[a, b, c] transposed, plus Y[a, c, b].
ir::PrimFunc TransposeInner(ir::PrimExpr a, ir::PrimExpr b, ir::PrimExpr c);
// Columns of the result come from `rests` rows in turn, from column `shift` on.
ir::PrimFunc Interleave(int64_t rests, int64_t shift, ir::PrimExpr columns);
ir::PrimFunc ScaleOfChannels(ir::PrimExpr c, ir::PrimExpr h, ir::PrimExpr w);
ir::PrimFunc AddAll(ir::PrimExpr a, ir::PrimExpr b, ir::PrimExpr c);
// relu of X[rows, a, inner] followed by Y[rows, b, inner].
ir::PrimFunc ConcatRelu(ir::PrimExpr rows, ir::PrimExpr a, ir::PrimExpr b, ir::PrimExpr inner);
ir::PrimFunc MeanOfPixels(ir::PrimExpr c, ir::PrimExpr h, ir::PrimExpr w);
ir::PrimFunc Pad(ir::PrimExpr a, int64_t b);
ir::PrimFunc GatherPixels(ir::PrimExpr channels, ir::PrimExpr h, ir::PrimExpr w);

std::vector<Case> AllCases();

// Inputs that depend on the seed alone, and outputs of zeros.
std::vector<std::vector<float>> RandomBuffers(const std::vector<std::vector<int64_t>>& dims, int num_outputs,
                                              uint64_t seed);
// Buffers of the outputs after a run on inputs that depend on the seed alone.
Result<std::vector<std::vector<float>>> RunOnRandom(const ir::PrimFunc& function,
                                                    const std::vector<std::vector<int64_t>>& dims, int num_outputs,
                                                    uint64_t seed, bool check_races);
// Empty when equal up to reordered reductions, else the first difference.
std::string Compare(const std::vector<std::vector<float>>& expected, const std::vector<std::vector<float>>& got);

}  // namespace ingot::schedule::testing
