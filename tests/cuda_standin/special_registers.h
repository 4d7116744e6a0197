// The special registers by number, in the order of kSpecialRegisters.
#pragma once

#include <string_view>

namespace ingot::ptx {

constexpr const char* kSpecialRegisters[] = {
    "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",      "%ntid.y",
    "%ntid.z",          "%ctaid.x",     "%ctaid.y",     "%ctaid.z",     "%nctaid.x",
    "%nctaid.y",        "%nctaid.z",    "%laneid",      "%warpid",      "%lanemask_eq",
    "%lanemask_lt",     "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%dynamic_smem_size",
    "%total_smem_size", "%nwarpid",
};
// -1 of what is none. Clocks are none on purpose: no result may depend on one.
int SpecialRegisterNumber(std::string_view name);

}  // namespace ingot::ptx
