// Lengths that are not said where they are needed, and follow from what the node says elsewhere: the channels of a
// convolution's data are those of its weights, times its groups; a width is a number of heads times the depth that the
// cache has. In: a node before it is imported. Out: its inputs, of which such dims are numbers; run time compares them.
// What the operators of the table need as numbers is stated here; what they merely take for equal is found by
// op/assumed_dims.h, from the calls that are made of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/importer/onnx_ops.h"

namespace ingot::importer {

// A node's inputs, of which dims that follow are numbers.
class ImpliedInputs {
 public:
  static Result<ImpliedInputs> Of(std::string_view op_type, std::string_view domain, const NodeImporter& node);

  // In the place of the node's own.
  std::vector<ImportedValue*> pointers();

 private:
  std::vector<ImportedValue*> given_;
  std::vector<std::optional<ImportedValue>> changed_;  // empty where no dim follows
};

}  // namespace ingot::importer
