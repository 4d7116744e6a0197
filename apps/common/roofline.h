// The kernels of a profile beside the machine's peaks: which share of its multiply-adds or of its memory's rate each
// one reaches, by the operations and bytes that the file says of its kernels (the compiler's estimates: each tensor read
// or written once).
#pragma once

#include <string>

#include "apps/common/json.h"
#include "apps/common/machine_peaks.h"
#include "apps/common/profile.h"

namespace ingot::apps {

std::string RooflineTable(const Profile& profile, const MachinePeaks& peaks);
Json RooflineJson(const Profile& profile, const MachinePeaks& peaks);

}  // namespace ingot::apps
