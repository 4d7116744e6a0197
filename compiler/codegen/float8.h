// Eight-bit floats in registers: codes (i8, with lanes) to float32 and back, as instructions. Rounding and codes are
// those of ir::EncodeFloat and ir::DecodeFloat.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "runtime/data_type.h"

namespace ingot::codegen {

bool IsFloat8(DataType dtype);
llvm::Value* DecodeFloat8(llvm::IRBuilderBase& builder, llvm::Value* codes, DataType dtype);
llvm::Value* EncodeFloat8(llvm::IRBuilderBase& builder, llvm::Value* float32, DataType dtype);

}  // namespace ingot::codegen
