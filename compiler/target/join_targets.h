// Several --target as one: targets of one device family share a file, and the text that names them all is a target too.
#pragma once

#include <span>
#include <string>

#include "runtime/status.h"

namespace ingot {

// "cpu:x86-64-v3" and "cpu:aarch64" are "cpu:x86-64-v3,aarch64"; "cpu" stands for its default variants among others.
// A single text comes back as it is; an error where one of several is no target.
Result<std::string> JoinTargets(std::span<const std::string> texts);

}  // namespace ingot
