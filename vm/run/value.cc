// Destruction of nested values without recursion, their description in messages, and the dynamic check of a value
// against a type.
#include "vm/run/value.h"

#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

bool DimsMatch(std::span<const int64_t> extents, const std::vector<Dim>& dims, std::span<const int64_t> symbols) {
  if (extents.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i]) continue;
    const Result<int64_t> expected = dims[i]->Evaluate(symbols);
    if (!expected.ok() || *expected != extents[i]) return false;
  }
  return true;
}

}  // namespace

void Object::Destroy(Object* object) {
  Object* dead = object;  // a list linked by next_dead_, so that destroying allocates nothing
  while (dead != nullptr) {
    Object* const next = std::exchange(dead, dead->next_dead_);
    std::vector<Value>* values = nullptr;
    if (auto* tuple = dynamic_cast<TupleObject*>(next)) values = &tuple->elements_;
    if (auto* closure = dynamic_cast<ClosureObject*>(next)) values = &closure->captures_;
    if (values != nullptr) {
      for (Value& value : *values) {
        auto* part = std::get_if<Ref<Object>>(&value);
        Object* const held = part == nullptr ? nullptr : part->Detach();
        if (held == nullptr || !held->Release()) continue;
        held->next_dead_ = dead;
        dead = held;
      }
    }
    delete next;
  }
}

size_t HeapBytes(const Type& type) {
  size_t bytes = type.class_name.capacity() + type.dims.capacity() * sizeof(Dim);
  for (const Dim& dim : type.dims) bytes += dim ? dim->steps().size_bytes() : 0;
  for (const std::vector<Type>* parts : {&type.elements, &type.results}) {
    bytes += parts->capacity() * sizeof(Type);
    for (const Type& part : *parts) bytes += HeapBytes(part);
  }
  return bytes;
}

size_t HeapBytes(const Value& value) {
  // A tensor's description, its storage's record, and what the pool and the allocator add to a block.
  constexpr size_t kTensorBytes = sizeof(TensorView) + sizeof(Ref<ingot::Storage>) + sizeof(ingot::Storage) + 192;
  if (const auto* shape = std::get_if<ShapeValue>(&value)) return kBlockBytes + shape->extents.capacity() * 8;
  return std::holds_alternative<Tensor>(value) ? kTensorBytes : 0;
}

size_t HeapBytes(const std::vector<Value>& values) {
  size_t bytes = values.capacity() * sizeof(Value);
  for (const Value& value : values) bytes += HeapBytes(value);
  return bytes;
}

void TupleObject::Splice(size_t place, size_t count, const std::vector<Value>& replacement) {
  const size_t size = elements_.size() - count + replacement.size(), old_capacity = elements_.capacity();
  const size_t capacity = size > old_capacity ? std::max(size, 2 * old_capacity) : old_capacity;
  const auto begin = elements_.begin() + static_cast<std::ptrdiff_t>(place);
  size_t bytes = heap_bytes_ + capacity * sizeof(Value);
  for (const Value& value : replacement) bytes += HeapBytes(value);
  Count(BytesFor(bytes));  // the old elements are there while the new ones are made
  for (size_t i = 0; i < count; ++i) bytes -= HeapBytes(begin[static_cast<std::ptrdiff_t>(i)]);
  const auto at = elements_.erase(begin, begin + static_cast<std::ptrdiff_t>(count)) - elements_.begin();
  elements_.reserve(capacity);
  elements_.insert(elements_.begin() + at, replacement.begin(), replacement.end());
  heap_bytes_ = bytes - old_capacity * sizeof(Value);
  Count(BytesFor(heap_bytes_));
}

Value MakeString(std::string text) { return Ref<Object>::Adopt(new StringObject(nullptr, std::move(text))); }
Value MakeTuple(std::vector<Value> elements) {
  return Ref<Object>::Adopt(new TupleObject(nullptr, ValueKind::kTuple, std::move(elements)));
}

