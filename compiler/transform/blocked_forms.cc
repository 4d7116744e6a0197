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

const char* BlockedLayoutName(size_t rank) { return rank == kVolumeRank ? kBlockedVolume : kBlockedLayout; }
Layout BlockedLayout(size_t rank) {
  return *Layout::Parse(BlockedLayoutName(rank), rank == kVolumeRank ? "NCDHW" : kPlainLayout);
}
bool IsPoint(const Dims& dims) {
  return std::all_of(dims.begin() + 2, dims.end(), [](const ir::PrimExpr& dim) { return ir::IsConstInt(dim, 1); });
}

std::optional<int64_t> Channels(const Dims& dims) {
  const bool is_image = dims.size() == kImageRank || dims.size() == kVolumeRank;
  const std::optional<int64_t> channels = is_image ? ir::AsConstInt(dims[1]) : std::nullopt;
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
      INGOT_ASSIGN_OR_RETURN(blocked, LayOut(x, BlockedLayout(dims.size())));
    }
    forms_[x].blocked = blocked;
    if (form == Form::kBlocked) return blocked;
  }
  const size_t height = dims.size() - 2;  // the same axis in blocks and in plain
  Dims view = *TypedDimsOf(form == Form::kFlat ? blocked : known.flat);
  view[height] = form == Form::kFlat ? ir::Int64(1) : dims[height];
  view[height + 1] = form == Form::kFlat ? op::SimplifyDim(dims[height] * dims[height + 1]) : dims[height + 1];
  INGOT_ASSIGN_OR_RETURN(const Expr result, Reshape(form == Form::kFlat ? blocked : known.flat, view));
  Forms& forms = forms_[x];
  return (form == Form::kFlat ? forms.flat : forms.blocked) = result;
}

Result<Expr> BlockedForms::GetPerChannel(const Expr& x, size_t rank) {
  const Dims& dims = *TypedDimsOf(x);
  if (dims.size() == rank) return Get(x, Form::kBlocked);
  if (const auto found = forms_.find(x); found != forms_.end() && found->second.per_channel) {
    return found->second.per_channel;
  }
  INGOT_RETURN_IF_ERROR(MakePlain(x));
  Dims of_one = {ir::Int64(1)};
  of_one.insert(of_one.end(), dims.begin(), dims.end());
  INGOT_ASSIGN_OR_RETURN(const Expr image, Reshape(x, of_one));
  INGOT_ASSIGN_OR_RETURN(const Expr blocked, LayOut(image, BlockedLayout(rank)));
  forms_[x].per_channel = blocked;
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
  const size_t blocks = BlocksAxis(dims.size());
  if (!IsPoint(dims)) {  // [N, C / 16, 16, H, W]; with one spatial position, channels are in order already
    const std::vector<int64_t> axes =
        dims.size() == kVolumeRank ? std::vector<int64_t>{0, 2, 5, 1, 3, 4} : std::vector<int64_t>{0, 1, 4, 2, 3};
    INGOT_ASSIGN_OR_RETURN(value, Emit("permute_dims", {value}, {{"axes", ir::AttrValue::Ints(axes)}}));
  }
  const bool is_filled = *Channels(dims) % kBlock != 0;
  Dims whole = dims;
  whole[1] = op::SimplifyDim(from[blocks] * kBlock);
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
