// One instruction in a kernel of its own, over corner values and random ones, beside values that the host computes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "runtime/small_float.h"
#include "tests/cuda_standin/ptx_bodies.h"
#include "tests/cuda_standin/ptx_module.h"

namespace ingot::ptx {

// Bits of the operands, widened; the result's bits.
using Expected = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)>;

// Runs `opcode` over all triples and returns the results. A source of type kPred is given as 0 or 1.
std::vector<uint64_t> Execute(const std::string& opcode, Type to, const std::vector<Type>& from,
                              const std::string& tail, const std::vector<std::vector<uint64_t>>& inputs);
// Every combination of the operands' corners, and random operands; `tail` stands behind them.
void Check(const std::string& opcode, Type to, const std::vector<Type>& from, const Expected& expected,
           const std::string& tail = "");

// Floats and their bits; a NaN of float32 and below is the canonical one.
inline float F(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double D(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t B(float value) { return value != value ? 0x7fffffff : std::bit_cast<uint32_t>(value); }
inline uint64_t B(double value) { return std::bit_cast<uint64_t>(value); }
inline float Ftz(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// Half formats beside the runtime's conversions, which share no code with ours.
inline DataType SmallType(bool bf16) { return bf16 ? DataType::Bfloat16() : DataType::Float(16); }
inline double WidenBits(bool bf16, uint64_t bits) { return DecodeFloat(SmallType(bf16), bits & 0xffff); }
inline uint64_t NarrowBits(bool bf16, double value) {
  return value != value ? 0x7fff : EncodeFloat(SmallType(bf16), value);
}

}  // namespace ingot::ptx
