// Matrices that a warp holds together: ldmatrix, stmatrix, movmatrix, mma.sync with the fragment layouts of the manual,
// and wmma, whose layout is ours to choose.
//
// With g = lane / 4, t = lane % 4 and e elements in a register of 32 bits, the fragments of mma.sync are
//   A: register r, element k: row g + 8 (r % 2), column t e + k + 4 e (r / 2)
//   B: register r, element k: row t e + k + 4 e r, column g
//   C, D: element i: row g + 8 (i / 2), column 2 t + i % 2
// (m8n8k4 for float64 has one row of eight). Sums are made exactly in double where it can hold them and rounded once;
// a GPU rounds within the sum, in an order that is not documented.
#include <bit>
#include <cstring>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/lane_loops.h"

namespace ingot::ptx {
namespace {

uint32_t FloatBits(double value) {
  return value != value ? 0x7fffffffu : std::bit_cast<uint32_t>(static_cast<float>(value));
}

bool WholeWarp(Warp& w, uint32_t mask) {
  if (mask == kAllLanes) return true;
  w.Fail(std::countr_zero(~mask), "an instruction of the whole warp that this lane does not reach");
  return false;
}
bool Computed(Warp& w, const Instruction& i, int first, int count) {
  for (int k = first; k < first + count; ++k) {
    const uint32_t missing = ~w.Computed(i.r[k]);
    if (missing != 0) return w.Fail(std::countr_zero(missing), "a fragment that was never computed"), false;
  }
  return true;
}

// ---- ldmatrix and stmatrix: variants 1, 2, 4 matrices, plus 8 where transposed
constexpr uint8_t kTransposed = 8;

// The rows of the matrices: lane 8 m + row has the address of a row of matrix m.
bool Rows8(Warp& w, const Instruction& i, uint32_t place, int matrices, Warp::Access access, uint8_t** rows) {
  uint64_t addresses[kLanes];
  const uint32_t lanes = matrices == 4 ? kAllLanes : (1u << (8 * matrices)) - 1;
  return w.Addresses(i, place, i.address_is_64, i.offset, lanes, addresses) &&
         w.Locate(i, Space::kShared, access, lanes, 16, addresses, rows);
}
void LoadMatrix(Warp& w, const Instruction& i, uint32_t mask) {
  const int matrices = i.variant & 7;
  const bool transposed = (i.variant & kTransposed) != 0;
  uint8_t* rows[kLanes];
  if (!WholeWarp(w, mask) || !Rows8(w, i, i.r[matrices], matrices, Warp::Access::kRead, rows)) return;
  for (int m = 0; m < matrices; ++m) {
    uint32_t* d = w.Lanes<uint32_t>(i.r[m]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      uint16_t halves[2];
      for (int k = 0; k < 2; ++k) {
        const int row = transposed ? 2 * t + k : g, column = transposed ? g : 2 * t + k;
        std::memcpy(&halves[k], rows[8 * m + row] + 2 * column, 2);
      }
      d[lane] = static_cast<uint32_t>(halves[1]) << 16 | halves[0];
    }
    w.SetComputed(i.r[m], mask, kAllLanes);
  }
}
void StoreMatrix(Warp& w, const Instruction& i, uint32_t mask) {
  const int matrices = i.variant & 7;
  const bool transposed = (i.variant & kTransposed) != 0;
  uint8_t* rows[kLanes];
  if (!WholeWarp(w, mask) || !Computed(w, i, 1, matrices)) return;
  if (!Rows8(w, i, i.r[0], matrices, Warp::Access::kWrite, rows)) return;
  for (int m = 0; m < matrices; ++m) {
    const uint32_t* a = w.Lanes<uint32_t>(i.r[1 + m]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int k = 0; k < 2; ++k) {
        const int row = transposed ? 2 * t + k : g, column = transposed ? g : 2 * t + k;
        const auto half = static_cast<uint16_t>(a[lane] >> (16 * k));
        std::memcpy(rows[8 * m + row] + 2 * column, &half, 2);
      }
    }
  }
}
void MoveMatrix(Warp& w, const Instruction& i, uint32_t mask) {
  if (!WholeWarp(w, mask) || !Computed(w, i, 1, 1)) return;
  const uint32_t* a = w.Lanes<uint32_t>(i.r[1]);
  uint16_t matrix[8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < 2; ++k) matrix[lane / 4][lane % 4 * 2 + k] = static_cast<uint16_t>(a[lane] >> (16 * k));
  }
  uint32_t* d = w.Lanes<uint32_t>(i.r[0]);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    d[lane] = static_cast<uint32_t>(matrix[2 * t + 1][g]) << 16 | matrix[2 * t][g];
  }
  w.SetComputed(i.r[0], mask, kAllLanes);
}

