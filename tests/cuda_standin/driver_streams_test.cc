// The order of streams in the stand-in driver, by calls of the driver alone: what is not ordered goes wrong there, in one
// of the two ways in which it runs streams, and what is ordered is right in both.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "runtime/cuda_driver.h"
#include "tests/cuda_standin/driver_control.h"

namespace ingot {
namespace {

constexpr unsigned kOfItsOwn = 1;  // CU_STREAM_NON_BLOCKING
constexpr size_t kCount = 64, kBytes = kCount * sizeof(int);

// A context, a pool, two streams, an event, pinned memory, and one block in device memory.
class Driver {
 public:
  explicit Driver(bool runs_ahead) {
    control_.RunAhead(runs_ahead);
    REQUIRE(cuda.PrimaryCtxRetain(&context_, 0) == kCudaSuccess);
    REQUIRE(cuda.CtxPushCurrent(context_) == kCudaSuccess);
    const CudaPoolProperties properties;
    REQUIRE(cuda.MemPoolCreate(&pool, &properties) == kCudaSuccess);
    REQUIRE(cuda.StreamCreate(&own, kOfItsOwn) == kCudaSuccess);
    REQUIRE(cuda.StreamCreate(&blocking, 0) == kCudaSuccess);
    REQUIRE(cuda.EventCreate(&event, 2) == kCudaSuccess);
    for (int** const memory : {&from, &to}) {
      REQUIRE(cuda.MemHostAlloc(reinterpret_cast<void**>(memory), kBytes, 0) == kCudaSuccess);
    }
    block = Allocate(nullptr);
    Wait(nullptr);
  }
  ~Driver() {
    CudaContext popped = nullptr;
    static_cast<void>(cuda.CtxPopCurrent(&popped));
    static_cast<void>(cuda.PrimaryCtxRelease(0));
    control_.RunAhead(false);
  }
  Driver(const Driver&) = delete;

  CudaPointer Allocate(CudaStream stream) const {
    CudaPointer made = 0;
    REQUIRE(cuda.MemAllocFromPool(&made, kBytes, pool, stream) == kCudaSuccess);
    return made;
  }
  void Wait(CudaStream stream) const { REQUIRE(cuda.StreamSynchronize(stream) == kCudaSuccess); }
  // What `stream` does from now on comes behind what `before` has to do by now.
  void Order(CudaStream stream, CudaStream before) const {
    REQUIRE(cuda.EventRecord(event, before) == kCudaSuccess);
    REQUIRE(cuda.StreamWaitEvent(stream, event, 0) == kCudaSuccess);
  }
  void Fill(int value) const {
    for (size_t i = 0; i < kCount; ++i) from[i] = value;
  }
  void Up(CudaStream stream) const { REQUIRE(cuda.CopyHostToDevice(block, from, kBytes, stream) == kCudaSuccess); }
  void Down(CudaStream stream) const { REQUIRE(cuda.CopyDeviceToHost(to, block, kBytes, stream) == kCudaSuccess); }

  const Ref<CudaDriver> opened = CudaDriver::Open(nullptr).value();
  const CudaDriver& cuda = *opened;
  CudaPool pool = nullptr;
  CudaStream own = nullptr, blocking = nullptr;
  CudaEvent event = nullptr;
  int *from = nullptr, *to = nullptr;
  CudaPointer block = 0;

 private:
  const DriverControl control_;
  CudaContext context_ = nullptr;
};

TEST_CASE("stand-in driver: a stream of its own is not ordered with the default one, unless by events") {
  if (DriverControl().Skips()) return;
  for (const bool runs_ahead : {false, true}) {
    for (const bool is_ordered : {false, true}) {
      CAPTURE(runs_ahead);
      const Driver driver(runs_ahead);
      driver.Fill(1);
      driver.Up(nullptr);
      driver.Wait(nullptr);
      driver.Down(nullptr);
      if (is_ordered) driver.Order(driver.own, nullptr);
      driver.Fill(2);
      driver.Up(driver.own);
      driver.Wait(nullptr);
      CHECK(driver.to[0] == (is_ordered || !runs_ahead ? 1 : 2));
      if (is_ordered) driver.Order(nullptr, driver.own);
      driver.Down(nullptr);
      driver.Wait(nullptr);
      CHECK(driver.to[0] == (is_ordered || runs_ahead ? 2 : 1));
    }
  }
}

TEST_CASE("stand-in driver: what waits for the default stream is ordered with it") {
  if (DriverControl().Skips()) return;
  for (const bool runs_ahead : {false, true}) {
    const Driver driver(runs_ahead);
    driver.Fill(1);
    driver.Up(driver.blocking);
    driver.Down(nullptr);
    driver.Wait(nullptr);
    CHECK(driver.to[0] == 1);
    driver.Fill(2);
    driver.Up(nullptr);
    driver.Down(driver.blocking);
    driver.Wait(driver.blocking);
    CHECK(driver.to[0] == 2);
  }
}

TEST_CASE("stand-in driver: memory is there where its allocation has run") {
  if (DriverControl().Skips()) return;
  for (const bool is_ordered : {false, true}) {
    Driver driver(false);
    driver.block = driver.Allocate(nullptr);
    if (is_ordered) driver.Order(driver.own, nullptr);
    driver.Up(driver.own);
    CHECK((driver.cuda.StreamSynchronize(driver.own) == kCudaSuccess) == is_ordered);
    if (!is_ordered) CHECK(DriverControl().LastFault() == "copy: memory that is not allocated yet");
  }
}

}  // namespace
}  // namespace ingot
