// Runners on this machine: what becomes of candidates that go wrong in every way, and of runners that do: commands that
// print text, end, hang, and cut or change what they pass on.
#include "compiler/tune/measure/runner_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <map>

#include "compiler/tune/measure/protocol.h"
#include "tests/compiler/tune/measure/candidates.h"

namespace ingot::tune {
namespace {

RunnerPoolOptions Options() {
  RunnerPoolOptions options;
  options.worker = INGOT_MEASURE_WORKER;
  return options;
}

std::unique_ptr<RunnerPool> Pool(std::vector<std::string> commands, RunnerPoolOptions options = Options()) {
  Result<std::unique_ptr<RunnerPool>> pool = RunnerPool::Create(std::move(commands), std::move(options));
  REQUIRE_MESSAGE(pool.ok(), pool.status().message());
  return *std::move(pool);
}

// Why a pool of this runner alone does not begin.
std::string WhyNot(const std::string& command, double start_seconds = 30) {
  RunnerPoolOptions options = Options();
  options.start_seconds = start_seconds;
  const Result<std::unique_ptr<RunnerPool>> pool = RunnerPool::Create({command}, options);
  REQUIRE_FALSE(pool.ok());
  return pool.status().message();
}

bool Contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

Measurement MeasureOne(RunnerPool& pool, Candidate candidate) {
  pool.Submit(std::move(candidate));
  Result<Measurement> measurement = pool.Next();
  REQUIRE_MESSAGE(measurement.ok(), measurement.status().message());
  return *std::move(measurement);
}

TEST_CASE("runner pool: a candidate is timed, and a wrong one is not") {
  const auto pool = Pool({"{program}"});
  const Measurement right = MeasureOne(*pool, QuickCandidate(3));
  CHECK_MESSAGE(right.outcome == Outcome::kOk, right.error);
  CHECK(right.id == 3);
  CHECK(right.runner == 0);
  CHECK(right.seconds.size() == 3);
  CHECK(std::all_of(right.seconds.begin(), right.seconds.end(), [](double s) { return s > 0 && s < 1; }));
  CHECK(right.rival_seconds.empty());
  CHECK_FALSE(pool->machine(0).architecture.empty());
  CHECK(pool->machine(0).processors > 0);
  Candidate wrong = QuickCandidate(4);
  wrong.program = CountingProgram(0, "add");
  const Measurement differs = MeasureOne(*pool, wrong);
  CHECK(differs.outcome == Outcome::kWrongResult);
  CHECK(differs.seconds.empty());
  CHECK(Contains(differs.error, "\"y\": "));
  CHECK(Contains(differs.error, "elements differ"));
  Candidate wrong_rival = QuickCandidate(5);
  wrong_rival.rival = CountingProgram(0, "add");
  CHECK(Contains(MeasureOne(*pool, wrong_rival).error, "the rival"));
  CHECK_FALSE(pool->Next().ok());  // nothing is pending
}

// main(x: float32[2], y: float32[2]) -> what the builtin makes of both.
MeasuredProgram PairProgram(const std::string& builtin) {
  const std::string text =
      "ingot 1\nfunction @main export (x: float32[2], y: float32[2]) -> (z: float32[2]) {\n  register r2: float32[2]\n"
      "  alloc r2, [2]\n  call_builtin [], " +
      builtin + ", [r2, r0, r1]\n  return [r2]\n}\n";
  return {SharedBytes::Own(*vm::EncodeProgram(*vm::Assemble(text))), "main"};
}

TEST_CASE("runner pool: the absolute tolerance grows with the largest result, not with each") {
  const auto pool = Pool({"{program}"});
  const auto outcome_of = [&](const std::string& x, const std::string& y) {
    Candidate candidate = QuickCandidate(1);
    candidate.program = PairProgram("add");
    candidate.reference = PairProgram("maximum");  // x, where y is small and x is not negative
    candidate.inputs = {{{2}, "2xf32=" + x}, {{2}, "2xf32=" + y}};
    return MeasureOne(*pool, candidate).outcome;
  };
  CHECK(outcome_of("1 0", "0 -0.000009") == Outcome::kOk);
  CHECK(outcome_of("1 0", "0 -0.0005") == Outcome::kWrongResult);
  CHECK(outcome_of("100 0", "0 -0.0005") == Outcome::kOk);
  CHECK(outcome_of("100 0", "0 -0.002") == Outcome::kWrongResult);
  CHECK(outcome_of("inf 0", "0 -0.0005") == Outcome::kWrongResult);
}

TEST_CASE("runner pool: of two who wait for one candidate, one gets it and the other is told that there is none") {
  const auto pool = Pool({"{program}"});
  Candidate slow = QuickCandidate(1);
  slow.options.warmup_seconds = 0.3;  // both wait by then
  pool->Submit(slow);
  const auto next = [&] { return pool->Next().ok(); };
  std::future<bool> first = std::async(std::launch::async, next), second = std::async(std::launch::async, next);
  for (std::future<bool>* each : {&first, &second}) {
    const bool has_ended = each->wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    CHECK(has_ended);
    if (!has_ended) pool->Submit(QuickCandidate(2));  // so that the test ends
  }
  CHECK(first.get() != second.get());
}

TEST_CASE("runner pool: limits of any size") {
  const auto pool = Pool({"{program}"});
  Candidate unlimited = QuickCandidate(1);
  unlimited.options.max_memory_bytes = std::numeric_limits<int64_t>::max();
  const Measurement measured = MeasureOne(*pool, unlimited);
  CHECK_MESSAGE(measured.outcome == Outcome::kOk, OutcomeName(measured.outcome), ": ", measured.error);
  for (const int64_t flush_bytes : {int64_t{1} << 45, std::numeric_limits<int64_t>::max()}) {
    Candidate flushing = QuickCandidate(2);
    flushing.options.flush_bytes = flush_bytes;
    CHECK(MeasureOne(*pool, flushing).outcome == Outcome::kOutOfMemory);
  }
}

TEST_CASE("runner pool: a program that takes longer does so in turns with its rival, hot and cold") {
  const auto pool = Pool({"{program}"});
  for (const int64_t flush_bytes : {int64_t{0}, int64_t{1} << 20}) {
    Candidate candidate = QuickCandidate(1);
    candidate.options.flush_bytes = flush_bytes;
    candidate.options.repeats = 11;
    candidate.rival = CountingProgram(20000);
    const Measurement measured = MeasureOne(*pool, candidate);
    REQUIRE_MESSAGE(measured.outcome == Outcome::kOk, measured.error);
    REQUIRE(measured.seconds.size() == 11);
    REQUIRE(measured.rival_seconds.size() == 11);
    CHECK(*std::min_element(measured.seconds.begin(), measured.seconds.end()) * 3 <
          *std::min_element(measured.rival_seconds.begin(), measured.rival_seconds.end()));
  }
}

TEST_CASE("runner pool: candidates that crash, hang, eat memory or lie are outcomes, and the same runner goes on") {
  const auto pool = Pool({"{program}"});
  const std::map<TestFault, Outcome> expected{{TestFault::kCrash, Outcome::kCrashed},
                                              {TestFault::kHang, Outcome::kHung},
                                              {TestFault::kEatMemory, Outcome::kOutOfMemory},
                                              {TestFault::kWrongResult, Outcome::kWrongResult}};
  for (const auto& [fault, outcome] : expected) {
    Candidate candidate = QuickCandidate(1);
    candidate.options.fault = fault;
    candidate.options.timeout_seconds = fault == TestFault::kHang ? 0.5 : 30;
    candidate.options.max_memory_bytes = 256 << 20;
    const Measurement measured = MeasureOne(*pool, candidate);
    CHECK_MESSAGE(measured.outcome == outcome, OutcomeName(measured.outcome), ": ", measured.error);
    CHECK(measured.signal == (fault == TestFault::kCrash ? SIGSEGV : 0));
    CHECK_FALSE(measured.error.empty());
    CHECK(MeasureOne(*pool, QuickCandidate(2)).outcome == Outcome::kOk);
  }
  Candidate endless = QuickCandidate(3);
  endless.program = CountingProgram(-1);
  endless.options.timeout_seconds = 0.3;
  CHECK(MeasureOne(*pool, endless).outcome == Outcome::kHung);
  CHECK(pool->num_runners() == 1);
}

TEST_CASE("runner pool: what the virtual machine refuses says why") {
  const auto pool = Pool({"{program}"});
  const auto refusal = [&](auto&& change) {
    Candidate candidate = QuickCandidate(1);
    change(candidate);
    const Measurement measured = MeasureOne(*pool, candidate);
    CHECK(measured.outcome == Outcome::kRefused);
    return measured.error;
  };
  CHECK(Contains(refusal([](Candidate& c) { c.program.entry = "maim"; }), "maim"));
  CHECK(Contains(refusal([](Candidate& c) { c.inputs.clear(); }), "expected 1 inputs"));
  CHECK(Contains(refusal([](Candidate& c) { c.inputs[0].dims = {7}; }), "1024"));
  CHECK(Contains(refusal([](Candidate& c) { c.inputs[0].spec = "many"; }), "input \"x\""));
  CHECK(Contains(refusal([](Candidate& c) { c.program = {}; }), "no program"));
  CHECK(Contains(refusal([](Candidate& c) { c.reference.entry = "nothing"; }), "the reference"));
  CHECK_FALSE(refusal([](Candidate& c) { c.program.executable = SharedBytes::Own({std::byte{1}}); }).empty());
}

TEST_CASE("runner pool: more references than a worker keeps come again") {
  const auto pool = Pool({"{program}"});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10; ++i) {
      Candidate candidate = QuickCandidate(1);
      candidate.options.repeats = 1;
      candidate.reference = CountingProgram(i);
      CHECK(MeasureOne(*pool, candidate).outcome == Outcome::kOk);
    }
  }
}