// ---- mma.sync
enum class Input : uint8_t { kHalf, kBf16, kTf32, kS8, kU8, kF64 };
enum class Sum : uint8_t { kHalf, kFloat, kInteger, kF64 };
struct MmaForm {
  const char* name;  // after "mma.sync.aligned."
  int rows, columns, depth;
  Input a, b;
  Sum sum;
};
constexpr MmaForm kMmaForms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, Input::kHalf, Input::kHalf, Sum::kFloat},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, Input::kHalf, Input::kHalf, Sum::kFloat},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 8, Input::kHalf, Input::kHalf, Sum::kHalf},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, Input::kHalf, Input::kHalf, Sum::kHalf},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, Input::kBf16, Input::kBf16, Sum::kFloat},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, Input::kBf16, Input::kBf16, Sum::kFloat},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, Input::kTf32, Input::kTf32, Sum::kFloat},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, Input::kTf32, Input::kTf32, Sum::kFloat},
    {"m16n8k16.row.col.s32.s8.s8.s32", 16, 8, 16, Input::kS8, Input::kS8, Sum::kInteger},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 8, 32, Input::kS8, Input::kS8, Sum::kInteger},
    {"m16n8k32.row.col.s32.u8.u8.s32", 16, 8, 32, Input::kU8, Input::kU8, Sum::kInteger},
    {"m16n8k32.row.col.s32.u8.s8.s32", 16, 8, 32, Input::kU8, Input::kS8, Sum::kInteger},
    {"m16n8k32.row.col.s32.s8.u8.s32", 16, 8, 32, Input::kS8, Input::kU8, Sum::kInteger},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 8, 4, Input::kF64, Input::kF64, Sum::kF64},
};

int PerRegister(Input input) {
  switch (input) {
    case Input::kHalf:
    case Input::kBf16:
      return 2;
    case Input::kS8:
    case Input::kU8:
      return 4;
    case Input::kTf32:
    case Input::kF64:
      return 1;
  }
  return 1;
}
double ElementOf(Input input, const Warp& w, uint32_t place, int lane, int k) {
  if (input == Input::kF64) return w.Lanes<double>(place)[lane];
  const uint32_t word = w.Lanes<uint32_t>(place)[lane];
  switch (input) {
    case Input::kHalf:
      return HalfValue(static_cast<uint16_t>(word >> (16 * k)));
    case Input::kBf16:
      return Bf16Value(static_cast<uint16_t>(word >> (16 * k)));
    case Input::kTf32:
      return Widen(kTf32Format, word >> 13);  // the lower bits are not read
    case Input::kS8:
      return static_cast<int8_t>(word >> (8 * k));
    case Input::kU8:
      return static_cast<uint8_t>(word >> (8 * k));
    case Input::kF64:
      break;
  }
  return 0;
}

