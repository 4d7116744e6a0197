// Releasing nodes without recursion, the text of a span, and the special members of the nodes of types (type.h has no
// file of its own).
#include "compiler/ir/node.h"

#include "compiler/ir/type.h"

#include <vector>

namespace ingot::ir {

INGOT_DEFINE_NODE(TypeNode);
#define INGOT_TYPE_NODE(enumerator, Node) INGOT_DEFINE_NODE(Node);
#include "compiler/ir/nodes.def"

Node::Node(const Node& other) : span(other.span) {}
Node::~Node() = default;

std::string Span::ToString() const {
  if (!is_known()) return "<unknown>";
  if (line > 0) return source->name + ":" + std::to_string(line) + ":" + std::to_string(column);
  return operation == nullptr ? source->name : source->name + ": " + *operation;
}

void Node::Destroy(const Node* node) {
  // Children that die with their parent are put on the list of the outermost call instead of recursing.
  thread_local std::vector<const Node*>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(node);
    return;
  }
  std::vector<const Node*> list{node};
  pending = &list;
  while (!list.empty()) {
    const Node* next = list.back();
    list.pop_back();
    delete next;
  }
  pending = nullptr;
}

}  // namespace ingot::ir

template class std::vector<ingot::ir::Type>;
