// Buffers that the description lets share memory may alias; all others do not.
#include "compiler/codegen/bind_buffers.h"

#include <vector>

#include "compiler/codegen/numeric.h"
#include "runtime/check.h"

namespace ingot::codegen {

void BindBuffers(const KernelSource& source, KernelStatus& status, MemoryAccess& memory, const BufferPointer& pointer) {
  const std::vector<vm::KernelParam>& params = source.description.kernel.params;
  std::vector<int> scopes;
  for (const ir::PrimFuncParam& param : source.lowered->params) {
    if (!param.buffer) continue;
    const ir::Buffer& buffer = param.buffer;
    if (!Numeric::IsSupported(buffer->dtype) || buffer->dtype.is_handle()) {
      return status.Unsupported("parameter \"" + buffer->name + "\" is " + buffer->dtype.ToString() +
                                ", which kernels do not support yet");
    }
    const size_t number = scopes.size();
    INGOT_CHECK(number < params.size(), "the description lacks a parameter");
    const vm::KernelParam& described = params[number];
    const int scope = memory.scopes().Add(buffer->name);
    scopes.push_back(scope);
    if (described.in_place) memory.scopes().MayAlias(scope, scopes.at(*described.in_place));
    memory.Bind(buffer->data.get(), {pointer(number, buffer->name, described.alignment), scope, described.alignment});
  }
}

}  // namespace ingot::codegen
