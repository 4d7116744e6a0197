// What the importer knows of a value that is no tensor. A sequence is a list of tensors of one dtype. An optional value
// is a sequence of at most one element, its value: a tensor or a sequence. Both are R.Object in the module. The types
// of the elements are collected here from the elements that are put in; if there are none, from the declaration in the
// file.
#pragma once

#include <optional>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::importer {

struct ObjectInfo {
  static constexpr int kNothing = -1;  // no tensor was seen
  static constexpr int kUnlike = -2;   // tensors of different ranks, or one of unknown rank

  bool is_optional = false;
  bool holds_sequence = false;         // the value of an optional is a sequence
  std::optional<DataType> dtype = {};  // dtype of the tensors; absent: none was seen
  int rank = kNothing;
  std::optional<std::vector<ir::Expr>> elements = {};  // all elements, if the graph itself determines them

  static ObjectInfo Declared(const OnnxValueInfo& info);
  // Adds a tensor to the elements: afterwards it describes a value that contains this tensor too.
  Status Add(const ir::Expr& tensor);
  // Joins two descriptions: afterwards it describes a value that may be either. The elements are not known any more.
  Status Join(const ObjectInfo& other);
};

}  // namespace ingot::importer
