// Values outside of frames: arguments and results of calls, elements of tuples, captures of closures, what optionals
// hold. A Value is small and copies by sharing: what is large is counted and immutable.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data_type.h"
#include "runtime/device_id.h"
#include "runtime/ref.h"
#include "runtime/tensor.h"
#include "vm/ids.h"
#include "vm/type.h"

namespace ingot::vm {

struct Program;

// Base of counted values: what string, tuple, optional, closure and object registers hold one pointer to.
class Object : public RefCounted {
 public:
  // Works off nested values one by one: deep nesting does not deepen the C stack.
  static void Destroy(Object* object);
  virtual ~Object() = default;
  ValueKind kind() const { return kind_; }

 protected:
  explicit Object(ValueKind kind) : kind_(kind) {}

 private:
  const ValueKind kind_;
  Object* next_dead_ = nullptr;
};

struct ShapeValue {
  std::vector<int64_t> extents;
};

// monostate: no value (an optional that is empty, a register that holds nothing).
using Value = std::variant<std::monostate, int64_t, double, bool, DataType, ShapeValue, Tensor, Ref<Object>>;

class StringObject : public Object {
 public:
  explicit StringObject(std::string t) : Object(ValueKind::kString), text(std::move(t)) {}
  const std::string text;
};

// A tuple, or an optional (with one element: monostate when it is empty).
class TupleObject : public Object {
 public:
  TupleObject(ValueKind kind, std::vector<Value> e) : Object(kind), elements(std::move(e)) {}
  std::vector<Value> elements;  // const once shared
};

class ClosureObject : public Object {
 public:
  ClosureObject(const Program& p, FunctionId f, Type t, std::vector<Value> c)
      : Object(ValueKind::kClosure), program(&p), function(f), type(std::move(t)), captures(std::move(c)) {}
  const Program* const program;  // whose function it is: another program cannot call it
  const FunctionId function;
  const Type type;              // of what remains: the parameters behind the captured ones, and the results
  std::vector<Value> captures;  // const once shared
};

// Something of an embedder's or builtin's own, known by its class.
class OpaqueObject : public Object {
 public:
  OpaqueObject(std::string c, void* p, void (*d)(void*))
      : Object(ValueKind::kObject), class_name(std::move(c)), pointer(p), deleter(d) {}
  ~OpaqueObject() override {
    if (deleter != nullptr) deleter(pointer);
  }
  const std::string class_name;
  void* const pointer;
  void (*const deleter)(void*);
};

// What a register of class "any" holds when its value is not counted by itself. Only there: a Value is what is in it.
class BoxObject : public Object {
 public:
  explicit BoxObject(Value v) : Object(ValueKind::kObject), value(std::move(v)) {}
  const Value value;
};

Value MakeString(std::string text);
Value MakeTuple(std::vector<Value> elements);

// 'int', 'float32[2, 3]', 'tuple(int, bool)': for messages.
std::string DescribeValue(const Value& value);

// The value has this type, its dims being formulas over these symbols (unknown ones fit all); `devices` are those that
// types number. Storage does not matter.
bool HasType(const Value& value, const Type& type, std::span<const int64_t> symbols, std::span<const DeviceId> devices);
// Memory on one device can be used as if it were on the other.
inline bool IsReachable(DeviceId from, DeviceId device) {
  return from == device || (from.is_host_accessible() && device.is_host_accessible());
}

}  // namespace ingot::vm
