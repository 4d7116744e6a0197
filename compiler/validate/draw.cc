// A deterministic generator, the numbers of each kind of draw, and the table of sizes that symbols take.
#include "compiler/validate/draw.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ir/float_format.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/states.h"

namespace ingot::validate {

namespace {

// splitmix64, which gives the same numbers with every compiler and library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound)); }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

double HostileNumber(DataType dtype, DrawKind kind, Random& random) {
  const double largest = ir::LargestFinite(dtype);
  const double smallest = ir::DecodeFloat(dtype, 1);
  // The constant that is added and subtracted again in order to round: 1.5 * 2^(mantissa bits).
  const double magic = std::ldexp(1.5, ir::FloatFormatOf(dtype).mantissa_bits);
  const double infinity = std::numeric_limits<double>::infinity();
  const double numbers[] = {0.0,  -0.0,    infinity, -infinity, std::nan(""), smallest,           -smallest, 1.0,
                            -1.0, largest, -largest, magic,     -magic,       std::sqrt(largest), 1e30,      -1e4};
  const int64_t num_special = 9;
  return numbers[random.Below(kind == DrawKind::kSpecial ? num_special : std::ssize(numbers))];
}

double DrawFloat(DataType dtype, DrawKind kind, Random& random) {
  if (kind == DrawKind::kWhole) return static_cast<double>(random.Below(7) - 3);
  const bool is_mixed = kind == DrawKind::kHostile || kind == DrawKind::kSpecial;
  if (is_mixed && random.Below(3) == 0) return HostileNumber(dtype, kind, random);
  return (random.Unit() - 0.5) * 4;
}

int64_t DrawInt(DataType dtype, IntDraw ints, Random& random) {
  switch (ints) {
    case IntDraw::kAny:
      return dtype.bits <= 16 ? static_cast<int64_t>(random.Next()) : random.Below(4) - (dtype.is_int() ? 1 : 0);
    case IntDraw::kBelowThree:
      return random.Below(3);
    case IntDraw::kBelowTwo:
      return random.Below(2);
    case IntDraw::kZero:
      return 0;
    case IntDraw::kOne:
      return 1;
  }
  return 0;
}

Status Fill(HostTensor& tensor, DrawKind kind, IntDraw ints, Random& random) {
  const DataType dtype = tensor.dtype;
  if (dtype.bits < 8) {  // packed
    for (std::byte& byte : tensor.bytes()) byte = static_cast<std::byte>(random.Next());
    return Status();
  }
  const auto width = static_cast<size_t>(dtype.bits / 8);
  if (width > 8) return Status(StatusCode::kUnsupportedModel, "the validator draws no " + dtype.ToString());
  for (size_t at = 0; at + width <= tensor.size_bytes; at += width) {
    uint64_t bits = 0;
    if (dtype.is_floating()) {
      bits = ir::EncodeFloat(dtype, DrawFloat(dtype, kind, random));
    } else if (dtype.is_bool()) {
      bits = random.Next() & 1;
    } else {
      bits = static_cast<uint64_t>(DrawInt(dtype, ints, random));
    }
    std::memcpy(tensor.bytes().data() + at, &bits, width);
  }
  return Status();
}

Result<std::vector<int64_t>> NumbersOf(const std::vector<ir::PrimExpr>& dims, const Assignment& assignment) {
  std::vector<int64_t> numbers;
  for (const ir::PrimExpr& dim : dims) {
    const auto number = ir::AsConstInt(op::SimplifyDim(ir::Substitute(dim, assignment.values)));
    if (!number || *number < 0) return Status(StatusCode::kBadInput, "a dim of an input is no number >= 0");
    numbers.push_back(*number);
  }
  return numbers;
}

Result<Value> DrawValue(const ir::Type& type, const Assignment& assignment, DrawKind kind, IntDraw ints,
                        Random& random) {
  if (const auto* tensor = ir::As<ir::TensorTypeNode>(type); tensor != nullptr && tensor->dtype && tensor->rank >= 0) {
    std::vector<int64_t> dims(static_cast<size_t>(tensor->rank), 2);
    if (tensor->dims) {
      INGOT_ASSIGN_OR_RETURN(dims, NumbersOf(*tensor->dims, assignment));
    }
    INGOT_ASSIGN_OR_RETURN(HostTensor drawn, NewTensor(*tensor->dtype, std::move(dims)));
    INGOT_RETURN_IF_ERROR(Fill(drawn, kind, ints, random));
    return Value::Of(std::move(drawn));
  }
  if (const auto* shape = ir::As<ir::ShapeTypeNode>(type); shape != nullptr && shape->dims) {
    INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, NumbersOf(*shape->dims, assignment));
    return Value::OfShape(std::move(numbers));
  }
  if (const auto* prim = ir::As<ir::PrimTypeNode>(type); prim != nullptr && !prim->dtype.is_floating()) {
    if (!prim->value) return Value::OfPrim(DrawInt(prim->dtype, ints, random));
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, NumbersOf({prim->value}, assignment));
    return Value::OfPrim(numbers[0]);
  }
  if (const auto* tuple = ir::As<ir::TupleTypeNode>(type)) {
    std::vector<Value> fields;
    for (const ir::Type& field : tuple->fields) {
      INGOT_ASSIGN_OR_RETURN(Value value, DrawValue(field, assignment, kind, ints, random));
      fields.push_back(std::move(value));
    }
    return Value::OfTuple(std::move(fields));
  }
  return Status(StatusCode::kUnsupportedModel, "the validator draws no input of type " + op::Describe(type));
}

}  // namespace

