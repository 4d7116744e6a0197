// The cold part of a context: its creation (devices, pools, states, external functions, workspace), and the preparation
// of an activation for new symbol values (memory plan, arenas, addresses of fixed registers).
#include "vm/run/context.h"

#include <algorithm>
#include <cstring>

#include "runtime/device_list.h"
#include "vm/program/limits.h"
#include "vm/run/interpreter.h"
#include "vm/verify/memory_peak.h"

namespace ingot::vm {

Result<std::unique_ptr<Context>> Context::Create(std::shared_ptr<const Executable> executable, ContextOptions options) {
  std::unique_ptr<Context> context(new Context());
  context->executable_ = std::move(executable);
  context->options_ = std::move(options);
  const Executable& exe = *context->executable_;
  const auto in_file = [&](Status status) { return std::move(status).WithContext(exe.name()); };
  context->set_deadline(context->options_.deadline_seconds);
  ContextOptions limits;  // without the externals
  limits.max_memory_bytes = context->options_.max_memory_bytes;
  limits.fuel = context->options_.fuel;
  limits.deadline_seconds = context->options_.deadline_seconds;
  INGOT_RETURN_IF_ERROR(exe.prepared_constants().Compute(context->executable_, limits));
  if (Status status = context->CreateDevices(); !status.ok()) return in_file(std::move(status));
  if (Status status = context->CreateStates(); !status.ok()) return in_file(std::move(status));
  if (Status status = context->BindExternals(std::move(context->options_.externals)); !status.ok()) {
    return in_file(std::move(status));
  }
  context->CreateInterpreter();
  if (Status status = context->ReserveWorkspace(exe.linked().workspace_bytes); !status.ok())
    return in_file(std::move(status));
  return context;
}

Result<std::unique_ptr<Context>> Context::CreateForPreparing(std::shared_ptr<const Executable> executable,
                                                             ContextOptions limits) {
  std::unique_ptr<Context> context(new Context());
  context->executable_ = std::move(executable);
  context->options_ = std::move(limits);
  INGOT_RETURN_IF_ERROR(context->CreateDevices().WithContext(context->executable_->name()));
  context->CreateInterpreter();
  return context;
}

void Context::CreateInterpreter() {
  activations_.resize(executable_->program().functions.size());
  kernel_context_ = std::make_unique<KernelContext>(executable_->instance()->pool(), &interrupt_);
  kernel_context_->set_external(&Context::CallRawExternal, this);
  interpreter_ = std::make_unique<Interpreter>(*this);
}

Context::~Context() {
  if (devices_.empty()) return;
  if (workspace_ != nullptr) devices_[0].pool->Free(workspace_, workspace_bytes_);
  for (auto& of_function : activations_) {
    for (auto& activation : of_function) {
      for (size_t i = 0; i < activation->arenas.size(); ++i) {
        const ArenaBlock& block = activation->arenas[i];
        if (block.data == nullptr) continue;
        const uint8_t device = activation->linked->function->plan.arenas[i].device;
        devices_[device].pool->Free(block.data, block.size);
      }
    }
  }
}

Status Context::CreateDevices() {
  const int64_t limit = options_.max_memory_bytes > 0 ? options_.max_memory_bytes : MemoryPool::kNoLimit;
  for (const VirtualDevice& device : executable_->program().devices) {
    INGOT_ASSIGN_OR_RETURN(DeviceId id, DeviceId::Parse(device.kind));
    id.index = device.index;
    device_ids_.push_back(id);
    BoundDevice& bound = devices_.emplace_back();
    INGOT_ASSIGN_OR_RETURN(bound.device, CreateDevice(id, executable_->instance()->allocator()));
    INGOT_ASSIGN_OR_RETURN(bound.pool, MemoryPool::Create(bound.device, limit));
  }
  return Status();
}

namespace {

bool IsCalledByInstructions(const Program& program, size_t external) {
  for (const Function& function : program.functions) {
    for (const Instruction& instruction : function.code) {
      if (instruction.opcode == Opcode::kCallExternal &&
          instruction.As<op::CallExternal>().external().value == external) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Status Context::BindExternals(std::map<std::string, ExternalFunction> externals) {
  options_.externals = std::move(externals);
  std::vector<bool> called_by_kernel(executable_->program().externals.size(), false);
  for (const Kernel& kernel : executable_->program().kernels) {
    for (ExternalId id : kernel.externals) called_by_kernel[id.value] = true;
  }
  for (const External& external : executable_->program().externals) {
    const auto found = options_.externals.find(external.name);
    if (found == options_.externals.end()) {
      return Status(StatusCode::kNotFound, {"external function \"", external.name, "\" is not registered; it is ",
                                            external.name, external.signature.ToString()});
    }
    if (called_by_kernel[externals_.size()] && !found->second.call_raw) {
      return Status(StatusCode::kInvalidArgument,
                    {"external function \"", external.name, "\" is called by kernels and has no raw form"});
    }
    if (!found->second.call && IsCalledByInstructions(executable_->program(), externals_.size())) {
      return Status(StatusCode::kInvalidArgument,
                    {"external function \"", external.name, "\" has a raw form alone, which is for kernels"});
    }
    externals_.push_back(&found->second);
  }
  return Status();
}

int32_t Context::CallRawExternal(void* context, const IngotKernelContext* ctx, int32_t index, void* const* buffers,
                                 const int64_t* ints) {
  auto* self = static_cast<Context*>(context);
  const Kernel* kernel = self->running_kernel_;
  if (kernel == nullptr || index < 0 || static_cast<size_t>(index) >= kernel->externals.size()) {
    return ctx->fail(ctx, INGOT_KERNEL_ASSERT, -1, index);
  }
  return self->externals_[kernel->externals[static_cast<size_t>(index)].value]->call_raw(buffers, ints);
}

Status Context::ZeroMemory(uint8_t device_index, void* data, int64_t bytes) const {
  Device& device = *devices_[device_index].device;
  if (device.id().is_host_accessible()) {
    if (executable_->instance()->allocator().is_default()) {
      ZeroAligned(data, static_cast<size_t>(bytes));
    } else if (bytes > 0) {
      std::memset(data, 0, static_cast<size_t>(bytes));
    }
    return Status();
  }
  constexpr int64_t kPiece = 1 << 16;
  const std::vector<std::byte> zeros(kPiece);
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const int64_t size = std::min(kPiece, bytes - at);
    INGOT_RETURN_IF_ERROR(device.CopyFromHost(static_cast<std::byte*>(data) + at, zeros.data(), size, {}));
  }
  return device.Synchronize({});
}

Status Context::ReserveWorkspace(int64_t bytes) {
  if (bytes <= workspace_bytes_) return Status();
  if (bytes > kMaxArenaBytes) return Status::OutOfMemory({"a workspace of ", bytes, " bytes"});
  // The old workspace is freed last: when there is no memory for the new one, calls that fit the old one still run.
  INGOT_ASSIGN_OR_RETURN(void* const fresh, devices_[0].pool->Allocate(bytes));
  if (workspace_ != nullptr) devices_[0].pool->Free(workspace_, workspace_bytes_);
  workspace_ = fresh;
  workspace_bytes_ = bytes;
  kernel_context_->set_workspace(workspace_, bytes);
  return Status();
}

// Evaluates the memory plan for these symbols, reserves its arenas, and fills in what stays the same in the kernels'
// argument arrays.
Status Context::Prepare(Activation& activation, const int64_t* symbols) {
  const LinkedFunction& linked = *activation.linked;
  const Function& function = *linked.function;
  const std::span<const int64_t> slots(symbols, function.signature.symbols.size());
  if (!activation.planned) {
    INGOT_ASSIGN_OR_RETURN(activation.numbers, EvaluatePlan(function.plan, slots));
    INGOT_RETURN_IF_ERROR(CheckPlanNumbers(function.plan, activation.numbers, CheckSet::All()).status());
    INGOT_RETURN_IF_ERROR(ReserveArenas(activation));
    activation.planned = IsConstantPlan(function.plan);
  }
  activation.addresses.clear();
  for (const FixedRegister& fixed : linked.fixed) {
    std::byte* base = nullptr;
    if (fixed.source == FixedSource::kConstant) {
      base = const_cast<std::byte*>(executable_->ConstantData(fixed.index));
    } else if (fixed.source == FixedSource::kState) {
      base = static_cast<std::byte*>(states_[fixed.index].data());
    } else {
      const uint32_t arena = function.plan.entries[fixed.index].arena;
      base = static_cast<std::byte*>(activation.arenas[arena].data) + activation.numbers.offsets[fixed.index];
      if (fixed.needs_check) {
        int64_t count = 1;
        for (const DimCode& dim : fixed.dims) {
          INGOT_ASSIGN_OR_RETURN(const int64_t extent, dim.Evaluate(slots));
          if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) count = -1;
          if (count < 0) break;
        }
        const Result<int64_t> bytes = fixed.dtype.SizeBytes(count);
        if (!bytes.ok() || *bytes > activation.numbers.sizes[fixed.index]) {
          return Status(StatusCode::kCorrupt, {"a tensor does not fit into plan entry ", fixed.index, " of ",
                                               activation.numbers.sizes[fixed.index], " bytes"});
        }
      }
    }
    INGOT_ASSIGN_OR_RETURN(const int64_t offset, fixed.offset_bytes.Evaluate(slots));
    activation.addresses.push_back(base + offset);
  }
  for (const FixedArgument& argument : linked.fixed_arguments)
    activation.arguments[argument.index] = activation.addresses[argument.fixed];
  for (const FixedInt& value : linked.fixed_ints) {
    INGOT_ASSIGN_OR_RETURN(activation.ints[value.index], value.value.Evaluate(slots));
  }
  return Status();
}

Status Context::ReserveArenas(Activation& activation) {
  const MemoryPlan& plan = activation.linked->function->plan;
  for (size_t i = 0; i < plan.arenas.size(); ++i) {
    ArenaBlock& block = activation.arenas[i];
    const int64_t size = activation.numbers.arena_sizes[i];
    MemoryPool& pool = *devices_[plan.arenas[i].device].pool;
    if (block.data != nullptr && block.size >= size) continue;
    if (block.data != nullptr) pool.Free(block.data, block.size);
    block = {};
    Result<void*> data = pool.Allocate(size);
    if (!data.ok() && data.status().code() == StatusCode::kOutOfMemory) {
      return Status::OutOfMemory({"an arena of ", size, " bytes, of which the largest tensor at the peak is ",
                                  DominatingTensor(*activation.linked->function, activation.numbers), ": ",
                                  data.status().message()});
    }
    if (!data.ok()) return std::move(data).status();
    block = {*data, size};
    if (activation.linked->zeroes_arenas) INGOT_RETURN_IF_ERROR(ZeroMemory(plan.arenas[i].device, *data, size));
  }
  return Status();
}

}  // namespace ingot::vm
