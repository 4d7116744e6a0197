// vm-inspect: shows what is in an executable: signatures, sections, kernels, constants, memory, bytecode; checks it;
// takes kernel images out; assembles the text form. It reads files that are damaged as far as they can be read, and
// trusts nothing: no kernel is loaded or run.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

#include "apps/common/process.h"
#include "apps/common/tool.h"
#include "formats/container.h"
#include "formats/file.h"
#include "formats/packed_program.h"
#include "formats/signing.h"
#include "runtime/cpu_features.h"
#include "runtime/suggest.h"
#include "runtime/tensor.h"
#include "vm/program/device_program.h"
#include "vm/program/file_form.h"
#include "vm/program/golden_cases.h"
#include "vm/program/program_codec.h"
#include "vm/program/weights.h"
#include "vm/run/executable.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"
#include "vm/tools/doctor.h"
#include "vm/tools/program_diff.h"
#include "vm/tools/second_program.h"
#include "vm/tools/slim_program.h"
#include "vm/verify/memory_peak.h"
#include "vm/verify/plan_check.h"
#include "vm/verify/verifier.h"
#include "vm/verify/zeroed_memory.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-inspect model.ingot                            # signatures, sections, kernels, memory\n"
    "  vm-inspect model.ingot --verify                   # every check and every hash\n"
    "  vm-inspect model.ingot --dim batch=8              # what a call with this batch takes\n"
    "  vm-inspect model.ingot --disasm main\n"
    "  vm-inspect model.ingot --disasm --blobs -o model.ingotasm   # large bytes in model.ingotasm.blobs\n"
    "  vm-inspect model.ingot --extract x86-64-v3 -o kernels.so\n"
    "  vm-inspect model.ingot --thin --strip -o small.ingot   # only what this machine's CPU runs, no debug map\n"
    "  vm-inspect model.ingot --thin x86-64-v3 -o v3.ingot\n"
    "  vm-inspect model.ingot --diff old.ingot            # tables, code and constants that differ\n"
    "  vm-inspect model.ingot --doctor --dim batch=8      # would it run here?\n"
    "  vm-inspect --make-key model.key                    # and model.key.pub\n"
    "  vm-inspect model.ingot --sign model.key -o signed.ingot\n"
    "  vm-inspect --assemble model.ingotasm -o model.ingot";

struct Options {
  std::string path, output, assemble, extract, diff, sign, make_key, require_signature, format = "text";
  std::optional<std::string> disasm, thin;
  std::vector<std::string> dims, input_shapes;
  bool blobs = false, doctor = false, strip = false, constants = false, kernels = false, sections = false,
       verify = false;
};

std::string Join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::vector<std::string> IntNames(const vm::Kernel& kernel) {
  std::vector<std::string> names;
  for (const vm::KernelInt& i : kernel.ints) names.push_back(i.name);
  return names;
}

// "in a: float32[n, 4]".
std::string DescribeParam(const vm::Kernel& kernel, const vm::KernelParam& param) {
  const std::vector<std::string> names = IntNames(kernel);
  std::vector<std::string> extents;
  for (const DimCode& extent : param.extents) extents.push_back(extent.ToString(names));
  return std::string(vm::ParamRoleName(param.role)) + " " + param.name + ": " + param.dtype.ToString() + "[" +
         Join(extents, ", ") + "]";
}

// The memory that a call takes: formulas, and their values for the given shapes (upper bounds where none is given).
Json DescribeMemory(const vm::MemoryNeeds& of_program, const vm::Function& function, const vm::GivenShapes& shapes) {
  const std::vector<std::string> symbols = function.signature.symbol_names();
  const vm::MemoryNeeds needs = vm::MemoryNeedsOf(of_program, function);
  Json memory{{"arenas", needs.arenas.ToString(symbols)}, {"results", needs.results.ToString(symbols)},
              {"depends_on_data", needs.depends_on_data}, {"calls", needs.calls},
              {"workspace", needs.workspace_bytes},       {"states", needs.state_bytes}};
  const Result<std::vector<int64_t>> values = vm::SymbolValues(function.signature, shapes);
  if (!values.ok()) {
    memory["unknown"] = values.status().message();
    return memory;
  }
  if (!symbols.empty()) {
    Json at = Json::Object();
    for (size_t i = 0; i < symbols.size(); ++i) at.Put(symbols[i], (*values)[i]);
    memory["at"] = std::move(at);
  }
  const Result<int64_t> total = needs.Total(*values);
  const Result<vm::PlanNumbers> numbers = vm::EvaluatePlan(function.plan, *values);
  if (!total.ok() || !numbers.ok()) {
    memory["unknown"] = (total.ok() ? numbers.status() : total.status()).message();
    return memory;
  }
  memory["peak"] = *total;
  memory["dominated_by"] = vm::DominatingTensor(function, *numbers);
  return memory;
}

