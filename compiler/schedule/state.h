// ScheduleState: the function under schedule. The root block holds nests of loops over leaf blocks; a block is named by
// its (unique) name, a loop by its variable, so handles survive the rewriting of everything around them. Primitives
// (primitives.h) find a place here, check that a change is legal, and replace a statement; nothing is cached.
//
// Invariant kept by every primitive: for each regular block and each loop around it, either different iterations run
// different instances of the block (at most one of them runs each instance), or what the block writes is read only
// inside of the loop (compute_at moved it there, and each iteration makes what it needs itself).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/tensor_intrin.h"
#include "runtime/status.h"

namespace ingot::schedule {

using For = ir::Ref<ir::ForNode>;
using BlockRealize = ir::Ref<ir::BlockRealizeNode>;

// A leaf block and the loops around it, outermost first.
struct BlockSite {
  BlockRealize realize;
  std::vector<For> loops;
  const ir::BlockNode& block() const { return *realize->block; }
};
// A loop and the loops around it, outermost first.
struct LoopSite {
  For loop;
  std::vector<For> outer;
};

class ScheduleState {
 public:
  // The function's body must be a root block without iteration variables. Blocks of equal names are renamed.
  static Result<ScheduleState> Create(ir::PrimFunc function, std::vector<TensorIntrin> intrinsics = {});

  const ir::PrimFunc& function() const { return function_; }
  const ir::BlockNode& root() const;
  const ir::Stmt& body() const { return root().body; }

  Result<BlockSite> FindBlock(std::string_view name) const;
  Result<LoopSite> FindLoop(const ir::PrimVar& var) const;
  // Leaf blocks in order of execution: of the function, or below one of its statements (loops counted from there).
  std::vector<BlockSite> Blocks() const { return BlocksIn(body()); }
  static std::vector<BlockSite> BlocksIn(const ir::Stmt& stmt);
  // A block is regular when, in the original function, it had a nest of loops for itself and its iteration variables
  // were bound to them one to one. Only regular blocks are restructured.
  bool IsRegular(std::string_view block) const { return irregular_.count(std::string(block)) == 0; }
  // compute_at moved the block: iterations around it may run the same instances again.
  bool IsRecomputed(std::string_view block) const { return recomputed_.count(std::string(block)) != 0; }
  void MarkRecomputed(std::string block) { recomputed_.insert(std::move(block)); }
  // A registered or built-in intrinsic; null where there is none of the name.
  TensorIntrin FindIntrinsic(std::string_view name) const;
  // The block that writes the buffer, if exactly one does.
  std::optional<BlockSite> OnlyWriter(const ir::Buffer& buffer) const;
  std::vector<BlockSite> Readers(const ir::Buffer& buffer) const;
  // Whether the buffer is an intermediate (not a parameter).
  bool IsAllocated(const ir::Buffer& buffer) const;

  // Replaces the very node `old` inside the root block; null removes it with the loops that it leaves empty.
  void Replace(const ir::Stmt& old, ir::Stmt replacement);
  void SetBody(ir::Stmt body);
  void ReplaceBuffer(const ir::Buffer& old, const ir::Buffer& replacement);  // everywhere
  void AddBuffer(ir::Buffer buffer);
  void RemoveBuffer(const ir::Buffer& buffer);
  // hint, or hint_1, hint_2, ...: the first that no block (buffer) has as its name.
  std::string FreshBlockName(const std::string& hint) const;
  std::string FreshBufferName(const std::string& hint) const;

  // An analyzer that knows the ranges of the loops.
  static arith::Analyzer MakeAnalyzer(const std::vector<For>& loops);

 private:
  void SetRoot(ir::BlockNode root);

  ir::PrimFunc function_;
  std::unordered_set<std::string> irregular_, recomputed_;
  std::vector<TensorIntrin> intrinsics_;
};

// ---- Small questions about expressions and statements.
bool UsesVar(const ir::PrimExpr& expr, const ir::PrimVar& var);
bool UsesAnyVar(const ir::PrimExpr& expr, const std::vector<ir::PrimVar>& vars);
bool IsTrue(const ir::PrimExpr& condition);
bool WritesTo(const ir::BlockNode& block, const ir::Buffer& buffer);
bool ReadsFrom(const ir::BlockNode& block, const ir::Buffer& buffer);
// a && b; the other one where one is the constant true.
ir::PrimExpr Both(ir::PrimExpr a, ir::PrimExpr b);
// For messages: block "C" under loops i (n), j (16).
std::string Describe(const BlockSite& site);
std::string Describe(const LoopSite& site);
// The failure of a primitive: `split: loop j (16) around block "C": <what>`.
Status Refuse(const std::string& primitive, const std::string& place, const std::string& what);

}  // namespace ingot::schedule
