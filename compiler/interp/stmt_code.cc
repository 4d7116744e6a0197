// Statements and blocks: one StmtCode class per kind of node, and the translation to them.
#include "compiler/interp/code.h"
#include "compiler/ir/visitor.h"

namespace ingot::interp {
namespace {

std::vector<int64_t> EvalAll(Machine& machine, const std::vector<ExprPtr>& exprs) {
  std::vector<int64_t> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) values.push_back(expr->Eval(machine, 0).i);
  return values;
}

// Computes all lanes before it writes the first.
class StoreCode : public StmtCode {
 public:
  StoreCode(ir::Buffer buffer, int view, int lanes, ExprPtr value, std::vector<ExprPtr> indices)
      : buffer_(std::move(buffer)),
        view_(view),
        lanes_(lanes),
        value_(std::move(value)),
        indices_(std::move(indices)) {}
  void Run(Machine& machine) const override {
    if (!machine.Step()) return;
    std::vector<int64_t> indices = EvalAll(machine, indices_);
    if (lanes_ == 1) {
      const Cell value = value_->Eval(machine, 0);
      if (!machine.failed) machine.Write(*buffer_, view_, indices, value);
      return;
    }
    const auto takes_part = [&](int lane) { return machine.mask.empty() || machine.mask[static_cast<size_t>(lane)]; };
    std::vector<Cell> values;
    for (int lane = 0; lane < lanes_; ++lane) {
      values.push_back(takes_part(lane) ? value_->Eval(machine, lane) : IntCell(0));
    }
    for (int lane = 0; lane < lanes_ && !machine.failed; ++lane) {
      if (!takes_part(lane)) continue;
      indices.back() = indices_.back()->Eval(machine, lane).i;
      machine.Write(*buffer_, view_, indices, values[static_cast<size_t>(lane)]);
    }
  }

 private:
  ir::Buffer buffer_;
  int view_, lanes_;
  ExprPtr value_;
  std::vector<ExprPtr> indices_;
};

class EvaluateCode : public StmtCode {
 public:
  EvaluateCode(int lanes, ExprPtr value) : lanes_(lanes), value_(std::move(value)) {}
  void Run(Machine& machine) const override {
    if (!machine.Step()) return;
    for (int lane = 0; lane < lanes_ && !machine.failed; ++lane) value_->Eval(machine, lane);
  }

 private:
  int lanes_;
  ExprPtr value_;
};

class SequenceCode : public StmtCode {
 public:
  explicit SequenceCode(std::vector<StmtPtr> stmts) : stmts_(std::move(stmts)) {}
  void Run(Machine& machine) const override {
    for (const StmtPtr& stmt : stmts_) {
      if (machine.failed) return;
      stmt->Run(machine);
    }
  }

 private:
  std::vector<StmtPtr> stmts_;
};

class IfCode : public StmtCode {
 public:
  IfCode(ExprPtr condition, StmtPtr then_case, StmtPtr else_case)
      : condition_(std::move(condition)), then_(std::move(then_case)), else_(std::move(else_case)) {}
  void Run(Machine& machine) const override {
    const bool condition = condition_->Eval(machine, 0).i != 0;
    if (!machine.Step()) return;
    if (condition) {
      then_->Run(machine);
    } else if (else_) {
      else_->Run(machine);
    }
  }

 private:
  ExprPtr condition_;
  StmtPtr then_, else_;
};

// A condition per lane: the stores in the body write the lanes for which it holds.
class MaskCode : public StmtCode {
 public:
  MaskCode(int lanes, ExprPtr condition, StmtPtr body)
      : lanes_(lanes), condition_(std::move(condition)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    std::vector<bool> mask;
    for (int lane = 0; lane < lanes_; ++lane) mask.push_back(condition_->Eval(machine, lane).i != 0);
    if (!machine.Step()) return;
    machine.mask = std::move(mask);
    body_->Run(machine);
    machine.mask.clear();
  }

