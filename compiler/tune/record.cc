// A record as a line: one JSON object whose first member says what it is. Every member has a fixed type; what is
// missing, of another type, or contradicts the times, is an error.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/tune/database.h"
#include "compiler/tune/measure/candidate.h"

namespace ingot::tune {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kSchema = 1;

constexpr std::array<std::string_view, 6> kKindNames = {"trial", "screening",       "comparison",
                                                        "model", "graph screening", "graph"};
constexpr std::array<Outcome, 7> kOutcomes = {Outcome::kOk,        Outcome::kWrongResult, Outcome::kCrashed,
                                              Outcome::kHung,      Outcome::kOutOfMemory, Outcome::kRefused,
                                              Outcome::kLostRunner};

Status Malformed(const std::string& what) { return Status(StatusCode::kBadInput, what); }

bool IsOfGraph(Record::Kind kind) { return kind == Record::Kind::kGraphScreening || kind == Record::Kind::kGraph; }

Json ChoicesJson(const schedule::Chosen& choices) {
  Json json = Json::object();
  for (const auto& [name, value] : choices) json[name] = value;
  return json;
}

// Reads the members of one object.
class MemberReader {
 public:
  explicit MemberReader(const Json& object) : object_(object) {}

  Result<std::string> Text(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr || !found->is_string()) return Malformed(std::string("no text \"") + name + "\"");
    return found->get<std::string>();
  }

  Result<int64_t> Integer(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr || !IsInteger(*found)) return Malformed(std::string("no integer \"") + name + "\"");
    return found->get<int64_t>();
  }

  Result<double> Number(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr || !found->is_number() || !std::isfinite(found->get<double>())) {
      return Malformed(std::string("no number \"") + name + "\"");
    }
    return found->get<double>();
  }

  Result<const Json*> Object(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr || !found->is_object()) return Malformed(std::string("no object \"") + name + "\"");
    return found;
  }

  Result<std::vector<double>> Seconds(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr || !found->is_array()) return Malformed(std::string("no list \"") + name + "\"");
    std::vector<double> seconds;
    for (const Json& value : *found) {
      if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
        return Malformed(std::string("\"") + name + "\" holds what is no time");
      }
      seconds.push_back(value.get<double>());
    }
    return seconds;
  }

  // Absent where it does not hold.
  Result<bool> FlagIfAny(const char* name) const {
    const Json* found = Find(name);
    if (found != nullptr && !found->is_boolean()) return Malformed(std::string("no flag \"") + name + "\"");
    return found != nullptr && found->get<bool>();
  }

  Result<std::vector<int64_t>> IntegersIfAny(const char* name) const {
    std::vector<int64_t> integers;
    const Json* found = Find(name);
    if (found == nullptr) return integers;
    if (!found->is_array() || !std::ranges::all_of(*found, IsInteger)) {
      return Malformed(std::string("\"") + name + "\" is no list of integers");
    }
    for (const Json& value : *found) integers.push_back(value.get<int64_t>());
    return integers;
  }

  // Of kernels and models without symbols the member is absent.
  Result<std::vector<Sizes>> SizesIfAny() const {
    std::vector<Sizes> all;
    const Json* found = Find("sizes");
    if (found == nullptr) return all;
    if (!found->is_array()) return Malformed("\"sizes\" is no list");
    for (const Json& value : *found) {
      const Result<Sizes> sizes = ParseSizes(value.is_string() ? value.get<std::string>() : "");
      if (!sizes.ok()) return Malformed(sizes.status().message());
      all.push_back(*sizes);
    }
    return all;
  }

  static Result<schedule::Chosen> Choices(const Json& json) {
    if (!json.is_object()) return Malformed("choices that are no object");
    schedule::Chosen choices;
    for (const auto& [name, value] : json.items()) {
      if (!IsInteger(value)) return Malformed("the choice \"" + name + "\" is no integer");
      choices[name] = value.get<int64_t>();
    }
    return choices;
  }

 private:
  static bool IsInteger(const Json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>() <= uint64_t{INT64_MAX};
    return value.is_number_integer();
  }
  const Json* Find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const Json& object_;
};

Status ReadSubject(const MemberReader& reader, Record& record) {
  if (record.kind == Record::Kind::kModel) {
    INGOT_ASSIGN_OR_RETURN(record.model, reader.Text("model"));
    INGOT_ASSIGN_OR_RETURN(const Json* tasks, reader.Object("tasks"));
    for (const auto& [task, choices] : tasks->items()) {
      INGOT_ASSIGN_OR_RETURN(record.set[task], MemberReader::Choices(choices));
    }
    return Status();
  }
  if (IsOfGraph(record.kind)) {
    INGOT_ASSIGN_OR_RETURN(record.model, reader.Text("model"));
    INGOT_ASSIGN_OR_RETURN(const Json* graph, reader.Object("graph"));
    INGOT_ASSIGN_OR_RETURN(record.graph, MemberReader::Choices(*graph));
    INGOT_ASSIGN_OR_RETURN(record.result, reader.Text("result"));
    return Status();
  }
  INGOT_ASSIGN_OR_RETURN(record.task, reader.Text("task"));
  INGOT_ASSIGN_OR_RETURN(record.function, reader.Text("function"));
  INGOT_ASSIGN_OR_RETURN(const Json* choices, reader.Object("choices"));
  INGOT_ASSIGN_OR_RETURN(record.choices, MemberReader::Choices(*choices));
  INGOT_ASSIGN_OR_RETURN(record.trace, reader.Text("trace"));
  INGOT_ASSIGN_OR_RETURN(record.is_hot, reader.FlagIfAny("hot"));
  INGOT_ASSIGN_OR_RETURN(record.warm, reader.IntegersIfAny("warm"));
  return Status();
}

