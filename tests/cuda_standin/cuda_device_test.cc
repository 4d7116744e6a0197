// The device cuda on the stand-in driver: launches, errors that stay, injected faults, what is left over. The
// conformance suite (tests/runtime/device_test.cc) runs beside it. What needs no fault runs on a GPU's driver, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda_device.h"
#include "runtime/device_list.h"
#include "runtime/thread_pool.h"
#include "tests/cuda_standin/driver_control.h"

namespace ingot {
namespace {

// y[i] = x[i] + number; `first` shifts where it reads.
constexpr char kAdd[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .s64 n, .param .s64 number, .param .s64 first)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %a<10>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  cvt.s64.s32 %a0, %r3;
  ld.param.u64 %a1, [n];
  setp.ge.s64 %p, %a0, %a1;
  @%p ret;
  ld.param.u64 %a2, [x];
  ld.param.u64 %a3, [y];
  ld.param.u64 %a4, [number];
  ld.param.u64 %a9, [first];
  add.s64 %a9, %a9, %a0;
  shl.b64 %a5, %a9, 3;
  add.s64 %a6, %a2, %a5;
  ld.global.u64 %a7, [%a6];
  add.s64 %a7, %a7, %a4;
  shl.b64 %a5, %a0, 3;
  add.s64 %a8, %a3, %a5;
  st.global.u64 [%a8], %a7;
  ret;
}
)";

std::span<const uint8_t> Bytes(const char* text) { return {reinterpret_cast<const uint8_t*>(text), std::strlen(text)}; }

