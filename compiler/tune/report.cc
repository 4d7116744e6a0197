// The table, and what it shares with the page.
#include "compiler/tune/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ingot::tune {
namespace {

std::string Format(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Microseconds(double seconds) { return seconds > 0 ? Format("%.1f us", seconds * 1e6) : "-"; }

std::string WhatWasFound(const TaskResult& result) {
  if (result.best != nullptr) return GainText(*result.best);
  if (result.comparison != nullptr) {
    return "default stays: " + (result.comparison->is_ok() ? GainText(*result.comparison) : result.comparison->outcome);
  }
  return "default stays" + (result.note.empty() ? "" : ": " + result.note);
}

}  // namespace

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  Spread spread;
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(spread.deviation / static_cast<double>(std::max<size_t>(values.size() - 1, 1)));
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  spread.median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return spread;
}

TaskTimes TimesOf(const TaskResult& result) {
  if (result.best == nullptr) return {result.default_seconds, result.default_seconds};
  return {SpreadOf(result.best->default_seconds).median, SpreadOf(result.best->seconds).median};
}

std::string GainText(const Record& record) {
  const PairedRatio ratio = record.ratio();
  return Format("%.3fx [%.3f, %.3f]", 1 / ratio.median, 1 / ratio.upper, 1 / ratio.lower);
}

std::string GraphTable(const TuningReport& report) {
  if (report.graph.empty() && report.graph_note.empty()) return "";
  std::string text;
  for (const Record* record : report.graph) {
    text += Format("%-15s  %-14s  ", std::string(KindName(record->kind)).c_str(), TargetNameOf(record->target).c_str());
    text += (record->is_ok() ? GainText(*record) : record->outcome) + "  " + ChoicesText(record->graph) + "\n";
  }
  if (!report.graph_note.empty()) text += "choices of the file were not compared: " + report.graph_note + "\n";
  return text + "choices of the file: " +
         (report.graph_taken.empty() ? "the usual ones stay"
                                     : ChoicesText(report.graph_taken) + "; vm-compile --tuning-db takes them") +
         "\n";
}

std::string ReportTable(const TuningReport& report) {
  std::string text = GraphTable(report);
  text += Format("%-18s %6s %10s %12s %12s %9s %11s  %s\n", "task", "weight", "FLOP", "default", "best", "GFLOP/s",
                 "trials", "gain, kernel");
  TaskTimes sum;
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const Task& task = report.tasks[i];
    const TaskResult& result = report.results[i];
    const TaskTimes times = TimesOf(result);
    sum.default_seconds += static_cast<double>(task.weight) * times.default_seconds;
    sum.best_seconds += static_cast<double>(task.weight) * times.best_seconds;
    std::string trials = std::to_string(result.trials);
    if (result.failed > 0) trials += " (" + std::to_string(result.failed) + " bad)";
    text += Format("%-18s %6lld %10.4g %12s %12s %9.4g %11s  ", task.key.c_str(), static_cast<long long>(task.weight),
                   task.flops, Microseconds(times.default_seconds).c_str(), Microseconds(times.best_seconds).c_str(),
                   times.best_seconds > 0 ? task.flops / times.best_seconds * 1e-9 : 0, trials.c_str());
    text += WhatWasFound(result) + "  " + task.names[0] + "\n";
  }
  text += "all measured tasks by weight: default " + Microseconds(sum.default_seconds) + ", best " +
          Microseconds(sum.best_seconds) + "\n";
  if (report.model == nullptr) return text + "the model was not compared: " + report.note + "\n";
  if (!report.model->is_ok()) return text + "the model was not compared: " + report.model->outcome + "\n";
  for (const auto& [name, seconds] :
       {std::pair{"before", &report.model->default_seconds}, {"after", &report.model->seconds}}) {
    const Spread spread = SpreadOf(*seconds);
    text += Format("the model %s: {'mean': %.4f, 'median': %.4f, 'std': %.4f} ms\n", name, spread.mean * 1e3,
                   spread.median * 1e3, spread.deviation * 1e3);
  }
  return text + "the model's gain: " + GainText(*report.model) +
         (report.model->is_faster() ? "; vm-compile --tuning-db takes it\n" : "; the defaults stay\n");
}

}  // namespace ingot::tune
