// The VM's builtins: host routines that bytecode calls by number, such as those that pack weights when a file is
// loaded. This header gives their rows, from vm/builtins.def, to code that reads, writes or verifies bytecode; the
// routines themselves are run by the interpreter (vm/builtins.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vm/program/instruction.h"

namespace ingot::vm {

enum class Builtin : uint32_t {
#define INGOT_BUILTIN(number, Name, text, semantics, ...) k##Name = number,
#include "vm/program/builtins.def"
};

enum class ArgumentRole : uint8_t { kIn, kOut, kInOut, kRest, kResult };
inline bool IsWritten(ArgumentRole role) { return role == ArgumentRole::kOut || role == ArgumentRole::kInOut; }

struct BuiltinArgument {
  ArgumentRole role;
  Accepts accepts;
  const char* name;
};

struct BuiltinInfo {
  Builtin builtin;
  const char* name;
  const char* semantics;
  std::span<const BuiltinArgument> arguments;  // results first
  size_t num_results() const {
    size_t count = 0;
    while (count < arguments.size() && arguments[count].role == ArgumentRole::kResult) ++count;
    return count;
  }
};

// All rows, by ascending number.
std::span<const BuiltinInfo> AllBuiltins();
// Null for an unknown number or name.
const BuiltinInfo* FindBuiltin(uint64_t number);
const BuiltinInfo* FindBuiltin(std::string_view name);
const BuiltinInfo& InfoOf(Builtin builtin);

}  // namespace ingot::vm
