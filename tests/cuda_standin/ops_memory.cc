// Loads, stores, atomics, asynchronous copies. Operands of a load are its registers and then the address, of a store
// the address and then its registers.
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

constexpr uint8_t kSignedVariant = 1;

template <typename T>
void LoadElement(const Warp& w, uint32_t place, uint32_t mask, uint8_t* const* pointers, int64_t offset) {
  T* d = w.Lanes<T>(place);
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::memcpy(&d[lane], pointers[lane] + offset, sizeof(T));
  }
}

void Load(Warp& w, const Instruction& i, uint32_t mask) {
  uint64_t addresses[kLanes];
  uint8_t* pointers[kLanes];
  const int n = i.elements;
  if (!w.Addresses(i, i.r[n], i.address_is_64, i.offset, mask, addresses)) return;
  if (!w.Locate(i, i.space, Warp::Access::kRead, mask, n * i.element_bytes, addresses, pointers)) return;
  for (int k = 0; k < n; ++k) {
    const int64_t offset = k * i.element_bytes;
    if (i.bytes[k] == i.element_bytes) {
      switch (i.element_bytes) {
        case 2:
          LoadElement<uint16_t>(w, i.r[k], mask, pointers, offset);
          break;
        case 4:
          LoadElement<uint32_t>(w, i.r[k], mask, pointers, offset);
          break;
        case 8:
          LoadElement<uint64_t>(w, i.r[k], mask, pointers, offset);
          break;
        default:
          LoadElement<uint8_t>(w, i.r[k], mask, pointers, offset);
          break;
      }
    } else {
      const int unused = 64 - 8 * i.element_bytes;
      for (uint32_t left = mask; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        uint64_t bits = 0;
        std::memcpy(&bits, pointers[lane] + offset, i.element_bytes);
        if (i.variant == kSignedVariant) bits = static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
        std::memcpy(w.Lanes<uint8_t>(i.r[k]) + lane * i.bytes[k], &bits, i.bytes[k]);
      }
    }
    w.SetComputed(i.r[k], mask, kAllLanes);
  }
}

void Store(Warp& w, const Instruction& i, uint32_t mask) {
  uint64_t addresses[kLanes];
  uint8_t* pointers[kLanes];
  const int n = i.elements;
  for (int k = 1; k <= n; ++k) {
    const uint32_t missing = mask & ~w.Computed(i.r[k]);
    if (missing != 0) return w.Fail(std::countr_zero(missing), "stores a value that was never computed");
  }
  if (!w.Addresses(i, i.r[0], i.address_is_64, i.offset, mask, addresses)) return;
  if (!w.Locate(i, i.space, Warp::Access::kWrite, mask, n * i.element_bytes, addresses, pointers)) return;
  for (int k = 0; k < n; ++k) {
    const uint8_t* source = w.Lanes<uint8_t>(i.r[k + 1]);
    const int bytes = i.bytes[k + 1];
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::memcpy(pointers[lane] + k * i.element_bytes, source + lane * bytes, i.element_bytes);
    }
  }
}

// ---- atomics
enum AtomicOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExchange, kCompareSwap, kIncrement, kDecrement };
constexpr const char* kAtomicNames[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};

template <bool bf16>
uint16_t AddSmall(uint16_t a, uint16_t b) {
  const auto widen = [](uint16_t x) { return bf16 ? Bf16Value(x) : HalfValue(x); };
  return static_cast<uint16_t>(
      RoundTo(bf16 ? kBf16Format : kHalfFormat, FusedToOdd(widen(a), 1, widen(b)), Rounding::kNearest));
}

// .add.f32: in global memory denormals are flushed, in shared memory they are kept.
float AddFloats(float a, float b, bool flush) {
  const auto flushed = [=](float x) { return flush && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; };
  const float sum = flushed(flushed(a) + flushed(b));
  return sum == sum ? sum : std::bit_cast<float>(0x7fffffffu);
}

