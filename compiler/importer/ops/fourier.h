// Discrete Fourier transforms, made of calls: products with matrices of cosines and sines, of which
// long transforms take several short ones (Cooley and Tukey, 1965; Bluestein, 1970 for lengths with large prime
// factors). Data are [batch, components, length]: real parts, then imaginary ones.
#pragma once

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

constexpr int64_t kLongestTransform = int64_t{1} << 22;

// Returns sum over j of x[j] * exp(sign * 2 pi i * j * k / length), [batch, 2, bins], for the bins k < bins; x has one
// component or two, in float32 or float64. A transform whose length only run time knows is a product with matrices that
// are computed then, length x bins.
Result<Expr> FourierTransform(const NodeImporter& node, Expr x, const PrimExpr& length, const PrimExpr& bins, int sign);
// Returns x [batch, components, rows], of any number of rows, cut or filled up with zeros to so many.
Result<Expr> WithLength(const NodeImporter& node, Expr x, const PrimExpr& length);
// Returns the elements [begin, end) along the last axis.
Result<Expr> LastSlice(const NodeImporter& node, const Expr& x, const PrimExpr& begin, const PrimExpr& end);

}  // namespace ingot::importer
