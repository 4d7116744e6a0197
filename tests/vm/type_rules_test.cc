// Properties of the subtyping relation: over all types of a small grammar it is reflexive, transitive and
// antisymmetric, and closures are contravariant in their parameters. Argument passing is compared with it.
#include "vm/verify/type_rules.h"

#include <doctest/doctest.h>

namespace ingot::vm {
namespace {

// Types of up to `depth` levels over leaves of which some are subtypes of others.
std::vector<Type> TypesOfDepth(int depth) {
  const DataType f32 = DataType::Float(32);
  std::vector<Type> leaves = {Type::Int(),
                              Type::Bool(),
                              Type::String(),
                              Type::Shape({std::nullopt}),
                              Type::Shape({DimCode(2)}),
                              Type::Object("any"),
                              Type::Object("other"),
                              Type::Tensor(f32, {std::nullopt}),
                              Type::Tensor(f32, {DimCode(4)}),
                              Type::Tensor(f32, {DimCode(5)}),
                              Type::Tensor(f32, {DimCode(4)}, Storage::kOwned, 1),
                              Type::Tensor(f32, {DimCode(4)}, Storage::kBorrowed),
                              Type::Tensor(f32, {DimCode(4)}, Storage::kBorrowedMut)};
  if (depth == 0) return leaves;
  std::vector<Type> types = leaves;
  for (const Type& inner : TypesOfDepth(depth - 1)) {
    types.push_back(Type::Tuple({inner}));
    types.push_back(Type::Optional(inner));
    types.push_back(Type::Closure({inner}, {}));
    types.push_back(Type::Closure({}, {inner}));
    if (depth == 1) types.push_back(Type::Closure({inner}, {inner}));
  }
  return types;
}

TEST_CASE("subtyping is a partial order") {
  const std::vector<Type> types = TypesOfDepth(2);
  std::vector<std::vector<size_t>> below(types.size());  // what may stand for each
  for (size_t a = 0; a < types.size(); ++a) {
    CHECK(IsAssignable(types[a], types[a]));
    for (size_t b = 0; b < types.size(); ++b) {
      if (!IsAssignable(types[a], types[b])) continue;
      below[a].push_back(b);
      if (types[a] != types[b]) CHECK_FALSE(IsAssignable(types[b], types[a]));
      // A subtype may always be passed, unless the parameter is written and the argument's storage is not writable.
      CHECK(IsPassable(types[a], types[b]) ==
            (types[a].storage != Storage::kBorrowedMut || IsWritable(types[b].storage)));
    }
  }
  int64_t num_chains = 0;
  for (size_t a = 0; a < types.size(); ++a) {
    for (const size_t b : below[a]) {
      for (const size_t c : below[b]) {
        CAPTURE(types[a].ToString());
        CAPTURE(types[b].ToString());
        CAPTURE(types[c].ToString());
        REQUIRE(IsAssignable(types[a], types[c]));
        num_chains += a != b && b != c ? 1 : 0;
      }
    }
  }
  CHECK(num_chains > 50);
}

TEST_CASE("containers are covariant, closures contravariant in their parameters") {
  const std::vector<Type> types = TypesOfDepth(1);
  for (const Type& a : types) {
    for (const Type& b : types) {
      const bool takes = IsAssignable(a, b);
      CHECK(IsAssignable(Type::Tuple({a}), Type::Tuple({b})) == takes);
      CHECK(IsAssignable(Type::Optional(a), Type::Optional(b)) == takes);
      CHECK(IsAssignable(Type::Closure({}, {a}), Type::Closure({}, {b})) == takes);
      CHECK(IsAssignable(Type::Closure({b}, {}), Type::Closure({a}, {})) == takes);
      // The dims of a closure argument have to be proved, as in subtyping.
      CHECK(IsPassable(Type::Closure({b}, {}), Type::Closure({a}, {})) == takes);
    }
  }
}

}  // namespace
}  // namespace ingot::vm
