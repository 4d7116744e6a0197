// Reports: the numbers of the table and the page are those of the records, and the page stands alone.
#include "compiler/tune/report.h"

#include <doctest/doctest.h>

#include "compiler/kernels/kernel_cache.h"

namespace ingot::tune {
namespace {

Record RecordOf(Record::Kind kind, double seconds, double default_seconds) {
  Record record;
  record.kind = kind;
  record.task = "1-a";
  record.target = kernels::TargetText(Target());
  record.trace = "sch.reorder(\"<&>\")";
  record.seconds.assign(20, seconds);
  if (kind != Record::Kind::kTrial) record.default_seconds.assign(20, default_seconds);
  return record;
}

// Two tasks, of which one was found twice as fast, and a model that takes 0.9 of its time.
class ReportFixture {
 public:
  ReportFixture() {
    for (const char* key : {"1-a", "1-b"}) {
      Task task;
      task.key = key;
      task.names = {std::string("kernel<") + key + ">"};
      task.weight = 3;
      task.flops = 2e6;
      task.bytes = 1e6;
      tasks_.push_back(task);
    }
    database_.Add(RecordOf(Record::Kind::kTrial, 1e-3, 0));
    Record faster = RecordOf(Record::Kind::kTrial, 0.5e-3, 0);
    faster.choices = {{"gemm.rows", 4}};
    database_.Add(faster);
    Record bad = RecordOf(Record::Kind::kTrial, 1, 0);
    bad.outcome = "hung";
    bad.seconds = {};
    database_.Add(bad);
    faster = RecordOf(Record::Kind::kComparison, 0.5e-3, 1e-3);
    faster.choices = {{"gemm.rows", 4}};
    database_.Add(faster);
    results_[0] = {.trials = 2, .failed = 1, .default_seconds = 1e-3, .best_seconds = 0.5e-3};
    for (const Record& record : database_.records()) {
      if (record.kind == Record::Kind::kTrial) results_[0].records.push_back(&record);
    }
    results_[0].comparison = results_[0].best = &database_.records().back();
    results_[1].note = "its sizes are symbols";
    Record model = RecordOf(Record::Kind::kModel, 9e-3, 10e-3);
    model.seconds[0] = 11e-3;
    database_.Add(model);
  }
  TuningReport Report() const { return {"net & co", target_, tasks_, results_, &database_.records().back()}; }

