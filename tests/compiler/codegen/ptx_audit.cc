// The rules that hold for all code, one function each, over its text. A kernel is named by what it computes: its buffers.
#include "tests/compiler/codegen/ptx_audit.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "compiler/script/printer.h"
#include "compiler/target/cuda.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen::testing {
namespace {

bool IsInName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(at, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// The opcode of a line of PTX, "add.rn.f32"; empty: it has none.
std::string_view OpcodeOf(std::string_view line) {
  size_t at = line.find_first_not_of(" \t{");
  if (at == std::string_view::npos) return {};
  if (line[at] == '@') {
    at = line.find(' ', at);
    if (at == std::string_view::npos) return {};
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return {};
  }
  const size_t end = std::min(line.find_first_of(" \t;", at), line.size());
  const std::string_view opcode = line.substr(at, end - at);
  return opcode.empty() || opcode[0] < 'a' || opcode[0] > 'z' ? std::string_view() : opcode;
}

struct Entry {
  std::string name;
  int64_t max_threads = 0;  // 0: it does not say
  std::vector<std::string_view> lines;
};

std::vector<Entry> EntriesOf(std::string_view ptx) {
  std::vector<Entry> entries;
  bool is_inside = false;
  for (const std::string_view line : LinesOf(ptx)) {
    constexpr std::string_view kEntry = ".entry ", kMost = ".maxntid ";
    if (const size_t at = line.find(kEntry); at != std::string_view::npos) {
      const size_t begin = at + kEntry.size();
      entries.push_back({std::string(line.substr(begin, line.find('(', begin) - begin)), 0, {}});
    } else if (entries.empty()) {
      continue;
    } else if (line.starts_with(kMost)) {
      int64_t threads = 1;
      for (const std::string& axis : Split(line.substr(kMost.size()), ',')) threads *= std::atoi(axis.c_str());
      entries.back().max_threads = threads;
    } else if (line.starts_with('{')) {
      is_inside = true;
    } else if (line.starts_with('}')) {
      is_inside = false;
    } else if (is_inside) {
      entries.back().lines.push_back(line);
    }
  }
  return entries;
}

// ---- the rules

using Faults = std::vector<std::string>;

// Drivers refuse PTX that is newer than they are.
void CheckHeader(const Target& target, std::string_view ptx, Faults& faults) {
  const std::string& feature = target.llvm_features.at(0);  // "+ptx70"
  const std::string version = feature.substr(4, feature.size() - 5) + "." + feature.back();
  for (const std::string& line : {".version " + version, ".target " + target.name, std::string(".address_size 64")}) {
    const std::vector<std::string_view> lines = LinesOf(ptx.substr(0, 400));
    if (std::ranges::find(lines, line) == lines.end()) faults.push_back("the header has no line " + line);
  }
}

bool IsFloat(std::string_view type) {
  return type == "f16" || type == "f16x2" || type == "bf16" || type == "bf16x2" || type == "f32" || type == "f64";
}

// ptxas makes one fma of a product and a sum without rounding, and nobody sees it.
void CheckRounding(const Entry& entry, Faults& faults) {
  for (const std::string_view line : entry.lines) {
    const std::string_view opcode = OpcodeOf(line);
    const std::vector<std::string> parts = Split(opcode, '.');
    if (!IsFloat(parts.back())) continue;
    const std::string& base = parts.front();
    if (base == "mad") faults.push_back(entry.name + " has " + std::string(opcode));
    const bool rounds = base == "add" || base == "sub" || base == "mul" || base == "fma";
    if (rounds && std::ranges::find(parts, "rn") == parts.end()) {
      faults.push_back(entry.name + " has " + std::string(opcode) + " without its rounding");
    }
  }
}

// Fused multiply-adds are those that were asked for: nothing permits LLVM to make others, and of each there is one at most.
// (For bfloat16 sums and products are fma instructions before sm_90, of 1 and -0.)
void CheckFused(const PtxImage& image, const std::vector<Entry>& entries, Faults& faults) {
  int64_t meant = 0, made = 0;
  for (const std::string_view line : LinesOf(image.llvm)) {
    for (const char* flag : {" fast ", " contract ", " reassoc ", " afn ", " arcp "}) {
      if (line.find(flag) != std::string_view::npos) faults.push_back("LLVM may change " + std::string(line));
    }
    if (line.starts_with("declare ")) continue;
    for (const std::string_view name : {"@llvm.fma.", "@llvm.fmuladd."}) {
      const size_t at = line.find(name);
      if (at == std::string_view::npos) continue;
      const char* const type = line.data() + at + name.size();  // "f32", "v4f32"
      meant += *type == 'v' ? std::atoi(type + 1) : 1;
    }
  }
  for (const Entry& entry : entries) {
    for (const std::string_view line : entry.lines) {
      const std::string_view opcode = OpcodeOf(line);
      made += opcode.starts_with("fma.") && (opcode.ends_with(".f32") || opcode.ends_with(".f64")) ? 1 : 0;
    }
  }
  if (made > meant) {
    faults.push_back(std::to_string(made) + " fma instructions, and " + std::to_string(meant) + " were asked for");
  }
}

// What all threads of a warp or block have to run together may not be moved into a branch, or copied into two.
void CheckConvergent(const PtxImage& image, Faults& faults) {
  std::set<std::string> groups;  // of attributes: "#3"
  for (const std::string_view line : LinesOf(image.llvm)) {
    if (!line.starts_with("attributes #") || line.find(" convergent ") == std::string_view::npos) continue;
    groups.emplace(line.substr(11, line.find(' ', 11) - 11));
  }
  std::set<std::string> convergent;  // functions
  for (const std::string_view line : LinesOf(image.llvm)) {
    if (!line.starts_with("declare ")) continue;
    const size_t name = line.find('@'), group = line.rfind('#');
    if (group == std::string_view::npos || !groups.contains(std::string(line.substr(group)))) continue;
    convergent.emplace(line.substr(name, line.find('(', name) - name));
  }
  constexpr std::string_view kTogether[] = {"barrier", "shfl", "vote",     "match",    "mma",
                                            "redux",   "bar.", "ldmatrix", "cp.async", "fence"};
  for (const std::string_view line : LinesOf(image.llvm)) {
    const size_t call = line.find("call ");
    if (line.starts_with("declare ") || call == std::string_view::npos) continue;
    const size_t group = line.rfind('#');
    const bool is_marked = group != std::string_view::npos &&
                           groups.contains(std::string(line.substr(group, line.find_first_of(" ,", group) - group)));
    if (const size_t text = line.find(" asm "); text != std::string_view::npos) {
      // What a thread does by itself: a load under a condition, and a number that LLVM does not look into.
      const bool is_own =
          line.find("@$2 ld.") != std::string_view::npos || line.find("\"mov.b32 $0, $1;\"") != std::string_view::npos;
      if (!is_own && !is_marked) faults.push_back("not convergent: " + std::string(line.substr(0, 200)));
      continue;
    }
    const size_t name = line.find("@llvm.nvvm.", call);
    if (name == std::string_view::npos) continue;
    const std::string function(line.substr(name, line.find('(', name) - name));
    const bool is_together =
        std::ranges::any_of(kTogether, [&](std::string_view part) { return function.find(part) != std::string::npos; });
    if (is_together && !is_marked && !convergent.contains(function)) {
      faults.push_back("not convergent: " + function);
    }
  }
}

// The bytes of the variable that the line defines in shared memory.
std::pair<std::string, int64_t> SharedVariable(std::string_view line) {
  if (line.find(".shared ") == std::string_view::npos || line.find('[') == std::string_view::npos) return {};
  const size_t bracket = line.find('['), begin = line.rfind(' ', bracket) + 1;
  const size_t type = line.rfind(".b", begin);
  const int64_t bytes = std::atoi(line.data() + type + 2) / 8;
  return {std::string(line.substr(begin, bracket - begin)), bytes * std::atoi(line.data() + bracket + 1)};
}

// So many threads, so much shared memory as a block may have on every device that takes the code.
void CheckBlocks(const Target& target, const PtxImage& image, const std::vector<Entry>& entries, Faults& faults) {
  std::map<std::string, int64_t> variables;
  for (const std::string_view line : LinesOf(image.ptx)) {
    if (const auto [name, bytes] = SharedVariable(line); !name.empty()) variables[name] = bytes;
  }
  for (const PtxKernel& kernel : image.kernels) {
    for (const PtxLaunch& launch : kernel.launches) {
      const auto found = std::ranges::find(entries, launch.entry, &Entry::name);
      if (found == entries.end()) {
        faults.push_back("no entry " + launch.entry);
        continue;
      }
      int64_t threads = 1, shared = launch.shared_bytes;
      bool is_known = true;
      for (const DimCode& axis : launch.block) {
        is_known &= axis.is_constant();
        threads *= axis.is_constant() ? axis.constant() : 1;
      }
      if (found->max_threads < 1 || found->max_threads > kCudaMaxBlockThreads) {
        faults.push_back(launch.entry + " says of no block how many threads it has");
      } else if (is_known && found->max_threads != threads) {
        faults.push_back(launch.entry + " has another number of threads than it is launched with");
      }
      int64_t own = 0;
      for (const auto& [name, bytes] : variables) {
        const auto names = [&](std::string_view line) {
          for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
            const size_t end = at + name.size();
            if ((at == 0 || !IsInName(line[at - 1])) && (end == line.size() || !IsInName(line[end]))) return true;
          }
          return false;
        };
        if (std::ranges::any_of(found->lines, names)) own += bytes;
      }
      if (own > kCudaUsualSharedBytes) faults.push_back(launch.entry + " has variables of " + std::to_string(own));
      shared += own;
      const bool is_exact = target.name.ends_with('a');
      if (shared > (is_exact ? CudaSharedBytes(target) : kCudaMostSharedBytes)) {
        faults.push_back(launch.entry + " needs " + std::to_string(shared) + " bytes of shared memory");
      }
    }
  }
}

// Nothing is called, since nothing would define it.
void CheckCalls(const PtxImage& image, const std::vector<Entry>& entries, Faults& faults) {
  if (image.ptx.find(".func ") != std::string::npos) faults.push_back("there are functions besides the entries");
  for (const Entry& entry : entries) {
    for (const std::string_view line : entry.lines) {
      if (OpcodeOf(line).starts_with("call")) faults.push_back(entry.name + " has a call");
    }
  }
}

// Of fixed sizes, which 32 bits count, every division of indices is one of 32 bits.
void CheckIndices(std::span<const KernelSource> sources, const std::vector<Entry>& entries, Faults& faults) {
  for (const KernelSource& source : sources) {
    bool is_small = KernelIntArguments(source.lowered).empty();
    for (const ir::PrimFuncParam& param : source.lowered->params) {
      if (!param.buffer) continue;
      is_small &= !(param.buffer->dtype.is_int() || param.buffer->dtype.is_uint()) || param.buffer->dtype.bits < 64;
      int64_t elements = 1;
      for (const ir::PrimExpr& dim : param.buffer->shape) elements *= ir::AsConstInt(dim).value_or(1);
      is_small &= elements < (int64_t{1} << 31);
    }
    if (!is_small) continue;
    for (const Entry& entry : entries) {
      if (entry.name != source.name && !entry.name.starts_with(source.name + "$")) continue;
      for (const std::string_view line : entry.lines) {
        const std::string_view opcode = OpcodeOf(line);
        if ((opcode.starts_with("div.") || opcode.starts_with("rem.")) && opcode.ends_with("64") &&
            !opcode.ends_with("f64")) {
          faults.push_back(entry.name + " has " + std::string(opcode) + ", and no index of 64 bits");
          break;
        }
      }
    }
  }
}

}  // namespace

