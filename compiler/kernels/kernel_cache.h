// KernelCache: objects of kernels in a CacheDirectory. The key of a kernel is the text of its tensor function before it
// was scheduled, with all else that its object depends on: the target record, the optimisation level, what tuning chose
// for its schedule, and what makes code (codegen::CodegenIdentity). Schedules, tensor passes and LLVM are so left out
// for a kernel that is found. The kernel's name is no part of it, so that models share kernels. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/expr.h"
#include "compiler/kernels/cache_directory.h"
#include "compiler/schedule/choices.h"
#include "compiler/target/target.h"

namespace ingot::kernels {

// All fields of the record, on one line.
std::string TargetText(const Target& target);

struct KernelCacheOptions {
  std::string directory;  // empty: DefaultCacheDirectory()
  int64_t max_bytes = CacheDirectory::kDefaultMaxBytes;
};

class KernelCache {
 public:
  // Fails where the folder is not private to the user or cannot be made, or where this build cannot be told from
  // others.
  static Result<std::unique_ptr<KernelCache>> Open(const KernelCacheOptions& options);
  // `identity` stands for what makes code, for tests of other builds.
  KernelCache(std::unique_ptr<CacheDirectory> directory, std::string identity)
      : directory_(std::move(directory)), identity_(std::move(identity)) {}

  std::string KernelKey(const ir::PrimFunc& function, const Target& target, int opt_level,
                        const schedule::Chosen& chosen = {}) const;
  std::string MemoryRoutinesKey(const Target& target) const;

  std::optional<codegen::KernelObject> Find(std::string_view key);
  void Store(std::string_view key, const codegen::KernelObject& object);
  CacheDirectory& directory() { return *directory_; }

 private:
  const std::unique_ptr<CacheDirectory> directory_;
  const std::string identity_;
};

}  // namespace ingot::kernels
