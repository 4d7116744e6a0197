// Binds weights that lie in files beside the executable, or that the caller gives in the place of the program's own, to
// the program's constants. This happens when a file is opened, before anything is packed (vm/run/prepared_constants.h).
// In: a verified program and where to look; out: constants with bytes. Files are mapped, never parsed: the program says
// where in them each weight lies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/status.h"
#include "runtime/tensor.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct WeightSources {
  std::string directory;      // the folder of the files that the program names; empty: none
  bool verify_files = false;  // hash large files too
  bool is_policy = false;     // files are read to private memory, and their SHA-256 is compared
  // Weights by name, in the place of the program's own: host tensors of the same type.
  std::vector<std::pair<std::string, Tensor>> replacements;
};

// Files of another size or hash are corrupt; a replacement that names no weight, or has another type, is bad input.
Status BindWeights(Program& program, const WeightSources& sources);

}  // namespace ingot::vm
