// NameSupply: names one function's variables and buffers while it is printed. In: nodes with hints. Out: one name per
// node, unique among the names that are visible there, and readable by the tokenizer. A hint that is taken gets a
// number: lv, lv1; v_i0, v_i0_1. Names of a closed scope are free again.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/node.h"

namespace ingot::script {

// Whether the tokenizer reads it back as one name: an identifier, or a word that starts with a digit but is no number
// ("0_weight"); no keyword and no name with a meaning of its own (R, T, cls, ...).
bool IsPlainName(std::string_view name);
// Returns the nearest plain name: other characters become '_'.
std::string ToPlainName(std::string_view hint);

class NameSupply {
 public:
  NameSupply() { scopes_.emplace_back(); }
  // Names the node in the innermost scope.
  std::string Define(const ir::Node* node, std::string_view hint) { return DefineAt(scopes_.size() - 1, node, hint); }
  // Names the node in the whole function, even while inner scopes are open.
  std::string DefineOutermost(const ir::Node* node, std::string_view hint) { return DefineAt(0, node, hint); }
  // Makes a node visible under a text that is no new name (a buffer's data pointer is "A.data").
  void DefineAlias(const ir::Node* node, std::string text);
  // Returns null if the node has no name here.
  const std::string* Find(const ir::Node* node) const;

  // While it lives a scope is open; names defined in it are forgotten with it.
  class Scope {
   public:
    explicit Scope(NameSupply& supply) : supply_(supply) { supply_.scopes_.emplace_back(); }
    ~Scope() { supply_.CloseScope(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    NameSupply& supply_;
  };

 private:
  struct Entry {
    const ir::Node* node;
    std::string name;  // empty: an alias
    std::string base;
    int previous_suffix;
  };
  std::string DefineAt(size_t scope, const ir::Node* node, std::string_view hint);
  void CloseScope();

  std::unordered_map<const ir::Node*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> suffix_;  // base -> the last number given
  std::vector<std::vector<Entry>> scopes_;
};

}  // namespace ingot::script
