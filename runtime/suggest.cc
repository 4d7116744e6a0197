// Levenshtein distance in one row of the table, for texts of at most 64 bytes.
#include "runtime/suggest.h"

#include <algorithm>
#include <vector>

#include "runtime/text.h"

namespace ingot {
namespace {

constexpr size_t kMaxLength = 64;  // of texts that are compared

// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearestName(std::string_view text, std::span<const std::string_view> names) {
  if (text.empty() || text.size() > kMaxLength) return {};
  std::string_view nearest;
  size_t limit = std::max<size_t>(2, text.size() / 3) + 1;
  for (std::string_view name : names) {
    if (name.size() > kMaxLength) continue;
    const size_t distance = EditDistance(text, name);
    if (distance < limit && distance < std::max(text.size(), name.size())) {
      limit = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view nearest = NearestName(text, names);
  return nearest.empty() ? std::string() : StrCat({"; did you mean \"", nearest, "\"?"});
}

}  // namespace ingot
