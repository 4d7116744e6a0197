// Program: an executable as decoded from its file, or as the compiler or assembler builds it: metadata, functions
// with their bytecode and memory plans, kernel descriptors, kernel images, constants, externals, debug map. Plain
// data, in table order; deterministic to encode (vm/program/program_codec.h). Nothing here is proved:
// vm/verify/verifier.h does that, and only a verified Program is linked and run.
//
// Slots. In a function, registers [0, S) are the signature's S symbols (int, bound at entry, never written), then
// come the P parameters, then the rest. A DimCode in an instruction has register numbers as slots; one in the
// memory plan or in a register's type has symbols as slots, which are the same numbers. In a kernel descriptor the
// slots are the kernel's integer arguments.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/sha256.h"
#include "runtime/data_type.h"
#include "runtime/dim_code.h"
#include "runtime/shared_bytes.h"
#include "vm/program/ids.h"
#include "vm/program/instruction.h"
#include "vm/program/type.h"

namespace ingot::vm {

// The kind of devices that launch kernels from PTX images and hold copies of constants.
inline constexpr char kCudaDevice[] = "cuda";

// A virtual device; a context binds it to a real one of this kind. Device 0 is where parameters and results are.
struct VirtualDevice {
  std::string kind = "cpu";
  int32_t index = 0;  // tells devices of one kind apart
  friend bool operator==(const VirtualDevice&, const VirtualDevice&) = default;
};

// A slot of an arena. Live from instruction `first` up to and including `last`; every instruction that touches a
// view of it must lie in there, and two entries live at the same time may not overlap, unless one is declared as an
// alias of the other: an alias lies inside its root's memory and live range (in-place results).
struct PlanEntry {
  uint32_t arena = 0;  // index into MemoryPlan::arenas
  DimCode offset;      // bytes; a multiple of 64
  DimCode size;        // bytes
  uint32_t first = 0;
  uint32_t last = 0;
  std::optional<PlanEntryId> alias_of;  // a root: an earlier entry that is no alias itself
  friend bool operator==(const PlanEntry&, const PlanEntry&) = default;
};

struct Arena {
  uint8_t device = 0;  // virtual device; at most one arena each
  DimCode size;        // bytes: the peak
  friend bool operator==(const Arena&, const Arena&) = default;
};

struct MemoryPlan {
  std::vector<Arena> arenas;
  std::vector<PlanEntry> entries;
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// From this instruction up to the next note the code comes from this source operation.
struct DebugNote {
  uint32_t instruction = 0;
  std::string text;
  friend bool operator==(const DebugNote&, const DebugNote&) = default;
};

struct Function {
  std::string name;       // unique in the program
  bool exported = false;  // callable from outside by its name
  Signature signature;
  std::vector<Type> registers;  // of the frame: symbols, parameters, the rest
  const Type& TypeOf(RegisterId id) const { return registers[id.value]; }
  std::vector<Instruction> code;
  MemoryPlan plan;
  std::vector<DebugNote> notes;  // ascending
  friend bool operator==(const Function&, const Function&) = default;
};

enum class ParamRole : uint8_t { kIn = 0, kOut = 1, kInOut = 2 };
const char* ParamRoleName(ParamRole role);

struct KernelParam {
  std::string name;
  ParamRole role = ParamRole::kIn;
  DataType dtype;
  std::vector<DimCode> extents;      // over the integer arguments
  int64_t alignment = 64;            // bytes that the code assumes; a power of two <= 64
  std::optional<uint32_t> in_place;  // kOut only: the kIn parameter whose memory it may share
  friend bool operator==(const KernelParam&, const KernelParam&) = default;
};

// An integer argument of a kernel: a symbolic variable (int64) or a scalar; a float's bits in its own width.
struct KernelInt {
  std::string name;
  DataType dtype = DataType::Int(64);
  friend bool operator==(const KernelInt&, const KernelInt&) = default;
};

// One launch of a variant on a device that launches kernels. Where the grid is empty, nothing is launched.
inline constexpr size_t kNumLaunchSizes = 7, kNumLaunchSizesInRounds = 9;
struct LaunchRecord {
  uint32_t variant = 0;  // index into Kernel::variants
  std::string entry;     // of the variant's image
  // Over the kernel's integer arguments: the grid's three, the block's three, bytes of shared memory. Of launches that run
  // in rounds two more: how many rounds, and the launch's number in each. Those that follow the one of number 0 belong to
  // its rounds; the kernel's code gets the round's number behind its other words.
  std::vector<DimCode> sizes;
  friend bool operator==(const LaunchRecord&, const LaunchRecord&) = default;
};

// The kernel's code: at `offset`, the virtual address of its entry, in an ELF image; in an image for a GPU, the
// entries that its launches name.
struct KernelVariant {
  uint32_t image = 0;
  uint64_t offset = 0;
  std::string entry;               // the symbol's name; empty: for a GPU
  uint64_t required_features = 0;  // bits of runtime/cpu_features.h; all must be there
  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
};

// What a kernel call may do besides writing its out parameters, as bits; a pure kernel has none.
enum KernelEffect : uint32_t { kEffectReadsState = 1, kEffectWritesState = 2, kEffectIo = 4, kEffectMayFail = 8 };
constexpr uint32_t kAllEffects = 15;

struct Kernel {
  std::string name;  // unique in the program
  uint8_t device = 0;
  std::vector<KernelParam> params;
  std::vector<KernelInt> ints;
  DimCode workspace;  // bytes
  DimCode flops;      // cost estimates per call
  DimCode bytes;
  uint32_t effects = 0;
  std::vector<LaunchRecord> launches;   // of variants for a GPU, in the order in which they run
  std::vector<KernelVariant> variants;  // best first; empty: only the stub exists (such a program runs on stubs)
  std::vector<ExternalId> externals;    // call_external's index -> external function
  std::vector<std::string> messages;    // of assertions
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// kElf: of CPUs. kPtx: text that a GPU's driver compiles, for the architecture and later ones. kCubin: machine code, for
// the architecture and those that differ from it in a later minor version alone.
enum class ImageFormat : uint8_t { kElf = 0, kPtx = 1, kCubin = 2 };

struct KernelImage {
  std::string name;  // such as "x86-64-v3"
  ImageFormat format = ImageFormat::kElf;
  std::string arch;       // such as "x86_64", "aarch64", "sm_90"
  uint64_t features = 0;  // what its code was compiled for
  SharedBytes bytes;
  std::optional<uint64_t> file_offset;  // set by the loader when the bytes lie raw and page-aligned in the mapped file
};

struct External {
  std::string name;
  Signature signature;
  uint32_t effects = 0;
  friend bool operator==(const External&, const External&) = default;
};

// Names a result of a function of the program that takes no arguments, has no jumps and calls builtins only.
struct PreparedBy {
  FunctionId function;
  uint32_t result = 0;
  friend bool operator==(const PreparedBy&, const PreparedBy&) = default;
};

struct Constant {
  std::string name;  // the weight's name, for people; may be empty
  DataType dtype;
  std::vector<int64_t> dims;
  SharedBytes bytes;  // compact, row-major, little-endian; none of a prepared one
  // Computed once per executable, before its first context runs (vm/run/prepared_constants.h).
  std::optional<PreparedBy> prepared_by;

