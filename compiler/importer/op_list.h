// The names of all ONNX operators that the importer supports: the entries of the name map (onnx_ops.h), control flow,
// sequences and optional values, and operators that follow from types alone (Shape, Size). Whether a dtype or attribute
// of an operator is supported shows only when a node is imported.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::importer {

// Operators with subgraphs: If, Loop, Scan and SequenceMap.
std::span<const std::string_view> ControlFlowOps();

// All names, ordered; those of other domains than ONNX's own begin with their domain.
std::vector<std::string> ImportedOps();

}  // namespace ingot::importer
