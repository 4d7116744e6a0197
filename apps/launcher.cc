// The launcher: the front part of a program that vm-compile --emit=program makes. It finds the container that stands
// behind it in its own file, calls one of its functions on tensor files, and prints or writes the results, as vm-run
// does. Linked fully static, so the program needs nothing installed; option parsing is its own, since a command-line
// library would be most of its size. Does not benchmark, compare or inspect: the other tools open the same file for
// that.
#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/exit_code.h"
#include "apps/common/file_transaction.h"
#include "apps/common/outputs.h"
#include "apps/common/printable.h"
#include "apps/common/process.h"
#include "apps/common/self_test.h"
#include "apps/common/session.h"
#include "formats/container.h"
#include "formats/file.h"
#include "runtime/suggest.h"
#include "runtime/version.h"

namespace ingot::apps {
namespace {

constexpr int64_t kDefaultTopK = 5;

struct Options {
  SessionOptions session;
  InputArguments inputs;
  std::vector<std::string> outputs;
  std::string labels, expect;
  formats::Tolerance tolerance;
  int64_t top_k = -1;  // -1: not given
  bool help = false, version = false, self_test = false;
};

template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

struct OptionRow {
  const char* name;
  const char* value;  // what it takes; null: nothing
  const char* text;
  bool (*set)(Options& options, const std::string& value);  // false: not such a value
};

constexpr OptionRow kOptions[] = {
    {"--entry", "NAME", "function to call (default: main)",
     [](Options& o, const std::string& v) {
       o.session.entry = v;
       return true;
     }},
    {"--input", "[NAME=]SPEC", "4xf32=1 2 3 4, @f.npy, @f.npz:key, 4xf32=@f.bin, rand, randint:lo,hi, zeros, ones",
     [](Options& o, const std::string& v) {
       o.inputs.specs.push_back(v);
       return true;
     }},
    {"--output", "[NAME=]SPEC", "-, @f.npy, @all.npz, @all.safetensors (default: printed)",
     [](Options& o, const std::string& v) {
       o.outputs.push_back(v);
       return true;
     }},
    {"--top-k", "K", "print the K best classes of the first output (default: 5 where the program has labels)",
     [](Options& o, const std::string& v) { return ParseNumber(v, &o.top_k) && o.top_k >= 0; }},
    {"--labels", "FILE", "names of classes, one a line (default: the program's own)",
     [](Options& o, const std::string& v) {
       o.labels = v;
       return true;
     }},
    {"--expect", "@FILE", "compare the results with it; exit 1 when they differ",
     [](Options& o, const std::string& v) {
       o.expect = v;
       return true;
     }},
    {"--rtol", "X", "relative tolerance of --expect (default: 1e-5)",
     [](Options& o, const std::string& v) { return ParseNumber(v, &o.tolerance.relative); }},
    {"--atol", "X", "absolute tolerance of --expect (default: 1e-8)",
     [](Options& o, const std::string& v) { return ParseNumber(v, &o.tolerance.absolute); }},
    {"--self-test", nullptr, "run the golden cases that the program holds; exit 1 when a result differs",
     [](Options& o, const std::string&) {
       o.self_test = true;
       return true;
     }},
    {"--seed", "N", "of rand and randint (default: 0)",
     [](Options& o, const std::string& v) { return ParseNumber(v, &o.inputs.seed); }},
    {"--weights", "FILE", "weights in the place of the program's, by name (.safetensors, .npz)",
     [](Options& o, const std::string& v) {
       o.session.weights = v;
       return true;
     }},
    {"--threads", "N", "threads of the pool (default: all processors)",
     [](Options& o, const std::string& v) { return ParseNumber(v, &o.session.threads) && o.session.threads >= 0; }},
    {"--device", "DEVICE", "cpu, cuda:0 (default: cpu where the program has kernels for it)",
     [](Options& o, const std::string& v) {
       o.session.device = v;
       return true;
     }},
    {"--max-memory", "BYTES", "cap of arenas and tensors",
     [](Options& o, const std::string& v) {
       return ParseNumber(v, &o.session.max_memory_bytes) && o.session.max_memory_bytes >= 0;
     }},
    {"--deadline", "SECONDS", "stop after so long",
     [](Options& o, const std::string& v) {
       return ParseNumber(v, &o.session.deadline_seconds) && o.session.deadline_seconds >= 0;
     }},
    {"--help", nullptr, "this text",
     [](Options& o, const std::string&) {
       o.help = true;
       return true;
     }},
    {"--version", nullptr, "the version of Ingot in here",
     [](Options& o, const std::string&) {
       o.version = true;
       return true;
     }},
};

Status Parse(int argc, char** argv, Options& options) {
  bool only_files = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (only_files || argument.size() < 2 || argument[0] != '-') {
      options.inputs.files.emplace_back(argument);
      continue;
    }
    if (argument == "--") {
      only_files = true;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string_view name = argument == "-h" ? "--help" : argument.substr(0, equals);
    const OptionRow* found = nullptr;
    std::vector<std::string_view> names;
    for (const OptionRow& row : kOptions) {
      names.emplace_back(row.name);
      if (name == row.name) found = &row;
    }
    if (found == nullptr) {
      return Status(StatusCode::kInvalidArgument,
                    "unknown option " + std::string(name) + DidYouMean(name, names) + "; --help lists the options");
    }
    const bool has_value = equals != std::string_view::npos;
    std::string value(has_value ? argument.substr(equals + 1) : "");
    if (found->value == nullptr && has_value) {
      return Status(StatusCode::kInvalidArgument, std::string(name) + " takes no value");
    }
    if (found->value != nullptr && !has_value) {
      if (++i == argc) return Status(StatusCode::kInvalidArgument, std::string(name) + " needs a " + found->value);
      value = argv[i];
    }
    if (!found->set(options, value)) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(name) + ": expected " + found->value + ", got \"" + value + "\"");
    }
  }
  return Status();
}