std::vector<std::string> FaultsOf(std::span<const KernelSource> sources, const Target& target, const PtxImage& image) {
  Faults faults;
  const std::vector<Entry> entries = EntriesOf(image.ptx);
  CheckHeader(target, image.ptx, faults);
  for (const Entry& entry : entries) CheckRounding(entry, faults);
  CheckFused(image, entries, faults);
  CheckConvergent(image, faults);
  CheckBlocks(target, image, entries, faults);
  CheckCalls(image, entries, faults);
  CheckIndices(sources, entries, faults);
  return faults;
}

namespace {

// ---- what was made

struct Made {
  std::string what;  // the kernels: their buffers
  std::string target;
  PtxImage image;
  std::string test;
  bool is_static = true;
  std::map<std::string, std::set<int>> not_run;  // by entry: lines of the blocks that no launch has run
  std::map<std::string, int64_t> blocks;         // by entry: how many there are
};

class Collection {
 public:
  static Collection& Get() {
    static Collection collection;
    return collection;
  }
  void Add(std::span<const KernelSource> sources, const Target& target, const PtxImage& image) {
    std::string what;
    bool is_static = true;
    for (const KernelSource& source : sources) {
      what += what.empty() ? "" : "; ";
      is_static &= KernelIntArguments(source.lowered).empty();
      for (const ir::PrimFuncParam& param : source.lowered->params) {
        if (!param.buffer) continue;
        what += param.buffer->name + " " + param.buffer->dtype.ToString() + "[";
        for (const ir::PrimExpr& dim : param.buffer->shape) what += script::PrintExpr(dim) + ",";
        what += "] ";
      }
    }
    const std::lock_guard lock(mutex_);
    const doctest::detail::TestCase* const test = doctest::getContextOptions()->currentTest;
    Made& made = made_[image.ptx];
    if (made.image.ptx.empty()) {
      made = {what, target.name, image, test != nullptr ? test->m_name : "", is_static, {}, {}};
      made.image.llvm.clear();
    }
  }
  void Note(const std::string& ptx, const ptx::KernelFacts& facts) {
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(ptx);
    if (found == made_.end()) return;  // of a mutant
    Made& made = found->second;
    std::set<int> lines(facts.lines_not_run.begin(), facts.lines_not_run.end());
    const auto [known, is_new] = made.not_run.try_emplace(facts.name, lines);
    if (!is_new) std::erase_if(known->second, [&](int line) { return !lines.contains(line); });
    made.blocks[facts.name] = facts.num_blocks;
  }
  const std::map<std::string, Made>& made() const { return made_; }

