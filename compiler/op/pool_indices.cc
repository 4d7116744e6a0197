// nn.max_pool_indices: the place of the greatest value under each window of a pool. The pooled values are an argument,
// so that the pool itself is the same operator with and without indices.
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

struct PooledWindows {
  std::vector<int64_t> size, strides, dilation, padding;  // padding: before each axis, then behind
  bool column_major;
};
Result<PooledWindows> WindowsOf(const ir::Call& call) {
  PooledWindows windows{call->attrs.GetInts("pool_size"), call->attrs.GetInts("strides"),
                        call->attrs.GetInts("dilation"), call->attrs.GetInts("padding"),
                        call->attrs.GetBool("column_major")};
  const size_t rank = windows.size.size();
  const bool fits =
      windows.strides.size() == rank && windows.dilation.size() == rank && windows.padding.size() == 2 * rank;
  if (!fits) return OpError(call, "expected a stride, a dilation and two figures of padding per axis of pool_size");
  return windows;
}

Result<ir::Type> InferPoolIndices(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType pooled, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(const PooledWindows windows, WindowsOf(call));
  INGOT_RETURN_IF_ERROR(CommonDataType(call, data, pooled).status());
  for (const ir::TensorType& tensor : {data, pooled}) {
    if (tensor->rank >= 0 && tensor->rank != static_cast<int>(windows.size.size()) + 2) {
      return OpError(call, "expected rank " + std::to_string(windows.size.size() + 2) + ", got " + Describe(tensor));
    }
  }
  for (size_t axis : {0, 1}) {
    if (data->dims && pooled->dims && DimsDiffer((*data->dims)[axis], (*pooled->dims)[axis])) {
      return OpError(call, "expected the images and channels of " + Describe(data) + ", got " + Describe(pooled));
    }
  }
  return pooled->dims ? TensorOf(*pooled->dims, kIndexDtype, pooled) : TensorOfRank(pooled->rank, kIndexDtype, pooled);
}

// Calls fn(number of the tap, its index in the data) for every tap of a window that lies in the data.
void ForEachTap(const PooledWindows& windows, std::span<const int64_t> dims, const Index& at,
                const std::function<void(const Index&)>& fn) {
  ForEachIndex(windows.size, [&](const Index& tap, int64_t) {
    Index from = at;
    bool is_inside = true;
    for (size_t i = 0; i < tap.size(); ++i) {
      from[2 + i] = at[2 + i] * windows.strides[i] + tap[i] * windows.dilation[i] - windows.padding[i];
      is_inside = is_inside && from[2 + i] >= 0 && from[2 + i] < dims[2 + i];
    }
    if (is_inside) fn(from);
  });
}

