// One function per operator states its assumptions with the methods of Assumptions (Equal, Is, AtMost, ...); kRows says
// which operator has which function. Element-wise operators of two tensors broadcast without a row there.
#include "compiler/op/assumed_dims.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "compiler/arith/analyzer.h"
#include "compiler/op/broadcast.h"
#include "compiler/op/einsum.h"
#include "compiler/op/image_blocks.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "compiler/op/topi/byte_products.h"
#include "compiler/op/topi/winograd.h"

namespace ingot::op {
namespace {

// The types of a call's operands. Where the only argument is a tuple (written out, or a variable), the types of its
// fields.
std::vector<ir::Type> OperandTypesOf(const std::vector<ir::Expr>& args) {
  const auto* tuple = args.size() == 1 && args[0] ? ir::As<ir::TupleTypeNode>(args[0]->type) : nullptr;
  if (tuple != nullptr) return tuple->fields;
  std::vector<ir::Type> types;
  for (const ir::Expr& operand : OperandsOf(args)) types.push_back(operand ? operand->type : nullptr);
  return types;
}

// The dims of a call's operands, and the two lists that the functions below fill.
class Assumptions {
 public:
  explicit Assumptions(const ir::Call& call) : call_(call) {
    for (const ir::Type& operand : OperandTypesOf(call->args)) {
      const auto* type = ir::As<ir::TensorTypeNode>(operand);
      known_ = known_ && (type == nullptr || type->dims.has_value());
      operands_.push_back(type);
    }
  }

  const ir::Call& call() const { return call_; }
  // Every tensor has known dims.
  bool known() const { return known_; }
  size_t num_operands() const { return operands_.size(); }
  bool is_tensor(size_t operand) const { return operands_[operand] != nullptr; }
  const Dims& dims(size_t operand) const { return *operands_[operand]->dims; }
  size_t rank(size_t operand) const { return static_cast<size_t>(operands_[operand]->rank); }
  bool is_integral(size_t operand) const {
    return operands_[operand]->dtype && operands_[operand]->dtype->is_integral();
  }
  const ir::PrimExpr& dim(OperandDim at) const { return dims(at.operand)[at.axis]; }
  size_t Axis(const char* attr, size_t operand = 0) const { return AxisOf(call_->attrs.GetInt(attr), operand); }
  size_t AxisOf(int64_t axis, size_t operand = 0) const {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank(operand)) : axis);
  }
  // A shape among the arguments; null where it is not known.
  const Dims* ShapeArgument(size_t i) const {
    const auto* type = ir::As<ir::ShapeTypeNode>(call_->args[i]->type);
    return type != nullptr && type->dims ? &*type->dims : nullptr;
  }

