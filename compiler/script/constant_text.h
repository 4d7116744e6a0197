// Small constants as nested lists of numbers, exact to the bit, and back.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/ir/expr.h"
#include "compiler/script/constant_store.h"
#include "compiler/script/read_context.h"

namespace ingot::script {

// Whether the elements can be written in the text: few of them, of a dtype with literals, and of a shape that the
// brackets show.
bool HasElementText(const ir::ConstantData& data);
// Returns text such as [[1.0, 2.5], [3.0, "nan"]]; a scalar has no brackets.
std::string ElementText(const ir::ConstantData& data);
// Reads the elements back; without a dtype it is chosen as TVM does: int32, float32 or bool. Null after a report.
std::shared_ptr<const ir::ConstantData> ReadConstantElements(ReadContext& context, const Syntax& syntax,
                                                             std::optional<DataType> dtype);

}  // namespace ingot::script
