// wgmma: matrix instructions of four warps, which read shared memory on their own until they are waited for, and what
// orders them with everything else.
//
// Of m64nNk16 warp w of the four has rows 16 w to 16 w + 15. With g = lane / 4, t = lane % 4 the registers of D are, j =
// 0 .. N / 8 - 1: 4 j + i: row g + 8 (i / 2), column 8 j + 2 t + i % 2 ("Register Fragments for wgmma.mma_async.m64nNk16").
// Each warp runs its part by itself; that the four run the same is checked.
//
// A product is done at once, and what could show that it is not done yet is refused until it is waited for: its sums
// count as never computed, and nobody may write what it reads. What it reads has to be visible to it: a thread's writes
// to shared memory, copies among them, are once that thread has run fence.proxy.async (and others have met it).
#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

constexpr int kGroupRows = 64, kWarpRows = 16, kProductDepth = 16, kMatrixColumns = 8;
constexpr uint8_t kBfloat = 64;  // of the variant, besides how many 8 columns there are

bool IsWholeWarp(Warp& w, uint32_t mask) {
  if (mask == kAllLanes) return true;
  w.Fail(std::countr_zero(~mask), "an instruction of the whole warp that this lane does not reach");
  return false;
}

// A factor in shared memory, as its descriptor says, with 128-byte swizzling.
struct Descriptor {
  int64_t start, leading, stride;  // in bytes
  bool is_turned;                  // rows in memory run along the factor's own side, not along k

  // The place of the 16 bytes in which the element is; `side`: the row of A, the column of B.
  int64_t PlaceOf(int64_t side, int64_t k, int64_t* within) const {
    constexpr int64_t kRow = 128, kRows = 8, kElements = kRow / 2, kChunk = 16;
    const int64_t byte = is_turned
                             ? side / kElements * leading + k / kRows * stride + k % kRows * kRow + side % kElements * 2
                             : side / kRows * stride + side % kRows * kRow + k * 2;
    const int64_t place = start + byte;
    *within = place % kChunk;
    return (place ^ (place / kRow % kRows * kChunk)) / kChunk * kChunk;
  }
};

bool ReadDescriptor(Warp& w, uint32_t operand, bool is_turned, Descriptor* descriptor) {
  if (w.Computed(operand) != kAllLanes) return w.Fail(-1, "a matrix descriptor that was never computed"), false;
  const uint64_t* lanes = w.Lanes<uint64_t>(operand);
  const uint64_t bits = lanes[0];
  if (std::any_of(lanes, lanes + kLanes, [&](uint64_t other) { return other != bits; })) {
    return w.Fail(-1, "lanes have different matrix descriptors"), false;
  }
  constexpr uint64_t kUnused = 0x3ff1c000c000c000;
  if ((bits & kUnused) != 0) return w.Fail(-1, "a matrix descriptor has bits that mean nothing"), false;
  const auto field = [&](int shift) { return static_cast<int64_t>(bits >> shift & 0x3fff) << 4; };
  *descriptor = {field(0), field(16), field(32), is_turned};
  if (bits >> 62 != 1) return w.Fail(-1, "a matrix descriptor without 128-byte swizzling is not executed here"), false;
  constexpr int64_t kPattern = 1024, kRow = 128;
  const int64_t in_pattern = descriptor->start % kPattern;
  if ((bits >> 49 & 7) != 0 || in_pattern >= (is_turned ? 1 : kRow)) {
    return w.Fail(-1, "a matrix does not begin where its swizzling pattern does: that is not executed here"), false;
  }
  return true;
}

