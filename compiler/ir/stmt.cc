// Nodes of statements and buffers: their special members, and MakeSeq.
#include "compiler/ir/stmt.h"

namespace ingot::ir {

INGOT_DEFINE_NODE(BufferNode);
INGOT_DEFINE_NODE(StmtNode);
#define INGOT_STMT_NODE(enumerator, Node) INGOT_DEFINE_NODE(Node);
#include "compiler/ir/nodes.def"

BufferNode::BufferNode(std::string n, DataType t, std::vector<PrimExpr> s, std::string sc)
    : data(MakePrimVar(n, DataType::Handle())),
      name(std::move(n)),
      dtype(t),
      shape(std::move(s)),
      scope(std::move(sc)) {}

Stmt MakeSeq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& stmt : stmts) {
    if (stmt == nullptr) continue;
    if (const auto* seq = As<SeqNode>(stmt)) {
      flat.insert(flat.end(), seq->stmts.begin(), seq->stmts.end());
      continue;
    }
    const auto* evaluate = As<EvaluateNode>(stmt);
    if (evaluate != nullptr && evaluate->value->kind == PrimKind::kIntImm) continue;
    flat.push_back(std::move(stmt));
  }
  if (flat.empty()) return Make<EvaluateNode>(Int32(0));
  if (flat.size() == 1) return flat[0];
  return Make<SeqNode>(std::move(flat));
}

}  // namespace ingot::ir

template class std::vector<ingot::ir::Stmt>;
template class std::vector<ingot::ir::Buffer>;
template class std::vector<ingot::ir::Range>;
template class std::vector<ingot::ir::BufferRegion>;
