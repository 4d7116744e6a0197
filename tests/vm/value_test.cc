#include "vm/value.h"

#include <doctest/doctest.h>

namespace ingot::vm {
namespace {

TEST_CASE("deeply nested values are destroyed without deep recursion") {
  Value value = MakeTuple({int64_t{1}});
  for (int i = 0; i < 200'000; ++i) {
    std::vector<Value> elements;
    elements.push_back(std::move(value));
    value = MakeTuple(std::move(elements));
  }
  CHECK(DescribeValue(value) == "tuple(...)");
  value = Value();
}

TEST_CASE("values are compared with types, dims with symbols") {
  const Value tensor = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{2, 3});
  const std::vector<int64_t> symbols = {3};
  CHECK(HasType(tensor, Type::Tensor(DataType::Float(32), {DimCode(2), DimCode::Slot(0)}), symbols));
  CHECK(HasType(tensor, Type::Tensor(DataType::Float(32), {std::nullopt, std::nullopt}), symbols));
  CHECK_FALSE(HasType(tensor, Type::Tensor(DataType::Float(32), {DimCode::Slot(0), std::nullopt}), symbols));
  CHECK_FALSE(HasType(tensor, Type::Tensor(DataType::Float(64), {std::nullopt, std::nullopt}), symbols));
  const Value tuple = MakeTuple({int64_t{1}, tensor});
  CHECK(HasType(tuple, Type::Object("any"), symbols));
  CHECK_FALSE(HasType(tuple, Type::Tuple({Type::Int()}), symbols));
  CHECK(HasType(Value(ShapeValue{{4, 3}}), Type::Shape({std::nullopt, DimCode::Slot(0)}), symbols));
}

}  // namespace
}  // namespace ingot::vm
