// AttrValue and Attrs: structural comparison, look-up by name, typed access. Their special members and vectors are
// compiled here alone, since nearly every file of the compiler uses them.
#include "compiler/ir/attrs.h"

#include <bit>
#include <cmath>

#include "compiler/ir/structural.h"

namespace ingot::ir {

AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

Attrs::Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items) : items_(items) {}
Attrs::Attrs(AttrDict items) : items_(std::move(items)) {}
Attrs::Attrs(const Attrs& other) = default;
Attrs::Attrs(Attrs&& other) noexcept = default;
Attrs& Attrs::operator=(const Attrs& other) = default;
Attrs& Attrs::operator=(Attrs&& other) noexcept = default;
Attrs::~Attrs() = default;

AttrValue AttrValue::Ints(const std::vector<int64_t>& values) {
  AttrList list;
  list.reserve(values.size());
  for (const int64_t value : values) list.emplace_back(value);
  return AttrValue(std::move(list));
}

bool operator==(const AttrValue& a, const AttrValue& b) {
  return std::visit(
      [](const auto& x, const auto& y) {
        using X = std::decay_t<decltype(x)>;
        if constexpr (!std::is_same_v<X, std::decay_t<decltype(y)>>) {
          return false;
        } else if constexpr (std::is_same_v<X, PrimExpr>) {
          return StructuralEqual(x, y);
        } else if constexpr (std::is_same_v<X, double>) {
          return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y));
        } else {
          return x == y;
        }
      },
      a.value, b.value);
}

const AttrValue* Attrs::Find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

Attrs Attrs::With(std::string name, AttrValue value) const {
  Attrs result(*this);
  for (auto& [key, old] : result.items_) {
    if (key == name) {
      old = std::move(value);
      return result;
    }
  }
  result.items_.emplace_back(std::move(name), std::move(value));
  return result;
}

Attrs Attrs::Without(std::string_view name) const {
  Attrs result(*this);
  std::erase_if(result.items_, [&](const auto& item) { return item.first == name; });
  return result;
}

namespace {

template <typename T>
const T& Get(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = attrs.Find(name);
  const T* typed = value == nullptr ? nullptr : value->get<T>();
  if (typed == nullptr) {
    const std::string detail =
        "attribute \"" + std::string(name) + (value == nullptr ? "\" is missing" : "\" is of another type");
    CheckFailed(__FILE__, __LINE__, "typed attribute access", detail.c_str());
  }
  return *typed;
}

}  // namespace

bool Attrs::GetBool(std::string_view name) const { return Get<bool>(*this, name); }
int64_t Attrs::GetInt(std::string_view name) const { return Get<int64_t>(*this, name); }
double Attrs::GetFloat(std::string_view name) const {
  const AttrValue* value = Find(name);
  const int64_t* integer = value == nullptr ? nullptr : value->get<int64_t>();
  return integer != nullptr ? static_cast<double>(*integer) : Get<double>(*this, name);
}
const std::string& Attrs::GetString(std::string_view name) const { return Get<std::string>(*this, name); }
std::vector<int64_t> Attrs::GetInts(std::string_view name) const {
  std::vector<int64_t> result;
  for (const AttrValue& item : Get<AttrList>(*this, name)) {
    const int64_t* integer = item.get<int64_t>();
    INGOT_CHECK(integer != nullptr, "a list attribute with an element that is no integer");
    result.push_back(*integer);
  }
  return result;
}

}  // namespace ingot::ir

template class std::vector<ingot::ir::AttrValue>;
template class std::vector<std::pair<std::string, ingot::ir::AttrValue>>;
