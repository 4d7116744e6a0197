// Runs one launch in one order of warps: blocks one after the other, in each its warps in turns. Handlers of
// instructions see a Warp; what goes wrong is said once, by Warp::Fail, and ends the launch.
//
// Who is ordered after whom is kept in clocks: each warp counts its barriers and warp synchronisations, and knows of
// each warp of its block up to which count it is ordered after it (a vector clock, joined at barriers). Two accesses of
// different threads race if neither is ordered after the other and one of them writes; atomics do not race with each
// other. Blocks of a launch are never ordered.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_standin/device_memory.h"
#include "tests/cuda_standin/program.h"

namespace ingot::ptx {

enum class WarpOrder : uint8_t { kLowestFirst, kHighestFirst, kInTurns, kRandom };
const char* WarpOrderName(WarpOrder order);

struct LaunchConfig {
  int64_t grid[3] = {1, 1, 1};
  int64_t block[3] = {1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic
};

// What one order of a launch did.
struct LaunchCounts {
  int64_t thread_instructions = 0, warp_instructions = 0;
  int64_t global_requests = 0, global_sectors = 0;     // warp accesses and the 32-byte sectors that they touched
  int64_t shared_requests = 0, shared_wavefronts = 0;  // warp accesses and the passes that bank conflicts make of them
  int64_t matrix_work = 0;                             // of mma.sync: multiply-adds, in the time of one of 16 bits
  int64_t float_atomics = 0;
};

class Launch;

// Shared memory of a block: variables with gaps between them, so that an index that runs out of one of them meets none
// of the others, and then the dynamic part of the launch.
struct SharedLayout {
  std::vector<std::pair<int64_t, int64_t>> objects;  // offset and size
  int64_t static_bytes = 0;                          // as counted against the limit, without gaps
  int64_t extent = 0;                                // where the dynamic part begins
};

struct Frame {
  const Program* program = nullptr;
  std::vector<uint64_t> file;  // the register file, in words so that it is aligned
  uint8_t* registers = nullptr;
  std::vector<uint8_t> params, params_written;  // per lane
  int64_t local_base = 0;
  uint32_t mask = 0;  // lanes that called
  struct Path {
    int32_t at, meet;
    uint32_t mask;
  };
  std::vector<Path> paths;  // the last one runs
  const Instruction* call = nullptr;
};

struct AsyncCopy {
  int lane;
  uint64_t group;
  int64_t to;
  int64_t size_bytes;
  uint8_t data[16];
};

class Block;

class Warp {
 public:
  Warp(Block& block, int index, uint32_t lanes) : block_(block), index_(index), alive_(lanes), lanes_(lanes) {}

  // ---- for handlers
  template <typename T>
  T* Lanes(uint32_t place) const {
    return reinterpret_cast<T*>(registers_ + place);
  }
  uint32_t& Predicate(uint32_t place) const { return *reinterpret_cast<uint32_t*>(registers_ + place); }
  uint32_t& Computed(uint32_t place) const { return *reinterpret_cast<uint32_t*>(registers_ + place - 4); }
  void SetComputed(uint32_t place, uint32_t mask, uint32_t computed) const {
    uint32_t& word = Computed(place);
    word = (word & ~mask) | (computed & mask);
  }
  uint32_t alive() const { return alive_; }
  uint32_t lanes() const { return lanes_; }
  void Fail(int lane, const std::string& what);
  // The addresses of an access by lane; false when a lane's address was never computed.
  bool Addresses(const Instruction& i, uint32_t place, bool is_64, int64_t offset, uint32_t mask, uint64_t* addresses);
  // Checks an access of `size` bytes per lane and finds its bytes on the host.
  enum class Access : uint8_t { kRead, kWrite, kAtomic };
  bool Locate(const Instruction& i, Space space, Access access, uint32_t mask, int size, const uint64_t* addresses,
              uint8_t** pointers);
  void IssueCopy(AsyncCopy copy);
  void CommitCopies(uint32_t mask);
  void WaitForCopies(uint32_t mask, uint64_t groups_left);
  void Synchronize(uint32_t mask);  // bar.warp.sync
  // ---- wgmma: ops_group_matrix.cc
  // One that is not waited for: the registers that it has, what it leaves there, and the 16 bytes of shared memory that
  // it reads.
  struct Product {
    std::vector<uint32_t> sums;
    std::vector<float> values;
    std::vector<int64_t> reads;
    uint64_t group = 0;
    std::vector<bool> is_read;  // by 16 bytes
  };
  // False: it may not run. `key` is the same for the four warps.
  bool BeginProduct(const Product& product, uint64_t key, bool adds);
  uint8_t* ReadForProduct(Product& product, int64_t place);  // null: it may not be read
  void EndProduct(Product product);
  void FenceProducts() { products_fenced_ = true; }
  void CommitProducts() { ++product_group_; }
  void WaitForProducts(uint64_t groups_left);
  void ShowWrites(uint32_t mask);  // fence.proxy.async
  int index() const { return index_; }
  uint64_t SpecialLane(int number, int lane) const;
  Block& block() { return block_; }
  const Frame& frame() const { return frames_.back(); }
  Launch& launch();

