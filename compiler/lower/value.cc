// Building tuples and taking them apart, and copies into memory of their own: functions of the builder alone.
#include "compiler/lower/value.h"

#include <utility>

namespace ingot::lower {

vm::RegisterId Materialise(const Value& value, vm::FunctionBuilder& builder) {
  if (value.reg) return *value.reg;
  std::vector<vm::RegisterId> elements;
  std::vector<vm::Type> types;
  for (const Value& field : value.fields) {
    elements.push_back(Owned(Materialise(field, builder), builder));
    types.push_back(builder.type(elements.back()));
  }
  const vm::RegisterId dst = builder.AddRegister(vm::Type::Tuple(std::move(types)));
  builder.Tuple(dst, std::move(elements));
  return dst;
}

std::vector<Value> FieldsOf(const Value& value, vm::FunctionBuilder& builder) {
  if (!value.reg) return value.fields;
  std::vector<Value> fields;
  const std::vector<vm::Type> types = builder.type(*value.reg).elements;
  for (size_t i = 0; i < types.size(); ++i) {
    const vm::RegisterId dst = builder.AddRegister(types[i]);
    builder.TupleGet(dst, *value.reg, static_cast<int64_t>(i));
    fields.push_back({dst, {}});
  }
  return fields;
}

vm::RegisterId Copied(vm::RegisterId src, vm::FunctionBuilder& builder) {
  vm::Type type = builder.type(src);
  type.storage = vm::Storage::kOwned;
  const vm::RegisterId dst = builder.AddRegister(std::move(type));
  builder.Copy(dst, src, 0);
  return dst;
}

vm::RegisterId Owned(vm::RegisterId src, vm::FunctionBuilder& builder) {
  const vm::Type& type = builder.type(src);
  return type.is_tensor() && type.storage != vm::Storage::kOwned ? Copied(src, builder) : src;
}

vm::RegisterId ExtentOf(vm::RegisterId value, int64_t axis, vm::FunctionBuilder& builder) {
  const vm::RegisterId extent = builder.AddRegister(vm::Type::Int());
  if (builder.type(value).is_tensor()) {
    builder.TensorDim(extent, value, axis);
  } else {
    builder.ShapeDim(extent, value, axis);
  }
  return extent;
}

}  // namespace ingot::lower
