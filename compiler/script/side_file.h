// The side file of a text: the constants that module.py names as metadata["HASH"], as module.constants.safetensors
// beside it, one tensor per hash.
#pragma once

#include <string>

#include "compiler/script/constant_store.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::script {

// "dir/module.py" -> "dir/module.constants.safetensors".
std::string SideFilePath(const std::string& text_path);
// Fails on a dtype that safetensors lacks.
Status WriteSideFile(const std::string& path, const ConstantStore& constants,
                     formats::FileCalls& calls = formats::FileCalls::System());
// Refuses a file whose tensors do not have the hashes that their names say.
Result<ConstantStore> ReadSideFile(const std::string& path);

}  // namespace ingot::script