// Everything that a program does with a device; the first failure ends it. Right results are part of success.
Status UseDevice() {
  INGOT_ASSIGN_OR_RETURN(const Ref<Device> device, CreateCudaDevice(0, CudaOptions()));
  constexpr int64_t kCount = 300000;  // more than two parts of staging memory
  struct Owned {                      // frees on every way out
    Device& device;
    std::vector<std::pair<void*, int64_t>> blocks;
    std::vector<Stream> streams;
    ~Owned() {
      for (const Stream stream : streams) device.DestroyStream(stream);
      for (const auto& [data, size] : blocks) device.Free(data, size);
    }
  } owned{*device, {}, {}};
  std::vector<int64_t> x(kCount), y(kCount, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int64_t>(i * i);
  const int64_t bytes = kCount * 8;
  void* addresses[2];
  for (void*& address : addresses) {
    INGOT_ASSIGN_OR_RETURN(address, device->Allocate(bytes));
    owned.blocks.emplace_back(address, bytes);
  }
  INGOT_ASSIGN_OR_RETURN(const Stream stream, device->CreateStream());
  owned.streams.push_back(stream);
  INGOT_ASSIGN_OR_RETURN(const Ref<DeviceImage> image, device->LoadImage(Bytes(kAdd)));
  INGOT_ASSIGN_OR_RETURN(void* kernel, image->FindKernel("add"));
  INGOT_RETURN_IF_ERROR(device->CopyFromHost(addresses[0], x.data(), bytes, stream));
  constexpr int64_t kComputed = 1000;
  const int64_t ints[] = {kComputed, 7, 0};
  INGOT_RETURN_IF_ERROR(
      device->LaunchKernel(kernel, {{(kComputed + 255) / 256, 1, 1}, {256, 1, 1}, 0}, addresses, ints, stream));
  INGOT_RETURN_IF_ERROR(device->CopyWithin(addresses[0], addresses[1], kComputed * 8, stream));
  INGOT_RETURN_IF_ERROR(device->CopyToHost(y.data(), addresses[0], bytes, stream));
  INGOT_RETURN_IF_ERROR(device->Synchronize(stream));
  bool right = true;
  for (size_t i = 0; i < x.size(); ++i) right &= y[i] == x[i] + (i < kComputed ? 7 : 0);
  CHECK(right);
  return Status();
}

// y = x + 1 and then y = w + 2, where x and w are copied when something reads them, twice in the same memory.
Status UseLater(ThreadPool* threads, int64_t count = 140000) {
  INGOT_ASSIGN_OR_RETURN(const Ref<Device> device, CreateCudaDevice(0, CudaOptions()));
  device->UseThreads(threads);
  const int64_t bytes = count * 8;
  INGOT_ASSIGN_OR_RETURN(void* const block, device->Allocate(3 * bytes));
  const auto place = [&](int k) { return static_cast<void*>(static_cast<std::byte*>(block) + k * bytes); };
  void *const x = place(0), *const w = place(1), *const y = place(2);
  const auto use = [&]() -> Status {
    INGOT_ASSIGN_OR_RETURN(const Ref<DeviceImage> image, device->LoadImage(Bytes(kAdd)));
    INGOT_ASSIGN_OR_RETURN(void* kernel, image->FindKernel("add"));
    constexpr int64_t kComputed = 300;
    const auto add = [&](void* from, int64_t number) {
      void* const buffers[] = {from, y};
      const int64_t ints[] = {kComputed, number, 0};
      return device->LaunchKernel(kernel, {{2, 1, 1}, {256, 1, 1}, 0}, buffers, ints, Stream());
    };
    for (int64_t time = 1; time <= 2; ++time) {
      std::vector<int64_t> of_x(static_cast<size_t>(count), time), of_w(static_cast<size_t>(count), 10 * time);
      std::vector<int64_t> got(static_cast<size_t>(count), -1);
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(x, of_x.data(), bytes));
      INGOT_RETURN_IF_ERROR(add(x, 1));
      std::ranges::fill(of_x, -1);  // it has left
      INGOT_RETURN_IF_ERROR(device->Synchronize(Stream()));
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(w, of_w.data(), bytes));
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), y, kComputed * 8, Stream()));
      CHECK(got[kComputed - 1] == time + 1);
      std::ranges::fill(of_w, 20 * time);  // nothing has needed it so far
      INGOT_RETURN_IF_ERROR(add(w, 2));
      std::ranges::fill(of_w, -1);
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), y, kComputed * 8, Stream()));
      CHECK(got[kComputed - 1] == 20 * time + 2);
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), w, bytes, Stream()));
      CHECK(std::ranges::count(got, 20 * time) == count);
      // What is put off and read by a copy, or by nothing.
      std::ranges::fill(of_x, 7);
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(x, of_x.data(), bytes));
      INGOT_RETURN_IF_ERROR(device->CopyWithin(w, x, bytes, Stream()));
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(x, of_w.data(), bytes));
      device->ForgetCopies();
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), w, bytes, Stream()));
      CHECK(std::ranges::count(got, 7) == count);
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), x, bytes, Stream()));
      CHECK(std::ranges::count(got, 7) == count);
      // Behind what was launched before.
      std::ranges::fill(of_w, 50);
      INGOT_RETURN_IF_ERROR(add(x, 1));
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(x, of_w.data(), bytes));
      INGOT_RETURN_IF_ERROR(device->CopyWithin(w, x, bytes, Stream()));
      INGOT_RETURN_IF_ERROR(device->CopyToHost(got.data(), y, kComputed * 8, Stream()));
      CHECK(got[kComputed - 1] == 8);
      INGOT_RETURN_IF_ERROR(device->CopyFromHostLater(x, of_w.data(), bytes));
      INGOT_RETURN_IF_ERROR(device->Synchronize(Stream()));
    }
    return Status();
  };
  const Status status = use();
  device->ForgetCopies();
  device->Free(block, 3 * bytes);
  return status;
}

// More launches than may be in the queue at a time.
Status UseQueue() {
  INGOT_ASSIGN_OR_RETURN(const Ref<Device> device, CreateCudaDevice(0, CudaOptions()));
  INGOT_ASSIGN_OR_RETURN(void* const block, device->Allocate(64));
  const auto launch = [&]() -> Status {
    constexpr int64_t kFirst[8] = {};
    INGOT_RETURN_IF_ERROR(device->CopyFromHost(block, kFirst, 64, Stream()));
    INGOT_ASSIGN_OR_RETURN(const Ref<DeviceImage> image, device->LoadImage(Bytes(kAdd)));
    INGOT_ASSIGN_OR_RETURN(void* kernel, image->FindKernel("add"));
    void* const buffers[] = {block, block};
    const int64_t ints[] = {1, 7, 0};
    for (int k = 0; k < 100; ++k) {
      INGOT_RETURN_IF_ERROR(device->LaunchKernel(kernel, {{1, 1, 1}, {1, 1, 1}, 0}, buffers, ints, Stream()));
    }
    int64_t sum = 0;
    INGOT_RETURN_IF_ERROR(device->CopyToHost(&sum, block, 8, Stream()));
    CHECK(sum == 700);
    return Status();
  };
  Status status = launch();
  device->Free(block, 64);
  return status;
}