void MatrixMultiply(Warp& w, const Instruction& i, uint32_t mask) {
  const MmaForm& form = kMmaForms[i.variant];
  const int m = form.rows, n = form.columns, depth = form.depth;
  const int e = PerRegister(form.a), halves = m / 8;
  const int a_registers = halves * std::max(1, depth / (4 * e)), b_registers = std::max(1, depth / (4 * e));
  const int c_elements = 2 * halves, c_registers = form.sum == Sum::kHalf ? c_elements / 2 : c_elements;
  const int a_first = c_registers, b_first = a_first + a_registers, c_first = b_first + b_registers;
  if (!WholeWarp(w, mask) || !Computed(w, i, a_first, a_registers + b_registers + c_registers)) return;
  double a[16][32], b[32][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < a_registers; ++r) {
      const int row = g + 8 * (r % halves), column = t * e + 4 * e * (r / halves);
      for (int k = 0; k < e; ++k) a[row][column + k] = ElementOf(form.a, w, i.r[a_first + r], lane, k);
    }
    for (int r = 0; r < b_registers; ++r) {
      for (int k = 0; k < e; ++k) b[t * e + k + 4 * e * r][g] = ElementOf(form.b, w, i.r[b_first + r], lane, k);
    }
  }
  // An element takes as long as it is wide.
  w.launch().counts.matrix_work += int64_t{m} * n * depth * 2 / e;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int k = 0; k < c_elements; ++k) {
      const int row = g + 8 * (k / 2), column = 2 * t + k % 2;
      double sum = 0;
      for (int j = 0; j < depth; ++j) sum += a[row][j] * b[j][column];
      switch (form.sum) {
        case Sum::kFloat: {
          const double c = w.Lanes<float>(i.r[c_first + k])[lane];
          w.Lanes<uint32_t>(i.r[k])[lane] = FloatBits(FusedToOdd(sum, 1, c));
          break;
        }
        case Sum::kHalf: {
          const uint32_t word = w.Lanes<uint32_t>(i.r[c_first + k / 2])[lane];
          const double c = HalfValue(static_cast<uint16_t>(word >> (16 * (k % 2))));
          const uint32_t half = RoundTo(kHalfFormat, FusedToOdd(sum, 1, c), Rounding::kNearest);
          uint32_t& d = w.Lanes<uint32_t>(i.r[k / 2])[lane];
          // c may be d's register: its upper half is read after the lower one is written.
          d = k % 2 == 0 ? (word & 0xffff0000u) | half : (d & 0xffffu) | half << 16;
          break;
        }
        case Sum::kInteger: {
          const auto c = static_cast<int64_t>(w.Lanes<int32_t>(i.r[c_first + k])[lane]);
          int64_t result = c + static_cast<int64_t>(sum);
          if (i.satfinite) result = std::max<int64_t>(INT32_MIN, std::min<int64_t>(INT32_MAX, result));
          w.Lanes<uint32_t>(i.r[k])[lane] = static_cast<uint32_t>(result);
          break;
        }
        case Sum::kF64:
          w.Lanes<double>(i.r[k])[lane] = sum + w.Lanes<double>(i.r[c_first + k])[lane];
          break;
      }
    }
  }
  for (int k = 0; k < c_registers; ++k) w.SetComputed(i.r[k], mask, kAllLanes);
}

std::string Vector(int count, const char* type) { return StrCat({count, "x", type}); }

void AddMmaRows(Rows& rows) {
  uint8_t number = 0;
  for (const MmaForm& form : kMmaForms) {
    const int e = PerRegister(form.a), halves = form.rows / 8, groups = std::max(1, form.depth / (4 * e));
    const int c = form.sum == Sum::kHalf ? halves : 2 * halves;
    const char* input = form.a == Input::kF64 ? "f64" : "b32";
    const char* sum = form.sum == Sum::kF64       ? "f64"
                      : form.sum == Sum::kFloat   ? "f32"
                      : form.sum == Sum::kInteger ? "s32"
                                                  : "b32";
    const std::string name = form.name;
    const size_t types = name.find(".col") + 4;
    const std::string saturate = form.sum == Sum::kInteger ? "{.satfinite}" : "";
    rows.push_back({StrCat({"mma.sync.aligned.", name.substr(0, types), saturate, name.substr(types)}),
                    StrCat({"=", Vector(c, sum), " ", Vector(halves * groups, input), " ", Vector(groups, input), " ",
                            Vector(c, sum)}),
                    MatrixMultiply, number++});
  }
}

