// Accesses to memory and what is checked of each: alignment, bounds, the side that a pointer belongs to, that the bytes
// were written before, and races.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "tests/cuda_standin/executor.h"

namespace ingot::ptx {
namespace {

std::string HexOf(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

constexpr uint32_t kAtomicBit = 0x80000000u;  // of a clock: the access was atomic

}  // namespace

bool Warp::Addresses(const Instruction& i, uint32_t place, bool is_64, int64_t offset, uint32_t mask,
                     uint64_t* addresses) {
  static_cast<void>(i);
  if ((Computed(place) & mask) != mask) {
    Fail(std::countr_zero(mask & ~Computed(place)), "an address that was never computed");
    return false;
  }
  if (is_64) {
    const uint64_t* lanes = Lanes<uint64_t>(place);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = lanes[lane] + static_cast<uint64_t>(offset);
  } else {
    const uint32_t* lanes = Lanes<uint32_t>(place);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = lanes[lane] + static_cast<uint64_t>(offset);
  }
  return true;
}

// ---- races

bool Warp::IsOrdered(uint32_t thread, uint32_t clock, uint32_t me) const {
  if (thread == me) return true;
  clock &= ~kAtomicBit;
  if (thread >> 10 != me >> 10) return false;
  const auto warp = static_cast<int>((thread & 1023) >> 5);
  return clocks_[warp] > clock;
}

// Notes an access; false where it races, and then with whom.
inline bool Warp::Record(AccessRecord& record, Access access, int lane, const char** with, uint32_t* other) const {
  const uint32_t me = ThreadId(lane), now = clocks_[index_];
  const uint32_t first = block_.launch.first_clock;
  const auto live = [&](uint32_t clock) { return (clock & ~kAtomicBit) >= first; };
  if (!live(record.write_clock) && !live(record.read_clock)) {  // nobody was here in this launch
    record = AccessRecord{};
    if (access == Access::kRead) {
      record.reader = me, record.read_clock = now;
    } else {
      record.writer = me, record.write_clock = now | (access == Access::kAtomic ? kAtomicBit : 0);
    }
    return true;
  }
  const bool both_atomic = access == Access::kAtomic && (record.write_clock & kAtomicBit) != 0;
  if (live(record.write_clock) && !both_atomic && !IsOrdered(record.writer, record.write_clock, me)) {
    *with = "written", *other = record.writer;
    return false;
  }
  if (access == Access::kRead) {
    const bool first_live = live(record.read_clock) && !IsOrdered(record.reader, record.read_clock, me);
    if (first_live && record.reader != me) {
      record.other_reader = me, record.other_clock = now;
    } else {
      record.reader = me, record.read_clock = now;
    }
    return true;
  }
  if (live(record.read_clock) && !IsOrdered(record.reader, record.read_clock, me)) {
    *with = "read", *other = record.reader;
    return false;
  }
  if (live(record.other_clock) && !IsOrdered(record.other_reader, record.other_clock, me)) {
    *with = "read", *other = record.other_reader;
    return false;
  }
  record.writer = me;
  record.write_clock = now | (access == Access::kAtomic ? kAtomicBit : 0);
  return true;
}

static std::string Race(const char* what, const char* with, uint32_t other, uint64_t address, const char* space) {
  return StrCat({"a race: ", what, " ", space, " memory at ", HexOf(address), ", which thread ", other & 1023,
                 " of block ", other >> 10, " has ", with, " without a barrier between them"});
}
static const char* Verb(bool writes) { return writes ? "writes" : "reads"; }

// ---- the spaces

bool Warp::CheckShared(Access access, int lane, uint64_t offset, int size, uint8_t** pointer) {
  const auto extent = static_cast<uint64_t>(block_.shared.size());
  if (offset > extent || static_cast<uint64_t>(size) > extent - offset) {
    return Fail(lane, StrCat({"out of bounds: ", size, " bytes at byte ", HexOf(offset),
                              " of shared memory, which has ", extent})),
           false;
  }
  uint8_t* state = block_.shared_state.data() + offset;
  for (int k = 0; k < size; ++k) {
    if (state[k] == kNoObject)
      return Fail(lane, StrCat({"out of bounds: byte ", HexOf(offset), " of shared memory is in no variable"})), false;
    if (state[k] == kInFlight) return Fail(lane, "touches shared memory that a cp.async is still writing"), false;
    if (access != Access::kWrite && state[k] == kUnwritten) {
      return Fail(lane, StrCat({"reads shared memory at byte ", HexOf(offset), " that was never written"})), false;
    }
  }
  if (access != Access::kRead && !HideWrite(lane, static_cast<int64_t>(offset), size)) return false;
  if (access == Access::kWrite) std::memset(state, kWritten, static_cast<size_t>(size));
  if (block_.launch.check_races) {
    const int shift = block_.launch.granule_shift;
    const uint64_t last = (offset + static_cast<uint64_t>(size) - 1) >> shift;
    for (uint64_t cell = offset >> shift; cell <= last; ++cell) {
      const char* with = nullptr;
      uint32_t other = 0;
      if (!Record(block_.shared_records[cell], access, lane, &with, &other)) {
        return Fail(lane, Race(Verb(access != Access::kRead), with, other, offset, "shared")), false;
      }
    }
  }
  *pointer = block_.shared.data() + offset;
  return true;
}

bool Warp::CheckGlobal(const Instruction& i, Access access, int lane, uint64_t address, int size, uint8_t** pointer) {
  DeviceMemory& memory = *block_.launch.memory;
  MemoryBlock* block = i.hint_generation == memory.generation() ? i.hint : nullptr;
  if (block == nullptr || address - block->address >= static_cast<uint64_t>(block->size_bytes)) {
    block = memory.Find(address);
    if (block == nullptr) {
      if (address >= kSharedBase && address < kParamBase + kWindowBytes) {
        return Fail(lane, StrCat({"an address of another space, ", HexOf(address), ", where global memory is meant"})),
               false;
      }
      if (address < kDeviceBase || address >= kSharedBase) {
        return Fail(lane, StrCat({HexOf(address),
                                  address < 4096 ? " is null" : " is no address of device memory (a host pointer?)"})),
               false;
      }
      return Fail(lane,
                  StrCat({"out of bounds: ", size, " bytes at ", HexOf(address), " are in no block of device memory"})),
             false;
    }
    i.hint = block, i.hint_generation = memory.generation();
  }
  const uint64_t offset = address - block->address;
  if (static_cast<uint64_t>(size) > static_cast<uint64_t>(block->size_bytes) - offset) {
    return Fail(lane, StrCat({"out of bounds: ", size, " bytes at byte ", offset, " of a block of ", block->size_bytes,
                              " bytes"})),
           false;
  }
  uint8_t* written = block->written.data() + offset;
  if (access != Access::kWrite) {
    constexpr uint8_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const bool all_written =
        size == 4 ? std::memcmp(written, kOnes, 4) == 0 : std::memcmp(written, kOnes, static_cast<size_t>(size)) == 0;
    if (!all_written) {
      return Fail(lane, StrCat({"reads byte ", offset, " of a block of ", block->size_bytes,
                                " bytes, which was never written"})),
             false;
    }
  }
  if (access != Access::kRead) {
    if (block->is_constant) return Fail(lane, "writes constant memory"), false;
    if (!block->is_saved) {
      block->saved_data = block->data, block->saved_written = block->written;
      block->is_saved = true;
    }
    std::memset(written, 1, static_cast<size_t>(size));
  }
  if (block_.launch.check_races && !block->is_constant) {
    const int shift = block_.launch.granule_shift;
    if (block->records.empty()) {
      block->records.assign((static_cast<size_t>(block->size_bytes) >> shift) + 1, AccessRecord{});
    }
    const uint64_t last = (offset + static_cast<uint64_t>(size) - 1) >> shift;
    for (uint64_t cell = offset >> shift; cell <= last; ++cell) {
      const char* with = nullptr;
      uint32_t other = 0;
      if (!Record(block->records[cell], access, lane, &with, &other)) {
        return Fail(lane, Race(Verb(access != Access::kRead), with, other, address, "global")), false;
      }
    }
  }
  *pointer = block->data.data() + offset;
  return true;
}

bool Warp::CheckLocal(Access access, int lane, uint64_t offset, int size, uint8_t** pointer) {
  const auto stride = static_cast<uint64_t>(local_stride_);
  if (offset > stride || static_cast<uint64_t>(size) > stride - offset) {
    return Fail(lane, StrCat({"out of bounds: ", size, " bytes at byte ", HexOf(offset), " of local memory, which has ",
                              stride})),
           false;
  }
  const uint64_t at = stride * static_cast<uint64_t>(lane) + offset;
  uint8_t* written = local_written_.data() + at;
  if (access == Access::kRead && std::find(written, written + size, 0) != written + size) {
    return Fail(lane, "reads local memory that was never written"), false;
  }
  if (access != Access::kRead) std::fill_n(written, size, uint8_t{1});
  *pointer = local_.data() + at;
  return true;
}

bool Warp::CheckParam(Access access, int lane, uint64_t offset, int size, uint8_t** pointer) {
  Frame& frame = frames_.back();
  const auto extent = static_cast<uint64_t>(frame.program->param_bytes);
  if (offset > extent || static_cast<uint64_t>(size) > extent - offset) {
    return Fail(lane, StrCat({"out of bounds: ", size, " bytes at byte ", HexOf(offset), " of parameters, which have ",
                              extent})),
           false;
  }
  const uint64_t at = extent * static_cast<uint64_t>(lane) + offset;
  uint8_t* written = frame.params_written.data() + at;
  if (access == Access::kRead && std::find(written, written + size, 0) != written + size) {
    return Fail(lane, "reads a parameter that was never written"), false;
  }
  if (access != Access::kRead) std::fill_n(written, size, uint8_t{1});
  *pointer = frame.params.data() + at;
  return true;
}

// ---- the access

void Warp::CountAccess(Space space, uint32_t mask, int size, const uint64_t* addresses) {
  LaunchCounts& counts = block_.launch.counts;
  uint64_t units[kLanes * 2];
  size_t n = 0;
  if (space == Space::kGlobal || space == Space::kConst) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) != 0) units[n++] = addresses[lane] / 32;
    }
    std::sort(units, units + n);
    ++counts.global_requests;
    counts.global_sectors += (std::unique(units, units + n) - units) * std::max(1, size / 32);
    return;
  }
  // Lanes are served in groups of as many as 128 bytes hold; in a group each bank gives one word a pass.
  ++counts.shared_requests;
  const int lanes_at_once = std::max(1, std::min(kLanes, 128 / std::max(4, size)));
  for (int start = 0; start < kLanes; start += lanes_at_once) {
    uint64_t words[kLanes * 4];
    size_t count = 0;
    for (int lane = start; lane < start + lanes_at_once; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (int k = 0; k < std::max(1, size / 4); ++k) words[count++] = addresses[lane] / 4 + static_cast<uint64_t>(k);
    }
    if (count == 0) continue;
    std::sort(words, words + count);
    count = static_cast<size_t>(std::unique(words, words + count) - words);
    int64_t banks[32] = {}, passes = 0;
    for (size_t k = 0; k < count; ++k) passes = std::max(passes, ++banks[words[k] % 32]);
    counts.shared_wavefronts += passes;
  }
}

