// The options of single passes by name, "PASS.OPTION", for command lines and configuration files, and the table that
// lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/transform/pass.h"

namespace ingot::transform {

struct PassOptionRow {
  const char* name;     // "fold_constants.max_bytes"
  const char* summary;  // includes the unit
  // Numbers are >= 0; a list is separated by commas.
  std::variant<int64_t PassOptions::*, bool PassOptions::*, std::vector<std::string> PassOptions::*> field;
};
std::span<const PassOptionRow> PassOptionTable();

// Sets an option from text such as "fold_constants.max_bytes=1048576". Errors say what was expected and suggest a name.
Status SetPassOption(std::string_view assignment, PassOptions& options);
// Splits "a,b" into its items; "" has none.
std::vector<std::string> SplitList(std::string_view text);
// Returns the option's value in the form that SetPassOption reads, without the name.
std::string PassOptionText(const PassOptionRow& row, const PassOptions& options);

}  // namespace ingot::transform
