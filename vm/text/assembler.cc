// A recursive-descent parser with one method per declaration, part of a function and operand kind. Labels are resolved
// at the end of their function, names of kernels, functions, externals and states at the end of the text.
#include "vm/text/assembler.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "runtime/suggest.h"
#include "vm/program/builtins.h"
#include "vm/text/assembler_file.h"
#include "vm/text/assembler_types.h"
#include "vm/text/text_cursor.h"

namespace ingot::vm {
namespace {

constexpr uint64_t kMaxId = UINT32_MAX - 1;

// The most bytes that all constants of `= zeros` may have together: their text is small, their memory is not.
constexpr int64_t kMaxZerosBytes = int64_t{1} << 30;

class Assembler {
 public:
  Assembler(std::string_view text, std::string_view file_name, const std::string& directory)
      : in_(text, file_name), file_(in_, directory), text_size_(text.size()) {}

  Result<AssembledFile> Run() {
    if (in_.Expect("ingot") && in_.ExpectInt() != 1 && in_.ok()) in_.Fail("expected \"ingot 1\"");
    program_.devices.clear();
    while (in_.ok() && !in_.AtEnd()) TopLevel();
    if (program_.devices.empty()) program_.devices.emplace_back();
    if (in_.ok()) ResolveReferences();
    if (!in_.ok()) return in_.error();
    return AssembledFile{std::move(program_), file_.TakeForm()};
  }

 private:
  // A use of a name that may stand before its definition.
  enum class Table { kKernel, kFunction, kExternal, kState };
  struct Reference {
    Table table;
    size_t position;
    std::string name;
    std::optional<int64_t> index;
    std::function<void(int64_t)> store;
  };

  void TopLevel() {
    struct Row {
      std::string_view word;
      void (Assembler::*parse)();
    };
    static constexpr Row kRows[] = {
        {"blobs", &Assembler::ParseBlobs},
        {"section", &Assembler::ParseSection},
        {"launcher", &Assembler::ParseLauncher},
        {"stripped", &Assembler::ParseStripped},
        {"metadata", &Assembler::ParseMetadata},
        {"device", &Assembler::ParseDevice},
        {"external", &Assembler::ParseExternal},
        {"constant", &Assembler::ParseConstant},
        {"weight_file", &Assembler::ParseWeightFile},
        {"state", &Assembler::ParseState},
        {"image", &Assembler::ParseImage},
        {"kernel", &Assembler::ParseKernel},
        {"function", &Assembler::ParseFunction},
    };
    std::string_view words[std::size(kRows)];
    for (size_t i = 0; i < std::size(kRows); ++i) words[i] = kRows[i].word;
    const int row = in_.ExpectOneOf("declaration", words);
    if (row >= 0) (this->*kRows[row].parse)();
  }

  void ParseBlobs() { file_.ParseBlobs(); }
  void ParseSection() { file_.ParseSection(); }
  void ParseLauncher() { file_.ParseLauncher(); }
  void ParseStripped() { file_.SetStripped(); }

  void ParseMetadata() {
    const size_t at = in_.position();
    std::string key = in_.ExpectString();
    in_.Expect("=");
    std::string value = in_.ExpectString();
    if (in_.ok() && !program_.metadata.emplace(key, std::move(value)).second) {
      in_.FailAt(at, "metadata \"" + key + "\" stands here twice");
    }
  }

  void ParseDevice() {
    VirtualDevice device;
    device.kind = in_.ExpectString();
    device.index = static_cast<int32_t>(in_.ExpectUnsigned(INT32_MAX));
    program_.devices.push_back(std::move(device));
  }

  void ParseExternal() {
    External external;
    in_.Expect("@");
    external.name = in_.ExpectName();
    external.signature = types_.ParseSignature();
    if (in_.Take("effects")) external.effects = ParseEffects();
    program_.externals.push_back(std::move(external));
  }

  void ParseWeightFile() {
    WeightFile file;
    file.path = in_.ExpectString();
    in_.Expect("size");
    file.size = in_.ExpectUnsigned(UINT64_MAX);
    in_.Expect("hash");
    file.hash = in_.ExpectUnsigned(UINT64_MAX);
    in_.Expect("sha256");
    const size_t at = in_.position();
    if (!formats::FromHex(in_.ExpectString(), file.sha256) && in_.ok()) in_.FailAt(at, "expected 64 hex digits");
    program_.weight_files.push_back(std::move(file));
  }

