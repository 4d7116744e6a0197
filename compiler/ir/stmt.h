// The tensor level: buffers, blocks with iteration variables, loops and statements, and PrimFunc. A body is a tree of
// statements; scheduled or not, it means what compiler/interp executes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/attrs.h"
#include "compiler/ir/node.h"
#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

// Identity counts: two buffers of equal shape are two buffers.
struct BufferNode : Node {
  INGOT_NODE_MEMBERS(BufferNode);
  PrimVar data;  // handle
  std::string name;
  DataType dtype;
  std::vector<PrimExpr> shape;
  std::vector<PrimExpr> strides;  // empty: compact, row-major
  PrimExpr elem_offset;           // null: 0
  std::string scope;              // "global", "local", "shared", ...
  int64_t alignment = 64;         // bytes that the data pointer is a multiple of

  BufferNode(std::string n, DataType t, std::vector<PrimExpr> s, std::string sc = "global");
  static constexpr void Fields(auto&& walk) {
    walk(&BufferNode::dtype, &BufferNode::shape, &BufferNode::strides, Optional(&BufferNode::elem_offset),
         &BufferNode::scope, &BufferNode::alignment);
  }
};
inline Buffer MakeBuffer(std::string name, DataType dtype, std::vector<PrimExpr> shape, std::string scope = "global") {
  return Make<BufferNode>(std::move(name), dtype, std::move(shape), std::move(scope));
}

struct BufferRegion {
  Buffer buffer;
  std::vector<Range> region;  // one per dimension
  static constexpr void Fields(auto&& walk) { walk(&BufferRegion::buffer, &BufferRegion::region); }
};
// A view of a region of another buffer, introduced by a block.
struct MatchBufferRegion {
  Buffer buffer;
  BufferRegion source;
  static constexpr void Fields(auto&& walk) { walk(&MatchBufferRegion::source, Defines(&MatchBufferRegion::buffer)); }
};

enum class StmtKind : uint8_t {
#define INGOT_STMT_NODE(enumerator, Node) enumerator,
#include "compiler/ir/nodes.def"
};
struct StmtNode : Node {
  INGOT_NODE_MEMBERS(StmtNode);
  StmtKind kind;

 protected:
  explicit StmtNode(StmtKind k) : kind(k) {}
};
using Stmt = Ref<StmtNode>;