 private:
  std::mutex mutex_;
  std::map<std::string, Made> made_;  // by text
};

}  // namespace

void NoteBlocks(const std::string& ptx, const ptx::KernelFacts& facts) { Collection::Get().Note(ptx, facts); }

namespace {

// ---- blocks

// From its first line, counted from 1, to its branch or the next label.
std::string BlockAt(const std::string& ptx, int first) {
  const std::vector<std::string_view> lines = LinesOf(ptx);
  std::string text;
  for (size_t i = static_cast<size_t>(first) - 1; i < lines.size(); ++i) {
    if (i + 1 > static_cast<size_t>(first) && lines[i].starts_with('$')) break;
    text += std::string(lines[i]) + "\n";
    if (lines[i].find("bra") != std::string_view::npos || lines[i].find("ret;") != std::string_view::npos) break;
  }
  return text;
}

}  // namespace

std::vector<std::string> BlocksNotRun(const std::string& ptx) {
  const auto found = Collection::Get().made().find(ptx);
  if (found == Collection::Get().made().end()) return {"this text was never made"};
  std::vector<std::string> blocks;
  for (const auto& [entry, lines] : found->second.not_run) {
    // Of a wide division, the ways to one, and copies of what one gives.
    std::set<std::string> wide, quotients;
    const std::vector<std::string_view> text = LinesOf(ptx);
    for (const std::string_view each : text) {
      const std::string_view opcode = OpcodeOf(each);
      const bool divides = opcode.starts_with("div.") || opcode.starts_with("rem.");
      if (!divides || !(opcode.ends_with(".s64") || opcode.ends_with(".u64"))) continue;
      quotients.emplace(each.substr(each.find('%'), each.find(',') - each.find('%')));
    }
    const auto label_of = [&](int line) {
      const std::string_view before = line >= 2 ? text[static_cast<size_t>(line) - 2] : std::string_view();
      return before.starts_with('$') ? std::string(before.substr(0, before.find(':'))) : std::string();
    };
    std::vector<std::pair<int, std::string>> left;
    for (const int line : lines) {
      const std::string block = BlockAt(ptx, line);
      // The other way of a conditional branch: LLVM has one block for both.
      if (label_of(line).empty() && block.starts_with("\tbra.uni")) continue;
      const bool divides = block.find("div.s64") != std::string::npos || block.find("rem.s64") != std::string::npos ||
                           block.find("div.u64") != std::string::npos || block.find("rem.u64") != std::string::npos;
      if (divides) {
        wide.insert(label_of(line));
      } else {
        left.emplace_back(line, block);
      }
    }
    for (const auto& [line, block] : left) {
      const size_t way = block.find("bra.uni");
      const size_t label = way == std::string::npos ? way : block.find('$', way);
      const bool is_way =
          way <= 1 && label != std::string::npos && wide.contains(block.substr(label, block.find(';', label) - label));
      const size_t from = block.find(", ");
      const bool is_copy = block.starts_with("\tmov.u64") && from != std::string::npos &&
                           quotients.contains(block.substr(from + 2, block.find(';') - from - 2)) &&
                           block.find('\n') + 1 == block.size();
      if (!is_way && !is_copy) blocks.push_back(entry + ":\n" + block);
    }
  }
  return blocks;
}

