// Weights that whoever opens the executable may replace. The compiler must not learn anything from their elements: it
// would fold them, share two that happen to be equal, or match one that happens to be all ones, and the program would
// be wrong for other elements. So passes see stand-ins: noise, different for every weight, and the bytecode gets the
// weights' own bytes at the end. What passes do to noise they do for every value.
//
// Weights are the named constants of floating point or of 8 bits with more than one element, where the name stands for
// one constant alone; scalars and tables of indices keep their meaning for the compiler, and cannot be replaced.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"
#include "vm/program.h"

namespace ingot::driver {

class StandInWeights {
 public:
  // The module with stand-ins in the place of its weights.
  ir::IRModule Hide(const ir::IRModule& module);
  // The module with the weights where their stand-ins are: what a user is to see of it.
  ir::IRModule Reveal(const ir::IRModule& module) const;
  // The weights' bytes where their stand-ins are, and Program::weights.
  void Restore(vm::Program& program) const;

 private:
  using ConstantDataPtr = std::shared_ptr<const ir::ConstantData>;
  struct Weight {
    std::string name;
    ConstantDataPtr data;
  };
  class Revealer;
  ConstantDataPtr MakeStandIn(const ir::ConstantData& weight);

  std::shared_ptr<std::vector<std::byte>> noise_;         // every stand-in is a part of it
  size_t next_ = 0;                                       // where the next one begins
  std::unordered_map<uint64_t, bool> hashes_;             // of the stand-ins, which all differ
  std::unordered_map<const std::byte*, Weight> weights_;  // by where the stand-in begins
};

}  // namespace ingot::driver
