// When a value of one type may stand where another is expected. Used by the verifier when a file is opened, and by the
// dynamic checks of the interpreter.
#pragma once

#include <string>
#include <vector>

#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

// Where a type stands, which decides the storages that its tensors may have.
enum class TypePlace : uint8_t { kParameter, kResult, kRegister, kElement };

// KnownDataType, TensorRank, TypeForm, TypeDepth, DeviceId and DimSlots for one type. `num_symbols` bounds the slots
// of its dims.
Verdict VerifyType(const Type& type, TypePlace place, int64_t num_symbols, const Program& program,
                   const CheckSet& checks, int depth = 0);

// Subtyping, the table in formats/README.md: a register of type `to` may take a value of type `from` as it is. Both
// speak about the same symbols. A partial order: closures are contravariant in their parameters. Values that are not
// reference-counted become objects by a move instruction.
bool IsAssignable(const Type& to, const Type& from);

// A value of type `argument` (over the caller's symbols) may be passed to a parameter of type `param` (over the
// callee's). The relation is that of IsAssignable with two exceptions. Of the dims of tensors and shapes, only unequal
// constants are refused; the call compares the rest. And a parameter borrows memory of any storage, but writes only
// writable memory.
bool IsPassable(const Type& param, const Type& argument);

// The callee's symbols over the caller's, as far as arguments bind them: a parameter's dim that is a lone symbol
// takes the argument's dim.
std::vector<Dim> BindSymbols(const Signature& callee, const std::vector<const Type*>& arguments);
// The type with its dims over other symbols; dims that cannot be expressed become unknown.
Type SubstituteSymbols(const Type& type, const std::vector<Dim>& symbols);

// Tensors that instructions may write.
inline bool IsWritable(Storage storage) {
  return storage == Storage::kOwned || storage == Storage::kArena || storage == Storage::kBorrowedMut;
}
// Kinds whose registers hold a reference to an Object.
inline bool IsCountedKind(ValueKind kind) {
  return kind == ValueKind::kString || kind == ValueKind::kTuple || kind == ValueKind::kOptional ||
         kind == ValueKind::kClosure || kind == ValueKind::kObject;
}
inline bool IsAnyObject(const Type& type) { return type.kind == ValueKind::kObject && type.class_name == "any"; }

}  // namespace ingot::vm
