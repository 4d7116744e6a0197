// What lanes do together: shuffles, votes, matches, reductions and warp synchronisation; and the rows of control flow,
// which the executor runs itself.
#include <bit>

#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

// The member mask of a .sync instruction: each lane gives the same one, it is in it, and every lane in it that still
// runs is here.
bool CheckMembers(Warp& w, uint32_t place, uint32_t mask, uint32_t* members) {
  const uint32_t missing = mask & ~w.Computed(place);
  if (missing != 0) return w.Fail(std::countr_zero(missing), "a member mask that was never computed"), false;
  const uint32_t* masks = w.Lanes<uint32_t>(place);
  *members = masks[std::countr_zero(mask)];
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (masks[lane] != *members) return w.Fail(lane, "lanes give different member masks"), false;
    if ((*members >> lane & 1) == 0) return w.Fail(lane, "a lane that is not in its member mask"), false;
  }
  const uint32_t absent = *members & w.alive() & ~mask;
  if (absent != 0) return w.Fail(std::countr_zero(absent), "a lane of the member mask is elsewhere"), false;
  return true;
}

void SetLanes(Warp& w, uint32_t place, uint32_t mask, uint32_t value, uint32_t computed) {
  uint32_t* d = w.Lanes<uint32_t>(place);
  ForLanes(mask, [=](int lane) { d[lane] = value; });
  w.SetComputed(place, mask, computed);
}
void SetPredicateLanes(Warp& w, uint32_t place, uint32_t mask, uint32_t value, uint32_t computed) {
  uint32_t& d = w.Predicate(place);
  d = (d & ~mask) | (value & mask);
  w.SetComputed(place, mask, computed);
}

enum ShuffleKind : uint8_t { kUp, kDown, kButterfly, kIndex };
// Operands: d, p, a, b, c, members.
void Shuffle(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[5], mask, &members)) return;
  uint32_t source[kLanes], result[kLanes], in_range = 0, computed = 0;
  const uint32_t *a = w.Lanes<uint32_t>(i.r[2]), *b = w.Lanes<uint32_t>(i.r[3]), *c = w.Lanes<uint32_t>(i.r[4]);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t clamp = c[lane] & 31, segment = c[lane] >> 8 & 31, amount = b[lane] & 31;
    const uint32_t highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    uint32_t from = 0;
    bool fits = false;
    switch (static_cast<ShuffleKind>(i.variant)) {
      case kUp:
        from = lane - amount, fits = static_cast<int32_t>(from) >= static_cast<int32_t>(highest);
        break;
      case kDown:
        from = lane + amount, fits = from <= highest;
        break;
      case kButterfly:
        from = lane ^ amount, fits = from <= highest;
        break;
      case kIndex:
        from = lowest | (amount & ~segment), fits = from <= highest;
        break;
    }
    source[lane] = fits ? from : lane;
    in_range |= static_cast<uint32_t>(fits) << lane;
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t from = source[lane] & 31;
    result[lane] = a[from];
    // A lane that does not take part has no value to give.
    computed |= ((w.Computed(i.r[2]) & mask & members) >> from & 1) << lane;
  }
  computed &= w.Computed(i.r[3]) & w.Computed(i.r[4]);
  uint32_t* d = w.Lanes<uint32_t>(i.r[0]);
  ForLanes(mask, [&](int lane) { d[lane] = result[lane]; });
  w.SetComputed(i.r[0], mask, computed);
  if (i.r[1] != 0) SetPredicateLanes(w, i.r[1], mask, in_range, w.Computed(i.r[3]) & w.Computed(i.r[4]));
}