// The text for --format=json: ASCII, whatever bytes a file's name has.
std::string TextOf(const Json& document) { return document.Dump(2, /*is_ascii=*/true); }

// The tensors whose memory is zeroed before the function sees it, because they are not proved to be written first (in a
// file that is not trusted, all are zeroed). "zeroed" lists the first hundred, "zeroed_in_all" counts them.
void DescribeZeroed(const vm::Program& program, const vm::Function& function, Json& of_function) {
  constexpr size_t kMostRows = 100;
  const std::vector<uint32_t> unproved = vm::FindUnproved(program, function);
  Json zeroed = Json::Array();
  for (const uint32_t at : std::span(unproved).first(std::min(unproved.size(), kMostRows))) {
    const vm::Instruction& in = function.code[at];
    zeroed.push_back({{"instruction", at},
                      {"type", function.TypeOf(vm::ResultOf(in)).ToString(function.signature.symbol_names())},
                      {"per_call", vm::InfoOf(in.opcode).result != vm::ResultMemory::kArena}});
  }
  of_function["zeroed"] = std::move(zeroed);
  of_function["zeroed_in_all"] = unproved.size();
}

void PrintMemory(const Json& memory) {
  std::cout << "    memory: arenas of " << memory["arenas"].get<std::string>() << " bytes, results of "
            << memory["results"].get<std::string>() << " bytes, workspace " << memory["workspace"] << ", states "
            << memory["states"] << (memory["depends_on_data"].get<bool>() ? ", and what depends on data" : "")
            << (memory["calls"].get<bool>() ? ", and what the functions take that it calls" : "") << "\n";
  if (!memory.contains("peak")) {
    std::cout << "    peak: " << memory["unknown"].get<std::string>() << " (--dim NAME=N says it)\n";
    return;
  }
  const bool is_all = !memory["depends_on_data"].get<bool>() && !memory["calls"].get<bool>();
  std::cout << "    peak: " << (is_all ? "" : "at least ") << memory["peak"] << " bytes";
  std::string at;
  if (memory.contains("at")) {
    for (const auto& [symbol, value] : memory["at"].items())
      at += (at.empty() ? " at " : ", ") + symbol + "=" + value.Dump();
  }
  const std::string largest = memory["dominated_by"].get<std::string>();
  std::cout << at << (largest.empty() ? "" : ", most of the arena for " + largest) << "\n";
}

