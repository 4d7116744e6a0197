// Frames and messages come back as they were; a frame that is cut short or changed anywhere is refused.
#include "compiler/tune/measure/protocol.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>

#include "compiler/tune/measure/channel.h"
#include "formats/byte_reader.h"
#include "tests/compiler/tune/measure/candidates.h"

namespace ingot::tune {
namespace {

// What a reader makes of a stream of these bytes.
Result<Frame> ReadFrameOf(std::span<const std::byte> bytes) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::thread writer([&] {
    CHECK(WriteBytes(ends[1], bytes, Deadline::After(10)).ok());
    close(ends[1]);
  });
  Result<Frame> frame = ReadFrame(ends[0], Deadline::After(10));
  writer.join();
  close(ends[0]);
  return frame;
}

TEST_CASE("measure protocol: a candidate, a measurement and a machine come back") {
  Candidate candidate = QuickCandidate(7);
  candidate.rival = CountingProgram(5);
  candidate.inputs.push_back({{}, "-3", true});
  candidate.seed = 1u << 31;
  candidate.options.fault = TestFault::kEatMemory;
  candidate.tolerance.absolute = 0.25;
  const Result<ReceivedCandidate> received = DecodeCandidate(EncodeCandidate(candidate, 99));
  REQUIRE(received.ok());
  CHECK(received->reference_hash == 99);
  const Candidate& got = received->candidate;
  CHECK(got.id == 7);
  CHECK(formats::AsText(got.program.executable.bytes) == formats::AsText(candidate.program.executable.bytes));
  CHECK(formats::AsText(got.rival.executable.bytes) == formats::AsText(candidate.rival.executable.bytes));
  REQUIRE(got.inputs.size() == 2);
  CHECK(got.inputs[0].dims == std::vector<int64_t>{1024});
  CHECK(got.inputs[1].spec == "-3");
  CHECK(got.inputs[1].is_warm);
  CHECK_FALSE(got.inputs[0].is_warm);
  CHECK(got.seed == 1u << 31);
  CHECK(got.tolerance.absolute == 0.25);
  // All of the options and the rest, whatever they are: encoded again they are the same bytes.
  Candidate again = got;
  again.reference.entry = candidate.reference.entry;
  CHECK(EncodeCandidate(again, 99) == EncodeCandidate(candidate, 99));

  const Measurement measurement{5, -1, Outcome::kCrashed, 11, {1e-6, 2e-6}, {3e-6}, "Segmentation fault"};
  const Result<Measurement> back = DecodeMeasurement(EncodeMeasurement(measurement));
  REQUIRE(back.ok());
  CHECK(EncodeMeasurement(*back) == EncodeMeasurement(measurement));
  CHECK(OutcomeName(back->outcome) == "crashed");

  const Result<RunnerMachine> machine = DecodeMachine(EncodeMachine({"aarch64", "Cortex", 4, 1 << 20}));
  REQUIRE(machine.ok());
  CHECK(machine->architecture == "aarch64");
  CHECK(machine->processors == 4);
}

TEST_CASE(
    "measure protocol: frames that are cut short or changed are refused, and an end between frames is told apart") {
  const std::vector<std::byte> frame =
      EncodeFrame(FrameKind::kMeasurement, EncodeMeasurement({5, -1, Outcome::kOk, 0, {1e-6}, {}, ""}));
  REQUIRE(ReadFrameOf(frame).ok());
  for (size_t size = 0; size < frame.size(); ++size) {
    const Result<Frame> cut = ReadFrameOf(std::span(frame).first(size));
    REQUIRE_FALSE(cut.ok());
    CHECK((cut.status().code() == StatusCode::kNotFound) == (size == 0));
  }
  for (size_t i = 0; i < frame.size(); ++i) {
    std::vector<std::byte> changed = frame;
    changed[i] ^= std::byte{0x10};
    const Result<Frame> read = ReadFrameOf(changed);
    // The kind alone is not hashed; one that fits is seen by whoever waits for another.
    const bool is_kind = i == 4;
    CHECK((!read.ok() || (is_kind && read->kind != FrameKind::kMeasurement)));
  }
}

TEST_CASE("measure protocol: messages that are cut short are refused") {
  Candidate candidate = QuickCandidate(1);
  candidate.program.executable = SharedBytes::Own({std::byte{1}, std::byte{2}});
  const std::vector<std::byte> payload = EncodeCandidate(candidate, 3);
  for (size_t size = 0; size < payload.size(); ++size) {
    CHECK_FALSE(DecodeCandidate(std::span(payload).first(size)).ok());
  }
}

TEST_CASE("measure protocol: text before a mark is given, and no byte behind it is taken") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(WriteBytes(ends[1], formats::AsBytes("Welcome to board!\nMARKafter"), Deadline::After(1)).ok());
  const Result<std::string> before = ReadUpTo(ends[0], "MARK", Deadline::After(1));
  REQUIRE(before.ok());
  CHECK(*before == "Welcome to board!\n");
  std::byte rest[5];
  CHECK(ReadBytes(ends[0], rest, Deadline::After(1)).ok());
  CHECK(formats::AsText(rest) == "after");
  CHECK(ReadUpTo(ends[0], "MARK", Deadline::After(0.01)).status().code() == StatusCode::kDeadlineExceeded);
  close(ends[1]);
  CHECK(ReadUpTo(ends[0], "MARK", Deadline::After(1)).status().code() == StatusCode::kIo);
  close(ends[0]);
}

}  // namespace
}  // namespace ingot::tune