// ---- wmma m16n16k16: a lane holds eight elements in a row, of the row-major matrix. Fragments of float16 repeat them,
// since there are eight registers; those of bfloat16 have four.
constexpr uint8_t kColumnMajor = 1;

// The address of element `index` of the 16x16 matrix, as an offset in elements.
int64_t ElementOffset(int index, int64_t stride, bool column_major) {
  const int row = index / 16, column = index % 16;
  return column_major ? column * stride + row : row * stride + column;
}
template <typename T>
bool Elements(Warp& w, const Instruction& i, uint32_t place, uint32_t stride_place, Warp::Access access, int k,
              uint8_t** pointers) {
  uint64_t addresses[kLanes], at[kLanes];
  if (!w.Addresses(i, place, i.address_is_64, i.offset, kAllLanes, addresses)) return false;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (addresses[lane] != addresses[0]) return w.Fail(lane, "lanes give different addresses"), false;
    const int64_t stride = stride_place == 0 ? 16 : static_cast<int32_t>(w.Lanes<uint32_t>(stride_place)[lane]);
    const bool column_major = (i.variant & kColumnMajor) != 0;
    at[lane] = addresses[lane] + static_cast<uint64_t>(ElementOffset(8 * lane + k, stride, column_major)) * sizeof(T);
  }
  return w.Locate(i, i.space, access, kAllLanes, sizeof(T), at, pointers);
}
// Operands: registers, address, stride. `registers` hold 16-bit elements in pairs.
template <int registers>
void LoadHalves(Warp& w, const Instruction& i, uint32_t mask) {
  if (!WholeWarp(w, mask)) return;
  uint8_t* pointers[kLanes];
  for (int k = 0; k < 8; ++k) {
    if (!Elements<uint16_t>(w, i, i.r[registers], i.r[registers + 1], Warp::Access::kRead, k, pointers)) return;
    for (int r = k / 2; r < registers; r += 4) {
      auto* halves = w.Lanes<uint16_t>(i.r[r]);
      for (int lane = 0; lane < kLanes; ++lane) std::memcpy(&halves[2 * lane + k % 2], pointers[lane], 2);
    }
  }
  for (int r = 0; r < registers; ++r) w.SetComputed(i.r[r], mask, kAllLanes);
}
void LoadFloats(Warp& w, const Instruction& i, uint32_t mask) {
  if (!WholeWarp(w, mask)) return;
  uint8_t* pointers[kLanes];
  for (int k = 0; k < 8; ++k) {
    if (!Elements<float>(w, i, i.r[8], i.r[9], Warp::Access::kRead, k, pointers)) return;
    for (int lane = 0; lane < kLanes; ++lane) std::memcpy(&w.Lanes<float>(i.r[k])[lane], pointers[lane], 4);
    w.SetComputed(i.r[k], mask, kAllLanes);
  }
}
// Operands: address, registers, stride.
template <typename T>
void StoreElements(Warp& w, const Instruction& i, uint32_t mask) {
  constexpr int kRegisters = sizeof(T) == 4 ? 8 : 4;
  if (!WholeWarp(w, mask) || !Computed(w, i, 1, kRegisters)) return;
  uint8_t* pointers[kLanes];
  for (int k = 0; k < 8; ++k) {
    if (!Elements<T>(w, i, i.r[0], i.r[1 + kRegisters], Warp::Access::kWrite, k, pointers)) return;
    for (int lane = 0; lane < kLanes; ++lane) {
      const T* elements = w.Lanes<T>(i.r[sizeof(T) == 4 ? 1 + k : 1 + k / 2]);
      std::memcpy(pointers[lane], &elements[sizeof(T) == 4 ? lane : 2 * lane + k % 2], sizeof(T));
    }
  }
}
// Operands: d, a, b, c; float sums.
template <bool bf16>
void WarpMultiply(Warp& w, const Instruction& i, uint32_t mask) {
  constexpr int kInputs = bf16 ? 4 : 8;
  if (!WholeWarp(w, mask) || !Computed(w, i, 8, 2 * kInputs + 8)) return;
  double a[256], b[256];
  for (int index = 0; index < 256; ++index) {
    const int lane = index / 8, k = index % 8;
    const auto value = [&](int first) {
      const uint16_t bits = w.Lanes<uint16_t>(i.r[first + k / 2])[2 * lane + k % 2];
      return bf16 ? Bf16Value(bits) : HalfValue(bits);
    };
    a[index] = value(8), b[index] = value(8 + kInputs);
  }
  for (int index = 0; index < 256; ++index) {
    const int lane = index / 8, k = index % 8;
    double sum = 0;
    for (int j = 0; j < 16; ++j) sum += a[index / 16 * 16 + j] * b[16 * j + index % 16];
    const double c = w.Lanes<float>(i.r[8 + 2 * kInputs + k])[lane];
    w.Lanes<uint32_t>(i.r[k])[lane] = FloatBits(FusedToOdd(sum, 1, c));
  }
  for (int k = 0; k < 8; ++k) w.SetComputed(i.r[k], mask, kAllLanes);
}

