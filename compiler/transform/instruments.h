// The pass instruments of the compiler: verify, time, print, and one that calls a function.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "compiler/transform/pass.h"

namespace ingot::transform {

// Verifies (op::VerifyModule) the result of every pass, and the module before the first one.
class VerifyPasses : public PassInstrument {
 public:
  Status BeforePass(const Pass& pass, const ir::IRModule& module) override;
  Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds) override;

 private:
  bool is_first_ = true;
};

// Measures how long each pass took, in order.
class TimePasses : public PassInstrument {
 public:
  Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds) override;
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }
  // Returns a line per pass: milliseconds, share, name.
  std::string ToString() const;

 private:
  std::vector<std::pair<std::string, double>> seconds_;
};

// Prints the module after these passes, or after all passes if none are given.
class PrintPasses : public PassInstrument {
 public:
  explicit PrintPasses(std::ostream& out, std::vector<std::string> passes = {})
      : out_(out), passes_(std::move(passes)) {}
  Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds) override;

 private:
  std::ostream& out_;
  std::vector<std::string> passes_;
};

class CallAfterPasses : public PassInstrument {
 public:
  using Function = std::function<Status(const Pass& pass, const ir::IRModule& module, double seconds)>;
  explicit CallAfterPasses(Function function) : function_(std::move(function)) {}
  Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds) override {
    return function_(pass, module, seconds);
  }

 private:
  Function function_;
};

}  // namespace ingot::transform
