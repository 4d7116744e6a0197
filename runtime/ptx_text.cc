#include "runtime/ptx_text.h"

#include <algorithm>

#include "runtime/text.h"

namespace ingot {

std::string PtxVersionOf(std::string_view text) {
  constexpr std::string_view kDirective = ".version ";
  const size_t at = text.find(kDirective);
  if (at == std::string_view::npos) return "no PTX";
  text.remove_prefix(at + kDirective.size());
  return StrCat({"PTX ", text.substr(0, text.find_first_not_of("0123456789."))});
}

NumArguments ArgumentsOf(std::string_view text) {
  constexpr std::string_view kEntry = ".entry", kSpace = " \t\r\n";
  NumArguments found;
  for (size_t at = text.find(kEntry); at != std::string_view::npos; at = text.find(kEntry, at)) {
    const size_t name = text.find_first_not_of(kSpace, at += kEntry.size());
    const size_t end = text.find_first_of(" \t\r\n({", name), open = text.find_first_not_of(kSpace, end);
    if (name == std::string_view::npos || open == std::string_view::npos) break;
    const size_t close = text[open] == '(' ? text.find(')', open) : open;
    std::string_view list = text.substr(open, close - open);
    int64_t count = 0;
    while (!list.empty() && count >= 0) {
      const std::string_view own = list.substr(0, list.find(','));
      list.remove_prefix(std::min(list.size(), own.size() + 1));
      if (own.find(".param") == std::string_view::npos) continue;
      constexpr std::string_view kWords[] = {".u64", ".s64", ".b64", ".f64"};
      const bool is_word = own.find('[') == std::string_view::npos && std::ranges::any_of(kWords, [&](auto word) {
                             return own.find(word) != std::string_view::npos;
                           });
      count = is_word ? count + 1 : -1 - count;
    }
    found.emplace(text.substr(name, end - name), count);
  }
  return found;
}

}  // namespace ingot
