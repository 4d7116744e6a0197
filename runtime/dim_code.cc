// The table of operators (how each prints and binds), checked arithmetic, the evaluator (a stack machine), and the text
// form: a printer, and a recursive-descent parser over precedence levels that appends postfix steps.
#include "runtime/dim_code.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace ingot {
namespace {

constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();
// More nesting than 64 steps can need; it bounds the parser's recursion.
constexpr int kMaxParseDepth = 128;

// One row per operator: how it prints. Binary operators bind left to right; a higher precedence binds tighter.
enum class Form : uint8_t { kLeaf, kInfix, kCall };
struct OpInfo {
  const char* text;
  Form form;
  int8_t arity;
  int8_t precedence;
};
constexpr int8_t kLeafPrecedence = 10;
constexpr int8_t kComparison = 1;  // comparisons do not chain: "a < b < c" means too many different things
constexpr OpInfo kOps[] = {
    {"const", Form::kLeaf, 0, kLeafPrecedence},   // kConst
    {"slot", Form::kLeaf, 0, kLeafPrecedence},    // kSlot
    {"+", Form::kInfix, 2, 2},                    // kAdd
    {"-", Form::kInfix, 2, 2},                    // kSub
    {"*", Form::kInfix, 2, 3},                    // kMul
    {"//", Form::kInfix, 2, 3},                   // kFloorDiv
    {"%", Form::kInfix, 2, 3},                    // kFloorMod
    {"min", Form::kCall, 2, kLeafPrecedence},     // kMin
    {"max", Form::kCall, 2, kLeafPrecedence},     // kMax
    {"==", Form::kInfix, 2, kComparison},         // kEq
    {"!=", Form::kInfix, 2, kComparison},         // kNe
    {"<", Form::kInfix, 2, kComparison},          // kLt
    {"<=", Form::kInfix, 2, kComparison},         // kLe
    {"select", Form::kCall, 3, kLeafPrecedence},  // kSelect
};
constexpr int kNumOps = static_cast<int>(std::size(kOps));
const OpInfo& Info(DimOp op) { return kOps[static_cast<int>(op)]; }

Status Fail(Text message) { return Status(StatusCode::kInvalidArgument, message); }

// False when the result does not fit 64 bits, or when b is a zero divisor.
bool Apply(DimOp op, int64_t a, int64_t b, int64_t* result) {
  switch (op) {
    case DimOp::kAdd:
      return !__builtin_add_overflow(a, b, result);
    case DimOp::kSub:
      return !__builtin_sub_overflow(a, b, result);
    case DimOp::kMul:
      return !__builtin_mul_overflow(a, b, result);
    case DimOp::kFloorDiv:
      if (b == 0 || (a == kMinInt && b == -1)) return false;
      *result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      return true;
    case DimOp::kFloorMod:
      if (b == 0) return false;
      if (b == -1) {  // the machine's remainder traps on the smallest integer
        *result = 0;
        return true;
      }
      *result = a % b;
      if (*result != 0 && (*result < 0) != (b < 0)) *result += b;
      return true;
    case DimOp::kMin:
      *result = std::min(a, b);
      return true;
    case DimOp::kMax:
      *result = std::max(a, b);
      return true;
    case DimOp::kEq:
      *result = a == b;
      return true;
    case DimOp::kNe:
      *result = a != b;
      return true;
    case DimOp::kLt:
      *result = a < b;
      return true;
    case DimOp::kLe:
      *result = a <= b;
      return true;
    case DimOp::kConst:
    case DimOp::kSlot:
    case DimOp::kSelect:
      break;
  }
  INGOT_UNREACHABLE("not a binary operator");
}

bool IsIdentifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

// "s12" means slot 12 whatever the names are. -1: the text is no such default name.
int64_t DefaultNameSlot(std::string_view text) {
  if (text.size() < 2 || text[0] != 's' || (text[1] == '0' && text.size() > 2)) return -1;
  int32_t slot = -1;
  auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), slot);
  return error == std::errc() && end == text.data() + text.size() ? slot : -1;
}

bool IsFunctionName(std::string_view text) { return text == "min" || text == "max" || text == "select"; }

