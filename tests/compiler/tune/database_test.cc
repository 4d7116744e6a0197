// Records: what a line says is what was written, whatever was cut off is left out and reported, and what does not
// belong to a function, a target or this build is refused.
#include "compiler/tune/database.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/kernels/kernel_cache.h"
#include "compiler/kernels/kernel_sources.h"
#include "compiler/tune/space.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

const Target& Avx2() {
  static const Target target = ParseTarget("cpu:x86-64-v3")->variants.front();
  return target;
}

ir::PrimFunc Function(int64_t rows = 96) {
  return kernels::WithParamsByPlace(schedule::testing::Dense(ir::Int64(rows), ir::Int64(64), ir::Int64(128), true));
}

// A comparison that says that one unrolled step takes so much of the default's time.
Record Compared(const ir::PrimFunc& function, double ratio = 0.8) {
  Record record;
  record.kind = Record::Kind::kComparison;
  record.task = TaskKey(function);
  record.function = TaskText(function);
  record.target = kernels::TargetText(Avx2());
  record.machine = "a machine \"with quotes\"";
  record.tool = "ingot";
  record.program = "0123456789abcdef";
  record.choices = {{"gemm.unrolled_steps", 1}};
  Task task;
  task.function = function;
  record.trace = Space(task, Avx2()).PointOf(record.choices)->trace;
  for (int i = 0; i < 20; ++i) {
    record.default_seconds.push_back(1e-3 + 1e-5 * i);
    record.seconds.push_back(ratio * record.default_seconds.back() * (1 + 1e-3 * (i % 3)));
  }
  return record;
}

Record ComparedModel(const TunedSet& set, double ratio) {
  Record record = Compared(Function(), ratio);
  record.kind = Record::Kind::kModel;
  record.task = record.function = record.trace = "";
  record.choices = {};
  record.model = "1-0";
  record.set = set;
  return record;
}

// Graph passes chose so and made "1-1" of the model "1-0".
Record ComparedGraph(const schedule::Chosen& graph, double ratio, const std::string& target = "") {
  Record record = ComparedModel({}, ratio);
  record.kind = Record::Kind::kGraph;
  record.graph = graph;
  record.result = "1-1";
  if (!target.empty()) record.target = target;
  return record;
}

class TemporaryFile {
 public:
  TemporaryFile() : path_(std::filesystem::temp_directory_path() / ("ingot_tuning_" + std::to_string(::getpid()))) {
    std::filesystem::remove(path_);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }
  std::string Read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::filesystem::path path_;
};

TEST_CASE("tuning records: a line of each kind reads back as it was written") {
  Record trial = Compared(Function());
  trial.kind = Record::Kind::kTrial;
  trial.default_seconds = {};
  Record failed = trial;
  failed.outcome = "hung";
  failed.error = "after 1 s";
  failed.seconds = {};
  failed.is_hot = true;
  trial.warm = {0, 2};
  Record screening = Compared(Function());
  screening.kind = Record::Kind::kScreening;
  const TunedSet set{{"1-1", {{"gemm.rows", 2}, {"gemm.panels", 4}}}, {"1-2", {}}};
  const Record graph = ComparedGraph({{"layout", 0}, {"winograd \"1\"", 1}}, 0.9);
  Record screened = graph;
  screened.kind = Record::Kind::kGraphScreening;
  for (const Record& record :
       {trial, failed, screening, Compared(Function()), ComparedModel(set, 0.9), screened, graph}) {
    const std::string line = RecordLine(record);
    INFO(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.starts_with("{\"ingot_tuning\":1,"));
    const Result<Record> read = ParseRecord(line);
    REQUIRE_MESSAGE(read.ok(), read.status().message());
    CHECK(RecordLine(*read) == line);
    CHECK(read->kind == record.kind);
    CHECK(read->choices == record.choices);
    CHECK(read->set == record.set);
    CHECK(read->is_hot == record.is_hot);
    CHECK(read->warm == record.warm);
    CHECK(read->model == record.model);
    CHECK(read->graph == record.graph);
    CHECK(read->result == record.result);
    CHECK(read->is_faster() == (record.kind == Record::Kind::kComparison || record.kind == Record::Kind::kModel ||
                                record.kind == Record::Kind::kGraph));
  }
}

