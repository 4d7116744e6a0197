// Literals of the text form: strings with escapes, numbers that read back to the same bits, and attribute values
// without expressions. Used by the printer; the tokenizer undoes the escapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/data_type.h"

namespace ingot::script {

// Returns the text in double quotes; control characters and bytes that are not UTF-8 become \xNN escapes.
std::string Quote(std::string_view text);
// Returns the shortest decimal that reads back to the same element of the dtype; it holds a '.' or an 'e', or is one of
// the quoted words "nan", "inf", "-inf", "bits:0x7fc00001" (a NaN of another pattern than the usual one).
std::string FloatLiteral(DataType dtype, double value);
// Returns a Python float: as above, but float("nan").
std::string PythonFloat(double value);
// Returns the bits of one element of a floating dtype as a literal (for R.const).
std::string FloatBitsLiteral(DataType dtype, uint64_t bits);
// Returns an element of an integer dtype; for uint64 the unsigned value.
std::string IntLiteral(DataType dtype, int64_t value);

}  // namespace ingot::script
