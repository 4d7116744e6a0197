// Arguments for the functions of any verified program: what tests call damaged and generated files with.
#pragma once

#include <optional>
#include <vector>

#include "vm/program/program.h"
#include "vm/run/value.h"

namespace ingot::test {

// Arguments that fit the signature, each symbol at its smallest value but at least 1; nothing where they would be
// unreasonably large, or of a kind that is not made here (tuples, optionals, closures, objects).
std::optional<std::vector<vm::Value>> MakeArguments(const vm::Function& function);

}  // namespace ingot::test
