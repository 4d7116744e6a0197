#include "tests/cuda_standin/instruction_check.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {

// Runs `opcode` over all triples and returns the results. A source of type kPred is given as 0 or 1.
std::vector<uint64_t> Execute(const std::string& opcode, Type to, const std::vector<Type>& from,
                              const std::string& tail, const std::vector<std::vector<uint64_t>>& inputs) {
  const auto reg = [](Type type) {
    return type == Type::kPred    ? Type::kB32
           : TypeBytes(type) == 1 ? Type::kB16
           : TypeBytes(type) == 2 ? Type::kB16
           : TypeBytes(type) == 4 ? Type::kB32
                                  : Type::kB64;
  };
  Instruction ignored;
  const Row* row = FindRow(opcode, ignored);
  REQUIRE_MESSAGE(row != nullptr, opcode);
  CoveredRows().insert(row);
  const int sm = std::max(80, row->from_sm);
  std::string text = StrCat({".version 8.0\n.target sm_", sm, "\n"});
  text +=
      ".address_size 64\n.visible .entry k(.param .u64 d, .param .u64 x0, .param .u64 x1, "
      ".param .u64 x2)\n{\n"
      ".reg .b64 %a<8>;\n.reg .b32 %i<4>;\n.reg .pred %p<4>;\n.reg .b32 %w<4>;\n"
      "mov.u32 %i0, %ctaid.x;\nmov.u32 %i1, %tid.x;\nmad.lo.s32 %i2, %i0, 128, %i1;\nmul.wide.s32 %a0, %i2, 8;\n";
  std::string instruction = opcode;
  const auto sized = [&](Type type, const std::string& name) {
    text += StrCat({".reg .", TypeName(reg(type)), " ", name, ";\n"});
  };
  sized(to, "%out");
  instruction += to == Type::kPred ? " %p3" : " %out";
  for (size_t k = 0; k < from.size(); ++k) {
    const std::string name = StrCat({"%in", k}), address = StrCat({"%a", k + 1});
    sized(from[k], name);
    text += StrCat({"ld.param.u64 ", address, ", [x", k, "];\nadd.s64 ", address, ", ", address, ", %a0;\n"});
    text += StrCat({"ld.global.b", 8 * std::max(1, TypeBytes(reg(from[k]))), " ", name, ", [", address, "];\n"});
    if (from[k] == Type::kPred) text += StrCat({"setp.ne.u32 %p", k, ", ", name, ", 0;\n"});
    instruction += StrCat({", ", from[k] == Type::kPred ? StrCat({"%p", k}) : name});
  }
  text += instruction + tail + ";\n";
  if (to == Type::kPred) text += "selp.u32 %out, 1, 0, %p3;\n";
  const int stored = 8 * TypeBytes(reg(to));
  text += StrCat({"ld.param.u64 %a5, [d];\nadd.s64 %a5, %a5, %a0;\nst.global.b", stored, " [%a5], %out;\nret;\n}\n"});

  Machine machine({.sm = sm, .orders = {WarpOrder::kLowestFirst}});
  const Result<ModuleId> module = machine.LoadModule(text);
  REQUIRE_MESSAGE(module.ok(), module.status().message() << "\n" << text);
  const size_t count = (inputs[0].size() + 127) / 128 * 128;
  std::vector<uint64_t> addresses;
  for (const std::vector<uint64_t>& values : inputs) {
    std::vector<uint64_t> padded = values;
    padded.resize(count, values[0]);
    addresses.push_back(machine.Allocate(static_cast<int64_t>(count) * 8).value());
    REQUIRE(machine.Write(addresses.back(), padded.data(), static_cast<int64_t>(count) * 8).ok());
  }
  std::vector<uint64_t> results(count, 0);
  const uint64_t out = machine.Allocate(static_cast<int64_t>(count) * 8).value();
  REQUIRE(machine.Write(out, results.data(), static_cast<int64_t>(count) * 8).ok());
  const Result<LaunchCounts> counts =
      machine.Launch(*module, "k", {{static_cast<int64_t>(count / 128), 1, 1}, {128, 1, 1}},
                     Arguments().Add(out).Add(addresses[0]).Add(addresses[1]).Add(addresses[2]));
  REQUIRE_MESSAGE(counts.ok(), counts.status().message());
  REQUIRE(machine.Read(results.data(), out, static_cast<int64_t>(count) * 8).ok());
  results.resize(inputs[0].size());
  return results;
}

void Check(const std::string& opcode, Type to, const std::vector<Type>& from, const Expected& expected,
           const std::string& tail) {
  std::vector<std::vector<uint64_t>> inputs(3);
  const auto corners = [&](size_t k) { return k < from.size() ? Corners(from[k]) : std::vector<uint64_t>{0}; };
  for (const uint64_t a : corners(0)) {
    for (const uint64_t b : corners(1)) {
      for (const uint64_t c : corners(2)) inputs[0].push_back(a), inputs[1].push_back(b), inputs[2].push_back(c);
    }
  }
  std::mt19937_64 random(7);
  for (int n = 0; n < 256; ++n) {
    for (size_t k = 0; k < 3; ++k) inputs[k].push_back(k < from.size() ? random() & MaskOf(from[k]) : 0);
  }
  const std::vector<uint64_t> results = Execute(opcode, to, from, tail, inputs);
  for (size_t n = 0; n < results.size(); ++n) {
    const uint64_t want = expected(inputs[0][n], inputs[1][n], inputs[2][n]);
    if ((results[n] ^ want) == 0) continue;
    FAIL(opcode << ": inputs 0x" << std::hex << inputs[0][n] << " 0x" << inputs[1][n] << " 0x" << inputs[2][n] << ": 0x"
                << results[n] << ", expected 0x" << want);
  }
}

}  // namespace ingot::ptx