// The whole file as one document; every text form below prints a part of it.
Json Describe(const formats::Container& container, const vm::Program& program, const vm::GivenShapes& shapes,
              bool is_sound) {
  Json document;
  if (!program.metadata.empty()) {
    Json metadata = Json::Object();
    for (const auto& [key, value] : program.metadata) metadata.Put(key, value);
    document["metadata"] = std::move(metadata);
  }
  Json functions = Json::Array();
  const vm::MemoryNeeds of_program = is_sound ? vm::MemoryNeedsOf(program) : vm::MemoryNeeds();
  for (const vm::Function& function : program.functions) {
    const std::vector<std::string> symbols = function.signature.symbol_names();
    Json arenas = Json::Array();
    for (const vm::Arena& arena : function.plan.arenas)
      arenas.push_back({{"device", arena.device}, {"bytes", arena.size.ToString(symbols)}});
    Json bounds = Json::Object();
    for (const vm::Symbol& symbol : function.signature.symbols) bounds.Put(symbol.name, {symbol.min, symbol.max});
    functions.push_back({{"name", function.name},
                         {"exported", function.exported},
                         {"signature", function.signature.ToString()},
                         {"symbols", bounds},
                         {"instructions", function.code.size()},
                         {"registers", function.registers.size()},
                         {"arenas", arenas}});
    if (is_sound) DescribeZeroed(program, function, functions.back());
    if (is_sound) functions.back()["memory"] = DescribeMemory(of_program, function, shapes);
  }
  document["functions"] = functions;
  Json states = Json::Array();
  for (const vm::State& state : program.states) {
    Json row = {{"name", state.name}, {"type", ShapeToString(state.dtype, state.dims)}};
    if (state.growth) row["grows_along"] = state.growth->axis;
    states.push_back(std::move(row));
  }
  document["states"] = states;
  Json kernels = Json::Array();
  for (const vm::Kernel& kernel : program.kernels) {
    const std::vector<std::string> names = IntNames(kernel);
    Json params = Json::Array(), variants = Json::Array();
    for (const vm::KernelParam& param : kernel.params) params.push_back(DescribeParam(kernel, param));
    for (const vm::KernelVariant& variant : kernel.variants) {
      variants.push_back({{"image", variant.image},
                          {"offset", variant.offset},
                          {"features", CpuFeatures{variant.required_features}.ToString()}});
    }
    kernels.push_back({{"name", kernel.name},
                       {"params", params},
                       {"ints", names},
                       {"workspace", kernel.workspace.ToString(names)},
                       {"flops", kernel.flops.ToString(names)},
                       {"bytes", kernel.bytes.ToString(names)},
                       {"variants", variants}});
  }
  document["kernels"] = kernels;
  Json images = Json::Array();
  for (const vm::KernelImage& image : program.images) {
    images.push_back({{"name", image.name},
                      {"arch", image.arch},
                      {"features", CpuFeatures{image.features}.ToString()},
                      {"size", image.bytes.size()}});
  }
  document["images"] = images;
  for (const vm::WeightFile& file : program.weight_files) {
    document["weight_files"].push_back(
        {{"path", file.path}, {"size", file.size}, {"sha256", formats::ToHex(file.sha256)}});
  }
  Json constants = Json::Array();
  auto weight = program.weights.begin();
  for (const vm::Constant& constant : program.constants) {
    Json row = {{"name", constant.name},
                {"type", ShapeToString(constant.dtype, constant.dims)},
                {"size", constant.bytes.size()}};
    if (weight != program.weights.end() && weight->constant.value == constants.size()) {
      row["replaceable"] = true;
      if (weight->file && is_sound) {
        row["size"] = constant.size_bytes();
        row["file"] = program.weight_files[*weight->file].path;
        row["offset"] = weight->offset;
      }
      ++weight;
    }
    if (const auto& by = constant.prepared_by) {
      const size_t function = by->function.value;  // of a file that may be damaged
      row["prepared_by"] = function < program.functions.size() ? program.functions[function].name : "?";
    }
    constants.push_back(std::move(row));
  }
  document["constants"] = constants;
  document["file_size"] = container.bytes().size();
  return document;
}

Json DescribeSections(const formats::Container& container) {
  Json sections = Json::Array();
  for (const formats::Section& section : container.sections()) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(section.hash));
    sections.push_back({{"section", section.Label()},
                        {"offset", section.offset},
                        {"stored_size", section.stored_size},
                        {"size", section.size},
                        {"codec", section.codec == formats::Codec::kZstd ? "zstd" : "none"},
                        {"hash", hash}});
  }
  return sections;
}

void PrintSections(const Json& sections) {
  char line[200];
  std::snprintf(line, sizeof line, "%-28s %12s %12s %12s %6s  %s\n", "section", "offset", "stored", "size", "codec",
                "hash");
  std::cout << line;
  for (const Json& s : sections) {
    std::snprintf(line, sizeof line, "%-28s %12llu %12llu %12llu %6s  %s\n", s["section"].get<std::string>().c_str(),
                  s["offset"].get<unsigned long long>(), s["stored_size"].get<unsigned long long>(),
                  s["size"].get<unsigned long long>(), s["codec"].get<std::string>().c_str(),
                  s["hash"].get<std::string>().c_str());
    std::cout << line;
  }
}

