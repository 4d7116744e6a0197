// Calls in tensor functions that this compiler has no meaning for: of GPUs' instructions, and of TVM's runtime. Each is
// read as the call of an external function of that name, with its arguments, so that such a function can be looked at,
// scheduled and printed; a program that runs it has to give the function. A part of PrimReader (prim_reader.h).
#include <algorithm>

#include "compiler/script/prim_reader.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// What the call gives: nothing that is used, a pointer, the dtype of an argument, or one that is its first argument.
enum class Gives : uint8_t { kNothing, kPointer, kFirst, kSecond, kNamed };

struct DeviceRow {
  std::string_view name;  // after "T."; with a point at the end: all that begin so
  Gives gives;
};
constexpr DeviceRow kDeviceRows[] = {
    {"address_of", Gives::kPointer},
    {"break_loop", Gives::kNothing},
    {"call_cpacked", Gives::kNothing},
    {"call_llvm_intrin", Gives::kNamed},
    {"call_llvm_pure_intrin", Gives::kNamed},
    {"call_pure_extern", Gives::kNamed},
    {"continue_loop", Gives::kNothing},
    {"create_barriers", Gives::kNothing},
    {"cuda.", Gives::kNothing},
    {"dma_copy", Gives::kNothing},
    {"dma_wait", Gives::kNothing},
    {"handle_add_byte_offset", Gives::kPointer},
    {"isnullptr", Gives::kNothing},
    {"make_filled_simdgroup_matrix", Gives::kNothing},
    {"metal.", Gives::kNothing},
    {"mma_fill", Gives::kNothing},
    {"mma_store", Gives::kNothing},
    {"prefetch", Gives::kNothing},
    {"ptx.", Gives::kNothing},
    {"ptx_", Gives::kNothing},
    {"ret", Gives::kNothing},
    {"simdgroup_load", Gives::kNothing},
    {"simdgroup_multiply_accumulate", Gives::kNothing},
    {"simdgroup_store", Gives::kNothing},
    {"thread_return", Gives::kNothing},
    {"tvm_access_ptr", Gives::kPointer},
    {"tvm_bmma_sync", Gives::kNothing},
    {"tvm_call_packed", Gives::kNothing},
    {"tvm_check_return", Gives::kNothing},
    {"tvm_context_id", Gives::kPointer},
    {"tvm_fill_fragment", Gives::kNothing},
    {"tvm_load_matrix_sync", Gives::kNothing},
    {"tvm_mma_sync", Gives::kNothing},
    {"tvm_stack_alloca", Gives::kPointer},
    {"tvm_stack_make_array", Gives::kPointer},
    {"tvm_stack_make_shape", Gives::kPointer},
    {"tvm_storage_sync", Gives::kNothing},
    {"tvm_store_matrix_sync", Gives::kNothing},
    {"tvm_struct_set", Gives::kNothing},
    {"tvm_thread_allreduce", Gives::kNothing},
    {"tvm_throw_last_error", Gives::kNothing},
    {"tvm_thread_invariant", Gives::kFirst},
    {"tvm_warp_activemask", Gives::kNothing},
    {"tvm_warp_shuffle", Gives::kSecond},
    {"tvm_warp_shuffle_down", Gives::kSecond},
    {"tvm_warp_shuffle_up", Gives::kSecond},
    {"type_annotation", Gives::kPointer},
};

}  // namespace

PrimExpr PrimReader::ReadDeviceCall(const Syntax& call, const std::string& function) {
  const auto row = std::ranges::find_if(kDeviceRows, [&](const DeviceRow& candidate) {
    const bool is_prefix = candidate.name.ends_with('.') || candidate.name.ends_with('_');
    return is_prefix ? function.starts_with(candidate.name) : function == candidate.name;
  });
  if (row == std::end(kDeviceRows)) return nullptr;
  Arguments args(context_, call, "T." + function);
  DataType dtype = row->gives == Gives::kPointer ? DataType::Handle() : DataType::Int(32);
  if (const Syntax* given = args.Keyword("dtype")) {
    const std::optional<DataType> stated = ReadDataType(*given);
    if (!stated) return nullptr;
    dtype = *stated;
  }
  std::vector<PrimExpr> values{Make<StringImmNode>(function)};
  size_t first = 0;
  if (row->gives == Gives::kNamed) {
    const Syntax* given = args.Require(0, "dtype");
    const std::optional<DataType> stated = given == nullptr ? std::nullopt : ReadDataType(*given);
    if (!stated) return nullptr;
    dtype = *stated;
    first = 1;
  }
  for (size_t i = first; i < args.num_positional(); ++i) {
    Operand operand = ReadOperand(*args.Get(i, "value"));
    Settle(operand, call);
    if (operand.expr == nullptr) return nullptr;
    values.push_back(std::move(operand.expr));
  }
  if (!args.Done()) return nullptr;
  const size_t of = row->gives == Gives::kFirst ? 1 : row->gives == Gives::kSecond ? 2 : 0;
  if (of != 0 && of < values.size()) dtype = values[of]->dtype;
  return MakeAt<PrimCallNode>(call, dtype, Intrinsic::kCallExtern, std::move(values));
}

// T.comm_reducer(lambda x0, x1, y0, y1: (..., ...), [identities]), by which threads join their numbers: the call of an
// external function of this name, of what the reducer makes of its identities, with the lambda's parameters as lets.
PrimExpr PrimReader::ReadReducer(const Syntax& call) {
  Arguments args(context_, call, "T.comm_reducer");
  const Syntax* combiner = args.Require(0, "combiner");
  const Syntax* identities = args.Require(1, "identity");
  if (combiner == nullptr || identities == nullptr || !args.Done()) return nullptr;
  if (CalleeName(*combiner) != "lambda") return context_.Error(*combiner, "expected a lambda");
  if (identities->kind != SyntaxKind::kList && identities->kind != SyntaxKind::kTuple) {
    return context_.Error(*identities, "expected a list of numbers");
  }
  std::vector<PrimExpr> numbers;
  for (const SyntaxPtr& number : identities->children) {
    numbers.push_back(Read(*number));
    if (numbers.back() == nullptr) return nullptr;
  }
  const Syntax& body = *combiner->children.back();
  const size_t count = numbers.size(), num_params = combiner->children.size() - 2;
  const bool is_tuple = body.kind == SyntaxKind::kTuple;
  if (count == 0 || num_params != 2 * count || (is_tuple ? body.children.size() : 1) != count) {
    return context_.Error(call, "expected two parameters and one result of the lambda for each identity");
  }
  std::vector<PrimExpr> values{Make<StringImmNode>("comm_reducer")};
  for (size_t i = 0; i < count; ++i) {
    const ScopeTable::Scope inner(scope_);
    std::vector<PrimVar> vars;
    for (size_t j = 0; j < num_params; ++j) {
      const std::string_view name = (*combiner)[j + 1].text;
      vars.push_back(MakePrimVar(std::string(name), numbers[j % count]->dtype));
      scope_.Define(name, Symbol::Prim(vars.back()));
    }
    PrimExpr value = Read(is_tuple ? body[i] : body);
    if (value == nullptr) return nullptr;
    for (size_t j = num_params; j-- > 0;) value = MakeAt<LetNode>(call, vars[j], numbers[j % count], std::move(value));
    values.push_back(std::move(value));
  }
  return MakeAt<PrimCallNode>(call, DataType::Int(32), Intrinsic::kCallExtern, std::move(values));
}

}  // namespace ingot::script
