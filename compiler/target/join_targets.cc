// Every text is parsed; the names of all variants, in order, make the joined text.
#include "compiler/target/join_targets.h"

#include <optional>

#include "compiler/target/target.h"

namespace ingot {

Result<std::string> JoinTargets(std::span<const std::string> texts) {
  if (texts.size() == 1) return texts[0];
  std::string joined;
  std::optional<Target::Kind> kind;
  for (const std::string& text : texts) {
    INGOT_ASSIGN_OR_RETURN(const TargetFamily family, ParseTarget(text));
    if (kind && *kind != family.kind) {
      return Status(StatusCode::kInvalidArgument, "targets \"" + texts[0] + "\" and \"" + text +
                                                      "\" are of two kinds of devices, which have a program each");
    }
    kind = family.kind;
    const char* const first = family.kind == Target::Kind::kCpu ? "cpu:" : "cuda:";
    for (const Target& variant : family.variants) joined += (joined.empty() ? first : ",") + variant.name;
  }
  return joined;
}

}  // namespace ingot