// The path of this program: that of the running file in /proc, or, where /proc is absent, the one that exec was given.
std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size > 0 && static_cast<size_t>(size) < sizeof path) return std::string(path, static_cast<size_t>(size));
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return executed == nullptr ? "" : executed;
}

// Fails when the container is missing: strip and objcopy write only the parts of the ELF file, which ends before it.
Status CheckHasModel(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const SharedBytes file, formats::MapFile(path));
  if (formats::FindContainer(file.bytes).ok()) return Status();
  return Status(StatusCode::kCorrupt, path +
                                          ": the model behind this program is gone, as after strip, which cuts it "
                                          "off; make the program again with vm-compile --emit=program");
}

std::string Bounds(const ingot_function* function) {
  std::string text;
  for (size_t i = 0; i < ingot_function_symbol_count(function); ++i) {
    int64_t min = 0, max = 0;
    const std::string name = ingot_function_symbol(function, i, &min, &max);
    const std::string upper = max == INT64_MAX ? " or more" : " to " + std::to_string(max);
    text += (i == 0 ? "where\n  " : "  ") + name + " is " + std::to_string(min) + upper + "\n";
  }
  return text;
}

void PrintHelp(const std::string& program, const Session& session) {
  const ingot_function* function = session.function();
  std::string text = "usage: " + program + " [OPTION...] [FILE...]\n\nComputes " + ingot_function_name(function) +
                     ingot_function_signature(function) + "\n\ninputs\n";
  for (size_t i = 0; i < ingot_function_input_count(function); ++i) {
    text += "  " + std::string(ingot_function_input_name(function, i)) + ": " +
            ingot_type_text(ingot_function_input_type(function, i)) + "\n";
  }
  text += "outputs\n";
  for (size_t i = 0; i < ingot_function_output_count(function); ++i) {
    text += "  " + std::string(ingot_function_output_name(function, i)) + ": " +
            ingot_type_text(ingot_function_output_type(function, i)) + "\n";
  }
  text += Bounds(function);
  if (ingot_executable_function_count(session.executable()) > 1) {
    text += "functions (--entry)\n";
    for (size_t i = 0; i < ingot_executable_function_count(session.executable()); ++i) {
      const ingot_function* other = ingot_executable_function(session.executable(), i);
      text += "  " + std::string(ingot_function_name(other)) + ingot_function_signature(other) + "\n";
    }
  }
  text +=
      "\nFILE is a tensor file: .npy files bind to the inputs in order, .npz and .safetensors by name.\n\noptions\n";
  for (const OptionRow& row : kOptions) {
    const std::string head = std::string(row.name) + (row.value == nullptr ? "" : std::string(" ") + row.value);
    text += "  " + head + std::string(head.size() < 22 ? 22 - head.size() : 1, ' ') + row.text + "\n";
  }
  std::fputs(Printable(text).c_str(), stdout);
}

