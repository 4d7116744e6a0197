#include "tests/cuda_standin/machine.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>

#include "tests/cuda_standin/decoder.h"
#include "tests/cuda_standin/golden_launches.h"
#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/ptx_parser.h"
#include "tests/cuda_standin/special_registers.h"

namespace ingot::ptx {
namespace {

// CUDA C++ Programming Guide, technical specifications per compute capability.
constexpr ArchitectureLimits kLimits[] = {
    {80, 1024, 49152, 166912, 167936, 65536, 108},  {86, 1024, 49152, 101376, 102400, 65536, 84},
    {89, 1024, 49152, 101376, 102400, 65536, 128},  {90, 1024, 49152, 232448, 233472, 65536, 132},
    {100, 1024, 49152, 232448, 233472, 65536, 148}, {120, 1024, 49152, 101376, 102400, 65536, 170},
};

// Between the variables of shared memory.
constexpr int64_t kGapBytes = 64;

int64_t AlignedTo(int64_t offset, int64_t align) { return (offset + align - 1) / align * align; }

}  // namespace

struct Machine::LoadedModule {
  std::string text;
  Module module;
  Symbols symbols;
  std::vector<Program> programs;  // per function; empty where it has no body
  SharedLayout layout;
  int granule = 4;
  std::map<std::string, uint64_t> blocks;  // .global and .const variables

  // Null of what is no kernel.
  const Program* FindKernel(std::string_view name) const {
    const auto index = symbols.functions.find(name);
    if (index == symbols.functions.end()) return nullptr;
    const Program& program = programs[static_cast<size_t>(index->second)];
    return program.function != nullptr && program.function->is_entry ? &program : nullptr;
  }

