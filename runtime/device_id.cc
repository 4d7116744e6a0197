// The table of device kinds and their names, from which parsing, printing and IsKnown() work. This file is compiled for
// speed; functions marked cold are not.
#include "runtime/device_id.h"

#include <charconv>

namespace ingot {
namespace {

struct KindName {
  DeviceKind kind;
  std::string_view name;
};
constexpr KindName kKindNames[] = {
    {DeviceKind::kCpu, "cpu"},
    {DeviceKind::kCuda, "cuda"},
    {DeviceKind::kCudaHost, "cuda_host"},
    {DeviceKind::kNull, "null"},
    {DeviceKind::kCudaManaged, "cuda_managed"},
};

}  // namespace

[[gnu::cold]] Result<DeviceId> DeviceId::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  int32_t index = 0;
  bool index_fine = true;
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    auto [parsed, error] = std::from_chars(text.data() + colon + 1, end, index);
    index_fine = error == std::errc() && parsed == end && index >= 0;
  }
  for (const KindName& row : kKindNames) {
    if (index_fine && row.name == text.substr(0, colon)) return DeviceId{row.kind, index};
  }
  std::string known;
  for (const KindName& row : kKindNames) known += StrCat({(known.empty() ? "" : ", "), row.name});
  return Status(StatusCode::kInvalidArgument,
                {"unknown device \"", text.substr(0, 40), "\", expected KIND or KIND:INDEX of ", known});
}

bool DeviceId::IsKnown() const {
  for (const KindName& row : kKindNames) {
    if (row.kind == kind) return index >= 0;
  }
  return false;
}

[[gnu::cold]] std::string DeviceId::ToString() const {
  std::string text = StrCat({"device_type_", static_cast<int32_t>(kind)});
  for (const KindName& row : kKindNames) {
    if (row.kind == kind) text = row.name;
  }
  return index == 0 ? text : StrCat({text, ":", index});
}

}  // namespace ingot
