// A switch over the kinds of statements. Besides, it finds views (buffers that are used but not defined) and joins
// nested loops and whole-loop axes to T.grid and T.axis.remap.
#include "compiler/script/stmt_printer.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/script/literals.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

const char* FunctionOf(ForKind kind) {
  switch (kind) {
    case ForKind::kSerial:
      return "T.serial";
    case ForKind::kParallel:
      return "T.parallel";
    case ForKind::kVectorized:
      return "T.vectorized";
    case ForKind::kUnrolled:
      return "T.unroll";
    case ForKind::kThreadBinding:
      return "T.thread_binding";
  }
  INGOT_UNREACHABLE("ForKind");
}

struct AxisType {
  const char* function;
  char letter;  // its letter in T.axis.remap; 0: not allowed there
};
AxisType AxisTypeOf(IterType type) {
  switch (type) {
    case IterType::kSpatial:
      return {"T.axis.spatial", 'S'};
    case IterType::kReduce:
      return {"T.axis.reduce", 'R'};
    case IterType::kScan:
      return {"T.axis.scan", 0};
    case IterType::kOpaque:
    case IterType::kThread:
      return {"T.axis.opaque", 0};
  }
  INGOT_UNREACHABLE("IterType");
}

bool IsPlainSerial(const ForNode& loop) {
  return loop.for_kind == ForKind::kSerial && loop.annotations.empty() && IsConstInt(loop.min, 0);
}

// Finds the buffers that are used but not defined: views of other buffers' memory, whose data variable they share.
class ViewCollector : public StmtVisitor {
 public:
  explicit ViewCollector(const std::vector<PrimFuncParam>& params) {
    for (const PrimFuncParam& param : params) known_.insert(param.buffer.get());
  }
  std::unordered_map<const Node*, std::vector<Buffer>> TakeViews() { return std::move(views_); }

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& node) override {
    Use(node.buffer);
    StmtVisitor::Visit(node);
  }
  void Visit(const BufferStoreNode& node) override {
    Use(node.buffer);
    StmtVisitor::Visit(node);
  }
  void Visit(const AllocateNode& node) override {
    known_.insert(node.buffer.get());
    StmtVisitor::Visit(node);
  }
  void Visit(const BlockNode& node) override {
    for (const Buffer& buffer : node.alloc_buffers) known_.insert(buffer.get());
    for (const MatchBufferRegion& match : node.match_buffers) known_.insert(match.buffer.get());
    StmtVisitor::Visit(node);
  }

 private:
  void Use(const Buffer& buffer) {
    if (known_.insert(buffer.get()).second) views_[buffer->data.get()].push_back(buffer);
  }

  std::unordered_set<const Node*> known_;
  std::unordered_map<const Node*, std::vector<Buffer>> views_;
};

// Returns the root block if it is the usual one, which has only buffers and a body; null otherwise.
const BlockNode* AsPlainRoot(const Stmt& stmt) {
  const auto* realize = As<BlockRealizeNode>(stmt);
  if (realize == nullptr) return nullptr;
  const BlockNode& block = *realize->block;
  const bool plain = block.name == "root" && block.iter_vars.empty() && block.reads.empty() && block.writes.empty() &&
                     block.match_buffers.empty() && block.annotations.empty() && block.init == nullptr &&
                     IsConstInt(realize->predicate, 1);
  return plain ? &block : nullptr;
}

}  // namespace

std::string StmtPrinter::DefineBuffer(const Buffer& buffer) {
  std::string name = names().Define(buffer.get(), buffer->name);
  if (buffer->data) names().DefineAlias(buffer->data.get(), name + ".data");
  return name;
}

void StmtPrinter::Views(const Buffer& buffer) {
  const auto views = views_.find(buffer->data.get());
  if (views == views_.end()) return;
  for (const Buffer& view : views->second) {
    const std::string arguments = BufferArguments(view, false, true);
    const std::string name = names().Define(view.get(), view->name);
    lines_.Add(name + " = T.decl_buffer(" + arguments + ", data=" + *names().Find(buffer->data.get()) + ")");
  }
}

