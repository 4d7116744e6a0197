// Loops of handlers over the lanes of a warp. The loop over all lanes has no test inside, so that it becomes vector
// code.
#pragma once

#include "tests/cuda_standin/executor.h"
#include "tests/cuda_standin/instruction_table.h"

namespace ingot::ptx {

template <typename Body>
inline void ForLanes(uint32_t mask, Body body) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) != 0) body(lane);
    }
  }
}

// d = f(a, ...), operand 0 from operands 1, ...; the result is computed where all of them are.
template <typename D, typename A, typename F>
inline void Map(Warp& w, const Instruction& i, uint32_t mask, F f) {
  D* d = w.Lanes<D>(i.r[0]);
  const A* a = w.Lanes<A>(i.r[1]);
  ForLanes(mask, [=](int lane) { d[lane] = f(a[lane]); });
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]));
}
template <typename D, typename A, typename B, typename F>
inline void Map(Warp& w, const Instruction& i, uint32_t mask, F f) {
  D* d = w.Lanes<D>(i.r[0]);
  const A* a = w.Lanes<A>(i.r[1]);
  const B* b = w.Lanes<B>(i.r[2]);
  ForLanes(mask, [=](int lane) { d[lane] = f(a[lane], b[lane]); });
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]) & w.Computed(i.r[2]));
}
template <typename D, typename A, typename B, typename C, typename F>
inline void Map(Warp& w, const Instruction& i, uint32_t mask, F f) {
  D* d = w.Lanes<D>(i.r[0]);
  const A* a = w.Lanes<A>(i.r[1]);
  const B* b = w.Lanes<B>(i.r[2]);
  const C* c = w.Lanes<C>(i.r[3]);
  ForLanes(mask, [=](int lane) { d[lane] = f(a[lane], b[lane], c[lane]); });
  w.SetComputed(i.r[0], mask, w.Computed(i.r[1]) & w.Computed(i.r[2]) & w.Computed(i.r[3]));
}

// setp: operands p, q, a, b, c. What holds for p, and for q, each combined with c where there is one.
inline void StorePredicates(Warp& w, const Instruction& i, uint32_t mask, uint32_t result, uint32_t other) {
  uint32_t computed = w.Computed(i.r[2]) & w.Computed(i.r[3]);
  if (i.r[4] != 0) {
    const uint32_t c = w.Predicate(i.r[4]);
    const auto combine = static_cast<Combine>(i.combine);
    const auto apply = [&](uint32_t p) {
      return combine == Combine::kAnd ? p & c : combine == Combine::kOr ? p | c : p ^ c;
    };
    result = apply(result), other = apply(other);
    computed &= w.Computed(i.r[4]);
  }
  uint32_t& d = w.Predicate(i.r[0]);
  d = (d & ~mask) | (result & mask);
  w.SetComputed(i.r[0], mask, computed);
  if (i.r[1] == 0) return;
  uint32_t& q = w.Predicate(i.r[1]);
  q = (q & ~mask) | (other & mask);
  w.SetComputed(i.r[1], mask, computed);
}

// d|q = compare(a, b) combined with c: operands d, q, a, b and, with a combination, c (possibly !c: variant 1).
template <typename T, typename F>
inline void SetPredicates(Warp& w, const Instruction& i, uint32_t mask, F compare) {
  const T* a = w.Lanes<T>(i.r[2]);
  const T* b = w.Lanes<T>(i.r[3]);
  uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) result |= static_cast<uint32_t>(compare(a[lane], b[lane])) << lane;
  StorePredicates(w, i, mask, result, ~result);
}

}  // namespace ingot::ptx
