// Bytes and frames over descriptors, with deadlines: what the pool's side and the worker's side of the protocol share.
#pragma once

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tune/measure/protocol.h"
#include "runtime/status.h"

namespace ingot::tune {

// When to give up waiting: at a time, or when another thread says so.
class Deadline {
 public:
  static Deadline Never() { return Deadline(Clock::time_point::max(), nullptr); }
  static Deadline After(double seconds, const std::atomic<bool>* stop = nullptr);
  // Waits until the descriptor has one of the events of poll(2), or an error. kDeadlineExceeded, kCancelled.
  Status WaitFor(int fd, short events) const;
  bool has_passed() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Deadline(Clock::time_point end, const std::atomic<bool>* stop) : end_(end), stop_(stop) {}
  Clock::time_point end_;
  const std::atomic<bool>* stop_;
};

// A reader that has gone is kIo; SIGPIPE is the caller's matter.
Status WriteBytes(int fd, std::span<const std::byte> bytes, const Deadline& deadline);
// Fills all of the span, or says how many bytes there were before the end (kIo).
Status ReadBytes(int fd, std::span<std::byte> bytes, const Deadline& deadline);
// Reads up to and with a mark, and gives the text before it: at most 64 KiB. No byte behind the mark is taken. Where
// the stream ends first, the error quotes the end of what there was.
Result<std::string> ReadUpTo(int fd, std::string_view mark, const Deadline& deadline);

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::vector<std::byte> payload;
};
Status WriteFrame(int fd, FrameKind kind, std::span<const std::byte> payload, const Deadline& deadline);
// kNotFound where the stream ends before a frame begins.
Result<Frame> ReadFrame(int fd, const Deadline& deadline);

}  // namespace ingot::tune