  void ParseConstant() {
    Constant constant;
    constant.name = in_.ExpectString();
    constant.dtype = types_.ParseDataType();
    constant.dims = ParseIntList();
    Weight* weight = nullptr;
    if (in_.Take("weight")) {
      weight = &program_.weights.emplace_back();
      weight->constant = ConstantId(static_cast<uint32_t>(program_.constants.size()));
    }
    in_.Expect("=");
    const size_t at = in_.position();
    if (weight != nullptr && in_.Take("file")) {
      weight->file = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
      in_.Expect("offset");
      weight->offset = in_.ExpectUnsigned(UINT64_MAX);
    } else if (in_.Take("zeros")) {
      constant.bytes = MakeZeros(SizeOf(constant, at), at);
    } else if (in_.Peek("hex") || in_.Peek("blob")) {
      constant.bytes = file_.ParseBlob();
    } else if (in_.Take("prepared")) {
      ParseReference(Table::kFunction, [this, index = program_.constants.size()](int64_t id) {
        program_.constants[index].prepared_by->function = FunctionId(static_cast<uint32_t>(id));
      });
      constant.prepared_by = PreparedBy{FunctionId(0), static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId))};
    } else {
      constant.bytes = ParseElements(constant.dtype);
    }
    program_.constants.push_back(std::move(constant));
  }

