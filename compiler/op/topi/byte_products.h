// Tensor expressions of integer products that take four bytes of each factor at once (T.dot_bytes): their factors hold
// four neighbours along the summed axis as one int32, those of the left factor unsigned, those of the right one signed.
#pragma once

#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

inline constexpr int64_t kBytesPerWord = 4;
inline int64_t ElementsPerWord(DataType dtype) { return kBytesPerWord * 8 / dtype.bits; }

// x[.., k] of int8, uint8 or int16 -> int32 [.., k / ElementsPerWord], the first element lowest. flip: the sign bit of
// each byte is inverted, which adds 128 to a signed byte and subtracts it from an unsigned one.
te::Tensor PackBytes(const te::Tensor& x, bool flip);
// x[.., k] and panels[n / c, k, n % c], both of words, -> int32 [.., units].
te::Tensor MatmulBytes(const te::Tensor& x, const te::Tensor& panels, int64_t units);
// Whether the call of T.dot_bytes multiplies by an element of panels, as MatmulBytes does.
bool IsPanelProduct(const ir::PrimCallNode& dot);
// low * word's low half + high * word's high half, all in int32: low and high are int16, the word holds two of them.
// Code generation knows the form as one instruction (codegen/integer_products).
PrimExpr PairProduct(const PrimExpr& low, const PrimExpr& high, const PrimExpr& word);
// Whether the expression is one.
bool IsPairProduct(const PrimExpr& expr);
// Four bytes (uint8) as one int32, the first one lowest. Where they are neighbours in memory, code generation loads them
// as one word.
PrimExpr WordOfBytes(const std::vector<PrimExpr>& bytes);
// The product of a - a_zero and b - b_zero in int32, as Matmul has it.
te::Tensor MatmulInteger(const te::Tensor& a, const te::Tensor& b, const te::Tensor& a_zero, const te::Tensor& b_zero);

}  // namespace ingot::op::topi