 private:
  int lanes_;
  ExprPtr condition_;
  StmtPtr body_;
};

// Iterations of an unordered loop (parallel, vectorized, threads) run one after the other here, each in a context of
// its own, so that races are found.
class ForCode : public StmtCode {
 public:
  ForCode(int slot, bool unordered, ExprPtr min, ExprPtr extent, StmtPtr body)
      : slot_(slot), unordered_(unordered), min_(std::move(min)), extent_(std::move(extent)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    const int64_t min = min_->Eval(machine, 0).i;
    const int64_t extent = extent_->Eval(machine, 0).i;
    const Contexts::Id outer = machine.context;
    const uint32_t execution = unordered_ ? machine.contexts.NewExecution() : 0;
    for (int64_t i = 0; i < extent && machine.Step(); ++i) {
      if (unordered_) machine.context = machine.contexts.Enter(outer, execution, i);
      machine.slots[static_cast<size_t>(slot_)] = IntCell(min + i);
      body_->Run(machine);
    }
    machine.context = outer;
  }

 private:
  int slot_;
  bool unordered_;
  ExprPtr min_, extent_;
  StmtPtr body_;
};

class WhileCode : public StmtCode {
 public:
  WhileCode(ExprPtr condition, StmtPtr body) : condition_(std::move(condition)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    while (machine.Step() && condition_->Eval(machine, 0).i != 0) body_->Run(machine);
  }

 private:
  ExprPtr condition_;
  StmtPtr body_;
};

class LetStmtCode : public StmtCode {
 public:
  LetStmtCode(int slot, int lanes, ExprPtr value, StmtPtr body)
      : slot_(slot), lanes_(lanes), value_(std::move(value)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    for (int l = 0; l < lanes_; ++l) machine.lane_slot(slot_, l) = value_->Eval(machine, l);
    if (machine.Step()) body_->Run(machine);
  }

 private:
  int slot_, lanes_;
  ExprPtr value_;
  StmtPtr body_;
};

class AssertCode : public StmtCode {
 public:
  AssertCode(ExprPtr condition, std::string message, StmtPtr body)
      : condition_(std::move(condition)), message_(std::move(message)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    const bool holds = condition_->Eval(machine, 0).i != 0;
    if (!machine.Step()) return;
    if (!holds) return machine.Fail("an assertion does not hold: " + message_);
    body_->Run(machine);
  }

 private:
  ExprPtr condition_;
  std::string message_;
  StmtPtr body_;
};

// Allocates a fresh, unwritten storage at each execution.
class AllocateCode : public StmtCode {
 public:
  AllocateCode(ir::Buffer buffer, int view, std::vector<ExprPtr> dims, std::vector<ExprPtr> strides, ExprPtr offset,
               StmtPtr body)
      : buffer_(std::move(buffer)),
        view_(view),
        dims_(std::move(dims)),
        strides_(std::move(strides)),
        offset_(std::move(offset)),
        body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    if (!machine.Step()) return;
    std::vector<int64_t> dims = EvalAll(machine, dims_);
    std::vector<int64_t> strides = EvalAll(machine, strides_);
    const int64_t offset = offset_ ? offset_->Eval(machine, 0).i : 0;
    if (machine.failed) return;
    std::optional<View> view = machine.Allocate(*buffer_, std::move(dims), std::move(strides), offset);
    if (!view.has_value()) return;
    machine.views[static_cast<size_t>(view_)] = *std::move(view);
    body_->Run(machine);
    machine.views[static_cast<size_t>(view_)] = View();
  }

 private:
  ir::Buffer buffer_;
  int view_;
  std::vector<ExprPtr> dims_, strides_;
  ExprPtr offset_;  // null: 0
  StmtPtr body_;
};

