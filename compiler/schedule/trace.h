// A trace: the primitives of a schedule in order, over handles, with the decisions that sampling instructions took. It
// prints as code and replays on another function of the same structure (other shapes, other names of variables). The
// types of operands and results are those of the columns in primitives.def.
#pragma once

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
using Handle = std::variant<BlockRV, LoopRV, IntRV>;

// A list whose elements beyond its end are void, so that code after a refused primitive may index it. It is no
// std::vector and does not become one, since that would have to be indexed with care.
template <typename T>
class HandleList {
 public:
  using value_type = T;

  HandleList() = default;
  HandleList(std::initializer_list<T> handles) : handles_(handles) {}
  HandleList(std::vector<T> handles) : handles_(std::move(handles)) {}  // NOLINT(google-explicit-constructor)
  template <typename Iterator>
  HandleList(Iterator begin, Iterator end) : handles_(begin, end) {}

  T operator[](size_t i) const { return i < handles_.size() ? handles_[i] : T{}; }
  T front() const { return (*this)[0]; }
  T back() const { return empty() ? T{} : handles_.back(); }
  size_t size() const { return handles_.size(); }
  bool empty() const { return handles_.empty(); }
  auto begin() const { return handles_.begin(); }
  auto end() const { return handles_.end(); }
  void push_back(T handle) { handles_.push_back(std::move(handle)); }
  template <typename Predicate>
  friend void erase_if(HandleList& list, const Predicate& predicate) {
    std::erase_if(list.handles_, predicate);
  }

 private:
  std::vector<T> handles_;
};
using BlockRVs = HandleList<BlockRV>;
using LoopRVs = HandleList<LoopRV>;
using IntRVs = HandleList<IntRV>;
struct PartRVs {  // of a loop that was cut in two; at least one is not void
  LoopRV main, tail;
};

// ---- Operands. An instruction with a void operand does nothing; of a list, a void element counts as one.
// Blocks that are left out where they are void.
struct OptionalBlocks : BlockRVs {
  using BlockRVs::BlockRVs;
};
// The same; the operand is void where all of them are.
struct AtLeastOneBlock : BlockRVs {
  using BlockRVs::BlockRVs;
  AtLeastOneBlock(BlockRV block) : BlockRVs{block} {}  // NOLINT(google-explicit-constructor)
};
using BlockOrLoop = std::variant<BlockRV, LoopRV>;
using IntOrText = std::variant<int64_t, std::string>;
// A factor of split (at most one may be absent) or a place in a loop: an integer, a sampled one, or an expression over
// the function's symbolic variables; replay takes the other function's variables of the same names.
using Factor = std::variant<std::monostate, int64_t, IntRV, ir::PrimExpr>;
inline constexpr std::monostate kRest{};
// What a sampling instruction chose, or is to choose; empty, or one that does not fit: the default.
struct Decision {
  std::vector<int64_t> numbers;
  Decision() = default;
  Decision(int64_t number) : numbers{number} {}                          // NOLINT(google-explicit-constructor)
  Decision(std::vector<int64_t> chosen) : numbers(std::move(chosen)) {}  // NOLINT(google-explicit-constructor)
  Decision(std::initializer_list<int64_t> chosen) : numbers(chosen) {}
};

using Operand =
    std::variant<BlockRV, LoopRV, BlockOrLoop, LoopRVs, OptionalBlocks, AtLeastOneBlock, int64_t, std::vector<int64_t>,
                 std::string, IntOrText, Factor, std::vector<Factor>, IndexMap, Decision>;

enum class Primitive {
#define INGOT_PRIMITIVE(method, ...) k##method,
#include "compiler/schedule/primitives.def"
};

struct Instruction {
  Primitive primitive;
  std::vector<Operand> operands;
  std::vector<Handle> results;
  std::vector<bool> is_void;        // for each result, in the function of the recording
  std::vector<std::string> blocks;  // names of the results of an instruction that makes any number of blocks
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
