// Every text is parsed; the names of all variants, in order, make the joined text.
#include "compiler/target/join_targets.h"

#include "compiler/target/target.h"

namespace ingot {

Result<std::string> JoinTargets(std::span<const std::string> texts) {
  if (texts.size() == 1) return texts[0];
  std::string joined;
  for (const std::string& text : texts) {
    INGOT_ASSIGN_OR_RETURN(const TargetFamily family, ParseTarget(text));
    if (family.kind != Target::Kind::kCpu) {
      return Status(StatusCode::kInvalidArgument, "target \"" + text + "\" cannot share a file with others yet");
    }
    for (const Target& variant : family.variants) joined += (joined.empty() ? "cpu:" : ",") + variant.name;
  }
  return joined;
}

}  // namespace ingot