// One sequence of launches several times, each with arguments of its own: y = x + 1, z = y + 2, ..., 6 * k + 21 in all.
Status UseGraphs(int times) {
  INGOT_ASSIGN_OR_RETURN(const Ref<Device> device, CreateCudaDevice(0, CudaOptions()));
  constexpr int64_t kBytes = 800;
  INGOT_ASSIGN_OR_RETURN(void* const block, device->Allocate(7 * kBytes));
  const auto place = [&](int k) { return static_cast<void*>(static_cast<std::byte*>(block) + k * kBytes); };
  const auto use = [&]() -> Status {
    INGOT_ASSIGN_OR_RETURN(const Ref<DeviceImage> image, device->LoadImage(Bytes(kAdd)));
    INGOT_ASSIGN_OR_RETURN(void* kernel, image->FindKernel("add"));
    for (int time = 0; time < times; ++time) {
      std::vector<int64_t> x(100, time), y(100, -1);
      INGOT_RETURN_IF_ERROR(device->CopyFromHost(place(0), x.data(), kBytes, Stream()));
      for (int k = 1; k <= 6; ++k) {
        void* const buffers[] = {place(k - 1), place(k)};
        const int64_t ints[] = {100, time % 2 == 0 ? k : k + 1, 0};
        INGOT_RETURN_IF_ERROR(device->LaunchKernel(kernel, {{2, 1, 1}, {64, 1, 1}, 0}, buffers, ints, Stream()));
      }
      INGOT_RETURN_IF_ERROR(device->CopyToHost(y.data(), place(6), kBytes, Stream()));
      for (const int64_t value : y) CHECK(value == time + 21 + (time % 2 == 0 ? 0 : 6));
    }
    return device->Synchronize(Stream());
  };
  const Status status = use();
  device->Free(block, 7 * kBytes);
  return status;
}

TEST_CASE("cuda: launches that come again are a graph, with other arguments, too; each of its calls may fail") {
  const DriverControl control;
  CHECK(UseGraphs(5).ok());
  if (control.Skips()) return;
  const auto calls_of = [&](int times) {
    control.FailCall(0, 0, false);
    REQUIRE(UseGraphs(times).ok());
    CHECK(control.LiveObjects() == 0);
    return control.Calls();
  };
  const int64_t one = calls_of(1), two = calls_of(2), three = calls_of(3), four = calls_of(4), five = calls_of(5);
  CHECK(two - one > 15);               // made, and launched
  CHECK(three - two == four - three);  // six launches with other arguments
  CHECK(five - four == four - three);
  CHECK(four - three < two - one);
  for (const int error : {2, 999, 700}) {
    for (int64_t call = one - 20; call <= four; ++call) {
      CAPTURE(call);
      control.FailCall(call, error, false);
      const Status status = UseGraphs(4);
      control.FailCall(0, 0, false);
      CHECK((status.ok() || status.code() == StatusCode::kFailed || status.code() == StatusCode::kOutOfMemory));
      CHECK(control.LiveObjects() == 0);
    }
  }
  CHECK(UseGraphs(3).ok());
}

// A kernel that may not be launched is named, though others are launched later.
TEST_CASE("cuda: what the driver refuses is said by the kernel's name, once") {
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
  void* const kernel = image->FindKernel("add").value();
  void* const block = device->Allocate(64).value();
  REQUIRE(device->CopyFromHost(block, std::vector<int64_t>(8).data(), 64, Stream()).ok());
  void* const buffers[] = {block, block};
  const int64_t ints[] = {8, 7, 0};
  const LaunchConfig too_many{{1, 1, 1}, {1024, 2, 1}, 0}, right{{1, 1, 1}, {32, 1, 1}, 0};
  CHECK(device->LaunchKernel(kernel, too_many, buffers, ints, Stream()).ok());
  CHECK(device->LaunchKernel(kernel, right, buffers, ints, Stream()).ok());
  void* const other = device->Allocate(64).value();
  device->Free(other, 64);  // nobody can be told here
  const Status status = device->Synchronize(Stream());
  CHECK(status.code() == StatusCode::kFailed);
  CHECK(status.message().starts_with("kernel \"add\": cuda:0: cuLaunchKernel: "));
  CHECK(device->Synchronize(Stream()).ok());
  CHECK(device->LaunchKernel(kernel, right, buffers, ints, Stream()).ok());
  int64_t first = 0;
  CHECK(device->CopyToHost(&first, block, 8, Stream()).ok());
  CHECK(first == 7);
  device->Free(block, 64);
}

