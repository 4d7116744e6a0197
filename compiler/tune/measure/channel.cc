// Every wait is a poll in slices, so that another thread can end it.
#include "compiler/tune/measure/channel.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "formats/byte_reader.h"

namespace ingot::tune {
namespace {

constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kQuotedBytes = 400;
constexpr size_t kPieceBytes = 1 << 20;  // memory is taken as bytes come, not as a frame's head says

Status SystemError(const char* what) {
  return Status(StatusCode::kIo, std::string(what) + ": " + std::strerror(errno));
}

// At least one byte; 0 at the end of the stream.
Result<size_t> ReadSome(int fd, std::span<std::byte> bytes, const Deadline& deadline) {
  while (true) {
    INGOT_RETURN_IF_ERROR(deadline.WaitFor(fd, POLLIN));
    const ssize_t count = read(fd, bytes.data(), bytes.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR && errno != EAGAIN) return SystemError("read");
  }
}

}  // namespace

Deadline Deadline::After(double seconds, const std::atomic<bool>* stop) {
  const std::chrono::duration<double> time(std::clamp(seconds, 0.0, 1e9));
  return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(time), stop);
}

Status Deadline::WaitFor(int fd, short events) const {
  while (true) {
    if (stop_ != nullptr && *stop_) return Status(StatusCode::kCancelled, "stopped");
    int64_t wait = 100;
    if (end_ != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      if (left <= 0) return Status(StatusCode::kDeadlineExceeded, "no answer in time");
      wait = std::min<int64_t>(wait, left);
    } else if (stop_ == nullptr) {
      wait = -1;
    }
    pollfd polled{fd, events, 0};
    const int count = poll(&polled, 1, static_cast<int>(wait));
    if (count > 0) return Status();
    if (count < 0 && errno != EINTR) return SystemError("poll");
  }
}

Status WriteBytes(int fd, std::span<const std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    INGOT_RETURN_IF_ERROR(deadline.WaitFor(fd, POLLOUT));
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      return SystemError("write");
    }
  }
  return Status();
}

Status ReadBytes(int fd, std::span<std::byte> bytes, const Deadline& deadline) {
  size_t there = 0;
  while (there < bytes.size()) {
    INGOT_ASSIGN_OR_RETURN(const size_t count, ReadSome(fd, bytes.subspan(there), deadline));
    if (count == 0) {
      return Status(StatusCode::kIo, "the stream ended after " + std::to_string(there) + " of " +
                                         std::to_string(bytes.size()) + " bytes");
    }
    there += count;
  }
  return Status();
}

Result<std::string> ReadUpTo(int fd, std::string_view mark, const Deadline& deadline) {
  std::string text;
  const auto failure = [&](const Status& status) {
    const std::string end = text.substr(text.size() - std::min(text.size(), kQuotedBytes));
    return Status(status.code(), status.message() + (end.empty() ? "" : "; it wrote \"" + end + "\""));
  };
  while (!text.ends_with(mark)) {
    if (text.size() >= kMaxTextBytes) return failure(Status(StatusCode::kCorrupt, "too much text before it began"));
    std::byte byte{};
    const Status status = ReadBytes(fd, {&byte, 1}, deadline);
    if (!status.ok()) {
      return failure(status.code() == StatusCode::kIo ? Status(StatusCode::kIo, "it ended before it began") : status);
    }
    text += static_cast<char>(byte);
  }
  text.resize(text.size() - mark.size());
  return text;
}

Status WriteFrame(int fd, FrameKind kind, std::span<const std::byte> payload, const Deadline& deadline) {
  return WriteBytes(fd, EncodeFrame(kind, payload), deadline);
}

Result<Frame> ReadFrame(int fd, const Deadline& deadline) {
  std::array<std::byte, kFrameHeadBytes> bytes;
  INGOT_ASSIGN_OR_RETURN(const size_t begun, ReadSome(fd, bytes, deadline));
  if (begun == 0) return Status(StatusCode::kNotFound, "the stream ended");
  INGOT_RETURN_IF_ERROR(ReadBytes(fd, std::span(bytes).subspan(begun), deadline));
  INGOT_ASSIGN_OR_RETURN(const FrameHead head, DecodeFrameHead(bytes));
  Frame frame{head.kind, {}};
  while (frame.payload.size() < head.size_bytes) {
    const size_t there = frame.payload.size();
    frame.payload.resize(there + std::min<uint64_t>(head.size_bytes - there, std::max(kPieceBytes, there)));
    INGOT_RETURN_IF_ERROR(ReadBytes(fd, std::span(frame.payload).subspan(there), deadline));
  }
  INGOT_RETURN_IF_ERROR(CheckFrame(head, frame.payload));
  return frame;
}

}  // namespace ingot::tune
