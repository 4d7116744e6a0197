// Messages with the source line and a caret, sorted by place; the number kept is limited.
#include "compiler/script/diagnostics.h"

#include <algorithm>
#include <string_view>

namespace ingot::script {
namespace {

std::string_view LineOf(std::string_view text, int32_t line) {
  size_t begin = 0;
  for (int32_t i = 1; i < line; ++i) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return "";
    begin = end + 1;
  }
  std::string_view rest = text.substr(std::min(begin, text.size()));
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Returns the line and a second line with a caret below the column. Long lines are cut around it.
std::string CaretLines(std::string_view line, Place place) {
  constexpr int32_t kMaxWidth = 160, kBefore = 100;
  const int32_t first = place.column > kMaxWidth - 20 ? place.column - kBefore : 1;
  std::string shown, marks;
  int32_t column = 0;
  for (const char c : line) {
    if (StartsCharacter(c)) ++column;
    if (column < first) continue;
    if (column >= first + kMaxWidth) break;
    shown += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? '?' : c;
    if (StartsCharacter(c) && column < place.column) marks += c == '\t' ? '\t' : ' ';
  }
  for (int32_t at = column + 1; at < place.column; ++at) marks += ' ';
  marks += '^';
  const int32_t end = std::min({place.end_column, column + 1, first + kMaxWidth});
  for (int32_t at = place.column + 1; at < end; ++at) marks += '~';
  return "    " + shown + "\n    " + marks + "\n";
}

}  // namespace

void DiagnosticSink::Error(Place place, std::string message) {
  ++count_;
  if (errors_.size() < kMaxKept) errors_.push_back({place, std::move(message)});
}

std::string DiagnosticSink::ToString() const {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& error : errors_) sorted.push_back(&error);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic* a, const Diagnostic* b) {
    return std::pair(a->place.line, a->place.column) < std::pair(b->place.line, b->place.column);
  });
  std::string text;
  for (const Diagnostic* error : sorted) {
    const Place& place = error->place;
    text += source_->name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
            ": error: " + error->message + "\n" + CaretLines(LineOf(source_->text, place.line), place);
  }
  if (count_ > errors_.size()) text += "and " + std::to_string(count_ - errors_.size()) + " more errors\n";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace ingot::script
