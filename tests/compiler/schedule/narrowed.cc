#include "tests/compiler/schedule/narrowed.h"

#include <regex>
#include <string>
#include <utility>

#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "runtime/check.h"

namespace ingot::schedule::testing {

ir::PrimFunc Narrowed(const ir::PrimFunc& function) {
  std::string text = script::PrintFunction("f", function);
  const std::pair<std::regex, const char*> replacements[] = {{std::regex("T\\.int64"), "T.int32"},
                                                             {std::regex("TypeVar\\(\"n\"\\)"), "T.int32()"}};
  for (const auto& [pattern, narrow] : replacements) text = std::regex_replace(text, pattern, narrow);
  const Result<ir::IRModule> module = script::ParseModule(text, "narrowed.py");
  INGOT_CHECK(module.ok(), module.status().message().c_str());
  return module->FindPrimFunc("f");
}

}  // namespace ingot::schedule::testing
