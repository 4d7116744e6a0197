// What nearly every file of the compiler includes, parsed once where headers are precompiled (CMakeLists.txt says
// when). No file includes this one: each names what it uses.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
