// Adds events up per instruction or opcode, and prints them as a table, as JSON and as a Chrome trace.
#include "apps/common/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>

#include "apps/common/session.h"

namespace ingot::apps {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const char* KindName(ingot_event_kind kind) {
  switch (kind) {
    case INGOT_EVENT_KERNEL:
      return "kernel";
    case INGOT_EVENT_BUILTIN:
      return "builtin";
    case INGOT_EVENT_EXTERNAL:
      return "external";
    case INGOT_EVENT_OTHER:
      break;
  }
  return "instruction";
}

// An amount per nanosecond, which is giga per second; "-" where it is not known.
std::string Rate(double amount, int64_t ns) {
  if (amount <= 0 || ns <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", amount / static_cast<double>(ns));
  return text;
}

}  // namespace

Profile::~Profile() { Detach(); }

Status Profile::Attach(ingot_context* context, bool keep_trace) {
  INGOT_RETURN_IF_ERROR(FromC(ingot_context_set_profiler(context, &Profile::OnEvent, this)));
  context_ = context;
  keep_trace_ = keep_trace;
  return Status();
}

void Profile::Detach() {
  if (context_ != nullptr) ingot_status_release(ingot_context_set_profiler(context_, nullptr, nullptr));
  context_ = nullptr;
}

void Profile::OnEvent(void* self, const ingot_event* event) { static_cast<Profile*>(self)->Add(*event); }

void Profile::Add(const ingot_event& event) {
  const bool is_call = event.kind != INGOT_EVENT_OTHER;
  const std::pair<const char*, int64_t> key(is_call ? event.function : event.name, is_call ? event.instruction : -1);
  const auto [found, is_new] = row_of_.emplace(key, rows_.size());
  if (is_new) rows_.push_back({event});
  Row& row = rows_[found->second];
  ++row.calls;
  row.total_ns += event.end_ns - event.begin_ns;
  row.flops += static_cast<double>(event.flops);
  row.bytes += static_cast<double>(event.bytes);
  if (keep_trace_) Keep({found->second, event.begin_ns, event.end_ns});
}

void Profile::Keep(const Span& span) {
  if (spans_.size() < kMaxTraceEvents) {
    spans_.push_back(span);
  } else {
    ++dropped_spans_;
  }
}

void Profile::BeginInvocation() { invocation_begin_ns_ = NowNs(); }

void Profile::EndInvocation() {
  const int64_t end = NowNs();
  ++invocations_;
  total_ns_ += end - invocation_begin_ns_;
  if (keep_trace_) Keep({kInvocation, invocation_begin_ns_, end});
}

std::vector<const Profile::Row*> Profile::SortedRows() const {
  std::vector<const Row*> sorted;
  for (const Row& row : rows_) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row* a, const Row* b) { return a->total_ns > b->total_ns; });
  return sorted;
}

double Profile::ShareOf(int64_t ns) const {
  return total_ns_ > 0 ? 100 * static_cast<double>(ns) / static_cast<double>(total_ns_) : 0;
}

std::string Profile::ToTable() const {
  std::string out = "  share   total ms     calls    mean us  GFLOP/s     GB/s  what\n";
  char line[96];
  int64_t inside = 0;
  for (const Row* row : SortedRows()) {
    inside += row->total_ns;
    std::snprintf(line, sizeof line, "%6.2f%% %10.4f %9lld %10.3f %8s %8s  ", ShareOf(row->total_ns),
                  static_cast<double>(row->total_ns) * 1e-6, static_cast<long long>(row->calls),
                  static_cast<double>(row->total_ns) * 1e-3 / static_cast<double>(row->calls),
                  Rate(row->flops, row->total_ns).c_str(), Rate(row->bytes, row->total_ns).c_str());
    out += line;
    out += std::string(KindName(row->event.kind)) + " " + row->event.name;
    if (row->event.kind != INGOT_EVENT_OTHER) {
      out += " <- " + std::string(row->event.operation) + " (" + row->event.function + ", instruction " +
             std::to_string(row->event.instruction) + ")";
    }
    out += "\n";
  }
  const int64_t outside = std::max<int64_t>(0, total_ns_ - inside);
  std::snprintf(line, sizeof line, "%6.2f%% %10.4f %9s %10s %8s %8s  ", ShareOf(outside),
                static_cast<double>(outside) * 1e-6, "", "", "-", "-");
  out += line;
  out += "between instructions: arguments, results, calls of functions, the profiler itself\n";
  std::snprintf(line, sizeof line, "%lld invocations, %.4f ms each\n", static_cast<long long>(invocations_),
                invocations_ > 0 ? static_cast<double>(total_ns_) * 1e-6 / static_cast<double>(invocations_) : 0.0);
  return out + line;
}

