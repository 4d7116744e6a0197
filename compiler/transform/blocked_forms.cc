// A table from variables to their forms; each conversion is bindings that are appended once and found again later.
#include "compiler/transform/blocked_forms.h"

#include <algorithm>
#include <utility>

#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"

namespace ingot::transform {

using ir::Expr;
using op::Dims;
using op::Layout;

std::optional<int64_t> Channels(const Dims& dims) {
  const std::optional<int64_t> channels = dims.size() == 4 ? ir::AsConstInt(dims[1]) : std::nullopt;
  return channels && *channels > 0 ? std::optional<int64_t>(*channels) : std::nullopt;
}

namespace {

Expr ShapeOf(const Dims& dims) { return ir::Make<ir::ShapeExprNode>(dims); }

}  // namespace

Expr IntTuple(const std::vector<int64_t>& values) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (int64_t value : values) {
    fields.push_back(ir::Make<ir::PrimValueNode>(ir::Int64(value)));
    types.push_back(fields.back()->type);
  }
  return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
}

Dims Filled(const Dims& dims, const Layout& layout) {
  Dims filled;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t block = layout.Block(i);
    filled.push_back(block == 1 ? dims[i]
                                : op::SimplifyDim(ir::FloorDiv(dims[i] + (block - 1), ir::Int64(block)) * block));
  }
  return filled;
}

std::optional<Form> BlockedForms::FormOf(const Expr& x) const {
  const auto found = forms_.find(x);
  if (found == forms_.end()) return std::nullopt;
  if (found->second.blocked) return Form::kBlocked;
  if (found->second.flat) return Form::kFlat;
  return std::nullopt;
}

bool BlockedForms::HasPlain(const Expr& x) const {
  const auto found = forms_.find(x);
  return found == forms_.end() || found->second.has_plain;
}

std::optional<double> BlockedForms::FillingOf(const Expr& x) const {
  const auto found = forms_.find(x);
  return found != forms_.end() ? found->second.filling : std::optional<double>(0.0);
}

void BlockedForms::Define(const ir::Var& x, const Expr& value, Form form, std::optional<double> filling) {
  Forms& forms = forms_[x];
  (form == Form::kFlat ? forms.flat : forms.blocked) = value;
  forms.has_plain = false;
  forms.filling = filling;
}

void BlockedForms::DefineRow(const ir::Var& x, const Expr& value) {
  Forms& forms = forms_[x];
  forms.row = value;
  forms.has_plain = false;
}

bool BlockedForms::IsRow(const Expr& x) const {
  const auto found = forms_.find(x);
  return found != forms_.end() && found->second.row && !found->second.has_plain;
}

Result<Expr> BlockedForms::GetRow(const Expr& x) {
  if (forms_[x].row) return forms_[x].row;
  INGOT_RETURN_IF_ERROR(MakePlain(x));
  const Dims& dims = *TypedDimsOf(x);
  INGOT_ASSIGN_OR_RETURN(const Expr row,
                         Reshape(x, {dims[0], dims[1], ir::Int64(1), op::SimplifyDim(dims[2] * dims[3])}));
  return forms_[x].row = row;
}

void BlockedForms::DefineChannelsLast(const ir::Var& x, const Expr& value) {
  Forms& forms = forms_[x];
  forms.channels_last = value;
  forms.has_plain = false;
}

Result<Expr> BlockedForms::Get(const Expr& x, Form form) {
  const Forms& known = forms_[x];
  if (const Expr& found = form == Form::kFlat ? known.flat : known.blocked; found) return found;
  const Dims& dims = *TypedDimsOf(x);
  Expr blocked = known.blocked;
  if (!blocked && !known.flat) {
    if (known.channels_last) {
      const Expr last = known.channels_last;
      const Dims cut = {dims[0], dims[2], dims[3], ir::Int64(*Channels(dims) / kBlock), ir::Int64(kBlock)};
      INGOT_ASSIGN_OR_RETURN(blocked, Reshape(last, cut));
      INGOT_ASSIGN_OR_RETURN(blocked,
                             Emit("permute_dims", {blocked}, {{"axes", ir::AttrValue::Ints({0, 3, 1, 2, 4})}}));
    } else {
      INGOT_RETURN_IF_ERROR(MakePlain(x));
      INGOT_ASSIGN_OR_RETURN(blocked, LayOut(x, *Layout::Parse(kBlockedLayout, kPlainLayout)));
    }
    forms_[x].blocked = blocked;
    if (form == Form::kBlocked) return blocked;
  }
  const ir::PrimExpr size = op::SimplifyDim(dims[2] * dims[3]);
  const Dims& from = *TypedDimsOf(form == Form::kFlat ? blocked : known.flat);
  const Dims view = form == Form::kFlat ? Dims{from[0], from[1], ir::Int64(1), size, from[4]}
                                        : Dims{from[0], from[1], dims[2], dims[3], from[4]};
  INGOT_ASSIGN_OR_RETURN(const Expr result, Reshape(form == Form::kFlat ? blocked : known.flat, view));
  Forms& forms = forms_[x];
  return (form == Form::kFlat ? forms.flat : forms.blocked) = result;
}

