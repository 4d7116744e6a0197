// Headers that nearly every test includes; they are parsed once where headers are precompiled. No file includes this
// one: each names what it uses.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vm/program/program.h"
#include "vm/program/type.h"
