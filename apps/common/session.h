// Session: what vm-run and vm-bench share: an executable opened through the C API, one of its functions, a context, and
// inputs bound from the command line. Everything goes through ingot.h, as in any program that embeds the VM; inputs and
// outputs are formats' tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/nested_input.h"
#include "formats/tensor_files.h"
#include "ingot/ingot.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::apps {

// The C API's status as ours; releases it.
Status FromC(ingot_status* status);

struct SessionOptions {
  std::string path;
  std::string entry = "main";  // empty: none yet
  std::string device = "cpu";  // "cpu", "cuda:0"
  int threads = 0;
  bool stub_kernels = false;
  int64_t max_memory_bytes = 0;
  double deadline_seconds = 0;
  int64_t fuel = 0;  // calls and back edges per invocation; 0: no limit
  bool check_finite = false;
  std::string weights;  // a tensor file of weights in the place of the executable's, by name; empty: none
  bool verify = false;  // hash everything, large constants too
  // Policies: without them, naming the file is trust.
  std::string require_signature;          // a public key: a file of it, or its 64 hex digits
  std::vector<std::string> allow_sha256;  // 64 hex digits each
};

// What the command line says of inputs: positional files, then [NAME=]SPEC.
struct InputArguments {
  std::vector<std::string> files;
  std::vector<std::string> specs;
  uint64_t seed = 0;
  std::string missing_spec;  // for inputs that nothing binds, "rand" in vm-bench; empty: an error
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> Open(const SessionOptions& options);
  ~Session();

  const ingot_function* function() const { return function_; }
  // Another function of the executable, from now on; its inputs are to be bound anew.
  Status SelectFunction(const std::string& name);
  ingot_executable* executable() const { return executable_; }
  ingot_context* context() const { return context_; }

  // The lines of a file of labels, or, with an empty path, the labels that the executable holds; none is no failure.
  Result<std::vector<std::string>> Labels(const std::string& path) const;
  // The context's states from a tensor file of all of them by name, and into one.
  Status LoadStates(const std::string& path);
  Status SaveStates(const std::string& path) const;
  // Back to what was loaded, or to the initial values.
  Status RestartStates();

  // Binds every input by name, or in order; messages show the signature and suggest names. A tuple or sequence is bound
  // by its elements, "x.0", "x.1", ..., or with "()" when it has none.
  Status BindInputs(const InputArguments& arguments);
  // The inputs by name, all of them.
  Status BindTensors(std::vector<formats::NamedTensor> tensors);
  const std::vector<Tensor>& inputs() const { return inputs_; }

  struct Output {
    std::string name;
    Tensor tensor;         // or
    std::string text;      // a result that is no tensor, printed
    std::string sequence;  // of an element "y.0" or "y.0.1": the output "y" that it is of
  };
  // One call. Tensors that the function writes among its inputs come first, then its results.
  Result<std::vector<Output>> Invoke();
  // One call without looking at the results: what vm-bench times. They are written into tensors made at the first call.
  Status InvokeInto();

 private:
  explicit Session(SessionOptions options) : options_(std::move(options)) {}
  // An input, or an element of one that has elements.
  struct Part {
    size_t index;
    std::vector<size_t> path;
  };
  bool IsNested(size_t index) const;
  void UnbindInputs();
  // What the function writes gets memory, and inputs that nothing binds a value, or a failure lists them.
  Status FinishBinding(const std::string& missing_spec, uint64_t seed);
  Status BindScalar(size_t index, const std::string& spec);
  Status BindTensor(const Part& part, Tensor tensor);
  Status Bind(const Part& part, const std::string& spec, uint64_t seed);
  Result<Part> PartOfInput(const std::string& name) const;
  Result<size_t> IndexOfInput(const std::string& name) const;
  std::string Signature() const;

  SessionOptions options_;
  std::vector<formats::NamedTensor> weights_;  // which the executable borrows
  ingot_instance* instance_ = nullptr;
  ingot_executable* executable_ = nullptr;
  ingot_context* context_ = nullptr;
  const ingot_function* function_ = nullptr;
  std::vector<Tensor> inputs_;        // none where the input is no tensor
  std::vector<ingot_value> scalars_;  // by input
  std::vector<NestedInput> nested_;   // by input; of tuples and sequences
  std::vector<bool> bound_;
  std::string states_path_;  // of what was loaded
  std::vector<formats::NamedTensor> states_;
  // Of InvokeInto: the results' tensors, and everything as the C API takes it.
  std::vector<Tensor> outputs_;
  std::vector<ingot_dl_tensor> input_views_, output_views_;
  std::vector<const ingot_dl_tensor*> input_pointers_;
  std::vector<ingot_dl_tensor*> output_pointers_;
};

// From now on Ctrl-C stops the session's invocation, and the ones after it before they begin; a second one ends the
// process.
void CancelOnInterrupt(Session& session);
// From now on Ctrl-C ends the process as usual.
void DieOnInterrupt();

}  // namespace ingot::apps