  int64_t size_bytes() const;  // of verified dims
};

// A file of weights beside the executable.
struct WeightFile {
  std::string path;   // relative to the executable's folder, and inside of it
  uint64_t size = 0;  // bytes
  uint64_t hash = 0;  // XXH3-64 of all of them
  formats::Sha256Digest sha256{};
  friend bool operator==(const WeightFile&, const WeightFile&) = default;
};

// A constant that can be replaced by its name when the file is opened (vm/program/weights.h): nothing was computed from
// its elements when the program was made.
struct Weight {
  ConstantId constant;
  std::optional<uint32_t> file;  // where the elements are, from `offset` on; the constant has no bytes then
  uint64_t offset = 0;
  friend bool operator==(const Weight&, const Weight&) = default;
};

// How a state is filled step by step, as a key/value cache is: dims[axis] is its capacity, and `length`, an int64 state
// of rank 0, says how many of these elements are filled. Those behind it have no meaning.
struct StateGrowth {
  uint8_t axis = 0;
  StateId length;
  friend bool operator==(const StateGrowth&, const StateGrowth&) = default;
};

// A tensor that a context keeps between invocations.
struct State {
  std::string name;
  DataType dtype;
  std::vector<int64_t> dims;
  uint8_t device = 0;
  std::optional<ConstantId> initial;  // zeros otherwise
  std::optional<StateGrowth> growth;
  friend bool operator==(const State&, const State&) = default;
};

struct Program {
  std::map<std::string, std::string> metadata;  // producer, source hash, flags, target, ...
  std::vector<VirtualDevice> devices{VirtualDevice{}};
  std::vector<Function> functions;
  std::vector<Kernel> kernels;
  std::vector<KernelImage> images;
  std::vector<External> externals;
  std::vector<Constant> constants;
  std::vector<State> states;
  std::vector<WeightFile> weight_files;
  std::vector<Weight> weights;  // ascending by constant

  const Function* FindFunction(std::string_view name) const;
};

}  // namespace ingot::vm