const char* DrawKindName(DrawKind kind) {
  switch (kind) {
    case DrawKind::kFinite:
      return "finite";
    case DrawKind::kHostile:
      return "hostile";
    case DrawKind::kSpecial:
      return "special";
    case DrawKind::kWhole:
      return "whole";
  }
  return "";
}

std::vector<ir::Var> InputsOfMain(const ir::IRModule& module) {
  const ir::Function main_function = module.FindFunction("main");
  if (main_function == nullptr) return {};
  std::vector<ir::Var> params = main_function->params;
  if (main_function->attrs.Find(transform::kPackedByAttr) == nullptr) return params;
  const auto count = static_cast<size_t>(main_function->attrs.GetInt("num_input"));
  params.resize(std::min(count, params.size()));
  return params;
}

std::vector<Assignment> DrawAssignments(const ir::IRModule& module) {
  const std::vector<ir::Var> params = InputsOfMain(module);
  std::vector<ir::PrimVar> symbols;
  for (const ir::Var& param : params) {
    for (const ir::PrimVar& symbol : ir::FreePrimVars(param->type)) {
      if (std::ranges::none_of(symbols, [&](const ir::PrimVar& other) { return other.same_as(symbol); })) {
        symbols.push_back(symbol);
      }
    }
  }
  if (symbols.empty()) return {{{}, "fixed dims"}};
  // Each row is one assignment; its sizes are given to the symbols in turn.
  const std::vector<std::vector<int64_t>> rows = {{2}, {17}, {1},  {0}, {3, 1, 2, 5, 4}, {1, 17}, {17, 0}, {4},
                                                  {8}, {16}, {32}, {64}};
  const ir::Attrs& attrs = module.FindFunction("main")->attrs;
  std::vector<Assignment> assignments;
  for (const std::vector<int64_t>& row : rows) {
    Assignment assignment;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const auto [low, high] = transform::DimBounds(attrs, symbols[i]->name);
      const int64_t value = std::clamp(row[i % row.size()], low, std::max(low, high));
      assignment.values[symbols[i]] = ir::Int64(value);
      assignment.text += (i == 0 ? "" : ", ") + symbols[i]->name + "=" + std::to_string(value);
    }
    if (std::ranges::none_of(assignments, [&](const Assignment& other) { return other.text == assignment.text; })) {
      assignments.push_back(std::move(assignment));
    }
  }
  return assignments;
}

Result<std::vector<Value>> DrawInputs(const ir::IRModule& module, const Assignment& assignment, DrawKind kind,
                                      IntDraw ints, uint64_t seed) {
  Random random(seed);
  std::vector<Value> inputs;
  for (const ir::Var& param : InputsOfMain(module)) {
    INGOT_ASSIGN_OR_RETURN(Value value, DrawValue(param->type, assignment, kind, ints, random));
    inputs.push_back(std::move(value));
  }
  return inputs;
}

}  // namespace ingot::validate
