// A module of PTX as it is written: functions, variables and statements, names resolved to registers and variables.
// The parser makes it, the decoder (decoder.h) turns its functions into what the executor runs. Nothing here knows what
// an instruction means.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ingot::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kF16,
  kBf16,
  kB32,
  kU32,
  kS32,
  kF32,
  kF16x2,
  kBf16x2,
  kTf32,
  kB64,
  kU64,
  kS64,
  kF64
};
// Zero of kNone and kPred.
int TypeBytes(Type type);
bool IsFloat(Type type);
bool IsSigned(Type type);
// ".u32" or "u32"; kNone of what is no type.
Type ParseType(std::string_view text);
const char* TypeName(Type type);

enum class Space : uint8_t { kGeneric, kParam, kShared, kLocal, kConst, kGlobal };
const char* SpaceName(Space space);

struct Relocation {
  int64_t offset;  // where in the initial bytes
  std::string symbol;
  int64_t addend;
};

struct Variable {
  std::string name;
  Space space = Space::kGeneric;
  int64_t align = 1;
  int64_t size_bytes = 0;
  bool is_extern = false;            // of .shared: the dynamic part of the launch
  std::vector<uint8_t> initial;      // shorter than the variable where the rest is zero, empty without initialiser
  std::vector<Relocation> pointers;  // addresses among the initial bytes
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // index of Function::registers
    kSpecial,   // name, such as %tid.x
    kInteger,   // integer
    kFloat,     // real, exact in double (0f... and 0d... by their bits)
    kVariable,  // name of a variable: its address, plus `integer`
    kName,      // a label or function
    kAddress,   // [parts[0] + integer]
    kVector,    // {parts} and (parts)
    kPair,      // parts[0] | parts[1]
    kSink,      // _
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // !p
  int32_t index = -1;    // of a register; of a variable: of Function::variables, or -1 for the module's
  int64_t integer = 0;
  double real = 0;
  std::string name;
  std::vector<Operand> parts;
};

struct Statement {
  int line = 0;
  std::string opcode;  // with all modifiers
  int32_t guard = -1;  // a register
  bool guard_negated = false;
  std::vector<Operand> operands;
  std::string text;  // as written, for messages
};

struct Register {
  std::string name;
  Type type;
};

struct Function {
  std::string name;
  int line = 0;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Register> registers;
  std::vector<Variable> variables;  // parameters first: returns, then arguments
  int num_returns = 0, num_params = 0;
  std::vector<Statement> statements;
  std::map<std::string, int> labels;                               // label -> statement
  std::map<std::string, std::vector<std::string>> branch_targets;  // of brx.idx
  int64_t max_threads[3] = {0, 0, 0};                              // .maxntid; zero without
  int64_t required_threads[3] = {0, 0, 0};                         // .reqntid
};

struct Module {
  int version_major = 0, version_minor = 0;
  std::string target;  // sm_80
  std::vector<Variable> variables;
  std::vector<Function> functions;
  const Function* Find(std::string_view name) const;
};

}  // namespace ingot::ptx