// Binds a view of a region: the last dimensions of the source; the dimensions before them have extent 1 in the region.
class MatchCode : public StmtCode {
 public:
  struct Region {
    std::vector<ExprPtr> mins, extents;
  };
  MatchCode(ir::Buffer buffer, int view, int source, Region region, std::vector<ExprPtr> dims,
            std::vector<int> stride_slots, int offset_slot, StmtPtr body)
      : buffer_(std::move(buffer)),
        view_(view),
        source_(source),
        region_(std::move(region)),
        dims_(std::move(dims)),
        stride_slots_(std::move(stride_slots)),
        offset_slot_(offset_slot),
        body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    if (!machine.Step()) return;
    const View source = machine.views[static_cast<size_t>(source_)];
    const std::vector<int64_t> mins = EvalAll(machine, region_.mins);
    const std::vector<int64_t> extents = EvalAll(machine, region_.extents);
    View view{source.storage, source.offset, EvalAll(machine, dims_), {}};
    if (machine.failed) return;
    const size_t dropped = mins.size() - view.dims.size();
    for (size_t d = 0; d < mins.size(); ++d) {
      const int64_t expected = d < dropped ? 1 : view.dims[d - dropped];
      if (extents[d] != expected) {
        return machine.Fail("the region that " + buffer_->name + " matches has " + std::to_string(extents[d]) +
                            " elements in dimension " + std::to_string(d) + ", not " + std::to_string(expected));
      }
      if (mins[d] < 0 || extents[d] > source.dims[d] || mins[d] > source.dims[d] - extents[d]) {
        return machine.Fail("the region that " + buffer_->name + " matches is out of bounds in dimension " +
                            std::to_string(d));
      }
      view.offset += mins[d] * source.strides[d];
      if (d >= dropped) view.strides.push_back(source.strides[d]);
    }
    for (size_t d = 0; d < stride_slots_.size(); ++d) {
      if (stride_slots_[d] >= 0) machine.slots[static_cast<size_t>(stride_slots_[d])] = IntCell(view.strides[d]);
    }
    if (offset_slot_ >= 0) machine.slots[static_cast<size_t>(offset_slot_)] = IntCell(view.offset);
    machine.views[static_cast<size_t>(view_)] = std::move(view);
    body_->Run(machine);
    machine.views[static_cast<size_t>(view_)] = View();
  }

 private:
  ir::Buffer buffer_;
  int view_, source_;
  Region region_;
  std::vector<ExprPtr> dims_;
  std::vector<int> stride_slots_;  // -1: no variable to bind
  int offset_slot_;
  StmtPtr body_;
};

class BlockCode : public StmtCode {
 public:
  struct Iter {
    int slot;
    std::string name;
    ExprPtr value, min, extent;
  };
  BlockCode(std::string name, std::vector<Iter> iters, ExprPtr predicate, StmtPtr body)
      : name_(std::move(name)), iters_(std::move(iters)), predicate_(std::move(predicate)), body_(std::move(body)) {}
  void Run(Machine& machine) const override {
    const bool runs = predicate_->Eval(machine, 0).i != 0;
    if (!machine.Step() || !runs) return;
    const std::string* const outer = machine.block;
    machine.block = &name_;
    for (const Iter& iter : iters_) {
      const int64_t value = iter.value->Eval(machine, 0).i;
      const int64_t min = iter.min->Eval(machine, 0).i;
      const int64_t extent = iter.extent->Eval(machine, 0).i;
      if (machine.failed) return;
      // Compares the distance from min as an unsigned count, which cannot overflow.
      if (value < min || static_cast<uint64_t>(value) - static_cast<uint64_t>(min) >= static_cast<uint64_t>(extent) ||
          extent <= 0) {
        return machine.Fail("iteration variable " + iter.name + " is bound to " + std::to_string(value) +
                            ", outside its domain of " + std::to_string(extent) + " from " + std::to_string(min));
      }
      machine.slots[static_cast<size_t>(iter.slot)] = IntCell(value);
    }
    body_->Run(machine);
    machine.block = outer;
  }

 private:
  std::string name_;
  std::vector<Iter> iters_;
  ExprPtr predicate_;
  StmtPtr body_;
};

// Runs a block's init when every reduction variable has its first value.
class InitCode : public StmtCode {
 public:
  struct First {
    int slot;
    ExprPtr min;
  };
  InitCode(std::vector<First> firsts, StmtPtr init) : firsts_(std::move(firsts)), init_(std::move(init)) {}
  void Run(Machine& machine) const override {
    for (const First& first : firsts_) {
      if (machine.slots[static_cast<size_t>(first.slot)].i != first.min->Eval(machine, 0).i) return;
    }
    init_->Run(machine);
  }

 private:
  std::vector<First> firsts_;
  StmtPtr init_;
};

}  // namespace

void Translator::Fail(const std::string& message) {
  if (status_.ok()) status_ = Status(StatusCode::kBadInput, "the interpreter cannot run " + message);
}

int Translator::DefineVar(const ir::PrimVar& var) {
  const int slot = num_slots_;
  num_slots_ += var->dtype.lanes;
  slots_[var.get()] = slot;
  return slot;
}

