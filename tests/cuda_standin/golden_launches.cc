#include "tests/cuda_standin/golden_launches.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>

#include "formats/sha256.h"
#include "tests/cuda_standin/float_formats.h"

namespace ingot::ptx {
namespace {

// A block's number and the offset in it, for an argument that is an address.
struct Place {
  int64_t block, offset;
};
std::optional<Place> FindPlace(const DeviceMemory& memory, const std::vector<uint8_t>& argument) {
  uint64_t address = 0;
  if (argument.size() != sizeof(address)) return {};
  std::memcpy(&address, argument.data(), sizeof(address));
  int64_t number = 0;
  for (const auto& [begin, block] : memory.blocks()) {
    if (address >= begin && address - begin <= static_cast<uint64_t>(block->size_bytes))
      return Place{number, static_cast<int64_t>(address - begin)};
    ++number;
  }
  return {};
}

std::span<const std::byte> BytesOf(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// What the launch starts from, whatever its addresses are.
std::string KeyOf(const LaunchedKernel& launch, const DeviceMemory& before) {
  formats::Sha256 hash;
  const auto add = [&](const auto& values) { hash.Update(BytesOf(values.data(), values.size() * sizeof(values[0]))); };
  add(launch.module_text), add(launch.kernel);
  hash.Update(BytesOf(&launch.config, sizeof(launch.config)));
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    if (const std::optional<Place> place = FindPlace(before, argument)) {
      hash.Update(BytesOf(&*place, sizeof(*place)));
    } else {
      add(argument);
    }
  }
  for (const auto& [address, block] : before.blocks()) {
    hash.Update(BytesOf(&block->size_bytes, sizeof(block->size_bytes)));
    add(block->data), add(block->written);
  }
  const formats::Sha256Digest digest = hash.Finish();
  return formats::ToHex(std::span(digest).first(6));
}

class Writer {
 public:
  explicit Writer(const std::string& path) : out_(path, std::ios::binary | std::ios::app) {}
  void Int(int64_t value) { out_.write(reinterpret_cast<const char*>(&value), sizeof(value)); }
  template <typename Bytes>
  void Blob(const Bytes& bytes) {
    Int(static_cast<int64_t>(bytes.size()));
    out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::ofstream out_;
};

struct Element {
  int bytes = 0;
  FloatFormat format{};  // of float16 to float32
  double ValueOf(uint64_t bits) const {
    return bytes == 8 ? std::bit_cast<double>(bits) : Widen(format, static_cast<uint32_t>(bits));
  }
  int mantissa_bits() const { return bytes == 8 ? 52 : format.mantissa_bits; }
};
std::optional<Element> ElementOf(const std::string& type) {
  if (type == "f16") return Element{2, kHalfFormat};
  if (type == "bf16") return Element{2, kBf16Format};
  if (type == "f32") return Element{4, kFloatFormat};
  if (type == "f64") return Element{8, {}};
  return {};
}
// Within the bound, the stand-in's half unit of rounding apart; any NaN is like any other.
bool AreClose(const Element& element, double relative, double absolute, uint64_t ours, uint64_t theirs) {
  const double a = element.ValueOf(ours), b = element.ValueOf(theirs);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= std::fabs(a) * (relative + std::ldexp(1.0, -1 - element.mantissa_bits())) + absolute;
}

std::string Digits(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

Status AddFile(const char* path, GoldenLaunches& launches) {
  std::ifstream in(path);
  if (!in) return Status(StatusCode::kNotFound, {"no launches of a GPU are recorded in ", path});
  std::stringstream text;
  text << in.rdbuf();
  return launches.AddRows(text.str());
}

}  // namespace

GoldenLaunches* GoldenLaunches::Get() {
  static GoldenLaunches* const instance = []() -> GoldenLaunches* {
    const char *record = std::getenv("INGOT_STANDIN_RECORD"), *golden = std::getenv("INGOT_STANDIN_GOLDEN");
    if (record == nullptr && golden == nullptr) return nullptr;
    static GoldenLaunches created(record != nullptr ? record : "");
    if (golden == nullptr) return &created;
    if (const Status status = AddFile(golden, created); status.code() == StatusCode::kNotFound) {
      std::printf("SKIP: %s\n", std::string(status.message()).c_str());
      return record != nullptr ? &created : nullptr;
    } else if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", golden, std::string(status.message()).c_str());
      std::exit(1);
    }
    std::atexit([] {
      std::printf("%lld launches are as on a GPU, %lld are not recorded\n", static_cast<long long>(created.held()),
                  static_cast<long long>(created.missing()));
    });
    return &created;
  }();
  return instance;
}

Status GoldenLaunches::AddRows(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string key, word;
    Row row;
    words >> key >> row.hash;
    if (words >> row.type && row.type != "any") {
      const std::optional<Element> element = ElementOf(row.type);
      if (!element || !(words >> row.relative >> row.absolute))
        return Status(StatusCode::kBadInput, {"no bound in the row of ", key});
      int64_t position = 0;
      while (words >> word) {
        const size_t colon = word.find(':'), end = std::min(word.find('x'), word.size());
        if (colon == std::string::npos || end != colon + 1 + 2 * static_cast<size_t>(element->bytes))
          return Status(StatusCode::kBadInput, {"no value: ", word});
        uint64_t bits = 0;
        for (size_t k = end; k > colon + 1; k -= 2)
          bits = bits << 8 | std::strtoull(word.substr(k - 2, 2).c_str(), nullptr, 16);
        const int64_t times = end == word.size() ? 1 : std::atoll(word.c_str() + end + 1);
        for (int64_t k = 0; k < times; ++k) {
          position += std::atoll(word.c_str());
          row.values.push_back({position, bits});
        }
      }
    }
    rows_[key] = std::move(row);
  }
  return Status();
}

GoldenLaunches::Before GoldenLaunches::Take(const LaunchedKernel& launch, const DeviceMemory& memory) const {
  Before before{KeyOf(launch, memory), {}};
  if (record_path_.empty()) return before;
  for (const auto& [address, block] : memory.blocks()) {
    MemoryBlock& copy = before.blocks.emplace_back();
    copy.address = address, copy.size_bytes = block->size_bytes, copy.is_constant = block->is_constant;
    copy.data = block->data, copy.written = block->written;
  }
  return before;
}

Status GoldenLaunches::Check(const LaunchedKernel& launch, const Before& before, const DeviceMemory& after) {
  if (launch.kernel.ends_with("_refused")) return Status();
  if (!record_path_.empty()) Record(launch, before, after);
  if (rows_.empty()) return Status();
  const auto row = rows_.find(before.key);
  if (row == rows_.end()) {
    ++missing_;
    return Status();
  }
  ++held_;
  return Compare(row->second, launch, after);
}

// The GPU's values in place of ours where they may differ: all the rest has its hash.
Status GoldenLaunches::Compare(const Row& row, const LaunchedKernel& launch, const DeviceMemory& after) const {
  if (row.type == "any") return Status();
  std::vector<uint8_t> left;
  for (const auto& [address, block] : after.blocks()) {
    if (block->is_constant) continue;
    for (size_t k = 0; k < block->data.size(); ++k) {
      if (block->written[k] != 0) left.push_back(block->data[k]);
    }
  }
  if (const std::optional<Element> element = ElementOf(row.type)) {
    for (const auto& [position, theirs] : row.values) {
      const auto bytes = static_cast<size_t>(element->bytes), at = static_cast<size_t>(position);
      if (at + bytes > left.size())
        return Status(StatusCode::kFailed, {"a GPU left more than ", left.size(), " bytes"});
      uint64_t ours = 0;
      std::memcpy(&ours, &left[at], bytes);
      if (!AreClose(*element, row.relative, row.absolute, ours, theirs)) {
        return Status(StatusCode::kFailed, {"kernel \"", launch.kernel, "\": byte ", position,
                                            " of what it left: ", Digits(element->ValueOf(ours)), ", on a GPU ",
                                            Digits(element->ValueOf(theirs))});
      }
      std::memcpy(&left[at], &theirs, bytes);
    }
  }
  formats::Sha256 hash;
  hash.Update(BytesOf(left.data(), left.size()));
  const formats::Sha256Digest digest = hash.Finish();
  if (formats::ToHex(std::span(digest).first(4)) == row.hash) return Status();
  return Status(StatusCode::kFailed, {"kernel \"", launch.kernel, "\": a GPU leaves something else than this"});
}

// As scripts/record_gpu_launches reads it: numbers of 64 bits, texts and bytes behind their length.
void GoldenLaunches::Record(const LaunchedKernel& launch, const Before& before, const DeviceMemory& after) const {
  Writer out(record_path_);
  out.Blob(before.key), out.Blob(launch.module_text), out.Blob(launch.kernel);
  for (const int64_t extent : launch.config.grid) out.Int(extent);
  for (const int64_t extent : launch.config.block) out.Int(extent);
  out.Int(launch.config.shared_bytes);
  out.Int(static_cast<int64_t>(launch.arguments.size()));
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    const std::optional<Place> place = FindPlace(after, argument);
    out.Int(place ? place->block : -1);
    out.Int(place ? place->offset : 0);
    out.Blob(argument);
  }
  out.Int(static_cast<int64_t>(before.blocks.size()));
  for (const MemoryBlock& block : before.blocks) {
    std::string variable;
    for (const auto& [name, address] : launch.variables) {
      if (address == block.address) variable = name;
    }
    const MemoryBlock* left = after.Find(block.address);
    out.Blob(variable);
    out.Int(block.is_constant ? 1 : 0);
    out.Blob(block.data), out.Blob(block.written), out.Blob(left->data), out.Blob(left->written);
  }
}

}  // namespace ingot::ptx
