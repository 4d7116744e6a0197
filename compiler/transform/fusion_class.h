// The fusion class of a tensor function: found by analysis (annotate_fusion_class.cc), kept in its attribute
// "op_pattern" with TVM's numbers.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/op/registry.h"

namespace ingot::transform {

inline constexpr const char* kOpPatternAttr = "op_pattern";

op::FusionClass ClassifyFusion(const ir::PrimFunc& function);
// Returns the annotated class; opaque if there is no annotation, or an unknown number.
op::FusionClass FusionClassOf(const ir::PrimFunc& function);

}  // namespace ingot::transform
