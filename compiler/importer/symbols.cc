// A small parser for arithmetic in dimension names, and the table from names to variables with their options.
#include "compiler/importer/symbols.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "compiler/importer/packed_values.h"
#include "runtime/suggest.h"

namespace ingot::importer {

using ir::PrimExpr;

namespace {

std::string QuotedList(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Removes spaces and then the token, if it is next.
bool Take(std::string_view& text, std::string_view token) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

}  // namespace

std::string Identifier(std::string_view name) {
  std::string out;
  for (char c : name) out += IsWord(c) ? c : '_';
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, "v");
  return out;
}

std::string FreeNames::Take(std::string name) {
  if (taken_.insert(name).second) return name;
  if (taken_.insert(name + "_").second) return name + "_";
  int64_t& number = numbers_[name];
  std::string numbered;
  do {
    numbered = name + "_" + std::to_string(++number);
  } while (!taken_.insert(numbered).second);
  return numbered;
}

Status Symbols::Configure(const ImportOptions& options) {
  for (const DimRange& range : options.dims) {
    if (!ranges_.emplace(range.symbol, Range{range.min, range.max, false}).second) {
      return Status(StatusCode::kInvalidArgument, "--dim names \"" + range.symbol + "\" twice");
    }
  }
  return Status();
}

Status Symbols::Replace(const std::string& symbol, const InputShape::Dim& with) {
  const auto [it, is_new] = replaced_.emplace(symbol, with);
  if (is_new || (it->second.value == with.value && it->second.symbol == with.symbol)) return Status();
  return Status(StatusCode::kInvalidArgument, "--input-shape gives the dimension \"" + symbol + "\" two values");
}

Result<PrimExpr> Symbols::Named(const std::string& name) {
  const auto replaced = replaced_.find(name);
  if (replaced == replaced_.end()) return Resolve(name);
  if (replaced->second.value.has_value()) return ir::Int64(*replaced->second.value);
  return Given(replaced->second.symbol);
}

Result<PrimExpr> Symbols::Given(const std::string& text) {
  if (Identifier(text) == text) return Resolve(text);
  const auto parts = std::ranges::count_if(text, [](char c) { return c == '+' || c == '-' || c == '*' || c == '/'; });
  std::string_view rest = text;
  const PrimExpr sum = parts < ir::kMaxNesting ? ParseSum(rest) : nullptr;
  if (sum != nullptr && rest.find_first_not_of(' ') == std::string_view::npos) {
    return arith::Analyzer().Simplify(sum);
  }
  return Status(StatusCode::kInvalidArgument,
                "--input-shape: \"" + text + "\" is no sum of products of numbers and names of dimensions");
}

// sum = product {("+" | "-") product}; product = atom {("*" | "//") atom}; null if the text is anything else.
PrimExpr Symbols::ParseSum(std::string_view& text) {
  PrimExpr sum = ParseProduct(text);
  while (sum != nullptr) {
    const bool adds = Take(text, "+");
    if (!adds && !Take(text, "-")) break;
    const PrimExpr next = ParseProduct(text);
    if (next == nullptr) return nullptr;
    sum = adds ? sum + next : sum - next;
  }
  return sum;
}

PrimExpr Symbols::ParseProduct(std::string_view& text) {
  PrimExpr product = ParseAtom(text);
  while (product != nullptr) {
    const bool divides = Take(text, "//");
    if (!divides && !Take(text, "*")) break;
    const PrimExpr next = ParseAtom(text);
    if (next == nullptr || (divides && ir::IsConstInt(next, 0))) return nullptr;
    product = divides ? ir::FloorDiv(product, next) : product * next;
  }
  return product;
}

// Parses a count or an announced name that no formula replaces. There are no parentheses: nesting would need a limit.
PrimExpr Symbols::ParseAtom(std::string_view& text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  size_t size = 0;
  while (size < text.size() && IsWord(text[size])) ++size;
  const std::string word(text.substr(0, size));
  text.remove_prefix(size);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (!word.empty() && error == std::errc() && end == word.data() + word.size()) return ir::Int64(value);
  if (!announced_.contains(word)) return nullptr;
  const auto replaced = replaced_.find(word);
  if (replaced == replaced_.end()) return Resolve(word);
  const InputShape::Dim& with = replaced->second;
  if (with.value.has_value()) return ir::Int64(*with.value);
  return Identifier(with.symbol) == with.symbol ? Resolve(with.symbol) : nullptr;
}

ir::Type Symbols::DeclaredType(const OnnxValueInfo& info) {
  if (info.is_sequence || info.is_optional) return ir::Make<ir::ObjectTypeNode>();
  if (!info.is_tensor || !info.dims.has_value()) return nullptr;
  std::vector<PrimExpr> dims;
  for (const OnnxDim& dim : *info.dims) {
    if (dim.value.has_value()) {
      dims.push_back(ir::Int64(*dim.value));
    } else {
      dims.push_back(ir::MakePrimVar(dim.param.empty() ? "d" : Identifier(dim.param)));
    }
  }
  const std::optional<DataType> dtype = info.dtype ? std::optional(HeldDataType(*info.dtype)) : std::nullopt;
  return ir::Make<ir::TensorTypeNode>(std::move(dims), dtype);
}

Status Symbols::Finish() {
  for (const auto& [name, range] : ranges_) {
    if (range.used) continue;
    std::vector<std::string_view> names(order_.begin(), order_.end());
    return Status(StatusCode::kInvalidArgument, "--dim: no input has a symbolic dimension \"" + name + "\"" +
                                                    DidYouMean(name, names) +
                                                    (order_.empty() ? "" : " (there are: " + QuotedList(order_) + ")"));
  }
  for (const auto& [name, range] : ranges_) {
    const auto var = vars_.find(name);
    if (var != vars_.end()) analyzer_.Bind(var->second, arith::Interval{range.min, range.max});
  }
  num_of_inputs_ = order_.size();
  return Status();
}

bool Symbols::LimitDim(const ir::PrimVar& symbol, int64_t most) {
  const auto is_it = [&](const std::string& name) { return vars_.at(name).same_as(symbol); };
  if (std::none_of(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(num_of_inputs_), is_it)) return false;
  const arith::Interval known = analyzer_.Bounds(symbol);
  analyzer_.Bind(symbol, arith::Interval{known.min, std::min(known.max, most)});
  implied_bounds_.emplace_back(symbol, most);
  return true;
}

ir::Attrs Symbols::WithBounds(ir::Attrs attrs) const {
  ir::AttrDict lower, upper;
  for (const std::string& symbol : order_) {
    const ir::PrimVar& var = vars_.at(symbol);
    const auto range = ranges_.find(symbol);
    int64_t min = range != ranges_.end() ? range->second.min : 0;
    int64_t max = range != ranges_.end() ? range->second.max : std::numeric_limits<int64_t>::max();
    for (const auto& [bounded, bound] : implied_bounds_) {
      if (bounded.same_as(var)) max = std::min(max, bound);
    }
    if (range == ranges_.end() && max == std::numeric_limits<int64_t>::max()) continue;
    lower.emplace_back(var->name, min);
    upper.emplace_back(var->name, max);
  }
  if (lower.empty()) return attrs;
  return attrs.With("tir_var_lower_bound", std::move(lower)).With("tir_var_upper_bound", std::move(upper));
}

PrimExpr Symbols::Resolve(const std::string& symbol) {
  const auto range = ranges_.find(symbol);
  if (range != ranges_.end()) {
    range->second.used = true;
    if (range->second.min == range->second.max) return ir::Int64(range->second.min);
  }
  ir::PrimVar& var = vars_[symbol];
  if (var == nullptr) {
    var = ir::MakePrimVar(taken_.Take(Identifier(symbol)));
    order_.push_back(symbol);
  }
  return var;
}

}  // namespace ingot::importer
