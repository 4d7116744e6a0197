// Where names are looked up: the graph, the body of a function, which sees only its own values, or a graph inside of a
// node, which also sees the values around it. A scope owns the values of its names, what the file declares of them, the
// attributes of a function's call, and the prefix of its nodes' labels.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "runtime/status.h"

namespace ingot::importer {

class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Each of these is called once, on an empty scope.
  Status OpenMain(const OnnxGraph& graph, int64_t opset);
  // The body of a called function; inputs that are null are left out.
  Status OpenFunction(const OnnxFunction& function, const OnnxNode& call, const std::string& label,
                      const std::vector<ImportedValue*>& inputs, const Scope& caller);
  // The graph inside of a node. has_bindings: it is a branch or a loop's body, whose values do not exist outside of it.
  Status OpenGraph(const OnnxGraph& graph, const std::string& label, Scope& outer, bool has_bindings);

  // Returns null if the name has no value.
  ImportedValue* Find(const std::string& name);
  // Whether the name is that of an optional input which is left out.
  bool IsLeftOut(const std::string& name) const;
  // Returns what the file declares of a value that a node of this scope makes, or null.
  const OnnxValueInfo* Declared(const std::string& name) const;
  // Whether the value is a result of the main graph.
  bool IsResult(const std::string& name) const { return results_.contains(name); }

  Status Define(const std::string& name, ImportedValue value);
  Status Define(const std::string& name, ir::Expr expr);
  // Defines the value, or replaces it by this one.
  void Set(const std::string& name, ImportedValue value) { values_.insert_or_assign(name, std::move(value)); }
  void Forget(const std::string& name) { values_.erase(name); }

  int64_t opset() const { return opset_; }
  std::string LabelOf(const OnnxNode& node, size_t index) const;
  // Returns an attribute of the call of the function around this scope, or its default; null if there is none.
  const OnnxAttribute* CallAttribute(const std::string& name) const;

 private:
  Status DefineInitializers(const OnnxGraph& graph);
  void NotePacked(const OnnxGraph& graph);

  Scope* outer_ = nullptr;  // the scope around a graph inside of a node; null otherwise
  std::unordered_map<std::string, ImportedValue> values_;
  bool has_bindings_ = false;
  std::unordered_map<std::string, ImportedValue> captured_;  // values from outside that are known by their elements
  std::unordered_set<std::string> left_out_, results_;
  std::unordered_map<std::string, const OnnxValueInfo*> declared_;
  // What the file declares to have elements of less than a byte: inputs and results too.
  std::unordered_map<std::string, DataType> declared_packed_;
  std::string prefix_;  // prefix of node labels: "call/"
  int64_t opset_ = 0;
  std::vector<OnnxAttribute> attributes_;  // of a function's call, the defaults last
};

}  // namespace ingot::importer
