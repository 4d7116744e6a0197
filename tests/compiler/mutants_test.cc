// Damaged models: texts and ONNX files of the tests with bytes, words and lines changed at random, 2,000 of each. A
// mutant is read and verified, or refused with a message, in little time; sanitizers watch what else may happen. The
// same seeds give the same mutants.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "compiler/importer/onnx.h"
#include "compiler/op/verifier.h"
#include "compiler/script/parser.h"
#include "tests/golden.h"
#include "tests/processor_time.h"

namespace ingot {
namespace {

constexpr int kMutants = 2'000;
constexpr double kMostSeconds = 20;  // of the processor for one mutant, in a build with sanitizers

std::vector<std::string> FilesOf(const std::filesystem::path& folder, const std::string& ending) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ending && entry.file_size() < 50'000) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> contents;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return contents;
}

class Mutator {
 public:
  explicit Mutator(std::span<const std::string> seeds) : seeds_(seeds) {}

  std::string Next() {
    std::string text = Seed();
    const size_t num_changes = 1 + Below(4);
    for (size_t i = 0; i < num_changes && !text.empty(); ++i) Change(text);
    return text;
  }

 private:
  size_t Below(size_t n) { return random_() % n; }
  const std::string& Seed() { return seeds_[Below(seeds_.size())]; }

  void Change(std::string& text) {
    const size_t at = Below(text.size()), length = std::min(1 + Below(64), text.size() - at);
    switch (Below(8)) {
      case 0:
        text[at] = static_cast<char>(Below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:  // what stands there stands there again
        text.insert(Below(text.size()), text.substr(at, length));
        break;
      case 4: {  // a piece of another one
        const std::string& other = Seed();
        if (!other.empty()) text.replace(at, length, other.substr(Below(other.size()), 1 + Below(64)));
        break;
      }
      case 5: {
        constexpr std::string_view kWords[] = {"-1",   "0",  "9223372036854775807",  "4294967296", "1e400",
                                               "((((", "[]", "\xff\xff\xff\xff\x0f", "float8",     "x * n // 0"};
        text.insert(at, kWords[Below(std::size(kWords))]);
        break;
      }
      case 6:
        text.resize(at);
        break;
      default:  // many times
        for (size_t i = 0; i < 200; ++i) text.insert(at, text.substr(at, 8));
    }
  }

  std::span<const std::string> seeds_;
  std::mt19937_64 random_{18};
};

// Gives each mutant to `read`, which says whether it was accepted.
template <typename Read>
void TryMutants(std::span<const std::string> seeds, Read read) {
  REQUIRE(seeds.size() > 10);
  Mutator mutator(seeds);
  int num_accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    CAPTURE(i);
    const std::string mutant = mutator.Next();
    const double began = test::ProcessorSeconds();
    num_accepted += read(mutant) ? 1 : 0;
    CHECK(test::ProcessorSeconds() - began < kMostSeconds);
  }
  // Some changes do not matter, and most do.
  CHECK(num_accepted > kMutants / 200);
  CHECK(num_accepted < kMutants * 3 / 4);
}

TEST_CASE("mutants of texts are read or refused") {
  std::vector<std::string> seeds = FilesOf(golden::TestDirectory() + "/golden/script", ".txt");
  for (std::string& seed : seeds) {  // without the directive and the expectation
    seed.erase(0, seed.find('\n') + 1);
    seed.erase(std::min(seed.find("# EXPECT"), seed.size()));
  }
  TryMutants(seeds, [](const std::string& text) {
    const Result<ir::IRModule> module = script::ParseModule(text, "m.py");
    if (!module.ok()) CHECK(!module.status().message().empty());
    return module.ok() && op::VerifyModule(*module).ok();
  });
}

TEST_CASE("mutants of ONNX files are read or refused") {
  const std::vector<std::string> seeds = FilesOf(golden::TestDirectory() + "/data", ".onnx");
  TryMutants(seeds, [](const std::string& bytes) {
    const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
    const auto result =
        importer::ImportOnnx(SharedBytes::Own(std::vector<std::byte>(data, data + bytes.size())), "m.onnx", {});
    if (!result.ok()) CHECK(!result.status().message().empty());
    return result.ok() && op::VerifyModule(result->module).ok();
  });
}

}  // namespace
}  // namespace ingot
