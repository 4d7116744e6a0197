// The steps from bytes to an executable: container, trust, decoding, verification, weights, linking. Where a policy has
// to hold, the bytes are copied to private memory before they are looked at.
#include "vm/run/executable.h"

#include <cstring>

#include "formats/file.h"
#include "runtime/suggest.h"
#include "runtime/tensor.h"
#include "vm/program/device_program.h"
#include "vm/program/limits.h"
#include "vm/program/program_codec.h"
#include "vm/program/reading_heap.h"
#include "vm/program/weights.h"
#include "vm/verify/verifier.h"

namespace ingot::vm {
namespace {

// Kernels assume that constants begin at multiples of kPlanAlignment, which holds for mapped files. Bytes in memory may
// have any alignment; then the constants are copied.
Status AlignConstants(Program& program) {
  for (Constant& constant : program.constants) {
    const auto address = reinterpret_cast<uintptr_t>(constant.bytes.data());
    if (constant.bytes.size() == 0 || address % kPlanAlignment == 0) continue;
    const auto size = static_cast<int64_t>(constant.bytes.size());
    INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> storage, ingot::Storage::AllocateHost(size));
    std::memcpy(storage->data(), constant.bytes.data(), constant.bytes.size());
    const std::span<const std::byte> moved(static_cast<const std::byte*>(storage->data()), constant.bytes.size());
    constant.bytes = SharedBytes(std::make_shared<const Ref<ingot::Storage>>(std::move(storage)), moved);
  }
  return Status();
}

bool HasNativeCode(const Program& program) {
  for (const Kernel& kernel : program.kernels) {
    if (!kernel.variants.empty()) return true;
  }
  return false;
}

// Whether a policy has to hold. Then the file is read to private memory before anything of it is looked at.
bool HasPolicy(const OpenOptions& options) {
  if (options.trust == Trust::kPolicy) return true;
  return !options.stub_kernels && HasMachinePolicy(options.machine_policy_path);
}

}  // namespace

Result<std::shared_ptr<const Executable>> Executable::Open(std::shared_ptr<Instance> instance, const std::string& path,
                                                           const OpenOptions& options) {
  std::shared_ptr<Executable> executable(new Executable());
  executable->is_copied_ = HasPolicy(options);
  const auto mode = executable->is_copied_ ? formats::ReadMode::kCopy : formats::ReadMode::kMap;
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const formats::InputFile> file, formats::InputFile::Open(path, mode));
  executable->instance_ = std::move(instance);
  executable->name_ = path;
  const size_t slash = path.rfind('/');
  executable->directory_ = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = file->fd();
  return Load(std::move(executable), formats::InputFile::Share(std::move(file)), fd, options);
}

Result<std::shared_ptr<const Executable>> Executable::OpenMemory(std::shared_ptr<Instance> instance, SharedBytes bytes,
                                                                 const std::string& name, const OpenOptions& options) {
  std::shared_ptr<Executable> executable(new Executable());
  executable->instance_ = std::move(instance);
  executable->name_ = name;
  executable->is_copied_ = HasPolicy(options);
  if (executable->is_copied_) {
    INGOT_ASSIGN_OR_RETURN(Ref<ingot::Storage> copy, ingot::Storage::AllocateHost(std::ssize(bytes.bytes)));
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    const std::span<const std::byte> copied(static_cast<const std::byte*>(copy->data()), bytes.size());
    bytes = SharedBytes(std::make_shared<const Ref<ingot::Storage>>(std::move(copy)), copied);
  }
  return Load(std::move(executable), std::move(bytes), -1, options);
}

Result<std::shared_ptr<const Executable>> Executable::FromProgram(std::shared_ptr<Instance> instance, Program program,
                                                                  const std::string& name, const OpenOptions& options) {
  std::shared_ptr<Executable> executable(new Executable());
  executable->instance_ = std::move(instance);
  executable->name_ = name;
  executable->program_ = std::move(program);
  return Finish(std::move(executable), -1, options);
}

Result<std::shared_ptr<const Executable>> Executable::Load(std::shared_ptr<Executable> executable, SharedBytes bytes,
                                                           int fd, const OpenOptions& options) {
  const std::string name = executable->name_;
  const size_t size = bytes.size();
  return WithinReadingHeap(CheckSet::All(), name, size,
                           [&] { return LoadInHeap(std::move(executable), std::move(bytes), fd, options); });
}

Result<std::shared_ptr<const Executable>> Executable::LoadInHeap(std::shared_ptr<Executable> executable,
                                                                 SharedBytes bytes, int fd,
                                                                 const OpenOptions& options) {
  const auto in_file = [&](Status status) { return std::move(status).WithContext(executable->name_); };
  formats::ContainerOptions opening;
  opening.pool = executable->instance_->pool();
  const std::span<const std::byte> file = bytes.bytes;
  Result<formats::Container> container = formats::Container::Open(std::move(bytes), opening);
  if (!container.ok()) return in_file(std::move(container).status());
  executable->container_ = std::move(*container);
  if (Status status = executable->CheckTrust(options, file); !status.ok()) return in_file(std::move(status));
  if (options.verify_constants) {
    if (Status status = executable->container_->VerifyHashes(); !status.ok()) return in_file(std::move(status));
  }
  Result<Program> program = DecodeInHeap(*executable->container_);
  if (!program.ok()) return in_file(std::move(program).status());
  executable->program_ = std::move(*program);
#ifdef INGOT_CUDA
  if (executable->container_->Find(kDeviceProgramSection) != nullptr) executable->options_ = options;
#endif
  return Finish(std::move(executable), fd, options);
}

