// Makes sequences and optional values, and takes them apart, by calls of R.sequence.*. It owns what is known of each
// such value (object_info.h). If the graph determines all elements of a sequence, as where an exporter splits a tensor
// and picks the parts, the element taken out is the expression that was put in, and the sequence itself is dead code.
// Everything else is decided when the program runs: a tensor that is taken out has a dtype and a rank, and new symbols
// for its dims.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/binding_builder.h"
#include "compiler/importer/object_info.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/visitor.h"

namespace ingot::importer {

class SequenceBuilder {
 public:
  SequenceBuilder(BindingBuilder& builder, arith::Analyzer& analyzer) : builder_(builder), analyzer_(analyzer) {}

  // Returns what is known of a sequence or an optional value; null for a tensor.
  const ObjectInfo* ObjectOf(const ir::Expr& expr) const;
  // The same for an input that must be a sequence.
  Result<const ObjectInfo*> InputOf(const NodeImporter& node, size_t i) const;
  void Describe(const ir::Expr& expr, ObjectInfo info) { objects_.emplace(expr, std::move(info)); }

  Result<ir::Expr> Make(std::vector<ir::Expr> elements, ObjectInfo info, const ir::Span& span);
  // For values that are carried or chosen: makes a sequence an optional that holds it.
  Result<ir::Expr> AsOptional(const ir::Expr& value, const ir::Span& span);
  Result<ir::Expr> InsertAt(const ir::Expr& sequence, const ir::Expr& value, const ir::PrimExpr& place,
                            const ir::Span& span);
  // Returns an element. `declared` is the element's type in the file, used if nothing else is known; may be null.
  Result<ir::Expr> ElementAt(const ir::Expr& sequence, const ir::PrimExpr& place, const OnnxValueInfo* declared,
                             const ir::Span& span);
  Result<ir::PrimExpr> LengthOf(const ir::Expr& sequence, const ir::Span& span);

 private:
  BindingBuilder& builder_;
  arith::Analyzer& analyzer_;
  std::unordered_map<ir::Expr, ObjectInfo, ir::RefHash, ir::RefSame> objects_;
};

// Returns a constant place in a list, counted from the end if negative; nothing if it is not constant or outside.
std::optional<size_t> ConstantPlace(const ir::PrimExpr& place, size_t length);

}  // namespace ingot::importer