TEST_CASE("cuda: a kernel gets its buffers and integers, and copies are in order") {
  const DriverControl control;
  const Status status = UseDevice();
  CHECK_MESSAGE(status.ok(), status.message());
  CHECK(control.LiveObjects() == 0);
}

TEST_CASE("cuda: a fault of a kernel is said, stays, and is gone with a new device") {
  const DriverControl control;
  // A GPU's driver serves the process no more: there, one of its own faults.
  if (!control.IsStandIn() && std::getenv("INGOT_TEST_FAULTS") == nullptr) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    CHECK(std::system(StrCat({"INGOT_TEST_FAULTS=1 '", self, "' -tc='cuda: a fault of a kernel*'"}).c_str()) == 0);
    return;
  }
  {
    const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
    void* block = device->Allocate(64).value();
    {
      const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
      void* kernel = image->FindKernel("add").value();
      void* buffers[] = {block, block};
      const int64_t ints[] = {8, 7, -(reinterpret_cast<intptr_t>(block) / 8)};  // it reads the address zero
      REQUIRE(device->LaunchKernel(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, buffers, ints, Stream()).ok());
      const Status fault = device->Synchronize(Stream());
      CHECK(fault.code() == StatusCode::kFailed);
      CHECK(fault.message().find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
      CHECK(fault.message().find("the context is lost") != std::string::npos);
      if (control.IsStandIn()) CHECK(control.LastFault().find("kernel \"add\", line ") != std::string::npos);
      for (const Status& later :
           {device->Synchronize(Stream()), device->Allocate(8).status(), device->CreateStream().status(),
            device->LoadImage(Bytes(kAdd)).status(), image->FindKernel("add").status(),
            device->LaunchKernel(kernel, {}, buffers, ints, Stream()),
            device->CopyFromHost(block, ints, 8, Stream())}) {
        CHECK(later.code() == StatusCode::kFailed);
        CHECK(later.message().find("the context was lost") != std::string::npos);
      }
    }
    device->Free(block, 64);
  }
  CHECK(control.LiveObjects() == 0);
  if (control.IsStandIn()) CHECK(UseDevice().ok());
}

TEST_CASE("cuda: the compiler's log is in the message, unknown kernels are not found") {
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  std::string wrong = kAdd;
  wrong.replace(wrong.find("shl.b64"), 7, "shx.b64");
  const Status status = device->LoadImage(Bytes(wrong.c_str())).status();
  CHECK(status.code() == StatusCode::kFailed);
  // The stand-in's words, or those of a GPU's driver.
  const std::string message(status.message());
  CHECK_MESSAGE(
      message.find(DriverControl().IsStandIn() ? "unknown instruction \"shx.b64\"" : "shx") != std::string::npos,
      message);
  std::string newer = kAdd;
  newer.replace(newer.find("8.0"), 3, "99.0");
  CHECK(device->LoadImage(Bytes(newer.c_str())).status().code() == StatusCode::kUnsupportedFile);
  if (DriverControl().IsStandIn()) {
    std::string other = kAdd;
    other.replace(other.find("sm_80"), 5, "sm_90");
    CHECK(device->LoadImage(Bytes(other.c_str())).status().code() == StatusCode::kUnsupportedFile);
  }
  const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
  CHECK(image->FindKernel("subtract").status().code() == StatusCode::kNotFound);
}

