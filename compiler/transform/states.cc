// Readers of the attributes, which check their form, since a module's text may hold anything.
#include "compiler/transform/states.h"

#include <limits>

#include "compiler/ir/visitor.h"

namespace ingot::transform {
namespace {

// Returns entry i of a list of names among the function's attributes, or the fallback.
std::string NameAt(const ir::Function& function, const char* attr, size_t i, const std::string& fallback) {
  const ir::AttrValue* names = function->attrs.Find(attr);
  const ir::AttrList* list = names == nullptr ? nullptr : names->get<ir::AttrList>();
  const std::string* name = list != nullptr && i < list->size() ? (*list)[i].get<std::string>() : nullptr;
  return name == nullptr ? fallback : *name;
}

int64_t BoundOf(const ir::Attrs& attrs, const char* attr, const std::string& name, int64_t fallback) {
  const ir::AttrValue* dict = attrs.Find(attr);
  const ir::AttrDict* items = dict == nullptr ? nullptr : dict->get<ir::AttrDict>();
  if (items == nullptr) return fallback;
  for (const auto& [key, value] : *items) {
    if (key == name && value.get<int64_t>() != nullptr) return *value.get<int64_t>();
  }
  return fallback;
}

}  // namespace

std::string InputName(const ir::Function& function, size_t param) {
  return NameAt(function, "input_names", param, function->params[param]->name);
}

std::string OutputName(const ir::Function& function, size_t result, size_t num_results) {
  return NameAt(function, "output_names", result, num_results == 1 ? "output" : "output_" + std::to_string(result));
}

std::pair<int64_t, int64_t> DimBounds(const ir::Attrs& attrs, const std::string& name) {
  return {BoundOf(attrs, "tir_var_lower_bound", name, 0),
          BoundOf(attrs, "tir_var_upper_bound", name, std::numeric_limits<int64_t>::max())};
}

arith::Analyzer AnalyzerOf(const ir::Attrs& attrs, const std::vector<ir::PrimVar>& vars) {
  arith::Analyzer analyzer;
  for (const ir::PrimVar& var : vars) {
    const auto [min, max] = DimBounds(attrs, var->name);
    if (max != std::numeric_limits<int64_t>::max()) analyzer.Bind(var, arith::Interval{min, max});
  }
  return analyzer;
}

Result<std::vector<StateParam>> StateParamsOf(const ir::Function& function) {
  std::vector<StateParam> states;
  const ir::AttrValue* attr = function->attrs.Find(kStateParamsAttr);
  if (attr == nullptr) return states;
  const Status malformed(StatusCode::kBadInput, std::string("malformed attribute \"") + kStateParamsAttr + "\"");
  const auto* list = attr->get<ir::AttrList>();
  if (list == nullptr) return malformed;
  const auto number = [](const ir::AttrDict& items, std::string_view name, int64_t end) -> std::optional<int64_t> {
    for (const auto& [key, value] : items) {
      const int64_t* found = key == name ? value.get<int64_t>() : nullptr;
      if (found != nullptr && *found >= 0 && *found < end) return *found;
    }
    return std::nullopt;
  };
  const auto num_params = static_cast<int64_t>(function->params.size());
  for (const ir::AttrValue& item : *list) {
    const auto* items = item.get<ir::AttrDict>();
    if (items == nullptr) return malformed;
    const std::optional<int64_t> param = number(*items, "param", num_params);
    const std::optional<int64_t> result = number(*items, "result", std::numeric_limits<int64_t>::max());
    if (!param || !result) return malformed;
    StateParam& state = states.emplace_back();
    state.param = static_cast<size_t>(*param);
    state.result = static_cast<size_t>(*result);
    const std::optional<int64_t> axis = number(*items, "axis", std::numeric_limits<int64_t>::max());
    const std::optional<int64_t> length = number(*items, "length", num_params);
    if (axis.has_value() != length.has_value()) return malformed;
    if (axis) state.growth = StateParam::Growth{*axis, static_cast<size_t>(*length)};
  }
  return states;
}

ir::AttrValue StateParamsAttr(const std::vector<StateParam>& states) {
  ir::AttrList list;
  for (const StateParam& state : states) {
    ir::AttrDict items{{"param", static_cast<int64_t>(state.param)}, {"result", static_cast<int64_t>(state.result)}};
    if (state.growth) {
      items.emplace_back("axis", state.growth->axis);
      items.emplace_back("length", static_cast<int64_t>(state.growth->length));
    }
    list.emplace_back(std::move(items));
  }
  return list;
}

}  // namespace ingot::transform
