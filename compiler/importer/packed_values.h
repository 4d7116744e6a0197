// Elements that a graph holds otherwise than the file: of less than a byte, and strings.
//
// A file packs elements of less than a byte (the first one in the lowest bits), and so do the parameters and results of
// "main". Between these each element has a byte of a dtype that holds all of its numbers (op/packed_elements.h), so
// that every operator which moves elements moves these, too. Strings are their places in the model's table
// (kStringElement of onnx_model.h), int64 everywhere; places from the table's length on are a caller's own strings.
// What the file's dtype is stands beside the value (ImportedValue::packed), for what converts to it.
#pragma once

#include <optional>

#include "compiler/importer/binding_builder.h"
#include "compiler/importer/onnx_model.h"
#include "compiler/importer/onnx_ops.h"
#include "compiler/ir/expr.h"

namespace ingot::importer {

// The dtype by which a graph holds elements of this dtype of a file, which is the same for most.
DataType HeldDataType(DataType file);
// Whether the two differ.
bool IsHeldOtherwise(DataType file);

// A constant of the file, its elements in bytes of their own where they were packed.
Result<ImportedValue> ValueOfConstant(ConstantDataPtr data, const std::string& name);
// A tensor of packed elements as one with each element in a byte, and back.
Result<ir::Expr> UnpackElements(BindingBuilder& builder, const ir::Expr& packed, const ir::Span& span);
Result<ir::Expr> PackElements(BindingBuilder& builder, const ir::Expr& elements, DataType packed, const ir::Span& span);

// Refuses an operator that does arithmetic on a packed input or a string, and one that takes several inputs of unlike
// packed dtypes, or strings beside others.
Status CheckPackedInputs(const NodeImporter& node);
// Whether an input has strings.
bool TakesStrings(const NodeImporter& node);
// The file's dtype of an output whose elements have the dtype `held` in the graph, if it is another one: what
// the node's attributes say, or that of the input whose elements are moved.
Result<std::optional<DataType>> PackedOutput(const NodeImporter& node, const ir::Expr& output);
// The same of a value of which the file declares it.
std::optional<DataType> PackedDeclared(const OnnxValueInfo& info, const ir::ExprNode& value);

}  // namespace ingot::importer
