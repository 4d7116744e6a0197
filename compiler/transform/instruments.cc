// Each instrument is a few lines of its callbacks; the loop that calls them is RunPasses (pipeline.cc).
#include "compiler/transform/instruments.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "compiler/op/verifier.h"
#include "compiler/script/printer.h"

namespace ingot::transform {

Status VerifyPasses::BeforePass(const Pass&, const ir::IRModule& module) {
  if (!std::exchange(is_first_, false)) return Status();
  return op::VerifyModule(module).WithContext("before");
}

Status VerifyPasses::AfterPass(const Pass&, const ir::IRModule& module, double) {
  return op::VerifyModule(module).WithContext("after");
}

Status TimePasses::AfterPass(const Pass& pass, const ir::IRModule&, double seconds) {
  seconds_.emplace_back(pass.name, seconds);
  return Status();
}

std::string TimePasses::ToString() const {
  double total = 0;
  for (const auto& [name, seconds] : seconds_) total += seconds;
  std::string text;
  for (const auto& [name, seconds] : seconds_) {
    char figures[48];
    std::snprintf(figures, sizeof figures, "%9.3f ms  %5.1f%%  ", seconds * 1e3, total > 0 ? seconds / total * 100 : 0);
    text += figures + name + "\n";
  }
  return text;
}

Status PrintPasses::AfterPass(const Pass& pass, const ir::IRModule& module, double) {
  const bool is_wanted = passes_.empty() || std::find(passes_.begin(), passes_.end(), pass.name) != passes_.end();
  if (is_wanted) out_ << "# after " << pass.name << "\n" << script::PrintModule(module) << "\n";
  return Status();
}

}  // namespace ingot::transform
