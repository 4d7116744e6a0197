// Headers that nearly every file of the VM includes; they are parsed once where headers are precompiled. No file
// includes this one: each names what it uses.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/container.h"
#include "runtime/status.h"
#include "runtime/tensor.h"
#include "vm/program/program.h"
#include "vm/program/type.h"
