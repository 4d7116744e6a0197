// A function of an executable with its inputs, called again and again on the same tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/measure/candidate.h"
#include "ingot/ingot.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::tune {

inline constexpr size_t kCacheLineBytes = 64;

class LoadedProgram {
 public:
  // Opens the executable and binds inputs. The bytes of the program must outlive it.
  static Result<std::unique_ptr<LoadedProgram>> Open(const MeasuredProgram& program, const Candidate& candidate);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  // One call, which allocates nothing once Prepare has been called.
  Status Call();
  // Calls it for the dims of its results, then fills the results' memory with a pattern and calls it again, so that
  // results which it does not write are seen.
  Status Prepare();
  // Reads and writes a byte of each cache line of the warm inputs.
  void WarmInputs();
  // What the last call wrote: inputs that the function writes, then results.
  struct Output {
    std::string name;
    Tensor tensor;
  };
  std::vector<Output> outputs() const;

 private:
  LoadedProgram() = default;
  Status BindInputs(const std::vector<MeasuredInput>& inputs, uint64_t seed);
  Status BindNumber(size_t index, const std::string& text);
  Status MakeResults();
  Status Invoke(std::vector<ingot_value>& results);
  bool TakesTensorsAlone() const;

  ingot_instance* instance_ = nullptr;
  ingot_executable* executable_ = nullptr;
  ingot_context* context_ = nullptr;
  const ingot_function* function_ = nullptr;
  std::vector<Tensor> inputs_, results_;  // no tensor where the input is a number
  std::vector<size_t> warm_inputs_;       // tensors among them
  std::vector<ingot_value> arguments_;
  std::vector<ingot_dl_tensor> input_views_, result_views_;
  std::vector<const ingot_dl_tensor*> input_pointers_;
  std::vector<ingot_dl_tensor*> result_pointers_;
};

}  // namespace ingot::tune
