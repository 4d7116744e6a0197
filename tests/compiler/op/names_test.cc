// The names by which passes ask for operators are those of rows.
#include "compiler/op/names.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace ingot::op {

TEST_CASE("each name that passes ask for is an operator's, once") {
  std::vector<std::string_view> names(names::kAll.begin(), names::kAll.end());
  for (std::string_view name : names) {
    CAPTURE(name);
    CHECK(FindOp(name) != nullptr);
  }
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

}  // namespace ingot::op
