// One traversal says what counts: it writes a tree as a sequence of words in which every bound variable is the number
// of its definition. Equal trees give equal sequences; the hash is the hash of the sequence. So equality and hash can
// never disagree, and bound variables correspond one to one by construction.
#include "compiler/ir/structural.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

// Words that open a construct; kinds of nodes are added to their base.
enum Word : uint64_t {
  kNull = 1,
  kBound,
  kFree,
  kList,
  kString,
  kView,
  kPrimBase = 0x100,
  kStmtBase = 0x200,
  kExprBase = 0x300,
  kTypeBase = 0x400,
  kAttrBase = 0x500,
};

class Sequence {
 public:
  enum class FreeVars : uint8_t {
    kIdentity,  // the node itself: for comparing
    kName,      // its name: for hashes that are the same in every process
    kNumber,    // by first occurrence: map_free_vars
  };
  explicit Sequence(FreeVars free, bool with_marks = false) : free_(free), with_marks_(with_marks) {}

  // Constants of equal hash are compared by content.
  friend bool operator==(const Sequence& a, const Sequence& b) {
    return a.words_ == b.words_ &&
           std::equal(a.constants_.begin(), a.constants_.end(), b.constants_.begin(), b.constants_.end(),
                      [](const ConstantData* x, const ConstantData* y) { return x->Equals(*y); });
  }

