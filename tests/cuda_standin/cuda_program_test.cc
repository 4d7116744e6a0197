// Programs with kernels on the device cuda, from their text to their results, on the stand-in driver. What needs no
// fault and no other machine runs on a GPU's driver, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda_device.h"
#include "runtime/dlpack.h"
#include "runtime/text.h"
#include "tests/cuda_standin/driver_control.h"
#include "tests/cuda_standin/shift_program.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"
#include "vm/tools/doctor.h"

namespace ingot::vm {
namespace {

Result<std::shared_ptr<const Executable>> Load(const std::string& architecture, bool stubs = false,
                                               const std::string& kind = "cuda", Form form = Form::kOnHost) {
  INGOT_ASSIGN_OR_RETURN(Program program, MakeProgram(architecture, kind, form));
  INGOT_ASSIGN_OR_RETURN(auto instance, Instance::Create({}));
  OpenOptions options;
  options.trust = Trust::kFile;
  options.stub_kernels = stubs;
  return Executable::FromProgram(std::move(instance), std::move(program), "shift", options);
}

Tensor Numbers(const std::vector<int64_t>& values) {
  Tensor tensor = *Tensor::Allocate(DataType::Int(64), std::vector{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.MutableElements<int64_t>().begin());
  return tensor;
}

int64_t Expected(const Context& context, int64_t x, int64_t factor) {
  const int64_t once = (x + kBy) * factor;
  const bool is_once = context.executable().program().functions[0].signature.params[0].type.device == 1;
  return is_once ? once : (once + kBy) * factor;
}

Status RunOn(Context& context, const std::vector<int64_t>& x) {
  const Function& main = context.executable().program().functions[0];
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value> results, context.Invoke(main, std::vector<Value>{Numbers(x)}));
  const auto y = std::get<Tensor>(results[0]).Elements<int64_t>();
  REQUIRE(y.size() == x.size());
  const std::vector<int64_t> factors = Factors();
  bool right = true;
  for (size_t i = 0; i < y.size(); ++i) right &= y[i] == Expected(context, x[i], factors[i]);
  CHECK(right);
  return Status();
}

std::vector<int64_t> Ascending(int64_t count) {
  std::vector<int64_t> x(static_cast<size_t>(count));
  std::iota(x.begin(), x.end(), 0);
  return x;
}

// A variable of the environment, as long as this lives.
class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~WithVariable() { unsetenv(name_); }
  WithVariable(const WithVariable&) = delete;

