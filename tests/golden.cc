#include "tests/golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace ingot::golden {
namespace {

struct File {
  std::string head;  // everything up to and including the EXPECT line
  std::string directive;
  Case golden;
  std::string expected;
};

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

Result<File> ParseFile(const std::filesystem::path& path) {
  const auto bad = [&](const char* what) { return Status(StatusCode::kBadInput, path.string() + ": " + what); };
  const std::string text = ReadAll(path);
  constexpr std::string_view kRun = "# RUN: ";
  if (!text.starts_with(kRun)) return bad("the first line is no \"# RUN: <directive> <arguments>\"");
  const size_t end_of_run = text.find('\n');
  constexpr std::string_view kExpect = "\n# EXPECT\n";
  const size_t expect = text.find(kExpect);
  if (expect == std::string::npos) return bad("there is no line \"# EXPECT\"");
  File file;
  file.head = text.substr(0, expect + kExpect.size());
  const std::string run = text.substr(kRun.size(), end_of_run - kRun.size());
  const size_t space = run.find(' ');
  file.directive = run.substr(0, space);
  file.golden.arguments = space == std::string::npos ? "" : run.substr(space + 1);
  file.golden.path = path.string();
  if (expect > end_of_run) file.golden.input = text.substr(end_of_run + 1, expect - end_of_run);
  file.expected = text.substr(expect + kExpect.size());
  return file;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first place where two texts differ, with a little around it.
std::string Difference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> a = Lines(expected), b = Lines(actual);
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  std::string out = "differs at line " + std::to_string(i + 1) + " of the output\n";
  for (size_t k = i < 2 ? 0 : i - 2; k < i; ++k) out += "   " + a[k] + "\n";
  for (size_t k = i; k < std::min(i + 4, a.size()); ++k) out += " - " + a[k] + "\n";
  for (size_t k = i; k < std::min(i + 4, b.size()); ++k) out += " + " + b[k] + "\n";
  return out;
}

void RunFile(const std::filesystem::path& path, std::span<const Directive> directives) {
  Result<File> parsed = ParseFile(path);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  const File& file = *parsed;
  const auto row = std::find_if(directives.begin(), directives.end(),
                                [&](const Directive& directive) { return file.directive == directive.name; });
  REQUIRE_MESSAGE(row != directives.end(), path.string() << ": unknown directive \"" << file.directive << "\"");
  Result<std::string> result = row->run(file.golden);
  const bool expects_error = path.filename().string().starts_with("bad-");
  if (result.ok() == expects_error) {
    FAIL_CHECK(path.string() << std::string(expects_error ? ": expected an error, got:\n" : ": failed: ")
                             << (result.ok() ? *result : result.status().message()));
    return;
  }
  std::string actual = result.ok() ? *result : result.status().message();
  if (actual.empty() || actual.back() != '\n') actual += '\n';
  if (const char* update = std::getenv("INGOT_UPDATE_GOLDEN"); update != nullptr && *update == '1') {
    if (actual != file.expected) std::ofstream(path, std::ios::binary) << file.head << actual;
    return;
  }
  CHECK_MESSAGE(actual == file.expected, path.string() << ": " << Difference(file.expected, actual));
}

}  // namespace

std::string TestDirectory() { return INGOT_TEST_DIRECTORY; }

void RunArea(std::string_view area, std::span<const Directive> directives) {
  const std::filesystem::path root = std::filesystem::path(TestDirectory()) / "golden" / area;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    if (entry.is_regular_file() && entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  REQUIRE_MESSAGE(!files.empty(), "no golden files below " << root.string());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    const std::string name = std::filesystem::relative(path, root).string();
    DOCTEST_SUBCASE(name.c_str()) { RunFile(path, directives); }
  }
}

}  // namespace ingot::golden
