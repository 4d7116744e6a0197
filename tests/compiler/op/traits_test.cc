// The traits of operators (fusion class, sign bit, views, layouts, effects) are compared with the operators' reference
// evaluations, on the tensors of their cases and on drawn ones. Passes move, merge and lay out calls by these traits,
// so a trait that does not hold makes legal models wrong. Every operator that declares a trait is tried, and fails when
// none of its cases could show a violation. cases_test.cc compares kernels with the references, also with outputs in
// the memory of inputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "compiler/op/layout.h"
#include "compiler/op/reference.h"
#include "compiler/transform/fusion_class.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

std::vector<const OpCase*> CasesOf(const OpRow& row) {
  std::vector<const OpCase*> cases;
  for (const OpCase& c : AllCases()) {
    if (c.op == row.name) cases.push_back(&c);
  }
  return cases;
}

// The results of the case's call with other tensors, and the case's attributes and other arguments.
std::vector<ReferenceTensor> Evaluate(const OpCase& c, std::vector<ReferenceTensor> inputs) {
  OpCase other = c;
  other.inputs = std::move(inputs);
  Result<std::vector<ReferenceTensor>> results = EvaluateReference(other);
  CAPTURE(c.Name());
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  return *std::move(results);
}

// Whether two elements have the same bits; all NaN count as equal.
bool SameElement(const ReferenceTensor& a, int64_t i, const ReferenceTensor& b, int64_t j) {
  if (!a.dtype.is_floating()) return a.ints[static_cast<size_t>(i)] == b.ints[static_cast<size_t>(j)];
  const double x = a.floats[static_cast<size_t>(i)], y = b.floats[static_cast<size_t>(j)];
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}
bool SameElements(const ReferenceTensor& a, const ReferenceTensor& b) {
  if (a.dtype != b.dtype || a.dims != b.dims) return false;
  for (int64_t i = 0; i < CountOf(a.dims); ++i) {
    if (!SameElement(a, i, b, i)) return false;
  }
  return true;
}

// Element i of the result is element order[i] of x.
ReferenceTensor Rearranged(const ReferenceTensor& x, const std::vector<int64_t>& order, IntList dims) {
  ReferenceTensor out = NewReference(x.dtype, std::move(dims));
  for (size_t i = 0; i < order.size(); ++i) CopyElement(x, order[i], out, static_cast<int64_t>(i));
  return out;
}

struct Arrangement {
  const char* name;
  IntList dims;
  std::vector<int64_t> order;  // its element i is element order[i] of the original
};

// Arrangements that an element-wise function cannot distinguish: reshaped, transposed, shuffled.
std::vector<Arrangement> ArrangementsOf(const IntList& dims) {
  const int64_t count = CountOf(dims);
  std::vector<int64_t> same(static_cast<size_t>(count));
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<int64_t>(i);
  std::vector<Arrangement> all = {{"flattened", {count}, same}, {"reshaped", {1, count, 1}, same}};
  for (int64_t rows = 2; rows < count; ++rows) {
    if (count % rows == 0) {
      all.push_back({"reshaped to a matrix", {rows, count / rows}, same});
      break;
    }
  }
  IntList backwards(dims.rbegin(), dims.rend());
  std::vector<int64_t> transposed(same.size());
  ForEachIndex(backwards, [&](const Index& index, int64_t flat) {
    transposed[static_cast<size_t>(flat)] = Flatten(dims, Index(index.rbegin(), index.rend()));
  });
  all.push_back({"transposed", std::move(backwards), std::move(transposed)});
  std::mt19937_64 random(17);
  std::vector<int64_t> shuffled = same;
  std::ranges::shuffle(shuffled, random);
  all.push_back({"shuffled", dims, std::move(shuffled)});
  return all;
}