  uint64_t Hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15u + words_.size();
    for (const uint64_t word : words_) {
      // The finaliser of splitmix64 (Steele, Lea, Flood 2014) over the running value.
      hash = (hash ^ word) + 0x9e3779b97f4a7c15u;
      hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
      hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
      hash ^= hash >> 31;
    }
    return hash;
  }

  // Describes the first place where the sequences differ.
  std::string DescribeDifference(const Sequence& other) const {
    const size_t common = std::min(words_.size(), other.words_.size());
    size_t i = 0;
    while (i < common && words_[i] == other.words_[i]) ++i;
    if (words_ == other.words_) return "a constant";
    const std::string* place = nullptr;
    for (const auto& [position, text] : marks_) {
      if (position <= i) place = &text;
    }
    return place == nullptr ? "the signature" : *place;
  }

  void Add(const PrimExpr& expr) {
    if (!expr) return Put(kNull);
    Put(kPrimBase + static_cast<uint64_t>(expr->kind));
    Put(expr->dtype);
    switch (expr->kind) {
      case PrimKind::kIntImm:
        return Put(static_cast<uint64_t>(static_cast<const IntImmNode&>(*expr).value));
      case PrimKind::kFloatImm:
        return Put(static_cast<const FloatImmNode&>(*expr).value);
      case PrimKind::kStringImm:
        return Put(static_cast<const StringImmNode&>(*expr).value);
      case PrimKind::kPrimVar:
        return Use(expr.get(), static_cast<const PrimVarNode&>(*expr).name);
      case PrimKind::kBinary: {
        const auto& node = static_cast<const BinaryNode&>(*expr);
        Put(static_cast<uint64_t>(node.op));
        Add(node.a);
        return Add(node.b);
      }
      case PrimKind::kNot:
        return Add(static_cast<const NotNode&>(*expr).a);
      case PrimKind::kSelect: {
        const auto& node = static_cast<const SelectNode&>(*expr);
        Add(node.condition);
        Add(node.true_value);
        return Add(node.false_value);
      }
      case PrimKind::kCast:
        return Add(static_cast<const CastNode&>(*expr).value);
      case PrimKind::kBufferLoad: {
        const auto& node = static_cast<const BufferLoadNode&>(*expr);
        Use(node.buffer);
        return AddAll(node.indices);
      }
      case PrimKind::kRamp: {
        const auto& node = static_cast<const RampNode&>(*expr);
        Add(node.base);
        return Add(node.stride);
      }
      case PrimKind::kBroadcast:
        return Add(static_cast<const BroadcastNode&>(*expr).value);
      case PrimKind::kShuffle: {
        const auto& node = static_cast<const ShuffleNode&>(*expr);
        AddAll(node.vectors);
        Put(kList);
        for (const int64_t index : node.indices) Put(static_cast<uint64_t>(index));
        return;
      }
      case PrimKind::kLet: {
        const auto& node = static_cast<const LetNode&>(*expr);
        Add(node.value);
        Define(node.var);
        return Add(node.body);
      }
      case PrimKind::kPrimCall: {
        const auto& node = static_cast<const PrimCallNode&>(*expr);
        Put(static_cast<uint64_t>(node.op));
        return AddAll(node.args);
      }
      case PrimKind::kReduce: {
        const auto& node = static_cast<const ReduceNode&>(*expr);
        for (const IterVar& axis : node.axes) Define(axis);
        for (const PrimVar& var : node.combiner.lhs) Define(var);
        for (const PrimVar& var : node.combiner.rhs) Define(var);
        AddAll(node.combiner.result);
        AddAll(node.combiner.identity);
        AddAll(node.source);
        AddAll(node.init);
        Add(node.condition);
        return Put(static_cast<uint64_t>(node.value_index));
      }
      case PrimKind::kProducerLoad: {
        const auto& node = static_cast<const ProducerLoadNode&>(*expr);
        Put(std::bit_cast<uintptr_t>(node.producer.get()));
        return AddAll(node.indices);
      }
    }
    INGOT_UNREACHABLE("PrimKind");
  }

  // Iterates down the bodies: chains of lets and allocations may be long.
  void Add(const Stmt& first) {
    const StmtNode* stmt = first.get();
    while (true) {
      if (stmt == nullptr) return Put(kNull);
      Put(kStmtBase + static_cast<uint64_t>(stmt->kind));
      switch (stmt->kind) {
        case StmtKind::kBufferStore: {
          const auto& node = static_cast<const BufferStoreNode&>(*stmt);
          if (with_marks_) Mark("a store to " + node.buffer->name);
          Use(node.buffer);
          Add(node.value);
          return AddAll(node.indices);
        }
        case StmtKind::kEvaluate:
          return Add(static_cast<const EvaluateNode&>(*stmt).value);
        case StmtKind::kSeq: {
          const auto& node = static_cast<const SeqNode&>(*stmt);
          Put(node.stmts.size());
          for (const Stmt& inner : node.stmts) Add(inner);
          return;
        }
        case StmtKind::kIf: {
          const auto& node = static_cast<const IfStmtNode&>(*stmt);
          Add(node.condition);
          Add(node.then_case);
          stmt = node.else_case.get();
          continue;
        }
        case StmtKind::kFor: {
          const auto& node = static_cast<const ForNode&>(*stmt);
          if (with_marks_) Mark("loop " + node.var->name);
          Add(node.min);
          Add(node.extent);
          Put(static_cast<uint64_t>(node.for_kind));
          Put(node.thread_tag);
          Add(node.annotations);
          Define(node.var);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kWhile: {
          const auto& node = static_cast<const WhileNode&>(*stmt);
          Add(node.condition);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kLet: {
          const auto& node = static_cast<const LetStmtNode&>(*stmt);
          Add(node.value);
          Define(node.var);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kAssert: {
          const auto& node = static_cast<const AssertStmtNode&>(*stmt);
          Add(node.condition);
          Put(node.message);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kAllocate: {
          const auto& node = static_cast<const AllocateNode&>(*stmt);
          Define(node.buffer);
          Add(node.annotations);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kAttr: {
          const auto& node = static_cast<const AttrStmtNode&>(*stmt);
          Put(node.key);
          if (const auto* iter = dynamic_cast<const IterVarNode*>(node.node.get())) {
            Define(*iter);
          } else if (node.node) {
            Use(node.node.get(), "");
          } else {
            Put(kNull);
          }
          Add(node.value);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kBlock: {
          const auto& node = static_cast<const BlockNode&>(*stmt);
          if (with_marks_) Mark("block " + node.name);
          Put(node.name);
          Put(node.iter_vars.size());
          for (const IterVar& iter : node.iter_vars) Define(iter);
          Put(node.alloc_buffers.size());
          for (const Buffer& buffer : node.alloc_buffers) Define(buffer);
          Put(node.match_buffers.size());
          for (const MatchBufferRegion& match : node.match_buffers) {
            Add(match.source);
            for (const PrimExpr& stride : match.buffer->strides) DefineSymbols(stride);
            DefineSymbols(match.buffer->elem_offset);
            Define(match.buffer);
          }
          Put(node.reads.size());
          for (const BufferRegion& region : node.reads) Add(region);
          Put(node.writes.size());
          for (const BufferRegion& region : node.writes) Add(region);
          Add(node.annotations);
          Add(node.init);
          stmt = node.body.get();
          continue;
        }
        case StmtKind::kBlockRealize: {
          const auto& node = static_cast<const BlockRealizeNode&>(*stmt);
          if (with_marks_) Mark("block " + node.block->name);
          AddAll(node.iter_values);
          Add(node.predicate);
          stmt = node.block.get();
          continue;
        }
      }
      INGOT_UNREACHABLE("StmtKind");
    }
  }

  void Add(const Type& type) {
    if (!type) return Put(kNull);
    Put(kTypeBase + static_cast<uint64_t>(type->kind));
    switch (type->kind) {
      case TypeKind::kObject:
        return;
      case TypeKind::kPrim: {
        const auto& node = static_cast<const PrimTypeNode&>(*type);
        Put(node.dtype);
        return Add(node.value);
      }
      case TypeKind::kShape: {
        const auto& node = static_cast<const ShapeTypeNode&>(*type);
        return Add(node.rank, node.dims);
      }
      case TypeKind::kTensor: {
        const auto& node = static_cast<const TensorTypeNode&>(*type);
        if (node.dtype.has_value()) {
          Put(*node.dtype);
        } else {
          Put(kNull);
        }
        Put(node.virtual_device);
        return Add(node.rank, node.dims);
      }
      case TypeKind::kTuple:
        return AddAll(static_cast<const TupleTypeNode&>(*type).fields);
      case TypeKind::kCallable: {
        const auto& node = static_cast<const CallableTypeNode&>(*type);
        const size_t num_outer = symbols_.size();
        if (node.params.has_value()) {
          for (const Type& param : *node.params) DefineSymbols(param);
          AddAll(*node.params);
        } else {
          Put(kNull);
        }
        Put(uint64_t{node.is_pure});
        Add(node.result);
        return ForgetSymbols(num_outer);
      }
    }
    INGOT_UNREACHABLE("TypeKind");
  }

  void Add(const Expr& expr) {
    if (!expr) return Put(kNull);
    Put(kExprBase + static_cast<uint64_t>(expr->kind));
    switch (expr->kind) {
      case ExprKind::kVar:
        return Use(expr.get(), static_cast<const VarNode&>(*expr).name);
      case ExprKind::kConstant: {
        const auto& node = static_cast<const ConstantNode&>(*expr);
        constants_.push_back(node.data.get());
        return Put(node.data->ContentHash());
      }
      case ExprKind::kCall: {
        const auto& node = static_cast<const CallNode&>(*expr);
        Add(node.callee);
        AddAll(node.args);
        Add(node.attrs);
        return AddAll(node.type_args);
      }
      case ExprKind::kTuple:
        return AddAll(static_cast<const TupleNode&>(*expr).fields);
      case ExprKind::kTupleGetItem: {
        const auto& node = static_cast<const TupleGetItemNode&>(*expr);
        Put(static_cast<uint64_t>(node.index));
        return Add(node.tuple);
      }
      case ExprKind::kIf: {
        const auto& node = static_cast<const IfNode&>(*expr);
        Add(node.condition);
        Add(Expr(node.then_branch));
        return Add(Expr(node.else_branch));
      }
      case ExprKind::kShapeExpr:
        return AddAll(static_cast<const ShapeExprNode&>(*expr).dims);
      case ExprKind::kPrimValue:
        return Add(static_cast<const PrimValueNode&>(*expr).value);
      case ExprKind::kStringValue:
        return Put(static_cast<const StringValueNode&>(*expr).value);
      case ExprKind::kDataTypeValue:
        return Put(static_cast<const DataTypeValueNode&>(*expr).value);
      case ExprKind::kOp:
        return Put(static_cast<const OpNode&>(*expr).name);
      case ExprKind::kGlobalVar:
        return Put(static_cast<const GlobalVarNode&>(*expr).name);
      case ExprKind::kExternFunc:
        return Put(static_cast<const ExternFuncNode&>(*expr).name);
      case ExprKind::kSeqExpr: {
        const auto& node = static_cast<const SeqExprNode&>(*expr);
        Put(node.blocks.size());
        for (const BindingBlock& block : node.blocks) {
          Put(uint64_t{block.is_dataflow});
          Put(block.bindings.size());
          for (const Binding& binding : block.bindings) Add(binding);
        }
        if (with_marks_) Mark("the result");
        return Add(node.body);
      }
      case ExprKind::kFunction: {
        const auto& node = static_cast<const FunctionNode&>(*expr);
        const size_t num_outer = symbols_.size();
        Put(node.params.size());
        for (const Var& param : node.params) {
          DefineSymbols(param->type);
          Define(param);
        }
        DefineSymbols(node.result_type);  // the body may bind what the result's dims depend on
        Add(node.result_type);
        Put(uint64_t{node.is_pure});
        Put(uint64_t{node.is_private});
        Add(node.attrs);
        Add(Expr(node.body));
        return ForgetSymbols(num_outer);
      }
      case ExprKind::kPrimFunc: {
        const auto& node = static_cast<const PrimFuncNode&>(*expr);
        Put(node.params.size());
        for (const PrimFuncParam& param : node.params) {
          if (!param.buffer) {
            Put(kNull);
            Define(param.var);
            continue;
          }
          // A shape may name a scalar parameter that stands later: symbols are numbered where they first occur.
          for (const PrimExpr& dim : param.buffer->shape) DefineSymbols(dim);
          for (const PrimExpr& stride : param.buffer->strides) DefineSymbols(stride);
          DefineSymbols(param.buffer->elem_offset);
          Define(param.buffer);
          numbers_[param.var.get()] = numbers_[param.buffer->data.get()];  // one handle, whether one node or two
        }
        Put(uint64_t{node.is_private});
        Add(node.attrs);
        return Add(node.body);
      }
    }
    INGOT_UNREACHABLE("ExprKind");
  }

  void Add(const Attrs& attrs) { Add(AttrValue(attrs.items())); }

 private:
  void Put(uint64_t word) { words_.push_back(word); }
  void Put(Word word) { words_.push_back(word); }
  void Put(DataType dtype) {
    Put((static_cast<uint64_t>(dtype.code) << 32) | (uint64_t{dtype.bits} << 16) | dtype.lanes);
  }
  void Put(double value) { Put(std::isnan(value) ? uint64_t{0x7ff8000000000000} : std::bit_cast<uint64_t>(value)); }
  void Put(const std::string& text) {
    Put(kString);
    Put(text.size());
    for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min(sizeof(word), text.size() - i));
      Put(word);
    }
  }
  void Mark(std::string text) { marks_.emplace_back(words_.size() - 1, std::move(text)); }

  template <typename T>
  void AddAll(const std::vector<T>& items) {
    Put(kList);
    Put(items.size());
    for (const T& item : items) Add(item);
  }
  void Add(int rank, const std::optional<std::vector<PrimExpr>>& dims) {
    Put(static_cast<uint64_t>(static_cast<int64_t>(rank)));
    if (dims.has_value()) {
      AddAll(*dims);
    } else {
      Put(kNull);
    }
  }
  void Add(const AttrValue& attr) {
    Put(kAttrBase + attr.value.index());
    std::visit(
        [this](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::monostate>) {
            return;
          } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t>) {
            Put(static_cast<uint64_t>(value));
          } else if constexpr (std::is_same_v<T, AttrList>) {
            AddAll(value);
          } else if constexpr (std::is_same_v<T, AttrDict>) {
            Put(value.size());
            for (const auto& [name, item] : value) {
              Put(name);
              Add(item);
            }
          } else if constexpr (std::is_same_v<T, PrimExpr>) {
            Add(value);
          } else {
            Put(value);
          }
        },
        attr.value);
  }
  void Add(const BufferRegion& region) {
    Use(region.buffer);
    Put(region.region.size());
    for (const Range& range : region.region) {
      Add(range.min);
      Add(range.extent);
    }
  }
  void Add(const Binding& binding) {
    if (with_marks_) Mark("binding " + binding.var->name);
    // A function may call itself by its variable.
    const bool is_function = As<FunctionNode>(binding.value) != nullptr;
    if (is_function) {
      DefineSymbols(binding.var->type);
      Define(binding.var);
    }
    Add(binding.value);
    DefineSymbols(binding.match_cast);
    Add(binding.match_cast);
    if (!is_function) Define(binding.var);
  }

  void Use(const Node* node, const std::string& name) {
    const auto it = numbers_.find(node);
    if (it != numbers_.end()) {
      Put(kBound);
      return Put(it->second);
    }
    Put(kFree);
    switch (free_) {
      case FreeVars::kIdentity:
        return Put(std::bit_cast<uintptr_t>(node));
      case FreeVars::kName:
        return Put(name);
      case FreeVars::kNumber:
        return Put(Number(node));
    }
  }
  void Use(const Buffer& buffer) {
    const bool is_first = !numbers_.contains(buffer.get());
    if (const auto data = numbers_.find(buffer->data.get()); is_first && data != numbers_.end()) {
      // A view of a buffer in scope: it is defined where it is used first.
      Put(kView);
      Put(data->second);
      Number(buffer.get());
      return Describe(*buffer);
    }
    Use(buffer.get(), buffer->name);
    if (is_first && free_ != FreeVars::kIdentity) Describe(*buffer);
  }
  uint64_t Number(const Node* node) { return numbers_[node] = next_number_++; }

  void Define(const PrimVar& var) {
    Put(var->dtype);
    Number(var.get());
  }
  void Define(const IterVarNode& iter) {
    Add(iter.domain.min);
    Add(iter.domain.extent);
    Put(static_cast<uint64_t>(iter.type));
    Put(iter.thread_tag);
    Define(iter.var);
  }
  void Define(const IterVar& iter) { Define(*iter); }
  void Define(const Var& var) {
    Put(uint64_t{var->is_dataflow});
    Add(var->type);
    Number(var.get());
  }
  void Define(const Buffer& buffer) {
    Number(buffer.get());
    if (!numbers_.contains(buffer->data.get())) Number(buffer->data.get());
    Describe(*buffer);
  }
  void Describe(const BufferNode& buffer) {
    Put(buffer.dtype);
    AddAll(buffer.shape);
    AddAll(buffer.strides);
    Add(buffer.elem_offset);
    Put(buffer.scope);
    Put(static_cast<uint64_t>(buffer.alignment));
  }
  // Variables that are new here are bound here: by a parameter's shape or a match_cast. They are known to the end of
  // the function, those of a function type's parameters to the end of the type.
  void DefineSymbols(const PrimExpr& expr) {
    if (!expr) return;
    for (const PrimVar& var : FreePrimVars(expr)) DefineSymbol(var);
  }
  void DefineSymbols(const Type& type) {
    for (const PrimVar& var : FreePrimVars(type)) DefineSymbol(var);
  }
  void DefineSymbol(const PrimVar& var) {
    if (numbers_.contains(var.get())) return;
    Define(var);
    symbols_.push_back(var.get());
  }
  void ForgetSymbols(size_t num_kept) {
    for (; symbols_.size() > num_kept; symbols_.pop_back()) numbers_.erase(symbols_.back());
  }

  const FreeVars free_;
  const bool with_marks_;
  std::vector<uint64_t> words_;
  std::unordered_map<const Node*, uint64_t> numbers_;
  std::vector<const Node*> symbols_;  // those that DefineSymbol numbered, innermost last
  uint64_t next_number_ = 0;
  std::vector<const ConstantData*> constants_;
  std::vector<std::pair<size_t, std::string>> marks_;  // where in words_, what begins there
};

template <typename T>
bool Equal(const T& a, const T& b, bool map_free_vars) {
  if (a.same_as(b)) return true;
  if (!a || !b || a->kind != b->kind) return false;
  const auto free = map_free_vars ? Sequence::FreeVars::kNumber : Sequence::FreeVars::kIdentity;
  Sequence x(free);
  Sequence y(free);
  x.Add(a);
  y.Add(b);
  return x == y;
}

template <typename T>
uint64_t Hash(const T& tree, bool map_free_vars) {
  Sequence sequence(map_free_vars ? Sequence::FreeVars::kNumber : Sequence::FreeVars::kName);
  sequence.Add(tree);
  return sequence.Hash();
}

}  // namespace

