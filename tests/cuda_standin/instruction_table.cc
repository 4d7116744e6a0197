#include "tests/cuda_standin/instruction_table.h"

#include <map>

namespace ingot::ptx {
namespace {

// What a modifier means wherever it stands; those without a row (types, scopes, cache hints) change nothing.
struct Modifier {
  const char* text;
  void (*apply)(Instruction& instruction);
};
template <Compare compare>
void SetCompare(Instruction& i) {
  i.compare = static_cast<uint8_t>(compare);
}
template <Rounding rounding, bool to_integer>
void SetRounding(Instruction& i) {
  i.rounding = rounding;
  i.to_integer = to_integer;
}
template <Space space>
void SetSpace(Instruction& i) {
  i.space = space;
}
constexpr Modifier kModifiers[] = {
    {".rn", SetRounding<Rounding::kNearest, false>},
    {".rz", SetRounding<Rounding::kZero, false>},
    {".rm", SetRounding<Rounding::kDown, false>},
    {".rp", SetRounding<Rounding::kUp, false>},
    {".rna", SetRounding<Rounding::kNearestAway, false>},
    {".rni", SetRounding<Rounding::kNearest, true>},
    {".rzi", SetRounding<Rounding::kZero, true>},
    {".rmi", SetRounding<Rounding::kDown, true>},
    {".rpi", SetRounding<Rounding::kUp, true>},
    {".ftz", [](Instruction& i) { i.ftz = true; }},
    {".sat", [](Instruction& i) { i.sat = true; }},
    {".relu", [](Instruction& i) { i.relu = true; }},
    {".NaN", [](Instruction& i) { i.nan = true; }},
    {".satfinite", [](Instruction& i) { i.satfinite = true; }},
    {".eq", SetCompare<Compare::kEq>},
    {".ne", SetCompare<Compare::kNe>},
    {".lt", SetCompare<Compare::kLt>},
    {".le", SetCompare<Compare::kLe>},
    {".gt", SetCompare<Compare::kGt>},
    {".ge", SetCompare<Compare::kGe>},
    {".lo", SetCompare<Compare::kLo>},
    {".ls", SetCompare<Compare::kLs>},
    {".hi", SetCompare<Compare::kHi>},
    {".hs", SetCompare<Compare::kHs>},
    {".equ", SetCompare<Compare::kEqu>},
    {".neu", SetCompare<Compare::kNeu>},
    {".ltu", SetCompare<Compare::kLtu>},
    {".leu", SetCompare<Compare::kLeu>},
    {".gtu", SetCompare<Compare::kGtu>},
    {".geu", SetCompare<Compare::kGeu>},
    {".num", SetCompare<Compare::kNum>},
    {".nan", SetCompare<Compare::kNan>},
    {".and", [](Instruction& i) { i.combine = static_cast<uint8_t>(Combine::kAnd); }},
    {".or", [](Instruction& i) { i.combine = static_cast<uint8_t>(Combine::kOr); }},
    {".xor", [](Instruction& i) { i.combine = static_cast<uint8_t>(Combine::kXor); }},
    {".v2", [](Instruction& i) { i.elements = 2; }},
    {".v4", [](Instruction& i) { i.elements = 4; }},
    {".global", SetSpace<Space::kGlobal>},
    {".shared", SetSpace<Space::kShared>},
    {".shared::cta", SetSpace<Space::kShared>},
    {".local", SetSpace<Space::kLocal>},
    {".const", SetSpace<Space::kConst>},
    {".param", SetSpace<Space::kParam>},
    {".param::entry", SetSpace<Space::kParam>},
    {".param::func", SetSpace<Space::kParam>},
};

// Matches from here on, noting the modifiers that groups took.
bool Match(std::string_view pattern, std::string_view opcode, std::vector<std::string_view>& taken) {
  while (!pattern.empty()) {
    const char open = pattern[0];
    if (open != '{' && open != '(') {
      if (opcode.empty() || opcode[0] != open) return false;
      pattern.remove_prefix(1), opcode.remove_prefix(1);
      continue;
    }
    const size_t close = pattern.find(open == '{' ? '}' : ')');
    std::string_view choices = pattern.substr(1, close - 1);
    const std::string_view rest = pattern.substr(close + 1);
    const size_t depth = taken.size();
    while (!choices.empty()) {
      const size_t bar = std::min(choices.find('|'), choices.size());
      const std::string_view choice = choices.substr(0, bar);
      choices.remove_prefix(std::min(bar + 1, choices.size()));
      const std::string_view after = opcode.substr(std::min(choice.size(), opcode.size()));
      if (!opcode.starts_with(choice) || !(after.empty() || after[0] == '.')) continue;
      taken.push_back(choice);
      if (Match(rest, after, taken)) return true;
      taken.resize(depth);
    }
    return open == '{' && Match(rest, opcode, taken);
  }
  return opcode.empty();
}

std::string_view BaseOf(std::string_view opcode) { return opcode.substr(0, opcode.find_first_of(".{(")); }

}  // namespace

const Rows& InstructionTable() {
  static const Rows rows = [] {
    Rows made;
    AddIntegerRows(made);
    AddFloatRows(made);
    AddConvertRows(made);
    AddMemoryRows(made);
    AddWarpRows(made);
    AddMatrixRows(made);
    AddGroupMatrixRows(made);
    return made;
  }();
  return rows;
}

const Row* FindRow(std::string_view opcode, Instruction& instruction) {
  static const auto by_base = [] {
    std::map<std::string, std::vector<const Row*>, std::less<>> bases;
    for (const Row& row : InstructionTable()) bases[std::string(BaseOf(row.pattern))].push_back(&row);
    return bases;
  }();
  const auto base = by_base.find(BaseOf(opcode));
  if (base == by_base.end()) return nullptr;
  std::vector<std::string_view> taken;
  for (const Row* row : base->second) {
    taken.clear();
    if (!Match(row->pattern, opcode, taken)) continue;
    instruction.handler = row->handler;
    instruction.variant = row->variant;
    instruction.flow = row->flow;
    instruction.space = row->space;
    instruction.element_bytes = row->element_bytes;
    for (const std::string_view modifier : taken) {
      for (const Modifier& known : kModifiers) {
        if (modifier == known.text) known.apply(instruction);
      }
    }
    return row;
  }
  return nullptr;
}

}  // namespace ingot::ptx
