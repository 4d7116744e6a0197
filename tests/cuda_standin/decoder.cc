// Operands become places in the register file, in the order in which the row's signature lists them. The first error
// wins; a statement that no row takes is refused by its opcode.
#include "tests/cuda_standin/decoder.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "tests/cuda_standin/lane_loops.h"
#include "tests/cuda_standin/special_registers.h"

namespace ingot::ptx {
namespace {

// mov.b64 d, {a, b} and its like: operands d, parts.
void PackParts(Warp& w, const Instruction& i, uint32_t mask) {
  const int n = i.elements, bytes = i.element_bytes;
  uint32_t computed = kAllLanes;
  for (int k = 0; k < n; ++k) computed &= w.Computed(i.r[k + 1]);
  uint64_t packed[kLanes] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < n; ++k) {
      std::memcpy(reinterpret_cast<uint8_t*>(&packed[lane]) + k * bytes,
                  w.Lanes<uint8_t>(i.r[k + 1]) + lane * i.bytes[k + 1], static_cast<size_t>(bytes));
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0)
      std::memcpy(w.Lanes<uint8_t>(i.r[0]) + lane * n * bytes, &packed[lane], static_cast<size_t>(n * bytes));
  }
  w.SetComputed(i.r[0], mask, computed);
}
// mov.b64 {a, b}, d: operands d, parts.
void UnpackParts(Warp& w, const Instruction& i, uint32_t mask) {
  const int n = i.elements, bytes = i.element_bytes;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    uint64_t whole = 0;
    std::memcpy(&whole, w.Lanes<uint8_t>(i.r[0]) + lane * n * bytes, static_cast<size_t>(n * bytes));
    for (int k = 0; k < n; ++k) {
      const uint64_t part = whole >> (8 * bytes * k) & (~uint64_t{0} >> (64 - 8 * bytes));
      std::memcpy(w.Lanes<uint8_t>(i.r[k + 1]) + lane * i.bytes[k + 1], &part, i.bytes[k + 1]);
    }
  }
  for (int k = 0; k < n; ++k) w.SetComputed(i.r[k + 1], mask, w.Computed(i.r[0]));
}

class Decoder {
 public:
  Decoder(const Module& module, const Function& function, const Symbols& symbols)
      : module_(module), function_(function), symbols_(symbols) {}

  Result<Program> Run() {
    program_.function = &function_;
    PlaceVariables();
    places_.reserve(function_.registers.size());
    for (const Register& r : function_.registers) places_.push_back(NewPlace(TypeBytes(r.type)));
    std::vector<int32_t> starts;  // statement -> instruction
    for (const Statement& statement : function_.statements) {
      starts.push_back(static_cast<int32_t>(program_.instructions.size()));
      statement_ = &statement;
      if (!DecodeStatement()) {
        return Status(StatusCode::kBadInput, {"ptx: function \"", function_.name, "\", line ", statement.line, ": ",
                                              error_, ": ", statement.text});
      }
    }
    starts.push_back(static_cast<int32_t>(program_.instructions.size()));
    for (size_t k = 0; k < program_.instructions.size(); ++k) {
      Instruction& instruction = program_.instructions[k];
      instruction.r = program_.operand_pool.data() + first_operands_[k];
      instruction.bytes = program_.operand_bytes.data() + first_operands_[k];
      if (instruction.flow == Flow::kBranch) instruction.target = starts[static_cast<size_t>(instruction.target)];
      for (int32_t& target : instruction.targets) target = starts[static_cast<size_t>(target)];
    }
    program_.register_file_bytes = next_place_;
    FindReconvergence(program_);
    return std::move(program_);
  }

 private:
  bool Fail(const std::string& message) {
    if (error_.empty()) error_ = message;
    return false;
  }

  void PlaceVariables() {
    for (const Variable& variable : function_.variables) {
      int64_t& extent = variable.space == Space::kParam ? program_.param_bytes : program_.local_bytes;
      if (variable.space != Space::kParam && variable.space != Space::kLocal) {
        program_.variable_offsets.push_back(-1);
        continue;
      }
      extent = (extent + variable.align - 1) / variable.align * variable.align;
      program_.variable_offsets.push_back(extent);
      extent += variable.size_bytes;
    }
    program_.local_bytes = (program_.local_bytes + 15) / 16 * 16;
    program_.param_bytes = (program_.param_bytes + 15) / 16 * 16;
  }

