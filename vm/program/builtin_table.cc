// The rows of vm/program/builtins.def as data.
#include "vm/program/builtins.h"

#include "runtime/check.h"
#include "vm/program/foreach.h"

namespace ingot::vm {
namespace {

#define INGOT_ARGUMENT_SPEC(role, accepts, name) \
  BuiltinArgument { ArgumentRole::k##role, Accepts::k##accepts, #name }
#define INGOT_BUILTIN(number, Name, text, semantics, ...) \
  constexpr BuiltinArgument k##Name##Arguments[] = {INGOT_FOR_EACH(INGOT_ARGUMENT_SPEC, __VA_ARGS__)};
#include "vm/program/builtins.def"

constexpr BuiltinInfo kBuiltinRows[] = {
#define INGOT_BUILTIN(number, Name, text, semantics, ...) {Builtin::k##Name, text, semantics, k##Name##Arguments},
#include "vm/program/builtins.def"
};

}  // namespace

std::span<const BuiltinInfo> AllBuiltins() { return kBuiltinRows; }

const BuiltinInfo* FindBuiltin(uint64_t number) {
  for (const BuiltinInfo& row : kBuiltinRows) {
    if (static_cast<uint64_t>(row.builtin) == number) return &row;
  }
  return nullptr;
}

const BuiltinInfo& InfoOf(Builtin builtin) {
  const BuiltinInfo* info = FindBuiltin(static_cast<uint64_t>(builtin));
  INGOT_CHECK(info != nullptr, "a builtin without a row");
  return *info;
}

const BuiltinInfo* FindBuiltin(std::string_view name) {
  for (const BuiltinInfo& row : kBuiltinRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace ingot::vm