  void Equal(OperandDim a, OperandDim b, int64_t factor = 1) {
    equal.push_back({a, b, factor});
    Is(dim(a), SimplifyDim(dim(b) * factor));
  }
  void Is(const ir::PrimExpr& actual, const ir::PrimExpr& expected) {
    if (!DimsEqual(actual, expected)) unproved.push_back({actual, expected});
  }
  void Is(OperandDim at, int64_t number) { Is(dim(at), ir::Int64(number)); }
  void AtMost(const ir::PrimExpr& actual, const ir::PrimExpr& limit) {
    if (arith::Analyzer().ProveLessEqual(actual, limit)) return;
    unproved.push_back({actual, ir::Min(actual, limit)});
  }
  void AtLeast(const ir::PrimExpr& actual, const ir::PrimExpr& limit) {
    if (arith::Analyzer().ProveLessEqual(limit, actual)) return;
    unproved.push_back({actual, ir::Max(actual, limit)});
  }
  // The dim is not 0 where the call has a result with elements, each of which is taken from along that axis.
  void HasElements(OperandDim at) {
    const auto* result = ir::As<ir::TensorTypeNode>(call_->type);
    if (result == nullptr || !result->dims) return AtLeast(dim(at), ir::Int64(1));
    AtLeast(dim(at), SimplifyDim(ir::Min(ProductOf(*result->dims), ir::Int64(1))));
  }
  // A window fits into the data, and what is cut off is there: no dim of the result is negative.
  void ResultExists() {
    const auto* result = ir::As<ir::TensorTypeNode>(call_->type);
    if (result == nullptr || !result->dims) return;
    for (const ir::PrimExpr& dim : *result->dims) AtLeast(dim, ir::Int64(0));
  }
  void MultipleOf(const ir::PrimExpr& actual, int64_t factor) {
    Is(actual, SimplifyDim(ir::FloorDiv(actual, ir::Int64(factor)) * factor));
  }
  // The dim is as long as the whole, or 1 and repeated.
  void BroadcastsTo(const ir::PrimExpr& actual, const ir::PrimExpr& whole) {
    if (ir::IsConstInt(actual, 1) || DimsEqual(actual, whole)) return;
    unproved.push_back({actual, ir::Select(ir::Equal(actual, ir::Int64(1)), ir::Int64(1), whole)});
  }
  // The two are equal, or one of them is 1.
  void BroadcastsWith(const ir::PrimExpr& actual, const ir::PrimExpr& other) {
    if (ir::IsConstInt(actual, 1) || ir::IsConstInt(other, 1)) return;
    if (ir::AsConstInt(actual)) return BroadcastsTo(other, actual);
    if (ir::AsConstInt(other) || DimsEqual(actual, other)) return BroadcastsTo(actual, other);
    const ir::PrimExpr one = ir::Int64(1);
    const ir::PrimExpr expected = ir::Select(ir::Equal(actual, one), one, other);
    unproved.push_back({actual, ir::Select(ir::Equal(other, one), actual, expected)});
  }
  // The operand's dims broadcast to those of a whole, aligned at the end; the last `skipped` ones are left out.
  void BroadcastTo(size_t operand, const Dims& whole, size_t skipped = 0) {
    const Dims& own = dims(operand);
    for (size_t i = skipped + 1; i <= std::min(own.size(), whole.size()); ++i) {
      BroadcastsTo(own[own.size() - i], whole[whole.size() - i]);
    }
  }

  std::vector<AssumedEqual> equal;
  std::vector<AssumedDim> unproved;

 private:
  const ir::Call& call_;
  std::vector<const ir::TensorTypeNode*> operands_;  // null: no tensor
  bool known_ = true;
};

// Aligned at the end, each operand's dims broadcast with those that the operands before it broadcast to.
void Broadcast(Assumptions& a) {
  Dims whole;  // from the last axis on
  for (size_t i = 0; i < a.num_operands(); ++i) {
    if (!a.is_tensor(i)) continue;
    const Dims& own = a.dims(i);
    for (size_t at = 0; at < own.size(); ++at) {
      const ir::PrimExpr& dim = own[own.size() - 1 - at];
      if (at == whole.size()) {
        whole.push_back(dim);
      } else {
        a.BroadcastsWith(dim, whole[at]);
        whole[at] = BroadcastDim(whole[at], dim);
      }
    }
  }
}

void BroadcastTo(Assumptions& a) {
  if (const Dims* whole = a.ShapeArgument(1)) a.BroadcastTo(0, *whole);
}

void Matmul(Assumptions& a) {
  const size_t rows = a.rank(1) < 2 ? 0 : a.rank(1) - 2;
  a.Equal({0, a.rank(0) - 1}, {1, rows});
  if (a.rank(0) <= 2 || a.rank(1) <= 2) return;
  const auto* result = ir::As<ir::TensorTypeNode>(a.call()->type);
  for (size_t operand : {0, 1}) a.BroadcastTo(operand, *result->dims, 2);
}

void MatmulPacked(Assumptions& a) {
  a.Equal({0, a.rank(0) - 1}, {1, 1});
  const auto width = ir::AsConstInt(a.dims(1)[2]);
  if (width) a.Is({1, 0}, (a.call()->attrs.GetInt("units") - 1) / *width + 1);
}