  // The mask of computed lanes stands in the four bytes before the place.
  uint32_t NewPlace(int bytes) {
    const uint32_t place = static_cast<uint32_t>(next_place_) + 32;
    next_place_ += 32 + std::max(32, 32 * bytes);
    return place;
  }
  uint32_t Filled(Filling::Kind kind, int bytes, uint64_t value) {
    const auto key = std::make_tuple(kind, bytes, value);
    if (const auto known = fillings_.find(key); known != fillings_.end()) return known->second;
    const uint32_t place = NewPlace(bytes);
    program_.fillings.push_back({kind, static_cast<uint8_t>(bytes), place, value});
    return fillings_[key] = place;
  }

  // ---- statements
  bool DecodeStatement() {
    const Statement& s = *statement_;
    if (s.opcode.starts_with("mov.b") && s.operands.size() == 2) {
      if (s.operands[1].kind == Operand::Kind::kVector) return DecodePack();
      if (s.operands[0].kind == Operand::Kind::kVector) return DecodeUnpack();
    }
    Instruction instruction;
    const Row* row = FindRow(s.opcode, instruction);
    if (row == nullptr) return Fail(StrCat({"unknown instruction \"", s.opcode, "\""}));
    const int from_sm = s.opcode.find(".cluster") != std::string::npos ? 90 : row->from_sm;
    if (std::atoi(module_.target.c_str() + 3) < from_sm || (row->is_exact && !module_.target.ends_with('a')))
      return Fail(StrCat({"\"", s.opcode, "\" needs .target sm_", from_sm, row->is_exact ? "a" : ""}));
    Begin(instruction);
    switch (row->flow) {
      case Flow::kCall:
        return DecodeCall(instruction);
      case Flow::kBranch:
        return DecodeBranch(instruction);
      case Flow::kIndexedBranch:
        return DecodeIndexedBranch(instruction);
      default:
        break;
    }
    std::string_view signature = row->signature;
    next_operand_ = 0;
    while (!signature.empty()) {
      const size_t blank = std::min(signature.find(' '), signature.size());
      if (!DecodeOperand(signature.substr(0, blank), instruction)) return false;
      signature.remove_prefix(std::min(blank + 1, signature.size()));
    }
    if (next_operand_ < s.operands.size()) return Fail("too many operands");
    // What a handler asks for beyond the signature's end is left out.
    for (int k = 0; k < 2; ++k) Push(0, 0);
    Emit(instruction);
    return true;
  }
  void Begin(Instruction& instruction) {
    instruction.statement = statement_;
    if (statement_->guard >= 0) instruction.guard = places_[static_cast<size_t>(statement_->guard)];
    instruction.guard_negated = statement_->guard_negated;
    operands_.clear(), operand_bytes_.clear();
    second_address_ = nullptr;
  }
  void Push(uint32_t place, int bytes) {
    operands_.push_back(place);
    operand_bytes_.push_back(static_cast<uint8_t>(bytes));
  }
  void Emit(const Instruction& instruction) {
    first_operands_.push_back(program_.operand_pool.size());
    program_.operand_pool.insert(program_.operand_pool.end(), operands_.begin(), operands_.end());
    program_.operand_bytes.insert(program_.operand_bytes.end(), operand_bytes_.begin(), operand_bytes_.end());
    program_.instructions.push_back(instruction);
  }

