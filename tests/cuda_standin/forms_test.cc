// Every form of arithmetic that the instruction table has, modifiers and all: ptxas takes each, and each runs over corner
// values, so that the stand-in is held to what a GPU left (golden_launches.h).
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/machine.h"
#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

std::vector<std::string> FormsOf(std::string_view pattern) {
  const size_t open = pattern.find_first_of("{(");
  if (open == std::string_view::npos) return {std::string(pattern)};
  const size_t close = pattern.find(pattern[open] == '{' ? '}' : ')', open);
  std::string_view choices = pattern.substr(open + 1, close - open - 1);
  std::vector<std::string> middles;
  if (pattern[open] == '{') middles.emplace_back();
  while (!choices.empty()) {
    const size_t bar = std::min(choices.find('|'), choices.size());
    middles.emplace_back(choices.substr(0, bar));
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  std::vector<std::string> forms;
  for (const std::string& rest : FormsOf(pattern.substr(close + 1))) {
    for (const std::string& middle : middles) forms.push_back(StrCat({pattern.substr(0, open), middle, rest}));
  }
  return forms;
}

// The types of a row's operands, the result first.
std::vector<Type> TypesOf(std::string_view signature) {
  std::vector<Type> types;
  while (!signature.empty()) {
    std::string_view entry = signature.substr(0, signature.find(' '));
    signature.remove_prefix(std::min(entry.size() + 1, signature.size()));
    entry = entry.substr(entry.find_first_not_of("=V*"));
    types.push_back(ParseType(entry.substr(0, entry.find('|'))));
  }
  return types;
}
// Rows of one signature and architecture, and their forms.
struct Family {
  std::vector<Type> types;
  int sm;
  std::vector<std::string> forms;
};
std::vector<Family> Families() {
  Rows rows;
  AddIntegerRows(rows), AddFloatRows(rows), AddConvertRows(rows);
  std::map<std::pair<std::string, int>, Family> families;
  for (const Row& row : rows) {
    Family& family = families[{row.signature, std::max(80, row.from_sm)}];
    family.types = TypesOf(row.signature), family.sm = std::max(80, row.from_sm);
    for (std::string& form : FormsOf(row.pattern)) family.forms.push_back(std::move(form));
  }
  std::vector<Family> result;
  for (auto& [key, family] : families) result.push_back(std::move(family));
  return result;
}

constexpr int kInputs = 4;
int BitsOf(Type type) { return 8 * std::max(2, type == Type::kPred ? 4 : TypeBytes(type)); }
std::string RegisterOf(Type type, size_t number) {
  return StrCat({"%", type == Type::kPred ? "p" : BitsOf(type) == 16 ? "h" : BitsOf(type) == 32 ? "r" : "d", number});
}
std::string StatementOf(const Family& family, const std::string& form) {
  std::string text = form;
  for (size_t k = 0; k < family.types.size(); ++k) {
    const bool is_table = form.starts_with("lop3") && k == kInputs;
    text += StrCat({k == 0 ? " " : ", ", is_table ? "0x6a" : RegisterOf(family.types[k], k)});
  }
  return text + ";\n";
}
// Of any row that has no label: registers for its operands, addresses of the space that the form names.
std::string StatementOf(const Row& row, const std::string& form) {
  const auto has = [&](const char* text) { return form.find(text) != std::string::npos; };
  if (has("cp.async.c") && has(".shared")) return form + " [%r8], [%d8], 16;\n";
  if (has("wait_group")) return form + " 1;\n";
  std::string text = form, between = " ";
  std::string_view signature = row.signature;
  for (size_t k = 0; !signature.empty(); ++k) {
    std::string_view entry = signature.substr(0, signature.find(' '));
    signature.remove_prefix(std::min(entry.size() + 1, signature.size()));
    if (entry[0] == '?') continue;
    text += between, between = ", ";
    entry = entry.substr(std::min(entry.find_first_not_of("=*"), entry.size()));
    int count = 1;
    if (entry.starts_with("V*")) {
      count = has(".v2") ? 2 : has(".v4") ? 4 : 1, entry.remove_prefix(2);
    } else if (const size_t x = entry.find('x'); x < 4 && std::isdigit(static_cast<unsigned char>(entry[0])) != 0) {
      count = std::atoi(std::string(entry).c_str()), entry.remove_prefix(x + 1);
    }
    if (entry == "I") {
      text += "1";
    } else if (entry == "A") {
      text += has(".param") ? (form.starts_with("st") ? "[passed]" : "[given]") : has(".shared") ? "[%r8]" : "[%d8]";
    } else if (form.starts_with("lop3") && k == kInputs) {
      text += "0x6a";
    } else if (const size_t bar = entry.find('|'); bar != std::string_view::npos) {
      text += RegisterOf(ParseType(entry.substr(0, bar)), k);
      if (!entry.ends_with('-')) text += "|" + RegisterOf(ParseType(entry.substr(bar + 1)), 7);
    } else {
      std::string list;
      for (int part = 0; part < count; ++part)
        list += StrCat({part > 0 ? ", " : "", RegisterOf(ParseType(entry), count > 1 ? static_cast<size_t>(part) : k)});
      text += count > 1 || row.signature.find("1x") != std::string::npos ? StrCat({"{", list, "}"}) : list;
    }
  }
  return text + ";\n";
}
constexpr char kRegisters[] = ".reg .b16 %h<9>;\n.reg .b32 %r<128>;\n.reg .b64 %d<9>;\n.reg .pred %p<9>;\n";

TEST_CASE("ptx forms: ptxas takes every one") {
  const auto path = [](const char* name) {
    return StrCat({std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp", "/ingot_forms_", getpid(), name});
  };
  std::string ptxas;
  for (const char* place : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (ptxas.empty() && access(place, X_OK) == 0) ptxas = place;
  }
  if (ptxas.empty()) {
    MESSAGE("SKIP: no ptxas, or no kernels");
    return;
  }
  for (const std::string name : {"80", "90", "90a"}) {
    const int sm = std::atoi(name.c_str());
    std::string text = StrCat({".version 8.6\n.target sm_", name, "\n.address_size 64\n"});
    int forms = 0;
    for (const Row& row : InstructionTable()) {
      if (row.is_exact != (name == "90a") || row.from_sm > sm ||
          (row.flow != Flow::kNext && row.flow != Flow::kBarrier))
        continue;
      const std::vector<std::string> all = FormsOf(row.pattern);
      // Loads and stores of other types are too many to try all.
      const bool some = row.signature.find("V*") != std::string::npos && !row.signature.ends_with("b32 A");
      for (size_t k = 0; k < all.size(); k += some ? 7 : 1) {
        if (sm < 90 && all[k].find(".cluster") != std::string::npos) continue;
        if (forms % 500 == 0) {  // a kernel of all takes long
          text += StrCat({forms > 0 ? "ret;\n}\n" : "", ".visible .entry k", forms,
                          "(.param .align 16 .b8 given[16])\n{\n", ".param .align 16 .b8 passed[16];\n", kRegisters});
        }
        text += StatementOf(row, all[k]), ++forms;
      }
    }
    std::ofstream(path(".ptx")) << text << "ret;\n}\n";
    const int status = std::system(
        StrCat({ptxas, " -arch=sm_", name, " -O0 ", path(".ptx"), " -o /dev/null 2> ", path(".log")}).c_str());
    std::ifstream log(path(".log"));
    const std::string said{std::istreambuf_iterator<char>(log), {}};
    CHECK_MESSAGE(status == 0, said);
    MESSAGE(forms << " forms for sm_" << name);
    std::remove(path(".ptx").c_str()), std::remove(path(".log").c_str());
  }
}

// Approximations have tests of their own, a division by zero has no result, addresses differ.
bool IsComparable(const std::string& form) {
  const bool divides = (form.starts_with("div.") || form.starts_with("rem.")) && form.find(".f") == std::string::npos;
  return form.find(".approx") == std::string::npos && form.find(".full") == std::string::npos && !divides &&
         !form.starts_with("cvta") && !form.starts_with("isspacep");
}

TEST_CASE("ptx instructions: every form over corner values") {
  constexpr int kThreads = 128;
  for (Family family : Families()) {
    std::erase_if(family.forms, [](const std::string& form) { return !IsComparable(form); });
    if (family.forms.empty()) continue;
    std::string text =
        StrCat({".version 8.6\n.target sm_", family.sm,
                "\n.address_size 64\n.visible .entry forms(.param .u64 y, .param .u64 x)\n{\n", kRegisters,
                ".reg .b32 %t, %flag;\n.reg .b64 %at, %x, %y;\nmov.u32 %t, %tid.x;\n"
                "ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nmul.wide.s32 %at, %t, 8;\n"
                "add.s64 %y, %y, %at;\nadd.s64 %x, %x, %at;\n"});
    std::vector<uint64_t> input(kInputs * kThreads);
    std::mt19937_64 random(23);
    for (size_t k = 1; k < family.types.size(); ++k) {
      const Type type = family.types[k];
      const std::vector<uint64_t> corners = Corners(type);
      for (size_t t = 0; t < kThreads; ++t)
        input[(k - 1) * kThreads + t] =
            random() % 4 == 0 ? random() & MaskOf(type) : corners[random() % corners.size()];
      const std::string reg = RegisterOf(type == Type::kPred ? Type::kB32 : type, k);
      text += StrCat({"ld.global.b", BitsOf(type), " ", reg, ", [%x+", (k - 1) * kThreads * 8, "];\n"});
      if (type == Type::kPred) text += StrCat({"setp.ne.u32 %p", k, ", ", reg, ", 0;\n"});
    }
    const Type to = family.types[0];
    for (size_t n = 0; n < family.forms.size(); ++n) {
      text += StatementOf(family, family.forms[n]);
      if (to == Type::kPred) text += "selp.u32 %flag, 1, 0, %p0;\n";
      text += StrCat({"st.global.b", BitsOf(to), " [%y+", n * kThreads * 8, "], ",
                      to == Type::kPred ? "%flag" : RegisterOf(to, 0), ";\n"});
    }
    text += "ret;\n}\n";
    Machine machine({.sm = family.sm, .orders = {WarpOrder::kLowestFirst}});
    const Result<ModuleId> module = machine.LoadModule(text);
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    const auto allocate = [&](const std::vector<uint64_t>& words) {
      const auto bytes = static_cast<int64_t>(words.size() * 8);
      const uint64_t address = machine.Allocate(bytes).value();
      REQUIRE(machine.Write(address, words.data(), bytes).ok());
      return address;
    };
    const uint64_t y = allocate(std::vector<uint64_t>(family.forms.size() * kThreads)), x = allocate(input);
    const Result<LaunchCounts> counts =
        machine.Launch(*module, "forms", {{1, 1, 1}, {kThreads, 1, 1}}, Arguments().Add(y).Add(x));
    CHECK_MESSAGE(counts.ok(), counts.status().message() << "\n" << text);
  }
}

// Loads find, and stores leave, the same bytes in every space, whatever else they say.
TEST_CASE("ptx memory: every form of loads and stores") {
  constexpr uint64_t kBytes = 0x8899aabbccddeeff;
  Rows rows;
  AddMemoryRows(rows);
  // By type, and whether they are of parameters of a call: ptxas crashes at those of a call that is not made.
  std::map<std::pair<Type, bool>, std::vector<std::string>> forms;
  for (const Row& row : rows) {
    if (!row.signature.ends_with(" A") && !row.signature.starts_with("A V*")) continue;
    const Type type = TypesOf(row.signature.starts_with("A V*") ? row.signature.substr(3) : row.signature).at(0);
    const std::vector<std::string> all = FormsOf(row.pattern);
    // All of one type; of the others some of each row.
    for (size_t k = 0; k < all.size(); k += type == Type::kB32 ? 1 : std::max<size_t>(1, all.size() / 7)) {
      const bool stores = all[k].starts_with("st");
      forms[{type, all[k].find(stores ? ".param" : ".param::func") != std::string::npos}].push_back(all[k]);
    }
  }
  REQUIRE(forms.size() == 2 * 14);
  for (const auto& [key, all] : forms) {
    const auto [type, is_of_call] = key;
    const std::string kernel = is_of_call ? "forms_of_calls_refused" : "forms";
    const int bytes = TypeBytes(type), bits = BitsOf(type);
    std::string text =
        StrCat({".version 8.6\n.target sm_90\n.address_size 64\n.const .align 16 .b64 table[2] = {", kBytes, ", ",
                kBytes, "};\n.visible .entry ", kernel,
                "(.param .u64 y, .param .u64 x, .param .align 16 .b8 "
                "given[16])\n{\n",
                kRegisters, ".reg .b64 %x, %y, %c;\n.shared .align 16 .b8 smem[16];\n.local .align 16 .b8 depot[16];\n",
                is_of_call ? ".param .align 16 .b8 passed[16];\n" : "",
                "ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\n"
                "mov.b64 %c, ",
                kBytes, ";\n"});
    const auto address_of = [](const std::string& form) {
      for (const auto& [space, address] :
           {std::pair(".shared", "[smem]"), std::pair(".local", "[depot]"), std::pair(".const", "[table]"),
            std::pair(".param::func", "[passed]"), std::pair(".param", "[given]")}) {
        if (form.find(space) != std::string::npos) return address;
      }
      return "[%x]";
    };
    std::vector<uint64_t> expected;
    for (const std::string& form : all) {
      Instruction ignored;
      CoveredRows().insert(FindRow(form, ignored));
      const bool stores = form.starts_with("st");
      const int count = form.find(".v2") != std::string::npos ? 2 : form.find(".v4") != std::string::npos ? 4 : 1;
      std::string registers;
      for (int k = 1; k <= count; ++k)
        registers += StrCat({k > 1 ? ", " : "", RegisterOf(type, static_cast<size_t>(k))});
      if (count > 1) registers = "{" + registers + "}";
      std::string address = address_of(form);
      if (stores && address == "[given]") address = "[passed]";
      // The place has the bytes, or others that the store replaces.
      const std::string space = address == "[smem]"     ? ".shared"
                                : address == "[depot]"  ? ".local"
                                : address == "[passed]" ? ".param"
                                                        : ".global";
      const bool is_given = address == "[table]" || address == "[given]";
      if (!is_given) {
        text += StrCat({"mov.b64 %d7, ", stores ? "0" : "%c", ";\n"});
        text += StrCat({"st", space, ".b64 ", address, ", %d7;\n"});
        text += StrCat({"st", space, ".b64 ", address.substr(0, address.size() - 1), "+8], %d7;\n"});
      }
      uint64_t value = kBytes & (~uint64_t{0} >> (64 - 8 * bytes));
      if (stores) {
        for (int k = 1; k <= count; ++k) {
          const std::string r = RegisterOf(type, static_cast<size_t>(k));
          text += bits == 64 ? StrCat({"mov.b64 ", r, ", %c;\n"}) : StrCat({"cvt.u", bits, ".u64 ", r, ", %c;\n"});
        }
        text += StrCat({form, " ", address, ", ", registers, ";\nld", space, ".b64 %d7, ", address, ";\n"});
        text += StrCat({"st.global.b64 [%y+", expected.size() * 8, "], %d7;\n"});
        for (int k = bytes; k < std::min(8, bytes * count); k += bytes) value |= value << (8 * k) & (~uint64_t{0});
        if (bytes * count < 8) value &= ~uint64_t{0} >> (64 - 8 * bytes * count);
      } else {
        text += StrCat({form, " ", registers, ", ", address, ";\nst.global.b", bits, " [%y+", expected.size() * 8,
                        "], ", RegisterOf(type, 1), ";\n"});
        if (type == Type::kS8) value |= 0xff00;
      }
      expected.push_back(value);
    }
    text += "ret;\n}\n";
    Machine machine({.sm = 90, .orders = {WarpOrder::kLowestFirst}});
    const Result<ModuleId> module = machine.LoadModule(text);
    REQUIRE_MESSAGE(module.ok(), module.status().message());
    const auto size = static_cast<int64_t>(expected.size() * 8);
    const uint64_t y = machine.Allocate(size).value(), x = machine.Allocate(16).value();
    std::vector<uint64_t> result(expected.size());
    const uint64_t given[2] = {kBytes, kBytes};
    REQUIRE(machine.Write(y, result.data(), size).ok());
    REQUIRE(machine.Write(x, given, sizeof(given)).ok());
    const Result<LaunchCounts> counts = machine.Launch(*module, kernel, {{1, 1, 1}, {1, 1, 1}},
                                                       Arguments().Add(y).Add(x).AddBytes(given, sizeof(given)));
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    REQUIRE(machine.Read(result.data(), y, size).ok());
    for (size_t k = 0; k < expected.size(); ++k) CHECK_MESSAGE(result[k] == expected[k], all[k]);
  }
}

}  // namespace
}  // namespace ingot::ptx