bool Warp::Locate(const Instruction& i, Space space, Access access, uint32_t mask, int size, const uint64_t* addresses,
                  uint8_t** pointers) {
  if (block_.launch.count_accesses && (space == Space::kGlobal || space == Space::kShared)) {
    CountAccess(space, mask, size, addresses);
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    uint64_t address = addresses[lane];
    if ((address & static_cast<uint64_t>(size - 1)) != 0) {
      return Fail(lane, StrCat({"misaligned: ", size, " bytes at ", HexOf(address)})), false;
    }
    Space where = space;
    if (space == Space::kGeneric) {
      where = Space::kGlobal;
      if (address - kSharedBase < kWindowBytes) where = Space::kShared, address -= kSharedBase;
      if (address - kLocalBase < kWindowBytes) where = Space::kLocal, address -= kLocalBase;
      if (address - kParamBase < kWindowBytes) where = Space::kParam, address -= kParamBase;
    }
    bool fine = false;
    switch (where) {
      case Space::kGeneric:
      case Space::kGlobal:
      case Space::kConst:
        fine = CheckGlobal(i, access, lane, address, size, &pointers[lane]);
        break;
      case Space::kShared:
        fine = CheckShared(access, lane, address, size, &pointers[lane]);
        break;
      case Space::kLocal:
        fine = CheckLocal(access, lane, address, size, &pointers[lane]);
        break;
      case Space::kParam:
        fine = CheckParam(access, lane, address, size, &pointers[lane]);
        break;
    }
    if (!fine) return false;
  }
  return true;
}

