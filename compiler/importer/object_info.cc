// What is known of a sequence or an optional value when tensors are added to it, and when two of them are joined.
#include "compiler/importer/object_info.h"

#include <string>
#include <utility>

#include "compiler/importer/build.h"

namespace ingot::importer {

using ir::Expr;

namespace {

Status Unlike(std::string reason) { return Status(StatusCode::kUnsupportedModel, std::move(reason)); }

}  // namespace

ObjectInfo ObjectInfo::Declared(const OnnxValueInfo& info) {
  const int rank = info.dims ? static_cast<int>(info.dims->size()) : kUnlike;
  return {info.is_optional, info.is_optional && info.is_sequence, info.dtype, rank};
}

Status ObjectInfo::Add(const Expr& tensor) {
  const auto* type = KnownTensor(tensor->type);
  if (type == nullptr) return Unlike("an element of unknown rank or type");
  return Join({is_optional, holds_sequence, type->dtype, type->rank});
}

Status ObjectInfo::Join(const ObjectInfo& other) {
  if (is_optional != other.is_optional) return Unlike("a sequence beside an optional value");
  if (dtype && other.dtype && *dtype != *other.dtype) {
    return Unlike("tensors of " + dtype->ToString() + " and " + other.dtype->ToString() + " in one sequence");
  }
  if (!dtype) dtype = other.dtype;
  holds_sequence |= other.holds_sequence;
  if (rank == kNothing) {
    rank = other.rank;
  } else if (other.rank != kNothing && other.rank != rank) {
    rank = kUnlike;
  }
  elements.reset();
  return Status();
}

}  // namespace ingot::importer
