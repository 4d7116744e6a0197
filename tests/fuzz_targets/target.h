// What the fuzz targets share. A target is one function over any bytes, which libFuzzer calls (the preset `fuzz`) and
// which replay.cc calls with the files of tests/data/fuzz/TARGET. It ends normally whatever the bytes are, within the
// time and memory that replay.cc allows; INGOT_CHECK ends it where something does not hold that holds of every input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/check.h"
#include "runtime/shared_bytes.h"
#include "vm/program/program.h"
#include "vm/run/executable.h"

// In the ordinary build the targets lie in one program, and CMake gives each function a name of its own.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ingot::fuzz {

inline std::string_view TextOf(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// An exact copy of the bytes lets sanitizers see reads beyond their end.
inline std::vector<std::byte> CopyOf(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  return {begin, begin + size};
}
inline SharedBytes SharedCopyOf(const uint8_t* data, size_t size) { return SharedBytes::Own(CopyOf(data, size)); }

// One instance of one thread, for all inputs.
std::shared_ptr<vm::Instance> TheInstance();

// Calls every exported function for which arguments can be made, under a deadline, fuel and a memory cap.
void RunFunctions(const std::shared_ptr<const vm::Executable>& executable);

// What the constants of a program take. They may be far larger than its file (compressed, or zeros); a target passes
// over programs with more than kMaxConstantBytes of them.
inline constexpr uint64_t kMaxConstantBytes = 16 << 20;
uint64_t ConstantBytes(const vm::Program& program);

}  // namespace ingot::fuzz
