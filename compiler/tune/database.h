// Database: what was measured, in a file of lines that is only appended to (formats/README.md has the schema), and what
// follows from it for a kernel and for a model. A line that does not fit is refused by its number; a last line that was
// cut off, as by a process that was killed, is reported and left out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/target/target.h"
#include "compiler/tune/measure/paired_ratio.h"
#include "compiler/tune/sizes.h"
#include "compiler/tune/tuned_set.h"
#include "runtime/status.h"

namespace ingot::tune {

struct Record {
  enum class Kind : uint8_t {
    kTrial,           // of the search: a schedule alone
    kScreening,       // one of the fastest trials and the default in turns, which says which of them is compared
    kComparison,      // that one and the default in turns, on fresh measurements, which can make it the task's best
    kModel,           // a whole model with the best schedules of its tasks and without any, in turns
    kGraphScreening,  // a whole model with other choices of its graph passes and with the usual ones, in turns
    kGraph,           // the same with the fastest of these choices, on fresh measurements, which can make it taken
  };
  Kind kind = Kind::kTrial;
  std::string task, function;   // of a task: TaskKey, TaskText
  schedule::Chosen choices;     // of a task: that differ from the default rules' own; empty: the default schedule
  std::string trace;            // of a task: the schedule that they gave, as code
  std::string model;            // of a model: ModelKey, with the usual choices of its graph passes if it is of those
  TunedSet set;                 // of a model
  schedule::Chosen graph;       // of graph passes: what they chose that is not usual
  std::string result;           // of graph passes: ModelKey of what they made with these choices
  std::string target;           // kernels::TargetText
  std::vector<Sizes> sizes;     // of symbols, whose times are taken together; empty: there are none
  std::string machine, tool;    // where and by which version it was measured
  bool is_hot = false;          // of a task: measured with its tensors in the caches
  std::vector<int64_t> warm;    // of a task: the inputs that were in the caches, when others were not
  int64_t threads = 1;          // of the kernels
  std::string program;          // a hash of the executable that was measured; empty: none was compiled
  std::string outcome = "ok";   // or what went wrong: kNotCompiled, or an OutcomeName
  std::string error;            // empty when ok
  std::vector<double> seconds;  // of a call, by repeats
  std::vector<double> default_seconds;  // of all but trials: of the default in the same repeats

  static constexpr std::string_view kNotCompiled = "not compiled";
  static constexpr double kLargestUpperBound = 0.98;
  static constexpr size_t kFewestPairs = 15;

  bool is_ok() const { return outcome == "ok"; }
  double fastest_seconds() const;  // of the repeats, by which the search goes; 0 where there are no times
  double median_seconds() const;   // 0 where there are no times
  PairedRatio ratio() const;       // of seconds by default_seconds; of all but trials that are ok
  // It says for certain that what was measured takes less than 0.98 of the default's time.
  bool is_faster() const;
};

std::string RecordLine(const Record& record);  // without the end of the line
// A verdict that the times of the record do not give is an error, too.
Result<Record> ParseRecord(const std::string& line);
// The target's name, of a record's text of it: "x86-64-v3".
std::string TargetNameOf(const std::string& target_text);
// "layout=0, pack_weights=0".
std::string ChoicesText(const schedule::Chosen& choices);
std::string_view KindName(Record::Kind kind);

// Whether the record is of this function, and its trace the one of this schedule, which its choices gave. The failure
// says why not.
Status FitsRecord(const Record& record, const ir::PrimFunc& function,
                  const Result<schedule::ScheduledFunction>& scheduled);

class Database {
 public:
  Database() = default;
  Database(Database&&) = default;  // records keep their addresses
  Database& operator=(Database&&) = default;
  static Result<Database> Load(const std::string& path);

  const std::deque<Record>& records() const { return records_; }  // their addresses last
  const std::string& torn_line() const { return torn_line_; }     // a note on what was cut off; empty: nothing
  void Add(Record record);

  // Of the certainly faster kernels of a task on a target, the one of the smallest ratio; null: none. Of equal ones,
  // the first in the file.
  const Record* Best(const std::string& task, const std::string& target) const;
  // The same of whole models: whose set is to be taken.
  const Record* BestOfModel(const std::string& model, const std::string& target) const;
  // The choices of graph passes to be taken for a file: for each of its targets they certainly make this model faster,
  // and with the sets that BestOfModel has of what they make it is faster than any other. The record is the first
  // target's; null: the usual choices.
  const Record* BestGraph(const std::string& model, const std::vector<std::string>& targets) const;
  bool has_graphs() const { return !graphs_.empty(); }  // some that are faster
  // The record that says so of these choices and this target; null: none.
  const Record* FasterGraph(const std::string& model, const schedule::Chosen& graph, const std::string& result,
                            const std::string& target) const;
  // What a set chooses for a function with its buffers named by their places. Fails where no comparison says that this
  // is faster, where that one is of another function with this hash, and where the rules of this build make another
  // schedule of the choices than was measured.
  Result<schedule::Chosen> ChosenFor(const ir::PrimFunc& function, const Target& target, const TunedSet& set) const;
  // What the Bests need, alone.
  Database Pruned() const;

 private:
  friend class DatabaseFile;
  struct Fastest {
    const Record* record;
    double median;  // of its ratio
  };
  using Key = std::pair<std::string, std::string>;  // of a task or a model, and target
  const Record* FasterKernel(const std::string& task, const std::string& target, const schedule::Chosen& choices) const;

  std::deque<Record> records_;
  std::map<Key, Fastest> best_, best_of_models_;
  // Of graph passes: by model, target, choices, and the module that they give.
  std::map<std::tuple<std::string, std::string, schedule::Chosen, std::string>, Fastest> graphs_;
  std::string torn_line_;
  uint64_t whole_bytes_ = 0;  // of the file, up to the end of its last whole line
};

// A database that this process appends to, and no other one meanwhile.
class DatabaseFile {
 public:
  // Locks the file, which is made where it is not there, then reads it, and removes a torn last line.
  static Result<DatabaseFile> Open(const std::string& path);
  DatabaseFile(DatabaseFile&& other) noexcept;
  DatabaseFile& operator=(DatabaseFile&&) = delete;
  ~DatabaseFile();

  const Database& database() const { return database_; }
  // To the file, then to the database.
  Result<const Record*> Append(Record record);

 private:
  DatabaseFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::string path_;
  Database database_;
};

}  // namespace ingot::tune