TEST_CASE("tuning records: each member that is missing or of another type is an error") {
  Record warm = Compared(Function());
  warm.warm = {1};
  const std::string lines[] = {RecordLine(Compared(Function())), RecordLine(ComparedModel({{"1-1", {}}}, 0.9)),
                               RecordLine(ComparedGraph({{"layout", 0}}, 0.9))};
  std::string of_texts = RecordLine(warm);
  of_texts.replace(of_texts.find("[1]"), 3, "[\"1\"]");
  CHECK(!ParseRecord(of_texts).ok());
  for (const char* name :
       {"ingot_tuning",    "kind",    "task",    "function", "choices", "trace",   "model",   "tasks", "graph",
        "result",          "target",  "machine", "tool",     "threads", "program", "outcome", "error", "seconds",
        "default_seconds", "verdict", "ratio",   "lower",    "upper"}) {
    INFO(name);
    const std::string key = "\"" + std::string(name) + "\":";
    int tried = 0;
    for (const std::string& line : lines) {
      if (line.find(key) == std::string::npos) continue;
      ++tried;
      std::string renamed = line;
      renamed.insert(renamed.find(key) + 1, "x");
      CHECK(!ParseRecord(renamed).ok());
      std::string other_type = line;
      other_type.replace(other_type.find(key), key.size(), key + "null,\"x\":");
      CHECK(!ParseRecord(other_type).ok());
    }
    CHECK(tried > 0);
  }
  CHECK(!ParseRecord("{}").ok());
  CHECK(!ParseRecord("[1]").ok());
  CHECK(ParseRecord("{\"ingot_tuning\":2}").status().message().find("schema 2") != std::string::npos);
}

TEST_CASE("tuning records: what contradicts itself is refused") {
  const auto why_not = [](Record record, const std::string& from, const std::string& to) {
    std::string line = RecordLine(record);
    REQUIRE(line.find(from) != std::string::npos);
    line.replace(line.find(from), from.size(), to);
    return ParseRecord(line).status().message();
  };
  const Record record = Compared(Function());
  CHECK(why_not(record, "\"outcome\":\"ok\"", "\"outcome\":\"fine\"") == "the unknown outcome \"fine\"");
  CHECK(why_not(record, "\"outcome\":\"ok\"", "\"outcome\":\"hung\"") == "its outcome is \"hung\", and it has times");
  CHECK(why_not(record, "\"kind\":\"comparison\"", "\"kind\":\"best\"") == "a record of the unknown kind \"best\"");
  for (const char* name : {"ratio", "lower", "upper"}) {
    const std::string begin = "\"" + std::string(name) + "\":0.";
    CHECK(why_not(record, begin, begin + "1") ==
          "its times do not give the \"" + std::string(name) + "\" of its verdict");
  }
  CHECK(why_not(record, "\"default_seconds\":[", "\"default_seconds\":[1,") == "its times are no pairs");
  std::string times;
  for (int i = 0; i < 4096; ++i) times += "1,";
  std::string line = RecordLine(record);
  for (const std::string list : {"\"seconds\":[", "\"default_seconds\":["}) {
    line.insert(line.find(list) + list.size(), times);
  }
  CHECK(ParseRecord(line).status().message() == "it has more than 4096 times");
  CHECK(why_not(record, "\"seconds\":[", "\"seconds\":[-1,") == "\"seconds\" holds what is no time");
  CHECK(why_not(record, "\"gemm.unrolled_steps\":1", "\"gemm.unrolled_steps\":18446744073709551615") ==
        "the choice \"gemm.unrolled_steps\" is no integer");
}