// ---- asynchronous copies: the bytes arrive at the wait, and until then nobody may touch where they go

void Warp::IssueCopy(AsyncCopy copy) {
  copy.group = copy_groups_[copy.lane];
  std::fill_n(block_.shared_state.begin() + copy.to, copy.size_bytes, kInFlight);
  copies_.push_back(copy);
}

void Warp::CommitCopies(uint32_t mask) {
  for (int lane = 0; lane < kLanes; ++lane) copy_groups_[lane] += mask >> lane & 1;
}

void Warp::WaitForCopies(uint32_t mask, uint64_t groups_left) {
  size_t kept = 0;
  for (size_t k = 0; k < copies_.size(); ++k) {
    const AsyncCopy copy = copies_[k];
    const bool waits = (mask >> copy.lane & 1) != 0;
    // Groups 0 .. open - 1 are committed; all but the latest `groups_left` of them are done.
    const bool done = waits && (groups_left == UINT64_MAX || copy.group + groups_left < copy_groups_[copy.lane]);
    if (!done) {
      copies_[kept++] = copy;
      continue;
    }
    std::memcpy(block_.shared.data() + copy.to, copy.data, static_cast<size_t>(copy.size_bytes));
    std::fill_n(block_.shared_state.begin() + copy.to, copy.size_bytes, kWritten);
    if (!block_.launch.check_races) continue;
    const int shift = block_.launch.granule_shift;
    for (int64_t cell = copy.to >> shift; cell <= (copy.to + copy.size_bytes - 1) >> shift; ++cell) {
      AccessRecord& record = block_.shared_records[static_cast<size_t>(cell)];
      record.writer = ThreadId(copy.lane);
      record.write_clock = clocks_[index_];
    }
  }
  copies_.resize(kept);
}

void Warp::Synchronize(uint32_t mask) {
  static_cast<void>(mask);
  ++clocks_[index_];
  block_.launch.clock = std::max(block_.launch.clock, clocks_[index_]);
}

}  // namespace ingot::ptx
