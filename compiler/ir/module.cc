// IRModule's contents: the functions in order and an index by name. Modules share them; a change copies them first when
// another module holds them too (Detach).
#include "compiler/ir/module.h"

#include <unordered_map>

namespace ingot::ir {

struct IRModule::Rep {
  std::vector<Entry> functions;
  Attrs attrs;
  std::unordered_map<std::string, size_t> index;  // name -> place in functions
  std::unordered_map<std::string, int> suffix;    // name -> every smaller suffix is taken; written by Add alone

  // The first free one of name, name1, name2, ... and its number.
  std::pair<std::string, int> Fresh(std::string_view name) const {
    std::string base(name);
    if (!index.contains(base)) return {base, 0};
    const auto known = suffix.find(base);
    for (int i = known == suffix.end() ? 1 : known->second;; ++i) {
      std::string candidate = base + std::to_string(i);
      if (!index.contains(candidate)) return {std::move(candidate), i};
    }
  }
};

IRModule::IRModule() : rep_(std::make_shared<Rep>()) {}

void IRModule::Detach() {
  if (rep_.use_count() > 1) rep_ = std::make_shared<Rep>(*rep_);
}

const std::vector<IRModule::Entry>& IRModule::functions() const { return rep_->functions; }
const Attrs& IRModule::attrs() const { return rep_->attrs; }
void IRModule::SetAttrs(Attrs attrs) {
  Detach();
  rep_->attrs = std::move(attrs);
}

GlobalVar IRModule::FindGlobalVar(std::string_view name) const {
  const auto it = rep_->index.find(std::string(name));
  return it == rep_->index.end() ? GlobalVar() : rep_->functions[it->second].var;
}
Expr IRModule::Find(std::string_view name) const {
  const auto it = rep_->index.find(std::string(name));
  return it == rep_->index.end() ? Expr() : rep_->functions[it->second].function;
}
Expr IRModule::Find(const GlobalVar& var) const {
  const auto it = rep_->index.find(var->name);
  if (it == rep_->index.end()) return Expr();
  const Entry& entry = rep_->functions[it->second];
  return entry.var.same_as(var) ? entry.function : Expr();
}
std::vector<GlobalVar> IRModule::GlobalVars() const {
  std::vector<GlobalVar> vars;
  for (const Entry& entry : rep_->functions) vars.push_back(entry.var);
  return vars;
}
Function IRModule::FindFunction(std::string_view name) const { return AsRef<FunctionNode>(Find(name)); }
PrimFunc IRModule::FindPrimFunc(std::string_view name) const { return AsRef<PrimFuncNode>(Find(name)); }

GlobalVar IRModule::Add(std::string_view hint, Expr function) {
  Detach();
  auto [name, number] = rep_->Fresh(hint);
  if (number > 0) rep_->suffix[std::string(hint)] = number + 1;
  GlobalVar var = Make<GlobalVarNode>(std::move(name));
  Set(var, std::move(function));
  return var;
}

void IRModule::Set(const GlobalVar& var, Expr function) {
  Detach();
  const auto [it, added] = rep_->index.try_emplace(var->name, rep_->functions.size());
  if (added) {
    rep_->functions.push_back({var, std::move(function)});
    return;
  }
  Entry& entry = rep_->functions[it->second];
  INGOT_CHECK(entry.var.same_as(var), "another function has this name");
  entry.function = std::move(function);
}

void IRModule::Remove(const GlobalVar& var) {
  const auto it = rep_->index.find(var->name);
  INGOT_CHECK(it != rep_->index.end() && rep_->functions[it->second].var.same_as(var), "no such function");
  const size_t place = it->second;
  Detach();
  rep_->functions.erase(rep_->functions.begin() + static_cast<std::ptrdiff_t>(place));
  rep_->index.clear();
  rep_->suffix.clear();
  for (size_t i = 0; i < rep_->functions.size(); ++i) rep_->index[rep_->functions[i].var->name] = i;
}

std::string IRModule::FreshName(std::string_view name) const { return rep_->Fresh(name).first; }

}  // namespace ingot::ir