void PrintKernels(const Json& document) {
  for (const Json& kernel : document["kernels"]) {
    std::cout << kernel["name"].get<std::string>() << "(";
    for (size_t i = 0; i < kernel["params"].size(); ++i)
      std::cout << (i == 0 ? "" : ", ") << kernel["params"][i].get<std::string>();
    std::cout << ")\n    workspace " << kernel["workspace"].get<std::string>() << " bytes, "
              << kernel["flops"].get<std::string>() << " flops, " << kernel["bytes"].get<std::string>()
              << " bytes moved\n";
    for (const Json& variant : kernel["variants"]) {
      std::cout << "    image " << variant["image"] << " at " << variant["offset"] << ", needs "
                << variant["features"].get<std::string>() << "\n";
    }
  }
}

void PrintConstants(const Json& document) {
  int64_t i = 0;
  for (const Json& constant : document["constants"]) {
    std::cout << "#" << i++ << " " << constant["type"].get<std::string>() << " " << constant["size"] << " bytes "
              << constant["name"].get<std::string>();
    if (constant.contains("replaceable")) std::cout << ", replaceable";
    if (constant.contains("file")) std::cout << ", in " << constant["file"].get<std::string>();
    if (constant.contains("prepared_by")) std::cout << ", prepared by " << constant["prepared_by"].get<std::string>();
    std::cout << "\n";
  }
}

