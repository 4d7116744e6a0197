// Parsing by nlohmann::json; printing is done here, except for the text of single numbers and strings.
#include "apps/common/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/check.h"

namespace ingot::apps {

namespace {

using LibraryValue = nlohmann::ordered_json;
constexpr int kMaxDepth = 1000;

std::optional<Json> FromLibrary(const LibraryValue& value, int depth) {
  if (depth > kMaxDepth) return std::nullopt;
  switch (value.type()) {
    case LibraryValue::value_t::null:
      return Json();
    case LibraryValue::value_t::boolean:
      return Json(value.get<bool>());
    case LibraryValue::value_t::number_integer:
      return Json(value.get<int64_t>());
    case LibraryValue::value_t::number_unsigned:
      return Json(value.get<uint64_t>());
    case LibraryValue::value_t::number_float:
      return Json(value.get<double>());
    case LibraryValue::value_t::string:
      return Json(value.get<std::string>());
    case LibraryValue::value_t::array: {
      Json array = Json::Array();
      for (const LibraryValue& element : value) {
        std::optional<Json> one = FromLibrary(element, depth + 1);
        if (!one) return std::nullopt;
        array.push_back(*std::move(one));
      }
      return array;
    }
    case LibraryValue::value_t::object: {
      Json object = Json::Object();
      for (const auto& [key, member] : value.items()) {
        std::optional<Json> one = FromLibrary(member, depth + 1);
        if (!one) return std::nullopt;
        object.Put(key, *std::move(one));
      }
      return object;
    }
    case LibraryValue::value_t::binary:
    case LibraryValue::value_t::discarded:
      break;
  }
  return std::nullopt;
}

}  // namespace

Json::Json() = default;
Json::~Json() = default;
// libstdc++ 12 takes a variant of such alternatives for one that always has a value, and destroys one when the copy
// constructor of an alternative throws; so the copy is made before it is put into the variant.
Json::Json(const Json& other) {
  std::visit([&](const auto& value) { value_ = std::decay_t<decltype(value)>(value); }, other.value_);
}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&& other) noexcept = default;
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}

Json::Json(std::initializer_list<Json> list) {
  const bool is_object = std::all_of(list.begin(), list.end(), [](const Json& entry) {
    return entry.is_array() && entry.size() == 2 && std::holds_alternative<std::string>(entry[0].value_);
  });
  for (const Json& entry : list) {
    if (!is_object) {
      push_back(entry);
    } else if (!contains(entry[0].GetText())) {
      (*this)[entry[0].GetText()] = entry[1];
    }
  }
}

Json Json::Array() {
  Json array;
  array.value_.emplace<Elements>();
  return array;
}
Json Json::Object() {
  Json object;
  object.value_.emplace<Members>();
  return object;
}

std::optional<Json> Json::Parse(std::istream& in) {
  return FromLibrary(LibraryValue::parse(in, nullptr, /*allow_exceptions=*/false), 0);
}

std::string Json::Dump(int indent, bool is_ascii) const {
  std::string out;
  Append(indent, is_ascii, 0, out);
  return out;
}

// The library escapes characters and chooses the digits of numbers.
void Json::Append(int indent, bool is_ascii, int depth, std::string& out) const {
  const auto append_leaf = [&](const LibraryValue& leaf) {
    out += leaf.dump(-1, ' ', is_ascii, LibraryValue::error_handler_t::replace);
  };
  const auto append_line = [&](int at_depth) {
    if (indent >= 0) out.append("\n").append(static_cast<size_t>(indent) * static_cast<size_t>(at_depth), ' ');
  };
  if (!is_array() && !is_object()) {
    std::visit(
        [&]<typename T>(const T& held) {
          if constexpr (!std::same_as<T, Elements> && !std::same_as<T, Members>) append_leaf(held);
        },
        value_);
    return;
  }
  out += is_array() ? '[' : '{';
  for (size_t i = 0; i < size(); ++i) {
    if (i > 0) out += ',';
    append_line(depth + 1);
    if (is_object()) {
      append_leaf(items()[i].first);
      out += indent >= 0 ? ": " : ":";
    }
    (is_array() ? (*this)[i] : items()[i].second).Append(indent, is_ascii, depth + 1, out);
  }
  if (size() > 0) append_line(depth);
  out += is_array() ? ']' : '}';
}
std::ostream& Json::Print(std::ostream& out) const { return out << Dump(); }

