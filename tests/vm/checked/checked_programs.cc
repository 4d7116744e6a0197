// checked_programs: generated programs and mutants of them are refused by the verifier, or run in the checked
// interpreter without a disagreement and in the virtual machine with the same results.
//
//   checked_programs [--seed TEXT] [--from N] [--count N] [--seconds S] [--keep-going] [--show]
//
// Each is written to a file in memory, and opened from it within the heap that a file of its size may take. Case N
// depends on the seed and N alone, so that a long run can be divided and resumed: of each four cases one is a
// well-typed program, which has to be accepted, one breaks a rule, and two are mutants. Of 128 one is inflated, besides,
// and its file compressed. Where the program ends by
// itself, each opcode must have run in some well-typed one. --seconds are of the processor. The exit code is 1 when anything
// was found.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "formats/container_writer.h"
#include "tests/allocation_counter.h"
#include "tests/processor_time.h"
#include "tests/vm/checked/checked_interpreter.h"
#include "tests/vm/checked/program_generator.h"
#include "vm/program/limits.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/disassembler.h"
#include "vm/verify/verifier.h"
#include "vm/verify/zeroed_memory.h"

namespace ingot::vm::checked {
namespace {

volatile int64_t current_case = 0;  // for the handler of signals

extern "C" void TellCase(int signal) {
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "checked_programs: signal %d in case %lld\n", signal,
                                 static_cast<long long>(current_case));
  if (write(2, text, static_cast<size_t>(size)) < 0) _exit(2);
  _exit(1);
}

// Whether a result of the virtual machine is that of the checked run.
bool IsSame(const Value& value, const CheckedValue& checked) {
  switch (checked.kind) {
    case ValueKind::kInt:
      return std::holds_alternative<int64_t>(value) && std::get<int64_t>(value) == checked.number;
    case ValueKind::kBool:
      return std::holds_alternative<bool>(value) && std::get<bool>(value) == (checked.number != 0);
    case ValueKind::kFloat:
      return std::holds_alternative<double>(value) && std::get<double>(value) == checked.real;
    case ValueKind::kDataType:
      return std::holds_alternative<DataType>(value) && std::get<DataType>(value) == checked.dtype;
    case ValueKind::kShape:
      return std::holds_alternative<ShapeValue>(value) && std::get<ShapeValue>(value).extents == checked.extents;
    case ValueKind::kTensor: {
      if (!std::holds_alternative<Tensor>(value)) return false;
      const Tensor& tensor = std::get<Tensor>(value);
      const CheckedTensor& other = checked.tensor;
      return tensor.dtype() == other.dtype &&
             std::equal(tensor.dims().begin(), tensor.dims().end(), other.dims.begin(), other.dims.end()) &&
             (tensor.size_bytes() == 0 || std::memcmp(tensor.data(), other.memory->bytes.data() + other.offset,
                                                      static_cast<size_t>(tensor.size_bytes())) == 0);
    }
    default:
      break;
  }
  const auto* object = std::get_if<Ref<Object>>(&value);
  if (object == nullptr || (*object)->kind() != checked.kind) return false;
  if (checked.kind == ValueKind::kString) return static_cast<const StringObject&>(**object).text == checked.text;
  if (checked.kind == ValueKind::kClosure)
    return static_cast<const ClosureObject&>(**object).function == checked.function;
  const std::vector<Value>& elements = static_cast<const TupleObject&>(**object).elements();
  if (checked.kind == ValueKind::kOptional && checked.elements->empty()) {
    return std::holds_alternative<std::monostate>(elements[0]);
  }
  if (elements.size() != checked.elements->size()) return false;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!IsSame(elements[i], (*checked.elements)[i])) return false;
  }
  return true;
}

class CaseRunner {
 public:
  explicit CaseRunner(uint64_t seed) : seed_(seed) {
    InstanceOptions options;
    options.num_threads = 1;  // whose allocations are counted
    instance_ = *Instance::Create(options);
    ran_.assign(256, false);
    ran_well_typed_.assign(256, false);
  }

