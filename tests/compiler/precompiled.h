// Headers that nearly every test of the compiler includes; they are parsed once where headers are precompiled. No file
// includes this one: each names what it uses.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