TEST_CASE("tuning databases: cut at any byte they load, and take further records") {
  const TemporaryFile file;
  const Record record = Compared(Function());
  {
    Result<DatabaseFile> database = DatabaseFile::Open(file.path());
    REQUIRE(database.ok());
    CHECK(!DatabaseFile::Open(file.path()).ok());  // one process at a time
    for (int i = 0; i < 3; ++i) REQUIRE(database->Append(record).ok());
    CHECK(database->database().records().size() == 3);
  }
  const std::string whole = file.Read();
  const size_t line = whole.size() / 3;
  for (size_t cut = 0; cut <= whole.size(); cut += cut % line < 3 || cut % line > line - 3 ? 1 : line / 5) {
    INFO(cut);
    file.Write(whole.substr(0, cut));
    const Result<Database> database = Database::Load(file.path());
    REQUIRE(database.ok());
    CHECK(database->records().size() == cut / line);
    CHECK(database->torn_line().empty() == (cut % line == 0));
    {
      Result<DatabaseFile> opened = DatabaseFile::Open(file.path());
      REQUIRE(opened.ok());
      CHECK(opened->database().torn_line() == database->torn_line());
      REQUIRE(opened->Append(record).ok());
    }
    const Result<Database> longer = Database::Load(file.path());
    REQUIRE(longer.ok());
    CHECK(longer->records().size() == cut / line + 1);
    CHECK(longer->torn_line().empty());
  }
}

TEST_CASE("tuning databases: what is none is refused, and left as it was") {
  const TemporaryFile file;
  const std::string line = RecordLine(Compared(Function())) + "\n";
  const std::pair<std::string, std::string> cases[] = {
      {line + "{\"ingot_tuning\":1,\"kind\":\"trial\"}\n" + line, ":2: no text \"task\""},
      {line + line.substr(7), ":2: no JSON object"},
      {"a model without an end of line", ":1: no tuning record"},
      {line + "something else", ":2: no tuning record"}};
  for (const auto& [text, message] : cases) {
    file.Write(text);
    CHECK(Database::Load(file.path()).status().message() == file.path() + message);
    CHECK(DatabaseFile::Open(file.path()).status().message() == file.path() + message);
    CHECK(file.Read() == text);
  }
  CHECK(!Database::Load(file.path() + ".absent").ok());
}

TEST_CASE("tuning databases: the best of certainly faster records, of this function and target") {
  Database database;
  Record uncertain = Compared(Function(), 0.5);
  for (size_t i = 0; i < uncertain.seconds.size(); i += 2) uncertain.seconds[i] *= 3;
  database.Add(uncertain);
  database.Add(Compared(Function(), 0.99));
  Record few = Compared(Function(), 0.5);
  few.seconds.resize(Record::kFewestPairs - 1);
  few.default_seconds.resize(Record::kFewestPairs - 1);
  database.Add(few);
  Record screening = Compared(Function(), 0.5);
  screening.kind = Record::Kind::kScreening;
  database.Add(screening);
  const std::string key = TaskKey(Function()), target = kernels::TargetText(Avx2());
  CHECK(database.Best(key, target) == nullptr);
  for (const double ratio : {0.9, 0.8, 0.85}) database.Add(Compared(Function(), ratio));
  REQUIRE(database.Best(key, target) != nullptr);
  CHECK(database.Best(key, target)->ratio().median == doctest::Approx(0.8).epsilon(0.01));
  CHECK(database.Best(TaskKey(Function(48)), target) == nullptr);
  CHECK(database.Best(key, kernels::TargetText(ParseTarget("cpu:x86-64-v4")->variants.front())) == nullptr);
}

