#include "compiler/ir/node.h"

#include <doctest/doctest.h>

namespace ingot::ir {
namespace {

struct Link : Node {
  Ref<Link> next;
  explicit Link(Ref<Link> n) : next(std::move(n)) {}
};

TEST_CASE("a chain of a million nodes is released without recursion") {
  Ref<Link> head;
  for (int i = 0; i < 1'000'000; ++i) head = Make<Link>(head);
  head = nullptr;
  CHECK(head == nullptr);
}

}  // namespace
}  // namespace ingot::ir
