// Changes of programs. Counts and sizes stay small, so that what is accepted still runs in little time.
#include <algorithm>

#include "tests/vm/checked/program_generator.h"
#include "vm/program/builtins.h"

namespace ingot::vm::checked {
namespace {

class Mutator {
 public:
  Mutator(Program& program, uint64_t seed) : program_(program), random_(seed) {}

  void Run() {
    Function& f = program_.functions[random_.Below(program_.functions.size())];
    switch (random_.Below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return ChangeOperand(f);
      case 7:
      case 8:
        return ChangeOrder(f);
      case 9:
      case 10:
      case 11:
        return ChangeRegister(f);
      case 12:
      case 13:
        return ChangeSignature(f);
      case 14:
      case 15:
      case 16:
        return ChangePlan();
      case 17:
        return ChangeKernel();
      case 18:
        return ChangeTables();
      default:
        return InsertRelease(f);
    }
  }

  void Inflate() {
    const size_t count = size_t{1000} << random_.Below(6);
    Function& f = program_.functions[random_.Below(program_.functions.size())];
    Kernel& kernel = program_.kernels[random_.Below(program_.kernels.size())];
    switch (random_.Below(19)) {
      case 0:
        return Repeat(f.registers, count);
      case 1:
        return f.registers.resize(f.registers.size() + count, Type::Shape(std::vector<Dim>(8, LongFormula())));
      case 2:
        return f.registers.resize(f.registers.size() + count, Type::Tuple(std::vector<Type>(100, Type::String())));
      case 3: {
        const size_t at = random_.Below(f.code.size());
        return RepeatInstruction(f, at, Instruction(f.code[at]), count);
      }
      case 4:
      case 5:
        return RepeatBlocks(f, count);
      case 6:
        return Repeat(f.plan.entries, count);
      case 7:
        for (size_t i = 0; i < count; ++i) f.notes.push_back({static_cast<uint32_t>(i), std::string(100, 'n')});
        return;
      case 8:
        return RepeatNamed(program_.functions, count / 8);
      case 9:
        return RepeatNamed(program_.kernels, count / 4);
      case 10:
        return Repeat(program_.constants, count);
      case 11:
        return RepeatNamed(program_.states, count);
      case 12:
        return RepeatNamed(program_.externals, count);
      case 13:
        for (size_t i = 0; i < count; ++i) program_.metadata[StrCat({"key", i})] = "value";
        return;
      case 14:
        return Repeat(kernel.launches.emplace_back().sizes, count),
               kernel.messages.resize(count, std::string(100, 'm'));
      case 15:
        return Repeat(kernel.params, count);
      case 16:
        return kernel.variants.resize(count);
      case 17:
        return RepeatNamed(f.signature.results, count);
      default:
        for (size_t i = 0; i < count; ++i) f.signature.symbols.push_back({StrCat({"s", i}), 0, 9, std::nullopt});
        f.registers.insert(f.registers.begin(), count, Type::Int());
        return;
    }
  }

 private:
  uint32_t AnyRegister(const Function& f) { return random_.Below(f.registers.size() + (random_.Chance(5) ? 2 : 0)); }

  void ChangeOperand(Function& f) {
    Instruction& in = f.code[random_.Below(f.code.size())];
    if (in.operands().size() == 0) return;
    const auto& [spec, value] = in.operands()[random_.Below(in.operands().size())];
    switch (spec.kind) {
      case OperandKind::kDef:
      case OperandKind::kUse:
        value = int64_t{AnyRegister(f)};
        return;
      case OperandKind::kDefList:
      case OperandKind::kUseList: {
        auto& list = std::get<RegisterList>(value);
        const uint32_t way = random_.Below(4);
        if (list.empty() || way == 0) {
          list.push_back(AnyRegister(f));
        } else if (way == 1) {
          list.pop_back();
        } else {
          list[random_.Below(list.size())] = AnyRegister(f);
        }
        return;
      }
      case OperandKind::kDim:
        value = NewDim(f, std::get<DimCode>(value));
        return;
      case OperandKind::kDimList: {
        auto& list = std::get<std::vector<DimCode>>(value);
        if (list.empty() || random_.Chance(20)) {
          list.push_back(DimCode(random_.Below(4)));
        } else {
          DimCode& dim = list[random_.Below(list.size())];
          dim = NewDim(f, dim);
        }
        return;
      }
      case OperandKind::kText:
        value = std::string("{}");
        return;
      case OperandKind::kLabel:
        value = int64_t{random_.Below(f.code.size() + 2)};
        return;
      case OperandKind::kFunction:
        value = int64_t{random_.Below(program_.functions.size() + (random_.Chance(5) ? 1 : 0))};
        return;
      case OperandKind::kBuiltin:
        value = static_cast<int64_t>(AllBuiltins()[random_.Below(AllBuiltins().size())].builtin);
        return;
      case OperandKind::kDType:
      case OperandKind::kFloat:
        return;
      default:
        value = std::get<int64_t>(value) + int64_t{random_.Below(4)} - 1;
        return;
    }
  }