  // ---- for the block
  void Enter(const Program& program, uint32_t mask);
  // Runs until a barrier, the end or so many instructions.
  void Run(int64_t budget);
  bool finished() const { return frames_.empty(); }
  bool waiting() const { return waiting_; }

 private:
  friend class Block;
  bool Step();
  void TakeBranch(const Instruction& instruction, int32_t at, uint32_t taken, uint32_t mask);
  void TakeIndexedBranch(const Instruction& instruction, int32_t at, uint32_t mask);
  void Leave(uint32_t mask, bool whole_thread);
  void Call(const Instruction& instruction, uint32_t mask);
  void ArriveAtBarrier(const Instruction& instruction, uint32_t mask);
  void Fill(Frame& frame);
  uint32_t ThreadId(int lane) const;
  bool IsOrdered(uint32_t thread, uint32_t clock, uint32_t me) const;
  bool Record(AccessRecord& record, Access access, int lane, const char** with, uint32_t* other) const;
  bool CheckShared(Access access, int lane, uint64_t offset, int size, uint8_t** pointer);
  bool CheckGlobal(const Instruction& i, Access access, int lane, uint64_t address, int size, uint8_t** pointer);
  bool CheckLocal(Access access, int lane, uint64_t offset, int size, uint8_t** pointer);
  bool CheckParam(Access access, int lane, uint64_t offset, int size, uint8_t** pointer);
  void CountAccess(Space space, uint32_t mask, int size, const uint64_t* addresses);

  Block& block_;
  int index_;
  uint32_t alive_, lanes_;
  uint8_t* registers_ = nullptr;
  std::vector<Frame> frames_;
  uint32_t clocks_[32] = {};
  std::vector<uint8_t> local_, local_written_;  // per lane, local_stride_ apart
  int64_t local_stride_ = 0;
  std::vector<AsyncCopy> copies_;
  uint64_t copy_groups_[32] = {};  // per lane: the open group
  struct SharedWrite {
    int lane;
    int64_t offset;
    int size_bytes;
  };
  bool IsInProduct(uint32_t place) const;
  bool HasRegisters(const Product& product) const;  // nobody has written them
  bool HideWrite(int lane, int64_t offset, int size);
  uint16_t NumberOf(int lane) const { return static_cast<uint16_t>(index_ * kLanes + lane + 1); }
  std::vector<Product> products_;
  uint64_t product_group_ = 0;  // the open one
  size_t num_products_ = 0;     // that were started
  bool products_fenced_ = false;
  std::vector<SharedWrite> hidden_;  // that wgmma does not see yet
  bool waiting_ = false;
  int barrier_ = -1;
  int64_t barrier_threads_ = 0;
  const Instruction* at_barrier_ = nullptr;
  uint32_t barrier_value_ = 0;  // of bar.red: lanes whose predicate is set
  const Instruction* current_ = nullptr;
};

// State of a byte of shared memory.
enum SharedByte : uint8_t { kUnwritten = 0, kWritten = 1, kInFlight = 2, kNoObject = 3 };

class Block {
 public:
  Block(Launch& launch, const int64_t index[3], int64_t linear);
  void Run();

  Launch& launch;
  int64_t index[3];
  int64_t linear;
  std::vector<uint8_t> shared, shared_state;
  std::vector<AccessRecord> shared_records;
  // Where the program has wgmma: by byte, the thread (from 1 on) whose write it does not see yet; by 16 bytes, how many
  // of them may still read; by group of four warps, what each wgmma is.
  std::vector<uint16_t> hidden_writes, product_reads;
  std::vector<std::vector<uint64_t>> product_keys;
  std::vector<Warp> warps;
  bool OpenBarriers();

 private:
  friend class Warp;
  void ReportDeadlock();
  void CheckProductsEnded();
};

// One order of one launch.
class Launch {
 public:
  const Program* program = nullptr;
  const std::vector<Program>* programs = nullptr;
  DeviceMemory* memory = nullptr;
  const SharedLayout* shared_layout = nullptr;
  LaunchConfig config;
  std::vector<uint8_t> params;
  WarpOrder order = WarpOrder::kLowestFirst;
  uint64_t random = 0;
  bool check_races = true;
  bool count_accesses = false;
  int granule_shift = 2;                // 1 << this: bytes per record; no access of the program is narrower
  uint32_t first_clock = 1, clock = 1;  // clock: above all that were used
  int64_t instruction_limit = int64_t{1} << 40;
  int sm = 80;

  bool failed = false;
  std::string error;
  LaunchCounts counts;
  void Run();
  uint64_t NextRandom() {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
  }
};

}  // namespace ingot::ptx
