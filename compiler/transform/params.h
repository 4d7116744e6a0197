// Parameters of a model from and to constants: binds values to parameters of a function by name, and detaches bound
// values again, so that a module can be shown, changed or shipped without its weights. The driver's --params and
// --keep-params-in-input use it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::transform {

struct NamedConstant {
  std::string name;
  std::shared_ptr<const ir::ConstantData> data;
};

// Returns the elements of a compact tensor as a constant, without a copy.
std::shared_ptr<const ir::ConstantData> ConstantOf(const Tensor& tensor);
// Returns a tensor with a copy of the constant's elements.
Result<Tensor> TensorOf(const ir::ConstantData& constant);

// Returns how many parameters, from the first one on, are no weights: the attribute "num_input", or all.
int64_t NumInput(const ir::FunctionNode& function);

// Replaces parameters of a graph function by the constants of their names. Errors: a constant that names no parameter,
// or has another type.
Result<ir::IRModule> BindParams(ir::IRModule module, std::string_view function,
                                std::span<const NamedConstant> constants);

// Makes the named constants of a graph function parameters behind its others, by first use; "num_input" counts the
// others. Constants without names (shapes, scalars of the source) stay. Different constants of one name get different
// names.
struct DetachedParams {
  ir::IRModule module;
  std::vector<NamedConstant> params;  // in the order of the parameters, under their names
};
Result<DetachedParams> DetachParams(ir::IRModule module, std::string_view function);

}  // namespace ingot::transform
