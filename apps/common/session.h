// Session: what vm-run, vm-bench and packed programs share: an executable opened through the C API, one of its
// functions, a context, and inputs bound from the command line. Everything goes through ingot.h, as in any program that
// embeds the VM; inputs and outputs are Tensors, as formats/ reads and writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/nested_input.h"
#include "formats/file.h"
#include "formats/tensor_files.h"
#include "ingot/ingot.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::apps {

// Converts a status of the C API, and releases it.
Status FromC(ingot_status* status);

struct SessionOptions {
  std::string path;
  std::string entry = "main";  // empty: none yet
  std::string device;          // "cpu", "cuda:0"; empty: what the file is for
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

// The inputs on a command line: positional files, then [NAME=]SPEC.
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
  // Chooses another function of the executable; its inputs have to be bound anew.
  Status SelectFunction(const std::string& name);
  ingot_executable* executable() const { return executable_; }
  ingot_context* context() const { return context_; }

  // The lines of a file of labels, or, with an empty path, the labels in the executable's metadata; empty when it has
  // none.
  Result<std::vector<std::string>> Labels(const std::string& path) const;
  // Returns the strings that the elements of an input or output stand for, which are places among them; empty if it has
  // no strings.
  const std::vector<std::string>& StringsOf(const std::string& name) const;
  // Reads the context's states, all of them by name, from a tensor file, and writes them to one.
  Status LoadStates(const std::string& path);
  Status SaveStates(const std::string& path, formats::FileCalls& calls) const;
  // Resets the states to those that were loaded, or to the initial values.
  Status RestartStates();

  // Binds every input by name, or in order; messages show the signature and suggest names. A tuple or sequence is bound
  // by its elements, "x.0", "x.1", ..., or with "()" when it has none.
  Status BindInputs(const InputArguments& arguments);
  // Binds all inputs by name.
  Status BindTensors(std::vector<formats::NamedTensor> tensors);
  const std::vector<Tensor>& inputs() const { return inputs_; }

  struct Output {
    std::string name;
    Tensor tensor;                          // or
    std::string text;                       // a result that is no tensor, printed
    std::string sequence;                   // for an element "y.0" or "y.0.1": the output "y"
    std::vector<std::string> strings = {};  // what the elements of `tensor` stand for, in row-major order, if anything
  };
  // One call. Tensors that the function writes among its inputs come first, then its results.
  Result<std::vector<Output>> Invoke();
  // One call whose results are not read, as vm-bench times it. They are written into tensors that the first call makes;
  // where an input or a result is no tensor of a known rank, each call makes them.
  Status InvokeInto();

 private:
  explicit Session(SessionOptions options) : options_(std::move(options)) {}
  // An input, or an element of a tuple or sequence.
  struct Part {
    size_t index;
    std::vector<size_t> path;
  };
  bool IsNested(size_t index) const;
  // Whether all inputs and results of the function are tensors of known ranks.
  bool TakesTensorsAlone() const;
  void UnbindInputs();
  // Gives memory to the inputs that the function writes, and the value `missing_spec` to inputs that are not bound;
  // without one the failure lists them.
  Status FinishBinding(const std::string& missing_spec, uint64_t seed);
  Status BindScalar(size_t index, const std::string& spec);
  Status BindTensor(const Part& part, Tensor tensor);
  Status Bind(const Part& part, const std::string& spec, uint64_t seed);
  Result<Part> PartOfInput(const std::string& name) const;
  Result<size_t> IndexOfInput(const std::string& name) const;
  std::string Signature() const;

  SessionOptions options_;
  std::vector<std::string> strings_, string_tensors_;  // the model's strings, and the inputs and outputs that have some
  std::vector<formats::NamedTensor> weights_;          // borrowed by the executable
  ingot_instance* instance_ = nullptr;
  ingot_executable* executable_ = nullptr;
  ingot_context* context_ = nullptr;
  const ingot_function* function_ = nullptr;
  std::vector<Tensor> inputs_;        // none where the input is no tensor
  std::vector<ingot_value> scalars_;  // by input
  std::vector<NestedInput> nested_;   // by input; of tuples and sequences
  std::vector<bool> bound_;
  std::string states_path_;  // of the states that were loaded
  std::vector<formats::NamedTensor> states_;
  // For InvokeInto: the results' tensors, and inputs and results as the C API takes them.
  std::vector<Tensor> outputs_;
  std::vector<ingot_dl_tensor> input_views_, output_views_;
  std::vector<const ingot_dl_tensor*> input_pointers_;
  std::vector<ingot_dl_tensor*> output_pointers_;
};

// While it lives, Ctrl-C (and SIGTERM) stop the session's running invocation and refuse later ones; a second signal of
// the kind ends the process, as every one does afterwards.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(Session& session);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;
};

}  // namespace ingot::apps