Result<std::vector<ReferenceTensor>> ReferencePoolIndices(const ir::Call& call,
                                                          std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const PooledWindows windows, WindowsOf(call));
  const ReferenceTensor& data = inputs[0];
  ReferenceTensor out = NewReference(kIndexDtype, inputs[1].dims);
  ForEachIndex(out.dims, [&](const Index& at, int64_t flat) {
    const double pooled = GetNumber(inputs[1], flat);
    int64_t found = -1;
    ForEachTap(windows, data.dims, at, [&](const Index& from) {
      const double value = GetNumber(data, Flatten(data.dims, from));
      if (found >= 0 || !(value == pooled || (std::isnan(value) && std::isnan(pooled)))) return;
      Index index = from;
      std::vector<int64_t> dims = data.dims;
      if (windows.column_major) {
        std::reverse(index.begin() + 2, index.end());
        std::reverse(dims.begin() + 2, dims.end());
      }
      found = Flatten(dims, index);
    });
    out.ints[static_cast<size_t>(flat)] = found;
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

// The first tap whose value is the pooled one, then its place in the data.
te::Tensor DefinePoolIndices(const TeArgs& args) {
  const PooledWindows windows = *WindowsOf(args.call());
  const te::Tensor &data = args.input(0), &pooled = args.input(1);
  std::vector<ir::IterVar> taps;
  int64_t num_taps = 1;
  for (size_t i = 0; i < windows.size.size(); ++i) {
    taps.push_back(te::ReduceAxis(ir::Int64(windows.size[i]), "k" + std::to_string(i)));
    num_taps *= windows.size[i];
  }
  const auto position = [&](const te::Indices& i, size_t axis, const ir::PrimExpr& tap) {
    return i[2 + axis] * windows.strides[axis] + tap * windows.dilation[axis] - windows.padding[axis];
  };
  const te::Tensor first = te::Compute(
      args.out_dims(),
      [&](const te::Indices& i) {
        te::Indices from = i;
        ir::PrimExpr is_inside = ir::BoolImm(true), number = ir::Int64(0);
        for (size_t axis = 0; axis < taps.size(); ++axis) {
          const ir::PrimExpr place = position(i, axis, taps[axis]->var);
          const ir::PrimExpr& extent = data.shape()[2 + axis];
          is_inside = ir::And(is_inside, ir::And(ir::Int64(0) <= place, place < extent));
          from[2 + axis] = ir::Max(ir::Min(place, extent - 1), ir::Int64(0));
          number = number * windows.size[axis] + taps[axis]->var;
        }
        // Places outside are not read: the data may have no elements.
        const ir::PrimExpr value = ir::IfThenElse(is_inside, data(from), ir::MakeConst(data.dtype(), 0));
        const ir::PrimExpr wanted = pooled(i);
        ir::PrimExpr is_it = ir::Equal(value, wanted);
        if (data.dtype().is_floating()) {
          const auto is_nan = [](const ir::PrimExpr& x) { return ir::CallIntrinsic(ir::Intrinsic::kIsNan, {x}); };
          is_it = ir::Or(is_it, ir::And(is_nan(value), is_nan(wanted)));
        }
        return te::ReduceMin(ir::Select(ir::And(is_inside, is_it), number, ir::Int64(num_taps)), taps);
      },
      "first_tap");
  return te::Compute(
      args.out_dims(),
      [&](const te::Indices& i) {
        ir::PrimExpr rest = first(i);
        const size_t rank = taps.size();
        te::Indices places(rank);
        for (size_t axis = rank; axis-- > 0;) {
          places[axis] = position(i, axis, ir::FloorMod(rest, ir::Int64(windows.size[axis])));
          rest = ir::FloorDiv(rest, ir::Int64(windows.size[axis]));
        }
        ir::PrimExpr index = i[0] * data.shape()[1] + i[1];
        for (size_t k = 0; k < rank; ++k) {
          const size_t axis = windows.column_major ? rank - 1 - k : k;
          index = index * data.shape()[2 + axis] + places[axis];
        }
        return ir::Select(first(i) < ir::Int64(num_taps), index, ir::Int64(-1));
      },
      "pool_indices");
}

double PoolIndicesCost(const ir::Call& call, const Target&) {
  double cost = EstimateElements(call->type);
  for (int64_t taps : call->attrs.GetInts("pool_size")) cost *= static_cast<double>(taps);
  return cost;
}

}  // namespace

std::vector<OpRow> PoolIndicesOps() {
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "nn.max_pool_indices",
       .summary = "the place in the data of each value of a max pool, the first one of equals; -1 where none is equal",
       .arg_names = {"data", "pooled"},
       .attrs = {{"pool_size", AttrType::kInts, {}, true},
                 {"strides", AttrType::kInts, {}, true},
                 {"dilation", AttrType::kInts, {}, true},
                 {"padding", AttrType::kInts, {}, true},
                 {"column_major", AttrType::kBool, false}},
       .infer = InferPoolIndices,
       .reference = ReferencePoolIndices,
       .implementations = {{"direct", Always, PoolIndicesCost, {}, Build<DefinePoolIndices>}},
       .cases = {.rank0 = false,
                 .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Bfloat16(), DataType::Float(64),
                            DataType::Int(8), DataType::UInt(8)}}});
  return rows;
}

}  // namespace ingot::op
