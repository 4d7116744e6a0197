// Small constants as nested lists of numbers, exact to the bit, and back.
#pragma once

#include <string>

#include "compiler/ir/expr.h"
#include "compiler/script/constant_store.h"

namespace ingot::script {

// True when the elements can stand in the text: few of them, of a dtype with literals, and of a shape that the brackets
// show.
bool HasElementText(const ir::ConstantData& data);
// [[1.0, 2.5], [3.0, "nan"]]; a scalar without brackets.
std::string ElementText(const ir::ConstantData& data);

}  // namespace ingot::script