TEST_CASE("tuning databases: the set of a model, and the records that it stands on") {
  const std::string key = TaskKey(Function()), target = kernels::TargetText(Avx2());
  const TunedSet set{{key, {{"gemm.unrolled_steps", 1}}}};
  Database database;
  database.Add(Compared(Function(48), 0.7));
  database.Add(Compared(Function(), 0.9));
  database.Add(ComparedModel({}, 0.99));
  database.Add(ComparedModel(set, 0.95));
  REQUIRE(database.BestOfModel("1-0", target) != nullptr);
  CHECK(database.BestOfModel("1-0", target)->set == set);
  CHECK(database.BestOfModel("1-1", target) == nullptr);
  CHECK(database.Best(key, target)->kind == Record::Kind::kComparison);
  const auto chosen = database.ChosenFor(Function(), Avx2(), set);
  REQUIRE_MESSAGE(chosen.ok(), chosen.status().message());
  CHECK(*chosen == schedule::Chosen{{"gemm.unrolled_steps", 1}});
  CHECK(database.ChosenFor(Function(), Avx2(), {})->empty());
  CHECK(database.Pruned().records().size() == 3);
  Database alone;
  alone.Add(ComparedModel(set, 0.95));
  CHECK(alone.ChosenFor(Function(), Avx2(), set).status().message().find("no comparison says") != std::string::npos);
}

TEST_CASE(
    "tuning databases: choices of a file that are faster on each of its targets, with the sets of what they give") {
  const std::string v3 = kernels::TargetText(Avx2()),
                    v4 = kernels::TargetText(ParseTarget("cpu:x86-64-v4")->variants[0]);
  const schedule::Chosen plain{{"layout", 0}}, direct{{"winograd", 0}};
  Database database;
  database.Add(ComparedGraph(plain, 0.9));
  Record screened = ComparedGraph(direct, 0.5);
  screened.kind = Record::Kind::kGraphScreening;
  database.Add(screened);
  database.Add(ComparedGraph(direct, 0.99));
  const auto best = [&](const std::vector<std::string>& targets) {
    const Record* record = database.BestGraph("1-0", targets);
    return record == nullptr ? schedule::Chosen() : record->graph;
  };
  CHECK(best({v3}) == plain);
  CHECK(best({}).empty());
  CHECK(database.BestGraph("1-1", {v3}) == nullptr);
  CHECK(best({v3, v4}).empty());  // nothing says so of the other one
  database.Add(ComparedGraph(plain, 0.99, v4));
  CHECK(best({v3, v4}).empty());
  database.Add(ComparedGraph(plain, 0.97, v4));
  CHECK(best({v3, v4}) == plain);
  CHECK(best({v4, v3}) == plain);
  // What they made is something else there.
  Record other = ComparedGraph(direct, 0.5);
  database.Add(other);
  other.result = "1-2";
  other.target = v4;
  database.Add(other);
  CHECK(best({v3}) == direct);
  CHECK(best({v3, v4}) == plain);
  // The usual choices with schedules that were found for them: 0.45 of the time on one CPU, on the other as before.
  database.Add(ComparedModel({{"1-1", {}}}, 0.45));
  CHECK(best({v3}).empty());
  CHECK(best({v3, v4}).empty());
  CHECK(best({v4}) == direct);
  // And with schedules for what the choices gave: 0.5 * 0.8.
  Record behind = ComparedModel({{"1-1", {}}}, 0.8);
  behind.model = "1-1";
  database.Add(behind);
  CHECK(best({v3}) == direct);
  database.Add(ComparedGraph(direct, 0.97));  // a slower comparison of the same counts as little as an earlier one
  CHECK(best({v3}) == direct);
  CHECK(database.Pruned().BestGraph("1-0", {v3})->graph == direct);
}

TEST_CASE("tuning databases: records of other functions and of other schedules are refused") {
  const auto refusal = [](const Record& record) {
    Database database;
    database.Add(record);
    return database.ChosenFor(Function(), Avx2(), {{TaskKey(Function()), record.choices}}).status().message();
  };
  CHECK(refusal(Compared(Function())).empty());
  Record record = Compared(Function());
  record.function = TaskText(Function(48));
  CHECK(refusal(record).find("it is of another function") != std::string::npos);
  record.function = "def";
  CHECK(refusal(record).find("is refused") != std::string::npos);
  record = Compared(Function());
  record.trace += "\n";
  CHECK(refusal(record).find("its choices give another schedule") != std::string::npos);
  record = Compared(Function());
  record.choices = {{"gemm.unrolled_steps", 3}};
  CHECK(refusal(record).find("is none of the numbers") != std::string::npos);
}

}  // namespace
}  // namespace ingot::tune
