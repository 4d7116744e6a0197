// Products of bytes and of pairs of 16 bits take the instructions that CPUs have for them: the loops of their kernels
// hold nothing else that multiplies, their elements are not put together one by one, and the default target has variants
// for the CPUs with such instructions.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "compiler/driver/compile.h"
#include "compiler/kernels/show_kernels.h"
#include "compiler/script/parser.h"
#include "runtime/cpu_features.h"

namespace ingot::driver {
namespace {

// A convolution of 64 channels of images of 14 x 14.
std::string ConvolutionOf(const std::string& op, const std::string& data, const std::string& words,
                          const std::string& edge) {
  return "from tvm.script import ir as I\nfrom tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n"
         "    @R.function\n    def main(x: R.Tensor((1, 4, 14, 14, 16), dtype=\"" +
         data + "\"), w: R.Tensor((4, 4, 3, 3, " + words +
         ", 16), dtype=\"int32\")) -> R.Tensor((1, 4, 14, 14, 16), dtype=\"int32\"):\n"
         "        with R.dataflow():\n            gv = R.nn.conv2d_" +
         op + "(x, w" + edge + ", padding=[1, 1, 1, 1])\n            R.output(gv)\n        return gv\n";
}
std::string Bytes() { return ConvolutionOf("bytes", "uint8", "4", ", R.const(7, \"uint8\")"); }
std::string Pairs() { return ConvolutionOf("pairs", "int16", "8", ""); }

// A product of 33 rows, of 80 words each, by a weight of 40 columns in panels.
std::string Panels() {
  return "from tvm.script import ir as I\nfrom tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n"
         "    @R.function\n    def main(x: R.Tensor((33, 80), dtype=\"int32\"), w: R.Tensor((3, 80, 16), "
         "dtype=\"int32\")) -> R.Tensor((33, 40), dtype=\"int32\"):\n        with R.dataflow():\n"
         "            gv = R.matmul_bytes(x, w, units=40)\n            R.output(gv)\n        return gv\n";
}

ir::IRModule ModuleOf(const std::string& text) {
  Result<ir::IRModule> module = script::ParseModule(text, "convolution.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  return *std::move(module);
}

// The innermost loops that hold the instruction four times or more.
std::vector<std::string> LoopsOf(const std::string& assembly, const std::string& instruction) {
  static const std::regex kLabel(R"((\.L\w+):.*)"), kJump(R"(\s+j\w+\s+(\.L\w+).*)");
  std::vector<std::string> loops, lines;
  std::map<std::string, size_t> labels;
  size_t innermost = 0;
  std::istringstream text(assembly);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    std::smatch match;
    if (std::regex_match(line, match, kLabel)) labels[match[1]] = lines.size();
    if (!std::regex_match(line, match, kJump) || !labels.contains(match[1]) || labels[match[1]] < innermost) continue;
    innermost = lines.size();
    int count = 0;
    std::string body;
    for (size_t i = labels[match[1]]; i < lines.size(); ++i) {
      count += lines[i].find(instruction) != std::string::npos ? 1 : 0;
      body += lines[i] + "\n";
    }
    if (count >= 4) loops.push_back(std::move(body));
  }
  return loops;
}

TEST_CASE("products of integers are loops of the instructions that multiply several at once") {
  struct Form {
    const char* target;
    std::string text;
    const char* instruction;
  };
  for (const auto& [target, text, instruction] :
       {Form{"cpu:x86-64-v4,+avx512vnni", Bytes(), "vpdpbusd"}, Form{"cpu:x86-64-v3,+avxvnni", Bytes(), "vpdpbusd"},
        Form{"cpu:x86-64-v4,+avx512vnni", Pairs(), "vpdpwssd"}, Form{"cpu:x86-64-v3", Bytes(), "vpmaddwd"},
        Form{"cpu:x86-64-v3", Pairs(), "vpmaddwd"}, Form{"cpu:sapphirerapids", Panels(), "tdpbusd"}}) {
    CAPTURE(target);
    CAPTURE(instruction);
    CompileOptions options;
    options.target = ParseTarget(target).value();
    const Result<ir::IRModule> optimised = OptimizeModule(ModuleOf(text), options, {});
    REQUIRE_MESSAGE(optimised.ok(), optimised.status().message());
    const Result<std::string> assembly =
        kernels::EmitAssembly(*optimised, options.target.variants[0], kernels::AssemblyKind::kAssembly, {});
    REQUIRE_MESSAGE(assembly.ok(), assembly.status().message());
    const std::vector<std::string> loops = LoopsOf(*assembly, instruction);
    CHECK(!loops.empty());
    for (const std::string& loop : loops) {
      for (const char* slow : {"movzbl", "movswl", "vpinsr", "vpmulld"}) {
        CHECK_MESSAGE(loop.find(slow) == std::string::npos, loop);
      }
    }
  }
}

TEST_CASE("kernels that multiply bytes or pairs have variants for the CPUs with instructions for them") {
  for (const std::string& text : {Bytes(), Pairs(), Panels()}) {
    CompileOptions options;
    options.target = ParseTarget("cpu").value();
    const Result<vm::Program> program = CompileModule(ModuleOf(text), options, {});
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    const auto count = [&](CpuFeature feature) {
      return std::ranges::count_if(
          program->images, [&](const vm::KernelImage& image) { return CpuFeatures{image.features}.Has(feature); });
    };
    const int64_t with_tiles = text == Panels() ? 1 : 0;
    CHECK(program->images.size() == 4 + static_cast<size_t>(with_tiles));
    CHECK(count(CpuFeature::kAvx512vnni) == 1 + with_tiles);
    CHECK(count(CpuFeature::kAmxInt8) == with_tiles);
    CHECK(count(CpuFeature::kAvxVnni) == 1);
  }
}

}  // namespace
}  // namespace ingot::driver
