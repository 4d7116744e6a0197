// Weights that a user of the executable may replace. The compiler must not learn anything from their elements:
// otherwise it would fold them, share two that happen to be equal, or match one that happens to be all ones, and the
// program would be wrong for other elements. So passes see stand-ins: noise, different for every weight. The bytecode
// gets the weights' own bytes at the end. What passes do to noise is right for all values.
//
// Weights are the named constants of floating point or of 8 bits with more than one element, if no other constant has
// the name. Scalars and tables of indices keep their elements for the compiler, and cannot be replaced.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"
#include "vm/program/program.h"

namespace ingot::driver {

class StandInWeights {
 public:
  // Returns the module with stand-ins in place of its weights.
  ir::IRModule Hide(const ir::IRModule& module);
  // Returns the module with weights in place of their stand-ins, as a user should see it.
  ir::IRModule Reveal(const ir::IRModule& module) const;
  // Puts the weights' bytes in place of their stand-ins, and fills Program::weights.
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