  // What is wrong with the case, "" if nothing is.
  std::string Run(int64_t number, bool shows) {
    current_case = number;
    const uint64_t seed = seed_ + static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15;
    const bool is_well_typed = number % 4 == 0;
    Program program = GenerateProgram(seed, number % 4 == 1);
    if (number % 4 >= 2) Mutate(program, seed);
    if (shows) std::printf("%s\n", Disassemble(program).c_str());
    if (number % 128 == 30) {
      Program inflated = program;
      Inflate(inflated, seed);
      const std::string wrong = OpenAsFile(inflated, Verify(inflated), /*is_compressed=*/true);
      if (!wrong.empty()) return wrong;
    }
    const Status verified = Verify(program);
    const std::string wrong = OpenAsFile(program, verified, /*is_compressed=*/false);
    if (!wrong.empty()) return wrong;
    if (!verified.ok()) {
      ++num_refused_;
      return is_well_typed ? StrCat({"a well-typed program is refused: ", verified.message()}) : "";
    }
    std::vector<std::vector<uint32_t>> zeroed;
    for (const Function& function : program.functions) zeroed.push_back(FindUnproved(program, function));
    const CheckedRun run =
        RunChecked(program, FunctionId(0), Arguments(), zeroed, is_well_typed ? ran_well_typed_ : ran_);
    if (run.end == CheckedRun::End::kDisagreement) return run.message;
    return RunMachine(run);
  }

  // The opcodes that no well-typed program has run.
  std::string Missing() const {
    std::string names;
    for (const OpcodeInfo& info : AllOpcodes()) {
      if (!ran_well_typed_[static_cast<size_t>(info.opcode)]) names += StrCat({" ", info.name});
    }
    return names;
  }
  void PrintCounts() const {
    std::printf(
        "%lld refused, %lld returned, %lld failed as they may, %lld compared; %lld asked for too much; at most "
        "%.1f bytes of heap per byte of a file\n",
        static_cast<long long>(num_refused_), static_cast<long long>(num_returned_),
        static_cast<long long>(num_failed_), static_cast<long long>(num_compared_),
        static_cast<long long>(num_above_cap_), most_heap_per_byte_);
  }

 private:
  static constexpr int64_t kLength = 3;

  static std::vector<CheckedValue> Arguments() {
    CheckedValue x = CheckedValue::Of(ValueKind::kTensor);
    x.tensor.memory = std::make_shared<Memory>(Storage::kBorrowed, kLength * 4, ByteState::kWritten);
    x.tensor.dtype = DataType::Float(32);
    x.tensor.dims = {kLength};
    x.tensor.storage = Storage::kBorrowed;
    return {x, CheckedValue::Number(ValueKind::kInt, 2)};
  }

  // All sections of a file, compressed.
  static std::vector<std::byte> Compressed(const std::vector<std::byte>& file) {
    const formats::Container container = *formats::Container::Open(SharedBytes::Own(file));
    formats::ContainerWriter writer;
    formats::ContainerWriter::Options options;
    options.codec = formats::Codec::kZstd;
    options.zstd_level = 1;
    for (const formats::Section& section : container.sections()) {
      INGOT_CHECK(writer.Add(section.kind, section.index, {container.Read(section)->bytes}, options).ok());
    }
    return *writer.ToBytes();
  }

  // Opens the program from a file in memory, to executable_. The reader's verdict is the verifier's, but for what no
  // file may ask for; and it takes at most 64 bytes of heap per byte of the file and 1 MiB, constants apart.
  std::string OpenAsFile(const Program& program, const Status& verified, bool is_compressed) {
    Result<std::vector<std::byte>> encoded = EncodeProgram(program);
    if (!encoded.ok()) return StrCat({"cannot be written: ", encoded.status().message()});
    const SharedBytes file = SharedBytes::Own(is_compressed ? Compressed(*encoded) : *std::move(encoded));
    const auto size = static_cast<int64_t>(file.size());
    int64_t allowed = kBytesPerByte * size + kFreeBytes;
    for (const Constant& constant : program.constants) allowed += static_cast<int64_t>(constant.bytes.size()) + 64;
    OpenOptions open;
    open.stub_kernels = true;
    executable_.reset();
    const int64_t before = test::LiveBytes();
    test::TakePeakBytes();
    Result<std::shared_ptr<const Executable>> opened = Executable::OpenMemory(instance_, file, "case", open);
    const int64_t peak = test::TakePeakBytes() - before;
    most_heap_per_byte_ = std::max(most_heap_per_byte_, static_cast<double>(peak) / static_cast<double>(size));
    if (peak > allowed)
      return StrCat({"a file of ", size, " bytes takes ", peak, " bytes of heap to read: ", opened.status().message()});
    // What a file holds once cannot differ: the registers of symbols and parameters.
    if (opened.ok() && verified.message().ends_with("[FrameHead]")) return "";
    if (opened.ok() && !verified.ok()) return StrCat({"is opened, but not verified: ", verified.message()});
    if (opened.ok()) executable_ = *std::move(opened);
    if (executable_ != nullptr || !verified.ok()) return "";
    const std::string& message = opened.status().message();
    const bool is_cap = is_compressed && (message.ends_with("[HeapCap]") || message.ends_with("[CountCap]"));
    num_above_cap_ += is_cap ? 1 : 0;
    return is_cap ? "" : StrCat({"is verified, but not opened: ", message});
  }