 private:
  const char* name_;
};

int64_t LiveObjects() { return DriverControl().LiveObjects(); }

TEST_CASE("cuda programs: kernels of several launches, constants, workspaces and arenas on the device, any size") {
  {
    const auto executable = Load("sm_80").value();
    const auto context = Context::Create(executable).value();
    for (const int64_t count : {5, 1000, 0, 64, 65, 5}) {
      CAPTURE(count);
      const Status status = RunOn(*context, Ascending(count));
      CHECK_MESSAGE(status.ok(), status.message());
    }
    const auto other = Context::Create(executable).value();  // beside the first one
    CHECK(RunOn(*other, Ascending(100)).ok());
    CHECK(RunOn(*context, Ascending(100)).ok());
  }
  CHECK(LiveObjects() == 0);
}

TEST_CASE("cuda programs: a kernel's failure is the call's, by its message, and the next call is right") {
  const auto context = Context::Create(Load("sm_80").value()).value();
  std::vector<int64_t> x = Ascending(500);
  x[400] = -8;
  const Status status = RunOn(*context, x);
  CHECK(status.code() == StatusCode::kFailed);
  CHECK(status.message().find("kernel \"shift\": no product is negative") != std::string::npos);
  CHECK(context->failure_place().function == "main");
  CHECK(RunOn(*context, Ascending(500)).ok());
}

TEST_CASE("cuda programs: observers see kernels that have ended, with the times that the GPU took") {
  const auto context = Context::Create(Load("sm_80").value()).value();
  std::vector<int64_t> times;
  context->set_profiler([&](const Event& event) {
    if (std::string_view(event.name) == "shift") times.push_back(event.end_ns - event.begin_ns);
  });
  CHECK(RunOn(*context, Ascending(5)).ok());
  CHECK(RunOn(*context, Ascending(500)).ok());
  REQUIRE(times.size() == 4);
  for (const int64_t time : times) CHECK(time > 0);
}

// The program for sm_80 with machine code besides, for this architecture.
Result<std::shared_ptr<const Executable>> LoadWithCubin(const std::string& cubin_architecture, const std::string& cubin,
                                                        bool has_ptx) {
  INGOT_ASSIGN_OR_RETURN(Program program, MakeProgram("sm_80"));
  KernelImage image{"cubin", ImageFormat::kCubin, cubin_architecture, 0, {}, {}};
  image.bytes = SharedBytes::Own({reinterpret_cast<const std::byte*>(cubin.data()),
                                  reinterpret_cast<const std::byte*>(cubin.data()) + cubin.size()});
  program.images.push_back(std::move(image));
  for (vm::Kernel& kernel : program.kernels) {
    kernel.variants.insert(kernel.variants.begin(), KernelVariant{1, 0, "", 0});
    std::vector<LaunchRecord> launches = kernel.launches;
    for (LaunchRecord& launch : launches) launch.variant = 1;
    kernel.launches.insert(kernel.launches.end(), launches.begin(), launches.end());
    if (!has_ptx) {
      kernel.variants.pop_back();
      kernel.launches.resize(launches.size());
    }
  }
  INGOT_ASSIGN_OR_RETURN(auto instance, Instance::Create({}));
  OpenOptions options;
  options.trust = Trust::kFile;
  return Executable::FromProgram(std::move(instance), std::move(program), "shift", options);
}

TEST_CASE("cuda programs: machine code is taken before PTX where the GPU is of its kind and the driver takes it") {
  if (!DriverControl().IsStandIn()) return;  // its GPU is an sm_80, and it runs cubins of tests
  const Program plain = MakeProgram("sm_80").value();
  const std::string_view ptx(reinterpret_cast<const char*>(plain.images[0].bytes.bytes.data()),
                             plain.images[0].bytes.bytes.size());
  const std::string good = StrCat({"\x7f"
                                   "ELF stand-in ",
                                   ptx}),
                    foreign =
                        "\x7f"
                        "ELF of another toolkit";
  const auto runs = [](const Result<std::shared_ptr<const Executable>>& executable) -> Status {
    INGOT_ASSIGN_OR_RETURN(const auto context, Context::Create(executable.value()));
    return RunOn(*context, Ascending(100));
  };
  CHECK(runs(LoadWithCubin("sm_80", good, false)).ok());
  CHECK(runs(LoadWithCubin("sm_80", good, true)).ok());
  CHECK(runs(LoadWithCubin("sm_80", foreign, true)).ok());  // PTX
  CHECK(runs(LoadWithCubin("sm_80",
                           "\x7f"
                           "ELF of a later toolkit",
                           true))
            .ok());
  CHECK(runs(LoadWithCubin("sm_90", "no code", true)).ok());
  CHECK(runs(LoadWithCubin("sm_75", "no code", true)).ok());  // another major version
  const Status refused = runs(LoadWithCubin("sm_80", foreign, false));
  CHECK(refused.code() == StatusCode::kUnsupportedFile);
  CHECK_MESSAGE(refused.message().find("CUDA_ERROR_NO_BINARY_FOR_GPU") != std::string::npos, refused.message());
  // Whatever else is wrong with code is no reason to take another.
  CHECK(runs(LoadWithCubin("sm_80", "no code", true)).code() == StatusCode::kFailed);
}

TEST_CASE("cuda programs: code for another architecture is refused with what is there") {
  const bool is_sm_80 = DriverControl().IsStandIn();
  for (const std::string architecture : {"sm_90", "sm_90a", "sm_100", "sm_999", "x86_64", "sm_", "sm_80x"}) {
    if (!is_sm_80 && (architecture.starts_with("sm_9") || architecture == "sm_100") && architecture != "sm_999")
      continue;
    CAPTURE(architecture);
    const Status status = Context::Create(Load(architecture).value()).status();
    CHECK(status.code() == StatusCode::kUnsupportedFile);
    const std::string needs = StrCat({"kernel \"shift\": it needs ", architecture, "; cuda is "});
    CHECK_MESSAGE(status.message().find(needs) != std::string::npos, status.message());
  }
  CHECK(Context::Create(Load("sm_75").value()).ok());
}

// The same kernel for several architectures, the most special one first, where the one for sm_90a subtracts.
TEST_CASE("cuda programs: code for one compute capability alone runs there, and nowhere else") {
  if (DriverControl().Skips()) return;
  Program program = MakeProgram("sm_80").value();
  const auto image = static_cast<size_t>(std::ranges::find(program.images, ImageFormat::kPtx, &KernelImage::format) -
                                         program.images.begin());
  Kernel& kernel = program.kernels[0];
  const std::vector<LaunchRecord> launches = kernel.launches;
  const auto add = [&](const std::string& architecture, std::string text) {
    KernelImage made = program.images[image];
    made.arch = architecture;
    text.replace(text.find("sm_80"), 5, architecture);
    const auto view = std::as_bytes(std::span(text));
    made.bytes = SharedBytes::Own({view.begin(), view.end()});
    KernelVariant variant = kernel.variants[0];
    variant.image = static_cast<uint32_t>(program.images.size());
    program.images.push_back(std::move(made));
    for (LaunchRecord& launch : kernel.launches) ++launch.variant;
    kernel.variants.insert(kernel.variants.begin(), variant);
    kernel.launches.insert(kernel.launches.begin(), launches.begin(), launches.end());
  };
  const std::span<const std::byte> bytes = program.images[image].bytes.bytes;
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string other = text;
  const std::string addition = "add.s64 %a3, %a3, %a4;";
  other.replace(other.find(addition), addition.size(), "sub.s64 %a3, %a3, %a4;");
  add("sm_90", text);
  add("sm_90a", other);
  const auto first_of = [&](const char* sm) {
    const WithVariable architecture("INGOT_STANDIN_SM", sm);
    OpenOptions options;
    options.trust = Trust::kFile;
    const auto executable = Executable::FromProgram(Instance::Create({}).value(), program, "shift", options).value();
    const auto context = Context::Create(executable).value();
    const Function& main = context->executable().program().functions[0];
    const auto results = context->Invoke(main, std::vector<Value>{Numbers({1000})}).value();
    return std::get<Tensor>(results[0]).Elements<int64_t>()[0];
  };
  const int64_t factor = Factors()[0];
  CHECK(first_of("80") == ((1000 + kBy) * factor + kBy) * factor);
  CHECK(first_of("90") == ((1000 - kBy) * factor - kBy) * factor);
  CHECK(first_of("100") == ((1000 + kBy) * factor + kBy) * factor);
}

TEST_CASE(
    "cuda programs: the device is chosen by the context, and one that the program has no kernels for is refused") {
  const auto executable = Load("sm_80").value();
  const auto create = [&](DeviceId device) {
    ContextOptions options;
    options.device = device;
    return Context::Create(executable, options);
  };
  CHECK(RunOn(*create({DeviceKind::kCuda, 0}).value(), Ascending(100)).ok());
  if (DriverControl().IsStandIn()) {
    const WithVariable two("INGOT_STANDIN_DEVICES", "2");
    const auto second = create({DeviceKind::kCuda, 1}).value();
    CHECK(RunOn(*second, Ascending(100)).ok());
    const auto first = create({DeviceKind::kCuda, 0}).value();
    CHECK(RunOn(*first, Ascending(100)).ok());
    CHECK(RunOn(*second, Ascending(70)).ok());
  }
  const Status none = create({DeviceKind::kCuda, 1000}).status();
  CHECK(none.code() == StatusCode::kNotFound);
  CHECK_MESSAGE(none.message().starts_with("shift: cuda:1000: no such device; there "), none.message());
  const Status host = create({DeviceKind::kCpu, 0}).status();
  CHECK(host.code() == StatusCode::kUnsupportedFile);
  CHECK_MESSAGE(host.message() == "shift: there are no kernels for cpu; they are for CUDA: sm_80", host.message());
  CHECK(create({DeviceKind::kNull, 0}).status().code() == StatusCode::kUnsupportedFile);
  CHECK(LiveObjects() == 0);
}

TEST_CASE("cuda programs: under a policy the driver's files of compiled code are not used") {
  const DriverControl control;
  if (control.Skips()) return;
  const SharedBytes file = SharedBytes::Own(EncodeProgram(MakeProgram("sm_80").value()).value());
  for (const bool has_policy : {false, true}) {
    OpenOptions options;
    options.trust = has_policy ? Trust::kPolicy : Trust::kFile;
    options.policy.allowed = {formats::Sha256Of(file.bytes)};
    const auto executable = Executable::OpenMemory(Instance::Create({}).value(), file, "shift", options).value();
    const int64_t before = control.KnownModules();
    for (int time = 0; time < 3; ++time) {
      CHECK(RunOn(*Context::Create(executable).value(), Ascending(10)).ok());
    }
    CHECK((control.KnownModules() - before >= 2) == !has_policy);
    CHECK((control.KnownModules() == before) == has_policy);
  }
}

TEST_CASE("cuda programs: no GPU, an old driver, a driver that is too old for the code: each is said") {
  if (DriverControl().Skips()) return;
  const auto executable = Load("sm_80").value();
  const auto failure = [&] { return Context::Create(executable).status(); };
  {
    const WithVariable none("INGOT_STANDIN_DEVICES", "0");
    CHECK(failure().code() == StatusCode::kNotFound);
    CHECK_MESSAGE(failure().message().starts_with("shift: cuda: no GPU: CUDA_ERROR_NO_DEVICE"), failure().message());
  }
  {
    const WithVariable old("INGOT_STANDIN_DRIVER", "11010");
    CHECK(failure().code() == StatusCode::kNotFound);
    CHECK(failure().message() == "shift: cuda: the driver is one for CUDA 11.1; CUDA 11.2 or later is needed");
  }
  {
    const WithVariable older("INGOT_STANDIN_DRIVER", "11080");
    CHECK(failure().code() == StatusCode::kUnsupportedFile);
    const std::string wanted = "cuda:0: the driver, one for CUDA 11.8, is too old for the code (PTX 8.0): CUDA_ERROR_";
    CHECK_MESSAGE(failure().message().find(wanted) != std::string::npos, failure().message());
  }
  {
    const WithVariable small("INGOT_STANDIN_MEMORY", "4096");  // the constant takes 8,000
    CHECK(failure().code() == StatusCode::kOutOfMemory);
    CHECK_MESSAGE(failure().message().find("cuda:0: out of memory: ") != std::string::npos, failure().message());
  }
  CHECK(LiveObjects() == 0);
  CHECK(Context::Create(executable).ok());
}

TEST_CASE("cuda programs: the program's devices say whether it is for a GPU, with kernels or without") {
  const auto program = [](const std::string& devices, const std::string& place) {
    return Assemble(StrCat({"ingot 1\n", devices, "function @main export [n in 0..1000](x: int64[n]", place,
                            ") -> (y: int64[n]", place, ") {\nregister r2: owned int64[n]", place,
                            "\nalloc_output r2, 0, [n]\ncopy_into r2, r1\nreturn [r2]\n}\n"}))
        .value();
  };
  const auto create = [](Program given, DeviceId device) {
    const auto executable =
        Executable::FromProgram(Instance::Create({}).value(), std::move(given), "copy", OpenOptions()).value();
    ContextOptions options;
    options.device = device;
    options.copies_tensors = true;
    return Context::Create(executable, options);
  };
  const DeviceId cpu{DeviceKind::kCpu, 0}, cuda{DeviceKind::kCuda, 0};
  const Program on_gpu = program("device \"cpu\" 0\ndevice \"cuda\" 0\n", "@1");
  const Program on_cpu = program("device \"cpu\" 0\n", "");
  const auto context = create(on_gpu, cuda).value();
  const Function& main = context->executable().program().functions[0];
  const std::vector<int64_t> numbers = Ascending(300);
  const Tensor y = std::get<Tensor>(context->Invoke(main, std::vector<Value>{Numbers(numbers)}).value()[0]);
  CHECK(std::ranges::equal(y.Elements<int64_t>(), numbers));
  CHECK(create(on_cpu, cpu).ok());
  CHECK(create(on_gpu, cpu).status().message() == "copy: there are no kernels for cpu; they are for CUDA");
  CHECK(create(on_cpu, cuda).status().message() == "copy: there are no kernels for cuda; they are for the CPU");
  // A GPU image alone does not make a program one for GPUs.
  Program with_image = on_cpu;
  with_image.images = MakeProgram("sm_80").value().images;
  CHECK(create(with_image, cuda).status().code() == StatusCode::kUnsupportedFile);
  CHECK(create(with_image, cpu).ok());
  Program on_second = on_gpu;
  on_second.devices[1].index = 1;
  const Status none = create(on_second, {DeviceKind::kCuda, INT32_MAX}).status();
  CHECK(none.code() == StatusCode::kNotFound);
  CHECK_MESSAGE(none.message() == "copy: there is no GPU 1 after 2147483647", none.message());
}

TEST_CASE("cuda programs: what is on a GPU is looked at for NaN, too") {
  const Program program = Assemble(
                              "ingot 1\ndevice \"cpu\" 0\ndevice \"cuda\" 0\n"
                              "function @main export (x: float32[4]@1) -> (y: float32[4]@1) {\n"
                              "register r1: owned float32[4]@1\nalloc_output r1, 0, [4]\ncopy_into r1, r0\n"
                              "return [r1]\n}\n")
                              .value();
  const auto executable = Executable::FromProgram(Instance::Create({}).value(), program, "copy", OpenOptions()).value();
  ContextOptions options;
  options.copies_tensors = true;
  const auto context = Context::Create(executable, options).value();
  const Tensor x = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{4});
  const auto call = [&] { return context->Invoke(executable->program().functions[0], std::vector<Value>{x}).status(); };
  std::ranges::fill(x.MutableElements<float>(), 1.0f);
  context->set_check_finite(true);
  CHECK(call().ok());
  x.MutableElements<float>()[2] = NAN;
  const Status found = call();
  CHECK(found.code() == StatusCode::kBadInput);
  CHECK_MESSAGE(found.message().find("element [2] is NaN") != std::string::npos, found.message());
  context->set_check_finite(false);
  CHECK(call().ok());
}

