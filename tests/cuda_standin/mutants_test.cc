// Kernels with one mistake each: a barrier or a wait left out, a bound shifted by one, lanes or fragments permuted.
// Each mutant has to fail or to compute something wrong; those that mean the same as the kernel are listed with the
// reason.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cuda_standin/kernel_cases.h"

namespace ingot::ptx {
namespace {

struct Mutant {
  std::string text;
  std::string what;  // the mistake, with the line
};

// The module with all kernels but one taken out, so that a mutant is parsed quickly.
std::string Isolated(const std::string& module, const std::string& kernel) {
  const size_t header = module.find(".address_size 64") + 16;
  const size_t entry = module.find(".visible .entry " + kernel + "(");
  REQUIRE(entry != std::string::npos);
  return module.substr(0, header) + "\n" + module.substr(entry, module.find("\n}\n", entry) + 3 - entry);
}

// Swaps the first two registers of the list-th vector of an instruction.
std::string SwapInVector(std::string line, int list) {
  size_t open = std::string::npos;
  for (int k = 0; k <= list; ++k) open = line.find('{', open + 1);
  if (open == std::string::npos) return "";
  const size_t comma = line.find(',', open), close = line.find('}', open);
  if (comma == std::string::npos || comma > close) return "";
  const size_t second_end = std::min(line.find(',', comma + 1), close);
  const std::string first = line.substr(open + 1, comma - open - 1),
                    second = line.substr(comma + 1, second_end - comma - 1);
  if (first == second) return "";
  return line.substr(0, open + 1) + second + ", " + first + line.substr(second_end);
}

std::vector<Mutant> MutantsOf(const std::string& text) {
  std::vector<Mutant> mutants;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    const auto add = [&](const std::string& what, const std::string& instead) {
      mutants.push_back(
          {text.substr(0, start) + instead + text.substr(end),
           what + " in line " +
               std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(start), '\n')) + ":" +
               line});
    };
    const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
    for (const char* dropped : {"bar.sync", "cp.async.wait_group", "cp.async.commit_group", "bar.warp.sync"}) {
      if (has(dropped)) add("left out", "");
    }
    constexpr const char* kBounds[][2] = {{".lt.", ".le."}, {".le.", ".lt."}, {".gt.", ".ge."}, {".ge.", ".gt."}};
    for (const auto& bound : kBounds) {
      if (!has("setp") || !has(bound[0]) || has(".f32")) continue;
      std::string shifted = line;
      add("bound shifted", shifted.replace(line.find(bound[0]), 4, bound[1]));
    }
    if (has("mma.sync") || has("ldmatrix")) {
      for (int list = 0; list < 4; ++list) {
        const std::string swapped = SwapInVector(line, list);
        if (!swapped.empty()) add("fragment permuted (list " + std::to_string(list) + ")", swapped);
      }
    }
    if (has("shfl.sync")) {  // shfl.sync.KIND.b32 d|p, a, AMOUNT, c, m: the lane is another one
      size_t comma = line.find(',');
      comma = line.find(',', comma + 1);
      const size_t digits = comma + 2, after = line.find(',', digits);
      std::string moved = line;
      if (std::isdigit(static_cast<unsigned char>(line[digits])) != 0) {
        add("lane moved", moved.replace(digits, after - digits, std::to_string(std::atoi(line.c_str() + digits) ^ 3)));
      }
    }
    start = end + 1;
  }
  return mutants;
}

// Mutants that mean the same: of which kernel, what its description contains, and why.
struct Equivalent {
  const char *kernel, *what, *why;
};
constexpr Equivalent kEquivalents[] = {
    // The first three copies of the unrolled body never meet the last step: "is there another one" always holds, and
    // the wait of the last step is not reached.
    {"mma_matmul", "line 158:", "step + 1 < steps holds with <=, too, where step is no last one"},
    {"mma_matmul", "line 231:", "the same, second copy"},
    {"mma_matmul", "line 301:", "the same, third copy"},
    {"mma_matmul", "line 194:", "in the block of the last step, first copy"},
    {"mma_matmul", "line 264:", "the same, second copy"},
    {"mma_matmul", "line 336:", "the same, third copy"},
    // row < m: m is a multiple of 32, and no block has rows from m on.
    {"mma_matmul", "line 583:", "no row is m"},
    {"mma_matmul", "line 596:", "no row is m"},
};

const Equivalent* FindEquivalent(const std::string& kernel, const std::string& what) {
  for (const Equivalent& known : kEquivalents) {
    if (kernel == known.kernel && what.find(known.what) != std::string::npos) return &known;
  }
  return nullptr;
}

TEST_CASE("ptx of nvcc: the kernels that have mutants are right as they are") {
  for (const KernelCase& kernel : KernelCases()) {
    CAPTURE(std::string(kernel.kernel));
    Machine machine({.count_accesses = true});
    const Result<ModuleId> module = machine.LoadModule(ReadData("kernels_nvcc_sm_80.ptx"));
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    const Status status = kernel.run(machine, *module);
    CHECK_MESSAGE(status.ok(), status.message());
    const KernelFacts facts = machine.Facts(*module, kernel.kernel).value();
    std::string lines;
    for (const int line : facts.lines_not_run) lines += " " + std::to_string(line);
    CHECK_MESSAGE(static_cast<int64_t>(facts.lines_not_run.size()) == kernel.dead_blocks,
                  "blocks that do not run:" << lines);
  }
}

TEST_CASE("ptx: mutants of kernels are caught") {
  const std::string module_text = ReadData("kernels_nvcc_sm_80.ptx");
  int64_t made = 0, equivalent = 0;
  for (const KernelCase& kernel : KernelCases()) {
    for (const Mutant& mutant : MutantsOf(Isolated(module_text, kernel.kernel))) {
      Machine machine({.instruction_limit = 2000000});
      const Result<ModuleId> module = machine.LoadModule(mutant.text);
      REQUIRE_MESSAGE(module.ok(), std::string(mutant.what) << ": " << module.status().message());
      ++made;
      const bool caught = !kernel.run(machine, *module).ok();
      const Equivalent* known = FindEquivalent(kernel.kernel, mutant.what);
      if (known != nullptr) {
        ++equivalent;
        CHECK_MESSAGE(!caught, std::string(kernel.kernel) << ": is caught, and so not equivalent: " << mutant.what);
      } else {
        CHECK_MESSAGE(caught, std::string(kernel.kernel) << ": not caught: " << mutant.what);
      }
    }
  }
  MESSAGE(made << " mutants, " << equivalent << " of them equivalent");
}

}  // namespace
}  // namespace ingot::ptx
