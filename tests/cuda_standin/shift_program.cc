// The texts of the kernels, in PTX, and of the functions, in the assembler's form.
#include "tests/cuda_standin/shift_program.h"

#include <numeric>

#include "runtime/text.h"
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

// The same for callers who have their tensors on the GPU: nothing is copied. One kernel call, of x and c.
constexpr char kOnDevice[] = R"(function @main export [n in 0..1000](x: int64[n]@1) -> (y: int64[n]@1) {
  register r2: constant int64[1000]@1
  register r3: int
  register r4: owned int64[n]@1
  const_tensor r2, #0
  const_int r3, 7
  alloc_output r4, 0, [n]
  call_kernel @shift, [r1, r2, r4], [r0, r3]
  return [r4]
}
)";

// Many launches that nobody waits for.
constexpr char kLoop[] = R"(function @loop export (x: int64[64]@1, times: int) -> (y: int64[64]@1) {
  register r2: constant int64[1000]@1
  register r3: int
  register r4: int
  register r5: owned int64[64]@1
  register r6: int
  register r7: bool
  const_tensor r2, #0
  const_int r3, 64
  const_int r4, 7
  const_int r6, 0
  alloc_output r5, 0, [64]
again:
  call_kernel @unchecked, [r0, r2, r5], [r3, r4]
  dim r6, r6 + 1
  test r7, r6 < r1
  branch r7, again, done
done:
  return [r5]
}
)";

std::string Hex(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<const unsigned char*>(bytes)[i];
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

void Replace(std::string& text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace

std::vector<int64_t> Factors() {
  std::vector<int64_t> factors(1000);
  std::iota(factors.begin(), factors.end(), 1);
  return factors;
}

Result<Program> MakeProgram(const std::string& architecture, const std::string& kind, Form form) {
  std::string text = kProgram;
  if (form != Form::kOnHost) text = text.substr(0, text.find("function @main")) + kOnDevice;
  if (form == Form::kLoop) {
    std::string kernel =
        text.substr(text.find("kernel @shift"), text.find("function @main") - text.find("kernel @shift"));
    Replace(kernel, "@shift", "@unchecked");
    Replace(kernel, "  effects may_fail\n", "");
    Replace(kernel, "  message \"no product is negative\"\n", "");
    text.insert(text.find("function @main"), kernel);
    text += kLoop;
  }
  Replace(text, "device \"cuda\"", "device \"" + kind + "\"");
  const std::vector<int64_t> factors = Factors();
  Replace(text, "CONSTANT", Hex(factors.data(), factors.size() * sizeof(int64_t)));
  const std::string ptx = Ptx();
  Replace(text, "PTX", Hex(ptx.data(), ptx.size()));
  Replace(text, "ARCH", architecture);
  return Assemble(text);
}

}  // namespace ingot::vm