void MatmulInteger(Assumptions& a) {
  Matmul(a);
  a.BroadcastTo(2, a.dims(0));
  a.BroadcastTo(3, a.dims(1));
}

void PackBytes(Assumptions& a) {
  const DataType dtype = *ir::As<ir::TensorTypeNode>(a.call()->args[0]->type)->dtype;
  a.MultipleOf(a.dims(0).back(), topi::ElementsPerWord(dtype));
}

// The result has as many elements as the data.
void Reshape(Assumptions& a) {
  if (const Dims* shape = a.ShapeArgument(1)) a.Is(ProductOf(*shape), ProductOf(a.dims(0)));
}

// Named axes are 1. Without names only axes that are known to be 1 are removed, so a symbolic dim must not be 1.
void Squeeze(Assumptions& a) {
  const ir::AttrValue* axes = a.call()->attrs.Find("axis");
  if (!axes->is_none()) {
    for (int64_t axis : a.call()->attrs.GetInts("axis")) a.Is({0, a.AxisOf(axis)}, 1);
    return;
  }
  for (const ir::PrimExpr& dim : a.dims(0)) {
    if (!ir::AsConstInt(dim)) a.Is(dim, ir::Select(ir::Equal(dim, ir::Int64(1)), ir::Int64(0), dim));
  }
}

// Operands agree in all dims but that of the axis.
void Concat(Assumptions& a) {
  const size_t axis = a.Axis("axis");
  for (size_t i = 1; i < a.num_operands(); ++i) {
    for (size_t at = 0; at < a.rank(0); ++at) {
      if (at != axis) a.Equal({0, at}, {i, at});
    }
  }
}

// All dims of one label are equal, or 1 and repeated.
void Einsum(Assumptions& a) {
  std::vector<int> ranks;
  for (size_t i = 0; i < a.num_operands(); ++i) ranks.push_back(static_cast<int>(a.rank(i)));
  const Result<EinsumLabels> labels = ParseEinsum(a.call()->attrs.GetString("subscripts"), ranks);
  if (!labels.ok()) return;
  std::map<int, ir::PrimExpr> extents;
  for (size_t i = 0; i < a.num_operands(); ++i) {
    for (size_t axis = 0; axis < labels->inputs[i].size(); ++axis) {
      const ir::PrimExpr& dim = a.dims(i)[axis];
      const auto [extent, is_first] = extents.try_emplace(labels->inputs[i][axis], dim);
      if (is_first) continue;
      a.BroadcastsWith(dim, extent->second);
      extent->second = BroadcastDim(extent->second, dim);
    }
  }
}

// Operands from the second on have one element for each place along an axis of the first.
void PerChannel(Assumptions& a, const char* attr) {
  for (size_t i = 1; i < a.num_operands(); ++i) a.Equal({0, a.Axis(attr)}, {i, 0});
}
void PerAxis(Assumptions& a) { PerChannel(a, "axis"); }
void PerChannelAxis(Assumptions& a) { PerChannel(a, "channel_axis"); }
void GroupNorm(Assumptions& a) {
  PerChannelAxis(a);
  a.MultipleOf(a.dims(0)[a.Axis("channel_axis")], a.call()->attrs.GetInt("num_groups"));
}

// Scale and shift have the dims of the normalised axes.
void PerAxes(Assumptions& a) {
  const std::vector<int64_t> axes = a.call()->attrs.GetInts("axes");
  for (size_t i = 1; i < a.num_operands(); ++i) {
    for (size_t k = 0; k < axes.size(); ++k) a.Equal({0, a.AxisOf(axes[k])}, {i, k});
  }
}

