// Code: a function translated for interpretation. Variables and buffers are numbered, so that nothing is looked up by
// name while it runs. Vector values are computed lane by lane. Internal to compiler/interp.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/interp/machine.h"
#include "compiler/ir/expr.h"

namespace ingot::interp {

class ExprCode {
 public:
  virtual ~ExprCode() = default;
  // Returns the value of one lane (0 for scalars). The result is meaningless after a failure (machine.failed).
  virtual Cell Eval(Machine& machine, int lane) const = 0;
};
using ExprPtr = std::unique_ptr<ExprCode>;

class StmtCode {
 public:
  virtual ~StmtCode() = default;
  virtual void Run(Machine& machine) const = 0;
};
using StmtPtr = std::unique_ptr<StmtCode>;

// Numbers variables and buffers, and translates to code. Reports an error for what cannot be interpreted.
class Translator {
 public:
  ExprPtr Translate(const ir::PrimExpr& expr);
  StmtPtr Translate(const ir::Stmt& stmt);
  int DefineVar(const ir::PrimVar& var);
  int DefineBuffer(const ir::Buffer& buffer);
  int num_slots() const { return num_slots_; }
  int num_views() const { return static_cast<int>(views_.size()); }
  const Status& status() const { return status_; }

 private:
  void Fail(const std::string& message);
  int ViewOf(const ir::Buffer& buffer);
  std::vector<ExprPtr> TranslateAll(const std::vector<ir::PrimExpr>& exprs);
  ExprPtr TranslateBinary(const ir::BinaryNode& node);
  ExprPtr TranslateCall(const ir::PrimCallNode& node);
  StmtPtr TranslateRealize(const ir::BlockRealizeNode& node);

  std::unordered_map<const ir::PrimVarNode*, int> slots_;
  std::unordered_map<const ir::PrimExprNode*, const ExprCode*> let_vectors_;  // values of variables with lanes
  std::unordered_map<const ir::BufferNode*, int> views_;
  std::unordered_map<const ir::PrimVarNode*, ir::Buffer> by_data_;  // the buffer that was defined with it
  int num_slots_ = 0;
  Status status_;
};

}  // namespace ingot::interp