TEST_CASE("cuda programs: the cap of memory holds on the device") {
  ContextOptions options;
  options.max_memory_bytes = 20000;  // the constant takes 8,000, the arena 16,000, the workspace 8,000
  const auto context = Context::Create(Load("sm_80").value(), options).value();
  const Status status = RunOn(*context, Ascending(1000));
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK(RunOn(*context, Ascending(100)).ok());
  CHECK(context->bytes_in_use() == context->memory_stats(0).bytes_in_use + context->memory_stats(1).bytes_in_use);
  CHECK(context->bytes_in_use() > 8000);
  CHECK(context->peak_bytes_in_use() >= context->bytes_in_use());
  options.max_memory_bytes = 1000;
  CHECK(Context::Create(Load("sm_80").value(), options).status().code() == StatusCode::kOutOfMemory);
}

// Creates a context, calls it twice, and once more whatever the calls gave.
Status UseProgram(const std::shared_ptr<const Executable>& executable, bool fails_twice) {
  ContextOptions options;
  options.copies_tensors = true;
  Result<std::unique_ptr<Context>> context = Context::Create(executable, options);
  if (!context.ok()) return context.status();
  const Status first = RunOn(**context, Ascending(200));
  const Status second = RunOn(**context, Ascending(500));
  DriverControl().FailCall(0, 0, false);
  if (first.ok() && second.ok()) return Status();
  // Without the fault, the next call of the same context is right, unless the fault lost the GPU's context.
  const Status next = RunOn(**context, Ascending(300));
  CHECK_MESSAGE(next.ok() != fails_twice, next.ToString());
  return first.ok() ? second : first;
}

