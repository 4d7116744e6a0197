// One traversal says what counts: it writes a tree as a sequence of words in which every bound variable is the number
// of its definition. Equal trees give equal sequences; the hash is the hash of the sequence. So equality and hash can
// never disagree, and bound variables correspond one to one by construction. What counts of a node is its list of
// fields (node.h); here stands how each type of field is written.
#include "compiler/ir/structural.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "compiler/ir/field_walk.h"
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
    Dispatch(*expr, [this](const auto& node) { AddFields(node); });
  }

  // Iterates down the bodies: chains of lets and allocations may be long. Of the statements inside of a statement, the
  // last one is left to the next iteration.
  void Add(const Stmt& first) {
    std::optional<const StmtNode*> next = first.get();
    while (next.has_value()) {
      const StmtNode* const stmt = *std::exchange(next, std::nullopt);
      if (stmt == nullptr) return Put(kNull);
      Put(kStmtBase + static_cast<uint64_t>(stmt->kind));
      Dispatch(*stmt, [&]<typename T>(const T& node) {
        if constexpr (requires { MarkOf(node); }) {
          if (with_marks_) Mark(MarkOf(node));
        }
        ForEachField<T>([&](auto field) {
          if (next.has_value()) Add(Stmt(*std::exchange(next, std::nullopt)));
          if constexpr (requires { Stmt(node.*field.member); }) {
            next = (node.*field.member).get();
          } else {
            AddField(node, field);
          }
        });
      });
    }
  }

  void Add(const Type& type) {
    if (!type) return Put(kNull);
    Put(kTypeBase + static_cast<uint64_t>(type->kind));
    const size_t num_outer = symbols_.size();
    Dispatch(*type, [this](const auto& node) { AddFields(node); });
    if (type->kind == TypeKind::kCallable) ForgetSymbols(num_outer);
  }

  void Add(const Expr& expr) {
    if (!expr) return Put(kNull);
    Put(kExprBase + static_cast<uint64_t>(expr->kind));
    const size_t num_outer = symbols_.size();
    Dispatch(*expr, [this](const auto& node) { AddFields(node); });
    if (expr->kind == ExprKind::kFunction) ForgetSymbols(num_outer);
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

  static std::string MarkOf(const BufferStoreNode& node) { return "a store to " + node.buffer->name; }
  static std::string MarkOf(const ForNode& node) { return "loop " + node.var->name; }
  static std::string MarkOf(const BlockNode& node) { return "block " + node.name; }
  static std::string MarkOf(const BlockRealizeNode& node) { return "block " + node.block->name; }

  // ---- Fields by their roles.

  template <typename T>
  void AddFields(const T& node) {
    ForEachField<T>([&](auto field) { AddField(node, field); });
  }
  // Without the numbers of axes and variables, and in an order of its own: the hash keeps its value.
  void AddFields(const ReduceNode& node) {
    for (const IterVar& axis : node.axes) Define(axis);
    for (const PrimVar& var : node.combiner.lhs) Define(var);
    for (const PrimVar& var : node.combiner.rhs) Define(var);
    Add(node.combiner.result);
    Add(node.combiner.identity);
    Add(node.source);
    Add(node.init);
    Add(node.condition);
    Add(node.value_index);
  }
  template <typename T, FieldRole role, typename C, typename F>
  void AddField(const T& node, NodeField<role, C, F> field) {
    const F& value = node.*field.member;
    if constexpr (role == FieldRole::kDefines) {
      Define(value);
    } else if constexpr (role == FieldRole::kBindsSymbols) {
      DefineSymbols(value);
      Add(value);
    } else if constexpr (role == FieldRole::kIdentity) {
      Use(&node, value);
    } else {
      Add(value);
    }
  }

  // ---- Fields by their types.

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void Add(T number) { Put(static_cast<uint64_t>(number)); }
  void Add(double number) { Put(number); }
  void Add(DataType dtype) { Put(dtype); }
  void Add(const std::string& text) { Put(text); }
  void Add(const Buffer& buffer) { Use(buffer); }
  void Add(const SeqExpr& seq) { Add(Expr(seq)); }
  void Add(const Ref<Node>& node) { Put(std::bit_cast<uintptr_t>(node.get())); }
  void Add(const std::shared_ptr<const ConstantData>& data) {
    constants_.push_back(data.get());
    Put(data->ContentHash());
  }
  template <typename T>
  void Add(const std::optional<T>& value) {
    if (value.has_value()) {
      Add(*value);
    } else {
      Put(kNull);
    }
  }
  template <HasFields T>
  void Add(const T& part) {
    AddFields(part);
  }
  // Lists of expressions, types, attributes and numbers open with a word of their own; those of numbers have as many as
  // the node has lanes.
  template <typename T>
  void Add(const std::vector<T>& items) {
    constexpr bool are_numbers = std::is_same_v<T, int64_t>;
    constexpr bool are_values = std::is_same_v<T, PrimExpr> || std::is_same_v<T, Expr> || std::is_same_v<T, Type> ||
                                std::is_same_v<T, AttrValue>;
    if (are_numbers || are_values) Put(kList);
    if (!are_numbers) Put(items.size());
    for (const T& item : items) Add(item);
  }
  void Add(const std::vector<BindingBlock>& blocks) {
    Put(blocks.size());
    for (const BindingBlock& block : blocks) AddFields(block);
    if (with_marks_) Mark("the result");
  }
  void Add(const MatchBufferRegion& match) {
    AddFields(match.source);
    for (const PrimExpr& stride : match.buffer->strides) DefineSymbols(stride);
    DefineSymbols(match.buffer->elem_offset);
    Define(match.buffer);
  }
  void Add(const std::pair<std::string, AttrValue>& item) {
    Put(item.first);
    Add(item.second);
  }
  void Add(const AttrValue& attr) {
    Put(kAttrBase + attr.value.index());
    std::visit(
        [this]<typename T>(const T& value) {
          if constexpr (!std::is_same_v<T, std::monostate>) Add(value);
        },
        attr.value);
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
      return AddFields(*buffer);
    }
    Use(buffer.get(), buffer->name);
    if (is_first && free_ != FreeVars::kIdentity) AddFields(*buffer);
  }
  uint64_t Number(const Node* node) { return numbers_[node] = next_number_++; }

  void Define(const PrimVar& var) {
    Put(var->dtype);
    Number(var.get());
  }
  void Define(const IterVar& iter) { AddFields(*iter); }
  void Define(const Var& var) {
    Put(uint64_t{var->is_dataflow});
    Add(var->type);
    Number(var.get());
  }
  void Define(const Buffer& buffer) {
    Number(buffer.get());
    if (!numbers_.contains(buffer->data.get())) Number(buffer->data.get());
    AddFields(*buffer);
  }
  // Of an attribute: the axis of a thread, which it defines, or what it is about.
  void Define(const Ref<Node>& node) {
    if (const auto* iter = dynamic_cast<const IterVarNode*>(node.get())) {
      AddFields(*iter);
    } else if (node) {
      Use(node.get(), "");
    } else {
      Put(kNull);
    }
  }
  template <typename T>
  void Define(const std::vector<T>& items) {
    Put(items.size());
    for (const T& item : items) Define(item);
  }
  void Define(const std::vector<Var>& params) {
    Put(params.size());
    for (const Var& param : params) {
      DefineSymbols(param->type);
      Define(param);
    }
  }
  void Define(const PrimFuncParam& param) {
    if (!param.buffer) {
      Put(kNull);
      return Define(param.var);
    }
    // A shape may name a scalar parameter that stands later: symbols are numbered where they first occur.
    for (const PrimExpr& dim : param.buffer->shape) DefineSymbols(dim);
    for (const PrimExpr& stride : param.buffer->strides) DefineSymbols(stride);
    DefineSymbols(param.buffer->elem_offset);
    Define(param.buffer);
    numbers_[param.var.get()] = numbers_[param.buffer->data.get()];  // one handle, whether one node or two
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
  void DefineSymbols(const std::optional<std::vector<Type>>& types) {
    if (!types.has_value()) return;
    for (const Type& type : *types) DefineSymbols(type);
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

uint64_t IdentityHash(const PrimExpr& expr) {
  Sequence sequence(Sequence::FreeVars::kIdentity);
  sequence.Add(expr);
  return sequence.Hash();
}

}  // namespace ingot::ir
