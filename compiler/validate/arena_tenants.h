// Judges memory plans by more than their results: records which tensor wrote each byte of an arena last. A tensor that
// is read after another one was written over it is a mistake of the plan, also where the elements happen to be the
// same, and so is an output in the memory of an input whose kernel does not permit that.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/validate/value.h"
#include "runtime/status.h"

namespace ingot::validate {

class ArenaTenants {
 public:
  // Registers a new arena. Its bytes belong to nobody.
  void AddArena(const HostTensor& arena) { written_[arena.storage.get()].clear(); }
  // Returns the number of a new tensor (HostTensor::tenant).
  uint64_t NewTenant() { return ++num_tenants_; }

  // kFailed if another tensor was written over the tensor. Tensors outside of arenas are always in order.
  Status Reads(const HostTensor& tensor, const std::string& name) const;
  void Writes(const HostTensor& tensor);

  // Checks a kernel's inputs and the places of its outputs, before it runs, and records what it writes.
  Status RunsKernel(const ir::PrimFunc& function, std::span<const HostTensor> buffers);

 private:
  struct Written {
    size_t end;
    uint64_t tenant;
  };
  std::unordered_map<const Bytes*, std::map<size_t, Written>> written_;  // by arena: disjoint ranges by their begin
  std::unordered_map<ir::PrimFunc, Result<codegen::KernelDescription>, ir::RefHash, ir::RefSame> descriptions_;
  uint64_t num_tenants_ = 0;
};

}  // namespace ingot::validate
