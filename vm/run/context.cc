// The making of a context: devices, states, external functions, the interpreter and its workspace.
#include "vm/run/context.h"

#include "vm/run/interpreter.h"

namespace ingot::vm {

Context::Context(std::shared_ptr<const Executable> executable, const ContextOptions& options)
    : executable_(std::move(executable)),
      devices_(executable_->instance()->allocator()),
      limits_(executable_->instance()->timer(), options.fuel) {
  limits_.set_deadline(options.deadline_seconds);
}

Context::~Context() = default;

#ifdef INGOT_CUDA
// Runs the file's program for GPUs; callers name functions of the one for the CPU.
Result<std::unique_ptr<Context>> Context::CreateForGpu(std::shared_ptr<const Executable> opened,
                                                       std::shared_ptr<const Executable> for_gpu,
                                                       ContextOptions options) {
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Context> context, Create(std::move(for_gpu), std::move(options)));
  const std::vector<Function>& functions = context->executable_->program().functions;
  for (const Function& function : opened->program().functions) {
    const auto peer = std::ranges::find(functions, function.name, &Function::name);
    context->functions_.push_back(static_cast<size_t>(peer - functions.begin()));  // of no use where it is not exported
  }
  context->opened_ = std::move(opened);
  return context;
}
#endif

Result<std::unique_ptr<Context>> Context::Create(std::shared_ptr<const Executable> executable, ContextOptions options) {
#ifdef INGOT_CUDA
  if (options.device && options.device->kind == DeviceKind::kCuda) {
    INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> for_gpu, executable->ForGpu());
    if (for_gpu != nullptr) return CreateForGpu(std::move(executable), std::move(for_gpu), std::move(options));
  }
#endif
  const Executable& exe = *executable;
  std::unique_ptr<Context> context(new Context(executable, options));
  std::map<std::string, ExternalFunction> externals = std::move(options.externals);
  options.externals.clear();
  INGOT_RETURN_IF_ERROR(exe.prepared_constants().Compute(executable, options));
  const auto create = [&]() -> Status {
    INGOT_RETURN_IF_ERROR(context->BindDevices(options));
    INGOT_RETURN_IF_ERROR(context->devices_.LoadCode(exe));
    INGOT_RETURN_IF_ERROR(context->CreateStates());
    INGOT_RETURN_IF_ERROR(context->externals_.Bind(exe.program(), std::move(externals)));
    context->CreateInterpreter();
    return context->interpreter_->kernels().ReserveWorkspace(exe.linked().workspace_bytes);
  };
  if (Status status = create(); !status.ok()) return std::move(status).WithContext(exe.name());
  return context;
}

Result<std::unique_ptr<Context>> Context::CreateForPreparing(std::shared_ptr<const Executable> executable,
                                                             ContextOptions limits) {
  std::unique_ptr<Context> context(new Context(std::move(executable), limits));
  INGOT_RETURN_IF_ERROR(context->BindDevices(limits).WithContext(context->executable().name()));
  context->CreateInterpreter();
  return context;
}

inline Status Context::BindDevices(const ContextOptions& options) {
#ifdef INGOT_CUDA
  devices_.set_copies_tensors(options.copies_tensors);
  INGOT_RETURN_IF_ERROR(devices_.Choose(executable_->program(), options.device));
#endif
  return devices_.Bind(executable_->program(), options.max_memory_bytes);
}

void Context::CreateInterpreter() {
  interpreter_ = std::make_unique<Interpreter>(
      CallEnvironment{*executable_, devices_, externals_, states_, limits_, failure_place_});
}

void Context::set_profiler(Profiler profiler) { interpreter_->observers().set_profiler(std::move(profiler)); }
void Context::set_instrument(Instrument instrument) { interpreter_->observers().set_instrument(std::move(instrument)); }
void Context::set_check_finite(bool on) { interpreter_->observers().set_check_finite(on); }

}  // namespace ingot::vm
