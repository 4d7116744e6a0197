// Node and Ref<T>: the immutable, counted nodes that every level of the IR is made of. A node is built once by
// Make<T>(...) and never changes; a Ref<T> is a counted pointer to a const T, compared by identity. Nodes point only to
// nodes that are older, so cycles cannot exist. Releasing a long chain uses a worklist, not the C stack.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/check.h"

namespace ingot::ir {

// Where a node came from: a text (module.py, line and column from 1) or a foreign graph ("model.onnx", line 0) with
// the name of the operation there. Errors and the debug map show it.
struct SourceText {
  std::string name;  // file name
  std::string text;  // whole contents, for carets; empty for foreign graphs
};
struct Span {
  std::shared_ptr<const SourceText> source;
  int32_t line = 0;
  int32_t column = 0;
  int32_t end_column = 0;
  std::shared_ptr<const std::string> operation;  // name of the foreign node, if any

  bool is_known() const { return source != nullptr; }
  // "module.py:12:5", "model.onnx: node_Conv_23", or "<unknown>".
  std::string ToString() const;
};

class Node {
 public:
  Span span;

  Node() = default;
  Node(const Node& other);  // a copy is a new node without owners
  Node& operator=(const Node&) = delete;
  virtual ~Node();

  void Retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy(this);
  }

 private:
  static void Destroy(const Node* node);  // through a worklist
  mutable std::atomic<int32_t> refs_{0};
};

template <typename T>
class Ref {
 public:
  using NodeType = T;
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: implicit on purpose
  explicit Ref(const T* node) : node_(node) { Retain(); }
  Ref(const Ref& other) : node_(other.node_) { Retain(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  template <typename U, typename = std::enable_if_t<std::is_base_of_v<T, U> && !std::is_same_v<T, U>>>
  Ref(const Ref<U>& other) : node_(other.get()) {  // NOLINT: implicit on purpose
    Retain();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() {
    if (node_ != nullptr) node_->Release();
  }

  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool same_as(const Ref& other) const { return node_ == other.node_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.node_ == nullptr; }

 private:
  void Retain() const {
    if (node_ != nullptr) node_->Retain();
  }
  const T* node_ = nullptr;
};

struct RefHash {
  template <typename T>
  size_t operator()(const Ref<T>& ref) const {
    return std::hash<const void*>()(ref.get());
  }
};
struct RefSame {
  template <typename T>
  bool operator()(const Ref<T>& a, const Ref<T>& b) const {
    return a.get() == b.get();
  }
};

// ---- Fields. A node lists once what it consists of:
//
//     static constexpr void Fields(auto&& walk) { walk(&LetNode::value, Defines(&LetNode::var), &LetNode::body); }
//
// The default methods of visitors and mutators, structural equality and hash, substitution, free variables and fresh
// copies follow these lists (field_walk.h, structural.cc). The order is that of execution, a definition before the
// fields that see it. What is not listed does not count for equality: names that are hints, spans, inferred types, and
// what follows from other fields. Lists are templates that are compiled where they are walked.

enum class FieldRole : uint8_t {
  kPart,          // a child, a list of children, or plain data
  kDefines,       // a variable, a buffer or a list of these that the node defines
  kBindsSymbols,  // types; the symbolic variables in them that are new are bound by them
  kIdentity,      // the name of a node whose identity counts: a use of what is defined elsewhere
  kOptional,      // a child that may be null
};
template <FieldRole role, typename T, typename F>
struct NodeField {
  static constexpr FieldRole kRole = role;
  F T::*member;
};
template <typename T, typename F>
constexpr NodeField<FieldRole::kDefines, T, F> Defines(F T::*member) {
  return {member};
}
template <typename T, typename F>
constexpr NodeField<FieldRole::kBindsSymbols, T, F> BindsSymbols(F T::*member) {
  return {member};
}
template <typename T, typename F>
constexpr NodeField<FieldRole::kIdentity, T, F> IdentityOf(F T::*member) {
  return {member};
}
template <typename T, typename F>
constexpr NodeField<FieldRole::kOptional, T, F> Optional(F T::*member) {
  return {member};
}

// The special members of a node, declared in its class and defined in one file; otherwise every file that makes or
// releases such a node would compile them again.
#define INGOT_NODE_MEMBERS(T) \
  T(const T& other);          \
  T(T&& other);               \
  ~T() override
#define INGOT_DEFINE_NODE(T)      \
  T::T(const T& other) = default; \
  T::T(T&& other) = default;      \
  T::~T() = default

// Make<AddNode>(a, b): the only way to build a node. Copy, change and Make again to derive one from another:
// `auto copy = *node; copy.body = body; return Make<ForNode>(std::move(copy));`
template <typename T, typename... Args>
Ref<T> Make(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

// The node as a T, or null when it is something else (or null). T names its kind as T::kKind.
template <typename T, typename U>
const T* As(const Ref<U>& ref) {
  return ref.get() != nullptr && ref->kind == T::kKind ? static_cast<const T*>(ref.get()) : nullptr;
}
template <typename T, typename U>
Ref<T> AsRef(const Ref<U>& ref) {
  return Ref<T>(As<T>(ref));
}
// The node as a T; another kind of node is a broken invariant (INGOT_CHECKed).
template <typename T, typename U>
Ref<T> Downcast(const Ref<U>& ref) {
  const T* node = As<T>(ref);
  INGOT_CHECK(node != nullptr, "Downcast to another kind of node");
  return Ref<T>(node);
}

}  // namespace ingot::ir
