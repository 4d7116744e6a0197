// Brings values to wanted types. Where no formula proves that a value has the type, the program compares it when it
// runs: types of match_cast, dims that a signature or a branch leaves open, and objects of any type. Owns the
// comparisons of dims that are not emitted yet, since their formulas may mention variables that a later dim binds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/plan_entries.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class TypeMatching {
 public:
  TypeMatching(const vm::Signature& signature, vm::FunctionBuilder& builder, RegisterScope& scope, PlanEntries& plan)
      : signature_(signature), builder_(builder), scope_(scope), plan_entries_(plan) {}

  // What is compared, in messages.
  struct Named {
    std::string name;   // of the variable
    std::string field;  // ", element 0, element 1" of its tuple, or nothing
  };
  // Compares the kinds, ranks and dtypes of a match_cast's value.
  Result<Value> Matched(const Value& source, const ir::Type& wanted_type, const ir::Span& span, const Named& what);
  // Gives the symbolic variables that stand in the type for the first time their values from the value's dims. Other
  // dims become comparisons, which CompareDims emits.
  void BindDims(const ir::Type& type, const Value& value, const std::string& what);
  Status CompareDims();
  // Returns a register of the wanted type: src itself, or the result of a comparison at run time that proves the type.
  Result<vm::RegisterId> Narrowed(vm::RegisterId src, const vm::Type& wanted, const ir::Span& span);

  // Adds registers that take any value of the type; tuples get them field by field.
  Result<Value> MakeTarget(const ir::Type& type, const ir::Span& span);
  Status Store(const Value& target, const Value& value);
  Status Assign(vm::RegisterId to, vm::RegisterId from);

 private:
  struct PendingDim {
    ir::PrimExpr expected;
    vm::RegisterId value;
    int64_t axis;  // axis of a tensor or shape; -1: the value is the integer itself
    std::string what;
  };
  Result<Value> MatchedFields(const Value& source, const ir::TupleTypeNode& wanted, const ir::Span& span,
                              const Named& what);

  const vm::Signature& signature_;
  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  PlanEntries& plan_entries_;
  std::vector<PendingDim> pending_;
};

}  // namespace ingot::lower