void AddWmmaRows(Rows& rows) {
  constexpr const char* kLayouts[] = {".row", ".col"};
  for (uint8_t layout = 0; layout < 2; ++layout) {
    for (const char* side : {"a", "b"}) {
      const std::string name =
          StrCat({"wmma.load.", side, ".sync.aligned", kLayouts[layout], ".m16n16k16{.global|.shared|.shared::cta}"});
      rows.push_back({name + ".f16", "=8xb32 A ?u32", LoadHalves<8>, layout});
      rows.push_back({name + ".bf16", "=4xb32 A ?u32", LoadHalves<4>, layout});
    }
    const std::string load =
        StrCat({"wmma.load.c.sync.aligned", kLayouts[layout], ".m16n16k16{.global|.shared|.shared::cta}"});
    const std::string store =
        StrCat({"wmma.store.d.sync.aligned", kLayouts[layout], ".m16n16k16{.global|.shared|.shared::cta}"});
    rows.push_back({load + ".f32", "=8xf32 A ?u32", LoadFloats, layout});
    rows.push_back({store + ".f32", "A 8xf32 ?u32", StoreElements<float>, layout});
    rows.push_back({store + ".f16", "A 4xb32 ?u32", StoreElements<uint16_t>, layout});
  }
  constexpr const char* kBoth = "wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16";
  rows.push_back({StrCat({kBoth, ".f32.f32"}), "=8xf32 8xb32 8xb32 8xf32", WarpMultiply<false>});
  rows.push_back({StrCat({kBoth, ".f32.bf16.bf16.f32"}), "=8xf32 4xb32 4xb32 8xf32", WarpMultiply<true>});
}

}  // namespace

void AddMatrixRows(Rows& rows) {
  for (const uint8_t matrices : {uint8_t{1}, uint8_t{2}, uint8_t{4}}) {
    for (const uint8_t transposed : {uint8_t{0}, kTransposed}) {
      const auto variant = static_cast<uint8_t>(matrices | transposed);
      const std::string rest = StrCat({".sync.aligned.m8n8.x", static_cast<int>(matrices),
                                       transposed != 0 ? ".trans" : "", "(.shared|.shared::cta).b16"});
      rows.push_back({"ldmatrix" + rest, StrCat({"=", Vector(matrices, "b32"), " A"}), LoadMatrix, variant});
      rows.push_back({"stmatrix" + rest, StrCat({"A ", Vector(matrices, "b32")}), StoreMatrix, variant, Flow::kNext, 0,
                      Space::kGeneric, 90});
    }
  }
  rows.push_back({"movmatrix.sync.aligned.m8n8.trans.b16", "=b32 b32", MoveMatrix});
  AddMmaRows(rows);
  AddWmmaRows(rows);
}

}  // namespace ingot::ptx
