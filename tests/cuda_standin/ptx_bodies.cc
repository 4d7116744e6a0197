#include "tests/cuda_standin/ptx_bodies.h"

#include <bit>
#include <cmath>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/ptx_parser.h"

namespace ingot::ptx {

std::set<const Row*>& CoveredRows() {
  static std::set<const Row*> rows;
  return rows;
}

uint64_t MaskOf(Type type) { return type == Type::kPred ? 1 : ~uint64_t{0} >> (64 - 8 * TypeBytes(type)); }

std::vector<uint64_t> Corners(Type type) {
  std::vector<uint64_t> values;
  const auto floats = [&](FloatFormat format) {
    const uint32_t one = ((1u << (format.exponent_bits - 1)) - 1) << format.mantissa_bits;
    const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    const uint32_t sign = 1u << (format.exponent_bits + format.mantissa_bits);
    for (const uint32_t bits :
         {0u, 1u, 1u << format.mantissa_bits, one, one + 1, one + one / 4, infinity - 1, infinity, infinity + 1}) {
      values.push_back(bits), values.push_back(bits | sign);
    }
  };
  switch (type) {
    case Type::kF16:
      floats(kHalfFormat);
      break;
    case Type::kBf16:
      floats(kBf16Format);
      break;
    case Type::kF32:
      floats(kFloatFormat);
      break;
    case Type::kF16x2:
    case Type::kBf16x2:
      for (const uint64_t low : Corners(type == Type::kF16x2 ? Type::kF16 : Type::kBf16))
        values.push_back(low << 16 | (low ^ 0x1234));
      break;
    case Type::kF64:
      for (const double x : {0.0, 1.0, 1.5, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 3e9, 1e19,
                             HUGE_VAL, std::nan("")}) {
        values.push_back(std::bit_cast<uint64_t>(x)), values.push_back(std::bit_cast<uint64_t>(-x));
      }
      values.push_back(0x7ff0000123456789), values.push_back(0xfffcba9876543210);  // NaN: a signalling one, a quiet one
      break;
    default: {
      const int bits = std::max(1, 8 * TypeBytes(type));
      for (const uint64_t x :
           {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{31}, uint64_t{33}, ~uint64_t{0}, ~uint64_t{1}})
        values.push_back(x);
      for (const int shift : {bits - 1, std::max(0, bits - 2), bits / 2})
        values.push_back(uint64_t{1} << shift), values.push_back((uint64_t{1} << shift) - 1);
      break;
    }
  }
  for (uint64_t& value : values) value &= MaskOf(type);
  return values;
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
