// Caps on what a file may ask for. They bound the memory and time that loading takes, whatever the bytes are; all of
// them are far above what real models need.
#pragma once

#include <cstdint>

namespace ingot::vm {

inline constexpr int kMaxTensorRank = 8;
inline constexpr int kMaxTypeDepth = 16;
inline constexpr int64_t kMaxTypeWeight = 512;  // types and formula steps that one type is made of
// The heap for reading a file (reading_heap.h), and to how many bytes its compressed tables may decompress: an amount
// that every file has, and an amount for each of its bytes, up to a maximum. The tables that the compiler writes take
// 14 to 24 bytes per byte.
inline constexpr int64_t kFreeBytes = 1 << 20;
inline constexpr int64_t kBytesPerByte = 64;
inline constexpr int64_t kMaxReadingHeap = int64_t{1} << 32;
inline constexpr int64_t kMaxDevices = 64;
inline constexpr int64_t kMaxFunctions = 1 << 20;
inline constexpr int64_t kMaxRegisters = 1 << 20;   // per function
inline constexpr int64_t kMaxFrameWords = 1 << 21;  // 16 MiB of 8-byte words per activation
inline constexpr int64_t kMaxKernelParams = 256;
inline constexpr int64_t kMaxArenaBytes = int64_t{1} << 46;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;
// Work of the written/released analysis: bits kept per function, and visits per basic block.
inline constexpr int64_t kMaxFlowBits = int64_t{1} << 31;
inline constexpr int64_t kMaxFlowVisitsPerBlock = 64;
// Memory alignment of plan entries, and the largest that kernels may assume.
inline constexpr int64_t kPlanAlignment = 64;
// Caps at run time.
inline constexpr int64_t kMaxBoundDim = int64_t{1} << 60;  // of an argument, which may have no elements
inline constexpr int64_t kMaxCallDepth = 10'000;
inline constexpr int64_t kMaxStackWords = 1 << 24;  // 128 MiB of frames

}  // namespace ingot::vm
