// From a tensor function to PTX, from there to results or to what ptxas says.
#include "tests/compiler/codegen/ptx_run.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "compiler/interp/interpreter.h"
#include "compiler/op/reference.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/target/cuda.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/ptx_audit.h"

namespace ingot::codegen::testing {
namespace {

Result<ptx::LaunchConfig> ConfigOf(const PtxLaunch& launch, const std::vector<int64_t>& ints) {
  ptx::LaunchConfig config;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(config.grid[i], launch.grid[i].Evaluate(ints));
    INGOT_ASSIGN_OR_RETURN(config.block[i], launch.block[i].Evaluate(ints));
  }
  config.shared_bytes = launch.shared_bytes;
  return config;
}

}  // namespace

Target Sm(const char* name) { return ParseTarget(std::string("cuda:") + name)->variants.at(0); }

Result<KernelSource> SourceOf(const ir::PrimFunc& function, const Target& target) {
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(function, target));
  INGOT_ASSIGN_OR_RETURN(ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  INGOT_ASSIGN_OR_RETURN(KernelDescription description, DescribeKernel("kernel", function));
  return KernelSource{"kernel", std::move(lowered), std::move(description)};
}

Result<ptx::LaunchCounts> RunImage(const KernelSource& source, const PtxImage& image, op::KernelArguments& arguments,
                                   const ptx::MachineOptions& options) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, op::IntsOf(source.lowered, arguments));
  ptx::Machine machine(options);
  const bool is_exact = image.ptx.find(".target sm_90a") != std::string::npos;
  const int64_t most_shared_bytes = CudaSharedBytes(Sm(is_exact ? "sm_90a" : "sm_80"));
  ptx::LaunchCounts all;
  INGOT_ASSIGN_OR_RETURN(const ptx::ModuleId module, machine.LoadModule(image.ptx));
  const auto allocate = [&](int64_t bytes) { return machine.Allocate(std::max<int64_t>(bytes, 1)); };
  ptx::Arguments words;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < arguments.bytes.size(); ++i) {
    const op::Bytes& bytes = arguments.bytes[i];
    INGOT_ASSIGN_OR_RETURN(const uint64_t address, allocate(std::ssize(bytes)));
    if (i < arguments.num_inputs) INGOT_RETURN_IF_ERROR(machine.Write(address, bytes.data(), std::ssize(bytes)));
    words.Add(address);
    addresses.push_back(address);
  }
  for (const int64_t value : ints) words.Add(value);
  INGOT_ASSIGN_OR_RETURN(const int64_t workspace_bytes, image.kernels[0].workspace.Evaluate(ints));
  INGOT_ASSIGN_OR_RETURN(const uint64_t workspace, allocate(workspace_bytes));
  const std::array<int64_t, 3> no_failure{};
  INGOT_ASSIGN_OR_RETURN(const uint64_t failure, allocate(sizeof no_failure));
  INGOT_RETURN_IF_ERROR(machine.Write(failure, no_failure.data(), sizeof no_failure));
  words.Add(workspace).Add(failure);
  const auto launch_one = [&](const PtxLaunch& launch, const ptx::Arguments& arguments_of_one) -> Status {
    INGOT_ASSIGN_OR_RETURN(const ptx::LaunchConfig config, ConfigOf(launch, ints));
    if (std::ranges::find(config.grid, 0) != std::end(config.grid)) return Status();
    INGOT_ASSIGN_OR_RETURN(const ptx::LaunchCounts counts,
                           machine.Launch(module, launch.entry, config, arguments_of_one, most_shared_bytes));
    all.warp_instructions += counts.warp_instructions;
    all.global_requests += counts.global_requests;
    all.global_sectors += counts.global_sectors;
    all.shared_requests += counts.shared_requests;
    all.shared_wavefronts += counts.shared_wavefronts;
    return Status();
  };
  const std::vector<PtxLaunch>& launches = image.kernels[0].launches;
  for (size_t first = 0, end = 0; first < launches.size(); first = end) {
    end = first + 1;
    if (!launches[first].rounds) {
      INGOT_RETURN_IF_ERROR(launch_one(launches[first], words));
      continue;
    }
    while (end < launches.size() && launches[end].rounds && launches[end].number_in_round > 0) ++end;
    INGOT_ASSIGN_OR_RETURN(const int64_t rounds, launches[first].rounds->Evaluate(ints));
    for (int64_t round = 0; round < rounds; ++round) {
      ptx::Arguments of_round = words;
      of_round.Add(round);
      for (size_t i = first; i < end; ++i) INGOT_RETURN_IF_ERROR(launch_one(launches[i], of_round));
    }
  }
  for (const PtxLaunch& launch : launches) {
    INGOT_ASSIGN_OR_RETURN(const ptx::KernelFacts facts, machine.Facts(module, launch.entry));
    NoteBlocks(image.ptx, facts);
  }
  std::array<int64_t, 3> failed{};
  INGOT_RETURN_IF_ERROR(machine.Read(failed.data(), failure, sizeof failed));
  if (failed != no_failure) return Status(StatusCode::kFailed, "the kernel failed");
  for (size_t i = arguments.num_inputs; i < arguments.bytes.size(); ++i) {
    op::Bytes& bytes = arguments.bytes[i];
    INGOT_RETURN_IF_ERROR(machine.Read(bytes.data(), addresses[i], std::ssize(bytes)));
  }
  return all;
}