template <AtomicOp op, Type type>
uint64_t Combined(uint64_t old, uint64_t b, uint64_t c, bool in_shared) {
  if constexpr (op == kExchange) return b;
  if constexpr (op == kCompareSwap) return old == b ? c : old;
  if constexpr (op == kAnd) return old & b;
  if constexpr (op == kOr) return old | b;
  if constexpr (op == kXor) return old ^ b;
  if constexpr (op == kIncrement) return old >= b ? 0 : old + 1;
  if constexpr (op == kDecrement) return old == 0 || old > b ? b : old - 1;
  if constexpr (op == kAdd) {
    if constexpr (type == Type::kF32) {
      return std::bit_cast<uint32_t>(AddFloats(std::bit_cast<float>(static_cast<uint32_t>(old)),
                                               std::bit_cast<float>(static_cast<uint32_t>(b)), !in_shared));
    } else if constexpr (type == Type::kF64) {
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    } else if constexpr (type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2) {
      constexpr bool bf16 = type == Type::kBf16 || type == Type::kBf16x2;
      uint64_t sum = AddSmall<bf16>(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
      if (type == Type::kF16x2 || type == Type::kBf16x2) {
        sum |= static_cast<uint64_t>(AddSmall<bf16>(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16)))
               << 16;
      }
      return sum;
    }
    return old + b;
  }
  bool less;
  if (type == Type::kS32) {
    less = static_cast<int32_t>(old) < static_cast<int32_t>(b);
  } else if (type == Type::kS64) {
    less = static_cast<int64_t>(old) < static_cast<int64_t>(b);
  } else {
    less = old < b;
  }
  return less == (op == kMin) ? old : b;
}

// Operands: d (none for red: variant 1), address, b, c. Lanes with one address take turns.
template <AtomicOp op, Type type>
void Atomic(Warp& w, const Instruction& i, uint32_t mask) {
  const bool has_result = i.variant == 0;
  const uint32_t* r = i.r + (has_result ? 1 : 0);
  uint64_t addresses[kLanes];
  uint8_t* pointers[kLanes];
  const size_t bytes = i.element_bytes;
  const uint32_t missing = mask & ~(w.Computed(r[1]) & (op == kCompareSwap ? w.Computed(r[2]) : kAllLanes));
  if (missing != 0) return w.Fail(std::countr_zero(missing), "an atomic operand that was never computed");
  if (!w.Addresses(i, r[0], i.address_is_64, i.offset, mask, addresses)) return;
  if (!w.Locate(i, i.space, Warp::Access::kAtomic, mask, i.element_bytes, addresses, pointers)) return;
  const bool backwards = w.launch().order == WarpOrder::kHighestFirst;
  for (int k = 0; k < kLanes; ++k) {
    const int lane = backwards ? kLanes - 1 - k : k;
    if ((mask >> lane & 1) == 0) continue;
    uint64_t old = 0, b = 0, c = 0;
    std::memcpy(&old, pointers[lane], bytes);
    std::memcpy(&b, w.Lanes<uint8_t>(r[1]) + static_cast<size_t>(lane) * bytes, bytes);
    if (op == kCompareSwap) std::memcpy(&c, w.Lanes<uint8_t>(r[2]) + static_cast<size_t>(lane) * bytes, bytes);
    const bool in_shared =
        i.space == Space::kShared || (i.space == Space::kGeneric && addresses[lane] - kSharedBase < kWindowBytes);
    const uint64_t now = Combined<op, type>(old, b, c, in_shared);
    std::memcpy(pointers[lane], &now, bytes);
    if (has_result) std::memcpy(w.Lanes<uint8_t>(i.r[0]) + static_cast<size_t>(lane) * bytes, &old, bytes);
  }
  if (op == kAdd && IsFloat(type)) ++w.launch().counts.float_atomics;
  if (has_result) w.SetComputed(i.r[0], mask, kAllLanes);
}

constexpr const char* kAnySpace = "{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta}";

template <AtomicOp op, Type type>
void AddAtomicRows(Rows& rows, const char* noftz = "", int from_sm = 0) {
  const std::string t = TypeName(type);
  const std::string rest = StrCat({kAnySpace, ".", kAtomicNames[op], noftz, ".", t});
  const std::string inputs = StrCat({"A ", t, op == kCompareSwap ? StrCat({" ", t}) : std::string()});
  const auto bytes = static_cast<uint8_t>(TypeBytes(type));
  rows.push_back({"atom{.relaxed|.acquire|.release|.acq_rel}" + rest, StrCat({"=", t, " ", inputs}), Atomic<op, type>,
                  0, Flow::kNext, bytes, Space::kGeneric, from_sm});
  if (op != kExchange && op != kCompareSwap)
    rows.push_back(
        {"red{.relaxed|.release}" + rest, inputs, Atomic<op, type>, 1, Flow::kNext, bytes, Space::kGeneric, from_sm});
}

