// Constants take the place of symbols in shapes and statements; buffers follow.
#include "compiler/schedule/likely_sizes.h"

#include <vector>

#include "compiler/ir/visitor.h"

namespace ingot::schedule {

std::optional<ir::PrimFunc> AtLikelySizes(const ir::PrimFunc& function) {
  const ir::AttrValue* attr = function->attrs.Find(kLikelySizesAttr);
  const auto* sizes = attr == nullptr ? nullptr : attr->get<ir::AttrList>();
  const std::vector<ir::PrimVar> symbols = ir::FreePrimVars(function);
  if (sizes == nullptr || sizes->size() != symbols.size()) return std::nullopt;
  ir::PrimVarMap values;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto* size = (*sizes)[i].get<int64_t>();
    if (size == nullptr || *size < 1) return std::nullopt;
    values.emplace(symbols[i], ir::IntImm(symbols[i]->dtype, *size));
  }
  ir::PrimFuncNode fixed = *function;
  ir::BufferMap buffers;
  for (ir::PrimFuncParam& param : fixed.params) {
    if (!param.buffer) continue;
    ir::BufferNode buffer = *param.buffer;
    for (ir::PrimExpr& dim : buffer.shape) dim = ir::Substitute(dim, values);
    for (ir::PrimExpr& stride : buffer.strides) stride = ir::Substitute(stride, values);
    const ir::Buffer made = ir::Make<ir::BufferNode>(std::move(buffer));
    buffers.emplace(param.buffer, made);
    param.buffer = made;
  }
  fixed.attrs = fixed.attrs.Without(kLikelySizesAttr);
  fixed.body = ir::Substitute(fixed.body, values, buffers);
  return ir::Make<ir::PrimFuncNode>(std::move(fixed));
}

}  // namespace ingot::schedule