void CheckFaults(Form form) {
  const auto executable = Load("sm_80", false, "cuda", form).value();
  const DriverControl control;
  control.FailCall(0, 0, false);
  {
    ContextOptions options;
    options.copies_tensors = true;
    const auto context = Context::Create(executable, options).value();
    REQUIRE(RunOn(*context, Ascending(200)).ok());
    REQUIRE(RunOn(*context, Ascending(500)).ok());
  }
  const int64_t calls = control.Calls();
  REQUIRE(calls > 80);
  constexpr int kOutOfMemory = 2, kUnknown = 999, kIllegalAddress = 700;
  int64_t failed = 0;
  for (const int error : {kOutOfMemory, kUnknown, kIllegalAddress}) {
    for (const bool for_ever : {false, true}) {
      for (int64_t call = 1; call <= calls; ++call) {
        CAPTURE(call);
        CAPTURE(error);
        CAPTURE(for_ever);
        control.FailCall(call, error, for_ever);
        const Status status = UseProgram(executable, error == kIllegalAddress);
        control.FailCall(0, 0, false);
        if (!status.ok()) {
          ++failed;
          const bool is_expected = status.code() == StatusCode::kFailed || status.code() == StatusCode::kNotFound ||
                                   (status.code() == StatusCode::kOutOfMemory && error == kOutOfMemory);
          CHECK_MESSAGE(is_expected, status.ToString());
        }
        CHECK(LiveObjects() == 0);
      }
      CHECK(UseProgram(executable, false).ok());
    }
  }
  MESSAGE(calls << " calls, " << failed << " of " << 6 * calls << " runs failed, as they should");
}

