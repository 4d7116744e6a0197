// Names in use, the last number given per base name, and a stack of scopes that restores both when a scope closes.
#include "compiler/script/name_supply.h"

#include <algorithm>
#include <cctype>

#include "compiler/script/tokenizer.h"

namespace ingot::script {
namespace {

// Names that have a meaning in the text.
constexpr std::string_view kReserved[] = {"I", "R", "T", "Module", "TypeVar", "cls", "float", "metadata", "range"};

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool IsReserved(std::string_view name) {
  return IsKeyword(name) || std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

}  // namespace

bool IsPlainName(std::string_view name) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsWordCharacter) || IsReserved(name)) return false;
  return std::isdigit(static_cast<unsigned char>(name[0])) == 0 || !IsNumberWord(name);
}

std::string ToPlainName(std::string_view hint) {
  std::string name(hint);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsWordCharacter(c); }, '_');
  if (name.empty()) return "v";
  if (IsReserved(name)) return name + "_";
  return IsPlainName(name) ? name : "_" + name;
}

std::string NameSupply::DefineAt(size_t scope, const ir::Node* node, std::string_view hint) {
  std::string base = ToPlainName(hint);
  int& suffix = suffix_[base];
  const int previous_suffix = suffix;
  std::string name = base;
  const char* separator = std::isdigit(static_cast<unsigned char>(base.back())) != 0 ? "_" : "";
  while (used_.contains(name)) name = base + separator + std::to_string(++suffix);
  used_.insert(name);
  names_[node] = name;
  scopes_[scope].push_back({node, name, std::move(base), previous_suffix});
  return name;
}

void NameSupply::DefineAlias(const ir::Node* node, std::string text) {
  names_[node] = std::move(text);
  scopes_.back().push_back({node, "", "", 0});
}

const std::string* NameSupply::Find(const ir::Node* node) const {
  const auto it = names_.find(node);
  return it == names_.end() ? nullptr : &it->second;
}

void NameSupply::CloseScope() {
  std::vector<Entry>& entries = scopes_.back();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    names_.erase(entry->node);
    if (entry->name.empty()) continue;
    used_.erase(entry->name);
    suffix_[entry->base] = entry->previous_suffix;
  }
  scopes_.pop_back();
}

}  // namespace ingot::script
