// Programs with kernels on the device cuda, from their text to their results, on the stand-in driver.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/text.h"
#include "tests/cuda_standin/standin_control.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

// shift_0: workspace[i] = x[i] + by. shift_1: y[i] = workspace[i] * c[i]; a negative product fails with assertion 0.
// A kernel's parameters are its buffers, its integers, the workspace and the record of a failure.
// What both begin with: %a0 is this thread's place in bytes, and threads behind the end leave.
constexpr char kBegin[] = R"((.param .u64 x, .param .u64 c, .param .u64 y, .param .s64 n, .param .s64 by,
    .param .u64 workspace, .param .u64 failure)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %a<8>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  cvt.s64.s32 %a0, %r3;
  ld.param.u64 %a1, [n];
  setp.ge.s64 %p, %a0, %a1;
  @%p ret;
  shl.b64 %a0, %a0, 3;
)";
constexpr char kShift0[] = R"(
  ld.param.u64 %a2, [x];
  add.s64 %a2, %a2, %a0;
  ld.global.u64 %a3, [%a2];
  ld.param.u64 %a4, [by];
  add.s64 %a3, %a3, %a4;
  ld.param.u64 %a5, [workspace];
  add.s64 %a5, %a5, %a0;
  st.global.u64 [%a5], %a3;
  ret;
}
)";
constexpr char kShift1[] = R"(
  ld.param.u64 %a2, [workspace];
  add.s64 %a2, %a2, %a0;
  ld.global.u64 %a3, [%a2];
  ld.param.u64 %a4, [c];
  add.s64 %a4, %a4, %a0;
  ld.global.u64 %a5, [%a4];
  mul.lo.s64 %a3, %a3, %a5;
  setp.lt.s64 %p, %a3, 0;
  @%p bra bad;
  ld.param.u64 %a6, [y];
  add.s64 %a6, %a6, %a0;
  st.global.u64 [%a6], %a3;
  ret;
bad:
  ld.param.u64 %a6, [failure];
  mov.u64 %a7, 0;
  st.global.u64 [%a6+8], %a7;
  st.global.u64 [%a6+16], %a3;
  mov.u32 %r0, 1;
  st.global.u32 [%a6], %r0;
  ret;
}
)";
std::string Ptx() {
  return StrCat({".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry shift_0", kBegin, kShift0,
                 ".visible .entry shift_1", kBegin, kShift1});
}

