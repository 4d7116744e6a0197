// The table of rewrites, and what a compilation may do with it. Each algebraic rewrite is one row of rewrites.def: a
// name, what it does, its exactness class and its contract. A pattern is tried under the id of its row, if the
// permissions allow it, and each application is counted; rewrites that are passes of their own (weights, layouts) have
// rows for their contracts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::transform {

enum class Exactness : uint8_t { kBitwise, kRoundingOnly, kBounded, kByPermission };
std::string_view ExactnessName(Exactness exactness);  // "rounding_only"

enum class CarriedOutBy : uint8_t {
  kModule,   // the pass that applies it changes the module
  kKernels,  // code generation, later
};

enum class RewriteId : uint8_t {
#define INGOT_REWRITE(id, exactness, by, summary, contract) id,
#include "compiler/transform/rewrites.def"
  kCount
};
inline constexpr size_t kNumRewrites = static_cast<size_t>(RewriteId::kCount);

struct Rewrite {
  RewriteId id;
  std::string name;  // "add_zero" of kAddZero
  Exactness exactness;
  CarriedOutBy by;
  const char* summary;
  const char* contract;
  std::string_view group() const;  // of kByPermission: its group in --fast-math; otherwise ""
};
// In the order of rewrites.def, which is the order of RewriteId.
std::span<const Rewrite> RewriteTable();
const Rewrite& GetRewrite(RewriteId id);

// The table as --list-rewrites prints it.
std::string RewriteTableText();

// The user's permissions; the default permits all classes but `by permission`.
struct RewritePermissions {
  bool strict_math = false;            // only bitwise rewrites are applied
  std::vector<std::string> fast_math;  // permitted groups of `by permission` rewrites; "all": every group
};
// Errors name the existing groups.
Status CheckPermissions(const RewritePermissions& permissions);

// Records which rewrites a run of passes applied, how often, and to which operations.
class RewriteLog {
 public:
  void Count(RewriteId id) { ++counts_[static_cast<size_t>(id)]; }
  // Counts a rewrite of a call: its operator, and its place in the model.
  void Count(RewriteId id, const ir::CallNode& call, const ir::Span& span);
  void Count(RewriteId id, std::string operation, const ir::Span& span);
  int64_t count(RewriteId id) const { return counts_[static_cast<size_t>(id)]; }
  // Returns the loosest class that was applied to modules since `before`, a copy of this log; kBitwise if none was.
  // Rewrites that kernels carry out are not included.
  Exactness LoosestSince(const RewriteLog& before) const;
  // Returns a line for each rewrite: name, class, count, what it does.
  std::string ToString() const;

  struct Applied {
    RewriteId id;
    std::string operation;  // the operator that was replaced or changed: "multiply"
    std::string place;      // "model.onnx: node_Mul_3", "module.py:12:5"
  };
  // All applications, in order.
  const std::vector<Applied>& applied() const { return applied_; }
  // Returns what --explain prints: a line for each application, then ToString().
  std::string Explain() const;

 private:
  std::array<int64_t, kNumRewrites> counts_{};
  std::vector<Applied> applied_;
};

bool IsPermitted(RewriteId id, const RewritePermissions& permissions);

}  // namespace ingot::transform
