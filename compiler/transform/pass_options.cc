// The table of options, each with a pointer to its field of PassOptions, whose type decides how the value is parsed.
#include "compiler/transform/pass_options.h"

#include <charconv>

#include "runtime/suggest.h"

namespace ingot::transform {

namespace {

constexpr PassOptionRow kOptions[] = {
    {"default_schedule.rules", "the rules that are asked, in this order; empty: all", &PassOptions::schedule_rules},
    {"fold_constants.max_bytes", "bytes of one folded result", &PassOptions::fold_max_bytes},
    {"fold_constants.max_operations", "operations of one run over the module", &PassOptions::fold_max_operations},
    {"fold_constants.max_steps", "statements of tensor functions interpreted in one run over the module",
     &PassOptions::fold_max_steps},
    {"fuse_ops.max_group", "calls in one group", &PassOptions::fuse_max_group},
    {"lift_params.keep_prepare", "true: what packs weights stays in the file", &PassOptions::keep_prepare},
};

Status Expected(const PassOptionRow& row, const char* what, std::string_view got) {
  return Status(StatusCode::kInvalidArgument,
                std::string(row.name) + ": expected " + what + ", got \"" + std::string(got) + "\"");
}

}  // namespace

std::span<const PassOptionRow> PassOptionTable() { return kOptions; }

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return items;
}

Status SetPassOption(std::string_view assignment, PassOptions& options) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return Status(StatusCode::kInvalidArgument, "expected PASS.OPTION=VALUE, got \"" + std::string(assignment) + "\"");
  }
  const std::string_view name = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  std::vector<std::string_view> known;
  for (const PassOptionRow& row : kOptions) {
    known.emplace_back(row.name);
    if (name != row.name) continue;
    if (const auto* number = std::get_if<int64_t PassOptions::*>(&row.field)) {
      int64_t parsed = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
      if (error != std::errc() || end != value.data() + value.size() || parsed < 0) {
        return Expected(row, "a whole number >= 0", value);
      }
      options.*(*number) = parsed;
    } else if (const auto* flag = std::get_if<bool PassOptions::*>(&row.field)) {
      if (value != "true" && value != "false") return Expected(row, "true or false", value);
      options.*(*flag) = value == "true";
    } else {
      options.*std::get<std::vector<std::string> PassOptions::*>(row.field) = SplitList(value);
    }
    return Status();
  }
  return Status(StatusCode::kInvalidArgument,
                "there is no pass option \"" + std::string(name) + "\"" + DidYouMean(name, known));
}

std::string PassOptionText(const PassOptionRow& row, const PassOptions& options) {
  if (const auto* number = std::get_if<int64_t PassOptions::*>(&row.field)) return std::to_string(options.*(*number));
  if (const auto* flag = std::get_if<bool PassOptions::*>(&row.field)) return options.*(*flag) ? "true" : "false";
  std::string text;
  for (const std::string& item : options.*std::get<std::vector<std::string> PassOptions::*>(row.field)) {
    text += (text.empty() ? "" : ",") + item;
  }
  return text;
}

}  // namespace ingot::transform