// Operands: the sums; the descriptors of A and B; whether D = A B + D; signs of A and B; whether A and B are turned.
void MultiplyGroups(Warp& w, const Instruction& i, uint32_t mask) {
  if (!IsWholeWarp(w, mask)) return;
  const int columns = (i.variant & (kBfloat - 1)) * kMatrixColumns, registers = columns / 2;
  const uint32_t* rest = i.r + registers;
  const auto constant = [&](int k) { return static_cast<int32_t>(w.Lanes<uint32_t>(rest[k])[0]); };
  const int32_t sign_a = constant(3), sign_b = constant(4), turned_a = constant(5), turned_b = constant(6);
  if (sign_a * sign_a != 1 || sign_b * sign_b != 1 || turned_a >> 1 != 0 || turned_b >> 1 != 0) {
    return w.Fail(-1, "signs are 1 or -1, and matrices turned or not, 1 or 0");
  }
  const uint32_t adds = w.Predicate(rest[2]);
  if (w.Computed(rest[2]) != kAllLanes || (adds != 0 && adds != kAllLanes)) {
    return w.Fail(-1, "lanes differ in whether they add to the sums");
  }
  Descriptor a, b;
  if (!ReadDescriptor(w, rest[0], turned_a != 0, &a) || !ReadDescriptor(w, rest[1], turned_b != 0, &b)) return;
  // All threads of the four warps give the same.
  const uint64_t key = w.Lanes<uint64_t>(rest[0])[0] * 31 + w.Lanes<uint64_t>(rest[1])[0] * 7 + (adds & 1);
  const bool is_bfloat = (i.variant & kBfloat) != 0;
  Warp::Product product{{i.r, i.r + registers}, {}, {}, 0, {}};
  if (!w.BeginProduct(product, key, adds != 0)) return;

  const auto element = [&](const Descriptor& matrix, int side, int k, double* value) {
    int64_t within = 0;
    const int64_t place = matrix.PlaceOf(side, k, &within);
    uint8_t* chunk = w.ReadForProduct(product, place);
    if (chunk == nullptr) return false;
    uint16_t bits = 0;
    std::memcpy(&bits, chunk + within, sizeof bits);
    *value = is_bfloat ? Bf16Value(bits) : HalfValue(bits);
    return true;
  };
  const int first_row = w.index() % (kGroupRows / kWarpRows) * kWarpRows;
  double of_a[kWarpRows][kProductDepth], of_b[kProductDepth][256];
  for (int k = 0; k < kProductDepth; ++k) {
    for (int row = 0; row < kWarpRows; ++row) {
      if (!element(a, first_row + row, k, &of_a[row][k])) return;
    }
    for (int column = 0; column < columns; ++column) {
      if (!element(b, column, k, &of_b[k][column])) return;
    }
  }
  double sums[kWarpRows][256] = {};
  for (int row = 0; row < kWarpRows; ++row) {
    for (int k = 0; k < kProductDepth; ++k) {
      for (int column = 0; column < columns; ++column) sums[row][column] += of_a[row][k] * of_b[k][column];
    }
  }
  for (int r = 0; r < registers; ++r) {
    float* d = w.Lanes<float>(i.r[r]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + 8 * (r % 4 / 2), column = r / 4 * kMatrixColumns + lane % 4 * 2 + r % 2;
      const double sum = sums[row][column] * sign_a * sign_b + (adds != 0 ? d[lane] : 0);
      d[lane] = sum == sum ? static_cast<float>(sum) : std::bit_cast<float>(0x7fffffffu);
    }
  }
  w.EndProduct(std::move(product));
}

void FenceProducts(Warp& w, const Instruction&, uint32_t mask) {
  if (IsWholeWarp(w, mask)) w.FenceProducts();
}
void CommitProducts(Warp& w, const Instruction&, uint32_t mask) {
  if (IsWholeWarp(w, mask)) w.CommitProducts();
}
void WaitForProducts(Warp& w, const Instruction& i, uint32_t mask) {
  if (IsWholeWarp(w, mask)) w.WaitForProducts(w.Lanes<uint32_t>(i.r[0])[0]);
}
void FenceProxy(Warp& w, const Instruction&, uint32_t mask) { w.ShowWrites(mask); }

}  // namespace

// ---- of a warp

bool Warp::BeginProduct(const Product& product, uint64_t key, bool adds) {
  std::vector<uint64_t>& keys = block_.product_keys[static_cast<size_t>(index_) / 4];
  if (num_products_ == keys.size()) keys.push_back(key);
  if (keys[num_products_++] != key) return Fail(-1, "the warps of a group of four give different products"), false;
  // Products of one form that have the same registers follow each other.
  const auto before = std::find_if(products_.rbegin(), products_.rend(),
                                   [&](const Product& other) { return other.sums == product.sums; });
  const bool runs_on = before != products_.rend();
  if (!runs_on && !products_fenced_) {
    return Fail(-1, "the registers of a wgmma were not fenced (wgmma.fence)"), false;
  }
  if (runs_on) {
    return HasRegisters(*before) || (Fail(-1, "a register was written while a wgmma had it"), false);
  }
  for (const uint32_t place : product.sums) {
    if (IsInProduct(place)) return Fail(-1, "a wgmma of another form still has its registers"), false;
    if (adds && Computed(place) != kAllLanes) {
      return Fail(std::countr_zero(~Computed(place)), "a fragment that was never computed"), false;
    }
  }
  return true;
}

bool Warp::HasRegisters(const Product& product) const {
  for (size_t r = 0; r < product.sums.size(); ++r) {
    const bool is_same =
        std::memcmp(Lanes<float>(product.sums[r]), product.values.data() + r * kLanes, kLanes * sizeof(float)) == 0;
    if (!is_same || Computed(product.sums[r]) != 0) return false;
  }
  return true;
}

bool Warp::IsInProduct(uint32_t place) const {
  return std::ranges::any_of(
      products_, [&](const Product& product) { return std::ranges::find(product.sums, place) != product.sums.end(); });
}