// The times, and the verdict beside them, which has to be theirs.
Status ReadTimes(const MemberReader& reader, Record& record) {
  INGOT_ASSIGN_OR_RETURN(record.seconds, reader.Seconds("seconds"));
  if (record.is_ok() == record.seconds.empty()) {
    return Malformed("its outcome is \"" + record.outcome + "\", and " +
                     (record.seconds.empty() ? "it has no times" : "it has times"));
  }
  if (record.kind == Record::Kind::kTrial) return Status();
  INGOT_ASSIGN_OR_RETURN(record.default_seconds, reader.Seconds("default_seconds"));
  if (record.default_seconds.size() != record.seconds.size()) return Malformed("its times are no pairs");
  constexpr size_t kMaxPairs = 4096;
  if (record.seconds.size() > kMaxPairs) return Malformed("it has more than " + std::to_string(kMaxPairs) + " times");
  if (!record.is_ok()) return Status();
  INGOT_ASSIGN_OR_RETURN(const Json* verdict, reader.Object("verdict"));
  const MemberReader members(*verdict);
  const PairedRatio ratio = record.ratio();
  for (const auto& [name, value] : {std::pair{"ratio", ratio.median}, {"lower", ratio.lower}, {"upper", ratio.upper}}) {
    INGOT_ASSIGN_OR_RETURN(const double stored, members.Number(name));
    if (std::abs(stored - value) > 1e-9 * value) {
      return Malformed(std::string("its times do not give the \"") + name + "\" of its verdict");
    }
  }
  return Status();
}

}  // namespace

std::string_view KindName(Record::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

// What else runs on a machine only adds time.
double Record::fastest_seconds() const { return seconds.empty() ? 0 : *std::ranges::min_element(seconds); }

double Record::median_seconds() const {
  if (seconds.empty()) return 0;
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

PairedRatio Record::ratio() const { return ComparePaired(seconds, default_seconds); }

bool Record::is_faster() const {
  const bool judges = kind == Kind::kComparison || kind == Kind::kModel || kind == Kind::kGraph;
  return judges && is_ok() && seconds.size() >= kFewestPairs && ratio().upper < kLargestUpperBound;
}

std::string RecordLine(const Record& record) {
  Json line = {{"ingot_tuning", kSchema}, {"kind", KindName(record.kind)}};
  if (record.kind == Record::Kind::kModel) {
    line["model"] = record.model;
    line["tasks"] = Json::object();
    for (const auto& [task, choices] : record.set) line["tasks"][task] = ChoicesJson(choices);
  } else if (IsOfGraph(record.kind)) {
    line["model"] = record.model;
    line["graph"] = ChoicesJson(record.graph);
    line["result"] = record.result;
  } else {
    line["task"] = record.task;
    line["function"] = record.function;
    line["choices"] = ChoicesJson(record.choices);
    line["trace"] = record.trace;
    if (record.is_hot) line["hot"] = true;
    if (!record.warm.empty()) line["warm"] = record.warm;
  }
  line["target"] = record.target;
  if (!record.sizes.empty()) line["sizes"] = Json::array();
  for (const Sizes& sizes : record.sizes) line["sizes"].push_back(SizesText(sizes));
  line["machine"] = record.machine;
  line["tool"] = record.tool;
  line["threads"] = record.threads;
  line["program"] = record.program;
  line["outcome"] = record.outcome;
  line["error"] = record.error;
  line["seconds"] = record.seconds;
  if (record.kind != Record::Kind::kTrial) {
    line["default_seconds"] = record.default_seconds;
    if (record.is_ok()) {
      const PairedRatio ratio = record.ratio();
      line["verdict"] = {{"ratio", ratio.median}, {"lower", ratio.lower}, {"upper", ratio.upper}};
    }
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Record> ParseRecord(const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return Malformed("no JSON object");
  const auto schema = line.find("ingot_tuning");
  if (schema == line.end() || !schema->is_number_integer()) return Malformed("no tuning record");
  if (*schema != kSchema) return Malformed("a record of schema " + schema->dump() + ", which this build does not know");
  const MemberReader reader(line);
  Record record;
  INGOT_ASSIGN_OR_RETURN(const std::string kind, reader.Text("kind"));
  const auto known = std::ranges::find(kKindNames, kind);
  if (known == kKindNames.end()) return Malformed("a record of the unknown kind \"" + kind + "\"");
  record.kind = static_cast<Record::Kind>(known - kKindNames.begin());
  INGOT_RETURN_IF_ERROR(ReadSubject(reader, record));
  INGOT_ASSIGN_OR_RETURN(record.target, reader.Text("target"));
  INGOT_ASSIGN_OR_RETURN(record.sizes, reader.SizesIfAny());
  INGOT_ASSIGN_OR_RETURN(record.machine, reader.Text("machine"));
  INGOT_ASSIGN_OR_RETURN(record.tool, reader.Text("tool"));
  INGOT_ASSIGN_OR_RETURN(record.threads, reader.Integer("threads"));
  INGOT_ASSIGN_OR_RETURN(record.program, reader.Text("program"));
  INGOT_ASSIGN_OR_RETURN(record.outcome, reader.Text("outcome"));
  if (record.outcome != Record::kNotCompiled &&
      std::ranges::find(kOutcomes, record.outcome, OutcomeName) == kOutcomes.end()) {
    return Malformed("the unknown outcome \"" + record.outcome + "\"");
  }
  INGOT_ASSIGN_OR_RETURN(record.error, reader.Text("error"));
  INGOT_RETURN_IF_ERROR(ReadTimes(reader, record));
  return record;
}

}  // namespace ingot::tune
