// A run of one function: checks the caller's buffers against the parameters, binds symbols from their dims, and runs
// the translated body on a Machine.
#include "compiler/interp/interpreter.h"

#include <unordered_set>

#include "compiler/interp/code.h"
#include "compiler/ir/visitor.h"

namespace ingot::interp {
namespace {

Status BadInput(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

std::string DimsText(const HostBuffer& buffer) { return buffer.dtype.ToString() + IndicesText(buffer.dims); }

// Binds the function's parameters and runs its body.
class Run {
 public:
  Run(const ir::PrimFuncNode& function, const InterpretOptions& options) : function_(function) {
    machine_.options = options;
  }

  Status Execute(std::span<const HostBuffer> buffers, std::span<const int64_t> scalars) {
    size_t num_buffers = 0;
    for (const ir::PrimFuncParam& param : function_.params) num_buffers += param.buffer ? 1 : 0;
    const size_t num_scalars = function_.params.size() - num_buffers;
    if (buffers.size() != num_buffers || scalars.size() != num_scalars) {
      return BadInput("the function takes " + std::to_string(num_buffers) + " buffers and " +
                      std::to_string(num_scalars) + " scalars, got " + std::to_string(buffers.size()) + " and " +
                      std::to_string(scalars.size()));
    }
    size_t next_buffer = 0;
    size_t next_scalar = 0;
    for (const ir::PrimFuncParam& param : function_.params) {
      if (param.buffer) {
        bound_.push_back({param.buffer, &buffers[next_buffer++]});
      } else {
        Set(param.var, CellFromBits(param.var->dtype, static_cast<uint64_t>(scalars[next_scalar++])));
      }
    }
    for (const Bound& bound : bound_) INGOT_RETURN_IF_ERROR(CheckHost(bound));
    for (const Bound& bound : bound_) BindSymbols(bound);
    for (const Bound& bound : bound_) INGOT_RETURN_IF_ERROR(BindView(bound));
    const StmtPtr body = translator_.Translate(function_.body);
    INGOT_RETURN_IF_ERROR(translator_.status());
    Grow();
    body->Run(machine_);
    if (machine_.options.executed_steps != nullptr) *machine_.options.executed_steps += machine_.steps;
    return machine_.status;
  }

 private:
  struct Bound {
    ir::Buffer buffer;
    const HostBuffer* host;
  };

  void Grow() {
    machine_.slots.resize(static_cast<size_t>(translator_.num_slots()), IntCell(0));
    machine_.views.resize(static_cast<size_t>(translator_.num_views()));
  }
  void Set(const ir::PrimVar& var, Cell value) {
    const int slot = translator_.DefineVar(var);
    Grow();
    machine_.slots[static_cast<size_t>(slot)] = value;
    known_.insert(var);
  }

  Status CheckHost(const Bound& bound) const {
    const ir::BufferNode& buffer = *bound.buffer;
    const HostBuffer& host = *bound.host;
    if (host.dtype != buffer.dtype || host.dims.size() != buffer.shape.size()) {
      return BadInput("buffer " + buffer.name + ": expected " + buffer.dtype.ToString() + " of rank " +
                      std::to_string(buffer.shape.size()) + ", got " + DimsText(host));
    }
    const std::optional<int64_t> count = NumElements(host.dims);
    const Result<int64_t> size = count.has_value() ? host.dtype.SizeBytes(*count) : Result<int64_t>(int64_t{-1});
    if (!size.ok() || *size < 0 || static_cast<size_t>(*size) != host.bytes.size()) {
      return BadInput("buffer " + buffer.name + ": " + DimsText(host) + " with " + std::to_string(host.bytes.size()) +
                      " bytes");
    }
    return {};
  }

  // Binds variables that stand alone as a dimension, stride or offset: to the dimensions, compact strides and 0.
  void BindSymbols(const Bound& bound) {
    const ir::BufferNode& buffer = *bound.buffer;
    const auto bind = [this](const ir::PrimExpr& expr, int64_t value) {
      const auto var = ir::AsRef<ir::PrimVarNode>(expr);
      if (var && !known_.contains(var)) Set(var, IntCell(value));
    };
    for (size_t d = 0; d < buffer.shape.size(); ++d) bind(buffer.shape[d], bound.host->dims[d]);
    const std::vector<int64_t> strides = *CompactStrides(bound.host->dims);
    for (size_t d = 0; d < buffer.strides.size(); ++d) bind(buffer.strides[d], strides[d]);
    if (buffer.elem_offset) bind(buffer.elem_offset, 0);
  }

  Status BindView(const Bound& bound) {
    const ir::BufferNode& buffer = *bound.buffer;
    const HostBuffer& host = *bound.host;
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      INGOT_ASSIGN_OR_RETURN(const int64_t expected, Evaluate(buffer.shape[d]));
      if (expected != host.dims[d]) {
        return BadInput("buffer " + buffer.name + ": expected " + std::to_string(expected) + " elements in dimension " +
                        std::to_string(d) + ", got " + DimsText(host));
      }
    }
    View view{nullptr, 0, host.dims, {}};
    for (const ir::PrimExpr& stride : buffer.strides) {
      INGOT_ASSIGN_OR_RETURN(const int64_t value, Evaluate(stride));
      view.strides.push_back(value);
    }
    if (view.strides.empty()) view.strides = *CompactStrides(host.dims);
    if (buffer.elem_offset) {
      INGOT_ASSIGN_OR_RETURN(view.offset, Evaluate(buffer.elem_offset));
    }
    view.storage = std::make_shared<Storage>(host.dtype, *NumElements(host.dims), host.bytes, host.initialized);
    const int index = translator_.DefineBuffer(bound.buffer);
    Grow();
    machine_.views[static_cast<size_t>(index)] = std::move(view);
    return {};
  }

  Result<int64_t> Evaluate(const ir::PrimExpr& expr) {
    const ExprPtr code = translator_.Translate(expr);
    INGOT_RETURN_IF_ERROR(translator_.status());
    Grow();
    const int64_t value = code->Eval(machine_, 0).i;
    INGOT_RETURN_IF_ERROR(machine_.status);
    return value;
  }

  const ir::PrimFuncNode& function_;
  Machine machine_;
  Translator translator_;
  std::unordered_set<ir::PrimVar, ir::RefHash, ir::RefSame> known_;
  std::vector<Bound> bound_;
};

}  // namespace

Status Interpret(const ir::PrimFunc& function, std::span<const HostBuffer> buffers, std::span<const int64_t> scalars,
                 const InterpretOptions& options) {
  return Run(*function, options).Execute(buffers, scalars);
}

}  // namespace ingot::interp