TEST_CASE("cuda: launches beyond the limits are refused by name") {
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
  void* kernel = image->FindKernel("add").value();
  const LaunchConfig wrong[] = {{{1, 1, 1}, {2048, 1, 1}, 0},
                                {{1, 1 << 17, 1}, {1, 1, 1}, 0},
                                {{1, 1, 1}, {1, 1, 1}, 1 << 20},
                                {{1, 1, 1}, {0, 1, 1}, 0}};
  for (const LaunchConfig& config : wrong)
    CHECK(device->LaunchKernel(kernel, config, {}, {}, Stream()).code() == StatusCode::kInvalidArgument);
  CHECK(device->LaunchKernel(kernel, {{0, 1, 1}, {1, 1, 1}, 0}, {}, {}, Stream()).ok());
  // More shared memory than every kernel may have is allowed for this one, up to what the device has.
  void* const block = device->Allocate(64).value();
  REQUIRE(device->CopyFromHost(block, std::vector<int64_t>(8).data(), 64, Stream()).ok());
  void* const buffers[] = {block, block};
  const int64_t ints[] = {8, 7, 0};
  for (const int64_t shared : {48 << 10, 163 << 10}) {
    CHECK(device->LaunchKernel(kernel, {{1, 1, 1}, {32, 1, 1}, shared}, buffers, ints, Stream()).ok());
    CHECK(device->Synchronize(Stream()).ok());
  }
  const int64_t too_much = DriverControl().IsStandIn() ? (163 << 10) + 1 : 1 << 20;
  const Status beyond = device->LaunchKernel(kernel, {{1, 1, 1}, {32, 1, 1}, too_much}, buffers, ints, Stream());
  CHECK(beyond.code() == StatusCode::kInvalidArgument);
  device->Free(block, 64);
}

TEST_CASE("cuda: a launch with fewer arguments than the code takes is refused by name") {
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
  void* const kernel = image->FindKernel("add").value();
  void* const block = device->Allocate(64).value();
  void* const buffers[] = {block, block};
  const int64_t ints[] = {8, 7};
  const Status status = device->LaunchKernel(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, buffers, ints, Stream());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message() == "kernel \"add\": cuda:0: a launch with 4 arguments, of 5");
  device->Free(block, 64);
  if (DriverControl().Skips()) return;
  std::string with_narrow_one = kAdd;
  const std::string last = ".param .s64 first";
  with_narrow_one.insert(with_narrow_one.find(last) + last.size(), ", .param .u32 more");
  const Ref<DeviceImage> other = device->LoadImage(Bytes(with_narrow_one.c_str())).value();
  CHECK(other->FindKernel("add").status().message() == "cuda: argument 5 of \"add\" is no number of 8 bytes");
}