// The data's channels are those of the kernel, in groups. Nothing is assumed of blocked layouts, which convert_layout
// gives to calls that were checked before.
void Convolution(Assumptions& a) {
  const ir::Attrs& attrs = a.call()->attrs;
  const size_t in = attrs.GetString("data_layout").find('C');
  const std::string& kernel = attrs.GetString("kernel_layout");
  if (in == std::string::npos || kernel.size() != a.rank(0) || a.rank(0) != a.rank(1)) return;
  a.Equal({0, in}, {1, kernel.find('I')}, attrs.GetInt("groups"));
  a.MultipleOf(a.dims(1)[kernel.find('O')], attrs.GetInt("groups"));
  a.ResultExists();
}
// The blocks of channels are 16 wide on both sides.
void WordConvolution(Assumptions& a) {
  a.Equal({0, 1}, {1, 1}, a.call()->attrs.GetInt("groups"));
  a.MultipleOf(a.dims(1)[0], a.call()->attrs.GetInt("groups"));
  a.ResultExists();
}
void TransposedConvolution(Assumptions& a) {
  const ir::Attrs& attrs = a.call()->attrs;
  const size_t in = attrs.GetString("data_layout").find('C'), kernel = attrs.GetString("kernel_layout").find('I');
  if (in == std::string::npos || kernel == std::string::npos) return;
  a.Equal({0, in}, {1, kernel});
  a.MultipleOf(a.dims(0)[in], attrs.GetInt("groups"));
  a.ResultExists();
}
void PoolWindow(Assumptions& a) {
  if (a.call()->attrs.GetString("layout").size() == a.rank(0)) a.ResultExists();
}

// Images and channels are as many as the data's.
void PoolIndices(Assumptions& a) {
  for (size_t axis : {0, 1}) a.Equal({0, axis}, {1, axis});
}

void Attention(Assumptions& a) {
  std::vector<std::string> layouts(4, "BSNH");
  const ir::AttrValue* attr = a.call()->attrs.Find("layouts");
  if (attr != nullptr && !attr->is_none()) {
    const auto& list = *attr->get<ir::AttrList>();
    for (size_t i = 0; i < list.size(); ++i) layouts[i] = *list[i].get<std::string>();
  }
  const auto at = [&](size_t operand, char axis) { return OperandDim{operand, layouts[operand].find(axis)}; };
  a.Equal(at(0, 'B'), at(1, 'B'));
  a.Equal(at(0, 'B'), at(2, 'B'));
  a.Equal(at(0, 'H'), at(1, 'H'));
  a.Equal(at(1, 'S'), at(2, 'S'));
  a.Equal(at(1, 'N'), at(2, 'N'));
  if (a.num_operands() < 4) return;
  a.BroadcastTo(3, {a.dim(at(0, 'B')), a.dim(at(0, 'N')), a.dim(at(0, 'S')), a.dim(at(1, 'S'))});
}

void ReverseSequence(Assumptions& a) { a.Equal({0, a.Axis("batch_axis")}, {1, 0}); }

void GatherNd(Assumptions& a) {
  const auto batches = static_cast<size_t>(a.call()->attrs.GetInt("batch_dims"));
  for (size_t i = 0; i < batches; ++i) a.Equal({0, i}, {1, i});
  const auto depth = ir::AsConstInt(a.dims(1).back());
  for (size_t i = 0; depth && i < static_cast<size_t>(*depth); ++i) a.HasElements({0, batches + i});
}

// Indices are at most as long as the data, except along the axis.
void GatherElements(Assumptions& a) {
  for (size_t i = 0; i < a.rank(0); ++i) {
    if (i != a.Axis("axis")) a.AtMost(a.dims(1)[i], a.dims(0)[i]);
  }
  a.HasElements({0, a.Axis("axis")});
}
void ScatterElements(Assumptions& a) {
  for (size_t i = 0; i < a.rank(0); ++i) {
    a.Equal({1, i}, {2, i});
    if (i != a.Axis("axis")) a.AtMost(a.dims(1)[i], a.dims(0)[i]);
  }
}
// Updates hold an element, or a slice of the data, for each place that the indices name.
void ScatterNd(Assumptions& a) {
  const size_t outer = a.rank(1) - 1;
  const auto depth = ir::AsConstInt(a.dims(1).back());
  for (size_t i = 0; depth && i < a.rank(2); ++i) {
    a.Equal(i < outer ? OperandDim{1, i} : OperandDim{0, i - outer + static_cast<size_t>(*depth)}, {2, i});
  }
}

