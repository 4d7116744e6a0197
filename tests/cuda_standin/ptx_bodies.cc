#include "tests/cuda_standin/ptx_bodies.h"

#include "tests/cuda_standin/ptx_parser.h"

namespace ingot::ptx {

std::set<const Row*>& CoveredRows() {
  static std::set<const Row*> rows;
  return rows;
}

Result<std::vector<uint32_t>> RunBody(const std::string& body, std::vector<uint32_t> input,
                                      const BodyOptions& options) {
  const std::string text =
      StrCat({".version 8.0\n.target sm_", options.sm, "\n.address_size 64\n", options.functions,
              ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0};\n.extern .shared "
              ".align 16 .b8 dynamic[];\n"
              ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"
              ".reg .b32 %r<40>;\n.reg .b16 %h<10>;\n.reg .b64 %d<20>;\n.reg .f32 %f<20>;\n.reg .pred %p<10>;\n.reg "
              ".b32 %t, %g, %n, %c;\n"
              ".reg .b64 %in, %out, %x, %y, %at;\n.shared .align 16 .b8 smem[4096];\n.shared .align 16 .b8 "
              "other[64];\n.local .align 16 .b8 depot[64];\n"
              "mov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %c, %ctaid.x;\nmad.lo.s32 %g, %c, %n, "
              "%t;\nmul.wide.s32 %at, %g, ",
              4 * kWordsPerThread,
              ";\nld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nadd.s64 %in, %x, %at;\nadd.s64 %out, %y, %at;\n", body,
              "\nret;\n}\n"});
  MachineOptions machine_options = options.machine;
  machine_options.sm = options.sm;
  Machine machine(machine_options);
  INGOT_ASSIGN_OR_RETURN(const ModuleId module, machine.LoadModule(text));
  INGOT_ASSIGN_OR_RETURN(const Module parsed, ParsePtx(text));
  for (const Function& function : parsed.functions) {
    for (const Statement& statement : function.statements) {
      Instruction ignored;
      CoveredRows().insert(FindRow(statement.opcode, ignored));
    }
  }
  const size_t words = static_cast<size_t>(options.threads * options.blocks * kWordsPerThread);
  input.resize(words, 0);
  std::vector<uint32_t> output(words, 0);
  const auto bytes = static_cast<int64_t>(words * 4);
  INGOT_ASSIGN_OR_RETURN(const uint64_t x, machine.Allocate(bytes));
  INGOT_ASSIGN_OR_RETURN(const uint64_t y, machine.Allocate(bytes));
  INGOT_RETURN_IF_ERROR(machine.Write(x, input.data(), bytes));
  INGOT_RETURN_IF_ERROR(machine.Write(y, output.data(), bytes));
  const LaunchConfig config{{options.blocks, 1, 1}, {options.threads, 1, 1}, options.dynamic_shared};
  INGOT_RETURN_IF_ERROR(machine.Launch(module, "k", config, Arguments().Add(x).Add(y)).status());
  INGOT_RETURN_IF_ERROR(machine.Read(output.data(), y, bytes));
  return output;
}

}  // namespace ingot::ptx
