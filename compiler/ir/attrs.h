// AttrValue and Attrs: attributes of calls, functions, loops and blocks: named values in a fixed order. A
// call of an operator holds every attribute that the operator declares, defaults filled in, in the declared order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

struct AttrValue;
using AttrList = std::vector<AttrValue>;
using AttrDict = std::vector<std::pair<std::string, AttrValue>>;  // in order of insertion

struct AttrValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, DataType, AttrList, AttrDict, PrimExpr> value;

  AttrValue() = default;  // None
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();
  template <typename T>
  AttrValue(T v) : value(std::move(v)) {}              // NOLINT: implicit on purpose
  AttrValue(int v) : value(int64_t{v}) {}              // NOLINT
  AttrValue(const char* v) : value(std::string(v)) {}  // NOLINT
  static AttrValue Ints(const std::vector<int64_t>& values);

  bool is_none() const { return value.index() == 0; }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
};
// Structural equality: numbers by value and kind (NaN equals NaN, +0 differs from -0), PrimExprs by structure with free
// variables by identity.
bool operator==(const AttrValue& a, const AttrValue& b);

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items);
  explicit Attrs(AttrDict items);
  Attrs(const Attrs& other);
  Attrs(Attrs&& other) noexcept;
  Attrs& operator=(const Attrs& other);
  Attrs& operator=(Attrs&& other) noexcept;
  ~Attrs();

  const AttrDict& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  const AttrValue* Find(std::string_view name) const;
  Attrs With(std::string name, AttrValue value) const;  // replaces, or adds at the end
  Attrs Without(std::string_view name) const;
  // Typed access; a missing name or another type is a broken invariant (the operator table and the verifiers checked
  // both before).
  bool GetBool(std::string_view name) const;
  int64_t GetInt(std::string_view name) const;
  double GetFloat(std::string_view name) const;  // an integer is taken too
  const std::string& GetString(std::string_view name) const;
  std::vector<int64_t> GetInts(std::string_view name) const;

 private:
  AttrDict items_;
};

}  // namespace ingot::ir

// Compiled in one file instead of wherever they are used.
extern template class std::vector<ingot::ir::AttrValue>;
extern template class std::vector<std::pair<std::string, ingot::ir::AttrValue>>;