void StmtPrinter::Function(std::string_view name, const PrimFuncNode& function) {
  lines_.Add(function.is_private ? "@T.prim_func(private=True, s_tir=True)" : "@T.prim_func(s_tir=True)");
  // Scalars are named first: a buffer's shape may name a scalar parameter that follows it.
  std::vector<std::string> texts;
  for (const PrimFuncParam& param : function.params) {
    if (!param.buffer) names().Define(param.var.get(), param.var->name);
  }
  for (const PrimFuncParam& param : function.params) {
    if (param.buffer) DefineBuffer(param.buffer);
  }
  for (const PrimFuncParam& param : function.params) {
    texts.push_back(param.buffer ? *names().Find(param.buffer.get()) + ": T.Buffer(" +
                                       BufferArguments(param.buffer, true, false) + ")"
                                 : *names().Find(param.var.get()) + ": T." + param.var->dtype.ToString());
  }
  std::string signature;
  for (const std::string& text : texts) signature += (signature.empty() ? "" : ", ") + text;
  lines_.Add("def " + std::string(name) + "(" + signature + "):");
  TextLines::Indent indent(lines_);
  if (!function.attrs.empty()) lines_.Add("T.func_attr(" + Dict(function.attrs.items()) + ")");
  ViewCollector collector(function.params);
  collector.VisitStmt(function.body);
  views_ = collector.TakeViews();
  for (const PrimFuncParam& param : function.params) {
    if (param.buffer) Views(param.buffer);
  }
  if (const BlockNode* root = AsPlainRoot(function.body)) {
    lines_.Add("# with T.sblock(\"root\"):");
    AllocBuffers(*root);
    Suite(root->body);
  } else {
    Suite(function.body);
  }
}

void StmtPrinter::Suite(const Stmt& stmt) {
  if (stmt == nullptr) {
    lines_.Add("pass");
  } else if (const auto* seq = As<SeqNode>(stmt)) {
    Stmts(seq->stmts, 0);
  } else {
    Statement(stmt, true);
  }
}

void StmtPrinter::Stmts(const std::vector<Stmt>& stmts, size_t first) {
  for (size_t i = first; i < stmts.size(); ++i) Statement(stmts[i], i + 1 == stmts.size());
}

void StmtPrinter::Statement(const Stmt& stmt, bool is_last) {
  switch (stmt->kind) {
    case StmtKind::kBufferStore: {
      const auto* node = As<BufferStoreNode>(stmt);
      const std::string target = Expr(Make<BufferLoadNode>(node->buffer, node->indices));
      lines_.Add(target + " = " + Expr(node->value));
      return;
    }
    case StmtKind::kEvaluate: {
      const auto* node = As<EvaluateNode>(stmt);
      const auto* number = As<IntImmNode>(node->value);
      if (number != nullptr && number->dtype == DataType::Int(32)) {  // T.evaluate(0) does nothing
        lines_.Add("T.evaluate(" + std::to_string(number->value) + ")");
      } else {
        const std::string value = Expr(node->value);
        lines_.Add(node->value->kind == PrimKind::kPrimCall ? value : "T.evaluate(" + value + ")");
      }
      return;
    }
    case StmtKind::kSeq:
      Suite(stmt);
      return;
    case StmtKind::kIf: {
      const auto* node = As<IfStmtNode>(stmt);
      lines_.Add("if " + Expr(node->condition) + ":");
      {
        TextLines::Indent indent(lines_);
        NameSupply::Scope scope(names());
        Suite(node->then_case);
      }
      if (!node->else_case) return;
      lines_.Add("else:");
      TextLines::Indent indent(lines_);
      NameSupply::Scope scope(names());
      Suite(node->else_case);
      return;
    }
    case StmtKind::kFor:
      Loop(*As<ForNode>(stmt));
      return;
    case StmtKind::kWhile: {
      const auto* node = As<WhileNode>(stmt);
      lines_.Add("while " + Expr(node->condition) + ":");
      TextLines::Indent indent(lines_);
      NameSupply::Scope scope(names());
      Suite(node->body);
      return;
    }
    case StmtKind::kLet:
      LetStatement(*As<LetStmtNode>(stmt), is_last);
      return;
    case StmtKind::kAssert:
      Assert(*As<AssertStmtNode>(stmt), is_last);
      return;
    case StmtKind::kAllocate:
      Allocate(*As<AllocateNode>(stmt), is_last);
      return;
    case StmtKind::kAttr:
      Attribute(*As<AttrStmtNode>(stmt), is_last);
      return;
    case StmtKind::kBlock: {  // a block without values for its axes: only in fragments
      Realize(BlockRealizeNode({}, BoolImm(true), Block(As<BlockNode>(stmt))));
      return;
    }
    case StmtKind::kBlockRealize:
      Realize(*As<BlockRealizeNode>(stmt));
      return;
  }
  INGOT_UNREACHABLE("StmtKind");
}

