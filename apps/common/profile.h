// Profile: the times of a context's invocations, for --profile and --trace: a table of instructions by time, the same
// as JSON, and a trace for chrome://tracing or Perfetto. It is the profiler (C API) of one context.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/json.h"
#include "formats/file.h"
#include "ingot/ingot.h"
#include "runtime/status.h"

namespace ingot::apps {

class Profile {
 public:
  // The trace keeps this many events; further ones are only counted.
  static constexpr size_t kMaxTraceEvents = size_t{1} << 20;

  Profile() = default;
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Starts to observe the context, which must outlive this object unless Detach is called.
  Status Attach(ingot_context* context, bool keep_trace);
  void Detach();
  bool is_attached() const { return context_ != nullptr; }
  // Called before and after each invocation, to measure the whole time of which the instructions' times are shares.
  void BeginInvocation();
  void EndInvocation();

  // Rows by falling time. Kernels, builtins and external functions have a row per instruction, everything else one per
  // opcode. Shares are of the invocations' whole time; rates come from the compiler's estimates.
  std::string ToTable() const;
  Json ToJson() const;
  // Times of kernels by name, the longest first.
  struct KernelTime {
    std::string name;
    int64_t calls = 0;
    int64_t total_ns = 0;
    double flops = 0, bytes = 0;  // of all calls
    double share = 0;             // of the invocations' whole time
  };
  std::vector<KernelTime> Kernels() const;
  Status WriteTrace(const std::string& path, formats::FileCalls& calls) const;

 private:
  struct Row {
    ingot_event event;  // the first one; its strings belong to the executable
    int64_t calls = 0;
    int64_t total_ns = 0;
    double flops = 0;  // of all calls
    double bytes = 0;
  };
  struct Span {
    size_t row;  // kInvocation: a whole invocation
    int64_t begin_ns;
    int64_t end_ns;
  };
  static constexpr size_t kInvocation = SIZE_MAX;

  static void OnEvent(void* self, const ingot_event* event);
  void Add(const ingot_event& event);
  void Keep(const Span& span);
  std::vector<const Row*> SortedRows() const;
  double ShareOf(int64_t ns) const;

  ingot_context* context_ = nullptr;
  bool keep_trace_ = false;
  std::vector<Row> rows_;
  std::map<std::pair<const char*, int64_t>, size_t> row_of_;  // by function and instruction, or by opcode and -1
  std::vector<Span> spans_;
  int64_t dropped_spans_ = 0;
  int64_t invocations_ = 0;
  int64_t invocation_begin_ns_ = 0;
  int64_t total_ns_ = 0;
};

}  // namespace ingot::apps