// The name that stands for a slot: its own where that reads back as this slot, the default one otherwise.
std::string SlotText(int64_t slot, std::span<const std::string> names) {
  if (slot < static_cast<int64_t>(names.size())) {
    const std::string& name = names[slot];
    // The search takes long in a long list, whose names are distinct.
    constexpr size_t kMostSearched = 256;
    const bool first =
        names.size() > kMostSearched || std::find(names.begin(), names.end(), name) == names.begin() + slot;
    if (first && IsIdentifier(name) && !IsFunctionName(name) && DefaultNameSlot(name) < 0) return name;
  }
  return StrCat({"s", slot});
}

// Recursive descent over precedence levels; appends postfix steps as it reads.
class Parser {
 public:
  Parser(std::string_view text, std::span<const std::string> names) : text_(text), names_(names) {}

  Result<std::vector<DimStep>> Run() {
    INGOT_RETURN_IF_ERROR(Expression(1, 0));
    SkipSpace();
    if (at_ != text_.size()) return Error("expected an operator or the end");
    return std::move(steps_);
  }

 private:
  Status Error(Text what) const {
    return Fail({"dimension \"", text_.substr(0, 200), "\", column ", at_ + 1, ": ", what});
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // The longest infix operator of at least min_precedence here; kConst when there is none.
  DimOp TakeInfix(int min_precedence) {
    SkipSpace();
    DimOp best = DimOp::kConst;
    size_t best_size = 0;
    for (int i = 0; i < kNumOps; ++i) {
      const std::string_view symbol = kOps[i].text;
      if (kOps[i].form == Form::kInfix && symbol.size() > best_size && text_.substr(at_).starts_with(symbol)) {
        best = static_cast<DimOp>(i);
        best_size = symbol.size();
      }
    }
    if (best == DimOp::kConst || Info(best).precedence < min_precedence) return DimOp::kConst;
    at_ += best_size;
    return best;
  }

  Status Push(DimStep step) {
    if (steps_.size() == DimCode::kMaxSteps) {
      return Error({"longer than ", DimCode::kMaxSteps, " steps"});
    }
    steps_.push_back(step);
    return Status();
  }

  Status Expression(int min_precedence, int depth) {
    if (depth > kMaxParseDepth) return Error("nested too deep");
    INGOT_RETURN_IF_ERROR(Primary(depth));
    for (;;) {
      const DimOp op = TakeInfix(min_precedence);
      if (op == DimOp::kConst) return Status();
      INGOT_RETURN_IF_ERROR(Expression(Info(op).precedence + 1, depth + 1));
      INGOT_RETURN_IF_ERROR(Push({op, 0}));
      if (Info(op).precedence == kComparison) return Status();
    }
  }

  Status Primary(int depth) {
    if (Take('(')) {
      INGOT_RETURN_IF_ERROR(Expression(1, depth + 1));
      return Take(')') ? Status() : Error("expected ')'");
    }
    SkipSpace();
    size_t end = at_;
    const auto word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && word(text_[end])) ++end;
    const std::string_view token = text_.substr(at_, end - at_);
    if (token.empty()) return Error("expected a number, a name or '('");
    if (token[0] == '-' || (token[0] >= '0' && token[0] <= '9')) return Number(token);
    if (IsFunctionName(token)) return CallOf(token, depth);
    return Slot(token);
  }

  Status Number(std::string_view token) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size()) {
      return Error({"\"", token, "\" is no 64-bit integer"});
    }
    at_ += token.size();
    return Push({DimOp::kConst, value});
  }

  Status CallOf(std::string_view token, int depth) {
    at_ += token.size();
    const auto row = std::find_if(std::begin(kOps), std::end(kOps), [&](const OpInfo& o) { return token == o.text; });
    if (!Take('(')) return Error({"expected '(' after ", token});
    for (int i = 0; i < row->arity; ++i) {
      if (i > 0 && !Take(',')) return Error({token, " takes ", row->arity, " arguments"});
      INGOT_RETURN_IF_ERROR(Expression(1, depth + 1));
    }
    if (!Take(')')) return Error("expected ')'");
    return Push({static_cast<DimOp>(row - std::begin(kOps)), 0});
  }

  Status Slot(std::string_view token) {
    int64_t slot = DefaultNameSlot(token);
    if (slot < 0) {
      const auto found = std::find(names_.begin(), names_.end(), token);
      if (found == names_.end()) return Error({"unknown name \"", token, "\""});
      slot = found - names_.begin();
    }
    at_ += token.size();
    return Push({DimOp::kSlot, slot});
  }

  std::string_view text_;
  std::span<const std::string> names_;
  size_t at_ = 0;
  std::vector<DimStep> steps_;
};

}  // namespace