op::KernelArguments SmallIntegers(const SizedFunction& sized, uint64_t seed) {
  op::KernelArguments arguments{{}, {}, sized.dims.size() - 1};
  for (size_t i = 0; i < sized.dims.size(); ++i) {
    std::mt19937_64 generator(seed * 8 + i);
    op::ReferenceTensor tensor = op::NewReference(sized.dtypes[i], sized.dims[i]);
    const int64_t count = op::CountOf(sized.dims[i]), least = sized.dtypes[i].is_uint() ? 0 : -2;
    for (int64_t e = 0; i + 1 < sized.dims.size() && e < count; ++e) {
      op::SetNumber(tensor, e, static_cast<double>(least + static_cast<int64_t>(generator() % 5)));
    }
    const std::vector<std::byte> packed = op::PackReference(tensor);
    arguments.tensors.push_back(std::move(tensor));
    arguments.bytes.emplace_back(packed.begin(), packed.end());
  }
  std::ranges::fill(arguments.bytes.back(), std::byte{0xaa});
  return arguments;
}

Result<op::Bytes> InterpretedResult(const SizedFunction& sized, op::KernelArguments arguments) {
  std::vector<interp::HostBuffer> buffers;
  for (size_t i = 0; i < sized.dims.size(); ++i) {
    buffers.push_back({sized.dtypes[i], sized.dims[i], arguments.bytes[i], i < arguments.num_inputs});
  }
  INGOT_RETURN_IF_ERROR(interp::Interpret(sized.function, buffers, {}, {.check_races = false}));
  return std::move(arguments.bytes.back());
}

std::string KeepsAway(const ir::PrimFunc& function, const std::string& rule, const std::string& block) {
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(function, Sm("sm_80"));
  if (!scheduled.ok()) return std::string(scheduled.status().message());
  for (const schedule::RuleAnswer& answer : scheduled->answers) {
    if (answer.rule != rule || answer.block != block) continue;
    return answer.is_scheduled() ? "" : answer.why_not();
  }
  return "nobody asked it";
}

std::string Wrong(const SizedFunction& sized, op::KernelArguments arguments, const op::Bytes& expected,
                  std::vector<KernelSource>& sources) {
  const Result<KernelSource> source = SourceOf(sized.function, Sm("sm_80"));
  if (!source.ok()) return std::string(source.status().message());
  const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
  if (!image.ok()) return std::string(image.status().message());
  sources.push_back(*source);
  const Result<ptx::LaunchCounts> counts = RunImage(*source, *image, arguments);
  if (!counts.ok()) return std::string(counts.status().message());
  return std::ranges::equal(arguments.bytes.back(), expected) ? "" : "another result";
}