  DimCode NewDim(const Function& f, const DimCode& old) {
    if (random_.Chance(30)) return DimCode::Slot(AnyRegister(f));
    if (random_.Chance(30)) return DimCode::Binary(DimOp::kAdd, old, DimCode(int64_t{random_.Below(12)} - 4));
    return DimCode(int64_t{random_.Below(24)} - 2);
  }

  void ChangeOrder(Function& f) {
    const size_t at = random_.Below(f.code.size());
    const auto place = f.code.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random_.Below(4)) {
      case 0:
        if (at + 1 < f.code.size()) std::swap(f.code[at], f.code[at + 1]);
        return;
      case 1:
        std::swap(f.code[at], f.code[random_.Below(f.code.size())]);
        return;
      case 2: {
        const Instruction again = f.code[random_.Below(f.code.size())];
        f.code.insert(place, again);
        return ShiftBehind(f, at, 1);
      }
      default:
        if (f.code.size() < 2) return;
        f.code.erase(place);
        return ShiftBehind(f, at, -1);
    }
  }

  void InsertRelease(Function& f) {
    const size_t at = random_.Below(f.code.size());
    f.code.insert(f.code.begin() + static_cast<std::ptrdiff_t>(at),
                  Instruction(Opcode::kRelease, {Operand(int64_t{AnyRegister(f)})}));
    ShiftBehind(f, at, 1);
  }

  template <typename Row>
  void Repeat(std::vector<Row>& rows, size_t count) {
    if (!rows.empty()) rows.insert(rows.end(), count, Row(rows[random_.Below(rows.size())]));
  }
  // The same for rows whose names have to differ.
  template <typename Row>
  void RepeatNamed(std::vector<Row>& rows, size_t count) {
    if (rows.empty()) return;
    const Row row = rows[random_.Below(rows.size())];
    for (size_t i = 0; i < count; ++i) rows.emplace_back(row).name = StrCat({row.name, "_", i});
  }

  void RepeatInstruction(Function& f, size_t at, const Instruction& instruction, size_t count) {
    f.code.insert(f.code.begin() + static_cast<std::ptrdiff_t>(at), count, instruction);
    ShiftBehind(f, at, static_cast<int>(count));
  }

  // Blocks of one jump each to the next one, in a function of many registers.
  void RepeatBlocks(Function& f, size_t count) {
    f.registers.insert(f.registers.end(), count, Type::Int());
    const size_t num_blocks = 1 + count / 8, at = random_.Below(f.code.size());
    RepeatInstruction(f, at, Instruction(Opcode::kJump, {Operand(int64_t{0})}), num_blocks);
    for (size_t i = at; i < at + num_blocks; ++i) f.code[i] = Instruction(Opcode::kJump, {Operand(int64_t(i + 1))});
  }

  static DimCode LongFormula() {
    DimCode formula = DimCode::Slot(0);
    for (int i = 0; i < 20; ++i) formula = DimCode::Binary(DimOp::kAdd, formula, DimCode(i));
    return formula;
  }

  // Labels and live ranges follow the instructions.
  static void ShiftBehind(Function& f, size_t at, int by) {
    const auto shift = [&](uint32_t& index) {
      if (index > at) index = static_cast<uint32_t>(static_cast<int64_t>(index) + by);
    };
    for (Instruction& in : f.code) {
      for (const auto& [spec, value] : in.operands()) {
        if (spec.kind != OperandKind::kLabel) continue;
        auto index = static_cast<uint32_t>(std::get<int64_t>(value));
        shift(index);
        value = int64_t{index};
      }
    }
    for (PlanEntry& entry : f.plan.entries) {
      shift(entry.first);
      shift(entry.last);
    }
  }

