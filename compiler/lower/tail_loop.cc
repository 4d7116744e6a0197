// The registers of carried parameters are written by moves at the end of each turn.
#include "compiler/lower/tail_loop.h"

#include <algorithm>
#include <utility>

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

void TailLoop::Enter() {
  loop_registers_.resize(function_.params.size());
  for (size_t i = 0; i < function_.params.size(); ++i) {
    if (!tail_calls_.is_carried[i]) continue;
    const vm::RegisterId param = *operands_.ValueOf(function_.params[i].get()).reg;
    vm::Type type = builder_.type(param);
    const bool is_tensor = type.is_tensor();
    if (is_tensor) type.storage = vm::Storage::kOwned;
    const vm::RegisterId reg = builder_.AddRegister(std::move(type));
    if (is_tensor) {
      builder_.Copy(reg, param, 0);
    } else {
      builder_.Move(reg, param);
    }
    loop_registers_[i] = reg;
    operands_.Bind(function_.params[i], {reg, {}});
  }
  loop_ = builder_.NewLabel();
  builder_.Bind(*loop_);
}

// All arguments are computed before the first parameter is written, since an argument may read any parameter.
Status TailLoop::LowerBackEdge(const CallNode& call) {
  std::vector<std::pair<size_t, vm::RegisterId>> arguments;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.args[i].same_as(function_.params[i])) continue;
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId reg, operands_.Register(call.args[i]));
    arguments.emplace_back(i, reg);
  }
  for (auto& [i, reg] : arguments) {
    const auto is_written = [&, argument = reg](const auto& other) { return loop_registers_[other.first] == argument; };
    if (std::none_of(arguments.begin(), arguments.end(), is_written)) continue;
    const vm::RegisterId copy = builder_.AddRegister(vm::Type(builder_.type(reg)));
    builder_.Move(copy, reg);
    reg = copy;
  }
  for (const auto& [i, reg] : arguments) INGOT_RETURN_IF_ERROR(matching_.Assign(loop_registers_[i], reg));
  builder_.Jump(*loop_);
  return Status();
}

}  // namespace ingot::lower