TEST_CASE("cuda programs: each call of the driver fails, once and for ever after: a status, nothing left, then right") {
  if (DriverControl().Skips()) return;
  for (const Form form : {Form::kOnHost, Form::kOnDevice}) CheckFaults(form);
}

// What a caller has on the GPU: a block of its own device, at some offset.
Tensor OnDevice(Device& device, const std::vector<int64_t>& values, int64_t offset_bytes = 0) {
  const auto bytes = static_cast<int64_t>(values.size()) * 8;
  void* const block = device.Allocate(bytes + offset_bytes).value();
  void* const data = static_cast<std::byte*>(block) + offset_bytes;
  REQUIRE(device.CopyFromHost(data, values.data(), bytes, {}).ok());
  device.Retain();
  const auto free = [](void* context, void* memory, int64_t size) {
    const Ref<Device> owner = Ref<Device>::Adopt(static_cast<Device*>(context));
    owner->Free(memory, size);
  };
  auto storage = ingot::Storage::Wrap(block, bytes + offset_bytes, device.id(), free, &device).value();
  return Tensor::InStorage(std::move(storage), DataType::Int(64), std::vector{bytes / 8}, offset_bytes).value();
}

bool IsRight(const Context& context, Device& device, const Tensor& y, const std::vector<int64_t>& x) {
  std::vector<int64_t> values(x.size());
  REQUIRE(y.device() == device.id());
  REQUIRE(device.CopyToHost(values.data(), y.data(), y.size_bytes(), {}).ok());
  bool right = y.num_elements() == std::ssize(x);
  const std::vector<int64_t> factors = Factors();
  for (size_t i = 0; i < x.size(); ++i) right &= values[i] == Expected(context, x[i], factors[i]);
  return right;
}

