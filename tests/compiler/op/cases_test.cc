#include "tests/compiler/op/cases.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compiler/op/reference.h"

namespace ingot::op {
namespace {

bool HasNonFinite(const ReferenceTensor& tensor) {
  return std::ranges::any_of(tensor.floats, [](double x) { return !std::isfinite(x); });
}

TEST_CASE("every operator has cases for the shapes, values and dtypes that it takes") {
  for (const OpRow* row : AllOps()) {
    if (row->is_primitive) continue;
    const std::string name = row->name;
    CAPTURE(name);
    CHECK((row->reference != nullptr));
    CHECK_FALSE(row->cases.dtypes.empty());
    bool rank0 = false, empty = false, broadcast = false, non_finite = false;
    std::vector<DataType> dtypes;
    for (const OpCase& c : AllCases()) {
      if (c.op != name) continue;
      Result<std::vector<ReferenceTensor>> result = EvaluateReference(c);
      CAPTURE(c.Name());
      REQUIRE_MESSAGE(result.ok(), result.status().message());
      std::vector<ReferenceTensor> tensors = c.inputs;
      if (tensors.empty()) tensors = *result;
      dtypes.push_back(tensors[0].dtype);
      rank0 = rank0 || std::ranges::any_of(tensors, [](const auto& t) { return t.dims.empty(); });
      empty = empty || std::ranges::any_of(tensors, [](const auto& t) { return CountOf(t.dims) == 0; }) ||
              CountOf((*result)[0].dims) == 0;
      broadcast = broadcast || std::ranges::any_of(tensors, [&](const auto& t) { return t.dims != tensors[0].dims; });
      non_finite = non_finite || std::ranges::any_of(tensors, HasNonFinite);
    }
    CHECK((rank0 || !row->cases.rank0));
    CHECK((empty || !row->cases.empty));
    CHECK((broadcast || !row->cases.broadcast));
    CHECK((non_finite || !row->cases.non_finite));
    for (DataType dtype : row->cases.dtypes) {
      CAPTURE(dtype.ToString());
      CHECK((std::ranges::find(dtypes, dtype) != dtypes.end()));
    }
  }
}

std::vector<std::vector<int64_t>> DimsOf(const std::vector<ReferenceTensor>& tensors) {
  std::vector<std::vector<int64_t>> dims;
  for (const ReferenceTensor& tensor : tensors) dims.push_back(tensor.dims);
  return dims;
}

// Compares every implementation's results.
std::string CompareEach(const OpCase& c, const std::vector<ReferenceTensor>& expected,
                        const std::vector<ReferenceTensor>& got) {
  if (got.empty() || got.size() % expected.size() != 0) return "another number of results";
  for (size_t i = 0; i < got.size(); i += expected.size()) {
    const auto first = got.begin() + static_cast<ptrdiff_t>(i);
    std::string difference = Compare(c, expected, {first, first + std::ssize(expected)});
    if (!difference.empty()) return "implementation " + std::to_string(i / expected.size()) + ": " + difference;
  }
  return "";
}

TEST_CASE("every way of evaluating a call agrees with the reference") {
  for (const Evaluator& evaluator : Evaluators()) {
    const std::string way = evaluator.name;
    CAPTURE(way);
    int evaluated = 0;
    for (const OpCase& c : AllCases()) {
      const Result<ir::Call> call = CallOf(c);
      CAPTURE(c.Name());
      REQUIRE_MESSAGE(call.ok(), call.status().message());
      if (!evaluator.applies(*call)) continue;
      ++evaluated;
      const Result<std::vector<ReferenceTensor>> expected = EvaluateReference(c);
      const Result<std::vector<ReferenceTensor>> got = evaluator.evaluate(*call, c.inputs, DimsOf(*expected));
      const std::string difference = got.ok() ? CompareEach(c, *expected, *got) : got.status().message();
      CHECK_MESSAGE(difference.empty(), difference);
    }
    CHECK(evaluated > 100);
  }
}

bool HasDims(const ir::Type& type) {
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) return std::ranges::all_of(tuple->fields, HasDims);
  const auto* tensor = ir::As<ir::TensorTypeNode>(type);
  return tensor != nullptr && tensor->dims.has_value();
}

TEST_CASE("definitions agree with the reference when dims are symbolic") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  int evaluated = 0;
  for (const Evaluator& evaluator : Evaluators()) {
    const std::string way = evaluator.name;
    if (way == "fold") continue;  // constants have constant dims
    CAPTURE(way);
    for (const OpCase& c : AllCases()) {
      CAPTURE(c.Name());
      const Result<ir::Call> call = CallOf(c, n);
      const bool lone = call.ok() && UnboundShapeVars(*call).empty();
      if (!lone || !HasDims((*call)->type) || !evaluator.applies(*call)) continue;
      // Shapes behave alike for all dtypes, and every case costs a compilation.
      if (!c.inputs.empty() && c.inputs[0].dtype != DataType::Float(32)) continue;
      // The init of a block that never runs is the tensor pipeline's work.
      const bool reduces_nothing = c.label == "empty" || c.label == "nothing_to_sum";
      if (reduces_nothing && way == "interpreted definition") continue;
      ++evaluated;
      const Result<std::vector<ReferenceTensor>> expected = EvaluateReference(c);
      const Result<std::vector<ReferenceTensor>> got = evaluator.evaluate(*call, c.inputs, DimsOf(*expected));
      const std::string difference = got.ok() ? CompareEach(c, *expected, *got) : got.status().message();
      CHECK_MESSAGE(difference.empty(), difference);
    }
  }
  CHECK(evaluated > 100);
}

}  // namespace
}  // namespace ingot::op