  // One entry of a signature.
  bool DecodeOperand(std::string_view entry, Instruction& instruction) {
    const bool optional = entry.starts_with('?');
    const bool written = entry.starts_with('=');
    if (optional || written) entry.remove_prefix(1);
    const std::vector<Operand>& given = statement_->operands;
    if (next_operand_ >= given.size()) {
      if (!optional) return Fail("too few operands");
      Push(0, 0);
      return true;
    }
    const Operand& operand = given[next_operand_++];
    if (entry == "A") return DecodeAddress(operand, instruction);
    if (entry == "I") {
      if (operand.kind != Operand::Kind::kInteger) return Fail("an integer constant is expected");
      return Value(operand, Type::kS32, false, false);
    }
    bool wide = false;
    int count = 0;  // of a vector in braces
    if (entry.starts_with("V*")) {
      entry.remove_prefix(2);
      wide = true;
      count = instruction.elements > 1 ? instruction.elements : 0;
    } else if (const size_t x = entry.find('x');
               x != std::string_view::npos && x < 4 && std::isdigit(static_cast<unsigned char>(entry[0])) != 0) {
      count = std::atoi(std::string(entry.substr(0, x)).c_str());
      entry.remove_prefix(x + 1);
    }
    if (entry.starts_with('*')) wide = true, entry.remove_prefix(1);
    const size_t bar = entry.find('|');
    const bool pair = bar != std::string_view::npos;
    const Type type = ParseType(entry.substr(0, bar));
    if (count > 0) {
      // One register may stand without braces.
      if (operand.kind != Operand::Kind::kVector && count == 1) return Value(operand, type, written, wide);
      if (operand.kind != Operand::Kind::kVector || operand.parts.size() != static_cast<size_t>(count)) {
        return Fail(StrCat({"expected {", count, " registers}"}));
      }
      for (const Operand& part : operand.parts) {
        if (!Value(part, type, written, wide)) return false;
      }
      return true;
    }
    if (pair && operand.kind == Operand::Kind::kPair && !entry.ends_with('-')) {
      return Value(operand.parts[0], type, written, wide) &&
             Value(operand.parts[1], ParseType(entry.substr(bar + 1)), true, false);
    }
    if (operand.kind == Operand::Kind::kVector && operand.parts.size() == 1) {  // ld.param of one element in braces
      return Value(operand.parts[0], type, written, wide);
    }
    if (!Value(operand, type, written, wide)) return false;
    if (pair) Push(0, 0);
    return true;
  }

  bool Value(const Operand& operand, Type type, bool written, bool wide) {
    const int bytes = TypeBytes(type);
    switch (operand.kind) {
      case Operand::Kind::kRegister: {
        const Register& r = function_.registers[static_cast<size_t>(operand.index)];
        const int held = TypeBytes(r.type);
        if ((r.type == Type::kPred) != (type == Type::kPred) || (wide ? held < bytes : held != bytes) ||
            !AreCompatible(r.type, type)) {
          return Fail(
              StrCat({"register ", r.name, " of type ", TypeName(r.type), " where ", TypeName(type), " is expected"}));
        }
        uint32_t place = places_[static_cast<size_t>(operand.index)];
        if (operand.negated) place = Negated(place);
        Push(place, held);
        return true;
      }
      case Operand::Kind::kSink:
        if (!written) return Fail("_ is no value");
        Push(NewPlace(std::max(bytes, 0)), bytes);
        return true;
      default:
        break;
    }
    if (written) return Fail("a result that is no register");
    switch (operand.kind) {
      case Operand::Kind::kInteger:
      case Operand::Kind::kFloat:
        if (!TakesImmediate(type, operand.kind == Operand::Kind::kFloat))
          return Fail(StrCat({"a constant of another kind where ", TypeName(type), " is expected"}));
        Push(Filled(Filling::Kind::kConstant, bytes, BitsOf(operand, type)), bytes);
        return true;
      case Operand::Kind::kSpecial: {
        if (operand.name == "WARP_SZ") {
          Push(Filled(Filling::Kind::kConstant, bytes, kLanes), bytes);
          return true;
        }
        const int number = SpecialRegisterNumber(operand.name);
        if (number < 0) return Fail(StrCat({"unknown special register ", operand.name}));
        Push(Filled(Filling::Kind::kSpecial, bytes, static_cast<uint64_t>(number)), bytes);
        return true;
      }
      case Operand::Kind::kVariable: {
        bool is_local = false;
        uint64_t address = 0;
        if (!AddressOf(operand, &address, &is_local)) return false;
        address += static_cast<uint64_t>(operand.integer);
        Push(Filled(is_local ? Filling::Kind::kLocalAddress : Filling::Kind::kConstant, bytes, address), bytes);
        return true;
      }
      default:
        return Fail("an operand of another kind is expected");
    }
  }
  // Untyped bits go with everything, integers with each other, floats of a format with themselves.
  static bool AreCompatible(Type a, Type b) {
    const auto is_untyped = [](Type t) {
      return t == Type::kB8 || t == Type::kB16 || t == Type::kB32 || t == Type::kB64 || t == Type::kPred;
    };
    if (is_untyped(a) || is_untyped(b)) return true;
    return IsFloat(a) || IsFloat(b) ? a == b : true;
  }
  // As ptxas does: float16 and bfloat16 have no constants, other floats none without a point, typed integers no others.
  static bool TakesImmediate(Type type, bool is_float) {
    if (IsFloat(type)) return is_float && TypeBytes(type) >= 4 && type != Type::kF16x2 && type != Type::kBf16x2;
    const bool is_untyped = type == Type::kB16 || type == Type::kB32 || type == Type::kB64;
    return !is_float || is_untyped;
  }
  uint32_t Negated(uint32_t place) {
    Instruction logical_not;
    FindRow("not.pred", logical_not);
    std::vector<uint32_t> outer = std::move(operands_);
    std::vector<uint8_t> outer_bytes = std::move(operand_bytes_);
    Begin(logical_not);
    const uint32_t result = NewPlace(0);
    Push(result, 0), Push(place, 0);
    Emit(logical_not);
    operands_ = std::move(outer), operand_bytes_ = std::move(outer_bytes);
    return result;
  }
  static uint64_t BitsOf(const Operand& operand, Type type) {
    if (type == Type::kPred) return operand.integer != 0;
    if (operand.kind == Operand::Kind::kInteger) {
      const int unused = 64 - 8 * TypeBytes(type);
      return static_cast<uint64_t>(operand.integer) << unused >> unused;
    }
    if (TypeBytes(type) == 8)
      return std::isnan(operand.real) ? static_cast<uint64_t>(operand.integer) : std::bit_cast<uint64_t>(operand.real);
    if (std::isnan(operand.real)) return static_cast<uint32_t>(operand.integer);
    return std::bit_cast<uint32_t>(static_cast<float>(operand.real));
  }