TEST_CASE("cuda programs: tensors on the GPU go in and out without a copy, and outlive the context") {
  const std::vector<int64_t> numbers = Ascending(300);
  {
    const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
    Tensor y;
    {
      const auto context = Context::Create(Load("sm_80", false, "cuda", Form::kOnDevice).value()).value();
      const Function& main = context->executable().program().functions[0];
      const Tensor x = OnDevice(*device, numbers);
      const std::vector<Value> results = context->Invoke(main, std::vector<Value>{x}).value();
      y = std::get<Tensor>(results[0]);
      CHECK(IsRight(*context, *device, y, numbers));
      // Into the caller's tensor, which the kernels write themselves: the context allocates nothing.
      const Tensor out = OnDevice(*device, Ascending(300));
      const int64_t allocations = context->memory_stats(1).num_allocations;
      REQUIRE(context->InvokeInto(main, std::vector{x.view()}, std::vector{out.view()}).ok());
      CHECK(context->memory_stats(1).num_allocations == allocations);
      CHECK(IsRight(*context, *device, out, numbers));
      // Tensors that begin where kernels do not expect it are copied on the GPU.
      const Tensor shifted = OnDevice(*device, numbers, 8), shifted_out = OnDevice(*device, Ascending(300), 8);
      REQUIRE(context->InvokeInto(main, std::vector{shifted.view()}, std::vector{shifted_out.view()}).ok());
      CHECK(IsRight(*context, *device, shifted_out, numbers));
      const Status overlap = context->InvokeInto(main, std::vector{x.view()}, std::vector{x.view()});
      CHECK(overlap.code() == StatusCode::kBadInput);
    }
    // As DLPack into another context.
    const auto other = Context::Create(Load("sm_80", false, "cuda", Form::kOnDevice).value()).value();
    ingot_dl_managed_tensor_versioned* const managed = ExportDLPackVersioned(std::exchange(y, Tensor())).value();
    CHECK(managed->dl_tensor.device.device_type == INGOT_DL_CUDA);
    CHECK(managed->dl_tensor.device.device_id == 0);
    const Tensor again = ImportDLPack(managed).value();
    std::vector<int64_t> once(numbers.size());
    const std::vector<int64_t> factors = Factors();
    for (size_t i = 0; i < once.size(); ++i) once[i] = Expected(*other, numbers[i], factors[i]);
    const Function& main = other->executable().program().functions[0];
    const std::vector<Value> results = other->Invoke(main, std::vector<Value>{again}).value();
    CHECK(IsRight(*other, *device, std::get<Tensor>(results[0]), once));
  }
  CHECK(LiveObjects() == 0);
}

