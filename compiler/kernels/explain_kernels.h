// Why kernels are as fast as they are: how the rules scheduled each one, what kept the rules before away, and what it
// is expected to take. vm-compile --explain prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/predict_cost.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::kernels {

struct DeclinedRule {
  std::string rule, why;
  bool is_of_other_kind = false;  // the rule is for other kinds of blocks
};

// What one rule scheduled together, or a block that no rule took.
struct ScheduledPart {
  std::string rule;                    // empty: none
  std::string block;                   // that it was asked about
  std::string layout;                  // how the rule takes the tensors to lie
  std::vector<DeclinedRule> declined;  // the rules that were asked before, in their order
  double stores = 0;                   // elements, at the likely sizes; 0: it is inlined into other blocks
  int lanes = 1;                       // of its widest vectors, in elements of what it stores
  bool is_parallel = false;            // or in the threads of a device

  // Whether it runs as its loops say, element by element on one thread.
  bool is_serial_scalar() const { return stores > 0 && lanes == 1 && !is_parallel; }
};

struct KernelExplanation {
  std::string name;
  std::string target;
  std::string left_alone;  // why no rule was asked; empty: they were
  std::vector<ScheduledPart> parts;
  double flops = 0, bytes = 0;             // of a call, at the likely sizes
  bool is_symbolic = false;                // the sizes depend on symbols, each of which counts as kLikelySize
  std::optional<PredictedCost> predicted;  // of a CPU alone
};

// All tensor functions of a module, in its order, for one record of the target.
Result<std::vector<KernelExplanation>> ExplainKernels(const ir::IRModule& module, const Target& target);

// A few lines for each.
std::string ExplanationText(const std::vector<KernelExplanation>& kernels);

}  // namespace ingot::kernels