  // ---- addresses
  bool AddressOf(const Operand& operand, uint64_t* address, bool* is_local) {
    *is_local = false;
    if (operand.index < 0) {
      const auto found = symbols_.module_variables.find(operand.name);
      if (found == symbols_.module_variables.end()) return Fail(StrCat({"no variable ", operand.name}));
      *address = found->second;
      program_.named_variables.insert(found->first);
      return true;
    }
    const Variable& variable = function_.variables[static_cast<size_t>(operand.index)];
    if (variable.space == Space::kParam || variable.space == Space::kLocal) {
      *address = static_cast<uint64_t>(program_.variable_offsets[static_cast<size_t>(operand.index)]);
      *is_local = variable.space == Space::kLocal;
      return true;
    }
    const auto found = symbols_.function_variables.find(&variable);
    if (found == symbols_.function_variables.end()) return Fail(StrCat({"no variable ", operand.name}));
    *address = found->second;
    return true;
  }
  bool DecodeAddress(const Operand& operand, Instruction& instruction) {
    if (operand.kind != Operand::Kind::kAddress) return Fail("an address in brackets is expected");
    const Operand& base = operand.parts[0];
    const bool second = second_address_ == &instruction;
    (second ? instruction.offset2 : instruction.offset) = operand.integer;
    bool is_64 = true;
    if (base.kind == Operand::Kind::kRegister) {
      const Type type = function_.registers[static_cast<size_t>(base.index)].type;
      is_64 = TypeBytes(type) == 8;
      if (!is_64 && TypeBytes(type) != 4) return Fail("an address has 32 or 64 bits");
      Push(places_[static_cast<size_t>(base.index)], TypeBytes(type));
    } else if (!Value(base, Type::kU64, false, false)) {
      return false;
    }
    (second ? instruction.address2_is_64 : instruction.address_is_64) = is_64;
    second_address_ = &instruction;
    return true;
  }

