// Executable: a file that was mapped, decoded, verified and linked. It is immutable, and shared by threads and
// contexts.
#pragma once

#include <functional>
#include <memory>
#ifdef INGOT_CUDA
#include <mutex>
#endif
#include <string>

#include "formats/container.h"
#include "runtime/shared_bytes.h"
#include "vm/link/linked_program.h"
#include "vm/program/checks.h"
#include "vm/program/program.h"
#include "vm/program/trust.h"
#include "vm/run/instance.h"
#include "vm/run/prepared_constants.h"

namespace ingot::vm {

// How the native code of a file is trusted. Nothing in the file can change it.
enum class Trust : uint8_t {
  kNothing,  // a file with kernels is refused, unless they run as stubs
  kFile,     // the caller vouches for these bytes
  kPolicy,   // OpenOptions::policy is satisfied
};
// A machine may set a policy of its own for native code, which holds besides the caller's (vm/program/trust.h).
inline constexpr const char* kMachinePolicyPath = "/etc/ingot/policy";

struct OpenOptions {
  Trust trust = Trust::kNothing;
  TrustPolicy policy;  // for kPolicy
  std::string machine_policy_path = kMachinePolicyPath;
  bool stub_kernels = false;      // no native code is loaded; see RunStubKernel
  bool verify_constants = false;  // hash large raw constants, and files of weights, too
  // The folder of files of weights; empty: the executable's own folder, which bytes in memory do not have.
  std::string weights_directory;
  // Host tensors that replace the file's weights of these names.
  std::vector<std::pair<std::string, Tensor>> weights;
  // Kernels that this process has already (a JIT, tests): by name, looked up before the file's images.
  std::function<IngotKernelFn(const std::string& name)> find_kernel;
};

class Executable {
 public:
  // A container, or a program that one is packed into. Failures begin with the path.
  static Result<std::shared_ptr<const Executable>> Open(std::shared_ptr<Instance> instance, const std::string& path,
                                                        const OpenOptions& options);
  // The same for bytes in memory, which must not change. Messages name them `name`.
  static Result<std::shared_ptr<const Executable>> OpenMemory(std::shared_ptr<Instance> instance, SharedBytes bytes,
                                                              const std::string& name, const OpenOptions& options);
  // A program that was not in a file; it is verified like one that was.
  static Result<std::shared_ptr<const Executable>> FromProgram(std::shared_ptr<Instance> instance, Program program,
                                                               const std::string& name, const OpenOptions& options);

  const std::string& name() const { return name_; }
  const Program& program() const { return program_; }
  const LinkedProgram& linked() const { return linked_; }
  const std::shared_ptr<Instance>& instance() const { return instance_; }
  PreparedConstants& prepared_constants() const { return prepared_constants_; }
  // The elements of a constant. Those of a prepared one exist once a context was made.
  const std::byte* ConstantData(size_t constant) const {
    return program_.constants[constant].prepared_by ? prepared_constants_.data(constant)
                                                    : program_.constants[constant].bytes.data();
  }
  // An exported function; the error suggests a name and lists what there is.
  Result<const Function*> Find(std::string_view name) const;
  // Whether a policy holds, which asks that no code runs that the file's signature does not cover.
  bool has_policy() const { return is_copied_; }
#ifdef INGOT_CUDA
  // The file's second program, whose kernels are for GPUs (vm/program/device_program.h); null: there is none. It is
  // opened by the first call, with the options of the file, so that a file costs those who use the CPU nothing more, and
  // damage there does not harm them. May be called by several threads.
  Result<std::shared_ptr<const Executable>> ForGpu() const;
#endif
  // Null for a program that was in no file.
  const formats::Container* container() const { return container_ ? &*container_ : nullptr; }

 private:
  Executable() = default;
  static Result<std::shared_ptr<const Executable>> Load(std::shared_ptr<Executable> executable, SharedBytes bytes,
                                                        int fd, const OpenOptions& options);
  // Load() within the heap that a file of this size may have.
  static Result<std::shared_ptr<const Executable>> LoadInHeap(std::shared_ptr<Executable> executable, SharedBytes bytes,
                                                              int fd, const OpenOptions& options);
#ifdef INGOT_CUDA
  Result<std::shared_ptr<const Executable>> OpenForGpu() const;
#endif
  Status CheckTrust(const OpenOptions& options, std::span<const std::byte> file);
  static Result<std::shared_ptr<const Executable>> Finish(std::shared_ptr<Executable> executable, int fd,
                                                          const OpenOptions& options);

  std::shared_ptr<Instance> instance_;
  std::string name_;
  std::string directory_;   // empty: it is in no folder
  bool is_copied_ = false;  // the bytes are private to this process
  std::optional<formats::Container> container_;
  Program program_;
  LinkedProgram linked_;
  mutable PreparedConstants prepared_constants_;
#ifdef INGOT_CUDA
  OpenOptions options_;  // of a file with a section for GPUs
  mutable std::mutex for_gpu_mutex_;
  mutable std::shared_ptr<const Executable> for_gpu_;  // null: not opened yet
#endif
};

}  // namespace ingot::vm
