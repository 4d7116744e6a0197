// Values outside of frames: arguments and results of calls, elements of tuples, captures of closures, contents of
// optionals. A Value is small and copies by sharing: large contents are reference-counted and immutable.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data_type.h"
#include "runtime/device_id.h"
#include "runtime/memory_pool.h"
#include "runtime/ref.h"
#include "runtime/tensor.h"
#include "vm/program/ids.h"
#include "vm/program/type.h"

namespace ingot::vm {

struct Program;

// Base of reference-counted values: registers of kind string, tuple, optional, closure and object hold a pointer to
// one. Each is counted against the bound of the pool that it is made for, as long as it lives; null: it is made by the
// embedder, whose memory is not bounded. Making one throws std::bad_alloc when the bound is reached.
class Object : public RefCounted {
 public:
  // Destroys nested values one after the other, without recursion, so that deep nesting cannot overflow the C stack.
  static void Destroy(Object* object);
  virtual ~Object() = default;
  ValueKind kind() const { return kind_; }

 protected:
  Object(ValueKind kind, MemoryPool* pool, size_t bytes) : kind_(kind), memory_(pool) { Count(bytes); }
  // To be called before an object grows, with all that it will take.
  void Count(size_t bytes) { memory_.Set(bytes); }

 private:
  const ValueKind kind_;
  CountedMemory memory_;
  Object* next_dead_ = nullptr;
};

struct ShapeValue {
  std::vector<int64_t> extents;
};

// monostate: no value (an optional that is empty, a register that holds nothing).
using Value = std::variant<std::monostate, int64_t, double, bool, DataType, ShapeValue, Tensor, Ref<Object>>;

// What values take beside the objects that they share and the contents of tensors, room for more included.
size_t HeapBytes(const Value& value);
size_t HeapBytes(const std::vector<Value>& values);
constexpr size_t kBlockBytes = 32;  // what the allocator adds to an object and its part
// The memory that a type refers to.
size_t HeapBytes(const Type& type);

class StringObject : public Object {
 public:
  StringObject(MemoryPool* pool, std::string t)
      : Object(ValueKind::kString, pool, sizeof(StringObject) + kBlockBytes + t.capacity()), text(std::move(t)) {}
  const std::string text;
};

// A tuple, or an optional (with one element: monostate when it is empty).
class TupleObject : public Object {
 public:
  TupleObject(MemoryPool* pool, ValueKind kind, std::vector<Value> e)
      : Object(kind, pool, BytesFor(HeapBytes(e))), heap_bytes_(HeapBytes(e)), elements_(std::move(e)) {}
  const std::vector<Value>& elements() const { return elements_; }
  // Replaces `count` elements from `place` on. Only where nobody shares the tuple.
  void Splice(size_t place, size_t count, const std::vector<Value>& replacement);

 private:
  friend class Object;
  static size_t BytesFor(size_t heap_bytes) { return sizeof(TupleObject) + kBlockBytes + heap_bytes; }
  size_t heap_bytes_;
  std::vector<Value> elements_;
};

class ClosureObject : public Object {
 public:
  ClosureObject(MemoryPool* pool, const Program& p, FunctionId f, Type t, std::vector<Value> c)
      : Object(ValueKind::kClosure, pool, sizeof(ClosureObject) + kBlockBytes + HeapBytes(t) + HeapBytes(c)),
        program(&p),
        function(f),
        type(std::move(t)),
        captures_(std::move(c)) {}
  const Program* const program;  // of the function; another program cannot call it
  const FunctionId function;
  const Type type;  // of the closure: parameters behind the captured ones, and results
  const std::vector<Value>& captures() const { return captures_; }

 private:
  friend class Object;
  std::vector<Value> captures_;
};

// An object of an embedder or a builtin, known to the VM by its class name only.
class OpaqueObject : public Object {
 public:
  OpaqueObject(std::string c, void* p, void (*d)(void*))
      : Object(ValueKind::kObject, nullptr, 0), class_name(std::move(c)), pointer(p), deleter(d) {}
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
  BoxObject(MemoryPool* pool, Value v)
      : Object(ValueKind::kObject, pool, sizeof(BoxObject) + kBlockBytes + HeapBytes(v)), value(std::move(v)) {}
  const Value value;
};

// For the embedder, which owns their memory.
Value MakeString(std::string text);
Value MakeTuple(std::vector<Value> elements);

// 'int', 'float32[2, 3]', 'tuple(int, bool)': for messages. Of many elements it shows the first ones.
std::string DescribeValue(const Value& value);

// Whether the value has this type. Dims of the type are formulas over the values in `symbols` (unknown dims fit all);
// `devices` are the devices that types refer to by number. Storage does not matter.
bool HasType(const Value& value, const Type& type, std::span<const int64_t> symbols, std::span<const DeviceId> devices);
// Whether memory on one device can be used as if it were on the other.
inline bool IsReachable(DeviceId from, DeviceId device) {
  return from == device || (from.is_host_accessible() && device.is_host_accessible());
}

}  // namespace ingot::vm