// States are [directions, batch, hidden] beside gates of [steps, batch, ...] and weights of [directions, panels,
// hidden, gates, lanes]; after them lengths are [batch], a bias is [directions, panels, .., lanes].
template <size_t num_states>
void Recurrent(Assumptions& a) {
  const bool has_bytes = a.is_integral(1);  // whose rows are words
  for (size_t i = 2; i < a.num_operands(); ++i) {
    if (i < 2 + num_states) {
      a.Equal({0, 1}, {i, 1});
      a.Equal({1, 0}, {i, 0});
      if (!has_bytes) a.Equal({1, 2}, {i, 2});
    } else if (a.is_integral(i)) {
      a.Equal({0, 1}, {i, 0});
    } else {
      a.Equal({1, 0}, {i, 0});
      a.Equal({1, 1}, {i, 1});
      if (a.rank(i) == 4) a.Is({i, 2}, has_bytes && i == 2 + num_states ? 8 : 3);
      a.Equal({1, 4}, {i, a.rank(i) - 1});
    }
  }
}

// Batch and steps are those of the query; the numbers of columns are constants.
void LinearAttention(Assumptions& a) {
  for (size_t i = 1; i < a.num_operands(); ++i) {
    a.Equal({0, 0}, {i, 0});
    if (i != 3) a.Equal({0, 1}, {i, 1});
  }
}

// Matrices are square.
void Determinant(Assumptions& a) { a.Equal({0, 1}, {0, 2}); }

void GridSample(Assumptions& a) {
  a.Equal({0, 0}, {1, 0});
  a.Is({1, a.rank(1) - 1}, static_cast<int64_t>(a.rank(0)) - 2);
  for (size_t i = 2; i < a.rank(0); ++i) a.HasElements({0, i});
}

// Every box has four coordinates and the number of an image; images have elements.
void RoiAlign(Assumptions& a) {
  a.Equal({1, 0}, {2, 0});
  a.Is({1, 1}, 4);
  for (size_t i = 0; i < a.rank(0); ++i) a.HasElements({0, i});
}

// Every node has a feature, a threshold and three children; there is a node, and a column that it reads.
void TreeLeaves(Assumptions& a) {
  a.Equal({1, 0}, {2, 0});
  a.Equal({1, 0}, {3, 0});
  a.Is({3, 1}, 3);
  a.AtLeast(a.dims(0)[1], ir::Int64(1));
  a.AtLeast(a.dims(1)[0], ir::Int64(1));
}

void NonMaximumSuppression(Assumptions& a) {
  a.Equal({0, 0}, {1, 0});
  a.Equal({0, 1}, {1, 2});
  a.Is({0, 2}, 4);
  for (size_t i = 2; i < a.num_operands(); ++i) {
    const ir::PrimExpr count = ProductOf(a.dims(i));
    const bool is_left_out = i == 4 && ir::IsConstInt(count, 0);  // the least score
    if (!is_left_out) a.Is(count, ir::Int64(1));
  }
}

void TopK(Assumptions& a) { a.AtLeast(a.dims(0)[a.Axis("axis")], ir::Int64(a.call()->attrs.GetInt("k"))); }

// An axis whose elements are repeated at its border has elements.
void Pad(Assumptions& a) {
  a.ResultExists();
  if (a.call()->attrs.GetString("pad_mode") == "constant") return;
  const std::vector<int64_t> width = a.call()->attrs.GetInts("pad_width");
  for (size_t i = 0; i < a.rank(0); ++i) {
    if (width[2 * i] + width[2 * i + 1] > 0) a.AtLeast(a.dims(0)[i], ir::Int64(1));
  }
}

