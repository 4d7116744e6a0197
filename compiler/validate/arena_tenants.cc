// Ranges of bytes by their last writer; a kernel's parameters by the description that the VM gets of it.
#include "compiler/validate/arena_tenants.h"

#include <algorithm>

namespace ingot::validate {

namespace {

bool Overlap(const HostTensor& a, const HostTensor& b) {
  return a.storage == b.storage &&
         std::max(a.offset, b.offset) < std::min(a.offset + a.size_bytes, b.offset + b.size_bytes);
}

}  // namespace

Status ArenaTenants::Reads(const HostTensor& tensor, const std::string& name) const {
  const auto arena = tensor.tenant == 0 ? written_.end() : written_.find(tensor.storage.get());
  if (arena == written_.end()) return Status();
  auto range = arena->second.upper_bound(tensor.offset);
  if (range != arena->second.begin()) --range;
  for (; range != arena->second.end() && range->first < tensor.offset + tensor.size_bytes; ++range) {
    if (range->second.end <= tensor.offset || range->second.tenant == tensor.tenant) continue;
    return Status(StatusCode::kFailed, "\"" + name + "\" is read from memory that another tensor was written to");
  }
  return Status();
}

void ArenaTenants::Writes(const HostTensor& tensor) {
  const auto arena = tensor.tenant == 0 ? written_.end() : written_.find(tensor.storage.get());
  if (arena == written_.end() || tensor.size_bytes == 0) return;
  std::map<size_t, Written>& ranges = arena->second;
  const size_t begin = tensor.offset, end = begin + tensor.size_bytes;
  auto range = ranges.upper_bound(begin);
  if (range != ranges.begin()) --range;
  while (range != ranges.end() && range->first < end) {
    const auto [from, written] = *range;
    if (written.end <= begin) {
      ++range;
      continue;
    }
    range = ranges.erase(range);
    if (from < begin) ranges[from] = {begin, written.tenant};
    if (end < written.end) ranges[end] = written;
  }
  ranges[begin] = {end, tensor.tenant};
}

Status ArenaTenants::RunsKernel(const ir::PrimFunc& function, std::span<const HostTensor> buffers) {
  auto described = descriptions_.find(function);
  if (described == descriptions_.end()) {
    described = descriptions_.emplace(function, codegen::DescribeKernel("kernel", function)).first;
  }
  // A function that is no kernel, or has other parameters than the call, is refused elsewhere.
  if (!described->second.ok() || described->second->kernel.params.size() != buffers.size()) return Status();
  const std::vector<vm::KernelParam>& params = described->second->kernel.params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].role != vm::ParamRole::kOut) INGOT_RETURN_IF_ERROR(Reads(buffers[i], params[i].name));
    if (params[i].role == vm::ParamRole::kIn) continue;
    for (size_t j = 0; j < params.size(); ++j) {
      if (i == j || !Overlap(buffers[i], buffers[j])) continue;
      const bool may_share = params[i].in_place == j && buffers[i].offset == buffers[j].offset;
      const bool is_reported_there = params[j].in_place == i;
      if (may_share || is_reported_there) continue;
      return Status(StatusCode::kFailed, "the output \"" + params[i].name + "\" lies in the memory of \"" +
                                             params[j].name + "\", and the kernel does not permit that");
    }
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].role != vm::ParamRole::kIn) Writes(buffers[i]);
  }
  return Status();
}

}  // namespace ingot::validate
