// Ref<T>: an intrusive reference-counted pointer, for what is shared and has no single owner: tensor storage, VM
// values, executables, loaded images, IR nodes. T derives from RefCounted and is destroyed by Destroy() of its own
// class. The count is atomic; the pointer itself is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ingot {

// The count starts at one: Ref<T>::Adopt takes that first reference over.
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when the caller gave back the last reference and has to destroy the object.
  [[nodiscard]] bool Release() const { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool is_unique() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{1};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref Share(T* object) {
    if (object != nullptr) object->Retain();
    return Adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->Retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr && object_->Release()) T::Destroy(object_);
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* Detach() { return std::exchange(object_, nullptr); }
  friend bool operator==(const Ref&, const Ref&) = default;

 private:
  T* object_ = nullptr;
};

}  // namespace ingot
