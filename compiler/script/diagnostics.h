// Diagnostics of the text form: errors with file, line, column, the line itself and a caret. The parser reports here
// and goes on, so that one run shows every error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/node.h"

namespace ingot::script {

// A place in the source; columns from 1, in characters. end_column is one past the last character on the same line.
struct Place {
  int32_t line = 0;
  int32_t column = 0;
  int32_t end_column = 0;
};

struct Diagnostic {
  Place place;
  std::string message;
};

class DiagnosticSink {
 public:
  // At most this many errors are kept; further ones are only counted.
  static constexpr size_t kMaxKept = 20;

  explicit DiagnosticSink(std::shared_ptr<const ir::SourceText> source) : source_(std::move(source)) {}
  void Error(Place place, std::string message);
  bool has_errors() const { return count_ > 0; }
  size_t count() const { return count_; }
  const std::vector<Diagnostic>& errors() const { return errors_; }
  // Returns every kept error in the order of the text:
  //   module.py:3:9: error: unknown name "lvv"; did you mean "lv"?
  //       x = lvv
  //           ^~~
  std::string ToString() const;

 private:
  std::shared_ptr<const ir::SourceText> source_;
  std::vector<Diagnostic> errors_;
  size_t count_ = 0;
};

}  // namespace ingot::script
