// A function in the form that runs: instructions with a handler each, operands as places in the register file, branches
// with the instruction at which their lanes meet again.
//
// A register file is one block of memory per warp and call. Each register has 32 lanes side by side, so that a handler
// is a loop over an array; before them stands a mask of the lanes whose value was computed. Immediates and special
// registers are registers that are filled when the frame is made: a handler meets nothing else. A predicate is one
// mask.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_standin/ptx_module.h"

namespace ingot::ptx {

constexpr int kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

class Warp;
struct Instruction;
struct MemoryBlock;
using Handler = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask);

enum class Flow : uint8_t { kNext, kBranch, kIndexedBranch, kCall, kReturn, kExit, kBarrier };
enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::kNext;
  Rounding rounding = Rounding::kNearest;
  bool to_integer = false;  // .rni and the like
  bool ftz = false, sat = false, relu = false, nan = false, satfinite = false;
  uint8_t compare = 0, combine = 0;  // of setp and set: see ops_integer.cc
  uint8_t variant = 0;               // of a row: what its handler makes of it
  Space space = Space::kGeneric;
  uint8_t element_bytes = 0, elements = 1;  // of a memory access
  bool address_is_64 = true, address2_is_64 = true;
  bool guard_negated = false;
  uint8_t num_operands = 0;
  uint32_t guard = 0;               // register, zero without
  const uint32_t* r = nullptr;      // places of the operands, in the order of the row's signature; zero: left out
  const uint8_t* bytes = nullptr;   // per operand, how many bytes a lane of its register has (zero: predicate)
  int64_t offset = 0, offset2 = 0;  // added to the addresses
  int32_t target = -1;              // of a branch: an instruction; of a call: a function
  int32_t reconverge = -1;          // of a branch
  std::vector<int32_t> targets;     // of brx.idx
  std::vector<int32_t> returns, arguments;  // of a call: offsets of this frame's parameter variables
  std::vector<int32_t> sizes;               // and their sizes: returns, then arguments
  const Statement* statement = nullptr;
  mutable MemoryBlock* hint = nullptr;  // where the last access went
  mutable uint64_t hint_generation = 0;
  mutable uint64_t count = 0;  // how often it ran, by warps
};

// Registers that are filled when a frame is made.
struct Filling {
  enum class Kind : uint8_t { kConstant, kSpecial, kLocalAddress };
  Kind kind;
  uint8_t bytes;
  uint32_t place;
  uint64_t value;  // the constant, the number of the special register, the offset
};

struct Program {
  const Function* function = nullptr;
  std::vector<Instruction> instructions;
  std::vector<uint32_t> operand_pool;
  std::vector<uint8_t> operand_bytes;
  std::vector<Filling> fillings;
  int64_t register_file_bytes = 0;
  int64_t param_bytes = 0;  // parameters and those of the calls that it makes
  std::vector<int64_t> variable_offsets;
  int64_t local_bytes = 0;
  std::set<std::string> named_variables;  // of the module
  std::vector<int32_t> block_starts;      // of the basic blocks
};

// Where an immediate post-dominator is the end of the function, it is the number of its instructions.
void FindReconvergence(Program& program);

}  // namespace ingot::ptx
