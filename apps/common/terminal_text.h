// TerminalText: a stream buffer that escapes control characters in everything that a tool prints to the stream.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace ingot::apps {

class TerminalText : public std::streambuf {
 public:
  // The stream writes through this buffer as long as the buffer lives.
  explicit TerminalText(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}
  ~TerminalText() override { stream_.rdbuf(target_); }
  TerminalText(const TerminalText&) = delete;
  // Writes without escaping, for the tool's own colours.
  void WriteAsIs(const std::string& text);

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override { return target_->pubsync(); }

 private:
  std::ostream& stream_;
  std::streambuf* const target_;
};

}  // namespace ingot::apps
