// Copies between the host and a GPU. They go through pinned buffers, two in turns, since the driver would make copies of
// pageable memory synchronous and slow; long ones are shared by threads of the host, each with two buffers of its own,
// since one thread copies to pinned memory at a small part of what the GPU's bus takes. A copy to the host has arrived when
// the call returns; one from the host has left the caller's memory.
//
// Copies from the host may also be put off until a launch reads their target: they run on a stream of their own then, while
// what was launched before runs, and the default stream waits for them.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "runtime/cuda_driver.h"
#include "runtime/thread_pool.h"

namespace ingot {

class CudaCopies {
 public:
  using Outcome = CudaOutcome;
  explicit CudaCopies(const CudaDriver& driver) : driver_(driver) {}
  CudaCopies(const CudaCopies&) = delete;
  // While the context is the calling thread's, and everything queued has ended.
  void Destroy();
  // Null: the calling thread copies by itself.
  void UseThreads(ThreadPool* threads) { threads_ = threads; }

  // Ordered on the stream of the context, which is the calling thread's.
  Outcome FromHost(CudaContext context, CudaPointer to, const void* from, int64_t size_bytes, CudaStream stream);
  Outcome ToHost(CudaContext context, void* to, CudaPointer from, int64_t size_bytes, CudaStream stream);

  // Ordered behind what is on the default stream by now, and before what is put there once it has caught up.
  Outcome PutOff(CudaContext context, CudaPointer to, const void* from, int64_t size_bytes);
  // Whether the target of a copy that is put off has one of the addresses.
  bool IsPutOff(std::span<void* const> addresses) const;
  // Runs these copies; no addresses: all.
  Outcome CatchUp(CudaContext context, std::span<void* const> addresses);
  void Forget() { num_put_off_ = 0; }

 private:
  static constexpr int64_t kStagingBytes = int64_t{1} << 20, kSharedBytes = int64_t{8} << 20, kMostTasks = 8;
  static constexpr size_t kMostPutOff = 16;
  struct Staging {
    void* memory = nullptr;
    CudaEvent event = nullptr;  // recorded behind the last copy out of or into it, unless that failed
    bool in_use = false;
    bool is_behind_event = false;
  };
  struct Copy {
    CudaContext context;
    bool is_up;
    uint8_t* host;
    CudaPointer address;
    int64_t size_bytes;
    CudaStream stream;
    int64_t num_tasks = 1;
  };
  struct PutOffCopy {
    CudaPointer to;
    const void* from;
    int64_t size_bytes;
    bool HasAnyOf(std::span<void* const> addresses) const;
  };
  Outcome Run(Copy& copy);
  Outcome RunTask(const Copy& copy, int64_t task);
  Outcome Ensure(int64_t num_tasks);
  Outcome Mark(Staging& staging, CudaStream stream) const;
  Outcome WaitFor(Staging& staging, CudaStream stream) const;
  Outcome EnsureStream();
  Outcome RunPutOff(CudaContext context, const PutOffCopy& copy);
  Outcome Order(CudaStream stream, CudaStream before) const;

  const CudaDriver& driver_;
  ThreadPool* threads_ = nullptr;
  std::mutex mutex_;  // of what a copy needs
  Outcome outcomes_[kMostTasks];
  Staging staging_[2 * kMostTasks];
  PutOffCopy put_off_[kMostPutOff];  // the caller's lock guards them, the stream and the event
  size_t num_put_off_ = 0;
  CudaStream stream_ = nullptr;
  CudaEvent event_ = nullptr;
};

}  // namespace ingot