TEST_CASE("cuda programs: tensors that are elsewhere are refused by name, or copied where the context is asked to") {
  const std::vector<int64_t> numbers = Ascending(300);
  const Ref<Device> device = CreateCudaDevice(0, CudaOptions()).value();
  const auto executable = Load("sm_80", false, "cuda", Form::kOnDevice).value();
  const Function& main = executable->program().functions[0];
  const Tensor on_host = Numbers(numbers), host_out = Numbers(numbers);
  const Tensor on_device = OnDevice(*device, numbers), device_out = OnDevice(*device, numbers);
  {
    const auto context = Context::Create(executable).value();
    const Status refused = context->Invoke(main, std::vector<Value>{on_host}).status();
    CHECK(refused.code() == StatusCode::kBadInput);
    const std::string wanted = "expected int64[n]@1, got int64[300] on cpu, and the parameter is on cuda";
    CHECK_MESSAGE(refused.message().find(wanted) != std::string::npos, refused.message());
    const Status out = context->InvokeInto(main, std::vector{on_device.view()}, std::vector{host_out.view()});
    CHECK(out.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(out.message().find("the tensor is on cpu") != std::string::npos, out.message());
  }
  ContextOptions options;
  options.copies_tensors = true;
  const auto context = Context::Create(executable, options).value();
  CHECK(RunOn(*context, numbers).ok());
  const std::vector<int64_t> factors = Factors();
  const auto is_right = [&](const Tensor& y) {
    const auto values = y.Elements<int64_t>();
    bool right = values.size() == numbers.size();
    for (size_t i = 0; i < values.size(); ++i) right &= values[i] == Expected(*context, numbers[i], factors[i]);
    return right;
  };
  REQUIRE(context->InvokeInto(main, std::vector{on_device.view()}, std::vector{host_out.view()}).ok());
  CHECK(is_right(host_out));
  REQUIRE(context->InvokeInto(main, std::vector{on_host.view()}, std::vector{device_out.view()}).ok());
  CHECK(IsRight(*context, *device, device_out, numbers));
  // Every second element.
  std::vector<int64_t> spread(600);
  for (size_t i = 0; i < numbers.size(); ++i) spread[2 * i] = numbers[i];
  const std::vector<int64_t> dims{300}, strides{2};
  const Tensor wide = Numbers(spread), wide_out = Numbers(spread);
  const auto every_second = [&](const Tensor& tensor) {
    return TensorView::Make(tensor.data(), DataType::Int(64), dims, strides.data(), tensor.device()).value();
  };
  REQUIRE(context->InvokeInto(main, std::vector{every_second(wide)}, std::vector{every_second(wide_out)}).ok());
  bool right = true;
  for (size_t i = 0; i < numbers.size(); ++i)
    right &= wide_out.Elements<int64_t>()[2 * i] == Expected(*context, numbers[i], factors[i]);
  CHECK(right);
  const Tensor wide_on_device = OnDevice(*device, spread);
  const Status strided =
      context->InvokeInto(main, std::vector{every_second(wide_on_device)}, std::vector{host_out.view()});
  CHECK(strided.code() == StatusCode::kBadInput);
  CHECK_MESSAGE(strided.message().find("a tensor on cuda is strided") != std::string::npos, strided.message());
  // A program that has its tensors on the host takes those of the GPU likewise.
  const auto of_host = Context::Create(Load("sm_80").value(), options).value();
  const Function& host_main = of_host->executable().program().functions[0];
  const auto into_device = [&] {
    return of_host->InvokeInto(host_main, std::vector{on_device.view()}, std::vector{device_out.view()});
  };
  REQUIRE(into_device().ok());
  CHECK(IsRight(*of_host, *device, device_out, numbers));
  // The last call of the driver that may fail is to wait: copies have ended when the call returns, not only begun.
  const DriverControl control;
  if (!control.IsStandIn()) return;
  control.FailCall(0, 0, false);
  REQUIRE(into_device().ok());
  Status waiting;
  for (int64_t call = control.Calls(); waiting.ok() && call > 0; --call) {
    control.FailCall(call, 999, false);
    waiting = into_device();
  }
  control.FailCall(0, 0, false);
  CHECK_MESSAGE(waiting.message().find("cuStreamSynchronize") != std::string::npos, waiting.message());
}

TEST_CASE("cuda programs: a kernel's rounds run as often as its record says, and a deadline ends them") {
  const auto run = [](int64_t count, double deadline) -> Result<std::vector<int64_t>> {
    INGOT_ASSIGN_OR_RETURN(Program program, MakeProgram("sm_80", "cuda", Form::kLoop));
    for (vm::Kernel& kernel : program.kernels) {
      for (size_t i = 0; i < kernel.launches.size(); ++i) {
        kernel.launches[i].sizes.insert(kernel.launches[i].sizes.end(), {DimCode(count), DimCode(int64_t(i))});
      }
    }
    INGOT_ASSIGN_OR_RETURN(auto instance, Instance::Create({}));
    OpenOptions open;
    open.trust = Trust::kFile;
    INGOT_ASSIGN_OR_RETURN(const auto executable,
                           Executable::FromProgram(std::move(instance), std::move(program), "shift", open));
    ContextOptions options;
    options.copies_tensors = true;
    INGOT_ASSIGN_OR_RETURN(const auto context, Context::Create(executable, options));
    context->set_deadline(deadline);
    INGOT_ASSIGN_OR_RETURN(const std::vector<Value> results,
                           context->Invoke(executable->program().functions[1],
                                           std::vector<Value>{Numbers(Ascending(64)), Value(int64_t{1})}));
    const auto y = std::get<Tensor>(results[0]).Elements<int64_t>();
    return std::vector<int64_t>(y.begin(), y.end());
  };
  const std::vector<int64_t> factors = Factors(), y = run(3, 0).value();
  REQUIRE(y.size() == 64);
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (static_cast<int64_t>(i) + kBy) * factors[i]);
  const std::clock_t start = std::clock();
  CHECK(run(int64_t{1} << 40, 0.1).status().code() == StatusCode::kDeadlineExceeded);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 0.4);
  CHECK(run(0, 0).ok());  // whose results are what the memory has
  const Status negative = run(-1, 0).status();
  CHECK(negative.code() == StatusCode::kInvalidArgument);
  CHECK_MESSAGE(negative.message().find("rounds") != std::string::npos, negative.message());
}

