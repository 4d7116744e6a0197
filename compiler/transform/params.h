// Parameters of a model, from and to constants: binding values to parameters of a function by name, and detaching what
// is bound, so that a module can be shown, changed or shipped without its weights. The driver's --params and
// --keep-params-in-input are made of these.
#pragma once

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

// The elements of a compact tensor as a constant, without a copy.
std::shared_ptr<const ir::ConstantData> ConstantOf(const Tensor& tensor);
// The other way.
Result<Tensor> TensorOf(const ir::ConstantData& constant);

// Parameters of a graph function that the constants name become these constants. Each must name one, and have its type.
Result<ir::IRModule> BindParams(ir::IRModule module, std::string_view function,
                                std::span<const NamedConstant> constants);

// The named constants of a graph function become parameters behind its others, by first use; "num_input" counts the
// others. Constants without names (shapes, scalars of the source) stay. Two constants of one name get different ones.
struct DetachedParams {
  ir::IRModule module;
  std::vector<NamedConstant> params;  // in the order of the parameters, under their names
};
Result<DetachedParams> DetachParams(ir::IRModule module, std::string_view function);

}  // namespace ingot::transform
