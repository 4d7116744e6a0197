// A counter that every iteration of a block has for itself.
#pragma once

#include <utility>

#include "compiler/op/build.h"
#include "compiler/op/statements.h"

namespace ingot::op {

class Counter {
 public:
  explicit Counter(const char* name) : buffer_(ir::MakeBuffer(name, DataType::Int(64), {ir::Int64(1)}, "local")) {}
  const Buffer& buffer() const { return buffer_; }
  PrimExpr value() const { return Load(buffer_, {ir::Int64(0)}); }
  Stmt Set(PrimExpr value) const { return Store(buffer_, std::move(value), {ir::Int64(0)}); }
  Stmt Add(PrimExpr more) const { return Set(value() + std::move(more)); }

 private:
  Buffer buffer_;
};

}  // namespace ingot::op
