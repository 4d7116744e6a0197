// Reads and writes of elements with their checks (bounds, initialisation, races), packing of small dtypes, and the tree
// of parallel iterations by which two accesses are found unordered.
#include "compiler/interp/machine.h"

#include <cstring>

#include "compiler/ir/float_format.h"
#include "compiler/ir/int_math.h"

namespace ingot::interp {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 28;  // of one buffer that the function allocates

uint64_t BitMask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

}  // namespace

Cell CellFromBits(DataType dtype, uint64_t bits) {
  if (dtype.is_floating()) return FloatCell(ir::DecodeFloat(dtype, bits & BitMask(dtype.bits)));
  return IntCell(ir::WrapInt(dtype, static_cast<int64_t>(bits)));
}

uint64_t CellToBits(DataType dtype, Cell cell) {
  if (dtype.is_floating()) return ir::EncodeFloat(dtype, cell.f);
  return static_cast<uint64_t>(cell.i) & BitMask(dtype.bits);
}

std::optional<Contexts::Parting> Contexts::Part(Id a, Id b) const {
  while (nodes_[a].depth > nodes_[b].depth) a = nodes_[a].parent;
  while (nodes_[b].depth > nodes_[a].depth) b = nodes_[b].parent;
  if (a == b) return std::nullopt;  // one access is in the iteration of the other
  while (nodes_[a].parent != nodes_[b].parent) {
    a = nodes_[a].parent;
    b = nodes_[b].parent;
  }
  if (nodes_[a].execution != nodes_[b].execution) return std::nullopt;  // one loop ran after the other
  return Parting{a, b};
}

Contexts::Id Contexts::Join(Id earlier, Id later) {
  if (earlier == kNone || earlier == later) return later;
  const std::optional<Parting> parting = Part(earlier, later);
  if (!parting.has_value()) return later;
  if (nodes_[parting->a].iteration == kAny) return parting->a;
  return Enter(nodes_[parting->a].parent, nodes_[parting->a].execution, kAny);
}

Storage::Storage(DataType dtype, int64_t num_elements)
    : dtype_(dtype),
      own_(static_cast<size_t>((num_elements * dtype.bits + 7) / 8)),
      bytes_(own_),
      writers_(static_cast<size_t>(num_elements), Contexts::kNone),
      readers_(static_cast<size_t>(num_elements), Contexts::kNone) {}

Storage::Storage(DataType dtype, int64_t num_elements, std::span<std::byte> bytes, bool initialized)
    : dtype_(dtype),
      bytes_(bytes),
      writers_(static_cast<size_t>(num_elements), initialized ? Contexts::kRoot : Contexts::kNone),
      readers_(static_cast<size_t>(num_elements), Contexts::kNone) {}

Cell Storage::Load(int64_t element) const {
  uint64_t bits = 0;
  if (dtype_.bits >= 8) {
    const size_t size = dtype_.bits / 8;
    std::memcpy(&bits, bytes_.data() + static_cast<size_t>(element) * size, size);
  } else {
    const int64_t first_bit = element * dtype_.bits;
    bits =
        (static_cast<uint64_t>(bytes_[static_cast<size_t>(first_bit / 8)]) >> (first_bit % 8)) & BitMask(dtype_.bits);
  }
  return CellFromBits(dtype_, bits);
}

void Storage::Store(int64_t element, Cell value) {
  const uint64_t bits = CellToBits(dtype_, value);
  if (dtype_.bits >= 8) {
    const size_t size = dtype_.bits / 8;
    std::memcpy(bytes_.data() + static_cast<size_t>(element) * size, &bits, size);
    return;
  }
  const int64_t first_bit = element * dtype_.bits;
  std::byte& byte = bytes_[static_cast<size_t>(first_bit / 8)];
  const auto mask = static_cast<uint8_t>(BitMask(dtype_.bits) << (first_bit % 8));
  byte = static_cast<std::byte>((static_cast<uint8_t>(byte) & ~mask) | ((bits << (first_bit % 8)) & mask));
}

void Machine::Fail(StatusCode code, const std::string& message) {
  if (failed) return;
  failed = true;
  status = Status(code, block == nullptr ? message : "block " + *block + ": " + message);
}

bool Machine::Step() {
  if (failed) return false;
  if (options.max_steps > 0 && ++steps > options.max_steps) {
    Fail(StatusCode::kDeadlineExceeded, "more than " + std::to_string(options.max_steps) + " steps");
    return false;
  }
  return true;
}