  // Any type inside of this one, or itself.
  Type& Inside(Type& type) {
    if (random_.Chance(40)) return type;
    const size_t count = type.elements.size() + type.results.size();
    if (count == 0) return type;
    const size_t at = random_.Below(count);
    return Inside(at < type.elements.size() ? type.elements[at] : type.results[at - type.elements.size()]);
  }

  void ChangeType(Type& whole) {
    Type& type = Inside(whole);
    switch (random_.Below(6)) {
      case 0:
        type = Type::Object("any");
        return;
      case 1: {
        const Function& f = program_.functions[random_.Below(program_.functions.size())];
        if (!f.registers.empty()) type = f.registers[random_.Below(f.registers.size())];
        return;
      }
      case 2:
        if (!type.elements.empty()) type.elements.pop_back();
        return;
      case 3:
        type.storage = static_cast<Storage>(random_.Below(kNumStorages));
        return;
      case 4:
        type.dtype = random_.Chance(50) ? DataType::Int(64) : DataType::Float(64);
        return;
      default:
        if (type.dims.empty()) {
          type = Type::String();
        } else if (random_.Chance(50)) {
          type.dims[0].reset();
        } else {
          type.dims[0] = DimCode(random_.Below(6));
        }
        return;
    }
  }

  void ChangeRegister(Function& f) {
    if (f.registers.empty()) return;
    const size_t at = random_.Below(f.registers.size());
    ChangeType(f.registers[at]);
    const size_t head = f.signature.symbols.size();
    if (at >= head && at < head + f.signature.params.size()) f.signature.params[at - head].type = f.registers[at];
  }

  void ChangeSignature(Function& f) {
    const size_t params = f.signature.params.size(), all = params + f.signature.results.size();
    if (all == 0) return;
    const size_t at = random_.Below(all);
    if (at >= params) return ChangeType(f.signature.results[at - params].type);
    ChangeType(f.signature.params[at].type);
    f.registers[f.signature.symbols.size() + at] = f.signature.params[at].type;
  }

  void ChangePlan() {
    for (Function& f : program_.functions) {
      std::vector<PlanEntry>& entries = f.plan.entries;
      if (entries.empty()) continue;
      const size_t at = random_.Below(entries.size());
      PlanEntry& entry = entries[at];
      const PlanEntry& other = entries[random_.Below(entries.size())];
      switch (random_.Below(7)) {
        case 0:
          entry.first += random_.Below(3) - 1;
          return;
        case 1:
          entry.last -= random_.Below(3);
          return;
        case 2:
          entry.offset = other.offset;
          return;
        case 3:
          entry.offset = DimCode(64 * random_.Below(4) + (random_.Chance(20) ? 8 : 0));
          return;
        case 4:
          entry.size = DimCode(8 * random_.Below(20));
          return;
        case 5:
          entry.last += random_.Below(4);
          return;
        default:
          if (entry.alias_of)
            entry.alias_of.reset();
          else
            entry.alias_of = PlanEntryId(random_.Below(at + 1));
          return;
      }
    }
  }

  void ChangeKernel() {
    Kernel& kernel = program_.kernels[random_.Below(program_.kernels.size())];
    KernelParam& param = kernel.params[random_.Below(kernel.params.size())];
    switch (random_.Below(4)) {
      case 0:
        param.role = static_cast<ParamRole>(random_.Below(3));
        return;
      case 1:
        param.in_place.reset();
        return;
      case 2:
        param.extents[0] = DimCode(random_.Below(6));
        return;
      default:
        param.dtype = DataType::Int(64);
        return;
    }
  }

  void ChangeTables() {
    if (random_.Chance(30)) {
      State& state = program_.states[random_.Below(program_.states.size())];
      state.dims[0] += int64_t{random_.Below(3)} - 1;
      return;
    }
    if (random_.Chance(30)) {
      auto& params = program_.externals[0].signature.params;
      if (random_.Chance(50))
        params.push_back({"more", Type::Int()});
      else
        ChangeType(params[0].type);
      return;
    }
    Constant& constant = program_.constants[random_.Below(program_.constants.size())];
    if (random_.Chance(50))
      constant.dims[0] += int64_t{random_.Below(3)} - 1;
    else
      constant.dtype = DataType::Int(32);
  }

  Program& program_;
  Random random_;
};

}  // namespace

void Mutate(Program& program, uint64_t seed) {
  for (uint64_t i = 0; i <= seed % 4 / 3; ++i) Mutator(program, seed + i).Run();
}

void Inflate(Program& program, uint64_t seed) { Mutator(program, ~seed).Inflate(); }

}  // namespace ingot::vm::checked