void Arg(Assumptions& a) {
  const std::optional<std::vector<int64_t>> axis = IntsAttr(a.call(), "axis");
  a.HasElements({0, a.AxisOf(axis ? axis->front() : 0)});
}
void Take(Assumptions& a) { a.HasElements({0, a.Axis("axis")}); }

// Something is resized to something; axes that are not resized keep their lengths. Scales are as many as axes.
void Resize(Assumptions& a) {
  const Dims* size = a.ShapeArgument(1);
  if (a.num_operands() > 2 && a.is_tensor(2)) {
    const std::optional<std::vector<int64_t>> axes = IntsAttr(a.call(), "axes");
    a.Is(a.dims(2)[0], ir::Int64(static_cast<int64_t>(axes ? axes->size() : a.rank(0))));
  }
  if (size == nullptr) return;
  const std::optional<std::vector<int64_t>> axes = IntsAttr(a.call(), "axes");
  for (size_t i = 0; i < size->size(); ++i) {
    const bool is_resized = !axes || std::ranges::any_of(*axes, [&](int64_t axis) { return a.AxisOf(axis) == i; });
    if (is_resized) {
      a.HasElements({0, i});
    } else {
      a.Is((*size)[i], a.dims(0)[i]);
    }
  }
}

// The viewed part is at most as large as the cache.
void CacheView(Assumptions& a) {
  const Dims* part = a.ShapeArgument(1);
  for (size_t i = 0; part != nullptr && i < part->size(); ++i) a.AtMost((*part)[i], a.dims(0)[i]);
}

// The data with its padding covers what the first window reads beside its first element.
void WinogradInput(Assumptions& a) {
  const std::vector<int64_t> padding = a.call()->attrs.GetInts("padding");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t shared = topi::kWinogradPlaces - topi::kWinogradTile;
    a.AtLeast(SimplifyDim(a.dims(0)[2 + i] + (padding[i] + padding[2 + i])), ir::Int64(shared));
  }
}

// The tiles cover the size.
void WinogradOutput(Assumptions& a) {
  const Dims* size = a.ShapeArgument(1);
  for (size_t i = 0; size != nullptr && i < size->size(); ++i) {
    a.AtMost((*size)[i], SimplifyDim(a.dims(0)[4 + i] * topi::kWinogradTile));
  }
}

// The bytes hold as many elements; other axes are the same.
void UnpackBits(Assumptions& a) {
  const Dims* shape = a.ShapeArgument(1);
  const std::optional<DataType> dtype = DataTypeAttr(a.call(), "dtype");
  if (shape == nullptr || shape->size() != a.rank(0) || !dtype) return;
  const Dims& bytes = a.dims(0);
  for (size_t i = 0; i + 1 < shape->size(); ++i) a.Is((*shape)[i], bytes[i]);
  a.AtMost(shape->back(), SimplifyDim(bytes.back() * (8 / dtype->bits)));
}

// A window has weights and a begin.
void WindowSum(Assumptions& a) { a.Equal({1, 0}, {2, 0}); }

// The rows are those of whole channels, and the columns as many as the blocks that an image of the size has.
void Fold(Assumptions& a) {
  const auto* result = ir::As<ir::TensorTypeNode>(a.call()->type);
  const Dims* size = a.ShapeArgument(1);
  const std::optional<std::vector<int64_t>> block = IntsAttr(a.call(), "block");
  if (size == nullptr || !block || result == nullptr) return;
  a.MultipleOf(a.dims(0)[1], std::accumulate(block->begin(), block->end(), int64_t{1}, std::multiplies<int64_t>()));
  const std::optional<Dims> counts = FoldCounts(a.call(), *size);
  if (counts) a.Is(a.dims(0)[2], ProductOf(*counts));
}