void StmtPrinter::Scoped(const std::string& flat, const std::string& with, const Stmt& body, bool is_last,
                         const Buffer& defined) {
  lines_.Add(is_last ? flat : "with " + with + ":");
  std::optional<TextLines::Indent> indent;
  if (!is_last) indent.emplace(lines_);
  if (defined) Views(defined);
  Suite(body);
}

void StmtPrinter::LetStatement(const LetStmtNode& let, bool is_last) {
  const std::string value = Expr(let.value);
  if (is_last) {
    const std::string name = names().Define(let.var.get(), let.var->name);
    Scoped(name + ": T.let[T." + let.var->dtype.ToString() + "] = " + value, "", let.body, true);
    return;
  }
  NameSupply::Scope scope(names());
  const std::string name = names().Define(let.var.get(), let.var->name);
  Scoped("", "T.LetStmt(" + value + ") as " + name, let.body, false);
}

void StmtPrinter::Assert(const AssertStmtNode& node, bool is_last) {
  const std::string arguments = Expr(node.condition) + ", " + Quote(node.message);
  NameSupply::Scope scope(names());
  Scoped("assert " + arguments, "T.Assert(" + arguments + ")", node.body, is_last);
}

void StmtPrinter::Allocate(const AllocateNode& node, bool is_last) {
  NameSupply::Scope scope(names());
  std::string call = "T.alloc_buffer(" + BufferArguments(node.buffer, false, true);
  if (!node.annotations.empty()) call += ", annotations=" + Dict(node.annotations.items());
  const std::string name = DefineBuffer(node.buffer);
  Scoped(name + " = " + call + ")", call + ") as " + name, node.body, is_last, node.buffer);
}

void StmtPrinter::Attribute(const AttrStmtNode& node, bool is_last) {
  NameSupply::Scope scope(names());
  if (const auto* axis = dynamic_cast<const IterVarNode*>(node.node.get());
      axis != nullptr && node.key == "thread_extent") {
    const std::string call = "T.launch_thread(" + Quote(axis->thread_tag) + ", " + Expr(axis->domain.extent) + ")";
    const std::string name = names().Define(axis->var.get(), axis->var->name);
    Scoped(name + " = " + call, call + " as " + name, node.body, is_last);
    return;
  }
  std::string target;
  if (const auto* expr = dynamic_cast<const PrimExprNode*>(node.node.get())) target = Expr(PrimExpr(expr));
  if (const auto* buffer = dynamic_cast<const BufferNode*>(node.node.get())) target = BufferName(Buffer(buffer));
  const std::string call = target.empty() ? "T.attr({" + Quote(node.key) + ": " + Attr(node.value) + "})"
                                          : "T.attr(" + target + ", " + Quote(node.key) + ", " + Attr(node.value) + ")";
  Scoped(call, call, node.body, is_last);
}

void StmtPrinter::LoopHeader(const ForNode& loop, const std::string& name) {
  std::string args =
      IsConstInt(loop.min, 0) ? Expr(loop.extent) : Expr(loop.min) + ", " + RangeEnd({loop.min, loop.extent});
  std::string function = FunctionOf(loop.for_kind);
  if (loop.for_kind == ForKind::kSerial && loop.annotations.empty()) function = "range";
  if (loop.for_kind == ForKind::kThreadBinding) args += ", thread=" + Quote(loop.thread_tag);
  if (!loop.annotations.empty()) args += ", annotations=" + Dict(loop.annotations.items());
  lines_.Add("for " + name + " in " + function + "(" + args + "):");
}

// Directly nested plain loops, none of whose extents depends on another one's variable, are printed as one T.grid.
void StmtPrinter::Loop(const ForNode& outer) {
  NameSupply::Scope scope(names());
  std::vector<const ForNode*> nest{&outer};
  std::vector<std::string> extents{Expr(outer.extent)};
  std::string variables = names().Define(outer.var.get(), outer.var->name);
  if (IsPlainSerial(outer)) {
    const auto in_nest = [&](const PrimVar& var) {
      return std::any_of(nest.begin(), nest.end(), [&](const ForNode* loop) { return loop->var.same_as(var); });
    };
    for (const auto* next = As<ForNode>(outer.body); next != nullptr && IsPlainSerial(*next);
         next = As<ForNode>(next->body)) {
      const std::vector<PrimVar> free = FreePrimVars(next->extent);
      if (std::any_of(free.begin(), free.end(), in_nest)) break;
      extents.push_back(Expr(next->extent));
      nest.push_back(next);
      variables += ", " + names().Define(next->var.get(), next->var->name);
    }
  }
  if (nest.size() == 1) {
    LoopHeader(outer, variables);
  } else {
    std::string grid;
    for (const std::string& extent : extents) grid += (grid.empty() ? "" : ", ") + extent;
    lines_.Add("for " + variables + " in T.grid(" + grid + "):");
  }
  loops_.insert(loops_.end(), nest.begin(), nest.end());
  TextLines::Indent indent(lines_);
  Suite(nest.back()->body);
  loops_.resize(loops_.size() - nest.size());
}

