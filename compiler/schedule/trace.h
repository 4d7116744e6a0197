// A trace: the primitives of a schedule in order, over handles, with the decisions that sampling instructions took. It
// prints as code and replays on another function of the same structure (other shapes, other names of variables).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/prim_expr.h"
#include "compiler/schedule/index_map.h"

namespace ingot::schedule {

// Handles stand for the blocks, loops and integers that instructions make and take. A handle is void when the present
// function has no such thing, for example the rest of a loop whose extent a tile divides; a primitive with a void
// argument does nothing and makes void handles, so that one trace fits shapes with and without it.
struct BlockRV {
  int32_t id = -1;
};
struct LoopRV {
  int32_t id = -1;
};
struct IntRV {  // a sampled integer
  int32_t id = -1;
};

struct PrimitiveRow;  // one row of the table in schedule.cc

// A PrimExpr is over the function's symbolic variables; replay takes the other function's variables of the same names.
using TraceValue = std::variant<std::monostate, BlockRV, LoopRV, IntRV, int64_t, std::string, ir::PrimExpr, IndexMap>;
struct Instruction {
  const PrimitiveRow* primitive = nullptr;
  std::vector<TraceValue> arguments;
  std::vector<TraceValue> outputs;  // handles
  std::vector<int64_t> decision;    // of sampling instructions
  std::vector<bool> is_void;        // for each output, in the function of the recording
  std::vector<std::string> blocks;  // names of the outputs of an instruction that makes any number of blocks
};

struct Trace {
  std::vector<Instruction> instructions;
  // One line per instruction: `l4, l5 = sch.split(l1, factors=[None, 8])`.
  std::string ToString() const;
  std::vector<std::string> PrimitiveNames() const;  // of the instructions, in order
};
// The names of all primitives that a trace may hold.
std::vector<std::string_view> PrimitiveNames();

}  // namespace ingot::schedule