namespace {

// ---- ptxas

struct Used {
  int registers = 0, stack = 0, spilled = 0, shared = 0;
};
struct Assembling {
  std::vector<const Made*> parts;
  std::string sm;
  // What came of it.
  bool is_ok = false;
  std::string errors;
  std::vector<std::map<std::string, Used>> used;  // by part and entry
};

// The text with other names for what it defines, and without its header.
std::string Renamed(const std::string& ptx, const std::string& suffix) {
  std::set<std::string> names;
  for (const std::string_view line : LinesOf(ptx)) {
    const size_t entry = line.find(".entry ");
    if (entry != std::string_view::npos) names.emplace(line.substr(entry + 7, line.find('(') - entry - 7));
    if (line.starts_with('\t') || line.starts_with(' ')) continue;
    const size_t bracket = line.find('[');
    if (line.find(".align ") == std::string_view::npos || bracket == std::string_view::npos) continue;
    const size_t begin = line.rfind(' ', bracket) + 1;
    names.emplace(line.substr(begin, bracket - begin));
  }
  std::string text;
  const size_t header = ptx.find('\n', ptx.find(".address_size"));
  for (size_t at = header; at < ptx.size();) {
    if (!IsInName(ptx[at])) {
      text += ptx[at++];
      continue;
    }
    size_t end = at;
    while (end < ptx.size() && IsInName(ptx[end])) ++end;
    const std::string word = ptx.substr(at, end - at);
    text += word;
    if (names.contains(word)) text += suffix;
    at = end;
  }
  return text;
}

std::string NumberOf(size_t part) { return "$of" + std::to_string(part); }

void AssembleParts(const std::filesystem::path& folder, size_t number, Assembling& work) {
  const std::string base = (folder / std::to_string(number)).string();
  {
    std::ofstream file(base + ".ptx");
    const std::string& first = work.parts[0]->image.ptx;
    file << first.substr(0, first.find('\n', first.find(".address_size")));
    for (size_t i = 0; i < work.parts.size(); ++i) file << Renamed(work.parts[i]->image.ptx, NumberOf(i));
  }
  const std::string command =
      PtxasPath() + " -v -arch=" + work.sm + " " + base + ".ptx -o " + base + ".cubin >" + base + ".log 2>&1";
  work.is_ok = std::system(command.c_str()) == 0;
  work.used.resize(work.parts.size());
  std::ifstream file(base + ".log");
  Used* used = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos) {
      work.errors += line + "\n";
    }
    if (const size_t at = line.find("Function properties for "); at != std::string::npos) {
      const std::string name = line.substr(at + 24);
      const size_t number_at = name.rfind("$of");
      used = &work.used.at(static_cast<size_t>(std::atoi(name.c_str() + number_at + 3)))[name.substr(0, number_at)];
    } else if (used != nullptr && line.find(" bytes stack frame") != std::string::npos) {
      used->stack = std::atoi(line.c_str());
      used->spilled = std::atoi(line.c_str() + line.find(',') + 1);
    } else if (const size_t at_used = line.find("Used "); used != nullptr && at_used != std::string::npos) {
      used->registers = std::atoi(line.c_str() + at_used + 5);
      const size_t smem = line.find(" bytes smem");
      if (smem != std::string::npos) used->shared = std::atoi(line.c_str() + line.rfind(' ', smem - 1) + 1);
    }
  }
  std::filesystem::remove(base + ".ptx");
  std::filesystem::remove(base + ".cubin");
  std::filesystem::remove(base + ".log");
}