// NCHW to NCHW16c; channels fill whole blocks.
ReferenceTensor Blocked(const ReferenceTensor& x) {
  const bool is_volume = x.dims.size() == 5;
  const Layout layout = is_volume ? *Layout::Parse("NDCHW16c", "NCDHW") : *Layout::Parse("NCHW16c", "NCHW");
  IntList dims = {x.dims[0], x.dims[1] / 16, x.dims[2], x.dims[3], 16};
  if (is_volume) dims = {x.dims[0], x.dims[2], x.dims[1] / 16, x.dims[3], x.dims[4], 16};
  ReferenceTensor out = NewReference(x.dtype, std::move(dims));
  ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
    CopyElement(x, Flatten(x.dims, layout.LogicalIndex(index)), out, flat);
  });
  return out;
}

// Empty when f(arranged x, ...) equals arranged f(x, ...) for all arrangements, else the difference. Inputs have equal
// dims.
std::string SeesPlaces(const OpCase& c, const std::vector<ReferenceTensor>& inputs) {
  const std::vector<ReferenceTensor> plain = Evaluate(c, inputs);
  if (plain.size() != 1) return "it has " + std::to_string(plain.size()) + " results";
  if (plain[0].dims != inputs[0].dims) return "the result has other dims";
  for (const Arrangement& arrangement : ArrangementsOf(inputs[0].dims)) {
    std::vector<ReferenceTensor> arranged;
    for (const ReferenceTensor& input : inputs) {
      arranged.push_back(Rearranged(input, arrangement.order, arrangement.dims));
    }
    const ReferenceTensor expected = Rearranged(plain[0], arrangement.order, arrangement.dims);
    if (!SameElements(Evaluate(c, std::move(arranged))[0], expected)) {
      return std::string("of ") + arrangement.name + " elements it gives others";
    }
  }
  return "";
}

bool CountsAxes(const OpRow& row) {
  return std::ranges::any_of(row.attrs,
                             [](const AttrSpec& spec) { return std::string_view(spec.name).starts_with("ax"); });
}

// Drawn tensors of the case's dtypes with other dims.
std::vector<ReferenceTensor> DrawnLike(const OpCase& c, const IntList& dims) {
  std::vector<ReferenceTensor> inputs;
  for (const ReferenceTensor& input : c.inputs) inputs.push_back(Data(input.dtype, dims, inputs.size() + 7));
  return inputs;
}

// ---- fusion class: element-wise
std::string ElementwiseFault(const OpRow& row) {
  if (CountsAxes(row)) return "an attribute names axes";
  bool can_show = false;
  for (const OpCase* c : CasesOf(row)) {
    if (c->inputs.empty()) {  // without inputs all elements must be equal
      const ReferenceTensor made = Evaluate(*c, {})[0];
      for (int64_t i = 1; i < CountOf(made.dims); ++i) {
        can_show = true;
        if (!SameElement(made, 0, made, i)) return c->label + ": elements differ";
      }
      continue;
    }
    if (c->inputs.size() != 1) return c->label + ": it takes several tensors";
    if (CountOf(c->inputs[0].dims) == 0) continue;
    if (std::string fault = SeesPlaces(*c, c->inputs); !fault.empty()) return c->label + ": " + fault;
    const std::vector<ReferenceTensor> image = DrawnLike(*c, {2, 32, 3, 2});
    if (std::string fault = SeesPlaces(*c, image); !fault.empty()) return c->label + ", an image: " + fault;
    if (!SameElements(Evaluate(*c, {Blocked(image[0])})[0], Blocked(Evaluate(*c, image)[0]))) {
      return c->label + ": of channels in blocks it gives others";
    }
    can_show |= CountOf(c->inputs[0].dims) > 1;
  }
  return can_show ? "" : "no case has two elements";
}

