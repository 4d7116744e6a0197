// Behaviours of other virtual machines as programs of ours (tests/peers/README.md): each file of tests/peers/programs
// is a program whose metadata states the results of calls: "FUNCTION ARG..." = "RESULT, ...", or the message of the
// failure. Arguments and results are written as those of the golden directive "run" (tests/vm/run_directive.h). Each
// function is a subcase with a context of its own.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "tests/golden.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/run_directive.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string Outcome(Context& context, const Function& function, const std::vector<Value>& arguments) {
  const Result<std::vector<Value>> results = context.Invoke(function, arguments);
  if (!results.ok()) return results.status().message();
  std::string out;
  for (const Value& value : *results) out += (out.empty() ? "" : ", ") + ShowValue(value);
  return out;
}

void RunProgram(const std::string& stem) {
  std::ifstream in(golden::TestDirectory() + "/peers/programs/" + stem + ".ingotasm");
  std::ostringstream text;
  text << in.rdbuf();
  const Result<Program> program = Assemble(text.str(), stem);
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  test::CheckRoundTrip(*program);
  InstanceOptions instance;
  instance.num_threads = 1;
  const auto executable = Executable::OpenMemory(*Instance::Create(instance),
                                                 SharedBytes::Own(*EncodeProgram(*program)), stem, OpenOptions());
  REQUIRE_MESSAGE(executable.ok(), executable.status().message());
  size_t num_called = 0;
  for (const Function& function : (*executable)->program().functions) {
    if (!function.exported) continue;
    std::vector<std::pair<std::string, std::string>> calls;
    for (const auto& [call, outcome] : (*executable)->program().metadata) {
      if (Words(call)[0] == function.name) calls.emplace_back(call, outcome);
    }
    CHECK_MESSAGE(!calls.empty(), function.name << " is never called");
    num_called += calls.size();
    DOCTEST_SUBCASE(function.name.c_str()) {
      const auto context = *Context::Create(*executable);
      for (const auto& [call, expected] : calls) {
        std::vector<Value> arguments;
        for (const std::string& word : Words(call)) {
          if (word != function.name) arguments.push_back(*ParseArgument(word));
        }
        CAPTURE(call);
        CHECK(Outcome(*context, function, arguments) == expected);
      }
    }
  }
  CHECK(num_called == (*executable)->program().metadata.size());
}

TEST_CASE("peers: integer arithmetic") { RunProgram("arithmetic"); }
TEST_CASE("peers: comparisons") { RunProgram("comparison"); }
TEST_CASE("peers: control flow") { RunProgram("control_flow"); }
TEST_CASE("peers: calls") { RunProgram("calls"); }
TEST_CASE("peers: lifetimes") { RunProgram("lifetimes"); }
TEST_CASE("peers: buffers") { RunProgram("buffers"); }
TEST_CASE("peers: globals") { RunProgram("globals"); }
TEST_CASE("peers: tuples") { RunProgram("tuples"); }

}  // namespace
}  // namespace ingot::vm