Result<Expr> BlockedForms::GetPerChannel(const Expr& x) {
  const Dims& dims = *TypedDimsOf(x);
  if (dims.size() == 4) return Get(x, Form::kBlocked);
  if (const auto found = forms_.find(x); found != forms_.end() && found->second.blocked) return found->second.blocked;
  INGOT_RETURN_IF_ERROR(MakePlain(x));
  INGOT_ASSIGN_OR_RETURN(const Expr image, Reshape(x, {ir::Int64(1), dims[0], dims[1], dims[2]}));
  INGOT_ASSIGN_OR_RETURN(const Expr blocked, LayOut(image, *Layout::Parse(kBlockedLayout, kPlainLayout)));
  forms_[x].blocked = blocked;
  return blocked;
}

Status BlockedForms::MakePlain(const Expr& x) {
  const auto found = forms_.find(x);
  if (found == forms_.end() || found->second.has_plain) return Status();
  found->second.has_plain = true;
  const Dims dims = *TypedDimsOf(x);
  const ir::Var var = ir::Downcast<ir::VarNode>(x);
  if (found->second.channels_last) {
    INGOT_ASSIGN_OR_RETURN(const ir::Call permute, op::MakeCall("permute_dims", {found->second.channels_last},
                                                                {{"axes", ir::AttrValue::Ints({0, 3, 1, 2})}}));
    bindings.push_back({var, permute, nullptr, {}});
    return Status();
  }
  if (found->second.row) {
    INGOT_ASSIGN_OR_RETURN(const ir::Call reshape, op::MakeCall("reshape", {found->second.row, ShapeOf(dims)}));
    bindings.push_back({var, reshape, nullptr, {}});
    return Status();
  }
  Expr value = found->second.blocked ? found->second.blocked : found->second.flat;
  const Dims from = *TypedDimsOf(value);
  const bool is_point = ir::IsConstInt(dims[2], 1) && ir::IsConstInt(dims[3], 1);
  if (!is_point) {  // [N, C / 16, 16, H, W]; with one spatial position, channels are in order already
    INGOT_ASSIGN_OR_RETURN(value, Emit("permute_dims", {value}, {{"axes", ir::AttrValue::Ints({0, 1, 4, 2, 3})}}));
  }
  const bool is_filled = *Channels(dims) % kBlock != 0;
  const Dims whole = {dims[0], op::SimplifyDim(from[1] * kBlock), dims[2], dims[3]};
  if (is_filled) {
    INGOT_ASSIGN_OR_RETURN(value, Reshape(value, whole));
    INGOT_ASSIGN_OR_RETURN(const ir::Call slice, op::MakeCall("strided_slice", {value, IntTuple({1}), IntTuple({0}),
                                                                                IntTuple({*Channels(dims)})}));
    bindings.push_back({var, slice, nullptr, {}});
    return Status();
  }
  INGOT_ASSIGN_OR_RETURN(const ir::Call reshape, op::MakeCall("reshape", {value, ShapeOf(whole)}));
  bindings.push_back({var, reshape, nullptr, {}});
  return Status();
}

Result<Expr> BlockedForms::LayOut(const Expr& x, const Layout& layout) {
  if (!layout.IsBlocked()) return x;
  const Dims dims = *TypedDimsOf(x);
  const Dims filled = Filled(dims, layout);
  Expr value = x;
  if (!EqualDims(dims, filled)) {
    std::vector<int64_t> width;
    for (size_t i = 0; i < dims.size(); ++i) {
      const ir::PrimExpr difference = op::SimplifyDim(filled[i] - dims[i]);
      const auto missing = ir::AsConstInt(difference);
      width.push_back(0);
      width.push_back(missing ? *missing : 0);
    }
    INGOT_ASSIGN_OR_RETURN(value, Emit("nn.pad", {value}, {{"pad_width", ir::AttrValue::Ints(width)}}));
  }
  // Each blocked axis becomes two axes, in the order of the logical ones.
  Dims cut;
  std::vector<size_t> outer(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    outer[i] = cut.size();
    const int64_t block = layout.Block(i);
    cut.push_back(block == 1 ? filled[i] : op::SimplifyDim(ir::FloorDiv(filled[i], ir::Int64(block))));
    if (block != 1) cut.push_back(ir::Int64(block));
  }
  INGOT_ASSIGN_OR_RETURN(value, Reshape(value, cut));
  std::vector<int64_t> axes;
  for (const Layout::Axis& axis : layout.axes()) {
    axes.push_back(static_cast<int64_t>(outer[axis.logical]) + (axis.inner != 0 ? 1 : 0));
  }
  return Emit("permute_dims", {value}, {{"axes", ir::AttrValue::Ints(axes)}});
}

Result<Expr> BlockedForms::Reshape(const Expr& x, const Dims& dims) {
  if (EqualDims(*TypedDimsOf(x), dims)) return x;
  return Emit("reshape", {x, ShapeOf(dims)}, {});
}

Result<Expr> BlockedForms::Emit(const char* name, std::vector<Expr> args, ir::Attrs attrs, const ir::Binding& source) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call made, op::MakeCall(name, std::move(args), std::move(attrs)));
  ir::CallNode call = *made;
  if (source.value) call.span = source.value->span;
  const std::string hint = source.var ? source.var->name : "lv";
  const ir::Var var = ir::Make<ir::VarNode>(hint, call.type, /*dataflow=*/true);
  bindings.push_back({var, ir::Make<ir::CallNode>(std::move(call)), nullptr, source.span});
  return Expr(var);
}

}  // namespace ingot::transform
