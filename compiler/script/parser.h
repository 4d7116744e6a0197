// The parser: TVMScript text to an IRModule. The printer's text reads back structurally equal; the parser also accepts
// the variants that TVM's releases and users write (README.md of this folder lists them). Every error is reported with
// line, column, caret and, if a similar name exists, a suggestion.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/diagnostics.h"
#include "runtime/status.h"

namespace ingot::script {

// filename is for messages and spans. constants are looked up for metadata["HASH"]; null: there are none. Errors: the
// status's message holds all of them. The module is not verified yet (op::VerifyModule).
Result<ir::IRModule> ParseModule(std::string text, std::string_view filename, const ConstantStore* constants = nullptr);

}  // namespace ingot::script