  std::string RunMachine(const CheckedRun& checked) {
    const std::shared_ptr<const Executable>& executable = executable_;
    const Function& main = executable->program().functions[0];
    if (main.signature.params.size() != 2 || !main.signature.params[0].type.is_tensor()) return "";
    ContextOptions options;
    options.fuel = 5000;
    options.max_memory_bytes = 8 << 20;
    options.deadline_seconds = 10;
    const std::vector<NamedType> given = executable->program().externals[0].signature.results;
    options.externals["e"].call = [given](std::span<const Value>) -> Result<std::vector<Value>> {
      return std::vector<Value>(given.size(), Value(int64_t{7}));
    };
    const auto context = Context::Create(executable, std::move(options));
    if (!context.ok()) return "";
    const Tensor x = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{kLength});
    std::memset(x.data(), 0, kLength * 4);
    const Result<std::vector<Value>> results = (*context)->Invoke(main, std::vector<Value>{x, int64_t{2}});
    return Compare(results, checked);
  }

  std::string Compare(const Result<std::vector<Value>>& results, const CheckedRun& checked) {
    if (checked.end == CheckedRun::End::kStopped || !checked.is_comparable) return "";
    const bool returned = checked.end == CheckedRun::End::kReturned;
    ++(returned ? num_returned_ : num_failed_);
    if (!results.ok() && !returned) return "";
    if (!results.ok()) {
      const StatusCode code = results.status().code();
      const bool is_limit = code == StatusCode::kOutOfMemory || code == StatusCode::kCancelled;
      return is_limit ? "" : StrCat({"fails, though the checked run does not: ", results.status().message()});
    }
    if (!returned) return StrCat({"runs, though the checked run fails: ", checked.message});
    ++num_compared_;
    for (size_t i = 0; i < results->size(); ++i) {
      if (!IsSame((*results)[i], checked.results[i]))
        return StrCat({"result ", i, " differs from that of the checked run"});
    }
    return "";
  }

  const uint64_t seed_;
  std::shared_ptr<Instance> instance_;
  std::shared_ptr<const Executable> executable_;  // of the case
  std::vector<bool> ran_, ran_well_typed_;
  int64_t num_refused_ = 0, num_returned_ = 0, num_failed_ = 0, num_compared_ = 0, num_above_cap_ = 0;
  double most_heap_per_byte_ = 0;
};

// FNV-1a, so that a commit's hash is a seed.
uint64_t SeedOf(const char* text) {
  uint64_t seed = 0xcbf29ce484222325;
  for (; *text != '\0'; ++text) seed = (seed ^ static_cast<uint8_t>(*text)) * 0x100000001b3;
  return seed;
}

int Main(int argc, char** argv) {
  const char* seed = "0";
  int64_t from = 0, count = 100'000;
  double seconds = 1e9;
  bool keeps_going = false, shows = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--keep-going") {
      keeps_going = true;
      continue;
    }
    if (option == "--show") {
      shows = true;
      continue;
    }
    ++i;
    if (option == "--seed") {
      seed = value;
    } else if (option == "--from") {
      from = std::atoll(value);
    } else if (option == "--count") {
      count = std::atoll(value);
    } else if (option == "--seconds") {
      seconds = std::atof(value);
    } else {
      std::fprintf(stderr, "checked_programs: unknown option %s\n", option.c_str());
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that a signal loses nothing that was found before it
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(signal, TellCase);
  CaseRunner runner(SeedOf(seed));
  int64_t number = from, found = 0;
  for (; number < from + count && (keeps_going || found == 0); ++number) {
    const std::string wrong = runner.Run(number, shows);
    if (!wrong.empty()) {
      std::printf("case %lld of seed %s: %s\n", static_cast<long long>(number), seed, wrong.c_str());
      ++found;
    }
    if (test::ProcessorSeconds() > seconds) break;
  }
  std::printf("seed %s, cases %lld to %lld: %lld found; ", seed, static_cast<long long>(from),
              static_cast<long long>(number), static_cast<long long>(found));
  runner.PrintCounts();
  const std::string missing = runner.Missing();
  if (found == 0 && number - from >= 4000 && !missing.empty()) {
    std::printf("no well-typed program has run:%s\n", missing.c_str());
    return 1;
  }
  return found == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ingot::vm::checked

int main(int argc, char** argv) { return ingot::vm::checked::Main(argc, argv); }