#ifdef INGOT_CUDA
Result<std::shared_ptr<const Executable>> Executable::ForGpu() const {
  if (!container_ || container_->Find(kDeviceProgramSection) == nullptr) return std::shared_ptr<const Executable>();
  if (options_.stub_kernels) {
    return Status(StatusCode::kUnsupportedFile, {name_, ": ", kDeviceProgramName, ": not with stub kernels"});
  }
  const std::lock_guard<std::mutex> lock(for_gpu_mutex_);
  if (for_gpu_ == nullptr) {
    // Beyond it is out of memory.
    const HeapBudget budget(ReadingHeapBytes(container_->Find(kDeviceProgramSection)->size));
    Result<std::shared_ptr<const Executable>> opened = OpenForGpu();
    if (!opened.ok()) return std::move(opened).status().WithContext(name_);
    for_gpu_ = *std::move(opened);
  }
  return for_gpu_;
}

// What trusts the file trusts this section of it.
Result<std::shared_ptr<const Executable>> Executable::OpenForGpu() const {
  std::shared_ptr<Executable> inner(new Executable());
  Executable& opened = *inner;
  inner->instance_ = instance_;
  inner->name_ = kDeviceProgramName;  // in messages of the verifier
  inner->directory_ = directory_;
  inner->is_copied_ = is_copied_;
  INGOT_ASSIGN_OR_RETURN(inner->container_, OpenDeviceProgram(*container_, instance_->pool()));
  if (options_.verify_constants) {
    INGOT_RETURN_IF_ERROR(inner->container_->VerifyHashes().WithContext(kDeviceProgramName));
  }
  Result<Program> program = DecodeInHeap(*inner->container_);
  if (!program.ok()) return std::move(program).status().WithContext(kDeviceProgramName);
  inner->program_ = std::move(*program);
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> finished, Finish(std::move(inner), -1, options_));
  INGOT_RETURN_IF_ERROR(CheckSameFunctions(program_, finished->program()));
  opened.name_ = name_;
  return finished;
}
#endif

// Runs before anything of the file is decoded. The machine's policy does not apply to stub kernels, which run no code
// of the file; the caller's own does.
Status Executable::CheckTrust(const OpenOptions& options, std::span<const std::byte> file) {
  if (options.trust == Trust::kPolicy) {
    INGOT_RETURN_IF_ERROR(vm::CheckTrust(options.policy, *container_, file, instance_->pool()));
  }
  if (!is_copied_ || options.stub_kernels) return Status();
  TrustPolicy machine;
  INGOT_ASSIGN_OR_RETURN(const bool has_policy, ReadMachinePolicy(options.machine_policy_path, &machine));
  if (!has_policy) return Status();
  return vm::CheckTrust(machine, *container_, file, instance_->pool()).WithContext(options.machine_policy_path);
}

Result<std::shared_ptr<const Executable>> Executable::Finish(std::shared_ptr<Executable> executable, int fd,
                                                             const OpenOptions& options) {
  const auto in_file = [&](Status status) { return std::move(status).WithContext(executable->name_); };
  Program& program = executable->program_;
  if (Status status = Verify(program); !status.ok()) return in_file(std::move(status));
  WeightSources sources{options.weights_directory, options.verify_constants, executable->is_copied_, options.weights};
  if (sources.directory.empty()) sources.directory = executable->directory_;
  if (Status status = BindWeights(program, sources); !status.ok()) return in_file(std::move(status));
  if (Status status = AlignConstants(program); !status.ok()) return in_file(std::move(status));
  if (!options.stub_kernels && options.trust == Trust::kNothing && HasNativeCode(program)) {
    return in_file(
        Status(StatusCode::kNotTrusted, "has native kernels, and the options do not say that they are trusted"));
  }
  LinkOptions link;
  link.stub_kernels = options.stub_kernels;
  link.zeroes_all = options.stub_kernels || options.trust == Trust::kNothing;
  link.find_kernel = options.find_kernel;
  link.fd = fd;
  Result<LinkedProgram> linked = Link(program, link);
  if (!linked.ok()) return in_file(std::move(linked).status());
  executable->linked_ = std::move(*linked);
  return std::shared_ptr<const Executable>(std::move(executable));
}

Result<const Function*> Executable::Find(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const Function& function : program_.functions) {
    if (!function.exported) continue;
    if (function.name == name) return &function;
    names.push_back(function.name);
  }
  std::string message = StrCat({name_, ": no function \"", name, "\"", DidYouMean(name, names), "; it has"});
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) message += StrCat({i ? ", \"" : " \"", names[i], "\""});
  if (names.size() > kShown) message += ", ...";
  if (names.empty()) message += " none";
  return Status(StatusCode::kNotFound, std::move(message));
}

}  // namespace ingot::vm