constexpr struct {
  std::string_view row;
  void (*assume)(Assumptions&);
} kRows[] = {
    {"argmax", Arg},
    {"argmin", Arg},
    {"broadcast_to", BroadcastTo},
    {"concat", Concat},
    {"einsum", Einsum},
    {"gather_elements", GatherElements},
    {"gather_nd", GatherNd},
    {"image.grid_sample", GridSample},
    {"image.resize", Resize},
    {"kv_cache.view", CacheView},
    {"linalg.det", Determinant},
    {"matmul", Matmul},
    {"matmul_bytes", MatmulPacked},
    {"matmul_integer", MatmulInteger},
    {"matmul_packed", MatmulPacked},
    {"nn.attention", Attention},
    {"nn.avg_pool1d", PoolWindow},
    {"nn.avg_pool2d", PoolWindow},
    {"nn.avg_pool3d", PoolWindow},
    {"nn.batch_norm", PerAxis},
    {"nn.conv1d", Convolution},
    {"nn.conv1d_transpose", TransposedConvolution},
    {"nn.conv2d", Convolution},
    {"nn.conv2d_bytes", WordConvolution},
    {"nn.conv2d_pairs", WordConvolution},
    {"nn.conv2d_transpose", TransposedConvolution},
    {"nn.conv3d", Convolution},
    {"nn.conv3d_transpose", TransposedConvolution},
    {"nn.group_norm", GroupNorm},
    {"nn.gru", Recurrent<1>},
    {"nn.instance_norm", PerChannelAxis},
    {"nn.layer_norm", PerAxes},
    {"nn.fold", Fold},
    {"nn.linear_attention", LinearAttention},
    {"nn.lp_pool1d", PoolWindow},
    {"nn.lp_pool2d", PoolWindow},
    {"nn.lp_pool3d", PoolWindow},
    {"nn.lstm", Recurrent<2>},
    {"nn.max_pool1d", PoolWindow},
    {"nn.max_pool2d", PoolWindow},
    {"nn.max_pool3d", PoolWindow},
    {"nn.max_pool_indices", PoolIndices},
    {"nn.pad", Pad},
    {"nn.prelu", PerAxis},
    {"nn.rms_norm", PerAxes},
    {"nn.rnn", Recurrent<1>},
    {"nn.winograd_input", WinogradInput},
    {"nn.winograd_output", WinogradOutput},
    {"pack_bytes", PackBytes},
    {"reshape", Reshape},
    {"reverse_sequence", ReverseSequence},
    {"scatter_elements", ScatterElements},
    {"scatter_nd", ScatterNd},
    {"squeeze", Squeeze},
    {"take", Take},
    {"topk", TopK},
    {"tree_leaves", TreeLeaves},
    {"unpack_bits", UnpackBits},
    {"vision.all_class_non_max_suppression", NonMaximumSuppression},
    {"vision.roi_align", RoiAlign},
    {"where", Broadcast},
    {"window_sum", WindowSum},
};

Assumptions AssumptionsOf(const ir::Call& call) {
  Assumptions assumptions(call);
  const OpRow* row = RowOf(call);
  if (row == nullptr || !assumptions.known()) return assumptions;
  for (const auto& [name, assume] : kRows) {
    if (row->name != name) continue;
    assume(assumptions);
    return assumptions;
  }
  // Element-wise operators of two tensors.
  if (row->fusion == FusionClass::kBroadcast && row->arg_names.size() == 2) Broadcast(assumptions);
  return assumptions;
}

}  // namespace

std::vector<ir::Expr> OperandsOf(const std::vector<ir::Expr>& args) {
  const auto* tuple = args.size() == 1 ? ir::As<ir::TupleNode>(args[0]) : nullptr;
  return tuple != nullptr ? tuple->fields : args;
}

std::vector<AssumedEqual> AssumedEqualDims(const ir::Call& call) {
  const bool has_tuple_variable = call->args.size() == 1 && ir::As<ir::TupleTypeNode>(call->args[0]->type) != nullptr &&
                                  ir::As<ir::TupleNode>(call->args[0]) == nullptr;
  if (has_tuple_variable) return {};  // the caller has no expressions for its fields
  return AssumptionsOf(call).equal;
}

std::vector<AssumedDim> UnprovedDims(const ir::Call& call) { return AssumptionsOf(call).unproved; }

}  // namespace ingot::op
