// The state of one interpretation: variables, buffers with the last writer and reader of each element, and the tree of
// parallel iterations. Internal to compiler/interp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/stmt.h"
#include "runtime/data_type.h"
#include "runtime/status.h"

namespace ingot::interp {

// One lane of a value: `f` for floating dtypes, else `i` (bool: 0 or 1; uint64: the bits).
union Cell {
  int64_t i;
  double f;
};
inline Cell IntCell(int64_t value) {
  Cell cell;
  cell.i = value;
  return cell;
}
inline Cell FloatCell(double value) {
  Cell cell;
  cell.f = value;
  return cell;
}
Cell CellFromBits(DataType dtype, uint64_t bits);
uint64_t CellToBits(DataType dtype, Cell cell);

// Where in the tree of parallel loops an access happens. A node is one iteration of one execution of a parallel loop,
// inside its parent's iteration; node 1 is outside of all loops. Two accesses are unordered if their paths split into
// two iterations of the same execution. kAny stands for several iterations at once.
class Contexts {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = 0;
  static constexpr Id kRoot = 1;

  Contexts() : nodes_{{kNone, 0, 0, 0}, {kNone, 0, 0, 0}} {}
  uint32_t NewExecution() { return ++num_executions_; }
  Id Enter(Id parent, uint32_t execution, int64_t iteration) {
    nodes_.push_back({parent, nodes_[parent].depth + 1, execution, iteration});
    return static_cast<Id>(nodes_.size() - 1);
  }
  bool Unordered(Id a, Id b) const { return a != b && Part(a, b).has_value(); }
  // Returns a node that stands for both readers: the later one if they are ordered.
  Id Join(Id earlier, Id later);

 private:
  static constexpr int64_t kAny = -1;
  struct Node {
    Id parent;
    uint32_t depth;
    uint32_t execution;
    int64_t iteration;
  };
  // The two nodes below the last common node of two unordered accesses.
  struct Parting {
    Id a, b;
  };
  std::optional<Parting> Part(Id a, Id b) const;

  std::vector<Node> nodes_;
  uint32_t num_executions_ = 0;
};

// The elements of one buffer, and for each element its last writer and reader.
class Storage {
 public:
  Storage(DataType dtype, int64_t num_elements);  // own bytes, nothing written
  Storage(DataType dtype, int64_t num_elements, std::span<std::byte> bytes, bool initialized);  // the caller's
  int64_t num_elements() const { return static_cast<int64_t>(writers_.size()); }
  Cell Load(int64_t element) const;
  void Store(int64_t element, Cell value);
  Contexts::Id& writer(int64_t element) { return writers_[static_cast<size_t>(element)]; }
  Contexts::Id& reader(int64_t element) { return readers_[static_cast<size_t>(element)]; }

 private:
  DataType dtype_;
  std::vector<std::byte> own_;
  std::span<std::byte> bytes_;
  std::vector<Contexts::Id> writers_, readers_;  // kNone: nobody yet
};

// A buffer as it is bound at the moment: a storage, or a region of one.
struct View {
  std::shared_ptr<Storage> storage;
  int64_t offset = 0;
  std::vector<int64_t> dims, strides;  // in elements
};

struct Machine {
  InterpretOptions options;
  std::vector<Cell> slots;  // variables, one per lane
  Cell& lane_slot(int slot, int lane) { return slots[static_cast<size_t>(slot) + static_cast<size_t>(lane)]; }
  std::vector<View> views;
  Contexts contexts;
  Contexts::Id context = Contexts::kRoot;
  const std::string* block = nullptr;  // innermost block's name
  std::vector<bool> mask;              // lanes whose stores count; empty: all
  int64_t steps = 0;
  Status status;
  bool failed = false;

  // Records the first failure, with the block in which it happened.
  void Fail(StatusCode code, const std::string& message);
  void Fail(const std::string& message) { Fail(StatusCode::kFailed, message); }
  // Counts a statement; false when the budget is used up or something failed.
  bool Step();
  Cell Read(const ir::BufferNode& buffer, int view, std::span<const int64_t> indices);
  void Write(const ir::BufferNode& buffer, int view, std::span<const int64_t> indices, Cell value);
  // Makes a new storage for dims (strides empty: compact).
  std::optional<View> Allocate(const ir::BufferNode& buffer, std::vector<int64_t> dims, std::vector<int64_t> strides,
                               int64_t offset);

 private:
  int64_t ElementOf(const ir::BufferNode& buffer, const View& view, std::span<const int64_t> indices, const char* what);
};

// The compact, row-major strides of dims; nothing if the number of elements overflows or a dimension is negative.
std::optional<std::vector<int64_t>> CompactStrides(std::span<const int64_t> dims);
std::optional<int64_t> NumElements(std::span<const int64_t> dims);
std::string IndicesText(std::span<const int64_t> indices);

}  // namespace ingot::interp
