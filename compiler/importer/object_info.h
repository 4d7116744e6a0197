// What the importer knows of a value that is no tensor. A sequence is a list of tensors of one dtype. An optional value
// is a sequence of at most one element, its value: a tensor or a sequence. Both are R.Object in the module; what they
// hold is found out here, from what is put in, and from what the file declares where nothing is.
#pragma once

#include <optional>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::importer {

struct ObjectInfo {
  static constexpr int kNothing = -1;  // no tensor was seen
  static constexpr int kUnlike = -2;   // unlike ranks, or an unknown one

  bool is_optional = false;
  bool holds_sequence = false;         // an optional's value is one
  std::optional<DataType> dtype = {};  // of the tensors; absent: none was seen
  int rank = kNothing;
  std::optional<std::vector<ir::Expr>> elements = {};  // where the graph itself says all of them

  static ObjectInfo Declared(const OnnxValueInfo& info);
  // Of one that has this tensor in it too.
  Status Add(const ir::Expr& tensor);
  // Of what may be either; the elements are not known any more.
  Status Join(const ObjectInfo& other);
};

}  // namespace ingot::importer