std::string DescribeValue(const Value& value) {
  switch (value.index()) {
    case 1:
      return "int";
    case 2:
      return "float";
    case 3:
      return "bool";
    case 4:
      return "dtype";
    case 5: {
      std::string out = "shape[";
      const std::vector<int64_t>& extents = std::get<ShapeValue>(value).extents;
      for (size_t i = 0; i < extents.size(); ++i) out += StrCat({i ? ", " : "", extents[i]});
      return out + "]";
    }
    case 6:
      return std::get<Tensor>(value).TypeToString();
    case 7: {
      const Object* object = std::get<Ref<Object>>(value).get();
      const auto* tuple = dynamic_cast<const TupleObject*>(object);
      if (tuple == nullptr) return ValueKindName(object->kind());
      constexpr size_t kMostShown = 16;
      std::string out = StrCat({ValueKindName(object->kind()), "("});
      for (size_t i = 0; i < tuple->elements().size(); ++i) {
        if (i == kMostShown) return out + ", ...)";
        // One level is enough for a message, and bounds it.
        const bool nests = std::holds_alternative<Ref<Object>>(tuple->elements()[i]);
        out += (i ? ", " : "") + (nests ? std::string("...") : DescribeValue(tuple->elements()[i]));
      }
      return out + ")";
    }
    default:
      return "nothing";
  }
}

// Types nest to a bounded depth, so recursion over them is safe.
bool HasType(const Value& value, const Type& type, std::span<const int64_t> symbols,
             std::span<const DeviceId> devices) {
  const auto object = [&]() -> const Object* {
    const auto* ref = std::get_if<Ref<Object>>(&value);
    return ref == nullptr ? nullptr : ref->get();
  };
  switch (type.kind) {
    case ValueKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case ValueKind::kFloat:
      return std::holds_alternative<double>(value);
    case ValueKind::kBool:
      return std::holds_alternative<bool>(value);
    case ValueKind::kDataType:
      return std::holds_alternative<DataType>(value);
    case ValueKind::kShape: {
      const auto* shape = std::get_if<ShapeValue>(&value);
      return shape != nullptr && DimsMatch(shape->extents, type.dims, symbols);
    }
    case ValueKind::kTensor: {
      const auto* tensor = std::get_if<Tensor>(&value);
      return tensor != nullptr && *tensor && tensor->dtype() == type.dtype &&
             IsReachable(tensor->device(), devices[type.device]) && DimsMatch(tensor->dims(), type.dims, symbols);
    }
    case ValueKind::kString:
      return object() != nullptr && object()->kind() == ValueKind::kString;
    case ValueKind::kTuple: {
      const auto* tuple = dynamic_cast<const TupleObject*>(object());
      if (tuple == nullptr || tuple->kind() != ValueKind::kTuple || tuple->elements().size() != type.elements.size())
        return false;
      for (size_t i = 0; i < type.elements.size(); ++i) {
        if (!HasType(tuple->elements()[i], type.elements[i], symbols, devices)) return false;
      }
      return true;
    }
    case ValueKind::kOptional: {
      const auto* optional = dynamic_cast<const TupleObject*>(object());
      if (optional == nullptr || optional->kind() != ValueKind::kOptional) return false;
      return std::holds_alternative<std::monostate>(optional->elements()[0]) ||
             HasType(optional->elements()[0], type.elements[0], symbols, devices);
    }
    case ValueKind::kClosure: {
      const auto* closure = dynamic_cast<const ClosureObject*>(object());
      return closure != nullptr && IsAssignable(type, closure->type);
    }
    case ValueKind::kObject: {
      if (IsAnyObject(type)) return !std::holds_alternative<std::monostate>(value);
      const auto* opaque = dynamic_cast<const OpaqueObject*>(object());
      return opaque != nullptr && opaque->class_name == type.class_name;
    }
  }
  return false;
}

}  // namespace ingot::vm
