// What the default schedule puts in registers stays there: no loop of multiply-adds stores or loads a vector of its own on
// the stack, which halves its speed, and vectors that are dealt out to every s-th place are joined before they are stored.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/kernels/show_kernels.h"
#include "compiler/schedule/default_schedule.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::driver {
namespace {

struct Loops {
  int count = 0;
  std::string spilling;  // the first one that spills
};

// The innermost loops of some assembly that have four or more multiply-adds.
Loops LoopsOfMultiplyAdds(const std::string& assembly) {
  static const std::regex kLabel(R"((\.L\w+):.*)"), kJump(R"(\s+j\w+\s+(\.L\w+).*)");
  Loops loops;
  std::map<std::string, size_t> labels;
  std::vector<std::string> lines;
  size_t innermost = 0;  // loops that begin before this line contain another one
  std::istringstream text(assembly);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    std::smatch match;
    if (std::regex_match(line, match, kLabel)) labels[match[1]] = lines.size();
    if (!std::regex_match(line, match, kJump) || !labels.contains(match[1]) || labels[match[1]] < innermost) continue;
    innermost = lines.size();
    int multiply_adds = 0;
    bool spills = false;
    std::string body;
    for (size_t i = labels[match[1]]; i < lines.size(); ++i) {
      multiply_adds += lines[i].find("vfmadd") != std::string::npos ? 1 : 0;
      spills |= lines[i].find("(%rsp)") != std::string::npos && lines[i].find("mm") != std::string::npos;
      body += lines[i] + "\n";
    }
    if (multiply_adds < 4) continue;
    ++loops.count;
    if (spills && loops.spilling.empty()) loops.spilling = body;
  }
  return loops;
}

TEST_CASE("register tiles of any height stay in registers") {
  namespace functions = schedule::testing;
  std::vector<int64_t> heights = {24, 32, 40, 64, 128};
  for (int64_t height = 1; height <= 18; ++height) heights.push_back(height);
  for (const char* level : {"cpu:x86-64-v3", "cpu:x86-64-v4"}) {
    const Target target = ParseTarget(level)->variants[0];
    for (const int64_t height : heights) {
      const ir::PrimExpr m = ir::Int64(height), k = ir::Int64(72), n = ir::Int64(784);
      const std::pair<const char*, ir::PrimFunc> products[] = {
          {"conv", functions::Conv(ir::Int64(1), 64, 28, height, 1, 1, 0)},
          {"dense", functions::Dense(m, k, n, true)},
          {"batched", functions::BatchedMatmul(ir::Int64(3), m, k, n)}};
      for (const auto& [name, function] : products) {
        CAPTURE(level);
        CAPTURE(height);
        CAPTURE(name);
        ir::IRModule module;
        module.Add(name, function);
        const Result<std::string> assembly =
            kernels::EmitAssembly(module, target, kernels::AssemblyKind::kAssembly, {});
        REQUIRE_MESSAGE(assembly.ok(), assembly.status().message());
        const Loops loops = LoopsOfMultiplyAdds(*assembly);
        CHECK((loops.count > 0 || height == 1));
        CHECK_MESSAGE(loops.spilling.empty(), loops.spilling);
      }
    }
  }
}

// The lanes that a mask leaves out would keep what the register held in the iteration before, at first anything: denormals
// there make each instruction many times slower.
TEST_CASE("no register brings lanes that nobody wrote into an iteration") {
  namespace functions = schedule::testing;
  const ir::PrimExpr m = ir::MakePrimVar("m"), k = ir::MakePrimVar("k"), n = ir::MakePrimVar("n");
  const std::pair<const char*, ir::PrimFunc> symbolic[] = {
      {"dense", functions::Dense(m, ir::Int64(64), n, true)}, {"batched", functions::BatchedMatmul(m, k, k, n)},
      {"grouped", functions::GroupedConv(4, 8, 8, n)},        {"windows", functions::WindowMax(m, 2, n)},
      {"long_windows", functions::WindowMax(m, 20, n)},       {"softmax", functions::Softmax(m, n)},
      {"pixels", functions::MeanOfPixels(k, m, n)},           {"row_sum", functions::RowSum(m, n)}};
  static const std::regex kUnwritten(R"(phi <[^>]*> [^\n]*\[ (undef|poison),)");
  for (const char* level : {"cpu:x86-64-v3", "cpu:x86-64-v4"}) {
    const Target target = ParseTarget(level)->variants[0];
    for (const auto& [name, function] : symbolic) {
      CAPTURE(level);
      CAPTURE(name);
      ir::IRModule module;
      module.Add(name, function);
      const Result<std::string> llvm = kernels::EmitAssembly(module, target, kernels::AssemblyKind::kLlvm, {});
      REQUIRE_MESSAGE(llvm.ok(), llvm.status().message());
      std::smatch found;
      CHECK_MESSAGE(!std::regex_search(*llvm, found, kUnwritten), found.str());
    }
  }
}

TEST_CASE("interleaved elements are stored side by side, in rows of known and of symbolic length") {
  namespace functions = schedule::testing;
  const Target target = ParseTarget("cpu:x86-64-v3")->variants[0];
  for (const ir::PrimExpr& columns : {ir::PrimExpr(ir::Int64(96)), ir::PrimExpr(ir::MakePrimVar("n"))}) {
    ir::IRModule module;
    module.Add("interleave", functions::Interleave(2, 0, columns));
    const Result<std::string> llvm = kernels::EmitAssembly(module, target, kernels::AssemblyKind::kLlvm, {});
    REQUIRE_MESSAGE(llvm.ok(), llvm.status().message());
    CHECK(llvm->find("store <16 x float>") != std::string::npos);
    CHECK(llvm->find("extractelement") == std::string::npos);
  }
}

}  // namespace
}  // namespace ingot::driver
