// Which operators read a weight in another layout than it was given, and how a call is rewritten to do so: one row per
// operator. transform/pack_weights.cc applies them; the packing consists of operators that fold, so that lift_params runs
// it at compile time. Where it keeps `prepare` in the file, what has a host routine is part of that; pack_bytes has
// none, so that bytes are packed at each call then. Layouts are the same for every CPU.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/op/registry.h"

namespace ingot::op {

// Columns in a panel of a packed matrix.
inline constexpr int64_t kPanelColumns = 16;

// Binds a call of the named operator to a new variable.
using EmitCall = std::function<Result<ir::Expr>(std::string_view op, std::vector<ir::Expr> args, ir::Attrs attrs)>;

struct PackingRow {
  const char* op;
  size_t weight;   // the argument to pack; it must depend on weights alone, and the others must not
  bool packs_any;  // an argument that is no weight is packed, too, at each call
  // The call over the packed weight; null where packing does not pay.
  Result<ir::Expr> (*pack)(const ir::Call& call, const EmitCall& emit);
  bool is_of_gpus = false;  // on a CPU the weight stays as it is, or convert_layout has laid it out
};
// Null when the operator takes its arguments as they are.
const PackingRow* FindPacking(const OpRow& row);

}  // namespace ingot::op