struct BufferStoreNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kBufferStore;
  INGOT_NODE_MEMBERS(BufferStoreNode);
  Buffer buffer;
  PrimExpr value;
  std::vector<PrimExpr> indices;
  BufferStoreNode(Buffer b, PrimExpr v, std::vector<PrimExpr> i)
      : StmtNode(kKind), buffer(std::move(b)), value(std::move(v)), indices(std::move(i)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&BufferStoreNode::buffer, &BufferStoreNode::value, &BufferStoreNode::indices);
  }
};
struct EvaluateNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kEvaluate;
  INGOT_NODE_MEMBERS(EvaluateNode);
  PrimExpr value;
  explicit EvaluateNode(PrimExpr v) : StmtNode(kKind), value(std::move(v)) {}
  static constexpr void Fields(auto&& walk) { walk(&EvaluateNode::value); }
};
struct SeqNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kSeq;
  INGOT_NODE_MEMBERS(SeqNode);
  std::vector<Stmt> stmts;  // never nested directly, never of one
  explicit SeqNode(std::vector<Stmt> s) : StmtNode(kKind), stmts(std::move(s)) {}
  static constexpr void Fields(auto&& walk) { walk(&SeqNode::stmts); }
};
struct IfStmtNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kIf;
  INGOT_NODE_MEMBERS(IfStmtNode);
  PrimExpr condition;
  Stmt then_case, else_case;  // else_case may be null
  IfStmtNode(PrimExpr c, Stmt t, Stmt e)
      : StmtNode(kKind), condition(std::move(c)), then_case(std::move(t)), else_case(std::move(e)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&IfStmtNode::condition, &IfStmtNode::then_case, Optional(&IfStmtNode::else_case));
  }
};
enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding };
struct ForNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kFor;
  INGOT_NODE_MEMBERS(ForNode);
  PrimVar var;
  PrimExpr min, extent;
  ForKind for_kind;
  Stmt body;
  std::string thread_tag;  // of kThreadBinding: "blockIdx.x", "threadIdx.x", ...
  Attrs annotations;
  ForNode(PrimVar v, PrimExpr lo, PrimExpr n, ForKind k, Stmt b, std::string tag = "", Attrs a = {})
      : StmtNode(kKind),
        var(std::move(v)),
        min(std::move(lo)),
        extent(std::move(n)),
        for_kind(k),
        body(std::move(b)),
        thread_tag(std::move(tag)),
        annotations(std::move(a)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&ForNode::min, &ForNode::extent, &ForNode::for_kind, &ForNode::thread_tag, &ForNode::annotations,
         Defines(&ForNode::var), &ForNode::body);
  }
};
struct WhileNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kWhile;
  INGOT_NODE_MEMBERS(WhileNode);
  PrimExpr condition;
  Stmt body;
  WhileNode(PrimExpr c, Stmt b) : StmtNode(kKind), condition(std::move(c)), body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) { walk(&WhileNode::condition, &WhileNode::body); }
};
struct LetStmtNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kLet;
  INGOT_NODE_MEMBERS(LetStmtNode);
  PrimVar var;
  PrimExpr value;
  Stmt body;
  LetStmtNode(PrimVar x, PrimExpr v, Stmt b)
      : StmtNode(kKind), var(std::move(x)), value(std::move(v)), body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&LetStmtNode::value, Defines(&LetStmtNode::var), &LetStmtNode::body);
  }
};
struct AssertStmtNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kAssert;
  INGOT_NODE_MEMBERS(AssertStmtNode);
  PrimExpr condition;
  std::string message;
  Stmt body;
  AssertStmtNode(PrimExpr c, std::string m, Stmt b)
      : StmtNode(kKind), condition(std::move(c)), message(std::move(m)), body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&AssertStmtNode::condition, &AssertStmtNode::message, &AssertStmtNode::body);
  }
};
// Storage for a buffer while the body runs (below block level; blocks list theirs in alloc_buffers).
struct AllocateNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kAllocate;
  INGOT_NODE_MEMBERS(AllocateNode);
  Buffer buffer;
  Stmt body;
  Attrs annotations;
  AllocateNode(Buffer b, Stmt s, Attrs a = {})
      : StmtNode(kKind), buffer(std::move(b)), body(std::move(s)), annotations(std::move(a)) {}
  static constexpr void Fields(auto&& walk) {
    walk(Defines(&AllocateNode::buffer), &AllocateNode::annotations, &AllocateNode::body);
  }
};
// A statement-level attribute: T.attr(...), T.launch_thread (key "thread_extent", node an IterVar).
struct AttrStmtNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kAttr;
  INGOT_NODE_MEMBERS(AttrStmtNode);
  Ref<Node> node;  // may be null
  std::string key;
  AttrValue value;
  Stmt body;
  AttrStmtNode(Ref<Node> n, std::string k, AttrValue v, Stmt b)
      : StmtNode(kKind), node(std::move(n)), key(std::move(k)), value(std::move(v)), body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&AttrStmtNode::key, Defines(&AttrStmtNode::node), &AttrStmtNode::value, &AttrStmtNode::body);
  }
};
struct BlockNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kBlock;
  INGOT_NODE_MEMBERS(BlockNode);
  std::string name;
  std::vector<IterVar> iter_vars;
  std::vector<BufferRegion> reads, writes;
  std::vector<Buffer> alloc_buffers;
  std::vector<MatchBufferRegion> match_buffers;
  Attrs annotations;
  Stmt init;  // may be null; runs before the first iteration of the reduction variables
  Stmt body;
  BlockNode(std::string n, std::vector<IterVar> iv, std::vector<BufferRegion> r, std::vector<BufferRegion> w, Stmt b,
            Stmt i = nullptr)
      : StmtNode(kKind),
        name(std::move(n)),
        iter_vars(std::move(iv)),
        reads(std::move(r)),
        writes(std::move(w)),
        init(std::move(i)),
        body(std::move(b)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&BlockNode::name, Defines(&BlockNode::iter_vars), Defines(&BlockNode::alloc_buffers),
         &BlockNode::match_buffers, &BlockNode::reads, &BlockNode::writes, &BlockNode::annotations,
         Optional(&BlockNode::init), &BlockNode::body);
  }
};
using Block = Ref<BlockNode>;
// Binds the block's iteration variables; the block runs where the predicate holds.
struct BlockRealizeNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kBlockRealize;
  INGOT_NODE_MEMBERS(BlockRealizeNode);
  std::vector<PrimExpr> iter_values;
  PrimExpr predicate;  // bool
  Block block;
  BlockRealizeNode(std::vector<PrimExpr> v, PrimExpr p, Block b)
      : StmtNode(kKind), iter_values(std::move(v)), predicate(std::move(p)), block(std::move(b)) {}
  static constexpr void Fields(auto&& walk) {
    walk(&BlockRealizeNode::iter_values, &BlockRealizeNode::predicate, &BlockRealizeNode::block);
  }
};

// Flattens nested sequences and drops empty ones; one statement comes back as itself. An empty list gives
// Evaluate(0).
Stmt MakeSeq(std::vector<Stmt> stmts);

}  // namespace ingot::ir

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::ir::Stmt>;
extern template class std::vector<ingot::ir::Buffer>;
extern template class std::vector<ingot::ir::Range>;
extern template class std::vector<ingot::ir::BufferRegion>;
