// tabulate_bytes
//   Before: operators are not legalised; layouts are chosen, so that a table is not in their way.
//   After:  bytes that element-wise operators compute from the bytes of one tensor and from numbers, by functions that
//           take long (exponentials and what is made of them), are looked up in a table of 256 bytes. The operators'
//           reference evaluations fill it.
//   As QuantizeLinear and DequantizeLinear around activations have it, or QLinearSigmoid.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/op/fold.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

constexpr int64_t kBytes = 256;
const DataType kIndex = DataType::Int(32);

// Operators that vectors compute faster than a table is read.
constexpr std::array<std::string_view, 23> kCheap = {
    "abs",          "add",           "astype",    "ceil",       "clip",    "divide",   "equal",    "floor",
    "greater",      "greater_equal", "less",      "less_equal", "maximum", "minimum",  "multiply", "negative",
    "nn.leakyrelu", "nn.relu",       "not_equal", "round",      "sign",    "subtract", "where"};

bool IsByte(const ir::Type& type) {
  const auto* tensor = As<ir::TensorTypeNode>(type);
  return tensor != nullptr && tensor->dims && (tensor->dtype == DataType::UInt(8) || tensor->dtype == DataType::Int(8));
}

// What is known of a tensor: its value for each of the bytes of another one.
struct OfBytes {
  Expr source;
  op::ReferenceTensor values;  // [256], from the least byte on
  bool is_cheap = true;
};

class ByteTables {
 public:
  explicit ByteTables(PassContext& context) : context_(context) {}

  Result<bool> Tabulate(std::vector<ir::Binding>& bindings) {
    bool changed = false;
    std::vector<ir::Binding> result;
    for (const ir::Binding& binding : bindings) {
      const ir::Call call = ir::AsRef<ir::CallNode>(binding.value);
      if (call != nullptr && !binding.is_match_cast()) Follow(binding.var, call);
      const auto found = known_.find(binding.var.get());
      const bool is_table = found != known_.end() && !found->second.is_cheap && IsByte(binding.var->type);
      if (is_table && context_.Apply(RewriteId::kByteTable, *call, binding.span)) {
        INGOT_RETURN_IF_ERROR(LookUp(binding, found->second, result));
        changed = true;
      } else {
        result.push_back(binding);
      }
    }
    bindings = std::move(result);
    return changed;
  }

 private:
  // What is known of an argument: a tensor of bytes is a function of itself.
  const OfBytes* Find(const Expr& x) {
    if (const auto found = known_.find(x.get()); found != known_.end()) return &found->second;
    if (As<ir::VarNode>(x) == nullptr || !IsByte(x->type)) return nullptr;
    const auto* type = As<ir::TensorTypeNode>(x->type);
    OfBytes itself{x, op::NewReference(*type->dtype, {kBytes})};
    const int64_t least = type->dtype->is_int() ? -kBytes / 2 : 0;
    for (int64_t i = 0; i < kBytes; ++i) itself.values.ints[static_cast<size_t>(i)] = least + i;
    return &known_.emplace(x.get(), std::move(itself)).first->second;
  }

  // Enters the result of an element-wise call of tensors that are functions of the same bytes, and of numbers.
  void Follow(const ir::Var& var, const ir::Call& call) {
    const op::OpRow* row = op::RowOf(call);
    if (row == nullptr || row->fusion > op::FusionClass::kBroadcast || row->is_view || row->reference == nullptr)
      return;
    if (TypedDimsOf(call) == nullptr) return;
    Expr source;
    bool is_cheap = std::ranges::find(kCheap, std::string_view(row->name)) != kCheap.end();
    std::vector<Expr> args = call->args;
    std::vector<op::ReferenceTensor> inputs;
    for (Expr& arg : args) {
      if (As<ir::PrimValueNode>(arg) != nullptr) continue;
      const auto type = ir::AsRef<ir::TensorTypeNode>(arg->type);
      if (const auto* constant = As<ir::ConstantNode>(arg)) {
        if (constant->data->num_elements() != 1) return;
        inputs.push_back(op::UnpackReference(constant->data->dtype(), {1}, constant->data->bytes()));
      } else {
        const OfBytes* known = Find(arg);
        if (known == nullptr || (source != nullptr && !source.same_as(known->source))) return;
        source = known->source;
        is_cheap &= known->is_cheap;
        inputs.push_back(known->values);
      }
      arg = ir::Make<ir::VarNode>("x", op::TensorOf({ir::Int64(inputs.back().dims[0])}, inputs.back().dtype, type));
    }
    if (source == nullptr || !EqualDims(*DimsOf(source), *TypedDimsOf(call))) return;
    const Result<ir::Call> small = op::MakeCall(row->name, std::move(args), call->attrs);
    if (!small.ok()) return;
    Result<std::vector<op::ReferenceTensor>> values = row->reference(*small, inputs);
    if (!values.ok() || values->size() != 1 || values->front().dims != std::vector<int64_t>{kBytes}) return;
    const op::ReferenceTensor& exact = values->front();  // and rounded, as the operator's result is
    OfBytes result{source, op::UnpackReference(exact.dtype, exact.dims, op::PackReference(exact)), is_cheap};
    known_.insert_or_assign(var.get(), std::move(result));
  }

  // Adds bindings that look the variable up by the bytes of its source.
  static Status LookUp(const ir::Binding& binding, const OfBytes& known, std::vector<ir::Binding>& bindings) {
    const auto emit = [&](const char* name, std::vector<Expr> args, ir::Attrs attrs) -> Result<Expr> {
      INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(name, std::move(args), std::move(attrs)));
      const ir::Var var = ir::Make<ir::VarNode>("place", call->type, binding.var->is_dataflow);
      bindings.push_back({var, call, nullptr, binding.span});
      return Expr(var);
    };
    INGOT_ASSIGN_OR_RETURN(Expr place, emit("astype", {known.source}, {{"dtype", kIndex}}));
    if (As<ir::TensorTypeNode>(known.source->type)->dtype->is_int()) {
      INGOT_ASSIGN_OR_RETURN(place, emit("add", {place, op::NumberConstant(kBytes / 2, kIndex)}, {}));
    }
    const Expr table = ir::Make<ir::ConstantNode>(
        ir::ConstantData::FromBytes(known.values.dtype, {kBytes}, op::PackReference(known.values)));
    INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall("take", {table, place}, {{"axis", int64_t{0}}}));
    bindings.push_back({binding.var, call, nullptr, binding.span});
    return Status();
  }

  PassContext& context_;
  std::unordered_map<const ir::ExprNode*, OfBytes> known_;
};

}  // namespace

Result<ir::IRModule> TabulateBytes(ir::IRModule module, PassContext& context) {
  bool changed = false;
  Result<ir::IRModule> result =
      MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) {
        return MapDataflowBlocks(function, [&](std::vector<ir::Binding>& bindings) -> Result<bool> {
          ByteTables tables(context);  // what is known of a block's dataflow variables ends with it
          INGOT_ASSIGN_OR_RETURN(const bool done, tables.Tabulate(bindings));
          changed |= done;
          return done;
        });
      });
  return result.ok() && changed ? EliminateDeadCode(*std::move(result), context) : std::move(result);
}

}  // namespace ingot::transform
