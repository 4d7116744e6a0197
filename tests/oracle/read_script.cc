// Reads a module as vm-compile does, and checks what tests/oracle/tvm_modules.py asks of modules that TVM printed:
//
//   read_script MODULE.py          it verifies, and its text reads back equal
//   read_script MODULE.py passes   so does what every pass of the pipelines makes
//   read_script each MODULE.py...  the first check of every module; prints a line per module: "ok", or the error
//   read_script MODULE.py interpret FUNCTION IN.npz OUT.npz N
//                                  runs a tensor function, thread axes one after the other: IN holds every buffer in
//                                  order, the last N are outputs; OUT gets those
//
// Exit code 1 and a message on stderr when something fails.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compiler/driver/compile.h"
#include "compiler/interp/interpreter.h"
#include "compiler/memory/passes.h"
#include "compiler/transform/pass.h"
#include "formats/tensor_files.h"
#include "tests/compiler/round_trip.h"

namespace ingot {
namespace {

Status CheckReadsBack(std::string_view stage, const ir::IRModule& module) {
  const std::string difference = script::testing::ReadBackDifference(module);
  if (difference.empty()) return Status();
  return Status(StatusCode::kFailed, "after " + std::string(stage) + ": " + difference.substr(0, 4000));
}

// Fails after a pass whose module does not read back.
class ReadBackPasses : public transform::PassInstrument {
 public:
  Status AfterPass(const transform::Pass& pass, const ir::IRModule& module, double) override {
    return CheckReadsBack(pass.name, module);
  }
};

Status RunPasses(ir::IRModule module, driver::CompileOptions options) {
  ReadBackPasses read_back;
  options.instruments = {&read_back};
  INGOT_ASSIGN_OR_RETURN(module, driver::OptimizeModule(std::move(module), options, {}));
  transform::PassContext context;
  context.options.opt_level = options.opt_level;
  context.options.target = options.target;
  context.instruments = {&read_back};
  return transform::RunPasses(std::move(module), memory::MemoryPasses(), context).status();
}

Status InterpretFunction(const ir::IRModule& module, char** arguments) {
  const ir::PrimFunc function = module.FindPrimFunc(arguments[0]);
  if (!function) return Status(StatusCode::kNotFound, std::string("no tensor function ") + arguments[0]);
  INGOT_ASSIGN_OR_RETURN(std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(arguments[1]));
  const auto num_outputs = static_cast<size_t>(std::atoi(arguments[3]));
  std::vector<interp::HostBuffer> buffers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(tensors[i].tensor, Tensor::FromBytes(tensors[i].tensor.dtype(), tensors[i].tensor.dims(),
                                                                tensors[i].tensor.bytes()));
    const Tensor& tensor = tensors[i].tensor;
    buffers.push_back({tensor.dtype(),
                       {tensor.dims().begin(), tensor.dims().end()},
                       std::as_writable_bytes(tensors[i].tensor.mutable_bytes()),
                       i + num_outputs < tensors.size()});
  }
  // Threads that share a buffer synchronise at barriers that lowering to a GPU adds, so races are not checked here.
  interp::InterpretOptions sequential;
  sequential.check_races = false;
  INGOT_RETURN_IF_ERROR(interp::Interpret(function, buffers, {}, sequential));
  tensors.erase(tensors.begin(), tensors.end() - static_cast<std::ptrdiff_t>(num_outputs));
  return formats::WriteTensorFile(arguments[2], tensors);
}

// Prints what reading each module gives; a module that does not read is no failure of this tool.
Status ReadEach(int argc, char** argv, const driver::CompileOptions& options) {
  for (int i = 2; i < argc; ++i) {
    driver::CompileObserver observer;
    observer.after_pass = CheckReadsBack;
    const Status status = driver::LoadModel(argv[i], options, observer).status();
    std::string line = status.ok() ? "ok" : status.message();
    std::ranges::replace(line, '\n', '\t');
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  return Status();
}

Status Run(int argc, char** argv) {
  const std::string_view mode = argc > 2 ? argv[2] : "";
  if (argc > 2 && std::string_view(argv[1]) == "each") {
    driver::CompileOptions options;
    INGOT_ASSIGN_OR_RETURN(options.target, ParseTarget("cpu"));
    return ReadEach(argc, argv, options);
  }
  const bool valid = argc == 2 || (argc == 3 && mode == "passes") || (argc == 7 && mode == "interpret");
  if (!valid) return Status(StatusCode::kInvalidArgument, "usage: read_script MODULE.py [passes | interpret ...]");
  driver::CompileOptions options;
  INGOT_ASSIGN_OR_RETURN(options.target, ParseTarget("cpu"));
  driver::CompileObserver observer;
  observer.after_pass = CheckReadsBack;
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, driver::LoadModel(argv[1], options, observer));
  if (mode == "passes") return RunPasses(std::move(module), options);
  if (mode == "interpret") return InterpretFunction(module, argv + 3);
  return Status();
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  const ingot::Status status = ingot::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}
