// The value of a graph expression in bytecode: one register, or a tuple that is not built, which is the values of its
// fields. The functions here emit the instructions that build a tuple, take one apart, or copy a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vm/program/program_builder.h"

namespace ingot::lower {

struct Value {
  std::optional<vm::RegisterId> reg;
  std::vector<Value> fields;
};

// Returns one register for the value; a tuple is built here.
vm::RegisterId Materialise(const Value& value, vm::FunctionBuilder& builder);
// The fields of a value whose type is a tuple.
std::vector<Value> FieldsOf(const Value& value, vm::FunctionBuilder& builder);
vm::RegisterId Copied(vm::RegisterId src, vm::FunctionBuilder& builder);
// Returns an owned tensor, which may leave the activation: src, or a copy of it.
vm::RegisterId Owned(vm::RegisterId src, vm::FunctionBuilder& builder);
// Returns an integer register with the extent of an axis of a tensor or shape.
vm::RegisterId ExtentOf(vm::RegisterId value, int64_t axis, vm::FunctionBuilder& builder);

}  // namespace ingot::lower
