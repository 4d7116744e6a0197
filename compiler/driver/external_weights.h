// Weights in a file of their own (vm-compile --external-weights): a .safetensors beside the executable, which names it
// by a relative path and knows its size and hashes. In: a program with replaceable weights (keep_prepare); out: the
// file, and the program without their bytes. Weights of dtypes that safetensors lacks stay in the program.
#pragma once

#include <string>

#include "formats/file.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::driver {

// path: of the file to write, in or beneath the folder of `executable`, the file that the program is going to be.
Status MoveWeightsToFile(vm::Program& program, const std::string& path, const std::string& executable,
                         formats::FileCalls& calls = formats::FileCalls::System());

}  // namespace ingot::driver
