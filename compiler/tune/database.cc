// Files of records, and the best of them.
#include "compiler/tune/database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/task.h"
#include "formats/file.h"

namespace ingot::tune {
namespace {

// How every line begins, and so what a torn one has the beginning of.
constexpr std::string_view kLineBegin = "{\"ingot_tuning\":";

Status SystemError(const std::string& path, const char* action) {
  return Status(StatusCode::kIo, path + ": cannot " + action + ": " + std::strerror(errno));
}

// Puts the record there unless the one that is there has no larger ratio.
template <typename Key, typename Fastest>
void KeepFaster(std::map<Key, Fastest>& best, Key key, const Record* record) {
  const Fastest candidate = {record, record->ratio().median};  // resamples all times: once per record
  const auto [place, is_new] = best.try_emplace(std::move(key), candidate);
  if (!is_new && candidate.median < place->second.median) place->second = candidate;
}

template <typename Fastest>
const Record* FindIn(const std::map<std::pair<std::string, std::string>, Fastest>& best, const std::string& key,
                     const std::string& target) {
  const auto found = best.find({key, target});
  return found == best.end() ? nullptr : found->second.record;
}

Status Refused(const std::string& task, const std::string& why) {
  return Status(StatusCode::kBadInput, "the record of task " + task + " is refused: " + why);
}

}  // namespace

std::string TargetNameOf(const std::string& target_text) {
  const size_t begin = target_text.find(' ') + 1;  // behind the kind
  return target_text.substr(begin, target_text.find(' ', begin) - begin);
}

std::string ChoicesText(const schedule::Chosen& choices) {
  std::string text;
  for (const auto& [name, value] : choices) text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(value);
  return text;
}

Status FitsRecord(const Record& record, const ir::PrimFunc& function,
                  const Result<schedule::ScheduledFunction>& scheduled) {
  const Result<ir::PrimFunc> recorded = ParseTaskText(record.function);
  if (!recorded.ok()) return Refused(record.task, recorded.status().message());
  if (!ir::StructuralEqual(ir::Expr(*recorded), ir::Expr(function), true)) {
    return Refused(record.task, "it is of another function");
  }
  if (!scheduled.ok()) return Refused(record.task, scheduled.status().message());
  if (scheduled->trace.ToString() == record.trace) return Status();
  return Refused(record.task, "its choices give another schedule than was measured");
}

Result<Database> Database::Load(const std::string& path) {
  Database database;
  INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, formats::MapFile(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const std::string where = path + ":" + std::to_string(number);
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      const std::string_view torn = text.substr(begin);
      if (!torn.starts_with(kLineBegin) && !kLineBegin.starts_with(torn)) {
        return Status(StatusCode::kBadInput, where + ": no tuning record");
      }
      database.torn_line_ =
          where + ": the last line was cut off after " + std::to_string(torn.size()) + " bytes; it is left out";
      break;
    }
    Result<Record> record = ParseRecord(std::string(text.substr(begin, end - begin)));
    if (!record.ok()) return std::move(record).status().WithContext(where);
    database.Add(*std::move(record));
    begin = end + 1;
  }
  database.whole_bytes_ = begin;
  return database;
}

void Database::Add(Record record) {
  const Record* added = &records_.emplace_back(std::move(record));
  if (!added->is_faster()) return;
  if (added->kind == Record::Kind::kGraph) {
    KeepFaster(graphs_, {added->model, added->target, added->graph, added->result}, added);
  } else if (added->kind == Record::Kind::kModel) {
    KeepFaster(best_of_models_, {added->model, added->target}, added);
  } else {
    KeepFaster(best_, {added->task, added->target}, added);
  }
}

const Record* Database::Best(const std::string& task, const std::string& target) const {
  return FindIn(best_, task, target);
}

const Record* Database::BestOfModel(const std::string& model, const std::string& target) const {
  return FindIn(best_of_models_, model, target);
}