TEST_CASE("cuda: the timer is the thread's that started it, and launches of others wait") {
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  const Ref<DeviceImage> image = device->LoadImage(Bytes(kAdd)).value();
  void* const kernel = image->FindKernel("add").value();
  void* const block = device->Allocate(64).value();
  REQUIRE(device->CopyFromHost(block, std::vector<int64_t>(8).data(), 64, Stream()).ok());
  const auto launch = [&] {
    void* const buffers[] = {block, block};
    const int64_t ints[] = {8, 7, 0};
    return device->LaunchKernel(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, buffers, ints, Stream());
  };
  const auto stop = [&] {
    const Result<int64_t> time_ns = device->StopTimer();
    return time_ns.ok() && *time_ns > 0;
  };
  REQUIRE(device->StartTimer().ok());
  std::atomic<bool> is_stopped{false};
  bool waited = false, is_right = false;
  std::thread other([&] {
    is_right = launch().ok();
    waited = is_stopped;
    is_right &= device->StartTimer().ok() && launch().ok() && stop();
  });
  CHECK(launch().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // in which the other one would have launched
  is_stopped = true;
  CHECK(stop());
  other.join();
  CHECK(waited);
  CHECK(is_right);
  int64_t first = 0;
  CHECK(device->CopyToHost(&first, block, 8, Stream()).ok());
  CHECK(first == 21);
  device->Free(block, 64);
}

TEST_CASE("cuda: the bound of memory holds") {
  CudaOptions options;
  options.memory_limit_bytes = 1000;
  const Ref<Device> device = CreateCudaDevice(0, options).value();
  void* block = device->Allocate(600).value();
  CHECK(device->Allocate(600).status().code() == StatusCode::kOutOfMemory);
  device->Free(block, 600);
  block = device->Allocate(1000).value();
  device->Free(block, 1000);
}

TEST_CASE("cuda: no driver, and no such device") {
  CudaOptions options;
  options.driver_path = "/nonexistent/libcuda.so.1";
  const Status none = CreateCudaDevice(0, options).status();
  CHECK(none.code() == StatusCode::kNotFound);
  CHECK(none.message().starts_with("cuda: no driver: "));
  CHECK(CreateCudaDevice(1000, CudaOptions()).status().code() == StatusCode::kNotFound);
}

TEST_CASE("cuda: each call of the driver fails once, and for ever after: nothing is left, the next run is right") {
  const DriverControl control;
  if (control.Skips()) return;
  REQUIRE(UseDevice().ok());
  control.FailCall(0, 0, false);
  REQUIRE(UseDevice().ok());
  const int64_t calls = control.Calls();
  REQUIRE(calls > 40);
  int64_t failed = 0;
  for (const int error : {2, 999, 700}) {
    for (const bool for_ever : {false, true}) {
      for (int64_t call = 1; call <= calls; ++call) {
        CAPTURE(call);
        CAPTURE(error);
        control.FailCall(call, error, for_ever);
        const Status status = UseDevice();
        control.FailCall(0, 0, false);
        // What releases things cannot say that it failed.
        if (!status.ok()) {
          ++failed;
          const bool out_of_memory = status.code() == StatusCode::kOutOfMemory;
          const bool expected = out_of_memory
                                    ? error == 2
                                    : status.code() == StatusCode::kFailed || status.code() == StatusCode::kNotFound;
          CHECK_MESSAGE(expected, status.ToString());
        }
        CHECK(control.LiveObjects() == 0);
      }
      CHECK(UseDevice().ok());
    }
  }
  MESSAGE(calls << " calls, " << failed << " of " << 6 * calls << " runs failed, as they should");
}

TEST_CASE("cuda: copies that are put off run before what reads them, whichever stream is first") {
  const DriverControl control;
  for (const bool runs_ahead : {false, true}) {
    if (control.IsStandIn()) control.RunAhead(runs_ahead);
    const Status status = UseLater(nullptr);
    CHECK_MESSAGE(status.ok(), status.message());
  }
  if (control.IsStandIn()) control.RunAhead(false);
  CHECK(control.LiveObjects() == 0);
}

TEST_CASE("cuda: long copies are shared by threads") {
  const std::unique_ptr<ThreadPool> threads = ThreadPool::Create(4).value();
  const Status status = UseLater(threads.get(), 1200001);
  CHECK_MESSAGE(status.ok(), status.message());
  CHECK(DriverControl().LiveObjects() == 0);
}

TEST_CASE("cuda: each call of the driver fails where copies are put off: nothing is left, the next run is right") {
  const DriverControl control;
  if (control.Skips()) return;
  REQUIRE(UseLater(nullptr).ok());
  control.FailCall(0, 0, false);
  REQUIRE(UseLater(nullptr).ok());
  const int64_t calls = control.Calls();
  for (const int error : {2, 700}) {
    for (int64_t call = 1; call <= calls; ++call) {
      CAPTURE(call);
      control.FailCall(call, error, false);
      const Status status = UseLater(nullptr);
      control.FailCall(0, 0, false);
      CHECK((status.ok() || status.code() == StatusCode::kFailed || status.code() == StatusCode::kOutOfMemory ||
             status.code() == StatusCode::kNotFound));
      CHECK(control.LiveObjects() == 0);
    }
  }
  const std::unique_ptr<ThreadPool> threads = ThreadPool::Create(3).value();
  for (int64_t call = 1; call <= 3 * calls; call += 23) {
    control.FailCall(call, 999, false);
    CHECK((UseLater(threads.get(), 1200001).ok() || control.Calls() >= call));
    control.FailCall(0, 0, false);
    CHECK(control.LiveObjects() == 0);
  }
  CHECK(UseLater(threads.get(), 1200001).ok());
}

TEST_CASE("cuda: the same for what bounds the queue of launches") {
  const DriverControl control;
  if (control.Skips()) return;
  control.FailCall(0, 0, false);
  REQUIRE(UseQueue().ok());
  const int64_t calls = control.Calls();
  REQUIRE(calls > 130);
  for (int64_t call = calls - 130; call <= calls; ++call) {  // the last 70 launches, and what is behind them
    CAPTURE(call);
    control.FailCall(call, 999, false);
    const Status status = UseQueue();
    control.FailCall(0, 0, false);
    CHECK((status.ok() || status.code() == StatusCode::kFailed));
    CHECK(control.LiveObjects() == 0);
  }
  CHECK(UseQueue().ok());
}

}  // namespace
}  // namespace ingot