int64_t Machine::ElementOf(const ir::BufferNode& buffer, const View& view, std::span<const int64_t> indices,
                           const char* what) {
  int64_t element = view.offset;
  if (indices.size() == 1 && view.dims.size() != 1) {  // the index counts the elements of a compact buffer
    const std::optional<int64_t> size = NumElements(view.dims);
    if (!size.has_value() || indices[0] < 0 || indices[0] >= *size) {
      Fail(std::string(what) + " of a view of " + buffer.name + " is out of bounds: element " +
           std::to_string(indices[0]));
      return -1;
    }
    element += indices[0];
    indices = {};
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d] < 0 || indices[d] >= view.dims[d]) {
      Fail(std::string(what) + " of " + buffer.name + IndicesText(indices) + " is out of bounds: dimension " +
           std::to_string(d) + " has " + std::to_string(view.dims[d]) + " elements");
      return -1;
    }
    element += indices[d] * view.strides[d];
  }
  if (element < 0 || element >= view.storage->num_elements()) {
    Fail(std::string(what) + " of " + buffer.name + IndicesText(indices) + " is outside its storage");
    return -1;
  }
  return element;
}

Cell Machine::Read(const ir::BufferNode& buffer, int view_index, std::span<const int64_t> indices) {
  const View& view = views[static_cast<size_t>(view_index)];
  const int64_t element = ElementOf(buffer, view, indices, "a read");
  if (element < 0) return IntCell(0);
  Storage& storage = *view.storage;
  const Contexts::Id writer = storage.writer(element);
  if (writer == Contexts::kNone) {
    Fail("a read of " + buffer.name + IndicesText(indices) + ", which nobody has written");
    return IntCell(0);
  }
  if (options.check_races) {
    if (contexts.Unordered(writer, context)) {
      Fail("a read of " + buffer.name + IndicesText(indices) + " races with a write by another parallel iteration");
      return IntCell(0);
    }
    Contexts::Id& reader = storage.reader(element);
    if (reader != context) reader = contexts.Join(reader, context);
  }
  return storage.Load(element);
}

void Machine::Write(const ir::BufferNode& buffer, int view_index, std::span<const int64_t> indices, Cell value) {
  const View& view = views[static_cast<size_t>(view_index)];
  const int64_t element = ElementOf(buffer, view, indices, "a write");
  if (element < 0) return;
  Storage& storage = *view.storage;
  if (options.check_races) {
    const Contexts::Id writer = storage.writer(element);
    const Contexts::Id reader = storage.reader(element);
    const bool races_write = writer != Contexts::kNone && contexts.Unordered(writer, context);
    if (races_write || (reader != Contexts::kNone && contexts.Unordered(reader, context))) {
      return Fail("a write of " + buffer.name + IndicesText(indices) + " races with a " +
                  (races_write ? "write" : "read") + " by another parallel iteration");
    }
  }
  storage.writer(element) = context;
  storage.Store(element, value);
}

std::optional<View> Machine::Allocate(const ir::BufferNode& buffer, std::vector<int64_t> dims,
                                      std::vector<int64_t> strides, int64_t offset) {
  const std::optional<std::vector<int64_t>> compact = CompactStrides(dims);
  std::optional<int64_t> size = NumElements(dims);
  if (strides.empty() && compact.has_value()) {
    strides = *compact;
  } else if (size.has_value() && *size > 0) {
    size = 1;
    for (size_t d = 0; d < dims.size() && size.has_value(); ++d) {
      const auto reach = ir::CheckedMul(dims[d] - 1, strides[d]);
      size = reach.has_value() && *reach >= 0 ? ir::CheckedAdd(*size, *reach) : std::nullopt;
    }
  }
  if (size.has_value()) size = ir::CheckedAdd(*size, offset);
  if (!size.has_value() || *size < 0 || *size > kMaxElements) {
    Fail("buffer " + buffer.name + IndicesText(dims) + " is too large or of negative size");
    return std::nullopt;
  }
  return View{std::make_shared<Storage>(buffer.dtype, *size), offset, std::move(dims), std::move(strides)};
}

std::optional<std::vector<int64_t>> CompactStrides(std::span<const int64_t> dims) {
  if (!NumElements(dims).has_value()) return std::nullopt;
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
  return strides;
}

std::optional<int64_t> NumElements(std::span<const int64_t> dims) {
  // Dimensions of 0 are left out of the product, so that strides cannot overflow either.
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::string IndicesText(std::span<const int64_t> indices) {
  std::string text = "[";
  for (size_t i = 0; i < indices.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(indices[i]);
  return text + "]";
}

}  // namespace ingot::interp