// x travels to the GPU, through two kernel calls, and back. `ARCH` is the image's architecture.
constexpr char kProgram[] = R"(ingot 1
device "cpu" 0
device "cuda" 0
constant "c" int64[1000] = hex "CONSTANT"
image "cuda" ptx "ARCH" features 0x0 = hex "PTX"
kernel @shift {
  int n: int64
  int by: int64
  in x: int64[n]
  in c: int64[1000]
  out y: int64[n]
  device 1
  workspace n * 8
  effects may_fail
  launch variant 0 entry "shift_0" grid [(n + 63) // 64, 1, 1] block [64, 1, 1] shared 0
  launch variant 0 entry "shift_1" grid [(n + 63) // 64, 1, 1] block [64, 1, 1] shared 0
  variant image 0 offset 0x0 entry "" features 0x0
  message "no product is negative"
}
function @main export [n in 0..1000](x: int64[n]) -> (y: int64[n]) {
  register r2: arena int64[n]@1
  register r3: arena int64[n]@1
  register r4: constant int64[1000]@1
  register r5: int
  register r6: owned int64[n]
  arena device 1, size 2 * ((n * 8 + 63) // 64 * 64)
  entry 0: arena 0, offset 0, size n * 8, live 0..8
  entry 1: arena 0, offset (n * 8 + 63) // 64 * 64, size n * 8, live 2..6
  plan_view r2, 0, [n]
  copy_into r2, r1
  plan_view r3, 1, [n]
  const_tensor r4, #0
  const_int r5, 7
  call_kernel @shift, [r2, r4, r3], [r0, r5]
  call_kernel @shift, [r3, r4, r2], [r0, r5]
  alloc_output r6, 0, [n]
  copy_into r6, r2
  return [r6]
}
)";

constexpr int64_t kBy = 7;

std::string Hex(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<const unsigned char*>(bytes)[i];
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

std::vector<int64_t> Factors() {
  std::vector<int64_t> factors(1000);
  std::iota(factors.begin(), factors.end(), 1);
  return factors;
}

void Replace(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

Result<std::shared_ptr<const Executable>> Load(const std::string& architecture, bool stubs = false,
                                               const std::string& kind = "cuda") {
  std::string text = kProgram;
  Replace(text, "device \"cuda\"", "device \"" + kind + "\"");
  const std::vector<int64_t> factors = Factors();
  Replace(text, "CONSTANT", Hex(factors.data(), factors.size() * sizeof(int64_t)));
  const std::string ptx = Ptx();
  Replace(text, "PTX", Hex(ptx.data(), ptx.size()));
  Replace(text, "ARCH", architecture);
  INGOT_ASSIGN_OR_RETURN(Program program, Assemble(text));
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

Status RunOn(Context& context, const std::vector<int64_t>& x) {
  const Function& main = context.executable().program().functions[0];
  INGOT_ASSIGN_OR_RETURN(const std::vector<Value> results, context.Invoke(main, std::vector<Value>{Numbers(x)}));
  const auto y = std::get<Tensor>(results[0]).Elements<int64_t>();
  REQUIRE(y.size() == x.size());
  const std::vector<int64_t> factors = Factors();
  bool right = true;
  for (size_t i = 0; i < y.size(); ++i) right &= y[i] == ((x[i] + kBy) * factors[i] + kBy) * factors[i];
  CHECK(right);
  return Status();
}

std::vector<int64_t> Ascending(int64_t count) {
  std::vector<int64_t> x(static_cast<size_t>(count));
  std::iota(x.begin(), x.end(), 0);
  return x;
}

int64_t LiveObjects() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  return reinterpret_cast<decltype(standin_live_objects)*>(dlsym(library, "standin_live_objects"))();
}

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

TEST_CASE("cuda programs: observers see kernels that have ended") {
  const auto context = Context::Create(Load("sm_80").value()).value();
  int kernels = 0;
  context->set_profiler([&](const Event& event) { kernels += std::string_view(event.name) == "shift" ? 1 : 0; });
  CHECK(RunOn(*context, Ascending(500)).ok());
  CHECK(kernels == 2);
}

TEST_CASE("cuda programs: code for another architecture is refused with what is there") {
  for (const char* architecture : {"sm_90", "sm_90a", "sm_100", "x86_64", "sm_", "sm_80x"}) {
    CAPTURE(architecture);
    const Status status = Context::Create(Load(architecture).value()).status();
    CHECK(status.code() == StatusCode::kUnsupportedFile);
    const std::string needs = StrCat({"kernel \"shift\": it needs ", architecture, "; cuda is "});
    CHECK_MESSAGE(status.message().find(needs) != std::string::npos, status.message());
  }
  CHECK(Context::Create(Load("sm_75").value()).ok());
}

TEST_CASE("cuda programs: the cap of memory holds on the device") {
  ContextOptions options;
  options.max_memory_bytes = 20000;  // the constant takes 8,000, the arena 16,000, the workspace 8,000
  const auto context = Context::Create(Load("sm_80").value(), options).value();
  const Status status = RunOn(*context, Ascending(1000));
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK(RunOn(*context, Ascending(100)).ok());
  options.max_memory_bytes = 1000;
  CHECK(Context::Create(Load("sm_80").value(), options).status().code() == StatusCode::kOutOfMemory);
}

TEST_CASE("cuda programs: stubs, which run on the host, are refused") {
  for (const char* kind : {"cuda", "cuda:0"}) CHECK_FALSE(Load("sm_80", true, kind).ok());
}

}  // namespace
}  // namespace ingot::vm
