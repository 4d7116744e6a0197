// The options of single passes by name, "PASS.OPTION": what a command line or a configuration file sets, and the table
// that lists them.
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
  const char* summary;  // with the unit
  // Numbers are >= 0; a list is separated by commas.
  std::variant<int64_t PassOptions::*, bool PassOptions::*, std::vector<std::string> PassOptions::*> field;
};
std::span<const PassOptionRow> PassOptionTable();

// "fold_constants.max_bytes=1048576". Errors say what was expected and suggest a name.
Status SetPassOption(std::string_view assignment, PassOptions& options);
// "a,b" as its items; none of "".
std::vector<std::string> SplitList(std::string_view text);
// As SetPassOption takes it, without the name.
std::string PassOptionText(const PassOptionRow& row, const PassOptions& options);

}  // namespace ingot::transform