void PrintSummary(const std::string& path, const Json& document, const Json& sections) {
  std::cout << path << ": " << document["file_size"] << " bytes\n";
  for (const Json& function : document["functions"]) {
    std::cout << (function["exported"].get<bool>() ? "entry " : "function ") << function["name"].get<std::string>()
              << function["signature"].get<std::string>() << "\n";
    for (const auto& [symbol, bounds] : function["symbols"].items()) {
      std::cout << "    " << symbol << ": " << bounds[0] << " to "
                << (bounds[1].get<int64_t>() == INT64_MAX ? "any" : bounds[1].Dump()) << "\n";
    }
    std::cout << "    " << function["instructions"] << " instructions, " << function["registers"] << " registers";
    for (const Json& arena : function["arenas"])
      std::cout << ", arena of " << arena["bytes"].get<std::string>() << " bytes";
    std::cout << "\n";
    if (function.contains("zeroed")) {
      for (const Json& row : function["zeroed"]) {
        std::cout << "    zeroed " << (row["per_call"].get<bool>() ? "at each call: " : "once, with its arena: ")
                  << row["type"].get<std::string>() << " (instruction " << row["instruction"] << ")\n";
      }
      const size_t left_out = function["zeroed_in_all"].get<size_t>() - function["zeroed"].size();
      if (left_out > 0) std::cout << "    and " << left_out << " more that are zeroed\n";
    }
    if (function.contains("memory") && function["exported"].get<bool>()) PrintMemory(function["memory"]);
  }
  for (const Json& state : document["states"]) {
    std::cout << "state " << state["name"].get<std::string>() << ": " << state["type"].get<std::string>();
    if (state.contains("grows_along")) std::cout << ", filled along axis " << state["grows_along"];
    std::cout << "\n";
  }
  uint64_t weights = 0;
  for (const Json& constant : document["constants"]) {
    if (!constant.contains("file")) weights += constant["size"].get<uint64_t>();
  }
  if (document.contains("weight_files")) {
    for (const Json& file : document["weight_files"]) {
      std::cout << "weights in " << file["path"].get<std::string>() << ": " << file["size"] << " bytes\n";
    }
  }
  std::cout << document["kernels"].size() << " kernels, " << document["constants"].size() << " constants of " << weights
            << " bytes; "
            << document["file_size"].get<uint64_t>() - std::min(weights, document["file_size"].get<uint64_t>())
            << " bytes beyond them\n";
  for (const Json& image : document["images"]) {
    std::cout << "image " << image["name"].get<std::string>() << " (" << image["arch"].get<std::string>()
              << "): " << image["size"] << " bytes, needs " << image["features"].get<std::string>() << "\n";
  }
  if (document.contains("metadata")) {
    for (const auto& [key, value] : document["metadata"].items()) {
      const std::string text = value.get<std::string>();
      const auto num_lines = std::count(text.begin(), text.end(), '\n');
      std::cout << key << ": " << (num_lines > 0 ? std::to_string(num_lines) + " lines" : text) << "\n";
    }
  }
  PrintSections(sections);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

class Inspection {
 public:
  Inspection(Tool& tool, const Options& options) : tool_(tool), options_(options) {}

  Result<int> Run() {
    INGOT_RETURN_IF_ERROR(ParseShapes());
    if (!options_.assemble.empty()) return AssembleFile();
    if (!options_.make_key.empty()) {
      INGOT_RETURN_IF_ERROR(formats::MakeKeyPair(options_.make_key));
      return int{kExitOk};
    }
    if (options_.path.empty()) return Status(StatusCode::kInvalidArgument, "no EXE was given");
    INGOT_ASSIGN_OR_RETURN(file_, formats::MapFile(options_.path));
    std::vector<formats::ContainerFinding> findings;
    Result<formats::Container> opened = formats::Container::Inspect(file_, {}, &findings);
    if (!opened.ok()) return std::move(opened).status().WithContext(options_.path);
    const formats::Container& container = *opened;
    Status damage;
    if (!findings.empty()) damage = findings[0].status;
    for (const formats::ContainerFinding& finding : findings)
      tool_.Note(options_.path + ": " + finding.status.message());
    if (damage.ok() && !options_.require_signature.empty()) {
      INGOT_ASSIGN_OR_RETURN(const formats::PublicKey key, formats::ReadPublicKey(options_.require_signature));
      INGOT_RETURN_IF_ERROR(formats::CheckSignature(container, {&key, 1}, nullptr).WithContext(options_.path));
    }
    Result<vm::Program> program =
        options_.doctor ? vm::DecodeProgramWithoutWeights(container) : vm::DecodeProgram(container);
    if (damage.ok()) damage = program.ok() ? vm::Verify(*program, container) : program.status();
    if (damage.ok() && options_.verify) damage = container.VerifyHashes();
    if (damage.ok() && options_.verify) damage = VerifyWeightFiles(container, *program);
    if (damage.ok() && options_.verify) damage = vm::DecodeGoldenCases(container).status();
    const Json sections = DescribeSections(container);
    if (!program.ok()) {  // the table alone can be shown
      if (tool_.wants_json()) {
        INGOT_RETURN_IF_ERROR(tool_.WriteJson(1, {{"sections", sections}, {"error", damage.message()}}));
      } else {
        PrintSections(sections);
      }
      return std::move(damage).WithContext(options_.path);
    }
    if (damage.ok() && options_.doctor) return ShowNeeds(container, *program);
    if (damage.ok() && !options_.diff.empty()) return ShowDiff(container, *program);
    if (damage.ok() && !options_.sign.empty()) {
      INGOT_RETURN_IF_ERROR(WriteSigned(container));
      return int{kExitOk};
    }
    INGOT_RETURN_IF_ERROR(Show(container, *program, sections, damage));
    if (!damage.ok()) return std::move(damage).WithContext(options_.path);
    return int{kExitOk};
  }

 private:
  Status Show(const formats::Container& container, const vm::Program& program, const Json& sections,
              const Status& damage) {
    if (options_.thin || options_.strip) return damage.ok() ? WriteSlim(container, program) : Status();
    if (!options_.extract.empty()) return Extract(program);
    if (options_.disasm) return Disassemble(container, program, damage.ok());
    for (const vm::Function& function : program.functions) {
      // A given name that the signature does not have is a mistake, and is reported.
      Status given = vm::SymbolValues(function.signature, shapes_).status();
      if (damage.ok() && function.exported && given.code() == StatusCode::kBadInput) {
        return std::move(given).WithContext("function \"" + function.name + "\"");
      }
    }
    Json document = Describe(container, program, shapes_, damage.ok());
    document["sections"] = sections;
    document["verified"] = damage.ok();
    if (tool_.wants_json()) return tool_.WriteJson(1, document);
    if (options_.format == "json") {
      std::cout << TextOf(document) << "\n";
      return Status();
    }
    if (options_.sections) PrintSections(sections);
    if (options_.kernels) PrintKernels(document);
    if (options_.constants) PrintConstants(document);
    if (options_.verify && damage.ok()) std::cout << options_.path << ": every check and every hash passed\n";
    if (!options_.sections && !options_.kernels && !options_.constants && !options_.verify)
      PrintSummary(options_.path, document, sections);
    return Status();
  }

  Status ParseShapes() {
    const auto number = [](const std::string& text) -> std::optional<int64_t> {
      if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return {};
      return std::stoll(text);
    };
    for (const std::string& text : options_.dims) {
      const size_t equals = text.rfind('=');
      const auto value = number(equals == std::string::npos ? "" : text.substr(equals + 1));
      if (!value)
        return Status(StatusCode::kInvalidArgument, "--dim \"" + text + "\": expected NAME=N, such as batch=8");
      shapes_.symbols.emplace_back(text.substr(0, equals), *value);
    }
    for (const std::string& text : options_.input_shapes) {
      const size_t equals = text.rfind('=');
      std::vector<int64_t> dims;
      std::istringstream list(equals == std::string::npos ? "" : text.substr(equals + 1));
      for (std::string part; std::getline(list, part, ',');) {
        const auto value = number(part);
        if (!value)
          return Status(StatusCode::kInvalidArgument, "--input-shape \"" + text + "\": expected NAME=D0,D1,...");
        dims.push_back(*value);
      }
      shapes_.parameters.emplace_back(text.substr(0, equals), std::move(dims));
    }
    return Status();
  }

  // Prints a finding per line. The exit code is that of the first need that is not met.
  Result<int> ShowNeeds(const formats::Container& container, const vm::Program& program) {
    vm::DoctorOptions options;
    options.file = file_.bytes;
    options.shapes = shapes_;
    options.directory = FolderOf(options_.path);
    options.machine_policy_path = vm::kMachinePolicyPath;
    options.available_memory_bytes = vm::AvailableMemoryBytes();
    Json findings = Json::Array();
    int exit_code = kExitOk;
    for (const vm::Finding& finding : vm::Diagnose(container, program, options)) {
      const bool is_fine = finding.verdict == StatusCode::kOk;
      if (exit_code == kExitOk && !is_fine) exit_code = ExitCodeOf(finding.verdict);
      findings.push_back({{"what", finding.what}, {"needs", finding.needs}, {"has", finding.has}, {"fine", is_fine}});
      if (tool_.json_to_stdout() || options_.format == "json") continue;
      std::cout << (is_fine ? "fine     " : "MISSING  ") << finding.what << ": needs " << finding.needs
                << "; here: " << finding.has << "\n";
    }
    const Json document{{"executable", options_.path}, {"fine", exit_code == kExitOk}, {"findings", findings}};
    if (tool_.wants_json()) INGOT_RETURN_IF_ERROR(tool_.WriteJson(1, document));
    if (!tool_.wants_json() && options_.format == "json") std::cout << TextOf(document) << "\n";
    return exit_code;
  }

  // Exit code 1 when there is a difference.
  Result<int> ShowDiff(const formats::Container& container, const vm::Program& program) {
    INGOT_ASSIGN_OR_RETURN(const SharedBytes file, formats::MapFile(options_.diff));
    Result<formats::Container> opened = formats::Container::Open(file);
    if (!opened.ok()) return std::move(opened).status().WithContext(options_.diff);
    Result<vm::Program> other = vm::DecodeProgram(*opened);
    if (!other.ok()) return std::move(other).status().WithContext(options_.diff);
    std::vector<std::string> differences = vm::DiffPrograms(program, *other);
    std::ranges::move(vm::DiffSecondPrograms(container, *opened), std::back_inserter(differences));
    const Json document{{"first", options_.path},
                        {"second", options_.diff},
                        {"equal", differences.empty()},
                        {"differences", differences}};
    if (tool_.wants_json()) INGOT_RETURN_IF_ERROR(tool_.WriteJson(1, document));
    if (!tool_.json_to_stdout()) {
      if (options_.format == "json") {
        std::cout << TextOf(document) << "\n";
      } else {
        for (const std::string& line : differences) std::cout << line << "\n";
        if (differences.empty()) std::cout << "no differences\n";
      }
    }
    return differences.empty() ? int{kExitOk} : int{kExitDiffers};
  }

  // Writes the sections as they are stored, and one more signature.
  Status WriteSigned(const formats::Container& container) const {
    if (options_.output.empty()) return Status(StatusCode::kInvalidArgument, "--sign: no -o FILE was given");
    formats::ContainerWriter writer(container.required_features());
    for (const formats::Section& section : container.sections()) {
      writer.AddStored(section, container.StoredBytes(section));
    }
    INGOT_RETURN_IF_ERROR(formats::SignContainer(writer, options_.sign));
    if (container.start_offset() == 0) return writer.WriteFile(options_.output, tool_.files());
    return formats::WritePackedProgram(file_.bytes.first(container.start_offset()), writer, options_.output,
                                       tool_.files());
  }

  // And the program for GPUs, which names files of its own.
  Status VerifyWeightFiles(const formats::Container& container, vm::Program program) const {
    vm::WeightSources sources;
    sources.directory = FolderOf(options_.path);
    sources.verify_files = true;
    INGOT_RETURN_IF_ERROR(vm::BindWeights(program, sources));
    return vm::VerifySecondProgram(container, program, sources);
  }

  // Prints the executable as text; of a damaged file only the program, as far as it can be read.
  Status Disassemble(const formats::Container& container, const vm::Program& program, bool is_sound) {
    if (options_.disasm->empty()) {
      const vm::FileForm form = vm::FormOf(container, file_);
      vm::BlobsBeside beside;
      vm::DisassembleOptions disassemble;
      if (is_sound) disassemble.form = &form;
      if (!options_.blobs) return Write(vm::Disassemble(program, disassemble));
      if (options_.output.empty()) return Status(StatusCode::kInvalidArgument, "--blobs: no -o FILE was given");
      const std::string path = options_.output + ".blobs";
      beside.name = path.substr(path.rfind('/') + 1);
      disassemble.beside = &beside;
      const std::string text = vm::Disassemble(program, disassemble);
      INGOT_ASSIGN_OR_RETURN(formats::OutputFile file, formats::OutputFile::Create(path, tool_.files()));
      for (const std::span<const std::byte> piece : beside.pieces) INGOT_RETURN_IF_ERROR(file.Write(piece));
      INGOT_RETURN_IF_ERROR(file.Commit());
      return Write(text);
    }
    std::vector<std::string_view> names;
    for (const vm::Function& function : program.functions) {
      if (function.name == *options_.disasm) return Write(vm::DisassembleFunction(program, function));
      names.push_back(function.name);
    }
    return Status(StatusCode::kNotFound,
                  "there is no function \"" + *options_.disasm + "\"" + DidYouMean(*options_.disasm, names));
  }

  Status Extract(const vm::Program& program) {
    if (options_.output.empty()) return Status(StatusCode::kInvalidArgument, "--extract: no -o FILE was given");
    std::vector<std::string_view> names;
    for (const vm::KernelImage& image : program.images) {
      if (image.name == options_.extract)
        return formats::WriteFileAtomically(options_.output, image.bytes.bytes, tool_.files());
      names.push_back(image.name);
    }
    return Status(StatusCode::kNotFound,
                  "there is no kernel image \"" + options_.extract + "\"" + DidYouMean(options_.extract, names));
  }

  Status WriteSlim(const formats::Container& container, const vm::Program& program) {
    if (options_.output.empty()) return Status(StatusCode::kInvalidArgument, "--thin, --strip: no -o FILE was given");
    if (container.Find(vm::kDeviceProgramSection) != nullptr) {
      tool_.Note(options_.path + ": the section " + vm::kDeviceProgramName + ", its debug map included, is kept whole");
    }
    vm::SlimOptions slim;
    slim.drop_debug_map = options_.strip;
    if (options_.thin) slim.only_for = CpuFeatures::Detect();
    if (options_.thin && !options_.thin->empty()) {
      INGOT_ASSIGN_OR_RETURN(slim.only_for, CpuFeatures::Parse(*options_.thin));
    }
    return vm::WriteSlimProgram(container, file_.bytes, program, slim, options_.output, tool_.files());
  }

  Result<int> AssembleFile() {
    if (options_.output.empty()) return Status(StatusCode::kInvalidArgument, "--assemble: no -o FILE was given");
    INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, formats::MapFile(options_.assemble));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    INGOT_ASSIGN_OR_RETURN(const vm::AssembledFile file,
                           vm::AssembleFile(text, options_.assemble, FolderOf(options_.assemble)));
    INGOT_RETURN_IF_ERROR(vm::Verify(file.program).WithContext(options_.assemble));
    INGOT_RETURN_IF_ERROR(
        vm::WriteInForm(file.program, file.form, options_.output, tool_.files()).WithContext(options_.assemble));
    return int{kExitOk};
  }

  Status Write(const std::string& text) {
    if (!options_.output.empty())
      return formats::WriteFileAtomically(options_.output, std::as_bytes(std::span(text)), tool_.files());
    std::cout << text;
    return Status();
  }

  Tool& tool_;
  const Options& options_;
  SharedBytes file_;
  vm::GivenShapes shapes_;
};

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  PrepareProcess("vm-inspect");
  Tool tool("vm-inspect", "Shows, checks and takes apart an executable.", kExamples);
  Options options;
  CommandLine& line = tool.command_line();
  line.Add("EXE", options.path, "The executable, or a program that holds one");
  line.Add("-o,--output", options.output, "Where --disasm, --extract, --thin, --strip, --sign and --assemble write")
      .Type("FILE");
  const Option disassembles =
      line.Add("--disasm", options.disasm, "The whole executable as text, or one function").Type("[FN]");
  line.AddFlag("--blobs", options.blobs, "With --disasm: bytes beyond 64 in OUT.blobs, a file beside the text")
      .Needs(disassembles);
  line.Add("--dim", options.dims, "NAME=N: the peak of memory for this value of a symbolic dimension").OneEach();
  line.Add("--input-shape", options.input_shapes, "NAME=D0,D1,...: the same, from an input's dimensions").OneEach();
  line.AddFlag("--constants", options.constants, "List the constants");
  line.AddFlag("--kernels", options.kernels, "List the kernels and their variants");
  line.AddFlag("--sections", options.sections, "List the sections of the file");
  line.AddFlag("--verify", options.verify,
               "Check everything, the hashes of large constants and of files of weights too");
  line.Add("--extract", options.extract, "Write a kernel image (an ELF file) to -o").Type("IMAGE");
  line.Add("--thin", options.thin, "Write it without kernels for other CPUs than this one, or one of these features")
      .Type("[FEATURES]");
  line.AddFlag("--strip", options.strip, "Write it without its debug map");
  line.Add("--assemble", options.assemble, "Turn assembler text into an executable at -o").Type("FILE");
  line.Add("--diff", options.diff, "Say what differs in another executable; exit 1 when something does").Type("OTHER");
  line.AddFlag("--doctor", options.doctor,
               "Say what the file needs (CPU, devices, memory, weights, trust), and whether this machine has it");
  line.Add("--sign", options.sign, "Write it with a signature by this secret key to -o").Type("KEY");
  line.Add("--make-key", options.make_key, "Write a new secret key to FILE, its public key to FILE.pub").Type("FILE");
  line.Add("--require-signature", options.require_signature,
           "Fail unless this public key has signed it (a file of the key, or its 64 hex digits)")
      .Type("KEY");
  line.Add("--format", options.format, "text or json").OneOf({"text", "json"}).ShowDefault();
  return tool.Run(argc, argv, [&] { return Inspection(tool, options).Run(); });
}