bool Json::is_array() const { return std::holds_alternative<Elements>(value_); }
bool Json::is_object() const { return std::holds_alternative<Members>(value_); }
bool Json::is_number() const { return value_.index() >= 2 && value_.index() <= 4; }

const Json* Json::Find(std::string_view key) const {
  const Members* members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    if (name == key) return &value;
  }
  return nullptr;
}
bool Json::contains(std::string_view key) const { return Find(key) != nullptr; }

size_t Json::size() const {
  if (const Members* members = std::get_if<Members>(&value_)) return members->size();
  const Elements* elements = std::get_if<Elements>(&value_);
  INGOT_CHECK(elements != nullptr);
  return elements->size();
}

Json& Json::operator[](std::string_view key) {
  if (const Json* found = Find(key)) return const_cast<Json&>(*found);
  if (std::holds_alternative<std::nullptr_t>(value_)) value_.emplace<Members>();
  Members* members = std::get_if<Members>(&value_);
  INGOT_CHECK(members != nullptr);
  return members->emplace_back(key, Json()).second;
}
void Json::Put(std::string key, Json value) {
  Members* members = std::get_if<Members>(&value_);
  INGOT_CHECK(members != nullptr);
  members->emplace_back(std::move(key), std::move(value));
}
const Json& Json::operator[](std::string_view key) const {
  const Json* found = Find(key);
  INGOT_CHECK(found != nullptr, std::string(key).c_str());
  return *found;
}
const Json& Json::operator[](size_t index) const {
  INGOT_CHECK(is_array() && index < size());
  return std::get<Elements>(value_)[index];
}

Json& Json::back() {
  INGOT_CHECK(is_array() && size() > 0);
  return std::get<Elements>(value_).back();
}
void Json::push_back(Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_.emplace<Elements>();
  INGOT_CHECK(is_array());
  std::get<Elements>(value_).push_back(std::move(value));
}

Json::Elements::const_iterator Json::begin() const {
  INGOT_CHECK(is_array());
  return std::get<Elements>(value_).begin();
}
Json::Elements::const_iterator Json::end() const {
  INGOT_CHECK(is_array());
  return std::get<Elements>(value_).end();
}
const Json::Members& Json::items() const {
  INGOT_CHECK(is_object());
  return std::get<Members>(value_);
}

bool Json::GetBool() const {
  INGOT_CHECK(std::holds_alternative<bool>(value_));
  return std::get<bool>(value_);
}
const std::string& Json::GetText() const {
  INGOT_CHECK(std::holds_alternative<std::string>(value_));
  return std::get<std::string>(value_);
}
double Json::GetNumber() const {
  if (const int64_t* whole = std::get_if<int64_t>(&value_)) return static_cast<double>(*whole);
  if (const uint64_t* whole = std::get_if<uint64_t>(&value_)) return static_cast<double>(*whole);
  INGOT_CHECK(std::holds_alternative<double>(value_));
  return std::get<double>(value_);
}
uint64_t Json::GetInteger() const {
  if (const int64_t* whole = std::get_if<int64_t>(&value_)) return static_cast<uint64_t>(*whole);
  INGOT_CHECK(std::holds_alternative<uint64_t>(value_));
  return std::get<uint64_t>(value_);
}

std::string Json::ValueOr(std::string_view key, const std::string& fallback) const {
  const Json* found = Find(key);
  return found != nullptr && std::holds_alternative<std::string>(found->value_) ? found->GetText() : fallback;
}
double Json::ValueOr(std::string_view key, double fallback) const {
  const Json* found = Find(key);
  return found != nullptr && found->is_number() ? found->GetNumber() : fallback;
}

}  // namespace ingot::apps
