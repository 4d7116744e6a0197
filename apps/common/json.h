// Json: a JSON document as the tools build, read, write and parse it. In: C++ values, or a file's text. Out: text of
// one fixed form. Members keep the order in which they were added. The JSON library is included by json.cc alone,
// because it takes longer to compile than a tool.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ingot::apps {

class Json {
 public:
  using Elements = std::vector<Json>;
  using Members = std::vector<std::pair<std::string, Json>>;

  Json();  // null; becomes an object or an array when it is first given a member or an element
  ~Json();
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  // Integers are kept as integers; floating-point numbers print with a point or an exponent, and as null when they are
  // not finite.
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(int64_t{value}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(uint64_t{value}) {}
  template <std::floating_point T>
  Json(T value) : value_(static_cast<double>(value)) {}
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  template <typename T>
  Json(const std::vector<T>& values) {
    value_.template emplace<Elements>(values.begin(), values.end());
  }
  // {{"key", value}, ...} is an object, in which the first of equal keys counts; every other list is an array.
  Json(std::initializer_list<Json> list);
  static Json Array();
  static Json Object();
  // Returns nothing when the text is no JSON, or nests deeper than a thousand levels. The last of equal keys counts.
  static std::optional<Json> Parse(std::istream& in);

  // indent: spaces per level; -1: one line. is_ascii: other characters are escaped. Bytes that are no UTF-8 always
  // become U+FFFD.
  std::string Dump(int indent = -1, bool is_ascii = false) const;
  friend std::ostream& operator<<(std::ostream& out, const Json& json) { return json.Print(out); }

  bool is_array() const;
  bool is_object() const;
  bool contains(std::string_view key) const;           // false for other values than objects
  size_t size() const;                                 // number of elements or members
  Json& operator[](std::string_view key);              // adds a null member where there is none
  const Json& operator[](std::string_view key) const;  // the member must exist
  const Json& operator[](size_t index) const;
  Json& back();
  void push_back(Json value);
  // Adds a member, of which there is none of its name yet, to an object; it does not search.
  void Put(std::string key, Json value);
  Elements::const_iterator begin() const;  // of an array
  Elements::const_iterator end() const;
  const Members& items() const;  // of an object

  // The value as bool, std::string or a number; it must be of that kind.
  template <typename T>
  T get() const {
    if constexpr (std::same_as<T, bool>) {
      return GetBool();
    } else if constexpr (std::same_as<T, std::string>) {
      return GetText();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(GetNumber());
    } else {
      return static_cast<T>(GetInteger());
    }
  }
  // The member of an object, or the fallback where it is absent or of another type.
  std::string ValueOr(std::string_view key, const std::string& fallback) const;
  double ValueOr(std::string_view key, double fallback) const;

 private:
  const Json* Find(std::string_view key) const;
  bool is_number() const;
  bool GetBool() const;
  const std::string& GetText() const;
  double GetNumber() const;
  uint64_t GetInteger() const;  // negative ones modulo 2^64
  void Append(int indent, bool is_ascii, int depth, std::string& out) const;
  std::ostream& Print(std::ostream& out) const;

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Elements, Members> value_;
};

}  // namespace ingot::apps