// ---- asynchronous copies: operands to, from, size in bytes, bytes that are read (the rest is zero)
void CopyAsync(Warp& w, const Instruction& i, uint32_t mask) {
  uint64_t to[kLanes], from[kLanes];
  uint8_t *targets[kLanes], *sources[kLanes];
  const uint32_t size = w.Lanes<uint32_t>(i.r[2])[0];
  const bool small = size == 4 || size == 8;
  if (size != 16 && !(small && i.variant == 0)) return w.Fail(-1, "cp.async.ca copies 4, 8 or 16 bytes, .cg 16");
  if (!w.Addresses(i, i.r[0], i.address_is_64, i.offset, mask, to)) return;
  if (!w.Addresses(i, i.r[1], i.address2_is_64, i.offset2, mask, from)) return;
  if (!w.Locate(i, Space::kShared, Warp::Access::kWrite, mask, static_cast<int>(size), to, targets)) return;
  uint32_t reads[kLanes] = {}, whole = 0;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    reads[lane] = size;
    if (i.r[3] != 0) {
      if ((w.Computed(i.r[3]) >> lane & 1) == 0) return w.Fail(lane, "the size of a copy was never computed");
      reads[lane] = w.Lanes<uint32_t>(i.r[3])[lane];
      if (reads[lane] > size) return w.Fail(lane, "cp.async reads more than it copies");
    }
    if ((from[lane] & (size - 1)) != 0) return w.Fail(lane, "misaligned: the source of cp.async");
    whole |= reads[lane] == size ? 1u << lane : 0;
  }
  if (whole != 0 && !w.Locate(i, Space::kGlobal, Warp::Access::kRead, whole, static_cast<int>(size), from, sources)) {
    return;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    AsyncCopy copy{lane, 0, static_cast<int64_t>(to[lane]), size, {}};
    if ((whole >> lane & 1) != 0) {
      std::memcpy(copy.data, sources[lane], size);
      w.IssueCopy(copy);
      continue;
    }
    const uint32_t read = reads[lane];
    // What is not read may lie outside; the part that is read is checked in pieces of one byte's alignment.
    for (uint32_t k = 0; k < read;) {
      const uint32_t piece = read - k >= 4 ? 4 : 1;
      uint64_t at[kLanes];
      at[lane] = from[lane] + k;
      if (!w.Locate(i, Space::kGlobal, Warp::Access::kRead, 1u << lane, static_cast<int>(piece), at, sources)) return;
      std::memcpy(copy.data + k, sources[lane], piece);
      k += piece;
    }
    w.IssueCopy(copy);
  }
}
void CommitGroup(Warp& w, const Instruction&, uint32_t mask) { w.CommitCopies(mask); }
void WaitGroup(Warp& w, const Instruction& i, uint32_t mask) { w.WaitForCopies(mask, w.Lanes<uint32_t>(i.r[0])[0]); }
void WaitAll(Warp& w, const Instruction&, uint32_t mask) {
  w.CommitCopies(mask);
  w.WaitForCopies(mask, 0);
}
void Nothing(Warp&, const Instruction&, uint32_t) {}

void AddLoadRows(Rows& rows, const char* t) {
  const Type type = ParseType(t);
  const auto bytes = static_cast<uint8_t>(TypeBytes(type));
  const uint8_t variant = IsSigned(type) ? kSignedVariant : 0;
  // What may stand together differs by space and order.
  constexpr const char* kHints =
      ".L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate";
  constexpr const char *kLevel2 = "{.L2::64B|.L2::128B|.L2::256B}", *kLoadCaches = ".ca|.cg|.cs|.lu|.cv",
                       *kStoreCaches = ".wb|.cg|.cs|.wt", *kScopes = "(.cta|.cluster|.gpu|.sys)",
                       *kOnChip = "(.shared|.shared::cta)";
  const std::string end = StrCat({bytes == 8 ? "{.v2}." : "{.v2|.v4}.", t});
  const auto load = [&](const std::string& pattern, Space space = Space::kGeneric) {
    rows.push_back({pattern + end, StrCat({"=V*", t, " A"}), Load, variant, Flow::kNext, bytes, space});
  };
  load(StrCat({"ld{.weak}{.global}{", kLoadCaches, "|", kHints, "}", kLevel2}));
  load(StrCat({"ld{.weak}(.shared|.shared::cta|.local|.const|.param|.param::entry|.param::func){", kLoadCaches, "}"}));
  load(StrCat({"ld(.relaxed|.acquire)", kScopes, "{.global}{", kHints, "}", kLevel2}));
  load(StrCat({"ld(.relaxed|.acquire)", kScopes, kOnChip}));
  load(StrCat({"ld.volatile{.global}", kLevel2}));
  load(StrCat({"ld.volatile", kOnChip}));
  load(StrCat({"ld.global.nc{", kHints, "}", kLevel2}), Space::kGlobal);
  load(StrCat({"ld.global(.ca|.cg|.cs).nc", kLevel2}), Space::kGlobal);
  load("ldu.global", Space::kGlobal);
  const auto store = [&](const std::string& pattern) {
    rows.push_back({pattern + end, StrCat({"A V*", t}), Store, 0, Flow::kNext, bytes});
  };
  store(StrCat({"st{.weak}{.global}{", kStoreCaches, "|", kHints, "}"}));
  store(StrCat({"st{.weak}(.shared|.shared::cta|.local|.param|.param::func){", kStoreCaches, "}"}));
  store(StrCat({"st(.relaxed|.release)", kScopes, "{.global}{", kHints, "}"}));
  store(StrCat({"st(.relaxed|.release)", kScopes, kOnChip}));
  store("st.volatile{.global|.shared|.shared::cta}");
}

}  // namespace

