// The rows of rewrites.def as a vector, the texts that list and explain them, permissions, and the log of applications.
#include "compiler/transform/rewrite_table.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "compiler/op/registry.h"
#include "runtime/check.h"
#include "runtime/suggest.h"

namespace ingot::transform {

namespace {

// Converts "kAddZero" to "add_zero".
std::string NameOf(std::string_view id) {
  std::string name;
  for (char letter : id.substr(1)) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (is_upper && !name.empty()) name += '_';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return name;
}

const std::vector<Rewrite>& Table() {
  static const std::vector<Rewrite> table = {
#define INGOT_REWRITE(id, exactness, by, summary, contract) \
  Rewrite{RewriteId::id, NameOf(#id), Exactness::exactness, CarriedOutBy::by, summary, contract},
#include "compiler/transform/rewrites.def"
  };
  return table;
}

// The columns of name and class.
std::string HeadOf(const Rewrite& rewrite) {
  char head[64];
  std::snprintf(head, sizeof head, "%-24s %-13s", rewrite.name.c_str(),
                std::string(ExactnessName(rewrite.exactness)).c_str());
  return head;
}

}  // namespace

std::string_view ExactnessName(Exactness exactness) {
  switch (exactness) {
    case Exactness::kBitwise:
      return "bitwise";
    case Exactness::kRoundingOnly:
      return "rounding_only";
    case Exactness::kBounded:
      return "bounded";
    case Exactness::kByPermission:
      return "by_permission";
  }
  INGOT_UNREACHABLE("Exactness");
}

std::string_view Rewrite::group() const {
  const std::string_view text = contract;
  return exactness == Exactness::kByPermission ? text.substr(0, text.find(':')) : std::string_view();
}

std::span<const Rewrite> RewriteTable() { return Table(); }
const Rewrite& GetRewrite(RewriteId id) { return Table().at(static_cast<size_t>(id)); }

std::string RewriteTableText() {
  std::string text;
  for (const Rewrite& rewrite : Table()) {
    text += HeadOf(rewrite) + " " + rewrite.summary + "\n";
    if (*rewrite.contract != '\0') text += "    " + std::string(rewrite.contract) + "\n";
  }
  return text;
}

bool IsPermitted(RewriteId id, const RewritePermissions& permissions) {
  const Rewrite& rewrite = GetRewrite(id);
  switch (rewrite.exactness) {
    case Exactness::kBitwise:
      return true;
    case Exactness::kRoundingOnly:
    case Exactness::kBounded:
      return !permissions.strict_math;
    case Exactness::kByPermission:
      return std::ranges::any_of(permissions.fast_math,
                                 [&](const std::string& group) { return group == "all" || group == rewrite.group(); });
  }
  INGOT_UNREACHABLE("Exactness");
}

Status CheckPermissions(const RewritePermissions& permissions) {
  std::vector<std::string_view> known = {"all"};
  for (const Rewrite& rewrite : Table()) {
    const std::string_view group = rewrite.group();
    if (!group.empty() && std::ranges::find(known, group) == known.end()) known.push_back(group);
  }
  for (const std::string& group : permissions.fast_math) {
    if (std::ranges::find(known, group) != known.end()) continue;
    std::string all;
    for (std::string_view name : known) all += (all.empty() ? "" : ", ") + std::string(name);
    return Status(StatusCode::kInvalidArgument, "there is no group of rewrites \"" + group + "\"" +
                                                    DidYouMean(group, known) + " (groups: " + all + ")");
  }
  if (permissions.strict_math && !permissions.fast_math.empty()) {
    return Status(StatusCode::kInvalidArgument, "strict math and fast math exclude each other");
  }
  return Status();
}

Exactness RewriteLog::LoosestSince(const RewriteLog& before) const {
  Exactness loosest = Exactness::kBitwise;
  for (const Rewrite& rewrite : Table()) {
    const bool is_new = count(rewrite.id) > before.count(rewrite.id);
    if (is_new && rewrite.by == CarriedOutBy::kModule) loosest = std::max(loosest, rewrite.exactness);
  }
  return loosest;
}

void RewriteLog::Count(RewriteId id, const ir::CallNode& call, const ir::Span& span) {
  const auto* op = ir::As<ir::OpNode>(call.callee);
  Count(id, op == nullptr ? "" : op->name, span.is_known() ? span : call.span);
}

void RewriteLog::Count(RewriteId id, std::string operation, const ir::Span& span) {
  Count(id);
  applied_.push_back({id, std::move(operation), span.ToString()});
}

std::string RewriteLog::ToString() const {
  std::string text;
  for (const Rewrite& rewrite : Table()) {
    if (count(rewrite.id) == 0) continue;
    char number[32];
    std::snprintf(number, sizeof number, " %6lld  ", static_cast<long long>(count(rewrite.id)));
    text += HeadOf(rewrite) + number + std::string(rewrite.summary) + "\n";
  }
  return text;
}

std::string RewriteLog::Explain() const {
  if (applied_.empty()) return "rewrites: none\n";
  std::string text = "rewrites: name, class, what it was applied to\n";
  for (const Applied& applied : applied_) {
    text += HeadOf(GetRewrite(applied.id)) + " " + applied.operation + "  " + applied.place + "\n";
  }
  return text + "\nrewrites: name, class, how often, what it does\n" + ToString();
}

}  // namespace ingot::transform
