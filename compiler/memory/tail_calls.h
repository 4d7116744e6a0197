// Self tail calls: where a graph function ends by calling itself, its frame is used again. Such a call writes the
// parameters anew and jumps back to the function's beginning, so that a loop written as recursion (Loop and Scan of
// ONNX, while loops) runs in constant space and is a back edge in bytecode.
//
// A symbol of the signature keeps its value for a whole activation: a call that would change one (an argument whose
// dims are not the parameter's) is an ordinary call.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::memory {

struct TailCalls {
  std::unordered_set<const ir::CallNode*> calls;
  std::vector<bool> is_carried;  // per parameter: some call passes another value than the parameter itself
  bool Contains(const ir::Expr& value) const;
};

// name: of the function in its module.
TailCalls FindTailCalls(std::string_view name, const ir::Function& function);

// The last binding of a sequence when the sequence's result is its variable; null otherwise. An If or a call there is
// in tail position when the sequence is.
const ir::Binding* TailBinding(const ir::SeqExprNode& seq);

}  // namespace ingot::memory