TEST_CASE("cuda programs: a deadline ends a long sequence of launches soon, and the next call is right") {
  const auto executable = Load("sm_80", false, "cuda", Form::kLoop).value();
  ContextOptions options;
  options.copies_tensors = true;
  const auto context = Context::Create(executable, options).value();
  const Function& loop = executable->program().functions[1];
  const std::vector<int64_t> x = Ascending(64);
  const auto call = [&](int64_t times) { return context->Invoke(loop, std::vector<Value>{Numbers(x), Value(times)}); };
  context->set_deadline(0.1);
  const std::clock_t start = std::clock();  // of the processor, whatever else it does
  const Status late = call(int64_t{1} << 40).status();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(late.code() == StatusCode::kDeadlineExceeded);
  CHECK_MESSAGE(seconds < 0.4, seconds << " seconds");  // of which the last 64 launches take milliseconds
  context->set_deadline(0);
  const Tensor y = std::get<Tensor>(call(100).value()[0]);
  const std::vector<int64_t> factors = Factors();
  bool right = true;
  for (size_t i = 0; i < x.size(); ++i) right &= y.Elements<int64_t>()[i] == (x[i] + kBy) * factors[i];
  CHECK(right);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    context->Cancel();
  });
  CHECK(call(int64_t{1} << 40).status().code() == StatusCode::kCancelled);
  canceller.join();
  CHECK(RunOn(*context, Ascending(200)).ok());
}

std::string DeviceFinding(const std::string& architecture) {
  const Program program = MakeProgram(architecture).value();
  const SharedBytes bytes = SharedBytes::Own(EncodeProgram(program).value());
  const formats::Container container = formats::Container::Open(bytes).value();
  DoctorOptions options;
  options.file = bytes.bytes;
  for (const Finding& finding : Diagnose(container, program, options)) {
    if (finding.what != "device" || finding.needs.starts_with("cpu")) continue;
    return StrCat({finding.needs, " | ", finding.has, " | ", finding.verdict == StatusCode::kOk ? "fine" : "not here"});
  }
  return "no finding";
}

TEST_CASE("cuda programs: the doctor says which GPU and driver a file needs, and what is there") {
  if (DriverControl().Skips()) return;
  const std::string needs = "cuda 0: sm_80 or later and a driver for CUDA 12.0 or later | ";
  const std::string has = "stand-in sm_80, compute capability 8.0, driver for CUDA ";
  CHECK(DeviceFinding("sm_80") == needs + has + "12.4 | fine");
  const std::string of_90 = "cuda 0: sm_90 or later and a driver for CUDA 12.0 or later | " + has;
  CHECK(DeviceFinding("sm_90") == of_90 + "12.4, without code for kernel \"shift\" | not here");
  const std::string exact = "cuda 0: sm_90a and a driver for CUDA 12.0 or later | " + has;
  CHECK(DeviceFinding("sm_90a") == exact + "12.4, without code for kernel \"shift\" | not here");
  {
    const WithVariable old("INGOT_STANDIN_DRIVER", "11080");
    CHECK(DeviceFinding("sm_80") == needs + has + "11.8, without code for kernel \"shift\" | not here");
  }
  const WithVariable none("INGOT_STANDIN_DEVICES", "0");
  CHECK(DeviceFinding("sm_80").starts_with(needs + "cuda: no GPU: CUDA_ERROR_NO_DEVICE"));
  CHECK(LiveObjects() == 0);
}

TEST_CASE("cuda programs: stubs, which run on the host, are refused") {
  for (const char* kind : {"cuda", "cuda:0"}) CHECK_FALSE(Load("sm_80", true, kind).ok());
}

}  // namespace
}  // namespace ingot::vm
