// The page: HTML with its style and its pictures inside, as SVG; nothing is fetched and nothing runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "compiler/tune/report.h"

namespace ingot::tune {
namespace {

std::string Number(double value, const char* format = "%.4g") {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Element(const char* name, std::string_view text) {
  return std::string("<") + name + ">" + Escape(text) + "</" + name + ">";
}

// A picture of points in a frame, with axes that may be logarithmic.
class Plot {
 public:
  struct Axis {
    std::string title;
    double least = 0, most = 1;
    enum class Scale { kLinear, kWhole, kLog } scale = Scale::kLinear;  // whole: of whole numbers
  };
  Plot(Axis x, Axis y) : x_(std::move(x)), y_(std::move(y)) {
    svg_ =
        "<svg viewBox=\"0 0 640 320\" role=\"img\"><rect class=\"frame\" x=\"70\" y=\"10\" width=\"550\" "
        "height=\"260\"/>";
    for (const double tick : Ticks(x_)) {
      svg_ += Label(X(tick), 286, "middle", Number(tick, "%g"));
      svg_ += "<path class=\"grid\" d=\"M" + Number(X(tick)) + " 10V270\"/>";
    }
    for (const double tick : Ticks(y_)) {
      svg_ += Label(64, Y(tick) + 4, "end", Number(tick, "%g"));
      svg_ += "<path class=\"grid\" d=\"M70 " + Number(Y(tick)) + "H620\"/>";
    }
    svg_ += Label(345, 308, "middle", x_.title) + "<text transform=\"rotate(-90 14 140)\" x=\"14\" y=\"140\" " +
            "text-anchor=\"middle\">" + Escape(y_.title) + "</text>";
  }

  void Point(const char* style, double x, double y, const std::string& title) {
    svg_ += std::string("<circle class=\"") + style + "\" cx=\"" + Number(X(x)) + "\" cy=\"" + Number(Y(y)) +
            "\" r=\"3.5\">" + Element("title", title) + "</circle>";
  }
  void Line(const char* style, const std::vector<std::pair<double, double>>& points) {
    svg_ += std::string("<polyline class=\"") + style + "\" points=\"";
    for (const auto& [x, y] : points) svg_ += Number(X(x)) + "," + Number(Y(y)) + " ";
    svg_ += "\"/>";
  }
  std::string Take() { return std::move(svg_) + "</svg>\n"; }

 private:
  static std::string Label(double x, double y, const char* anchor, const std::string& text) {
    return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor + "\">" + Escape(text) +
           "</text>";
  }
  // Round numbers within the axis: by steps, or the powers of ten and, where these are few, their double and fivefold.
  static std::vector<double> Ticks(const Axis& axis) {
    std::vector<double> ticks;
    const auto add = [&](double tick) {
      if (tick >= axis.least * (1 - 1e-9) && tick <= axis.most * (1 + 1e-9)) ticks.push_back(tick);
    };
    if (axis.scale == Axis::Scale::kLog) {
      const bool is_short = axis.most / axis.least < 1e3;
      for (double power = std::floor(std::log10(axis.least)); power <= std::log10(axis.most); ++power) {
        for (const double factor : {1.0, 2.0, 5.0}) {
          if (is_short || factor == 1) add(factor * std::pow(10, power));
        }
      }
      return ticks;
    }
    constexpr double kSteps = 5;
    const double least_step = (axis.most - axis.least) / kSteps;
    const double power = std::pow(10, std::floor(std::log10(least_step)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) step = factor * power >= least_step ? factor * power : step;
    if (axis.scale == Axis::Scale::kWhole) step = std::max(step, 1.0);
    for (double i = 0; axis.least + i * step <= axis.most * (1 + 1e-9); ++i) add(axis.least + i * step);
    return ticks;
  }
  static double Part(const Axis& axis, double value) {
    const bool is_log = axis.scale == Axis::Scale::kLog;
    const double part = is_log ? std::log(value / axis.least) / std::log(axis.most / axis.least)
                               : (value - axis.least) / (axis.most - axis.least);
    return std::clamp(part, 0.0, 1.0);
  }
  double X(double value) const { return 70 + 550 * Part(x_, value); }
  double Y(double value) const { return 270 - 260 * Part(y_, value); }

  const Axis x_, y_;
  std::string svg_;
};

// A dash where nothing was measured.
std::string Measured(double value) { return value > 0 ? Number(value) : "–"; }

std::string TableHtml(const TuningReport& report) {
  std::string html = "<table class=\"tasks\"><tr>";
  for (const char* head :
       {"task", "kernel", "weight", "MFLOP", "MB", "default us", "best us", "GFLOP/s", "gain", "trials", "bad"}) {
    html += Element("th", head);
  }
  html += "</tr>\n";
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const Task& task = report.tasks[i];
    const TaskResult& result = report.results[i];
    const TaskTimes times = TimesOf(result);
    const double rate = times.best_seconds > 0 ? task.flops / times.best_seconds * 1e-9 : 0;
    html += "<tr>" + Element("td", task.key) + Element("td", task.names[0]) +
            Element("td", std::to_string(task.weight)) + Element("td", Number(task.flops * 1e-6)) +
            Element("td", Number(task.bytes * 1e-6)) + Element("td", Measured(times.default_seconds * 1e6)) +
            Element("td", Measured(times.best_seconds * 1e6)) + Element("td", Measured(rate)) +
            Element("td", result.best == nullptr ? "default" : GainText(*result.best)) +
            Element("td", std::to_string(result.trials)) + Element("td", std::to_string(result.failed)) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string ModelHtml(const TuningReport& report) {
  if (report.model == nullptr || !report.model->is_ok()) {
    return Element("p",
                   "The model was not compared: " + (report.model == nullptr ? report.note : report.model->outcome));
  }
  std::string html = "<table><tr>" + Element("th", "the model, in turns, ms") + Element("th", "mean") +
                     Element("th", "median") + Element("th", "std") + "</tr>\n";
  for (const auto& [name, seconds] :
       {std::pair{"before", &report.model->default_seconds}, {"after", &report.model->seconds}}) {
    const Spread spread = SpreadOf(*seconds);
    html += "<tr>" + Element("td", name);
    for (const double value : {spread.mean, spread.median, spread.deviation})
      html += Element("td", Number(value * 1e3));
    html += "</tr>\n";
  }
  return html + "</table>\n" +
         Element("p", "Gain: " + GainText(*report.model) +
                          (report.model->is_faster() ? "; vm-compile --tuning-db takes it." : "; the defaults stay."));
}

std::string GraphHtml(const TuningReport& report) {
  if (report.graph.empty()) return "";
  std::string html = Element("h2", "Choices of the file") + "<table class=\"graph\"><tr>";
  for (const char* head : {"choices", "CPU", "measured", "usual ms", "chosen ms", "gain"}) html += Element("th", head);
  html += "</tr>\n";
  for (const Record* record : report.graph) {
    html += "<tr>" + Element("td", ChoicesText(record->graph)) + Element("td", TargetNameOf(record->target)) +
            Element("td", KindName(record->kind)) +
            Element("td", Measured(SpreadOf(record->default_seconds).median * 1e3)) +
            Element("td", Measured(SpreadOf(record->seconds).median * 1e3)) +
            Element("td", record->is_ok() ? GainText(*record) : record->outcome) + "</tr>\n";
  }
  html += "</table>\n";
  if (!report.graph_note.empty()) html += Element("p", "No alternative was compared: " + report.graph_note + ".");
  return html + Element("p", report.graph_taken.empty()
                                 ? "The usual choices stay."
                                 : "vm-compile --tuning-db takes " + ChoicesText(report.graph_taken) + ".");
}

// Rates over FLOPs per byte, under the nominal limits of RooflineSeconds.
std::string RooflineHtml(const TuningReport& report) {
  struct Dot {
    double intensity, before, after;
    std::string name;
  };
  std::vector<Dot> dots;
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const Task& task = report.tasks[i];
    const TaskTimes times = TimesOf(report.results[i]);
    if (task.flops <= 0 || task.bytes <= 0 || times.default_seconds <= 0) continue;
    dots.push_back({task.flops / task.bytes, task.flops / times.default_seconds * 1e-9,
                    task.flops / times.best_seconds * 1e-9, task.names[0]});
  }
  if (dots.empty()) return Element("p", "No task with floating-point operations was measured.");
  const auto limit = [&](double intensity) {
    Task task;
    task.bytes = 1e9;
    task.flops = intensity * task.bytes;
    return task.flops / RooflineSeconds(task, report.target) * 1e-9;
  };
  double least_x = dots[0].intensity, most_x = least_x, least_y = dots[0].before;
  for (const Dot& dot : dots) {
    least_x = std::min(least_x, dot.intensity);
    most_x = std::max(most_x, dot.intensity);
    least_y = std::min({least_y, dot.before, dot.after});
  }
  least_x /= 2;
  most_x = std::max(most_x * 2, 100.0);
  Plot plot({"FLOP per byte", least_x, most_x, Plot::Axis::Scale::kLog},
            {"GFLOP/s", least_y / 2, limit(most_x) * 1.5, Plot::Axis::Scale::kLog});
  std::vector<std::pair<double, double>> roof;
  for (int i = 0; i <= 60; ++i) {
    const double x = least_x * std::pow(most_x / least_x, i / 60.0);
    roof.emplace_back(x, limit(x));
  }
  plot.Line("roof", roof);
  for (const Dot& dot : dots) {
    plot.Point("before", dot.intensity, dot.before, dot.name + ", default: " + Number(dot.before) + " GFLOP/s");
    plot.Point("after", dot.intensity, dot.after, dot.name + ", best: " + Number(dot.after) + " GFLOP/s");
  }
  return plot.Take() + Element("p", "Line: nominal limit of one core. Hollow: default schedules; filled: best ones.");
}

// Trials in the order of the database, and the fastest so far.
std::string SearchHtml(const TuningReport& report, size_t index) {
  const std::vector<const Record*>& trials = report.results[index].records;
  double slowest = 0;
  for (const Record* record : trials) slowest = std::max(slowest, record->fastest_seconds());
  if (trials.size() < 2 || slowest <= 0) return "";
  // What is much slower than the default lies at the upper edge, so that the others can be told apart.
  const double first = trials[0]->fastest_seconds();
  const double most = first > 0 ? std::min(slowest, 2 * first) : slowest;
  Plot plot({"trial (0: default)", 0, static_cast<double>(trials.size() - 1), Plot::Axis::Scale::kWhole},
            {"us", 0, most * 1.05e6});
  std::vector<std::pair<double, double>> fastest;
  for (size_t i = 0; i < trials.size(); ++i) {
    const double seconds = trials[i]->fastest_seconds(), x = static_cast<double>(i);
    if (seconds <= 0) {
      plot.Point("bad", x, 0, trials[i]->outcome);
      continue;
    }
    const double best = fastest.empty() ? seconds : std::min(seconds, fastest.back().second * 1e-6);
    if (!fastest.empty()) fastest.emplace_back(x, fastest.back().second);
    fastest.emplace_back(x, best * 1e6);
    std::string title = Number(seconds * 1e6) + " us:";
    for (const auto& [name, value] : trials[i]->choices) title += " " + name + "=" + std::to_string(value);
    plot.Point(i == 0 ? "before" : "after", x, seconds * 1e6, title);
  }
  plot.Line("fastest", fastest);
  std::string html =
      "<section>" + Element("h3", report.tasks[index].names[0]) + Element("p", report.tasks[index].key) + plot.Take();
  const Record* best = report.results[index].best;
  if (best == nullptr) return html + Element("p", "The default schedule stays.") + "</section>\n";
  std::string choices = GainText(*best) + ":";
  for (const auto& [name, value] : best->choices) choices += " " + name + "=" + std::to_string(value);
  return html + Element("p", choices) + "<details><summary>the schedule</summary>" + Element("pre", best->trace) +
         "</details></section>\n";
}

constexpr std::string_view kStyle = R"(
body{font:15px/1.4 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}
td,th{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}
.tasks td:nth-child(2),.tasks th:nth-child(2){text-align:left}
.searches{display:grid;grid-template-columns:repeat(auto-fill,minmax(28em,1fr));gap:1.5em}
section{min-width:0}section h3,section p{margin:.2em 0}
svg{width:100%;max-width:640px;height:auto;font-size:11px}
.frame{fill:none;stroke:#888}.grid{stroke:#e4e4e4}.roof,.fastest{fill:none;stroke:#b04a00;stroke-width:1.5}
.before{fill:#fff;stroke:#1f5fa8}.after{fill:#1f5fa8}.bad{fill:#c00}pre{font-size:12px;overflow-x:auto}
)";

}  // namespace

std::string ReportPage(const TuningReport& report) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">" +
                     Element("title", "Tuning of " + report.title) + "<style>" + std::string(kStyle) +
                     "</style></head><body>\n" +
                     Element("h1", "Tuning of " + report.title + " for " + report.target.name) + "\n" +
                     ModelHtml(report) + GraphHtml(report) + Element("h2", "Tasks") + TableHtml(report) +
                     Element("h2", "Roofline") + RooflineHtml(report) + Element("h2", "Searches") +
                     Element("p", "Hollow: the default schedule; line: the fastest so far. Red: what gave no time.") +
                     "<div class=\"searches\">\n";
  for (size_t i = 0; i < report.tasks.size(); ++i) html += SearchHtml(report, i);
  return html + "</div></body></html>\n";
}

}  // namespace ingot::tune
