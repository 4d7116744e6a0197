#include "vm/program_codec.h"
#include "vm/program_reader.h"

namespace ingot::vm {
namespace {

using formats::ByteReader;
using formats::Section;
using formats::SectionKind;

class Decoder {
 public:
  Decoder(const formats::Container& container, const CheckSet& checks) : container_(container), reader_(checks) {}

  Result<Program> Run() {
    Verdict verdict = Decode();
    Status status = std::move(verdict).status();
    if (!status.ok()) return status;
    return std::move(program_);
  }

 private:
  Verdict Decode() {
    struct Row {
      SectionKind kind;
      bool is_required;
      Verdict (Decoder::*parse)();
    };
    // What refers to another table comes after it.
    constexpr Row kRows[] = {
        {SectionKind::kStrings, true, &Decoder::Strings},
        {SectionKind::kMetadata, true, &Decoder::Metadata},
        {SectionKind::kSignatures, true, &Decoder::Signatures},
        {SectionKind::kFunctions, true, &Decoder::Functions},
        {SectionKind::kKernels, true, &Decoder::Kernels},
        {SectionKind::kMemoryPlans, true, &Decoder::MemoryPlans},
        {SectionKind::kConstants, true, &Decoder::Constants},
        {SectionKind::kDebugMap, false, &Decoder::DebugMap},
    };
    for (const Row& row : kRows) {
      const Section* section = container_.Find(row.kind);
      if (section == nullptr && !row.is_required) continue;
      if (section == nullptr) {
        return reader_.Fail(Check::kSectionPresent,
                            "the section \"" + std::string(SectionKindName(row.kind)) + "\" is missing");
      }
      Result<SharedBytes> bytes = container_.Read(*section);
      if (!bytes.ok()) return Stop(std::move(bytes).status());
      const std::string label = "section \"" + section->Label() + "\"";
      ByteReader in(bytes->bytes, label);
      reader_.Enter(in);
      INGOT_RETURN_UNLESS_PASSED((this->*row.parse)());
      if (!in.at_end()) {
        return reader_.Fail(Check::kTrailingBytes, label + ": " + std::to_string(in.remaining()) + " bytes too many");
      }
    }
    return Verdict();
  }

  // A failure that is none of these checks' (the container's, memory).
  static Verdict Stop(Status status) { return Verdict::Stop(std::move(status)); }

  Verdict Strings() { return reader_.Strings(); }

  Verdict Metadata() {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(reader_.Count(count));
    std::string previous;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key, value;
      INGOT_RETURN_UNLESS_PASSED(reader_.Text(key));
      INGOT_RETURN_UNLESS_PASSED(reader_.Text(value));
      if (i > 0 && key <= previous) {
        return reader_.Fail(Check::kMetadataOrder, reader_.in().Error("key \"" + key + "\" is out of order").message());
      }
      previous = key;
      program_.metadata.emplace_hint(program_.metadata.end(), std::move(key), std::move(value));
    }
    program_.devices.clear();
    return reader_.List(program_.devices, [&](VirtualDevice& device) { return DeviceFields(reader_, device); });
  }

  Verdict Signatures() {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(reader_.Count(count));
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(reader_.ReadType());
    INGOT_RETURN_UNLESS_PASSED(reader_.Count(count));
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(reader_.ReadSignature());
    return reader_.List(program_.externals, [&](External& external) { return ExternalFields(reader_, external); });
  }

  Verdict Functions() {
    return reader_.List(program_.functions, [&](Function& function) {
      return FunctionFields(reader_, function).WithContext("function " + std::to_string(program_.functions.size() - 1));
    });
  }

  Verdict Kernels() {
    INGOT_RETURN_UNLESS_PASSED(reader_.List(program_.images, [&](KernelImage& image) -> Verdict {
      INGOT_RETURN_UNLESS_PASSED(ImageFields(reader_, image));
      return FindImage(static_cast<uint32_t>(program_.images.size() - 1), image);
    }));
    return reader_.List(program_.kernels, [&](Kernel& kernel) {
      return KernelFields(reader_, kernel).WithContext("kernel " + std::to_string(program_.kernels.size() - 1));
    });
  }

  Verdict FindImage(uint32_t index, KernelImage& image) const {
    const Section* section = container_.Find(SectionKind::kKernelImage, index);
    if (section == nullptr) {
      return reader_.Fail(Check::kSectionPresent,
                          "the section of kernel image " + std::to_string(index) + " is missing");
    }
    Result<SharedBytes> bytes = container_.Read(*section);
    if (!bytes.ok()) return Stop(std::move(bytes).status());
    image.bytes = std::move(*bytes);
    if (section->codec == formats::Codec::kNone) image.file_offset = container_.start_offset() + section->offset;
    return Verdict();
  }

  Verdict MemoryPlans() {
    for (Function& function : program_.functions) INGOT_RETURN_UNLESS_PASSED(PlanFields(reader_, function.plan));
    return Verdict();
  }

  Verdict Constants() {
    const Section* section = container_.Find(SectionKind::kConstantData);
    if (section == nullptr) {
      return reader_.Fail(Check::kSectionPresent, "the section \"constant_data\" is missing");
    }
    Result<SharedBytes> data = container_.Read(*section);
    if (!data.ok()) return Stop(std::move(data).status());
    reader_.SetPayloads(std::move(*data));
    INGOT_RETURN_UNLESS_PASSED(
        reader_.List(program_.constants, [&](Constant& constant) { return ConstantFields(reader_, constant); }));
    return reader_.List(program_.states, [&](State& state) { return StateFields(reader_, state); });
  }

  Verdict DebugMap() {
    for (Function& function : program_.functions) INGOT_RETURN_UNLESS_PASSED(NotesFields(reader_, function.notes));
    return Verdict();
  }

  const formats::Container& container_;
  Reader reader_;
  Program program_;
};

}  // namespace

Result<Program> DecodeProgram(const formats::Container& container, const CheckSet& checks) {
  return Decoder(container, checks).Run();
}

}  // namespace ingot::vm
