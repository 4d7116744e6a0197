// Frames and messages as bytes, by the bounds-checked reader and its writer.
#include "compiler/tune/measure/protocol.h"

#include <bit>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/hash.h"

namespace ingot::tune {
namespace {

constexpr uint32_t kMark = 0x4d474e49;  // "INGM"
constexpr std::string_view kOutcomeNames[] = {"ok",      "wrong result", "crashed", "hung", "out of memory",
                                              "refused", "lost runner"};

void WriteDouble(formats::ByteWriter& out, double value) { out.U64(std::bit_cast<uint64_t>(value)); }
Result<double> ReadDouble(formats::ByteReader& in) {
  INGOT_ASSIGN_OR_RETURN(const uint64_t bits, in.U64());
  return std::bit_cast<double>(bits);
}

void WriteDoubles(formats::ByteWriter& out, std::span<const double> values) {
  out.Varint(values.size());
  for (const double value : values) WriteDouble(out, value);
}
Result<std::vector<double>> ReadDoubles(formats::ByteReader& in) {
  INGOT_ASSIGN_OR_RETURN(const uint64_t count, in.Count(sizeof(double)));
  std::vector<double> values(count);
  for (double& value : values) {
    INGOT_ASSIGN_OR_RETURN(value, ReadDouble(in));
  }
  return values;
}

Result<std::string> ReadText(formats::ByteReader& in) {
  INGOT_ASSIGN_OR_RETURN(const std::string_view text, in.String());
  return std::string(text);
}

Result<int32_t> ReadInt32(formats::ByteReader& in) {
  INGOT_ASSIGN_OR_RETURN(const uint32_t value, in.U32());
  return static_cast<int32_t>(value);
}

void WriteProgram(formats::ByteWriter& out, const MeasuredProgram& program) {
  out.String(formats::AsText(program.executable.bytes));
  out.String(program.entry);
}
Result<MeasuredProgram> ReadProgram(formats::ByteReader& in) {
  MeasuredProgram program;
  INGOT_ASSIGN_OR_RETURN(const std::string_view bytes, in.String());
  const std::span<const std::byte> span = formats::AsBytes(bytes);
  program.executable = SharedBytes::Own({span.begin(), span.end()});
  INGOT_ASSIGN_OR_RETURN(program.entry, ReadText(in));
  return program;
}

void WriteOptions(formats::ByteWriter& out, const MeasureOptions& options) {
  out.U32(static_cast<uint32_t>(options.threads));
  WriteDouble(out, options.warmup_seconds);
  WriteDouble(out, options.repeat_seconds);
  out.I64(options.max_calls);
  out.I64(options.max_cold_calls);
  out.U32(static_cast<uint32_t>(options.repeats));
  out.I64(options.flush_bytes);
  WriteDouble(out, options.timeout_seconds);
  out.I64(options.max_memory_bytes);
  out.U8(static_cast<uint8_t>(options.fault));
}
Result<MeasureOptions> ReadOptions(formats::ByteReader& in) {
  MeasureOptions options;
  INGOT_ASSIGN_OR_RETURN(options.threads, ReadInt32(in));
  INGOT_ASSIGN_OR_RETURN(options.warmup_seconds, ReadDouble(in));
  INGOT_ASSIGN_OR_RETURN(options.repeat_seconds, ReadDouble(in));
  INGOT_ASSIGN_OR_RETURN(options.max_calls, in.I64());
  INGOT_ASSIGN_OR_RETURN(options.max_cold_calls, in.I64());
  INGOT_ASSIGN_OR_RETURN(options.repeats, ReadInt32(in));
  INGOT_ASSIGN_OR_RETURN(options.flush_bytes, in.I64());
  INGOT_ASSIGN_OR_RETURN(options.timeout_seconds, ReadDouble(in));
  INGOT_ASSIGN_OR_RETURN(options.max_memory_bytes, in.I64());
  INGOT_ASSIGN_OR_RETURN(const uint8_t fault, in.U8());
  if (fault > static_cast<uint8_t>(TestFault::kWrongResult)) return in.Error("unknown fault");
  options.fault = static_cast<TestFault>(fault);
  return options;
}

Result<MeasuredInput> ReadInput(formats::ByteReader& in) {
  MeasuredInput input;
  INGOT_ASSIGN_OR_RETURN(const uint64_t rank, in.Count(1));
  for (uint64_t i = 0; i < rank; ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t dim, in.SignedVarint());
    input.dims.push_back(dim);
  }
  INGOT_ASSIGN_OR_RETURN(input.spec, ReadText(in));
  INGOT_ASSIGN_OR_RETURN(const uint8_t is_warm, in.U8());
  if (is_warm > 1) return in.Error("a flag is neither 0 nor 1");
  input.is_warm = is_warm == 1;
  return input;
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

std::vector<std::byte> EncodeFrame(FrameKind kind, std::span<const std::byte> payload) {
  formats::ByteWriter out;
  out.U32(kMark);
  out.U8(static_cast<uint8_t>(kind));
  out.U64(payload.size());
  out.U64(formats::Hash(payload));
  out.Bytes(payload);
  return out.Take();
}

Result<FrameHead> DecodeFrameHead(std::span<const std::byte> bytes) {
  formats::ByteReader in(bytes, "frame");
  INGOT_ASSIGN_OR_RETURN(const uint32_t mark, in.U32());
  if (mark != kMark) return in.Error("no frame begins here");
  FrameHead head;
  INGOT_ASSIGN_OR_RETURN(const uint8_t kind, in.U8());
  INGOT_ASSIGN_OR_RETURN(head.size_bytes, in.U64());
  INGOT_ASSIGN_OR_RETURN(head.hash, in.U64());
  head.kind = static_cast<FrameKind>(kind);
  if (head.kind < FrameKind::kHello || head.kind > FrameKind::kMeasurement) return in.Error("unknown kind of frame");
  if (head.size_bytes > kMaxFrameBytes) return in.Error("the frame is too long");
  return head;
}

Status CheckFrame(const FrameHead& head, std::span<const std::byte> payload) {
  if (payload.size() == head.size_bytes && formats::Hash(payload) == head.hash) return Status();
  return Status(StatusCode::kCorrupt, "frame: the hash of its bytes is another");
}

std::vector<std::byte> EncodeMachine(const RunnerMachine& machine) {
  formats::ByteWriter out;
  out.String(machine.architecture);
  out.String(machine.cpu);
  out.U32(static_cast<uint32_t>(machine.processors));
  out.I64(machine.last_level_cache_bytes);
  return out.Take();
}

Result<RunnerMachine> DecodeMachine(std::span<const std::byte> payload) {
  formats::ByteReader in(payload, "hello");
  RunnerMachine machine;
  INGOT_ASSIGN_OR_RETURN(machine.architecture, ReadText(in));
  INGOT_ASSIGN_OR_RETURN(machine.cpu, ReadText(in));
  INGOT_ASSIGN_OR_RETURN(machine.processors, ReadInt32(in));
  INGOT_ASSIGN_OR_RETURN(machine.last_level_cache_bytes, in.I64());
  INGOT_RETURN_IF_ERROR(in.ExpectEnd());
  return machine;
}

std::vector<std::byte> EncodeCandidate(const Candidate& candidate, uint64_t reference_hash) {
  formats::ByteWriter out;
  out.U64(candidate.id);
  WriteProgram(out, candidate.program);
  WriteProgram(out, candidate.rival);
  out.U64(reference_hash);
  out.String(candidate.reference.entry);
  WriteDouble(out, candidate.tolerance.relative);
  WriteDouble(out, candidate.tolerance.absolute);
  out.Varint(candidate.inputs.size());
  for (const MeasuredInput& input : candidate.inputs) {
    out.Varint(input.dims.size());
    for (const int64_t dim : input.dims) out.SignedVarint(dim);
    out.String(input.spec);
    out.U8(input.is_warm ? 1 : 0);
  }
  out.U64(candidate.seed);
  WriteOptions(out, candidate.options);
  return out.Take();
}

Result<ReceivedCandidate> DecodeCandidate(std::span<const std::byte> payload) {
  formats::ByteReader in(payload, "candidate");
  ReceivedCandidate received;
  Candidate& candidate = received.candidate;
  INGOT_ASSIGN_OR_RETURN(candidate.id, in.U64());
  INGOT_ASSIGN_OR_RETURN(candidate.program, ReadProgram(in));
  INGOT_ASSIGN_OR_RETURN(candidate.rival, ReadProgram(in));
  INGOT_ASSIGN_OR_RETURN(received.reference_hash, in.U64());
  INGOT_ASSIGN_OR_RETURN(candidate.reference.entry, ReadText(in));
  INGOT_ASSIGN_OR_RETURN(candidate.tolerance.relative, ReadDouble(in));
  INGOT_ASSIGN_OR_RETURN(candidate.tolerance.absolute, ReadDouble(in));
  INGOT_ASSIGN_OR_RETURN(const uint64_t num_inputs, in.Count(3));
  for (uint64_t i = 0; i < num_inputs; ++i) {
    INGOT_ASSIGN_OR_RETURN(MeasuredInput input, ReadInput(in));
    candidate.inputs.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(candidate.seed, in.U64());
  INGOT_ASSIGN_OR_RETURN(candidate.options, ReadOptions(in));
  INGOT_RETURN_IF_ERROR(in.ExpectEnd());
  return received;
}

std::vector<std::byte> EncodeMeasurement(const Measurement& measurement) {
  formats::ByteWriter out;
  out.U64(measurement.id);
  out.U8(static_cast<uint8_t>(measurement.outcome));
  out.U32(static_cast<uint32_t>(measurement.signal));
  WriteDoubles(out, measurement.seconds);
  WriteDoubles(out, measurement.rival_seconds);
  out.String(measurement.error);
  return out.Take();
}

Result<Measurement> DecodeMeasurement(std::span<const std::byte> payload) {
  formats::ByteReader in(payload, "measurement");
  Measurement measurement;
  INGOT_ASSIGN_OR_RETURN(measurement.id, in.U64());
  INGOT_ASSIGN_OR_RETURN(const uint8_t outcome, in.U8());
  if (outcome > static_cast<uint8_t>(Outcome::kLostRunner)) return in.Error("unknown outcome");
  measurement.outcome = static_cast<Outcome>(outcome);
  INGOT_ASSIGN_OR_RETURN(measurement.signal, ReadInt32(in));
  INGOT_ASSIGN_OR_RETURN(measurement.seconds, ReadDoubles(in));
  INGOT_ASSIGN_OR_RETURN(measurement.rival_seconds, ReadDoubles(in));
  INGOT_ASSIGN_OR_RETURN(measurement.error, ReadText(in));
  INGOT_RETURN_IF_ERROR(in.ExpectEnd());
  return measurement;
}

}  // namespace ingot::tune