const Record* Database::FasterGraph(const std::string& model, const schedule::Chosen& graph, const std::string& result,
                                    const std::string& target) const {
  const auto found = graphs_.find({model, target, graph, result});
  return found == graphs_.end() ? nullptr : found->second.record;
}

const Record* Database::BestGraph(const std::string& model, const std::vector<std::string>& targets) const {
  if (targets.empty()) return nullptr;
  // Of a module behind the graph passes, by its best set.
  const auto ratio_of = [&](const std::string& behind, const std::string& target) {
    const auto found = best_of_models_.find({behind, target});
    return found == best_of_models_.end() ? 1 : found->second.median;
  };
  const auto usual = [&](double product, const std::string& target) { return product * ratio_of(model, target); };
  double least = std::accumulate(targets.begin(), targets.end(), 1.0, usual);
  const Record* best = nullptr;
  for (const auto& [key, first] : graphs_) {
    if (first.record->model != model || first.record->target != targets[0]) continue;
    double product = 1;
    for (const std::string& target : targets) {
      const auto same = graphs_.find({model, target, first.record->graph, first.record->result});
      product *= same == graphs_.end() ? INFINITY : same->second.median * ratio_of(first.record->result, target);
    }
    if (product >= least) continue;
    least = product;
    best = first.record;
  }
  return best;
}

const Record* Database::FasterKernel(const std::string& task, const std::string& target,
                                     const schedule::Chosen& choices) const {
  const auto found = std::ranges::find_if(records_, [&](const Record& record) {
    return record.kind == Record::Kind::kComparison && record.task == task && record.target == target &&
           record.choices == choices && record.is_faster();
  });
  return found == records_.end() ? nullptr : &*found;
}

Result<schedule::Chosen> Database::ChosenFor(const ir::PrimFunc& function, const Target& target,
                                             const TunedSet& set) const {
  const std::string key = TaskKey(function);
  const auto chosen = set.find(key);
  if (chosen == set.end()) return schedule::Chosen();
  const Record* record = FasterKernel(key, kernels::TargetText(target), chosen->second);
  if (record == nullptr) return Refused(key, "no comparison says that its choices are faster");
  INGOT_RETURN_IF_ERROR(
      FitsRecord(*record, function, schedule::ApplyDefaultSchedule(function, target, record->choices)));
  return record->choices;
}

Database Database::Pruned() const {
  std::set<const Record*> kept;
  for (const auto& [key, best] : best_) kept.insert(best.record);
  for (const auto& [key, graph] : graphs_) kept.insert(graph.record);
  for (const auto& [key, best] : best_of_models_) {
    const Record* record = best.record;
    kept.insert(record);
    for (const auto& [task, choices] : record->set) kept.insert(FasterKernel(task, record->target, choices));
  }
  Database pruned;
  for (const Record& record : records_) {
    if (kept.contains(&record)) pruned.Add(record);
  }
  return pruned;
}

Result<DatabaseFile> DatabaseFile::Open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0644);
  if (descriptor < 0) return SystemError(path, "open");
  DatabaseFile file(descriptor, path);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(path, "lock");
    return Status(StatusCode::kIo, path + ": another process appends to it");
  }
  INGOT_ASSIGN_OR_RETURN(file.database_, Database::Load(path));
  if (!file.database_.torn_line().empty() &&
      ::ftruncate(descriptor, static_cast<off_t>(file.database_.whole_bytes_)) != 0) {
    return SystemError(path, "remove the torn line of");
  }
  return file;
}

DatabaseFile::DatabaseFile(DatabaseFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      database_(std::move(other.database_)) {}

DatabaseFile::~DatabaseFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<const Record*> DatabaseFile::Append(Record record) {
  const std::string line = RecordLine(record) + "\n";
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "append to");
    written += static_cast<size_t>(count);
  }
  database_.Add(std::move(record));
  return &database_.records().back();
}

}  // namespace ingot::tune
