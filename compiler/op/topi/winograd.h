// Tensor expressions of Winograd's convolution F(4x4, 3x3) over channels in blocks (Lavin and Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2016): tiles of 4 x 4 results from tiles of 6 x 6 elements, which overlap by two.
//
//   V = B^T d B   of each tile d of the data          winograd_input
//   U = G g G^T   of each kernel g                    by a matrix product of weights, in convert_layout
//   M = U V       summed over channels, for each of the 36 places: a grouped convolution of one tap
//   A^T M A       is the tile of the result           winograd_output
//
// The points are 0, 1, -1, 2, -2 and infinity. A place in a tile, or a place in V, chooses a row of the matrices by
// conditions on an index; schedules unroll that index.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

inline constexpr int64_t kWinogradTile = 4, kWinogradPlaces = 6;
inline constexpr std::array<std::array<double, 6>, 6> kWinogradInput = {{{4, 0, -5, 0, 1, 0},
                                                                         {0, -4, -4, 1, 1, 0},
                                                                         {0, 4, -4, -1, 1, 0},
                                                                         {0, -2, -1, 2, 1, 0},
                                                                         {0, 2, -1, -2, 1, 0},
                                                                         {0, 4, 0, -5, 0, 1}}};  // B^T
inline constexpr std::array<std::array<double, 3>, 6> kWinogradKernel = {{{1.0 / 4, 0, 0},
                                                                          {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                                          {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                                          {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                                                          {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                                                          {0, 0, 1}}};  // G
inline constexpr std::array<std::array<double, 6>, 4> kWinogradOutput = {
    {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};  // A^T

// How many tiles cover an extent of the result.
PrimExpr WinogradTiles(const PrimExpr& extent);
// Both compute in float32 of narrower floats, and round to the dtype of their result.
// data [n, blocks, h, w, block] -> [n, 6, 6, blocks, tiles of h, tiles of w, block]; padding is [top, left, ...].
te::Tensor WinogradInput(const te::Tensor& data, const std::vector<int64_t>& padding, Shape shape, DataType dtype);
// data [n, 6, 6, blocks, tiles of h, tiles of w, block] -> [n, blocks, h, w, block].
te::Tensor WinogradOutput(const te::Tensor& data, Shape shape, DataType dtype);

}  // namespace ingot::op::topi
