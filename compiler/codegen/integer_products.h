// Products of bytes and of numbers of 16 bits, several of which a CPU multiplies and adds by one instruction: LLVM's IR
// has no operation for them. T.dot_bytes is emitted as a call of a marker, a sum of two products of halves of words
// (op's topi::PairProduct) as it is spelled. Together with what they are added to, both become calls of functions that
// the optimiser does not look into, and the target's instructions afterwards: it would add up the products of all steps
// of a loop before it adds them to the sum, which takes more registers than there are. Private to code generation.
#pragma once

#include "compiler/target/target.h"

namespace llvm {
class Function;
class Module;
class Type;
}  // namespace llvm

namespace ingot::codegen {

// The function (a, b) -> T.dot_bytes(a, b) of int32 or a vector of it.
llvm::Function* DotBytesMarker(llvm::Module& module, llvm::Type* type);

// Before the module is optimised.
void JoinProducts(llvm::Module& module, const Target& target);
// Behind that.
void ExpandProducts(llvm::Module& module, const Target& target);

}  // namespace ingot::codegen
