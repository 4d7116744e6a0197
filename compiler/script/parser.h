// The parser: TVMScript text to an IRModule. What the printer prints reads back structurally equal; besides, the
// variants are accepted that TVM's releases and users write (README.md of this folder lists them). Every error is
// reported with line, column, caret and, where a name is near, a suggestion.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/diagnostics.h"
#include "runtime/status.h"

namespace ingot::script {

// filename is for messages and spans. constants holds what the text names as metadata["HASH"]; null: nothing. The
// failure's message holds every error. The module is not verified yet (op::VerifyModule).
Result<ir::IRModule> ParseModule(std::string text, std::string_view filename, const ConstantStore* constants = nullptr);

}  // namespace ingot::script