std::string WrongBesideInterpreter(const SizedFunction& sized, uint64_t seed, std::vector<KernelSource>& sources) {
  const op::KernelArguments arguments = SmallIntegers(sized, seed);
  const Result<op::Bytes> expected = InterpretedResult(sized, arguments);
  if (!expected.ok()) return std::string(expected.status().message());
  return Wrong(sized, arguments, *expected, sources);
}

int64_t BlocksLeftOut(const std::function<SizedFunction(size_t)>& sized, size_t count, int64_t most) {
  const Result<KernelSource> source = SourceOf(sized(0).function, Sm("sm_80"));
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  std::vector<std::string> blocks;
  for (size_t i = 0; i < count && (i == 0 || std::ssize(blocks) > most); ++i) {
    op::KernelArguments arguments = SmallIntegers(sized(i), i);
    const Result<ptx::LaunchCounts> counts =
        RunImage(*source, *image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .check_races = false});
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    blocks = BlocksNotRun(image->ptx);
  }
  if (std::ssize(blocks) > most) {
    for (const std::string& block : blocks) MESSAGE(block);
  }
  return std::ssize(blocks);
}

Result<ptx::LaunchCounts> CountAccesses(const SizedFunction& sized, const std::vector<std::string>& without) {
  const Target target = Sm("sm_80");
  std::vector<schedule::ScheduleRule> rules;
  for (const schedule::ScheduleRule& each : schedule::DefaultRules(Target::Kind::kCuda)) {
    if (std::ranges::find(without, each.name) == without.end()) rules.push_back(each);
  }
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled,
                         schedule::ApplySchedule(sized.function, target, rules, {}));
  INGOT_ASSIGN_OR_RETURN(const KernelSource source, SourceOf(schedule::MarkScheduled(scheduled.function), target));
  INGOT_ASSIGN_OR_RETURN(const PtxImage image, CompilePtx({&source, 1}, target));
  op::KernelArguments arguments = SmallIntegers(sized, 1);
  return RunImage(source, image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .count_accesses = true});
}

std::string PtxasPath() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

bool HasPtxas() { return !PtxasPath().empty(); }

Assembled Assemble(const std::string& ptx, const std::string& sm) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ingot_ptx_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "kernels.ptx") << ptx;
  const std::string log = (folder / "log").string();
  const std::string command = PtxasPath() + " -v -arch=" + sm + " " + (folder / "kernels.ptx").string() + " -o " +
                              (folder / "cubin").string() + " >" + log + " 2>&1";
  Assembled made;
  made.is_ok = std::system(command.c_str()) == 0;
  std::ifstream file(log);
  std::string line;
  while (std::getline(file, line)) {
    if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos) made.errors += line + "\n";
    if (line.find("(C7") != std::string::npos) made.remarks += line + "\n";
    if (line.find("spill stores") != std::string::npos) {
      made.most_spilled = std::max(made.most_spilled, std::atoi(line.c_str() + line.find(',') + 1));
    }
    const size_t used = line.find("Used ");
    if (used == std::string::npos) continue;
    ++made.launches;
    made.most_registers = std::max(made.most_registers, std::atoi(line.c_str() + used + 5));
  }
  std::filesystem::remove_all(folder);
  return made;
}

void CompileForLater(std::vector<KernelSource> sources) {
  for (size_t i = 0; i < sources.size(); ++i) sources[i].name = "k" + std::to_string(i);
  const Result<PtxImage> image = CompilePtx(sources, Sm("sm_90"));
  CHECK_MESSAGE(image.ok(), image.status().message());
}

}  // namespace ingot::codegen::testing
