// A map by content hash; collisions get numbered names, and equal contents share one entry.
#include "compiler/script/constant_store.h"

namespace ingot::script {

std::string HashName(const ir::ConstantData& data) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name(16, '0');
  uint64_t hash = data.ContentHash();
  for (size_t i = name.size(); i-- > 0; hash >>= 4) name[i] = kDigits[hash & 15];
  return name;
}

std::string ConstantStore::Add(const std::shared_ptr<const ir::ConstantData>& data) {
  const std::string base = HashName(*data);
  std::string name = base;
  for (int i = 2;; ++i) {
    const auto [it, added] = constants_.try_emplace(name, data);
    if (added || it->second->Equals(*data)) return name;
    name = base + "-" + std::to_string(i);
  }
}

std::shared_ptr<const ir::ConstantData> ConstantStore::Find(std::string_view hash) const {
  const auto it = constants_.find(hash);
  return it == constants_.end() ? nullptr : it->second;
}

}  // namespace ingot::script
