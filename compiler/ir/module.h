// IRModule: named functions (graph functions and PrimFuncs) in order, and the module's attributes. A value with shared
// contents: copying is cheap, changing a copy leaves the original as it was. A pass is IRModule -> Result<IRModule>.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::ir {

class IRModule {
 public:
  struct Entry {
    GlobalVar var;
    Expr function;  // Function or PrimFunc
  };

  IRModule();
  const std::vector<Entry>& functions() const;  // in order of addition
  std::vector<Entry>::const_iterator begin() const { return functions().begin(); }
  std::vector<Entry>::const_iterator end() const { return functions().end(); }
  size_t size() const { return functions().size(); }
  std::vector<GlobalVar> GlobalVars() const;  // in order of addition
  const Attrs& attrs() const;
  void SetAttrs(Attrs attrs);

  // Null when there is none.
  GlobalVar FindGlobalVar(std::string_view name) const;
  Expr Find(std::string_view name) const;
  Expr Find(const GlobalVar& var) const;  // null for another module's var of this name
  bool Contains(std::string_view name) const { return FindGlobalVar(name) != nullptr; }
  Function FindFunction(std::string_view name) const;
  PrimFunc FindPrimFunc(std::string_view name) const;

  // Adds under a name that is new: hint, or hint1, hint2, ... ; returns its GlobalVar.
  GlobalVar Add(std::string_view hint, Expr function);
  // Replaces the function of an existing GlobalVar, or adds it under exactly this one (its name must be free).
  void Set(const GlobalVar& var, Expr function);
  void Remove(const GlobalVar& var);
  // name itself when free, else name1, name2, ...
  std::string FreshName(std::string_view name) const;

 private:
  struct Rep;
  void Detach();
  std::shared_ptr<Rep> rep_;
};

}  // namespace ingot::ir
