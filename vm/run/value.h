// Values outside of frames: arguments and results of calls, elements of tuples, captures of closures, contents of
// optionals. A Value is small and copies by sharing: large contents are reference-counted and immutable.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data_type.h"
#include "runtime/device_id.h"
#include "runtime/ref.h"
#include "runtime/tensor.h"
#include "vm/program/ids.h"
#include "vm/program/type.h"

namespace ingot::vm {

struct Program;

// Base of reference-counted values: registers of kind string, tuple, optional, closure and object hold a pointer to
// one.
class Object : public RefCounted {
 public:
  // Destroys nested values one after the other, without recursion, so that deep nesting cannot overflow the C stack.
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
  const Program* const program;  // of the function; another program cannot call it
  const FunctionId function;
  const Type type;              // of the closure: parameters behind the captured ones, and results
  std::vector<Value> captures;  // const once shared
};

// An object of an embedder or a builtin, known to the VM by its class name only.
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

// Holds a value that is not a reference-counted object in a register of class "any". It occurs only in registers: a
// Value is the boxed value itself.
class BoxObject : public Object {
 public:
  explicit BoxObject(Value v) : Object(ValueKind::kObject), value(std::move(v)) {}
  const Value value;
};

Value MakeString(std::string text);
Value MakeTuple(std::vector<Value> elements);

// 'int', 'float32[2, 3]', 'tuple(int, bool)': for messages.
std::string DescribeValue(const Value& value);

// Whether the value has this type. Dims of the type are formulas over the values in `symbols` (unknown dims fit all);
// `devices` are the devices that types refer to by number. Storage does not matter.
bool HasType(const Value& value, const Type& type, std::span<const int64_t> symbols, std::span<const DeviceId> devices);
// Whether memory on one device can be used as if it were on the other.
inline bool IsReachable(DeviceId from, DeviceId device) {
  return from == device || (from.is_host_accessible() && device.is_host_accessible());
}

}  // namespace ingot::vm
