// Reads the sections in the order in which their tables refer to each other. Fields are read by program_reader.h in the
// order of program_fields.h.
#include "vm/program/program_codec.h"

#include <sys/mman.h>

#include "vm/program/program_reader.h"
#include "vm/program/reading_heap.h"

namespace ingot::vm {
namespace {

using formats::ByteReader;
using formats::Section;
using formats::SectionKind;

// Reserves addresses that take no memory and cannot be read.
Result<SharedBytes> ReserveAddresses(uint64_t size) {
  if (size == 0) return SharedBytes();
  void* const data = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return Status::OutOfMemory();
  const std::shared_ptr<const void> owner(data, [size](const void* start) { munmap(const_cast<void*>(start), size); });
  return SharedBytes(owner, {static_cast<const std::byte*>(data), size});
}

class Decoder {
 public:
  Decoder(const formats::Container& container, const CheckSet& checks, bool with_weights)
      : container_(container), reader_(checks, container.bytes().size()), with_weights_(with_weights) {}

  Result<Program> Run() {
    Decode();
    Status status = reader_.TakeVerdict().status();
    if (!status.ok()) return status;
    return std::move(program_);
  }

 private:
  bool Decode() {
    struct Row {
      SectionKind kind;
      bool is_required;
      bool (Decoder::*parse)();
    };
    // A table comes after those that it refers to.
    constexpr Row kRows[] = {
        {SectionKind::kStrings, true, &Decoder::Strings},
        {SectionKind::kMetadata, true, &Decoder::Metadata},
        {SectionKind::kSignatures, true, &Decoder::Signatures},
        {SectionKind::kFunctions, true, &Decoder::Functions},
        {SectionKind::kKernels, true, &Decoder::Kernels},
        {SectionKind::kMemoryPlans, true, &Decoder::MemoryPlans},
        {SectionKind::kConstants, true, &Decoder::Constants},
        {SectionKind::kDebugMap, false, &Decoder::DebugMap},
        {SectionKind::kWeights, false, &Decoder::Weights},
    };
    for (const Row& row : kRows) {
      const Section* section = container_.Find(row.kind);
      if (section == nullptr && !row.is_required) continue;
      if (section == nullptr) {
        return reader_.Fail(Check::kSectionPresent, {"the section \"", SectionKindName(row.kind), "\" is missing"});
      }
      if (!reader_.ChargeTable(section->size)) return false;
      const HeapCharge decompressed(section->codec == formats::Codec::kNone ? 0 : section->size);
      Result<SharedBytes> bytes = container_.Read(*section);
      if (!bytes.ok()) return reader_.Stop(std::move(bytes).status());
      const std::string label = StrCat({"section \"", section->Label(), "\""});
      ByteReader in(bytes->bytes, label);
      reader_.Enter(in);
      if (!(this->*row.parse)()) return false;
      if (!in.at_end()) {
        return reader_.Fail(Check::kTrailingBytes, {label, ": ", in.remaining(), " bytes too many"});
      }
    }
    return true;
  }

  bool Strings() { return reader_.Strings(); }

  bool Metadata() {
    uint64_t count = 0;
    if (!reader_.Count(count)) return false;
    std::string previous;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key, value;
      if (!reader_.Text(key)) return false;
      if (!reader_.Text(value)) return false;
      if (i > 0 && key <= previous) {
        return reader_.Refuse(Check::kMetadataOrder, {"key \"", key, "\" is out of order"});
      }
      previous = key;
      program_.metadata.emplace_hint(program_.metadata.end(), std::move(key), std::move(value));
    }
    program_.devices.clear();
    return reader_.List(program_.devices, [&](VirtualDevice& device) { return DeviceFields(reader_, device); });
  }

  bool Signatures() {
    uint64_t count = 0;
    if (!reader_.Count(count)) return false;
    for (uint64_t i = 0; i < count; ++i)
      if (!reader_.ReadType()) return false;
    if (!reader_.Count(count)) return false;
    for (uint64_t i = 0; i < count; ++i)
      if (!reader_.ReadSignature()) return false;
    return reader_.List(program_.externals, [&](External& external) { return ExternalFields(reader_, external); });
  }

  bool Functions() {
    return reader_.List(program_.functions, [&](Function& function) {
      return FunctionFields(reader_, function) || reader_.Inside("function ", program_.functions.size() - 1);
    });
  }

  bool Kernels() {
    if (!reader_.List(program_.images, [&](KernelImage& image) -> bool {
          if (!ImageFields(reader_, image)) return false;
          return FindImage(static_cast<uint32_t>(program_.images.size() - 1), image);
        }))
      return false;
    return reader_.List(program_.kernels, [&](Kernel& kernel) {
      return KernelFields(reader_, kernel) || reader_.Inside("kernel ", program_.kernels.size() - 1);
    });
  }

  bool FindImage(uint32_t index, KernelImage& image) {
    const Section* section = container_.Find(SectionKind::kKernelImage, index);
    if (section == nullptr) {
      return reader_.Fail(Check::kSectionPresent, {"the section of kernel image ", index, " is missing"});
    }
    Result<SharedBytes> bytes = container_.Read(*section);
    if (!bytes.ok()) return reader_.Stop(std::move(bytes).status());
    image.bytes = std::move(*bytes);
    if (section->codec == formats::Codec::kNone) image.file_offset = container_.start_offset() + section->offset;
    return true;
  }

  bool MemoryPlans() {
    for (Function& function : program_.functions)
      if (!PlanFields(reader_, function.plan)) return false;
    return true;
  }

  bool Constants() {
    const Section* section = container_.Find(SectionKind::kConstantData);
    if (section == nullptr) {
      return reader_.Fail(Check::kSectionPresent, "the section \"constant_data\" is missing");
    }
    Result<SharedBytes> data = with_weights_ ? container_.Read(*section) : ReserveAddresses(section->size);
    if (!data.ok()) return reader_.Stop(std::move(data).status());
    reader_.SetPayloads(std::move(*data));
    if (!reader_.List(program_.constants, [&](Constant& constant) { return ConstantFields(reader_, constant); }))
      return false;
    return reader_.List(program_.states, [&](State& state) { return StateFields(reader_, state); });
  }

  bool Weights() {
    if (!reader_.List(program_.weight_files, [&](WeightFile& file) { return WeightFileFields(reader_, file); }))
      return false;
    return reader_.List(program_.weights, [&](Weight& weight) { return WeightFields(reader_, weight); });
  }

  bool DebugMap() {
    for (Function& function : program_.functions)
      if (!NotesFields(reader_, function.notes)) return false;
    return true;
  }

  const formats::Container& container_;
  Reader reader_;
  bool with_weights_;
  Program program_;
};

Result<Program> Decode(const formats::Container& container, const CheckSet& checks, bool with_weights) {
  return WithinReadingHeap(checks, "", container.bytes().size(),
                           [&] { return Decoder(container, checks, with_weights).Run(); });
}

}  // namespace

Result<Program> DecodeProgramWithoutWeights(const formats::Container& container) {
  return Decode(container, CheckSet::All(), /*with_weights=*/false);
}

Result<Program> DecodeProgram(const formats::Container& container, const CheckSet& checks) {
  return Decode(container, checks, /*with_weights=*/true);
}

Result<Program> DecodeInHeap(const formats::Container& container) {
  return Decoder(container, CheckSet::All(), /*with_weights=*/true).Run();
}

}  // namespace ingot::vm
