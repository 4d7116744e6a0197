// Tensors of elements of less than a byte. A file packs them (the first one in the lowest bits), and so do the
// parameters and results of "main". Between these each element has a byte of a dtype that holds all of its numbers
// (op/packed_elements.h), so that every operator which moves elements moves these, too; what the file's dtype is stands
// beside the value (ImportedValue::packed), for what converts to it.
#pragma once

#include <optional>

#include "compiler/importer/binding_builder.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/expr.h"

namespace ingot::importer {

// A constant of the file, its elements in bytes of their own where they were packed.
Result<ImportedValue> ValueOfConstant(ConstantDataPtr data, const std::string& name);
// A tensor of packed elements as one with each element in a byte, and back.
Result<ir::Expr> UnpackElements(BindingBuilder& builder, const ir::Expr& packed, const ir::Span& span);
Result<ir::Expr> PackElements(BindingBuilder& builder, const ir::Expr& elements, DataType packed, const ir::Span& span);

// Refuses an operator that does arithmetic on a packed input, and one that takes several inputs of unlike packed dtypes.
Status CheckPackedInputs(const NodeImporter& node);
// The file's dtype of an output whose elements have the dtype `held` in the graph, if it takes less than a byte: what
// the node's attributes say, or that of the input whose elements are moved.
Result<std::optional<DataType>> PackedOutput(const NodeImporter& node, const ir::Expr& output);
// The same of a value of which the file declares it.
std::optional<DataType> PackedDeclared(const OnnxValueInfo& info, const ir::ExprNode& value);

}  // namespace ingot::importer