void StmtPrinter::AllocBuffers(const BlockNode& block) {
  for (const Buffer& buffer : block.alloc_buffers) {
    const std::string arguments = BufferArguments(buffer, false, true);
    const std::string name = DefineBuffer(buffer);
    lines_.Add(name + " = T.sblock_alloc_buffer(" + arguments + ")");
    Views(buffer);
  }
}

std::string StmtPrinter::Regions(const std::vector<BufferRegion>& regions) {
  std::string text;
  for (const BufferRegion& region : regions) text += (text.empty() ? "" : ", ") + Region(region);
  return text;
}

void StmtPrinter::IterVars(const BlockRealizeNode& realize) {
  const BlockNode& block = *realize.block;
  const auto value_of = [&](size_t i) { return i < realize.iter_values.size() ? realize.iter_values[i] : PrimExpr(); };
  // Whether the axis covers exactly one whole loop.
  const auto is_remap = [&](size_t i) {
    const IterVarNode& axis = *block.iter_vars[i];
    const PrimExpr value = value_of(i);
    return AxisTypeOf(axis.type).letter != 0 && value != nullptr &&
           std::any_of(loops_.begin(), loops_.end(), [&](const ForNode* loop) {
             return loop->var.get() == value.get() && StructuralEqual(loop->min, axis.domain.min) &&
                    StructuralEqual(loop->extent, axis.domain.extent);
           });
  };
  for (size_t i = 0; i < block.iter_vars.size();) {
    size_t end = i;
    while (end < block.iter_vars.size() && is_remap(end)) ++end;
    if (end - i >= 2) {
      std::string left, letters, right;
      for (; i < end; ++i) {
        const IterVarNode& axis = *block.iter_vars[i];
        letters += AxisTypeOf(axis.type).letter;
        right += (right.empty() ? "" : ", ") + Expr(realize.iter_values[i]);
        left += (left.empty() ? "" : ", ") + names().Define(axis.var.get(), axis.var->name);
      }
      lines_.Add(left + " = T.axis.remap(\"" + letters + "\", [" + right + "])");
      continue;
    }
    const IterVarNode& axis = *block.iter_vars[i];
    std::string domain = Expr(axis.domain.extent);
    if (!IsConstInt(axis.domain.min, 0)) domain = "(" + Expr(axis.domain.min) + ", " + RangeEnd(axis.domain) + ")";
    const std::string value = Expr(value_of(i));
    const std::string name = names().Define(axis.var.get(), axis.var->name);
    lines_.Add(name + " = " + AxisTypeOf(axis.type).function + "(" + domain + ", " + value + ")");
    ++i;
  }
}

void StmtPrinter::Realize(const BlockRealizeNode& realize) {
  const BlockNode& block = *realize.block;
  lines_.Add("with T.sblock(" + Quote(block.name) + "):");
  TextLines::Indent indent(lines_);
  NameSupply::Scope scope(names());
  IterVars(realize);
  if (!IsConstInt(realize.predicate, 1)) lines_.Add("T.where(" + Expr(realize.predicate) + ")");
  lines_.Add("T.reads(" + Regions(block.reads) + ")");
  lines_.Add("T.writes(" + Regions(block.writes) + ")");
  if (!block.annotations.empty()) lines_.Add("T.sblock_attr(" + Dict(block.annotations.items()) + ")");
  AllocBuffers(block);
  for (const MatchBufferRegion& match : block.match_buffers) {
    const std::string source = Region(match.source);
    const std::string arguments = BufferArguments(match.buffer, false, true);
    lines_.Add(DefineBuffer(match.buffer) + " = T.match_buffer(" + source + ", " + arguments + ")");
    Views(match.buffer);
  }
  if (block.init) {
    lines_.Add("with T.init():");
    TextLines::Indent inner(lines_);
    NameSupply::Scope inner_scope(names());
    Suite(block.init);
  }
  Suite(block.body);
}

}  // namespace ingot::script