Result<int> Run(const std::string& program, Options& options, FileTransaction& files) {
  options.session.path = OwnPath();
  if (options.version) {
    std::printf("%s: a program of Ingot %s\n", program.c_str(), kVersion);
    return int{kExitOk};
  }
  INGOT_RETURN_IF_ERROR(CheckHasModel(options.session.path));
  const auto note = [&](const std::string& text) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), Printable(text).c_str());
  };
  if (options.self_test) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<GoldenResult> results, RunSelfTest(options.session, note));
    std::puts(Printable(SelfTestText(results)).c_str());
    for (const GoldenResult& result : results) {
      if (!AllEqual(result.outputs)) return int{kExitDiffers};
    }
    return int{kExitOk};
  }
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(options.session));
  if (options.help) {
    PrintHelp(program, *session);
    return int{kExitOk};
  }
  INGOT_RETURN_IF_ERROR(session->BindInputs(options.inputs));
  const CancelOnInterrupt interruptible(*session);
  INGOT_ASSIGN_OR_RETURN(const std::vector<Session::Output> outputs, session->Invoke());
  INGOT_RETURN_IF_ERROR(WriteOutputs(options.outputs, outputs, files));
  int exit_code = kExitOk;
  if (!options.expect.empty()) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<ComparedOutput> compared,
                           CompareWithFile(options.expect, options.tolerance, outputs, note));
    if (!AllEqual(compared)) exit_code = kExitDiffers;
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<std::string> labels, session->Labels(options.labels));
  if (options.top_k < 0 && options.outputs.empty() && options.expect.empty() && !labels.empty())
    options.top_k = kDefaultTopK;
  if (options.top_k > 0) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<ClassScore> best, FindTopK(options.top_k, labels, outputs));
    std::fputs(Printable(TopKText(best)).c_str(), stdout);
  } else if (options.outputs.empty() && options.expect.empty()) {
    INGOT_RETURN_IF_ERROR(PrintOutputs(outputs));
  }
  return exit_code;
}

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot;  // NOLINT: the program's own names
  const std::string path = argc > 0 ? argv[0] : "program";
  const std::string name = path.substr(path.rfind('/') + 1);
  apps::PrepareProcess(name.c_str());
  apps::Options options;
  apps::FileTransaction files;
  Status status = apps::Parse(argc, argv, options);
  int exit_code = apps::kExitOk;
  if (status.ok()) {
    Result<int> ran = apps::Run(name, options, files);
    if (ran.ok()) exit_code = *ran;
    status = ran.status();
  }
  if (status.ok() && std::fflush(stdout) != 0) status = Status(StatusCode::kIo, "standard output cannot be written");
  if (status.ok()) status = files.Commit();
  if (status.ok()) return exit_code;
  std::fprintf(stderr, "%s: error: %s\n", name.c_str(), apps::Printable(status.message()).c_str());
  return apps::ExitCodeOf(status.code());
}