DimCode DimCode::Binary(DimOp op, const DimCode& a, const DimCode& b) {
  INGOT_CHECK(Info(op).arity == 2);
  int64_t folded = 0;
  if (a.is_constant() && b.is_constant() && Apply(op, a.constant(), b.constant(), &folded)) return DimCode(folded);
  std::vector<DimStep> steps(a.steps_);
  steps.insert(steps.end(), b.steps_.begin(), b.steps_.end());
  steps.push_back({op, 0});
  return DimCode(std::move(steps), 0);
}

DimCode DimCode::Select(const DimCode& condition, const DimCode& if_true, const DimCode& if_false) {
  if (condition.is_constant()) return condition.constant() != 0 ? if_true : if_false;
  std::vector<DimStep> steps(condition.steps_);
  steps.insert(steps.end(), if_true.steps_.begin(), if_true.steps_.end());
  steps.insert(steps.end(), if_false.steps_.begin(), if_false.steps_.end());
  steps.push_back({DimOp::kSelect, 0});
  return DimCode(std::move(steps), 0);
}

Result<DimCode> DimCode::FromSteps(std::vector<DimStep> steps, int64_t num_slots) {
  if (steps.empty()) return Fail("dimension code is empty");
  if (steps.size() > kMaxSteps) {
    return Fail({"dimension code has ", steps.size(), " steps, more than ", kMaxSteps});
  }
  int depth = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto fail = [&](Text what) { return Fail({"dimension code, step ", i, ": ", what}); };
    const int op = static_cast<int>(steps[i].op);
    if (op >= kNumOps) return fail({"unknown operator ", op});
    if (steps[i].op == DimOp::kSlot && (steps[i].value < 0 || steps[i].value >= num_slots)) {
      return fail({"slot ", steps[i].value, " of ", num_slots});
    }
    if (kOps[op].form != Form::kLeaf && steps[i].value != 0) return fail("an operator with a value");
    if (depth < kOps[op].arity) return fail("too few operands");
    depth += 1 - kOps[op].arity;
  }
  if (depth != 1) return Fail({"dimension code leaves ", depth, " values, expected 1"});
  return DimCode(std::move(steps), 0);
}

int64_t DimCode::num_slots() const {
  int64_t count = 0;
  for (const DimStep& step : steps_) {
    if (step.op == DimOp::kSlot) count = std::max(count, step.value + 1);
  }
  return count;
}

std::optional<DimCode> DimCode::Substitute(std::span<const std::optional<DimCode>> slots) const {
  if (!fits()) return std::nullopt;
  // The values on the stack stand one behind the other; `ends` says where each ends, behind a leading zero.
  std::vector<DimStep> steps;
  std::array<ptrdiff_t, kMaxSteps + 1> ends = {};
  int depth = 0;
  for (const DimStep& step : steps_) {
    // Operands are `arity` values from `first` on.
    const int arity = Info(step.op).arity, first = depth - arity;
    const auto is_constant = [&](int value) {
      return ends[value + 1] == ends[value] + 1 && steps[ends[value]].op == DimOp::kConst;
    };
    const auto all = steps.begin();
    int64_t folded = 0;
    depth = first + 1;
    if (step.op == DimOp::kSlot) {
      const auto slot = static_cast<size_t>(step.value);
      if (slot >= slots.size() || !slots[slot]) return std::nullopt;
      steps.insert(steps.end(), slots[slot]->steps_.begin(), slots[slot]->steps_.end());
    } else if (arity == 3 && is_constant(first)) {
      const int chosen = steps[ends[first]].value != 0 ? first + 1 : first + 2;
      steps.erase(std::copy(all + ends[chosen], all + ends[chosen + 1], all + ends[first]), steps.end());
    } else if (arity == 2 && is_constant(first) && is_constant(first + 1) &&
               Apply(step.op, all[ends[first]].value, all[ends[first + 1]].value, &folded)) {
      steps.pop_back();
      steps.back().value = folded;
    } else {
      steps.push_back(step);
    }
    ends[depth] = std::ssize(steps);
    if (ends[depth] - ends[first] > kMaxSteps) return std::nullopt;
  }
  return DimCode(std::move(steps), 0);
}