Json Profile::ToJson() const {
  Json rows = Json::Array();
  for (const Row* row : SortedRows()) {
    const bool is_call = row->event.kind != INGOT_EVENT_OTHER;
    Json entry{{"kind", KindName(row->event.kind)}, {"name", row->event.name}};
    if (is_call) {
      entry["operation"] = row->event.operation;
      entry["function"] = row->event.function;
      entry["instruction"] = row->event.instruction;
    }
    entry["calls"] = row->calls;
    entry["total_ns"] = row->total_ns;
    entry["share"] = ShareOf(row->total_ns) / 100;
    entry["flops"] = row->flops;
    entry["bytes"] = row->bytes;
    rows.push_back(std::move(entry));
  }
  return {{"invocations", invocations_}, {"total_ns", total_ns_}, {"rows", std::move(rows)}};
}

std::vector<Profile::KernelTime> Profile::Kernels() const {
  std::map<std::string, KernelTime> by_name;
  for (const Row& row : rows_) {
    if (row.event.kind != INGOT_EVENT_KERNEL) continue;
    KernelTime& kernel = by_name[row.event.name];
    kernel.name = row.event.name;
    kernel.calls += row.calls;
    kernel.total_ns += row.total_ns;
    kernel.flops += row.flops;
    kernel.bytes += row.bytes;
    kernel.share = ShareOf(kernel.total_ns) / 100;
  }
  std::vector<KernelTime> kernels;
  for (auto& [name, kernel] : by_name) kernels.push_back(std::move(kernel));
  std::ranges::stable_sort(kernels, std::greater<>(), &KernelTime::total_ns);
  return kernels;
}

Status Profile::WriteTrace(const std::string& path, formats::FileCalls& calls) const {
  std::string text =
      "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"dropped_events\": " + std::to_string(dropped_spans_) +
      "}, \"traceEvents\": [\n";
  int64_t start = INT64_MAX;
  for (const Span& span : spans_) start = std::min(start, span.begin_ns);
  const char* separator = "";
  for (const Span& span : spans_) {
    Json entry{{"ph", "X"}, {"pid", 1}, {"tid", 1}};
    entry["ts"] = static_cast<double>(span.begin_ns - start) * 1e-3;
    entry["dur"] = static_cast<double>(span.end_ns - span.begin_ns) * 1e-3;
    if (span.row == kInvocation) {
      entry["name"] = "invocation";
      entry["cat"] = "invocation";
    } else {
      const ingot_event& event = rows_[span.row].event;
      const bool is_call = event.kind != INGOT_EVENT_OTHER;
      entry["name"] = is_call && *event.operation != '\0' ? event.operation : event.name;
      entry["cat"] = KindName(event.kind);
      entry["args"] = {{"name", event.name}, {"function", event.function}};
      if (is_call) entry["args"]["instruction"] = event.instruction;
    }
    text += separator + entry.Dump();
    separator = ",\n";
  }
  text += "\n]}\n";
  return formats::WriteFileAtomically(path, std::as_bytes(std::span(text)), calls);
}

}  // namespace ingot::apps
