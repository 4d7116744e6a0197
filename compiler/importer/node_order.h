// The order of a graph's nodes. ONNX asks that a node stands behind those whose results it takes; files that converters
// have appended to are not so, and ONNX Runtime takes them.
#pragma once

#include <vector>

#include "compiler/importer/onnx_model.h"

namespace ingot::importer {

// Puts nodes behind those whose results they or the graphs in their attributes take; else the order stays. Where nodes
// wait for each other, or two give one name, nothing changes.
void SortNodes(std::vector<OnnxNode>& nodes);

}  // namespace ingot::importer