enum VoteKind : uint8_t { kAll, kAny, kUniform, kBallot };
// Operands: d, a, members.
void Vote(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[2], mask, &members)) return;
  const uint32_t votes = w.Predicate(i.r[1]) & mask;
  const uint32_t computed = (w.Computed(i.r[1]) & mask) == mask ? kAllLanes : 0;
  switch (static_cast<VoteKind>(i.variant)) {
    case kAll:
      return SetPredicateLanes(w, i.r[0], mask, votes == mask ? kAllLanes : 0, computed);
    case kAny:
      return SetPredicateLanes(w, i.r[0], mask, votes != 0 ? kAllLanes : 0, computed);
    case kUniform:
      return SetPredicateLanes(w, i.r[0], mask, votes == 0 || votes == mask ? kAllLanes : 0, computed);
    case kBallot:
      return SetLanes(w, i.r[0], mask, votes, computed);
  }
}

// match.any: operands d, a, members.
template <typename T>
void MatchAny(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[2], mask, &members)) return;
  const T* a = w.Lanes<T>(i.r[1]);
  uint32_t* d = w.Lanes<uint32_t>(i.r[0]);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    uint32_t equal = 0;
    for (int other = 0; other < kLanes; ++other)
      equal |= (mask >> other & 1) != 0 && a[other] == a[lane] ? 1u << other : 0;
    d[lane] = equal;
  }
  w.SetComputed(i.r[0], mask, (w.Computed(i.r[1]) & mask) == mask ? kAllLanes : 0);
}
// match.all: operands d, p, a, members.
template <typename T>
void MatchAll(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[3], mask, &members)) return;
  const T* a = w.Lanes<T>(i.r[2]);
  bool equal = true;
  for (int lane = 0; lane < kLanes; ++lane) equal &= (mask >> lane & 1) == 0 || a[lane] == a[std::countr_zero(mask)];
  const uint32_t computed = (w.Computed(i.r[2]) & mask) == mask ? kAllLanes : 0;
  SetLanes(w, i.r[0], mask, equal ? mask : 0, computed);
  if (i.r[1] != 0) SetPredicateLanes(w, i.r[1], mask, equal ? kAllLanes : 0, computed);
}

enum ReduceKind : uint8_t { kSum, kMin, kMax, kAndBits, kOrBits, kXorBits };
template <typename T>
void Reduce(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[2], mask, &members)) return;
  const T* a = w.Lanes<T>(i.r[1]);
  bool first = true;
  T result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const T x = a[lane];
    switch (static_cast<ReduceKind>(i.variant)) {
      case kSum:
        result = static_cast<T>(static_cast<uint32_t>(result) + static_cast<uint32_t>(x));
        break;
      case kMin:
        result = first || x < result ? x : result;
        break;
      case kMax:
        result = first || x > result ? x : result;
        break;
      case kAndBits:
        result = first ? x : result & x;
        break;
      case kOrBits:
        result |= x;
        break;
      case kXorBits:
        result ^= x;
        break;
    }
    first = false;
  }
  SetLanes(w, i.r[0], mask, static_cast<uint32_t>(result), (w.Computed(i.r[1]) & mask) == mask ? kAllLanes : 0);
}

void ActiveMask(Warp& w, const Instruction& i, uint32_t mask) { SetLanes(w, i.r[0], mask, mask, kAllLanes); }
void WarpBarrier(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (CheckMembers(w, i.r[0], mask, &members)) w.Synchronize(members);
}
// elect.sync: operands d, p, members.
void Elect(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t members;
  if (!CheckMembers(w, i.r[2], mask, &members)) return;
  const auto leader = static_cast<uint32_t>(std::countr_zero(mask));
  SetLanes(w, i.r[0], mask, leader, kAllLanes);
  if (i.r[1] != 0) SetPredicateLanes(w, i.r[1], mask, 1u << leader, kAllLanes);
}
void Trap(Warp& w, const Instruction&, uint32_t mask) { w.Fail(std::countr_zero(mask), "the kernel gives up (trap)"); }
void Sleep(Warp&, const Instruction&, uint32_t) {}

}  // namespace