// ---- fusion class: broadcast
// An operator of several tensors: broadcasting each to the result's dims changes nothing, and then it is element-wise.
std::string CombinedFault(const OpRow& row) {
  if (CountsAxes(row)) return "an attribute names axes";
  bool broadcasts = false;
  for (const OpCase* c : CasesOf(row)) {
    const std::vector<ReferenceTensor> direct = Evaluate(*c, c->inputs);
    if (direct.size() != 1) return c->label + ": several results";
    const IntList& dims = direct[0].dims;
    std::vector<ReferenceTensor> whole;
    for (const ReferenceTensor& input : c->inputs) {
      if (BroadcastReferenceDims(input.dims, dims) != dims) return c->label + ": an input does not broadcast";
      broadcasts |= input.dims != dims;
      ReferenceTensor repeated = NewReference(input.dtype, dims);
      ForEachIndex(dims, [&](const Index& index, int64_t flat) {
        CopyElement(input, FlattenBroadcast(input.dims, index), repeated, flat);
      });
      whole.push_back(std::move(repeated));
    }
    if (!SameElements(Evaluate(*c, whole)[0], direct[0])) return c->label + ": of broadcast inputs it gives others";
    if (CountOf(dims) == 0) continue;
    if (std::string fault = SeesPlaces(*c, whole); !fault.empty()) return c->label + ": " + fault;
    const std::vector<ReferenceTensor> image = DrawnLike(*c, {2, 32, 3, 2});
    if (std::string fault = SeesPlaces(*c, image); !fault.empty()) return c->label + ", an image: " + fault;
  }
  return broadcasts ? "" : "no case broadcasts";
}

// An operator of one tensor: each axis of the tensor is an axis of the result, in the same order, or has extent 1.
std::string RepeatedFault(const OpRow& row) {
  bool can_show = false;
  for (const OpCase* c : CasesOf(row)) {
    if (c->inputs.size() != 1 || !c->inputs[0].dtype.is_floating() || c->inputs[0].dtype.bits < 32) continue;
    ReferenceTensor places = c->inputs[0];
    for (int64_t i = 0; i < CountOf(places.dims); ++i) SetNumber(places, i, static_cast<double>(i));
    const ReferenceTensor out = Evaluate(*c, {places})[0];
    std::vector<Index> sources;
    std::vector<Index> indices;
    ForEachIndex(out.dims, [&](const Index& index, int64_t flat) {
      auto place = static_cast<int64_t>(GetNumber(out, flat));
      Index source(places.dims.size());
      for (size_t axis = source.size(); axis-- > 0; place /= places.dims[axis])
        source[axis] = place % places.dims[axis];
      sources.push_back(std::move(source));
      indices.push_back(index);
    });
    size_t next = 0;
    for (size_t axis = 0; axis < places.dims.size(); ++axis) {
      if (places.dims[axis] <= 1) continue;
      const auto follows = [&](size_t of) {
        for (size_t i = 0; i < sources.size(); ++i) {
          if (sources[i][axis] != indices[i][of]) return false;
        }
        return true;
      };
      while (next < out.dims.size() && !follows(next)) ++next;
      if (next++ == out.dims.size()) return c->label + ": an axis is not the result's";
    }
    can_show |= CountOf(out.dims) > 1;
  }
  return can_show ? "" : "no case of float32 has two elements";
}

// ---- fusion classes by what depends on what
// Element i of the first result depends on the elements (tensor, position) in entry i of the returned list. Only
// tensors of data are tried: the floating ones, or the first one where all are integers; the other integers are
// indices.
using Elements = std::set<std::pair<size_t, int64_t>>;
std::vector<Elements> Dependences(const OpCase& c) {
  const ReferenceTensor base = Evaluate(c, c.inputs)[0];
  const auto is_float = [](const ReferenceTensor& input) { return input.dtype.is_floating(); };
  const bool has_floats = std::ranges::any_of(c.inputs, is_float);
  std::vector<Elements> depends(static_cast<size_t>(CountOf(base.dims)));
  for (size_t t = 0; t < c.inputs.size(); ++t) {
    if (has_floats ? !is_float(c.inputs[t]) : t > 0) continue;
    for (int64_t e = 0; e < CountOf(c.inputs[t].dims); ++e) {
      for (const double step : {1.0, -97.25}) {
        std::vector<ReferenceTensor> inputs = c.inputs;
        SetNumber(inputs[t], e, GetNumber(inputs[t], e) + step);
        const ReferenceTensor out = Evaluate(c, std::move(inputs))[0];
        REQUIRE(out.dims == base.dims);
        for (size_t i = 0; i < depends.size(); ++i) {
          if (!SameElement(base, static_cast<int64_t>(i), out, static_cast<int64_t>(i))) depends[i].insert({t, e});
        }
      }
    }
  }
  return depends;
}
// The largest number of elements that belong to one tensor.
int MostOfATensor(const Elements& elements) {
  std::map<size_t, int> counts;
  int most = 0;
  for (const auto& [t, e] : elements) most = std::max(most, ++counts[t]);
  return most;
}
bool IsSmallAndFinite(const OpCase& c) {
  for (const ReferenceTensor& input : c.inputs) {
    if (CountOf(input.dims) > 64 || input.dtype.bits < 8) return false;
    if (!std::ranges::all_of(input.floats, [](double x) { return std::isfinite(x); })) return false;
  }
  return !c.inputs.empty() && c.inputs[0].dtype.bits <= 64;
}