TEST_CASE("runner pool: text before the worker is passed over; too much, none and other things are errors") {
  CHECK(MeasureOne(*Pool({"echo Welcome to board; exec {program}"}), QuickCandidate(1)).outcome == Outcome::kOk);
  CHECK(Contains(WhyNot("yes; : {program}"), "too much text"));
  CHECK(Contains(WhyNot("echo no route to board >&2; : {program}"), "no route to board"));
  CHECK(Contains(WhyNot("echo only text; : {program}"), "only text"));
  CHECK(Contains(WhyNot("sleep 100; : {program}", 0.3), "no answer in time"));
  CHECK(Contains(WhyNot("program"), "has no {program}"));
  // The greeting is right, the frames behind it are not.
  CHECK(
      Contains(WhyNot("printf '\\211INGOT MEASURE 1\\nand then a long text, but no frame'; : {program}"), "no frame"));
  CHECK(Contains(WhyNot("{program} | dd bs=1 count=30 status=none", 1), "no answer in time"));
}

TEST_CASE("runner pool: where the worker's path is nothing, a shell gets the worker, and no file is left") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ingot-shell-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  // Another machine: it has sh, and prints text first.
  const std::string board = "export TMPDIR='" + folder.string() + "'; echo hello; test {program} = sh && exec sh";
  {
    const auto pool = Pool({board});
    CHECK(MeasureOne(*pool, QuickCandidate(1)).outcome == Outcome::kOk);
    CHECK(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
}

TEST_CASE("runner pool: a runner that dies, hangs or changes bytes is dropped, and its candidate goes to another") {
  RunnerPoolOptions options = Options();
  options.answer_seconds = 0.5;
  // The hello comes through; measurements do not, or not whole.
  const char* const broken[] = {
      "{program} | dd bs=1 count=230 status=none",                    // cut within one of the first answers
      "dd bs=1 count=400 status=none | {program}",                    // ends within a candidate
      "{program} | (dd bs=1 count=150 status=none; cat >/dev/null)",  // says no more
  };
  for (const char* command : broken) {
    const auto pool = Pool({command, "{program}"}, options);
    int submitted = 0;
    const auto submit = [&] {
      Candidate candidate = QuickCandidate(static_cast<uint64_t>(submitted++));
      candidate.options.timeout_seconds = 1;
      pool->Submit(std::move(candidate));
    };
    std::map<uint64_t, int> times;
    const auto take = [&] {
      const Result<Measurement> measured = pool->Next();
      REQUIRE_MESSAGE(measured.ok(), measured.status().message());
      CHECK_MESSAGE(measured->outcome == Outcome::kOk, measured->error);
      ++times[measured->id];
    };
    for (int i = 0; i < 12; ++i) submit();
    for (int i = 0; i < 12; ++i) take();
    // The other runner may have been fast enough to take them all.
    for (int i = 0; i < 2000 && pool->num_runners() == 2; ++i) {
      submit();
      take();
    }
    CHECK(times.size() == static_cast<size_t>(submitted));
    CHECK(pool->num_runners() == 1);
    CHECK_FALSE(pool->loss(0).empty());
    CHECK_FALSE(pool->machine(0).architecture.empty());  // it had begun
    CHECK(pool->loss(1).empty());
  }
}

// A runner that greets, and gives this answer to whatever comes.
std::string Impostor(const std::filesystem::path& file, const Measurement& answer) {
  std::ofstream out(file, std::ios::binary);
  out << kGreeting;
  for (const auto& frame : {EncodeFrame(FrameKind::kHello, EncodeMachine({"z80", "", 1, 0})),
                            EncodeFrame(FrameKind::kMeasurement, EncodeMeasurement(answer))}) {
    out.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
  return "cat '" + file.string() + "'; cat >/dev/null; : {program}";
}

TEST_CASE("runner pool: answers without the times that were asked for are no answers") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("ingot-answer-" + std::to_string(getpid()));
  Measurement answer;
  answer.id = 1;
  answer.outcome = Outcome::kOk;
  answer.seconds = {1e-3, 2e-3, 3e-3};
  CHECK(MeasureOne(*Pool({Impostor(file, answer)}), QuickCandidate(1)).seconds == answer.seconds);
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> wrong{{},         {1, 2},      {1, 2, 3, 4}, {1, 0, 1},
                                               {1, -1, 1}, {1, nan, 1}, {1, inf, 1}};
  for (const std::vector<double>& seconds : wrong) {
    answer.seconds = seconds;
    const auto pool = Pool({Impostor(file, answer)});
    pool->Submit(QuickCandidate(1));
    CHECK_FALSE(pool->Next().ok());
    CHECK(Contains(pool->loss(0), "does not have the times"));
  }
  // Of a rival, too; and none of what failed.
  answer.seconds = {1, 1, 1};
  Candidate with_rival = QuickCandidate(1);
  with_rival.rival = CountingProgram(2);
  const auto pool = Pool({Impostor(file, answer)});
  pool->Submit(with_rival);
  CHECK_FALSE(pool->Next().ok());
  answer.outcome = Outcome::kCrashed;
  const auto other = Pool({Impostor(file, answer)});
  other->Submit(QuickCandidate(1));
  CHECK_FALSE(other->Next().ok());
  std::filesystem::remove(file);
}

TEST_CASE("runner pool: all runners lost is an error that names each; a candidate that loses two is given up") {
  const std::string mute = "dd bs=1 count=100 status=none | {program}";
  {
    const auto pool = Pool({mute});
    pool->Submit(QuickCandidate(1));
    pool->Submit(QuickCandidate(2));
    const Result<Measurement> none = pool->Next();
    REQUIRE_FALSE(none.ok());
    CHECK(Contains(none.status().message(), "all runners are lost"));
    CHECK(Contains(none.status().message(), mute));
    CHECK(pool->num_pending() == 2);
  }
  const auto pool = Pool({mute, mute});
  pool->Submit(QuickCandidate(1));
  const Result<Measurement> given_up = pool->Next();
  REQUIRE(given_up.ok());
  CHECK(given_up->outcome == Outcome::kLostRunner);
  CHECK_FALSE(given_up->error.empty());
  CHECK(pool->num_runners() == 0);
}

TEST_CASE("runner pool: it ends in the middle of a candidate at once, and so does the candidate") {
  const auto start = std::chrono::steady_clock::now();
  {
    const auto pool = Pool({"{program}"});
    Candidate candidate = QuickCandidate(1);
    candidate.options.fault = TestFault::kHang;
    pool->Submit(std::move(candidate));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

}  // namespace
}  // namespace ingot::tune
