// The names of all ONNX operators that the importer supports: the entries of the name map (onnx_ops.h), control flow,
// sequences and optional values, and operators that follow from types alone (Shape, Size); and what is taken of each, by
// the table in op_forms.def.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::importer {

// Operators with subgraphs: If, Loop, Scan and SequenceMap.
std::span<const std::string_view> ControlFlowOps();

// All names, ordered; those of other domains than ONNX's own begin with their domain.
std::vector<std::string> ImportedOps();

// What of an operator is taken.
struct OpForms {
  std::string_view name;  // as ImportedOps has it
  int64_t introduced;     // the version of its domain since which ONNX has it
  // Element types by type parameter of the operator's schema: "T: floats int32; Tind: int32 int64", in the words of
  // ElementTypeWords(). Empty: those of the graphs or sequences that it holds.
  std::string_view types;
  std::string_view limits;  // what is refused; empty: all forms are taken
};
// Returns null for an operator without a row.
const OpForms* FindOpForms(std::string_view name);
std::span<const OpForms> AllOpForms();
// What the table's words for several element types stand for.
std::string_view ElementTypeWords();
// The versions of its domain in which an operator is taken: "1 to 28".
std::string TakenVersions(const OpForms& forms);

}  // namespace ingot::importer
