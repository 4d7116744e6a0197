// Accesses of views whose elements are not those of the memory: an element of the view is made of the bits of one or
// several elements there, lowest byte first, as CPUs here have them. A part of PrimReader (prim_reader.h).
#include "compiler/ir/visitor.h"
#include "compiler/script/prim_reader.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

PrimExpr BitsAs(DataType dtype, PrimExpr value) {
  if (value->dtype == dtype) return value;
  return Make<PrimCallNode>(dtype, Intrinsic::kReinterpret, std::vector<PrimExpr>{std::move(value)});
}

DataType UnsignedOf(DataType dtype) { return DataType::UInt(dtype.bits).with_lanes(dtype.lanes); }

PrimExpr Shifted(Intrinsic op, const PrimExpr& value, PrimExpr count) {
  return CallIntrinsic(op, {value, Cast(value->dtype, std::move(count))});
}

}  // namespace

PrimExpr PrimReader::Load(const Syntax& syntax, const Buffer& buffer, std::vector<PrimExpr> indices) {
  const DataType dtype = DTypeOf(buffer), element = dtype.element_of(), owner = buffer->dtype;
  if (dtype == owner) return MakeAt<BufferLoadNode>(syntax, buffer, std::move(indices));
  PrimExpr index = indices.at(0);
  if (element.bits == owner.bits) {
    if (dtype.lanes > 1) {
      if (!index->dtype.is_scalar()) return context_.Error(syntax, "an index with lanes, of a view of vectors");
      index = Make<RampNode>(index * Int64(dtype.lanes), Int64(1), dtype.lanes);
    }
    const int lanes = index->dtype.lanes;
    return BitsAs(element.with_lanes(lanes), Make<BufferLoadNode>(buffer, std::vector<PrimExpr>{std::move(index)}));
  }
  if (!index->dtype.is_scalar() || dtype.lanes > 1) {
    return context_.Error(syntax, "an index with lanes, of a view whose elements have another size than the memory's");
  }
  // An index that reads memory may be such an element, too; it is computed once.
  if (ReadsMemory(index)) {
    const PrimVar at = MakePrimVar("at", index->dtype);
    return MakeAt<LetNode>(syntax, at, std::move(index), Load(syntax, buffer, {PrimExpr(at)}));
  }
  const auto word = [&](PrimExpr place) {
    return BitsAs(UnsignedOf(owner), Make<BufferLoadNode>(buffer, std::vector<PrimExpr>{std::move(place)}));
  };
  if (element.bits < owner.bits) {
    const int64_t parts = owner.bits / element.bits;
    const PrimExpr shift = FloorMod(index, Int64(parts)) * Int64(element.bits);
    const PrimExpr part = Shifted(Intrinsic::kShiftRight, word(FloorDiv(index, Int64(parts))), shift);
    return BitsAs(element, Cast(UnsignedOf(element), part));
  }
  const int64_t parts = element.bits / owner.bits;
  PrimExpr bits;
  for (int64_t i = 0; i < parts; ++i) {
    const PrimExpr part = Cast(UnsignedOf(element), word(index * Int64(parts) + Int64(i)));
    const PrimExpr placed = i == 0 ? part : Shifted(Intrinsic::kShiftLeft, part, Int64(i * owner.bits));
    bits = bits == nullptr ? placed : CallIntrinsic(Intrinsic::kBitwiseOr, {bits, placed});
  }
  return BitsAs(element, std::move(bits));
}

std::vector<Stmt> PrimReader::Store(const Syntax& syntax, const Buffer& buffer, PrimExpr value,
                                    std::vector<PrimExpr> indices) {
  const DataType dtype = DTypeOf(buffer), element = dtype.element_of(), owner = buffer->dtype;
  const auto store = [&](PrimExpr stored, std::vector<PrimExpr> places) -> Stmt {
    return MakeAt<BufferStoreNode>(syntax, buffer, std::move(stored), std::move(places));
  };
  if (dtype == owner) return {store(std::move(value), std::move(indices))};
  PrimExpr index = indices.at(0);
  if (element.bits == owner.bits) {
    if (dtype.lanes > 1 && index->dtype.is_scalar()) {
      index = Make<RampNode>(index * Int64(dtype.lanes), Int64(1), dtype.lanes);
    } else if (dtype.lanes > 1) {
      context_.Error(syntax, "an index with lanes, of a view of vectors");
      return {};
    }
    const int lanes = index->dtype.lanes;
    return {store(BitsAs(owner.with_lanes(lanes), std::move(value)), {std::move(index)})};
  }
  if (!index->dtype.is_scalar() || dtype.lanes > 1) {
    context_.Error(syntax, "an index with lanes, of a view whose elements have another size than the memory's");
    return {};
  }
  if (element.bits < owner.bits) {
    context_.Error(syntax, "a store to a part of an element of " + owner.ToString() + ", by a view as " +
                               element.ToString() + ", is not supported");
    return {};
  }
  // What is stored, and where, is known before the first part is: it may depend on what the parts replace.
  const int64_t parts = element.bits / owner.bits;
  const PrimExpr written = BitsAs(UnsignedOf(element), std::move(value)), place = index;
  PrimVar bits, at;
  if (ReadsMemory(written)) bits = MakePrimVar("bits", written->dtype);
  if (ReadsMemory(place)) index = at = MakePrimVar("at", place->dtype);
  std::vector<Stmt> stmts;
  for (int64_t i = 0; i < parts; ++i) {
    const PrimExpr whole = bits != nullptr ? PrimExpr(bits) : written;
    const PrimExpr part = i == 0 ? whole : Shifted(Intrinsic::kShiftRight, whole, Int64(i * owner.bits));
    stmts.push_back(store(BitsAs(owner, Cast(UnsignedOf(owner), part)), {index * Int64(parts) + Int64(i)}));
  }
  if (bits != nullptr) stmts = {MakeAt<LetStmtNode>(syntax, bits, written, MakeSeq(std::move(stmts)))};
  if (at != nullptr) stmts = {MakeAt<LetStmtNode>(syntax, at, place, MakeSeq(std::move(stmts)))};
  return stmts;
}

}  // namespace ingot::script
