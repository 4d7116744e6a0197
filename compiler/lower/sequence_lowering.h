// Sequences: tuples that builtins of the VM make, take apart and change by copy. Owns nothing: a sequence is a value
// like any other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/ir/expr.h"
#include "compiler/lower/operands.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class SequenceLowering {
 public:
  SequenceLowering(vm::FunctionBuilder& builder, RegisterScope& scope, Operands& operands)
      : builder_(builder), scope_(scope), operands_(operands) {}

  Result<Value> LowerAt(const ir::CallNode& call);
  Result<Value> LowerConcatShape(const ir::CallNode& call);
  Result<Value> LowerConstruct(const ir::CallNode& call);
  Result<Value> LowerErase(const ir::CallNode& call);
  Result<Value> LowerInsert(const ir::CallNode& call);
  Result<Value> LowerLength(const ir::CallNode& call);

 private:
  // Replaces `count` elements of the sequence from `position` on by the elements of a tuple.
  Result<Value> Splice(const ir::CallNode& call, size_t position, int64_t count, const Value& replacement);

  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  Operands& operands_;
};

}  // namespace ingot::lower