Result<int64_t> DimCode::Evaluate(std::span<const int64_t> slots) const {
  if (steps_.size() == 1) {
    return steps_[0].op == DimOp::kConst ? steps_[0].value : slots[steps_[0].value];
  }
  if (!fits()) return Fail({"dimension code has more than ", kMaxSteps, " steps"});
  int64_t stack[kMaxSteps];
  int depth = 0;
  for (const DimStep& step : steps_) {
    switch (step.op) {
      case DimOp::kConst:
        stack[depth++] = step.value;
        break;
      case DimOp::kSlot:
        stack[depth++] = slots[step.value];
        break;
      case DimOp::kSelect:
        depth -= 2;
        if (stack[depth - 1] == 0) stack[depth] = stack[depth + 1];
        stack[depth - 1] = stack[depth];
        break;
      case DimOp::kAdd:
      case DimOp::kSub:
      case DimOp::kMul:
      case DimOp::kFloorDiv:
      case DimOp::kFloorMod:
      case DimOp::kMin:
      case DimOp::kMax:
      case DimOp::kEq:
      case DimOp::kNe:
      case DimOp::kLt:
      case DimOp::kLe: {
        const int64_t b = stack[--depth];
        const int64_t a = stack[depth - 1];
        if (!Apply(step.op, a, b, &stack[depth - 1])) {
          const bool by_zero = b == 0 && (step.op == DimOp::kFloorDiv || step.op == DimOp::kFloorMod);
          return Fail({"dimension ", ToString(), ": ", a, " ", Info(step.op).text, " ", b,
                       by_zero ? " divides by zero" : " overflows 64 bits"});
        }
        break;
      }
    }
  }
  return stack[0];
}

std::string DimCode::ToString(std::span<const std::string> slot_names) const {
  struct Piece {
    std::string text;
    int precedence;
  };
  std::vector<Piece> stack;
  const auto pop = [&] {
    Piece piece = std::move(stack.back());
    stack.pop_back();
    return piece;
  };
  const auto wrapped = [](const Piece& piece, int min_precedence) {
    return piece.precedence < min_precedence ? StrCat({"(", piece.text, ")"}) : piece.text;
  };
  for (const DimStep& step : steps_) {
    const OpInfo& info = Info(step.op);
    switch (info.form) {
      case Form::kLeaf:
        stack.push_back({step.op == DimOp::kConst ? std::to_string(step.value) : SlotText(step.value, slot_names),
                         info.precedence});
        break;
      case Form::kInfix: {
        const Piece right = pop();
        const Piece left = pop();
        const int left_precedence = info.precedence == kComparison ? kComparison + 1 : info.precedence;
        stack.push_back(
            {StrCat({wrapped(left, left_precedence), " ", info.text, " ", wrapped(right, info.precedence + 1)}),
             info.precedence});
        break;
      }
      case Form::kCall: {
        std::string arguments;
        for (int i = 0; i < info.arity; ++i) arguments = pop().text + (i > 0 ? ", " : "") + arguments;
        stack.push_back({StrCat({info.text, "(", arguments, ")"}), info.precedence});
        break;
      }
    }
  }
  return std::move(stack.back().text);
}

Result<DimCode> DimCode::Parse(std::string_view text, std::span<const std::string> slot_names) {
  INGOT_ASSIGN_OR_RETURN(std::vector<DimStep> steps, Parser(text, slot_names).Run());
  return FromSteps(std::move(steps), std::numeric_limits<int64_t>::max());
}

}  // namespace ingot
