// The smallest kernel image: an ELF header, one program header, and machine code. For tests that need native code
// without a compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "vm/program/kernel_image.h"

namespace ingot::test {

inline constexpr uint64_t kElfCodeOffset = 64 + 56;

inline std::vector<std::byte> MakeElfImage(std::initializer_list<int> code) {
  std::vector<std::byte> out;
  const auto put = [&](uint64_t value, int size) {
    for (int i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  const uint64_t size = kElfCodeOffset + code.size();
  put(0x464c457f, 4);  // magic
  put(2, 1);           // 64 bits
  put(1, 1);           // little-endian
  put(1, 1);
  put(0, 8);
  put(0, 1);
  put(3, 2);  // ET_DYN
  put(vm::HostElfMachine(), 2);
  put(1, 4);
  put(0, 8);   // entry
  put(64, 8);  // program headers
  put(0, 8);
  put(0, 4);
  put(64, 2);
  put(56, 2);
  put(1, 2);  // one of them
  put(0, 6);
  put(1, 4);  // PT_LOAD
  put(5, 4);  // R + X
  put(0, 8);
  put(0, 8);
  put(0, 8);
  put(size, 8);
  put(size, 8);
  put(4096, 8);
  for (int byte : code) out.push_back(static_cast<std::byte>(byte));
  return out;
}

// c := a + b for 16 floats, three buffers; x86-64 with SSE.
inline std::vector<std::byte> Add16Image() {
  return MakeElfImage({0x48, 0x8b, 0x3e, 0x48, 0x8b, 0x46, 0x08, 0x48, 0x8b, 0x56, 0x10, 0x31, 0xc9, 0x0f,
                       0x10, 0x04, 0x0f, 0x0f, 0x10, 0x0c, 0x08, 0x0f, 0x58, 0xc1, 0x0f, 0x11, 0x04, 0x0a,
                       0x48, 0x83, 0xc1, 0x10, 0x48, 0x83, 0xf9, 0x40, 0x75, 0xe7, 0x31, 0xc0, 0xc3});
}

inline std::string ToHex(const std::vector<std::byte>& bytes) {
  std::string out;
  for (std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[std::to_integer<int>(byte) >> 4];
    out += kDigits[std::to_integer<int>(byte) & 15];
  }
  return out;
}

// A program whose function main(x: float32[16]) -> (y: float32[16]) doubles x by this image.
inline std::string Add16Program() {
  return R"(ingot 1
metadata "producer" = "test"
image "baseline" elf ")" +
         std::string(vm::HostArchitecture()) + R"(" features 0x0 = hex ")" + ToHex(Add16Image()) + R"("
kernel @add {
  in a: float32[16] align 4
  in b: float32[16] align 4
  out c: float32[16] align 4
  variant image 0 offset 0x78 entry "add" features 0x0
}
function @main export (x: float32[16]) -> (y: float32[16]) {
  register r1: float32[16]
  alloc_output r1, 0, [16]
  note "add"
  call_kernel @add, [r0, r0, r1], []
  return [r1]
}
)";
}

}  // namespace ingot::test