  // ---- mov of parts, as instructions of their own
  bool DecodePack() {
    const std::vector<Operand>& parts = statement_->operands[1].parts;
    return DecodeParts(statement_->operands[0], parts, true);
  }
  bool DecodeUnpack() { return DecodeParts(statement_->operands[1], statement_->operands[0].parts, false); }
  bool DecodeParts(const Operand& whole, const std::vector<Operand>& parts, bool pack) {
    Instruction instruction;
    Begin(instruction);
    const Type type = ParseType(statement_->opcode.substr(3));
    if (type == Type::kNone || parts.empty() || TypeBytes(type) % static_cast<int>(parts.size()) != 0)
      return Fail("parts that do not fill the whole");
    const int bytes = TypeBytes(type) / static_cast<int>(parts.size());
    const Type part_type = bytes == 4 ? Type::kB32 : bytes == 2 ? Type::kB16 : Type::kB8;
    instruction.handler = pack ? PackParts : UnpackParts;
    instruction.elements = static_cast<uint8_t>(parts.size());
    instruction.element_bytes = static_cast<uint8_t>(bytes);
    if (!Value(whole, type, pack, false)) return false;
    for (const Operand& part : parts) {
      if (!Value(part, part_type, !pack, bytes == 1)) return false;
    }
    Emit(instruction);
    return true;
  }

  // ---- control flow
  bool DecodeBranch(Instruction& instruction) {
    if (statement_->operands.size() != 1 || statement_->operands[0].kind != Operand::Kind::kName)
      return Fail("a label is expected");
    const Operand& label = statement_->operands[0];
    if (label.integer < 0) return Fail(StrCat({"no label ", label.name}));
    instruction.target = static_cast<int32_t>(label.integer);
    Emit(instruction);
    return true;
  }
  bool DecodeIndexedBranch(Instruction& instruction) {
    if (statement_->operands.size() != 2) return Fail("an index and targets are expected");
    const auto targets = function_.branch_targets.find(statement_->operands[1].name);
    if (targets == function_.branch_targets.end()) return Fail("unknown branch targets");
    for (const std::string& target : targets->second) instruction.targets.push_back(std::atoi(target.c_str()));
    if (!Value(statement_->operands[0], Type::kU32, false, false)) return false;
    Emit(instruction);
    return true;
  }
  bool DecodeCall(Instruction& instruction) {
    std::vector<const Operand*> lists[2];
    const Operand* callee = nullptr;
    for (const Operand& operand : statement_->operands) {
      if (operand.kind == Operand::Kind::kName) {
        callee = &operand;
      } else if (operand.kind == Operand::Kind::kVector) {
        for (const Operand& part : operand.parts) lists[callee == nullptr ? 0 : 1].push_back(&part);
      }
    }
    if (callee == nullptr) return Fail("calls through pointers are not supported");
    const auto found = symbols_.functions.find(callee->name);
    if (found == symbols_.functions.end()) return Fail(StrCat({"no function ", callee->name}));
    instruction.target = found->second;
    const Function& function = module_.functions[static_cast<size_t>(found->second)];
    if (!function.has_body) return Fail(StrCat({"function ", callee->name, " has no body"}));
    if (lists[0].size() != static_cast<size_t>(function.num_returns) ||
        lists[1].size() != static_cast<size_t>(function.num_params)) {
      return Fail("a call with another number of parameters");
    }
    size_t variable = 0;
    for (int list = 0; list < 2; ++list) {
      for (const Operand* operand : lists[list]) {
        if (operand->kind != Operand::Kind::kVariable || operand->index < 0)
          return Fail("a parameter of a call that is no .param variable");
        if (function_.variables[static_cast<size_t>(operand->index)].size_bytes !=
            function.variables[variable++].size_bytes) {
          return Fail("a parameter of a call of another size");
        }
        (list == 0 ? instruction.returns : instruction.arguments)
            .push_back(static_cast<int32_t>(program_.variable_offsets[static_cast<size_t>(operand->index)]));
      }
    }
    Emit(instruction);
    return true;
  }

  const Module& module_;
  const Function& function_;
  const Symbols& symbols_;
  Program program_;
  std::vector<uint32_t> places_;
  int64_t next_place_ = 0;
  std::map<std::tuple<Filling::Kind, int, uint64_t>, uint32_t> fillings_;
  std::vector<size_t> first_operands_;
  std::vector<uint32_t> operands_;
  std::vector<uint8_t> operand_bytes_;
  const Statement* statement_ = nullptr;
  const Instruction* second_address_ = nullptr;
  size_t next_operand_ = 0;
  std::string error_;
};

}  // namespace

Result<Program> Decode(const Module& module, const Function& function, const Symbols& symbols) {
  return Decoder(module, function, symbols).Run();
}

}  // namespace ingot::ptx
