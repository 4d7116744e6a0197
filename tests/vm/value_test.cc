#include "vm/run/value.h"

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
  const std::vector<DeviceId> devices = {DeviceId{}, DeviceId{DeviceKind::kNull, 0}};
  CHECK(HasType(tensor, Type::Tensor(DataType::Float(32), {DimCode(2), DimCode::Slot(0)}), symbols, devices));
  CHECK(HasType(tensor, Type::Tensor(DataType::Float(32), {std::nullopt, std::nullopt}), symbols, devices));
  CHECK_FALSE(HasType(tensor, Type::Tensor(DataType::Float(32), {DimCode::Slot(0), std::nullopt}), symbols, devices));
  CHECK_FALSE(HasType(tensor, Type::Tensor(DataType::Float(64), {std::nullopt, std::nullopt}), symbols, devices));
  const Value tuple = MakeTuple({int64_t{1}, tensor});
  CHECK(HasType(tuple, Type::Object("any"), symbols, devices));
  CHECK_FALSE(HasType(tuple, Type::Tuple({Type::Int()}), symbols, devices));
  CHECK_FALSE(HasType(tensor, Type::Tensor(DataType::Float(32), {DimCode(2), DimCode(3)}, Storage::kOwned, 1), symbols,
                      devices));
  CHECK(HasType(Value(ShapeValue{{4, 3}}), Type::Shape({std::nullopt, DimCode::Slot(0)}), symbols, devices));
}

}  // namespace
}  // namespace ingot::vm
