// What a pool and a worker say to each other. The worker begins with a greeting, then both send frames: a mark, a kind,
// the length and the hash of a payload, and the payload. A frame that is cut short or changed is an error, never a
// message. Little-endian on any machine; both sides are of one protocol version, which the greeting holds.
//
//   worker: hello                              the machine
//   pool:   program, candidate                 a reference that the worker lacks; then what to measure
//   worker: measurement                        and so on, until the worker's input ends
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tune/measure/candidate.h"
#include "runtime/status.h"

namespace ingot::tune {

// No login prints this.
inline constexpr std::string_view kGreeting = "\x89INGOT MEASURE 1\n";
// References that a worker keeps: the last ones.
inline constexpr size_t kKeptReferences = 8;

enum class FrameKind : uint8_t { kHello = 1, kProgram = 2, kCandidate = 3, kMeasurement = 4 };
struct FrameHead {
  FrameKind kind = FrameKind::kHello;
  uint64_t size_bytes = 0;
  uint64_t hash = 0;
};
inline constexpr size_t kFrameHeadBytes = 21;
// At most so many bytes have place in a frame.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 33;

std::vector<std::byte> EncodeFrame(FrameKind kind, std::span<const std::byte> payload);
Result<FrameHead> DecodeFrameHead(std::span<const std::byte> bytes);
Status CheckFrame(const FrameHead& head, std::span<const std::byte> payload);

std::vector<std::byte> EncodeMachine(const RunnerMachine& machine);
Result<RunnerMachine> DecodeMachine(std::span<const std::byte> payload);

// Without the bytes of the reference, which go ahead as a program, and are known by their hash.
std::vector<std::byte> EncodeCandidate(const Candidate& candidate, uint64_t reference_hash);
struct ReceivedCandidate {
  Candidate candidate;
  uint64_t reference_hash = 0;  // 0: there is none
};
Result<ReceivedCandidate> DecodeCandidate(std::span<const std::byte> payload);

std::vector<std::byte> EncodeMeasurement(const Measurement& measurement);
Result<Measurement> DecodeMeasurement(std::span<const std::byte> payload);

}  // namespace ingot::tune