void AddMemoryRows(Rows& rows) {
  for (const char* t : {"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"})
    AddLoadRows(rows, t);
  AddAtomicRows<kAdd, Type::kU32>(rows);
  AddAtomicRows<kAdd, Type::kS32>(rows);
  AddAtomicRows<kAdd, Type::kU64>(rows);
  AddAtomicRows<kAdd, Type::kF32>(rows);
  AddAtomicRows<kAdd, Type::kF64>(rows);
  AddAtomicRows<kAdd, Type::kF16>(rows, ".noftz");
  AddAtomicRows<kAdd, Type::kF16x2>(rows, ".noftz");
  AddAtomicRows<kAdd, Type::kBf16>(rows, ".noftz", 90);
  AddAtomicRows<kAdd, Type::kBf16x2>(rows, ".noftz", 90);
  AddAtomicRows<kMin, Type::kU32>(rows);
  AddAtomicRows<kMin, Type::kS32>(rows);
  AddAtomicRows<kMin, Type::kU64>(rows);
  AddAtomicRows<kMin, Type::kS64>(rows);
  AddAtomicRows<kMax, Type::kU32>(rows);
  AddAtomicRows<kMax, Type::kS32>(rows);
  AddAtomicRows<kMax, Type::kU64>(rows);
  AddAtomicRows<kMax, Type::kS64>(rows);
  AddAtomicRows<kAnd, Type::kB32>(rows);
  AddAtomicRows<kAnd, Type::kB64>(rows);
  AddAtomicRows<kOr, Type::kB32>(rows);
  AddAtomicRows<kOr, Type::kB64>(rows);
  AddAtomicRows<kXor, Type::kB32>(rows);
  AddAtomicRows<kXor, Type::kB64>(rows);
  AddAtomicRows<kExchange, Type::kB32>(rows);
  AddAtomicRows<kExchange, Type::kB64>(rows);
  AddAtomicRows<kCompareSwap, Type::kB16>(rows);
  AddAtomicRows<kCompareSwap, Type::kB32>(rows);
  AddAtomicRows<kCompareSwap, Type::kB64>(rows);
  AddAtomicRows<kIncrement, Type::kU32>(rows);
  AddAtomicRows<kDecrement, Type::kU32>(rows);
  constexpr const char* kPrefetch = "{.L2::64B|.L2::128B|.L2::256B}";
  rows.push_back({StrCat({"cp.async.ca(.shared|.shared::cta).global", kPrefetch}), "A A u32 ?u32", CopyAsync, 0});
  rows.push_back({StrCat({"cp.async.cg(.shared|.shared::cta).global", kPrefetch}), "A A u32 ?u32", CopyAsync, 1});
  rows.push_back({"cp.async.commit_group", "", CommitGroup});
  rows.push_back({"cp.async.wait_group", "u32", WaitGroup});
  rows.push_back({"cp.async.wait_all", "", WaitAll});
  // Memory is always as it was last written: orderings are judged by the race checks.
  rows.push_back({"membar(.cta|.gl|.sys)", "", Nothing});
  rows.push_back({"fence{.sc|.acq_rel|.acquire|.release}(.cta|.cluster|.gpu|.sys)", "", Nothing});
  rows.push_back({"prefetch(.global|.local)(.L1|.L2)", "A", Nothing});
}

}  // namespace ingot::ptx