  // What the kernel has of shared memory before any is asked for: the variables that it names, or all of them where it
  // calls functions.
  int64_t StaticSharedBytes(const Program& kernel) const {
    const auto calls = [](const Instruction& instruction) { return instruction.flow == Flow::kCall; };
    if (std::ranges::any_of(kernel.instructions, calls)) return layout.static_bytes;
    int64_t bytes = 0;
    const auto add = [&](const ptx::Variable& variable) {
      bytes = AlignedTo(bytes, variable.align) + variable.size_bytes;
    };
    for (const ptx::Variable& variable : module.variables) {
      if (variable.space == Space::kShared && kernel.named_variables.contains(variable.name)) add(variable);
    }
    for (const ptx::Variable& variable : kernel.function->variables) {
      if (variable.space == Space::kShared) add(variable);
    }
    return bytes;
  }
};

int SpecialRegisterNumber(std::string_view name) {
  for (size_t k = 0; k < std::size(kSpecialRegisters); ++k) {
    if (name == kSpecialRegisters[k]) return static_cast<int>(k);
  }
  return -1;
}

uint64_t Warp::SpecialLane(int number, int lane) const {
  const LaunchConfig& config = block_.launch.config;
  const int64_t thread = index_ * kLanes + lane;
  const int64_t tid[3] = {thread % config.block[0], thread / config.block[0] % config.block[1],
                          thread / config.block[0] / config.block[1]};
  const uint64_t below = (uint64_t{1} << lane) - 1, equal = uint64_t{1} << lane;
  if (number < 3) return static_cast<uint64_t>(tid[number]);
  if (number < 6) return static_cast<uint64_t>(config.block[number - 3]);
  if (number < 9) return static_cast<uint64_t>(block_.index[number - 6]);
  if (number < 12) return static_cast<uint64_t>(config.grid[number - 9]);
  switch (number) {
    case 12:
      return static_cast<uint64_t>(lane);
    case 13:
      return static_cast<uint64_t>(index_);
    case 14:
      return equal;
    case 15:
      return below;
    case 16:
      return below | equal;
    case 17:
      return ~(below | equal) & kAllLanes;
    case 18:
      return ~below & kAllLanes;
    case 19:
      return static_cast<uint64_t>(config.shared_bytes);
    case 20:
      return static_cast<uint64_t>(config.shared_bytes + block_.launch.shared_layout->static_bytes);
    default:
      return static_cast<uint64_t>((config.block[0] * config.block[1] * config.block[2] + kLanes - 1) / kLanes);
  }
}

const ArchitectureLimits* LimitsOf(int sm) {
  for (const ArchitectureLimits& limits : kLimits) {
    if (limits.sm == sm) return &limits;
  }
  return nullptr;
}

Machine::Machine(MachineOptions options)
    : options_(std::move(options)), limits_(LimitsOf(options_.sm)), memory_(options_.memory_bytes) {
  INGOT_CHECK(limits_ != nullptr, "an architecture without a row of limits");
}
Machine::~Machine() = default;

Machine::LoadedModule* Machine::Find(ModuleId module) const {
  const auto index = static_cast<size_t>(module);
  return module >= 0 && index < modules_.size() ? modules_[index].get() : nullptr;
}

// ---- loading

namespace {

// "sm_90" takes any architecture from 9.0 on, "sm_90a" exactly 9.0.
Status CheckTarget(const std::string& target, int sm) {
  const int asked = std::atoi(target.c_str() + std::min<size_t>(3, target.size()));
  const bool exact = target.ends_with('a');
  if (!target.starts_with("sm_") || asked > sm || (exact && asked != sm)) {
    return Status(StatusCode::kUnsupportedFile, {"ptx: target ", target, " on a device of architecture sm_", sm});
  }
  return Status();
}

// The widest granule that no access of the function, or of those that it may call, is narrower than.
int NarrowestAccess(const std::vector<Program>& programs) {
  int narrowest = 8;
  for (const Program& program : programs) {
    for (const Instruction& i : program.instructions) {
      const std::string& opcode = i.statement->opcode;
      const bool matrix =
          opcode.starts_with("wmma") || opcode.starts_with("ldmatrix") || opcode.starts_with("stmatrix");
      const bool async = opcode.starts_with("cp.async");
      if (i.element_bytes != 0 && i.space != Space::kParam && !opcode.starts_with("mov"))
        narrowest = std::min<int>(narrowest, i.element_bytes);
      if (matrix) narrowest = std::min(narrowest, 2);
      if (async) narrowest = std::min(narrowest, 4);
    }
  }
  return narrowest;
}

}  // namespace

Result<ModuleId> Machine::LoadModule(std::string_view text) {
  INGOT_ASSIGN_OR_RETURN(Module module, ParsePtx(text));
  INGOT_RETURN_IF_ERROR(CheckTarget(module.target, options_.sm));
  auto loaded = std::make_unique<LoadedModule>();
  loaded->text = text;
  loaded->module = std::move(module);
  Symbols& symbols = loaded->symbols;
  // Shared memory: every function may be called by every kernel, so that all share one layout.
  SharedLayout layout;
  const auto place_shared = [&](const ptx::Variable& variable) {
    layout.static_bytes = AlignedTo(layout.static_bytes, variable.align) + variable.size_bytes;
    layout.extent = AlignedTo(layout.extent, std::max<int64_t>(variable.align, 16));
    const int64_t offset = layout.extent;
    layout.objects.emplace_back(offset, variable.size_bytes);
    layout.extent = AlignedTo(offset + variable.size_bytes, 16) + kGapBytes;
    return static_cast<uint64_t>(offset);
  };
  std::vector<const ptx::Variable*> dynamic;
  for (const ptx::Variable& variable : loaded->module.variables) {
    if (variable.space == Space::kShared) {
      if (variable.is_extern || variable.size_bytes == 0) {
        dynamic.push_back(&variable);
      } else {
        symbols.module_variables[variable.name] = place_shared(variable);
      }
      continue;
    }
    if (variable.is_extern) return Status(StatusCode::kBadInput, {"ptx: ", variable.name, " is defined elsewhere"});
    INGOT_ASSIGN_OR_RETURN(const uint64_t address, memory_.Allocate(variable.size_bytes));
    symbols.module_variables[variable.name] = address;
    loaded->blocks[variable.name] = address;
  }
  for (const ptx::Variable& variable : loaded->module.variables) {
    if (variable.space == Space::kShared) continue;
    std::vector<uint8_t> bytes = variable.initial;
    bytes.resize(static_cast<size_t>(variable.size_bytes), 0);
    for (const Relocation& pointer : variable.pointers) {
      const auto symbol = symbols.module_variables.find(pointer.symbol);
      if (symbol == symbols.module_variables.end())
        return Status(StatusCode::kBadInput, {"ptx: no variable ", pointer.symbol});
      const uint64_t value = symbol->second + static_cast<uint64_t>(pointer.addend);
      std::memcpy(bytes.data() + pointer.offset, &value, sizeof(value));
    }
    const uint64_t address = symbols.module_variables[variable.name];
    INGOT_RETURN_IF_ERROR(memory_.Write(address, bytes.data(), variable.size_bytes));
    MemoryBlock* block = memory_.Find(address);
    if (block != nullptr) block->is_constant = variable.space == Space::kConst;
  }
  for (size_t k = 0; k < loaded->module.functions.size(); ++k) {
    const Function& function = loaded->module.functions[k];
    symbols.functions[function.name] = static_cast<int32_t>(k);
    for (const ptx::Variable& variable : function.variables) {
      if (variable.space == Space::kShared) symbols.function_variables[&variable] = place_shared(variable);
    }
  }
  int64_t alignment = 128;
  for (const ptx::Variable* variable : dynamic) alignment = std::max(alignment, variable->align);
  layout.extent = AlignedTo(layout.extent, alignment);
  for (const ptx::Variable* variable : dynamic)
    symbols.module_variables[variable->name] = static_cast<uint64_t>(layout.extent);
  for (const Function& function : loaded->module.functions) {
    if (!function.has_body) {
      loaded->programs.emplace_back();
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(Program program, Decode(loaded->module, function, symbols));
    loaded->programs.push_back(std::move(program));
  }
  loaded->layout = std::move(layout);
  loaded->granule = NarrowestAccess(loaded->programs);
  modules_.push_back(std::move(loaded));
  return static_cast<ModuleId>(modules_.size()) - 1;
}

Status Machine::UnloadModule(ModuleId module) {
  LoadedModule* loaded = Find(module);
  if (loaded == nullptr) return Status(StatusCode::kNotFound, "no such module");
  for (const auto& [name, address] : loaded->blocks) INGOT_RETURN_IF_ERROR(memory_.Free(address));
  modules_[static_cast<size_t>(module)].reset();
  return Status();
}

Result<std::vector<std::string>> Machine::Kernels(ModuleId module) const {
  const LoadedModule* loaded = Find(module);
  if (loaded == nullptr) return Status(StatusCode::kNotFound, "no such module");
  std::vector<std::string> names;
  for (const Function& function : loaded->module.functions) {
    if (function.is_entry && function.has_body) names.push_back(function.name);
  }
  return names;
}

Result<KernelFacts> Machine::Facts(ModuleId module, std::string_view kernel) const {
  const LoadedModule* loaded = Find(module);
  const Program* found = loaded == nullptr ? nullptr : loaded->FindKernel(kernel);
  if (found == nullptr) return Status(StatusCode::kNotFound, {"no kernel \"", kernel, "\""});
  const Program& program = *found;
  const Function* function = program.function;
  KernelFacts facts;
  facts.name = kernel;
  for (int k = 0; k < function->num_params; ++k)
    facts.param_sizes.push_back(function->variables[static_cast<size_t>(k)].size_bytes);
  facts.static_shared_bytes = loaded->StaticSharedBytes(program);
  facts.local_bytes = program.local_bytes;
  facts.max_threads = limits_->threads_per_block;
  for (const int64_t* sizes : {function->max_threads, function->required_threads}) {
    if (sizes[0] != 0) facts.max_threads = sizes[0] * sizes[1] * sizes[2];
  }
  facts.num_blocks = static_cast<int64_t>(program.block_starts.size());
  for (const int32_t start : program.block_starts) {
    const Instruction& first = program.instructions[static_cast<size_t>(start)];
    if (first.count == 0) facts.lines_not_run.push_back(first.statement->line);
  }
  return facts;
}

Result<std::pair<uint64_t, int64_t>> Machine::Variable(ModuleId module, std::string_view name) const {
  const LoadedModule* loaded = Find(module);
  if (loaded != nullptr) {
    for (const ptx::Variable& variable : loaded->module.variables) {
      const auto block = loaded->blocks.find(variable.name);
      if (variable.name == name && block != loaded->blocks.end()) return std::pair(block->second, variable.size_bytes);
    }
  }
  return Status(StatusCode::kNotFound, {"no variable \"", name, "\""});
}

// ---- launching

Status Machine::CheckLaunch(const LoadedModule& module, const Program& program, const LaunchConfig& config,
                            const Arguments& arguments, int64_t max_dynamic_shared) const {
  const Function& function = *program.function;
  const auto refuse = [&](Text why) {
    return Status(StatusCode::kInvalidArgument, {"launch of \"", function.name, "\": ", why});
  };
  constexpr int64_t kMaxBlock[3] = {1024, 1024, 64}, kMaxGrid[3] = {2147483647, 65535, 65535};
  int64_t threads = 1, blocks = 1;
  for (int k = 0; k < 3; ++k) {
    if (config.block[k] < 1 || config.block[k] > kMaxBlock[k])
      return refuse({"a block of ", config.block[k], " threads along an axis"});
    if (config.grid[k] < 1 || config.grid[k] > kMaxGrid[k])
      return refuse({"a grid of ", config.grid[k], " blocks along an axis"});
    threads *= config.block[k], blocks *= config.grid[k];
  }
  if (threads > limits_->threads_per_block) return refuse({threads, " threads in a block"});
  if (blocks >= int64_t{1} << 22) return refuse({blocks, " blocks: more than is executed here"});
  const int64_t* limit = function.required_threads[0] != 0 ? function.required_threads : function.max_threads;
  if (limit[0] != 0) {
    const bool fits = function.required_threads[0] != 0
                          ? config.block[0] == limit[0] && config.block[1] == limit[1] && config.block[2] == limit[2]
                          : threads <= limit[0] * limit[1] * limit[2];
    if (!fits) return refuse({threads, " threads in a block, which .maxntid or .reqntid forbids"});
  }
  const int64_t statics = module.StaticSharedBytes(program), shared = statics + config.shared_bytes;
  if (config.shared_bytes < 0 || statics > limits_->shared_bytes_default)
    return refuse({statics, " bytes of static shared memory"});
  const int64_t allowed =
      std::min(limits_->shared_bytes_optin, std::max(limits_->shared_bytes_default, statics + max_dynamic_shared));
  if (shared > allowed) return refuse({shared, " bytes of shared memory, of ", allowed, " allowed"});
  if (arguments.values().size() != static_cast<size_t>(function.num_params)) {
    return refuse({arguments.values().size(), " arguments, ", function.num_params, " expected"});
  }
  for (size_t k = 0; k < arguments.values().size(); ++k) {
    if (static_cast<int64_t>(arguments.values()[k].size()) != function.variables[k].size_bytes) {
      return refuse({"argument ", k, " has ", arguments.values()[k].size(), " bytes, ",
                     function.variables[k].size_bytes, " expected"});
    }
  }
  return Status();
}

Result<LaunchCounts> Machine::Launch(ModuleId module, std::string_view kernel, const LaunchConfig& config,
                                     const Arguments& arguments, int64_t max_dynamic_shared) {
  LoadedModule* loaded = Find(module);
  const Program* found = loaded == nullptr ? nullptr : loaded->FindKernel(kernel);
  if (found == nullptr) return Status(StatusCode::kNotFound, {"no kernel \"", kernel, "\""});
  const Program& program = *found;
  INGOT_RETURN_IF_ERROR(CheckLaunch(*loaded, program, config, arguments, max_dynamic_shared));
  std::vector<uint8_t> params;
  for (size_t k = 0; k < arguments.values().size(); ++k) {
    params.resize(static_cast<size_t>(program.variable_offsets[k]), 0);
    params.insert(params.end(), arguments.values()[k].begin(), arguments.values()[k].end());
  }

  GoldenLaunches* const golden = GoldenLaunches::Get();
  const LaunchedKernel launched{loaded->text, kernel, config, arguments.values(), loaded->blocks};
  const GoldenLaunches::Before before = golden != nullptr ? golden->Take(launched, memory_) : GoldenLaunches::Before();
  LaunchCounts counts;
  std::map<MemoryBlock*, std::vector<uint8_t>> first_results;
  const char* difference = nullptr;
  Status failure;
  for (size_t k = 0; k < options_.orders.size() && failure.ok(); ++k) {
    ptx::Launch launch;
    launch.program = &program;
    launch.programs = &loaded->programs;
    launch.memory = &memory_;
    launch.shared_layout = &loaded->layout;
    launch.config = config;
    launch.params = params;
    launch.order = options_.orders[k];
    launch.random = options_.seed * 0x9e3779b97f4a7c15u | 1;
    launch.check_races = options_.check_races && k == 0;
    launch.count_accesses = options_.count_accesses && k == 0;
    launch.granule_shift = std::countr_zero(static_cast<unsigned>(loaded->granule));
    launch.clock = clock_;
    launch.instruction_limit = options_.instruction_limit;
    launch.sm = options_.sm;
    launch.Run();
    clock_ = launch.clock + 1;
    if (launch.failed) {
      failure = Status(StatusCode::kFailed, {launch.error, k == 0 ? "" : " (with ",
                                             k == 0 ? "" : WarpOrderName(options_.orders[k]), k == 0 ? "" : ")"});
    }
    if (k == 0) counts = launch.counts;
    const bool last = k + 1 == options_.orders.size() || counts.float_atomics > 0;
    for (const auto& [address, block] : memory_.blocks()) {
      block->records.clear();
      if (!block->is_saved) continue;
      if (k == 0) {
        if (!last) first_results[block.get()] = block->data;
      } else if (first_results.count(block.get()) == 0 || first_results[block.get()] != block->data) {
        difference = WarpOrderName(options_.orders[k]);
      }
      if (!last) {  // the next order starts from the same memory
        std::swap(block->data, block->saved_data);
        std::swap(block->written, block->saved_written);
      }
      block->is_saved = false;
      block->saved_data = {}, block->saved_written = {};
    }
    if (difference != nullptr && failure.ok()) {
      failure = Status(StatusCode::kFailed,
                       {"kernel \"", kernel, "\": the results depend on the order of warps (", difference, ")"});
    }
    if (last) break;
  }
  if (!failure.ok()) return failure;
  if (golden != nullptr) INGOT_RETURN_IF_ERROR(golden->Check(launched, before, memory_));
  return counts;
}

}  // namespace ingot::ptx