// ---- what a kernel may take

// Of a multiprocessor: CUDA C++ Programming Guide, technical specifications per compute capability.
struct Multiprocessor {
  std::string_view sm;
  int64_t warps, blocks;
};
constexpr Multiprocessor kMultiprocessors[] = {
    {"sm_80", 64, 32}, {"sm_90", 64, 32}, {"sm_90a", 64, 32}, {"sm_100", 64, 32}, {"sm_120", 48, 24}};

// Registers are given to warps by 256, and a block has 1024 bytes of shared memory that it does not see.
int64_t WarpsAtOnce(const Multiprocessor& on, int64_t warps, const Used& used) {
  constexpr int64_t kUnit = 256, kOwnShared = 1024, kParts = 4;
  const ptx::ArchitectureLimits& limits = *ptx::LimitsOf(std::atoi(on.sm.data() + 3));
  const int64_t registers = (used.registers * kCudaWarpThreads + kUnit - 1) / kUnit * kUnit;
  const int64_t by_registers = limits.registers_per_block / kParts / std::max(registers, kUnit) * kParts / warps;
  const int64_t by_memory = limits.shared_bytes_per_sm / (used.shared + kOwnShared);
  return warps * std::min({on.warps / warps, on.blocks, by_registers, by_memory});
}

// Kernels that spill more, or of which fewer run at once, than the others may.
struct Exception {
  std::string_view what;  // a part of what the kernel's buffers are
  int spilled;            // bytes of a thread
  int64_t warps;          // of a multiprocessor, at least
};
constexpr int kOwnChoice = 8;
// Of memory that tiles of a product or a permutation have.
constexpr int64_t kTiles = 16 << 10;
constexpr int64_t kLeastWarps = 12, kLeastWarpsOfTiles = 2;
constexpr Exception kExceptions[] = {
    // Matrices both of which have rows of symbolic length along their own sides: what is loaded element by element for the
    // next tiles, beside the sums and fragments.
    {"B float16[33,n,]", 68, kLeastWarpsOfTiles},
    {"A float32[k,m,] B float32[k,n,]", 76, kLeastWarpsOfTiles},
    {"A float16[m,k,] B float16[n,k,]", 20, kLeastWarpsOfTiles},
    // Stages of columns of symbolic lengths, for which ptxas takes 64 registers of sm_120, so that two blocks run.
    {"X float32[n0,n1,n2,]", 16, kLeastWarps},
    {"X float64[n0,n1,n2,]", 20, kLeastWarps},
    // Seven sums of int64 for each thread, of several columns.
    {"A int64[300,7,]", kOwnChoice, 8},
    // A gate for each of 77 states, computed by as many threads, with all of its weights on their way.
    {"gates float32", kOwnChoice, 6},
    {"query ", kOwnChoice, kLeastWarpsOfTiles},
    // Convolutions in blocks of channels, which no pass makes for a GPU: what several planes share, and bytes.
    {"conv3d_ndchwc", kOwnChoice, 8},
    {"conv2d_nchwc int32", 32, kLeastWarps},
};

