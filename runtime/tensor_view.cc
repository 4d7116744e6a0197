// The checks of a tensor's description: dtype, device, dims, strides, sizes. Every tensor of every invocation passes
// them, so this file is compiled for speed; the refusals are marked cold.
#include "runtime/tensor_view.h"

#include <limits>

namespace ingot {
namespace {

[[gnu::cold]] Status InvalidView(Text message) { return Status(StatusCode::kInvalidArgument, message); }

[[gnu::cold]] Status InvalidRank(size_t rank) { return InvalidView({"rank ", rank, ", expected at most ", kMaxRank}); }

[[gnu::cold]] Status NegativeDim(size_t axis, int64_t extent) {
  return InvalidView({"dimension ", axis, " is negative: ", extent});
}

[[gnu::cold]] Status NegativeStride(int axis, int64_t stride) {
  return InvalidView({"stride ", axis, " is negative: ", stride, "; negative strides are not supported"});
}

[[gnu::cold]] Status RefuseTypeOrDevice(DataType dtype, DeviceId device) {
  if (!dtype.IsKnown()) return InvalidView({"unsupported data type ", dtype.ToString()});
  return InvalidView({"unsupported device ", device.ToString()});
}

[[gnu::cold]] Status TooFar(const TensorView& view) {
  return InvalidView({"the strides of ", view.TypeToString(), " reach beyond 64 bits"});
}

// Bytes from the first element to the end of the last; 0 without elements. For sub-byte types, which are always
// compact, the packed size.
Result<int64_t> SpanBytesOf(const TensorView& view) {
  if (view.num_elements == 0 || view.is_compact) return view.size_bytes;
  int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(view.dims[i] - 1, view.strides[i], &step) || __builtin_add_overflow(last, step, &last)) {
      return TooFar(view);
    }
  }
  if (last == std::numeric_limits<int64_t>::max()) return TooFar(view);
  return view.dtype.SizeBytes(last + 1);
}

}  // namespace

[[gnu::cold]] std::string ShapeToString(DataType dtype, std::span<const int64_t> dims) {
  std::string text = StrCat({dtype.ToString(), "["});
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat({i > 0 ? ", " : "", dims[i]});
  return text + "]";
}

Result<int64_t> CountElements(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) return InvalidRank(dims.size());
  int64_t non_zero = 1;
  bool is_empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return NegativeDim(i, dims[i]);
    is_empty |= dims[i] == 0;
    if (dims[i] != 0 && __builtin_mul_overflow(non_zero, dims[i], &non_zero)) {
      return InvalidView("the number of elements overflows 64 bits");
    }
  }
  return is_empty ? 0 : non_zero;
}

Status AssignView(TensorView& view, void* data, DataType dtype, std::span<const int64_t> dims, const int64_t* strides,
                  DeviceId device) {
  if (!dtype.IsKnown() || !device.IsKnown()) return RefuseTypeOrDevice(dtype, device);
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  INGOT_ASSIGN_OR_RETURN(const int64_t bytes, dtype.SizeBytes(count));
  view = TensorView();
  view.data = data;
  view.dtype = dtype;
  view.device = device;
  view.num_elements = count;
  view.size_bytes = bytes;
  view.rank = static_cast<int32_t>(dims.size());
  int64_t compact_stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.dims[i] = dims[i];
    view.strides[i] = strides != nullptr ? strides[i] : compact_stride;
    if (view.strides[i] < 0) return NegativeStride(i, view.strides[i]);
    // Axes of one element are never stepped along; without elements nothing is.
    if (dims[i] > 1 && view.strides[i] != compact_stride && count > 0) view.is_compact = false;
    compact_stride *= dims[i] > 1 ? dims[i] : 1;  // cannot overflow: CountElements took the non-zero product
  }
  if (!view.is_compact) {
    if (dtype.total_bits() % 8 != 0) {
      return InvalidView({"strides of the sub-byte type ", dtype.ToString(), " are not supported"});
    }
    INGOT_RETURN_IF_ERROR(SpanBytesOf(view).status());
  }
  if (data == nullptr && count > 0) return InvalidView({"no data for ", view.TypeToString()});
  return Status();
}

Result<TensorView> TensorView::Make(void* data, DataType dtype, std::span<const int64_t> dims, const int64_t* strides,
                                    DeviceId device) {
  Result<TensorView> view{TensorView()};
  if (Status status = AssignView(*view, data, dtype, dims, strides, device); !status.ok()) view = std::move(status);
  return view;
}

int64_t TensorView::SpanBytes() const { return SpanBytesOf(*this).value(); }

}  // namespace ingot