// out[i] depends on in[f(i)]: on one element of each tensor at most.
std::string InjectiveFault(const OpRow& row) {
  bool can_show = false, takes_tensors = false;
  for (const OpCase* c : CasesOf(row)) {
    takes_tensors |= !c->inputs.empty();
    if (!IsSmallAndFinite(*c)) continue;
    for (const auto& elements : Dependences(*c)) {
      if (MostOfATensor(elements) > 1) return c->label + ": an element of the result follows several";
      can_show |= !elements.empty();
    }
  }
  return can_show || !takes_tensors ? "" : "no case has a result that follows an element";
}

// Many elements are reduced to one: no element of the input affects two elements of the result.
std::string ReductionFault(const OpRow& row) {
  bool can_show = false;
  for (const OpCase* c : CasesOf(row)) {
    if (!IsSmallAndFinite(*c)) continue;
    std::map<std::pair<size_t, int64_t>, size_t> reader;
    const auto depends = Dependences(*c);
    for (size_t i = 0; i < depends.size(); ++i) {
      for (const auto& element : depends[i]) {
        const auto [at, is_new] = reader.emplace(element, i);
        if (!is_new && at->second != i) return c->label + ": an element reaches two results";
      }
      can_show |= depends[i].size() > 1;
    }
  }
  return can_show ? "" : "no case has a result that follows two elements";
}

// Sums of products with the first tensor, means, norms and maxima over windows are linear in it: doubling the tensor
// doubles the result.
std::string OutFusibleFault(const OpRow& row) {
  bool can_show = false;
  for (const OpCase* c : CasesOf(row)) {
    const auto is_finite = [](const ReferenceTensor& input) {
      return std::ranges::all_of(input.floats, [](double x) { return std::isfinite(x); });
    };
    if (c->inputs[0].dtype != kF32 || !std::ranges::all_of(c->inputs, is_finite)) continue;
    std::vector<ReferenceTensor> inputs = c->inputs;
    for (double& x : inputs[0].floats) x *= 2;
    const ReferenceTensor once = Evaluate(*c, c->inputs)[0], twice = Evaluate(*c, std::move(inputs))[0];
    for (size_t i = 0; i < once.floats.size(); ++i) {
      const double expected = 2 * once.floats[i];
      if (std::isfinite(expected) && std::fabs(twice.floats[i] - expected) > 1e-9 * std::fabs(expected)) {
        return c->label + ": not in proportion to its first tensor";
      }
      can_show |= expected != 0;
    }
  }
  return can_show ? "" : "no case of float32 gives anything but zeros";
}

std::string FusionFault(const OpRow& row) {
  switch (row.fusion) {
    case FusionClass::kElementwise:
      return ElementwiseFault(row);
    case FusionClass::kBroadcast: {
      const std::vector<const OpCase*> cases = CasesOf(row);
      const bool combines = std::ranges::any_of(cases, [](const OpCase* c) { return c->inputs.size() > 1; });
      return combines ? CombinedFault(row) : RepeatedFault(row);
    }
    case FusionClass::kInjective:
      return InjectiveFault(row);
    case FusionClass::kReduction:
      return ReductionFault(row);
    case FusionClass::kOutFusible:
      return OutFusibleFault(row);
    case FusionClass::kTuple:
    case FusionClass::kOpaque:
      return "";  // these classes promise nothing
  }
  INGOT_UNREACHABLE();
}