void AddWarpRows(Rows& rows) {
  constexpr const char* kShuffles[] = {"up", "down", "bfly", "idx"};
  for (uint8_t k = 0; k < 4; ++k) {
    rows.push_back({StrCat({"shfl.sync.", kShuffles[k], ".b32"}), "=b32|pred b32 u32 u32 b32", Shuffle, k});
  }
  constexpr const char* kVotes[] = {"all.pred", "any.pred", "uni.pred", "ballot.b32"};
  for (uint8_t k = 0; k < 4; ++k) {
    rows.push_back({StrCat({"vote.sync.", kVotes[k]}), k == kBallot ? "=b32 pred b32" : "=pred pred b32", Vote, k});
  }
  rows.push_back({"match.any.sync.b32", "=b32 b32 b32", MatchAny<uint32_t>});
  rows.push_back({"match.any.sync.b64", "=b32 b64 b32", MatchAny<uint64_t>});
  rows.push_back({"match.all.sync.b32", "=b32|pred b32 b32", MatchAll<uint32_t>});
  rows.push_back({"match.all.sync.b64", "=b32|pred b64 b32", MatchAll<uint64_t>});
  constexpr const char* kReductions[] = {"add", "min", "max", "and", "or", "xor"};
  for (uint8_t k = 0; k < 6; ++k) {
    if (k < kAndBits) {
      rows.push_back({StrCat({"redux.sync.", kReductions[k], ".u32"}), "=u32 u32 b32", Reduce<uint32_t>, k});
      rows.push_back({StrCat({"redux.sync.", kReductions[k], ".s32"}), "=s32 s32 b32", Reduce<int32_t>, k});
    } else {
      rows.push_back({StrCat({"redux.sync.", kReductions[k], ".b32"}), "=b32 b32 b32", Reduce<uint32_t>, k});
    }
  }
  rows.push_back({"activemask.b32", "=b32", ActiveMask});
  rows.push_back({"bar.warp.sync", "b32", WarpBarrier});
  rows.push_back({"elect.sync", "=b32|pred b32", Elect, 0, Flow::kNext, 0, Space::kGeneric, 90});
  rows.push_back({"trap", "", Trap});
  rows.push_back({"nanosleep.u32", "u32", Sleep});
  rows.push_back({"bra{.uni}", "L", nullptr, 0, Flow::kBranch});
  rows.push_back({"brx.idx{.uni}", "u32 L", nullptr, 0, Flow::kIndexedBranch});
  rows.push_back({"call{.uni}", "F", nullptr, 0, Flow::kCall});
  rows.push_back({"ret{.uni}", "", nullptr, 0, Flow::kReturn});
  rows.push_back({"exit", "", nullptr, 0, Flow::kExit});
  // All threads of a warp come to a barrier together.
  rows.push_back({"bar{.cta}.sync", "u32 ?u32", nullptr, 0, Flow::kBarrier});
  rows.push_back({"barrier{.cta}.sync{.aligned}", "u32 ?u32", nullptr, 0, Flow::kBarrier});
  rows.push_back({"bar{.cta}.red.popc.u32", "=u32 u32 pred", nullptr, 1, Flow::kBarrier});
  rows.push_back({"bar{.cta}.red.and.pred", "=pred u32 pred", nullptr, 2, Flow::kBarrier});
  rows.push_back({"bar{.cta}.red.or.pred", "=pred u32 pred", nullptr, 3, Flow::kBarrier});
  rows.push_back({"barrier{.cta}.red.popc{.aligned}.u32", "=u32 u32 pred", nullptr, 1, Flow::kBarrier});
  rows.push_back({"barrier{.cta}.red.and{.aligned}.pred", "=pred u32 pred", nullptr, 2, Flow::kBarrier});
  rows.push_back({"barrier{.cta}.red.or{.aligned}.pred", "=pred u32 pred", nullptr, 3, Flow::kBarrier});
}

}  // namespace ingot::ptx