uint8_t* Warp::ReadForProduct(Product& product, int64_t place) {
  constexpr int kChunk = 16;
  uint8_t* pointer = nullptr;
  const auto chunk = static_cast<size_t>(place / kChunk);
  if (product.is_read.empty()) product.is_read.resize(block_.shared.size() / kChunk + 1);
  if (chunk < product.is_read.size() && product.is_read[chunk]) return block_.shared.data() + place;
  const int lane = static_cast<int>(product.reads.size() % kLanes);
  if (!CheckShared(Access::kRead, lane, static_cast<uint64_t>(place), kChunk, &pointer)) return nullptr;
  for (int64_t byte = place; byte < place + kChunk; ++byte) {
    if (block_.hidden_writes[static_cast<size_t>(byte)] == 0) continue;
    Fail(lane, "reads shared memory whose writer did not make it visible (fence.proxy.async)");
    return nullptr;
  }
  product.is_read[chunk] = true;
  product.reads.push_back(place);
  ++block_.product_reads[chunk];
  return pointer;
}

void Warp::EndProduct(Product product) {
  product.group = product_group_;
  product.is_read.clear();
  for (const uint32_t place : product.sums) {
    SetComputed(place, kAllLanes, 0);
    product.values.insert(product.values.end(), Lanes<float>(place), Lanes<float>(place) + kLanes);
  }
  products_.push_back(std::move(product));
}

void Warp::WaitForProducts(uint64_t groups_left) {
  while (!products_.empty() && products_.front().group + groups_left < product_group_) {
    const Product done = std::move(products_.front());
    products_.erase(products_.begin());
    for (size_t k = 0; k < done.reads.size(); ++k) {
      const int64_t place = done.reads[k];
      --block_.product_reads[static_cast<size_t>(place / 16)];
      // Whoever writes there next has to come after this wait.
      uint8_t* pointer = nullptr;
      if (!CheckShared(Access::kRead, static_cast<int>(k % kLanes), static_cast<uint64_t>(place), 16, &pointer)) return;
    }
    if (IsInProduct(done.sums[0])) continue;  // one of the same form goes on with them
    if (!HasRegisters(done)) return Fail(-1, "a register was written while a wgmma had it");
    for (const uint32_t place : done.sums) SetComputed(place, kAllLanes, kAllLanes);
    products_fenced_ = false;
  }
}

void Warp::ShowWrites(uint32_t mask) {
  std::vector<SharedWrite> kept;
  for (const SharedWrite& write : hidden_) {
    const auto first = static_cast<size_t>(write.offset), last = first + static_cast<size_t>(write.size_bytes);
    const bool is_on_its_way = block_.shared_state[first] == kInFlight;
    if ((mask >> write.lane & 1) == 0 || is_on_its_way) {
      kept.push_back(write);
      continue;
    }
    for (size_t byte = first; byte < last; ++byte) {
      if (block_.hidden_writes[byte] == NumberOf(write.lane)) block_.hidden_writes[byte] = 0;
    }
  }
  hidden_ = std::move(kept);
}

// Before a write: nobody reads there any more; after it, a wgmma does not see it yet.
bool Warp::HideWrite(int lane, int64_t offset, int size) {
  if (block_.hidden_writes.empty()) return true;
  for (int64_t chunk = offset / 16; chunk <= (offset + size - 1) / 16; ++chunk) {
    if (block_.product_reads[static_cast<size_t>(chunk)] == 0) continue;
    return Fail(lane, "writes shared memory that a wgmma may still read"), false;
  }
  std::fill_n(block_.hidden_writes.begin() + offset, size, NumberOf(lane));
  hidden_.push_back({lane, offset, size});
  return true;
}

void AddGroupMatrixRows(Rows& rows) {
  for (int columns = 8; columns <= 256; columns += 8) {
    for (const char* type : {"f16", "bf16"}) {
      const auto variant = static_cast<uint8_t>(columns / 8 + (type[0] == 'b' ? kBfloat : 0));
      rows.push_back({StrCat({"wgmma.mma_async.sync.aligned.m64n", columns, "k16.f32.", type, ".", type}),
                      StrCat({"=", columns / 2, "xf32 b64 b64 pred I I I I"}), MultiplyGroups, variant, Flow::kNext, 0,
                      Space::kGeneric, 90, /*is_exact=*/true});
    }
  }
  const auto add = [&](const char* pattern, const char* signature, Handler handler, bool is_exact) {
    rows.push_back({pattern, signature, handler, 0, Flow::kNext, 0, Space::kGeneric, 90, is_exact});
  };
  add("wgmma.fence.sync.aligned", "", FenceProducts, true);
  add("wgmma.commit_group.sync.aligned", "", CommitProducts, true);
  add("wgmma.wait_group.sync.aligned", "I", WaitForProducts, true);
  add("fence.proxy.async{.shared::cta}", "", FenceProxy, false);
}

}  // namespace ingot::ptx