std::string OverBudget(const std::string& what, const Entry& entry, const Used& used, const std::string& sm) {
  // ptxas keeps a few bytes of some kernels in memory while it leaves registers unused.
  Exception budget{"", kOwnChoice, kLeastWarps};
  const auto has = [&](std::string_view opcode) {
    return std::ranges::any_of(entry.lines, [&](std::string_view line) { return OpcodeOf(line).starts_with(opcode); });
  };
  if (used.shared > kTiles || has("mma.sync") || has("wgmma")) budget.warps = kLeastWarpsOfTiles;
  for (const Exception& exception : kExceptions) {
    if (what.find(exception.what) == std::string::npos) continue;
    budget.spilled = std::max(budget.spilled, exception.spilled);
    budget.warps = std::min(budget.warps, exception.warps);
  }
  const auto on = std::ranges::find(kMultiprocessors, sm, &Multiprocessor::sm);
  const int64_t warps = (entry.max_threads + kCudaWarpThreads - 1) / kCudaWarpThreads;
  const int64_t at_once = WarpsAtOnce(*on, warps, used);
  const std::string figures = " of " + std::to_string(warps) + " in a block (" + std::to_string(used.registers) +
                              " registers, " + std::to_string(used.shared) + " bytes of shared memory)";
  if (used.spilled > budget.spilled) return sm + " spills " + std::to_string(used.spilled) + " bytes";
  if (at_once < warps) return sm + " cannot run a block: " + std::to_string(at_once) + figures;
  // A block may be as large as a multiprocessor has room for.
  return at_once < std::min(budget.warps, on->blocks * warps)
             ? sm + " runs " + std::to_string(at_once) + " warps" + figures
             : "";
}

}  // namespace