  int64_t SizeOf(const Constant& constant, size_t at) {
    if (!in_.ok()) return 0;
    int64_t count = 1;
    for (int64_t dim : constant.dims) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) count = -1;
      if (count < 0) break;
    }
    const Result<int64_t> size = constant.dtype.SizeBytes(count);
    if (size.ok() && *size <= zeros_left_) return *size;
    in_.FailAt(at, "constants of zeros may have " + std::to_string(kMaxZerosBytes) + " bytes at most, all together");
    return 0;
  }

  // Maps pages of zeros, which take no memory, because nobody writes them.
  SharedBytes MakeZeros(int64_t size, size_t at) {
    if (size == 0) return SharedBytes();
    zeros_left_ -= size;
    const auto length = static_cast<size_t>(size);
    void* const data = mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      in_.FailAt(at, "there is no memory for these zeros");
      return SharedBytes();
    }
    const std::shared_ptr<const void> owner(data,
                                            [length](const void* start) { munmap(const_cast<void*>(start), length); });
    return SharedBytes(owner, {static_cast<const std::byte*>(data), length});
  }

  // Elements as numbers: integers, bool, float32 and float64; anything else is written in hex.
  SharedBytes ParseElements(DataType dtype) {
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& value, size_t size) {
      const auto* begin = reinterpret_cast<const std::byte*>(&value);  // little-endian hosts only, like the file
      bytes.insert(bytes.end(), begin, begin + size);
    };
    const size_t at = in_.position();
    const bool is_whole = (dtype.is_integral() && dtype.bits >= 8) || dtype.is_bool();
    const bool is_float = dtype.code == TypeCode::kFloat && dtype.bits >= 32;
    if (in_.ok() && (!(is_whole || is_float) || !dtype.is_scalar())) {
      in_.FailAt(at, "elements of this type are written in hex");
    }
    while (in_.ok()) {
      if (is_whole) append(in_.ExpectInt(), dtype.bits / 8);
      if (is_float && dtype.bits == 32) append(static_cast<float>(in_.ExpectFloat()), 4);
      if (is_float && dtype.bits == 64) append(in_.ExpectFloat(), 8);
      if (!in_.Take(",")) break;
    }
    return SharedBytes::Own(std::move(bytes));
  }

  void ParseState() {
    vm::State state;
    in_.Expect("@");
    state.name = in_.ExpectName();
    state.dtype = types_.ParseDataType();
    state.dims = ParseIntList();
    in_.Expect("device");
    state.device = ParseDeviceNumber();
    if (in_.Take("grows")) {
      in_.Expect("axis");
      state.growth = StateGrowth{static_cast<uint8_t>(in_.ExpectUnsigned(UINT8_MAX)), {}};
      in_.Expect("by");
      ParseReference(Table::kState, [this, index = program_.states.size()](int64_t id) {
        program_.states[index].growth->length = StateId(static_cast<uint32_t>(id));
      });
    }
    if (in_.Take("=")) {
      in_.Expect("#");
      state.initial = ConstantId(static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId)));
    }
    program_.states.push_back(std::move(state));
  }

  void ParseImage() {
    KernelImage image;
    image.name = in_.ExpectString();
    constexpr std::string_view kFormats[] = {"elf", "ptx", "cubin"};
    image.format = static_cast<ImageFormat>(std::max(0, in_.ExpectOneOf("image format", kFormats)));
    image.arch = in_.ExpectString();
    in_.Expect("features");
    image.features = in_.ExpectUnsigned(UINT64_MAX);
    in_.Expect("=");
    image.bytes = file_.ParseBlob();
    program_.images.push_back(std::move(image));
  }

  void ParseKernel() {
    vm::Kernel kernel;
    in_.Expect("@");
    kernel.name = in_.ExpectName();
    in_.Expect("{");
    std::vector<std::string> names;
    while (in_.ok() && !in_.Take("}")) {
      constexpr std::string_view kWords[] = {"in",    "out",     "inout",  "int",     "device",   "workspace", "flops",
                                             "bytes", "effects", "launch", "variant", "external", "message"};
      const int word = in_.ExpectOneOf("part of a kernel", kWords);
      if (word < 0) return;
      if (word <= 2) {
        KernelParam param;
        param.role = static_cast<ParamRole>(word);
        ParseKernelParam(param, names);
        kernel.params.push_back(std::move(param));
      } else if (kWords[word] == "int") {
        KernelInt scalar;
        scalar.name = in_.ExpectName();
        in_.Expect(":");
        scalar.dtype = types_.ParseDataType();
        names.push_back(scalar.name);
        kernel.ints.push_back(std::move(scalar));
      } else if (kWords[word] == "device") {
        kernel.device = ParseDeviceNumber();
      } else if (kWords[word] == "workspace") {
        kernel.workspace = types_.ParseDim("", names);
      } else if (kWords[word] == "flops") {
        kernel.flops = types_.ParseDim("", names);
      } else if (kWords[word] == "bytes") {
        kernel.bytes = types_.ParseDim("", names);
      } else if (kWords[word] == "effects") {
        kernel.effects = ParseEffects();
      } else if (kWords[word] == "launch") {
        ParseLaunch(kernel, names);
      } else if (kWords[word] == "variant") {
        ParseVariant(kernel);
      } else if (kWords[word] == "external") {
        const size_t index = kernel.externals.size();
        const size_t kernel_index = program_.kernels.size();
        kernel.externals.emplace_back();
        ParseReference(Table::kExternal, [this, kernel_index, index](int64_t id) {
          program_.kernels[kernel_index].externals[index] = ExternalId(static_cast<uint32_t>(id));
        });
      } else {
        kernel.messages.push_back(in_.ExpectString());
      }
    }
    program_.kernels.push_back(std::move(kernel));
  }

  void ParseKernelParam(KernelParam& param, std::span<const std::string> names) {
    param.name = in_.ExpectName();
    in_.Expect(":");
    param.dtype = types_.ParseDataType();
    param.extents = types_.ParseDimList(names);
    if (in_.Take("align")) param.alignment = in_.ExpectInt();
    if (in_.Take("in_place")) param.in_place = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
  }

  void ParseLaunch(vm::Kernel& kernel, std::span<const std::string> names) {
    LaunchRecord launch;
    in_.Expect("variant");
    launch.variant = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
    in_.Expect("entry");
    launch.entry = in_.ExpectString();
    for (const char* word : {"grid", "block"}) {
      in_.Expect(word);
      const size_t at = in_.position();
      const std::vector<DimCode> list = types_.ParseDimList(names);
      if (in_.ok() && list.size() != 3) in_.FailAt(at, "expected three sizes");
      launch.sizes.insert(launch.sizes.end(), list.begin(), list.end());
    }
    std::vector<DimCode> rounds;
    if (in_.Take("rounds")) {
      const size_t at = in_.position();
      rounds = types_.ParseDimList(names);
      if (in_.ok() && rounds.size() != 2) in_.FailAt(at, "expected two sizes");
    }
    in_.Expect("shared");
    launch.sizes.push_back(types_.ParseDim("", names));
    launch.sizes.insert(launch.sizes.end(), rounds.begin(), rounds.end());
    if (!in_.ok()) return;
    kernel.launches.push_back(std::move(launch));
  }

  void ParseVariant(vm::Kernel& kernel) {
    KernelVariant variant;
    in_.Expect("image");
    variant.image = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
    in_.Expect("offset");
    variant.offset = in_.ExpectUnsigned(UINT64_MAX);
    in_.Expect("entry");
    variant.entry = in_.ExpectString();
    in_.Expect("features");
    variant.required_features = in_.ExpectUnsigned(UINT64_MAX);
    kernel.variants.push_back(std::move(variant));
  }

  uint32_t ParseEffects() {
    constexpr std::string_view kNames[] = {"reads_state", "writes_state", "io", "may_fail"};
    uint32_t effects = 0;
    do {
      const int bit = in_.ExpectOneOf("effect", kNames);
      if (bit >= 0) effects |= 1u << bit;
    } while (in_.ok() && std::find(std::begin(kNames), std::end(kNames), in_.PeekWord()) != std::end(kNames));
    return effects;
  }

  // ---- functions

  void ParseFunction() {
    Function function;
    in_.Expect("@");
    function.name = in_.ExpectName();
    function.exported = in_.Take("export");
    function.signature = types_.ParseSignature();
    symbols_ = function.signature.symbol_names();
    for (size_t i = 0; i < symbols_.size(); ++i) function.registers.push_back(Type::Int());
    for (const NamedType& param : function.signature.params) function.registers.push_back(param.type);
    labels_.clear();
    label_uses_.clear();
    in_.Expect("{");
    while (in_.ok() && !in_.Take("}")) ParseFunctionLine(function);
    for (const LabelUse& use : label_uses_) {
      const auto label = labels_.find(use.name);
      if (label == labels_.end()) {
        std::vector<std::string_view> names;
        for (const auto& [name, index] : labels_) names.push_back(name);
        in_.FailAt(use.position, "unknown label \"" + use.name + "\"" + DidYouMean(use.name, names));
        return;
      }
      function.code[use.instruction].operands()[use.operand].value = label->second;
    }
    program_.functions.push_back(std::move(function));
  }

  void ParseFunctionLine(Function& function) {
    const size_t at = in_.position();
    const std::string word = in_.ExpectWord("an opcode, a label, or a part of a function");
    if (!in_.ok()) return;
    if (word == "register") {
      ParseRegister(function);
    } else if (word == "arena") {
      Arena arena;
      in_.Expect("device");
      arena.device = ParseDeviceNumber();
      in_.Expect(",");
      in_.Expect("size");
      arena.size = types_.ParseDim("", symbols_);
      function.plan.arenas.push_back(std::move(arena));
    } else if (word == "entry") {
      ParsePlanEntry(function);
    } else if (word == "note") {
      function.notes.push_back({static_cast<uint32_t>(function.code.size()), in_.ExpectString()});
    } else if (in_.Take(":")) {
      if (!labels_.emplace(word, static_cast<int64_t>(function.code.size())).second) {
        in_.FailAt(at, "label \"" + word + "\" stands here twice");
      }
    } else if (const OpcodeInfo* info = FindOpcode(std::string_view(word))) {
      ParseInstruction(function, *info);
    } else {
      std::vector<std::string_view> words = {"register", "arena", "entry", "note"};
      for (const OpcodeInfo& row : AllOpcodes()) words.push_back(row.name);
      in_.FailAt(at, "unknown opcode \"" + word + "\"" + DidYouMean(word, words));
    }
  }

  void ParseRegister(Function& function) {
    const size_t at = in_.position();
    const uint32_t index = ParseRegisterName();
    if (in_.ok() && index != function.registers.size()) {
      in_.FailAt(at, "the next register is r" + std::to_string(function.registers.size()));
    }
    in_.Expect(":");
    function.registers.push_back(types_.ParseType(symbols_, Storage::kOwned, 0));
  }

  void ParsePlanEntry(Function& function) {
    const size_t at = in_.position();
    PlanEntry entry;
    if (in_.ExpectUnsigned(kMaxId) != function.plan.entries.size() && in_.ok()) {
      in_.FailAt(at, "the next entry is " + std::to_string(function.plan.entries.size()));
    }
    in_.Expect(":");
    in_.Expect("arena");
    entry.arena = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
    in_.Expect(",");
    in_.Expect("offset");
    entry.offset = types_.ParseDim(",", symbols_);
    in_.Expect(",");
    in_.Expect("size");
    entry.size = types_.ParseDim(",", symbols_);
    in_.Expect(",");
    in_.Expect("live");
    entry.first = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
    in_.Expect("..");
    entry.last = static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId));
    if (in_.Take(",") && in_.Expect("alias")) {
      entry.alias_of = PlanEntryId(static_cast<uint32_t>(in_.ExpectUnsigned(kMaxId)));
    }
    function.plan.entries.push_back(std::move(entry));
  }

  void ParseInstruction(Function& function, const OpcodeInfo& info) {
    std::vector<Operand> operands;
    slots_ = symbols_;
    for (size_t i = 0; in_.ok() && i < info.operands.size(); ++i) {
      const OperandKind kind = info.operands[i].kind;
      if (kind == OperandKind::kStream) {
        int64_t stream = 0;
        if (in_.Take(",") && in_.Expect("stream")) stream = in_.ExpectInt();
        operands.emplace_back(stream);
        continue;
      }
      if (i > 0) in_.Expect(",");
      operands.push_back(ParseOperand(function, kind, i));
    }
    function.code.emplace_back(info.opcode, std::move(operands));
  }

  Operand ParseOperand(const Function& function, OperandKind kind, size_t operand) {
    const size_t instruction = function.code.size();
    const auto reference = [&](Table table) {
      const size_t index = program_.functions.size();
      ParseReference(table, [this, index, instruction, operand](int64_t id) {
        program_.functions[index].code[instruction].operands()[operand].value = id;
      });
      return int64_t{0};
    };
    switch (kind) {
      case OperandKind::kDef:
      case OperandKind::kUse:
        return int64_t{ParseRegisterName()};
      case OperandKind::kDefList:
      case OperandKind::kUseList: {
        RegisterList list;
        in_.Expect("[");
        while (in_.ok() && !in_.Take("]")) {
          list.push_back(ParseRegisterName());
          if (!in_.Peek("]")) in_.Expect(",");
        }
        return list;
      }
      case OperandKind::kInt:
        return in_.ExpectInt();
      case OperandKind::kPlanEntry:
        return static_cast<int64_t>(in_.ExpectUnsigned(kMaxId));
      case OperandKind::kFloat:
        if (in_.Take("bits")) return static_cast<int64_t>(in_.ExpectUnsigned(UINT64_MAX));
        return std::bit_cast<int64_t>(in_.ExpectFloat());
      case OperandKind::kBool: {
        constexpr std::string_view kWords[] = {"false", "true"};
        return int64_t{std::max(0, in_.ExpectOneOf("truth value", kWords))};
      }
      case OperandKind::kText:
        return in_.ExpectString();
      case OperandKind::kDType:
        return PackDataType(types_.ParseDataType());
      case OperandKind::kDim:
        return ParseRegisterDim(",");
      case OperandKind::kDimList: {
        std::vector<DimCode> dims;
        in_.Expect("[");
        while (in_.ok() && !in_.Take("]")) {
          dims.push_back(ParseRegisterDim(",]"));
          if (!in_.Peek("]")) in_.Expect(",");
        }
        return dims;
      }
      case OperandKind::kLabel: {
        const size_t position = in_.position();
        label_uses_.push_back({position, in_.ExpectWord("a label"), instruction, operand});
        return int64_t{0};
      }
      case OperandKind::kKernel:
        return reference(Table::kKernel);
      case OperandKind::kFunction:
        return reference(Table::kFunction);
      case OperandKind::kExternal:
        return reference(Table::kExternal);
      case OperandKind::kState:
        return reference(Table::kState);
      case OperandKind::kConstant:
        in_.Expect("#");
        return static_cast<int64_t>(in_.ExpectUnsigned(kMaxId));
      case OperandKind::kBuiltin: {
        if (in_.Take("#")) return static_cast<int64_t>(in_.ExpectUnsigned(kMaxId));
        std::vector<std::string_view> names;
        for (const BuiltinInfo& row : AllBuiltins()) names.push_back(row.name);
        const int row = in_.ExpectOneOf("builtin", names);
        return row < 0 ? int64_t{0} : static_cast<int64_t>(AllBuiltins()[row].builtin);
      }
      case OperandKind::kStream:
        break;
    }
    INGOT_UNREACHABLE();
  }

  // In formulas, symbols have their names, other registers are r<number>. Names of registers are made up to the largest
  // number in the text.
  DimCode ParseRegisterDim(std::string_view stops) {
    const size_t at = in_.position();
    const std::string_view text = in_.TakeUntil(stops);
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] != 'r' || text[i + 1] < '0' || text[i + 1] > '9') continue;
      size_t number = 0;
      for (size_t k = i + 1; k < text.size() && text[k] >= '0' && text[k] <= '9' && number < kMaxRegisterNames; ++k) {
        number = number * 10 + (text[k] - '0');
      }
      // A register's declaration takes some letters, so that a text has fewer registers than letters.
      number = std::min({number, kMaxRegisterNames, text_size_});
      while (slots_.size() <= number) slots_.push_back("r" + std::to_string(slots_.size()));
    }
    return types_.ToDim(at, text, slots_);
  }

  uint32_t ParseRegisterName() {
    const size_t at = in_.position();
    const std::string word = in_.ExpectWord("a register");
    uint32_t index = 0;
    bool good = word.size() > 1 && word.size() <= 9 && word[0] == 'r';
    for (size_t i = 1; good && i < word.size(); ++i) {
      good = word[i] >= '0' && word[i] <= '9';
      index = index * 10 + (word[i] - '0');
    }
    if (!good) in_.FailAt(at, "expected a register such as r0");
    return index;
  }

  // ---- small parts

  uint8_t ParseDeviceNumber() { return static_cast<uint8_t>(in_.ExpectUnsigned(UINT8_MAX)); }

  std::vector<int64_t> ParseIntList() {
    std::vector<int64_t> list;
    in_.Expect("[");
    while (in_.ok() && !in_.Take("]")) {
      list.push_back(in_.ExpectInt());
      if (!in_.Peek("]")) in_.Expect(",");
    }
    return list;
  }

  // Parses @name or #index. `store` gets the index at the end of the text, when all tables are complete.
  void ParseReference(Table table, std::function<void(int64_t)> store) {
    Reference reference{table, in_.position(), {}, {}, std::move(store)};
    if (in_.Take("#")) {
      reference.index = static_cast<int64_t>(in_.ExpectUnsigned(kMaxId));
    } else {
      in_.Expect("@");
      reference.name = in_.ExpectName();
    }
    references_.push_back(std::move(reference));
  }

  void ResolveReferences() {
    struct Names {
      const char* what;
      std::map<std::string_view, int64_t> indexes;
    };
    const auto names_of = [](const char* what, const auto& rows) {
      Names names{what, {}};
      for (size_t i = 0; i < rows.size(); ++i) names.indexes.emplace(rows[i].name, static_cast<int64_t>(i));
      return names;
    };
    const Names tables[] = {names_of("kernel", program_.kernels), names_of("function", program_.functions),
                            names_of("external", program_.externals), names_of("state", program_.states)};
    for (const Reference& reference : references_) {
      const Names& names = tables[static_cast<size_t>(reference.table)];
      const auto found = names.indexes.find(reference.name);
      if (reference.index) {
        reference.store(*reference.index);
      } else if (found != names.indexes.end()) {
        reference.store(found->second);
      } else {
        std::vector<std::string_view> words;
        for (const auto& [name, index] : names.indexes) words.push_back(name);
        in_.FailAt(reference.position, std::string("unknown ") + names.what + " \"" + reference.name + "\"" +
                                           DidYouMean(reference.name, words));
        return;
      }
    }
  }

  struct LabelUse {
    size_t position;
    std::string name;
    size_t instruction;
    size_t operand;
  };
  static constexpr size_t kMaxRegisterNames = 1 << 20;

  TextCursor in_;
  FileParser file_;
  const size_t text_size_;
  TypeParser types_{in_};
  Program program_;
  std::vector<Reference> references_;
  // State of the function that is being read.
  std::vector<std::string> symbols_;
  int64_t zeros_left_ = kMaxZerosBytes;
  std::vector<std::string> slots_;
  std::map<std::string, int64_t> labels_;
  std::vector<LabelUse> label_uses_;
};

}  // namespace

Result<AssembledFile> AssembleFile(std::string_view text, std::string_view file_name, const std::string& directory) {
  return Assembler(text, file_name, directory).Run();
}

Result<Program> Assemble(std::string_view text, std::string_view file_name) {
  INGOT_ASSIGN_OR_RETURN(AssembledFile file, Assembler(text, file_name, "").Run());
  return std::move(file.program);
}

}  // namespace ingot::vm
