// The codec of the golden_cases section: tables first, then the tensors' elements at multiples of 64 bytes.
#include "vm/program/golden_cases.h"

#include <bit>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "runtime/utf8.h"
#include "vm/program/limits.h"
#include "vm/program/reading_heap.h"

namespace ingot::vm {
namespace {

using formats::ByteReader;
using formats::ByteWriter;

class CaseReader {
 public:
  explicit CaseReader(SharedBytes section) : section_(std::move(section)), in_(section_.bytes, "golden cases") {}

  Result<std::vector<GoldenCase>> Run() {
    INGOT_ASSIGN_OR_RETURN(const uint64_t count, in_.Count(1));
    std::vector<GoldenCase> cases;
    for (uint64_t i = 0; i < count; ++i) {
      if (--tensors_left_ < 0) return in_.Error("too many cases");
      GoldenCase& golden = cases.emplace_back();
      INGOT_ASSIGN_OR_RETURN(golden.function, Text());
      INGOT_ASSIGN_OR_RETURN(const uint8_t origin, in_.U8());
      if (origin > static_cast<uint8_t>(GoldenOrigin::kReference)) return in_.Error("an unknown origin");
      golden.origin = static_cast<GoldenOrigin>(origin);
      INGOT_ASSIGN_OR_RETURN(const uint64_t relative, in_.U64());
      INGOT_ASSIGN_OR_RETURN(const uint64_t absolute, in_.U64());
      golden.relative_tolerance = std::bit_cast<double>(relative);
      golden.absolute_tolerance = std::bit_cast<double>(absolute);
      INGOT_ASSIGN_OR_RETURN(golden.inputs, Tensors());
      INGOT_ASSIGN_OR_RETURN(golden.outputs, Tensors());
    }
    return cases;
  }

 private:
  Result<std::string> Text() {
    INGOT_ASSIGN_OR_RETURN(const std::string_view text, in_.String());
    if (!IsUtf8(text)) return in_.Error("a name that is no UTF-8");
    return std::string(text);
  }

  Result<std::vector<GoldenTensor>> Tensors() {
    INGOT_ASSIGN_OR_RETURN(const uint64_t count, in_.Count(8));
    std::vector<GoldenTensor> tensors;
    for (uint64_t i = 0; i < count; ++i) {
      if (--tensors_left_ < 0) return in_.Error("too many tensors");
      GoldenTensor& golden = tensors.emplace_back();
      INGOT_ASSIGN_OR_RETURN(golden.name, Text());
      DataType dtype;
      INGOT_ASSIGN_OR_RETURN(const uint8_t code, in_.U8());
      dtype.code = static_cast<TypeCode>(code);
      INGOT_ASSIGN_OR_RETURN(dtype.bits, in_.U8());
      INGOT_ASSIGN_OR_RETURN(dtype.lanes, in_.U16());
      INGOT_ASSIGN_OR_RETURN(const uint64_t rank, in_.VarintUpTo(kMaxTensorRank));
      std::vector<int64_t> dims(rank);
      for (int64_t& dim : dims) {
        INGOT_ASSIGN_OR_RETURN(const uint64_t value, in_.VarintUpTo(INT64_MAX));
        dim = static_cast<int64_t>(value);
      }
      INGOT_ASSIGN_OR_RETURN(const uint64_t block, in_.VarintUpTo(section_.size() / kPlanAlignment));
      INGOT_ASSIGN_OR_RETURN(const uint64_t size, in_.Varint());
      INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, in_.Slice(block * kPlanAlignment, size));
      if (!dtype.IsKnown()) return in_.Error("an unknown element type");
      Result<Tensor> tensor = Tensor::FromShared(dtype, dims, SharedBytes(section_.owner, bytes));
      if (!tensor.ok()) return in_.Error({"\"", golden.name, "\": ", tensor.status().message()});
      golden.tensor = *std::move(tensor);
    }
    return tensors;
  }

  static constexpr int64_t kMaxTensors =
      1 << 16;  // each takes some hundred bytes of memory, however few it takes in the file

  SharedBytes section_;
  ByteReader in_;
  int64_t tensors_left_ = kMaxTensors;  // and cases
};

// Encodes the tables. The elements are to begin at `data`, a multiple of kPlanAlignment, and are appended to `payloads`
// where that is not null.
std::vector<std::byte> Encode(std::span<const GoldenCase> cases, uint64_t data, ByteWriter* payloads) {
  ByteWriter out;
  const auto tensors = [&](const std::vector<GoldenTensor>& list) {
    out.Varint(list.size());
    for (const GoldenTensor& golden : list) {
      const Tensor& tensor = golden.tensor;
      out.String(golden.name);
      out.U8(static_cast<uint8_t>(tensor.dtype().code));
      out.U8(tensor.dtype().bits);
      out.U16(tensor.dtype().lanes);
      out.Varint(static_cast<uint64_t>(tensor.rank()));
      for (const int64_t dim : tensor.dims()) out.Varint(static_cast<uint64_t>(dim));
      const auto bytes = std::as_bytes(tensor.bytes());
      out.Varint(data / kPlanAlignment);
      out.Varint(bytes.size());
      data += (bytes.size() + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
      if (payloads == nullptr) continue;
      payloads->Bytes(bytes);
      payloads->AlignTo(kPlanAlignment);
    }
  };
  out.Varint(cases.size());
  for (const GoldenCase& golden : cases) {
    out.String(golden.function);
    out.U8(static_cast<uint8_t>(golden.origin));
    out.U64(std::bit_cast<uint64_t>(golden.relative_tolerance));
    out.U64(std::bit_cast<uint64_t>(golden.absolute_tolerance));
    tensors(golden.inputs);
    tensors(golden.outputs);
  }
  out.AlignTo(kPlanAlignment);
  return out.Take();
}

}  // namespace

const char* GoldenOriginName(GoldenOrigin origin) { return origin == GoldenOrigin::kFile ? "file" : "reference"; }

std::vector<std::byte> EncodeGoldenCases(std::span<const GoldenCase> cases) {
  // The payloads begin behind the tables, whose length depends on that number; so it is iterated until both agree.
  uint64_t data = 0;
  for (uint64_t size = 0; (size = Encode(cases, data, nullptr).size()) != data;) data = size;
  ByteWriter payloads;
  std::vector<std::byte> out = Encode(cases, data, &payloads);
  out.insert(out.end(), payloads.bytes().begin(), payloads.bytes().end());
  return out;
}

Result<std::vector<GoldenCase>> DecodeGoldenCases(const formats::Container& container) {
  const formats::Section* section = container.Find(formats::SectionKind::kGoldenCases);
  if (section == nullptr) return std::vector<GoldenCase>();
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, container.Read(*section));
  return WithinReadingHeap(CheckSet::All(), "", container.bytes().size(),
                           [&] { return CaseReader(std::move(bytes)).Run(); });
}

}  // namespace ingot::vm