// So many are there where no test was left out.
constexpr int64_t kAllBlocks = 10000;

int FinishAudit() {
  const std::map<std::string, Made>& made = Collection::Get().made();
  int num_faults = 0;
  // Of a kernel of fixed sizes every launch is the same: a block that none runs is there for other data.
  int64_t num_blocks = 0, num_left = 0;
  for (const auto& [ptx, one] : made) {
    if (!one.is_static) continue;
    for (const auto& [entry, count] : one.blocks) num_blocks += count;
    num_left += one.blocks.empty() ? 0 : std::ssize(BlocksNotRun(ptx));
  }
  std::printf("%lld of %lld basic blocks of kernels of fixed sizes ran\n",
              static_cast<long long>(num_blocks - num_left), static_cast<long long>(num_blocks));
  constexpr int64_t kOneIn = 180;
  if (num_blocks > kAllBlocks && num_left * kOneIn > num_blocks) {
    ++num_faults;
    std::printf("ERROR: more than one in %lld did not\n", static_cast<long long>(kOneIn));
  }
  if (PtxasPath().empty()) {
    std::puts("SKIP: ptxas takes all PTX of these tests: no ptxas");
    return 0;
  }
  constexpr size_t kAtOnce = 24;  // kernels
  std::vector<Assembling> work;
  std::map<std::string, std::vector<const Made*>> by_target;
  for (const auto& [ptx, one] : made) by_target[one.target].push_back(&one);
  for (const auto& [target, parts] : by_target) {
    for (const char* sm : {"sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
      // What tests make for sm_80 is all of it; of what is for others, that alone.
      if (target != "sm_80" ? target != sm : std::string_view(sm).ends_with('a')) continue;
      for (size_t i = 0; i < parts.size(); i += kAtOnce) {
        const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i);
        work.push_back({{first, first + static_cast<std::ptrdiff_t>(std::min(kAtOnce, parts.size() - i))}, sm});
      }
    }
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ingot_ptxas_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::atomic<size_t> next{0};
  const auto assemble = [&] {
    for (size_t i = next++; i < work.size(); i = next++) AssembleParts(folder, i, work[i]);
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 2; ++i) threads.emplace_back(assemble);
  }
  std::filesystem::remove_all(folder);
  size_t num_entries = 0;
  const auto fault = [&](const Made& made_one, const std::string& entry, const std::string& what) {
    ++num_faults;
    std::printf("ERROR: %s of \"%s\", %s: %s\n", entry.c_str(), made_one.test.c_str(), made_one.what.c_str(),
                what.c_str());
  };
  int most_registers = 0, most_spilled = 0;
  for (const Assembling& one : work) {
    if (!one.is_ok) {
      ++num_faults;
      std::printf("ERROR: ptxas for %s:\n%s", one.sm.c_str(), one.errors.c_str());
    }
    for (size_t i = 0; i < one.parts.size(); ++i) {
      const Made& part = *one.parts[i];
      const std::vector<Entry> entries = EntriesOf(part.image.ptx);
      if (one.is_ok && one.used[i].size() != entries.size()) fault(part, "an entry", "ptxas says nothing of it");
      for (const Entry& entry : entries) {
        const auto found = one.used[i].find(entry.name);
        if (found == one.used[i].end()) continue;
        ++num_entries;
        Used used = found->second;
        for (const PtxKernel& kernel : part.image.kernels) {
          for (const PtxLaunch& launch : kernel.launches) {
            if (launch.entry == entry.name) used.shared += static_cast<int>(launch.shared_bytes);
          }
        }
        most_registers = std::max(most_registers, used.registers);
        most_spilled = std::max(most_spilled, used.spilled);
        const std::string over = OverBudget(part.what, entry, used, one.sm);
        if (!over.empty()) fault(part, entry.name, over);
      }
    }
  }
  std::printf("%zu PTX texts, %zu entries assembled by ptxas, at most %d registers and %d bytes spilled\n", made.size(),
              num_entries, most_registers, most_spilled);
  return num_faults;
}

}  // namespace ingot::codegen::testing

namespace ingot::codegen {

Result<PtxImage> RealCompilePtx(std::span<const KernelSource> sources, const Target& target,
                                const CodegenOptions& options) asm("__real_" INGOT_WRAP_COMPILE_PTX);
Result<PtxImage> WrapCompilePtx(std::span<const KernelSource> sources, const Target& target,
                                const CodegenOptions& options) asm("__wrap_" INGOT_WRAP_COMPILE_PTX);
Result<PtxImage> WrapCompilePtx(std::span<const KernelSource> sources, const Target& target,
                                const CodegenOptions& options) {
  CodegenOptions with_llvm = options;
  with_llvm.emit_llvm = true;
  Result<PtxImage> image = RealCompilePtx(sources, target, with_llvm);
  if (!image.ok()) return image;
  for (const std::string& fault : testing::FaultsOf(sources, target, *image)) FAIL_CHECK(fault);
  if (!options.emit_llvm) image->llvm.clear();
  testing::Collection::Get().Add(sources, target, *image);
  return image;
}

}  // namespace ingot::codegen