int Translator::DefineBuffer(const ir::Buffer& buffer) {
  by_data_[buffer->data.get()] = buffer;
  if (!buffer->dtype.is_scalar() || buffer->dtype.is_handle() || buffer->dtype.code == TypeCode::kComplex) {
    Fail("buffer " + buffer->name + " of " + buffer->dtype.ToString());
  }
  return views_.try_emplace(buffer.get(), static_cast<int>(views_.size())).first->second;
}

int Translator::ViewOf(const ir::Buffer& buffer) {
  const auto it = views_.find(buffer.get());
  if (it != views_.end()) return it->second;
  // A view: the same data under one index.
  const auto defined = by_data_.find(buffer->data.get());
  if (defined != by_data_.end() && buffer->shape.size() == 1) return views_.at(defined->second.get());
  Fail("an access of buffer " + buffer->name + ", which is not defined here");
  return 0;
}

StmtPtr Translator::Translate(const ir::Stmt& stmt) {
  switch (stmt->kind) {
    case ir::StmtKind::kBufferStore: {
      const auto& node = static_cast<const ir::BufferStoreNode&>(*stmt);
      const int lanes = node.indices.empty() ? 1 : node.indices.back()->dtype.lanes;
      return std::make_unique<StoreCode>(node.buffer, ViewOf(node.buffer), lanes, Translate(node.value),
                                         TranslateAll(node.indices));
    }
    case ir::StmtKind::kEvaluate: {
      const auto& node = static_cast<const ir::EvaluateNode&>(*stmt);
      return std::make_unique<EvaluateCode>(node.value->dtype.lanes, Translate(node.value));
    }
    case ir::StmtKind::kSeq: {
      std::vector<StmtPtr> stmts;
      for (const ir::Stmt& inner : static_cast<const ir::SeqNode&>(*stmt).stmts) stmts.push_back(Translate(inner));
      return std::make_unique<SequenceCode>(std::move(stmts));
    }
    case ir::StmtKind::kIf: {
      const auto& node = static_cast<const ir::IfStmtNode&>(*stmt);
      if (!node.condition->dtype.is_scalar()) {
        return std::make_unique<MaskCode>(node.condition->dtype.lanes, Translate(node.condition),
                                          Translate(node.then_case));
      }
      return std::make_unique<IfCode>(Translate(node.condition), Translate(node.then_case),
                                      node.else_case ? Translate(node.else_case) : nullptr);
    }
    case ir::StmtKind::kFor: {
      const auto& node = static_cast<const ir::ForNode&>(*stmt);
      ExprPtr min = Translate(node.min);
      ExprPtr extent = Translate(node.extent);
      const int slot = DefineVar(node.var);
      const bool unordered = node.for_kind == ir::ForKind::kParallel || node.for_kind == ir::ForKind::kVectorized ||
                             node.for_kind == ir::ForKind::kThreadBinding;
      return std::make_unique<ForCode>(slot, unordered, std::move(min), std::move(extent), Translate(node.body));
    }
    case ir::StmtKind::kWhile: {
      const auto& node = static_cast<const ir::WhileNode&>(*stmt);
      return std::make_unique<WhileCode>(Translate(node.condition), Translate(node.body));
    }
    case ir::StmtKind::kLet: {
      const auto& node = static_cast<const ir::LetStmtNode&>(*stmt);
      ExprPtr value = Translate(node.value);
      const int slot = DefineVar(node.var);
      return std::make_unique<LetStmtCode>(slot, node.var->dtype.lanes, std::move(value), Translate(node.body));
    }
    case ir::StmtKind::kAssert: {
      const auto& node = static_cast<const ir::AssertStmtNode&>(*stmt);
      return std::make_unique<AssertCode>(Translate(node.condition), node.message, Translate(node.body));
    }
    case ir::StmtKind::kAllocate: {
      const auto& node = static_cast<const ir::AllocateNode&>(*stmt);
      const ir::BufferNode& buffer = *node.buffer;
      const int view = DefineBuffer(node.buffer);
      return std::make_unique<AllocateCode>(node.buffer, view, TranslateAll(buffer.shape), TranslateAll(buffer.strides),
                                            buffer.elem_offset ? Translate(buffer.elem_offset) : nullptr,
                                            Translate(node.body));
    }
    case ir::StmtKind::kAttr: {
      const auto& node = static_cast<const ir::AttrStmtNode&>(*stmt);
      const auto* iter = dynamic_cast<const ir::IterVarNode*>(node.node.get());
      if (iter == nullptr || node.key != "thread_extent") return Translate(node.body);
      // A launched thread axis runs the body once per thread.
      ExprPtr min = Translate(iter->domain.min);
      ExprPtr extent = Translate(iter->domain.extent);
      const int slot = DefineVar(iter->var);
      return std::make_unique<ForCode>(slot, true, std::move(min), std::move(extent), Translate(node.body));
    }
    case ir::StmtKind::kBlock:
      Fail("block " + static_cast<const ir::BlockNode&>(*stmt).name + " without its bindings");
      return nullptr;
    case ir::StmtKind::kBlockRealize:
      return TranslateRealize(static_cast<const ir::BlockRealizeNode&>(*stmt));
  }
  INGOT_UNREACHABLE("StmtKind");
}

