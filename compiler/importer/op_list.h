// The names of all ONNX operators that the importer takes: the rows of the name map (onnx_ops.h), control flow,
// sequences and optional values, and what follows from types alone (Shape, Size). What of an operator is not supported, a dtype or an attribute, is seen on import alone.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace ingot::importer {

// Operators with subgraphs: If, Loop, Scan and SequenceMap.
std::span<const std::string_view> ControlFlowOps();

// All names of ONNX's own domain, ordered.
std::vector<std::string_view> ImportedOps();

}  // namespace ingot::importer