TEST_CASE("a row's fusion class holds of its values") {
  for (const OpRow* row : AllOps()) {
    if (row->is_primitive) continue;
    const std::string name = row->name;
    CAPTURE(name);
    const std::string fault = FusionFault(*row);
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("primitives promise nothing that fusion uses") {
  for (const OpRow* row : AllOps()) {
    if (!row->is_primitive) continue;
    const std::string name = row->name;
    CAPTURE(name);
    CHECK((row->fusion == FusionClass::kOpaque || row->fusion == FusionClass::kTuple));
    CHECK_FALSE(row->is_view);
    CHECK(row->implementations.empty());
  }
}

// ---- is_view
TEST_CASE("views have the elements of their first tensor in its order") {
  for (const OpRow* row : AllOps()) {
    if (!row->is_view) continue;
    const std::string name = row->name;
    CAPTURE(name);
    CHECK(row->effect == Effect::kPure);
    bool can_show = false;
    for (const OpCase* c : CasesOf(*row)) {
      CAPTURE(c->label);
      const std::vector<ReferenceTensor> results = Evaluate(*c, c->inputs);
      REQUIRE(results.size() == 1);
      ReferenceTensor shown = c->inputs[0];
      can_show |= CountOf(shown.dims) > 1 && shown.dims != results[0].dims;
      REQUIRE(CountOf(shown.dims) == CountOf(results[0].dims));
      shown.dims = results[0].dims;
      CHECK(SameElements(shown, results[0]));
    }
    CHECK(can_show);
  }
}

// ---- layouts: an implementation whose tensors are all NCHW16c, or all NDCHW16c, computes the operator on blocked tensors
// with the same axes, of which the depth then stands before the channels
TEST_CASE("what follows its inputs into blocks of channels commutes with them") {
  int tried = 0;
  for (const OpRow* row : AllOps()) {
    for (const Implementation& implementation : row->implementations) {
      if (implementation.layouts.empty() || row->attrs.empty()) continue;
      const bool names_layout = std::ranges::any_of(
          row->attrs, [](const AttrSpec& spec) { return std::string_view(spec.name).ends_with("layout"); });
      if (names_layout) continue;  // the call says so, and its reference evaluation is in those layouts
      const std::string name = row->name;
      CAPTURE(name);
      const bool is_volume = implementation.layouts.front() == "NDCHW16c";
      const std::string layout = is_volume ? "NDCHW16c" : "NCHW16c";
      CHECK(std::ranges::all_of(implementation.layouts, [&](const std::string& l) { return l == layout; }));
      const IntList dims = is_volume ? IntList{2, 32, 4, 3, 5} : IntList{2, 32, 3, 5}, places = {0, 2, 1, 3, 4};
      const auto rank = static_cast<int64_t>(dims.size());
      // Every choice of axes for which the implementation takes the call.
      int taken = 0;
      for (int subset = 0; subset < 1 << rank; ++subset) {
        IntList axes, axes_in_blocks;
        for (int64_t axis = 0; axis < rank; ++axis) {
          if ((subset >> axis & 1) == 0) continue;
          axes.push_back(axis);
          axes_in_blocks.push_back(is_volume ? places[axis] : axis);
        }
        const auto axis = std::ranges::find(row->attrs, std::string_view("axis"),
                                            [](const AttrSpec& spec) { return std::string_view(spec.name); });
        REQUIRE(axis != row->attrs.end());
        if (axis->type == AttrType::kInt && axes.size() != 1) continue;
        const auto attrs_of = [&](const IntList& chosen) {
          if (axis->type == AttrType::kInt) return ir::Attrs{{"axis", chosen[0]}};
          return ir::Attrs{{"axis", ir::AttrValue::Ints(chosen)}, {"keepdims", true}};
        };
        const bool joins = row->arg_names[0] == std::string_view("tensors");
        OpCase c{row->name, "blocked", {Data(kF32, dims)}, attrs_of(axes)};
        if (joins) {
          c.inputs.push_back(Data(kF32, dims, 2));
          c.args = AsTuple;
        }
        OpCase blocked = c;
        blocked.attrs = attrs_of(axes_in_blocks);
        for (ReferenceTensor& input : blocked.inputs) input = Blocked(input);
        const Result<ir::Call> call = CallOf(blocked);
        if (!call.ok() || !implementation.predicate(*call, Target())) continue;
        ++taken;
        CAPTURE(subset);
        CHECK(SameElements(Evaluate(blocked, blocked.inputs)[0], Blocked(Evaluate(c, c.inputs)[0])));
      }
      CHECK(taken > 0);
      ++tried;
    }
  }
  CHECK(tried > 0);
}

// ---- the sign bit

// Empty when the row's sign trait holds of the case's call: with elements of any sign where the trait needs none, else
// with elements whose sign bit is clear. Results that are NaN do not count.
std::string SignFault(const OpRow& row, const OpCase& c, std::mt19937_64& random) {
  static constexpr double kMagnitudes[] = {0, 5e-324, 1e-40, 1e-8, 0.5, 1, 3, 88, 700, 65504, 3e38, 1e308, INFINITY};
  std::vector<ReferenceTensor> inputs = c.inputs;
  for (ReferenceTensor& input : inputs) {
    for (double& x : input.floats) {
      x = kMagnitudes[random() % std::size(kMagnitudes)];
      if (row.sign_bit == SignBit::kClear && random() % 2 != 0) x = -x;
    }
  }
  for (const ReferenceTensor& result : Evaluate(c, std::move(inputs))) {
    for (double y : result.floats) {
      if (!std::isnan(y) && std::signbit(y)) return "a result is " + std::to_string(y);
    }
  }
  return "";
}

TEST_CASE("a row's sign trait holds of its values") {
  std::mt19937_64 random(23);
  for (const OpRow* row : AllOps()) {
    if (row->sign_bit == SignBit::kUnknown) continue;
    const std::string name = row->name;
    CAPTURE(name);
    int num_tried = 0;
    for (const OpCase* c : CasesOf(*row)) {
      if (c->inputs.empty() || c->inputs[0].floats.empty()) continue;
      for (int i = 0; i < 50; ++i) {
        const std::string fault = SignFault(*row, *c, random);
        CHECK_MESSAGE(fault.empty(), fault);
      }
      ++num_tried;
    }
    CHECK(num_tried > 0);
  }
}

// ---- divisions
TEST_CASE("a row divides where its kernels fail of integers that are zero") {
  const Evaluator& interpreted = Evaluators()[1];
  REQUIRE(std::string_view(interpreted.name) == "interpreted definition");
  std::set<std::string> tried;
  for (const OpCase& c : AllCases()) {
    if (c.inputs.size() < 2 || c.inputs.back().ints.empty()) continue;
    OpCase zeros = c;
    std::ranges::fill(zeros.inputs.back().ints, 0);
    CAPTURE(c.Name());
    const Result<ir::Call> call = CallOf(zeros);
    if (!call.ok() || !interpreted.applies(*call)) continue;
    const Result<std::vector<ReferenceTensor>> expected = EvaluateReference(zeros);
    if (!expected.ok()) continue;
    std::vector<std::vector<int64_t>> dims;
    for (const ReferenceTensor& tensor : *expected) dims.push_back(tensor.dims);
    const Result<std::vector<ReferenceTensor>> got = interpreted.evaluate(*call, zeros.inputs, dims);
    const bool fails = !got.ok() && got.status().message().find("by zero") != std::string::npos;
    CHECK(fails == FindOp(c.op)->divides);
    if (fails) tried.insert(c.op);
  }
  for (const OpRow* row : AllOps()) CHECK(tried.contains(row->name) == row->divides);
}

// ---- the fusion class that analysis finds for a tensor function
TEST_CASE("the fusion class that analysis gives a definition holds of its values") {
  std::map<FusionClass, int> tried;
  for (const OpRow* row : AllOps()) {
    if (row->extents.count > 0) continue;
    int of_row = 0;
    for (const OpCase* c : CasesOf(*row)) {
      if (of_row == 3 || !IsSmallAndFinite(*c) || !c->inputs[0].dtype.is_floating()) continue;
      const Result<ir::Call> call = CallOf(*c);
      REQUIRE(call.ok());
      if (ir::As<ir::TensorTypeNode>((*call)->type) == nullptr) continue;
      ++of_row;
      for (const Implementation& implementation : row->implementations) {
        if (!implementation.predicate(*call, Target())) continue;
        const Result<ir::PrimFunc> function = implementation.build(*call, Target());
        CAPTURE(c->Name());
        REQUIRE(function.ok());
        const FusionClass found = transform::ClassifyFusion(*function);
        if (found > FusionClass::kBroadcast) continue;
        ++tried[found];
        const auto depends = Dependences(*c);
        for (const Elements& elements : depends) CHECK(MostOfATensor(elements) <= 1);
        if (found != FusionClass::kElementwise) continue;
        // Element i of the result depends on element i alone of an input with the result's dims.
        const IntList dims = Evaluate(*c, c->inputs)[0].dims;
        for (size_t i = 0; i < depends.size(); ++i) {
          for (const auto& [t, e] : depends[i]) {
            if (c->inputs[t].dims == dims) CHECK(e == static_cast<int64_t>(i));
          }
        }
      }
    }
  }
  CHECK(tried[FusionClass::kElementwise] > 50);
  CHECK(tried[FusionClass::kBroadcast] > 0);
}

// ---- effects
// Primitives are the operators that lowering handles itself. Each is listed with the effect of its lowering, so that a
// new one has to be added here. All other operators are functions of their arguments: no evaluator writes into an input
// (evaluators.cc), and evaluating twice gives the same results.
TEST_CASE("effects are those that are known") {
  const std::map<std::string_view, Effect> primitives = {
      {"assert_op", Effect::kEffect},             // ends the call
      {"builtin.alloc_tensor", Effect::kEffect},  // two calls are two tensors
      {"call_dps_packed", Effect::kPure},         // writes its own results alone
      {"call_pure_packed", Effect::kPure},        // by its contract
      {"call_tir", Effect::kPure},                // writes its own results alone
      {"call_tir_inplace", Effect::kWritesInPlace},
      {"invoke_closure", Effect::kEffect},
      {"invoke_pure_closure", Effect::kPure},  // by its contract
      {"kv_cache.append", Effect::kPure},      // a value; lowering finds out whether it may write in place
      {"make_closure", Effect::kPure},
      {"memory.alloc_storage", Effect::kEffect},
      {"memory.alloc_tensor", Effect::kEffect},
      {"memory.bitcast", Effect::kPure},
      {"memory.write_row", Effect::kWritesInPlace},
      {"print", Effect::kEffect},
      {"sequence.at", Effect::kPure},
      {"sequence.concat", Effect::kPure},
      {"sequence.concat_shape", Effect::kPure},
      {"sequence.construct", Effect::kPure},
      {"sequence.erase", Effect::kPure},
      {"sequence.insert", Effect::kPure},
      {"sequence.length", Effect::kPure},
      {"shape_of", Effect::kPure},
      {"tensor_to_shape", Effect::kPure},
  };
  for (const OpRow* row : AllOps()) {
    const std::string name = row->name;
    CAPTURE(name);
    if (row->is_primitive) {
      const auto known = primitives.find(row->name);
      REQUIRE(known != primitives.end());
      CHECK(row->effect == known->second);
      continue;
    }
    CHECK(row->effect == Effect::kPure);
    const std::vector<const OpCase*> cases = CasesOf(*row);
    REQUIRE_FALSE(cases.empty());
    const std::vector<ReferenceTensor> once = Evaluate(*cases[0], cases[0]->inputs);
    const std::vector<ReferenceTensor> twice = Evaluate(*cases[0], cases[0]->inputs);
    for (size_t i = 0; i < once.size(); ++i) CHECK(SameElements(once[i], twice[i]));
  }
}

}  // namespace
}  // namespace ingot::op