bool StructuralEqual(const PrimExpr& a, const PrimExpr& b, bool map_free_vars) { return Equal(a, b, map_free_vars); }
bool StructuralEqual(const Stmt& a, const Stmt& b, bool map_free_vars) { return Equal(a, b, map_free_vars); }
bool StructuralEqual(const Type& a, const Type& b, bool map_free_vars) { return Equal(a, b, map_free_vars); }
bool StructuralEqual(const Expr& a, const Expr& b, bool map_free_vars) { return Equal(a, b, map_free_vars); }
bool StructuralEqual(const IRModule& a, const IRModule& b) { return ExplainDifference(a, b).empty(); }

std::string ExplainDifference(const IRModule& a, const IRModule& b) {
  const auto& fa = a.functions();
  const auto& fb = b.functions();
  for (size_t i = 0; i < std::max(fa.size(), fb.size()); ++i) {
    if (i >= fb.size()) return fa[i].var->name + ": only in the first module";
    if (i >= fa.size()) return fb[i].var->name + ": only in the second module";
    if (fa[i].var->name != fb[i].var->name) {
      return "function " + std::to_string(i) + ": " + fa[i].var->name + " or " + fb[i].var->name;
    }
    if (fa[i].function.same_as(fb[i].function)) continue;
    Sequence x(Sequence::FreeVars::kIdentity, true);
    Sequence y(Sequence::FreeVars::kIdentity, true);
    x.Add(fa[i].function);
    y.Add(fb[i].function);
    if (!(x == y)) return fa[i].var->name + ": " + x.DescribeDifference(y);
  }
  Sequence x(Sequence::FreeVars::kIdentity);
  Sequence y(Sequence::FreeVars::kIdentity);
  x.Add(a.attrs());
  y.Add(b.attrs());
  return x == y ? "" : "the module's attributes";
}

uint64_t StructuralHash(const PrimExpr& expr, bool map_free_vars) { return Hash(expr, map_free_vars); }
uint64_t StructuralHash(const Stmt& stmt, bool map_free_vars) { return Hash(stmt, map_free_vars); }
uint64_t StructuralHash(const Type& type, bool map_free_vars) { return Hash(type, map_free_vars); }
uint64_t StructuralHash(const Expr& expr, bool map_free_vars) { return Hash(expr, map_free_vars); }

}  // namespace ingot::ir
