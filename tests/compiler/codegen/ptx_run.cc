// From a tensor function to PTX, from there to results or to what ptxas says.
#include "tests/compiler/codegen/ptx_run.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"

namespace ingot::codegen::testing {
namespace {

Result<ptx::LaunchConfig> ConfigOf(const PtxLaunch& launch, const std::vector<int64_t>& ints) {
  ptx::LaunchConfig config;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(config.grid[i], launch.grid[i].Evaluate(ints));
    INGOT_ASSIGN_OR_RETURN(config.block[i], launch.block[i].Evaluate(ints));
  }
  return config;
}

std::string PtxasPath() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
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
  for (const PtxLaunch& launch : image.kernels[0].launches) {
    INGOT_ASSIGN_OR_RETURN(const ptx::LaunchConfig config, ConfigOf(launch, ints));
    if (std::ranges::find(config.grid, 0) != std::end(config.grid)) continue;
    INGOT_ASSIGN_OR_RETURN(const ptx::LaunchCounts counts, machine.Launch(module, launch.entry, config, words));
    all.warp_instructions += counts.warp_instructions;
    all.global_requests += counts.global_requests;
    all.global_sectors += counts.global_sectors;
    all.shared_requests += counts.shared_requests;
    all.shared_wavefronts += counts.shared_wavefronts;
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

void CheckPtxasTakes(std::vector<KernelSource> sources) {
  // In bytes of a thread. ptxas keeps so much of a few kernels in memory while it leaves registers unused (32 of 255 in
  // one of them): its own choice, not a want of registers.
  constexpr int kMostSpilled = 16;
  for (size_t i = 0; i < sources.size(); ++i) sources[i].name = "k" + std::to_string(i);
  for (const char* sm : {"sm_80", "sm_90"}) {
    CAPTURE(std::string(sm));
    const Result<PtxImage> image = CompilePtx(sources, Sm(sm));
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    const Assembled made = Assemble(image->ptx, sm);
    CHECK_MESSAGE(made.is_ok, made.errors);
    CHECK(made.launches >= std::ssize(sources));
    CHECK(made.most_spilled <= kMostSpilled);
    MESSAGE(std::string(sm), ": ", made.launches, " launches, at most ", made.most_registers, " registers, ",
            made.most_spilled, " bytes spilled");
  }
}

}  // namespace ingot::codegen::testing
