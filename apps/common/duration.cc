// A number and its unit.
#include "apps/common/duration.h"

#include <cmath>
#include <cstdlib>

namespace ingot::apps {

Result<double> ParseDuration(const std::string& text) {
  struct Unit {
    const char* name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  for (const Unit& unit : kUnits) {
    if (end != text.c_str() && std::string(end) == unit.name && value >= 0 && std::isfinite(value)) {
      return value * unit.seconds;
    }
  }
  return Status(StatusCode::kInvalidArgument, "expected a duration such as 200ms or 3s, got \"" + text + "\"");
}

}  // namespace ingot::apps
