// One function per operator that allocates, places or views memory.
#include "compiler/lower/memory_lowering.h"

#include <algorithm>
#include <utility>

#include "compiler/lower/vm_types.h"
#include "compiler/memory/place_tensors.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Whether two tensor types surely have the same dims. Two dims that are unknown to their types may differ.
bool HaveEqualDims(const vm::Type& a, const vm::Type& b) {
  return a == b && std::ranges::all_of(a.dims, [](const vm::Dim& dim) { return dim.has_value(); });
}

}  // namespace

Result<Value> MemoryLowering::LowerAlloc(const VarNode* var, const CallNode& call) {
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, scope_.RegisterType(call.type, vm::Storage::kOwned, call.span));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, scope_.Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(const std::optional<vm::RegisterId> output, outputs_.Allocate(var, vm_type, dims));
  if (output && HaveEqualDims(builder_.type(*output), vm_type)) return Value{*output, {}};
  const vm::RegisterId dst = builder_.AddRegister(std::move(vm_type));
  if (output) {
    builder_.View(dst, *output, DimCode(0), std::move(dims));
    outputs_.AddView(dst, *output);
  } else {
    builder_.Alloc(dst, std::move(dims));
  }
  return Value{dst, {}};
}

Result<Value> MemoryLowering::LowerStorage(const CallNode& call) {
  const PrimExpr& peak = As<ShapeExprNode>(call.args.at(0))->dims.at(0);
  INGOT_ASSIGN_OR_RETURN(DimCode size, scope_.Dim(peak));
  builder_.plan().arenas.push_back({0, std::move(size)});
  return Value{};
}

Result<Value> MemoryLowering::LowerPlacedTensor(const CallNode& call) {
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(DimCode offset, scope_.Dim(As<PrimValueNode>(call.args.at(1))->value));
  const AttrValue* bytes = call.attrs.Find("bytes");
  const bool is_number = bytes != nullptr && !bytes->is_none();
  const PrimExpr room =
      is_number ? Int64(call.attrs.GetInt("bytes")) : memory::AlignedSizeBytes(*type->dims, *type->dtype);
  INGOT_ASSIGN_OR_RETURN(DimCode size, scope_.Dim(room));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, scope_.Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, scope_.RegisterType(call.type, vm::Storage::kArena, call.span));
  return Value{plan_entries_.Place(std::move(vm_type), std::move(offset), std::move(size), std::move(dims)), {}};
}

Result<Value> MemoryLowering::LowerView(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(vm::RegisterId src, operands_.Register(call.args.at(0)));
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, scope_.Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, scope_.RegisterType(call.type, builder_.type(src).storage, call.span));
  const std::optional<vm::RegisterId> whole = outputs_.WholeOf(src);
  if (whole && builder_.type(*whole).dtype == vm_type.dtype && HaveEqualDims(builder_.type(*whole), vm_type)) return Value{*whole, {}};
  const vm::RegisterId dst = builder_.AddRegister(std::move(vm_type));
  builder_.View(dst, src, DimCode(0), std::move(dims));
  if (whole) outputs_.AddView(dst, *whole);
  plan_entries_.Follow(dst, src);
  return Value{dst, {}};
}

// Copies the elements into a view of one row. The call's value is the buffer itself.
Result<Value> MemoryLowering::LowerRowWrite(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId buffer, operands_.Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId row, operands_.Register(call.args.at(1)));
  const auto* index = As<PrimValueNode>(call.args.at(2));
  const auto* type = As<TensorTypeNode>(call.type);
  if (index == nullptr || !type->dims || type->dtype->total_bits() % 8 != 0) {
    return Unsupported(call.span, "a row of a tensor of unknown shape, or of elements below a byte");
  }
  if (!vm::IsWritable(builder_.type(buffer).storage)) return Unsupported(call.span, "a row of what cannot be written");
  std::vector<PrimExpr> row_dims(type->dims->begin() + 1, type->dims->end());
  PrimExpr offset = index->value * Int64(type->dtype->total_bits() / 8);
  for (const PrimExpr& dim : row_dims) offset = offset * dim;
  INGOT_ASSIGN_OR_RETURN(DimCode offset_code, scope_.Dim(offset));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, scope_.Dims(row_dims));
  const vm::RegisterId view = builder_.AddRegister(
      vm::Type::Tensor(*type->dtype, scope_.RegisterDims(row_dims), builder_.type(buffer).storage));
  builder_.View(view, buffer, std::move(offset_code), std::move(dims));
  plan_entries_.Follow(view, buffer);
  builder_.CopyInto(view, row, 0);
  return Value{buffer, {}};
}

}  // namespace ingot::lower
