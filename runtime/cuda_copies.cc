#include "runtime/cuda_copies.h"

#include <algorithm>
#include <cstring>

namespace ingot {
namespace {

constexpr unsigned kUntimedEvent = 2, kStreamOfItsOwn = 1;

}  // namespace

void CudaCopies::Destroy() {
  for (const Staging& staging : staging_) {
    if (staging.event != nullptr) static_cast<void>(driver_.EventDestroy(staging.event));
    if (staging.memory != nullptr) static_cast<void>(driver_.MemFreeHost(staging.memory));
  }
  if (event_ != nullptr) static_cast<void>(driver_.EventDestroy(event_));
  if (stream_ != nullptr) static_cast<void>(driver_.StreamDestroy(stream_));
}

CudaCopies::Outcome CudaCopies::Ensure(int64_t num_tasks) {
  for (int64_t i = 0; i < 2 * num_tasks; ++i) {
    Staging& staging = staging_[i];
    if (staging.memory == nullptr) {
      INGOT_CUDA_TRY(driver_.MemHostAlloc(&staging.memory, kStagingBytes, 0), "cuMemHostAlloc");
    }
    if (staging.event == nullptr) {
      INGOT_CUDA_TRY(driver_.EventCreate(&staging.event, kUntimedEvent), "cuEventCreate");
    }
  }
  return {};
}

// Behind a copy that was queued. The buffer is in use whether or not this succeeds.
CudaCopies::Outcome CudaCopies::Mark(Staging& staging, CudaStream stream) const {
  staging.in_use = true;
  const Outcome outcome{driver_.EventRecord(staging.event, stream), "cuEventRecord"};
  staging.is_behind_event = outcome.ok();
  return outcome;
}

// Until the copy that uses the buffer has ended.
CudaCopies::Outcome CudaCopies::WaitFor(Staging& staging, CudaStream stream) const {
  if (!staging.in_use) return {};
  if (staging.is_behind_event) {
    INGOT_CUDA_TRY(driver_.EventSynchronize(staging.event), "cuEventSynchronize");
  } else {  // the default stream waits for all others but the one here
    for (CudaStream each : {CudaStream(nullptr), stream, stream_}) {
      INGOT_CUDA_TRY(driver_.StreamSynchronize(each), "cuStreamSynchronize");
    }
  }
  staging.in_use = false;
  return {};
}

CudaCopies::Outcome CudaCopies::FromHost(CudaContext context, CudaPointer to, const void* from, int64_t size_bytes,
                                         CudaStream stream) {
  auto* const host = static_cast<uint8_t*>(const_cast<void*>(from));  // which is read alone
  Copy copy{context, true, host, to, size_bytes, stream};
  return Run(copy);
}

CudaCopies::Outcome CudaCopies::ToHost(CudaContext context, void* to, CudaPointer from, int64_t size_bytes,
                                       CudaStream stream) {
  Copy copy{context, false, static_cast<uint8_t*>(to), from, size_bytes, stream};
  return Run(copy);
}

CudaCopies::Outcome CudaCopies::Run(Copy& copy) {
  if (threads_ != nullptr && copy.size_bytes >= kSharedBytes) {
    copy.num_tasks = std::min<int64_t>(threads_->num_threads(), kMostTasks);
  }
  std::lock_guard lock(mutex_);
  INGOT_CUDA_TRY(Ensure(copy.num_tasks));
  if (copy.num_tasks == 1) return RunTask(copy, 0);
  struct Shared {
    CudaCopies& copies;
    Copy& copy;
  } shared{*this, copy};
  const auto run = [](void* closure, int64_t task) -> int32_t {
    auto& [copies, of] = *static_cast<Shared*>(closure);
    CudaContext popped = nullptr;
    Outcome& outcome = copies.outcomes_[task];
    outcome = {copies.driver_.CtxPushCurrent(of.context), "cuCtxPushCurrent"};
    if (!outcome.ok()) return 1;
    outcome = copies.RunTask(of, task);
    static_cast<void>(copies.driver_.CtxPopCurrent(&popped));
    return outcome.ok() ? 0 : 1;
  };
  std::fill_n(outcomes_, copy.num_tasks, Outcome());
  static_cast<void>(threads_->ParallelFor(copy.num_tasks, run, &shared));
  for (int64_t task = 0; task < copy.num_tasks; ++task) INGOT_CUDA_TRY(outcomes_[task]);
  return {};
}

// Every so many parts. To the host, one is on its way while the one before is copied out.
CudaCopies::Outcome CudaCopies::RunTask(const Copy& copy, int64_t task) {
  const int64_t step = copy.num_tasks * kStagingBytes;
  const auto part_at = [&](int64_t at) { return static_cast<size_t>(std::min(kStagingBytes, copy.size_bytes - at)); };
  Staging* const own = &staging_[2 * task];
  for (int64_t at = task * kStagingBytes, turn = 0;; at += step, turn ^= 1) {
    const bool is_part = at < copy.size_bytes;
    Staging &staging = own[turn], &before = own[turn ^ 1];
    const CudaPointer address = copy.address + static_cast<uint64_t>(at);
    if (is_part) INGOT_CUDA_TRY(WaitFor(staging, copy.stream));
    if (is_part && copy.is_up) {
      std::memcpy(staging.memory, copy.host + at, part_at(at));
      INGOT_CUDA_TRY(driver_.CopyHostToDevice(address, staging.memory, part_at(at), copy.stream), "cuMemcpyHtoDAsync");
    } else if (is_part) {
      INGOT_CUDA_TRY(driver_.CopyDeviceToHost(staging.memory, address, part_at(at), copy.stream), "cuMemcpyDtoHAsync");
    }
    if (is_part) INGOT_CUDA_TRY(Mark(staging, copy.stream));
    if (!copy.is_up && at - step >= 0) {
      INGOT_CUDA_TRY(WaitFor(before, copy.stream));
      std::memcpy(copy.host + at - step, before.memory, part_at(at - step));
    }
    if (!is_part) return {};
  }
}

// ---- copies that are put off

CudaCopies::Outcome CudaCopies::EnsureStream() {
  if (stream_ == nullptr) {
    INGOT_CUDA_TRY(driver_.StreamCreate(&stream_, kStreamOfItsOwn), "cuStreamCreate");
  }
  if (event_ != nullptr) return {};
  return {driver_.EventCreate(&event_, kUntimedEvent), "cuEventCreate"};
}

// What is put on `stream` from now on runs behind what is on `before` by now.
CudaCopies::Outcome CudaCopies::Order(CudaStream stream, CudaStream before) const {
  INGOT_CUDA_TRY(driver_.EventRecord(event_, before), "cuEventRecord");
  return {driver_.StreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent"};
}

CudaCopies::Outcome CudaCopies::PutOff(CudaContext context, CudaPointer to, const void* from, int64_t size_bytes) {
  INGOT_CUDA_TRY(EnsureStream());
  INGOT_CUDA_TRY(Order(stream_, nullptr));
  const PutOffCopy copy{to, from, size_bytes};
  if (num_put_off_ == kMostPutOff) return RunPutOff(context, copy);
  put_off_[num_put_off_++] = copy;
  return {};
}

bool CudaCopies::PutOffCopy::HasAnyOf(std::span<void* const> addresses) const {
  return std::ranges::any_of(addresses, [&](const void* address) {
    return reinterpret_cast<uintptr_t>(address) - to < static_cast<uint64_t>(size_bytes);
  });
}

bool CudaCopies::IsPutOff(std::span<void* const> addresses) const {
  return std::any_of(put_off_, put_off_ + num_put_off_,
                     [&](const PutOffCopy& copy) { return copy.HasAnyOf(addresses); });
}

// Nobody uses its target before it has run, whatever comes of the call.
CudaCopies::Outcome CudaCopies::RunPutOff(CudaContext context, const PutOffCopy& copy) {
  Outcome outcome = FromHost(context, copy.to, copy.from, copy.size_bytes, stream_);
  if (outcome.ok()) outcome = Order(nullptr, stream_);
  if (!outcome.ok()) static_cast<void>(driver_.StreamSynchronize(stream_));
  return outcome;
}

CudaCopies::Outcome CudaCopies::CatchUp(CudaContext context, std::span<void* const> addresses) {
  for (size_t i = 0; i < num_put_off_;) {
    const PutOffCopy copy = put_off_[i];
    if (!addresses.empty() && !copy.HasAnyOf(addresses)) {
      ++i;
      continue;
    }
    put_off_[i] = put_off_[--num_put_off_];
    INGOT_CUDA_TRY(RunPutOff(context, copy));
  }
  return {};
}

}  // namespace ingot
