// KernelStatus: whether a kernel can be compiled. It owns the first reason why not; what is emitted after that is never
// used, so the emitters return placeholders and their caller asks once, at the end. Private to code generation.
#pragma once

#include <string>
#include <utility>

#include "runtime/status.h"

namespace ingot::codegen {

class KernelStatus {
 public:
  explicit KernelStatus(std::string kernel) : kernel_(std::move(kernel)) {}

  void Unsupported(const std::string& message) {
    if (failed()) return;
    status_ = Status(StatusCode::kUnsupportedModel, "kernel \"" + kernel_ + "\": " + message);
  }
  bool failed() const { return !status_.ok(); }
  const Status& get() const { return status_; }

 private:
  std::string kernel_;
  Status status_;
};

}  // namespace ingot::codegen
