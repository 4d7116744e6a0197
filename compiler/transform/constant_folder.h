// Evaluates operator calls over constants by the rows' host routines (runtime/host_ops.h), which give equal bytes on
// every host, within a budget of result bytes and operations. What folding, and preparing weights at compile time,
// share.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/ir/expr.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {

class ConstantFolder {
 public:
  // The budget of operations is for all calls of this folder together.
  explicit ConstantFolder(const PassOptions& options) : options_(options) {}

  struct Outcome {
    ir::Constant value;  // null: left as it is
    std::string reason;  // why a call over constants was left; empty for a call that has other arguments
  };
  Outcome Fold(const ir::Call& call);

 private:
  const PassOptions& options_;
  int64_t operations_ = 0;  // spent
};

// True when every argument is known now: constants, shapes and scalars of constants, tuples of such.
bool IsConstantCall(const ir::Call& call);

}  // namespace ingot::transform