StmtPtr Translator::TranslateRealize(const ir::BlockRealizeNode& node) {
  const ir::BlockNode& block = *node.block;
  ExprPtr predicate = Translate(node.predicate);
  std::vector<ExprPtr> values = TranslateAll(node.iter_values);
  std::vector<BlockCode::Iter> iters;
  std::vector<InitCode::First> firsts;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const ir::IterVar& iter = block.iter_vars[i];
    ExprPtr min = Translate(iter->domain.min);
    ExprPtr extent = Translate(iter->domain.extent);
    const int slot = DefineVar(iter->var);
    if (iter->type == ir::IterType::kReduce) firsts.push_back({slot, Translate(iter->domain.min)});
    iters.push_back({slot, iter->var->name, std::move(values[i]), std::move(min), std::move(extent)});
  }
  for (const ir::Buffer& buffer : block.alloc_buffers) DefineBuffer(buffer);
  struct Match {
    int view, source;
    MatchCode::Region region;
    std::vector<int> stride_slots;
    int offset_slot = -1;
  };
  std::vector<Match> matches;
  for (const ir::MatchBufferRegion& match : block.match_buffers) {
    Match made{0, ViewOf(match.source.buffer), {}, {}};
    for (const ir::Range& range : match.source.region) {
      made.region.mins.push_back(Translate(range.min));
      made.region.extents.push_back(Translate(range.extent));
    }
    if (match.buffer->shape.size() > match.source.region.size()) Fail("a match of a buffer of higher rank");
    made.view = DefineBuffer(match.buffer);
    const auto bind = [&](const ir::PrimExpr& expr) {
      const auto var = ir::AsRef<ir::PrimVarNode>(expr);
      return var && !slots_.contains(var.get()) ? DefineVar(var) : -1;
    };
    for (const ir::PrimExpr& stride : match.buffer->strides) made.stride_slots.push_back(bind(stride));
    if (match.buffer->elem_offset) made.offset_slot = bind(match.buffer->elem_offset);
    matches.push_back(std::move(made));
  }
  StmtPtr body;
  {
    std::vector<StmtPtr> parts;
    if (block.init) parts.push_back(std::make_unique<InitCode>(std::move(firsts), Translate(block.init)));
    parts.push_back(Translate(block.body));
    body = std::make_unique<SequenceCode>(std::move(parts));
  }
  for (size_t m = matches.size(); m-- > 0;) {
    const ir::Buffer& buffer = block.match_buffers[m].buffer;
    body = std::make_unique<MatchCode>(buffer, matches[m].view, matches[m].source, std::move(matches[m].region),
                                       TranslateAll(buffer->shape), std::move(matches[m].stride_slots),
                                       matches[m].offset_slot, std::move(body));
  }
  for (size_t b = block.alloc_buffers.size(); b-- > 0;) {
    const ir::Buffer& buffer = block.alloc_buffers[b];
    body = std::make_unique<AllocateCode>(
        buffer, ViewOf(buffer), TranslateAll(buffer->shape), TranslateAll(buffer->strides),
        buffer->elem_offset ? Translate(buffer->elem_offset) : nullptr, std::move(body));
  }
  return std::make_unique<BlockCode>(block.name, std::move(iters), std::move(predicate), std::move(body));
}

}  // namespace ingot::interp