  Target target_;
  std::vector<Task> tasks_;
  std::vector<TaskResult> results_{2};
  Database database_;
};

bool Contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(part, " is not in:\n", text);
  return false;
}

TEST_CASE("tuning reports: mean, median and deviation") {
  CHECK(SpreadOf({}).mean == 0);
  const Spread spread = SpreadOf({1, 2, 3, 6});
  CHECK(spread.mean == doctest::Approx(3));
  CHECK(spread.median == doctest::Approx(2.5));
  CHECK(spread.deviation == doctest::Approx(2.160247));
}

TEST_CASE_FIXTURE(ReportFixture, "tuning reports: the table has what the records say") {
  const std::string table = ReportTable(Report());
  CHECK(Contains(table,
                 "1-a                     3      2e+06    1000.0 us     500.0 us         4   2 (1 bad)  "
                 "2.000x [2.000, 2.000]  kernel<1-a>\n"));
  CHECK(Contains(table, "default stays: its sizes are symbols  kernel<1-b>\n"));
  CHECK(Contains(table, "all measured tasks by weight: default 3000.0 us, best 1500.0 us\n"));
  CHECK(Contains(table, "the model before: {'mean': 10.0000, 'median': 10.0000, 'std': 0.0000} ms\n"));
  CHECK(Contains(table, "the model after: {'mean': 9.1000, 'median': 9.0000, 'std': 0.4472} ms\n"));
  CHECK(Contains(table, "the model's gain: 1.111x [1.111, 1.111]; vm-compile --tuning-db takes it\n"));
  TuningReport without = Report();
  without.model = nullptr;
  without.note = "interrupted";
  CHECK(Contains(ReportTable(without), "the model was not compared: interrupted\n"));
}

TEST_CASE_FIXTURE(ReportFixture, "tuning reports: choices of the file, in the table and on the page") {
  TuningReport report = Report();
  CHECK(GraphTable(report).empty());
  CHECK(ReportPage(report).find("Choices of the file") == std::string::npos);
  Record record = RecordOf(Record::Kind::kGraph, 0.8e-3, 1e-3);
  record.graph = {{"layout", 0}, {"<w>", 1}};
  Record failed = record;
  failed.kind = Record::Kind::kGraphScreening;
  failed.outcome = "wrong result";
  report.graph = {&failed, &record};
  report.graph_taken = record.graph;
  CHECK(GraphTable(report) ==
        "graph screening  x86-64-v3       wrong result  <w>=1, layout=0\n"
        "graph            x86-64-v3       1.250x [1.250, 1.250]  <w>=1, layout=0\n"
        "choices of the file: <w>=1, layout=0; vm-compile --tuning-db takes them\n");
  CHECK(Contains(ReportTable(report), GraphTable(report)));
  const std::string page = ReportPage(report);
  CHECK(Contains(page,
                 "<td>&lt;w&gt;=1, layout=0</td><td>x86-64-v3</td><td>graph</td><td>1</td><td>0.8</td><td>1.250x "
                 "[1.250, 1.250]</td>"));
  CHECK(Contains(page, "<td>graph screening</td><td>1</td><td>0.8</td><td>wrong result</td>"));
  CHECK(Contains(page, "vm-compile --tuning-db takes &lt;w&gt;=1, layout=0."));
  report.graph_note = "the time was used up";
  CHECK(Contains(ReportPage(report), "<p>No alternative was compared: the time was used up.</p>"));
  report.graph = {};
  report.graph_taken = {};
  report.graph_note = "interrupted";
  CHECK(Contains(GraphTable(report), "choices of the file were not compared: interrupted\n"));
  CHECK(Contains(GraphTable(report), "the usual ones stay\n"));
}

TEST_CASE_FIXTURE(ReportFixture, "tuning reports: the page has them too, in pictures, and fetches and runs nothing") {
  const std::string page = ReportPage(Report());
  CHECK(Contains(page, "<h1>Tuning of net &amp; co for x86-64-v3</h1>"));
  CHECK(Contains(page, "<td>1000</td><td>500</td><td>4</td><td>2.000x [2.000, 2.000]</td><td>2</td><td>1</td>"));
  CHECK(Contains(page, "<tr><td>after</td><td>9.1</td><td>9</td><td>0.4472</td></tr>"));
  CHECK(Contains(page, "<title>500 us: gemm.rows=4</title>"));
  CHECK(Contains(page, "<title>hung</title>"));
  CHECK(Contains(page, "sch.reorder(&quot;&lt;&amp;&gt;&quot;)"));
  CHECK(Contains(page, "kernel&lt;1-a&gt;, best: 4 GFLOP/s"));
  // Of three trials the fastest so far: 1000 us, then 500; half of the axis from 0 to 1050 is a y near 146.
  CHECK(Contains(page, "<polyline class=\"fastest\" points=\"70,22.38 345,22.38 345,146.2 \"/>"));
  // Round numbers beside the axes: of 0 to 1050 us, of trials 0 to 2, and of FLOP per byte from 1 on.
  for (const char* tick : {"end\">500</text>", "end\">1000</text>", "middle\">2</text>", "middle\">50</text>"}) {
    CHECK(Contains(page, tick));
  }
  CHECK(Contains(page, "<td>kernel&lt;1-b&gt;</td><td>3</td><td>2</td><td>1</td><td>–</td><td>–</td><td>–</td>"));
  for (const char* part : {"<script", "http", "src=", "href=", "url("}) CHECK(page.find(part) == std::string::npos);
  CHECK(page.find("kernel<1") == std::string::npos);
}

}  // namespace
}  // namespace ingot::tune
