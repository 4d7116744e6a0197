// Each pass moves the words from one half of the workspace to the other; which half has them, a variable says.
#include "compiler/op/radix_sort.h"

#include <utility>

#include "compiler/op/element_order.h"

namespace ingot::op {
namespace {

using ir::Intrinsic;

constexpr int64_t kPlaceBits = 32, kDigitBits = 8, kValues = int64_t{1} << kDigitBits;

// Bytes of an element's order that may differ: those of the element, or of the float32 in its place.
int64_t DigitsOf(DataType dtype) {
  if (dtype.is_floating()) return OrderDataType(dtype).bits / kDigitBits;
  return dtype.is_bool() ? 1 : dtype.bits / kDigitBits;
}

// Whether the first one of these bits says that the number is below 0.
bool HasSign(DataType dtype) { return dtype.is_floating() || dtype.is_int() || (dtype.is_uint() && dtype.bits == 64); }

}  // namespace

RadixSort::RadixSort(PrimExpr n, DataType dtype, bool descending)
    : n_(std::move(n)),
      dtype_(dtype),
      descending_(descending),
      is_packed_(OrderDataType(dtype).bits <= 32),
      num_digits_(DigitsOf(dtype)),
      words_(ir::MakeBuffer("words", DataType::Int(64), {ir::Int64(2), n_})),
      places_(ir::MakeBuffer("places", DataType::Int(64), {ir::Int64(2), n_})),
      counts_(ir::MakeBuffer("counts", DataType::Int(32), {ir::Int64(num_digits_), ir::Int64(kValues)}, "local")),
      half_(ir::MakeBuffer("half", DataType::Int(64), {ir::Int64(1)}, "local")),
      total_(ir::MakeBuffer("total", DataType::Int(32), {ir::Int64(1)}, "local")) {}

std::vector<Buffer> RadixSort::local() const {
  std::vector<Buffer> buffers = {counts_, half_, total_, words_};
  if (!is_packed_) buffers.push_back(places_);
  return buffers;
}

PrimExpr RadixSort::Sorted(const PrimExpr& i) const {
  if (!is_packed_) return Load(places_, {Get(half_), i});
  const PrimExpr mask = ir::Int64((int64_t{1} << kPlaceBits) - 1);
  return ir::CallIntrinsic(Intrinsic::kBitwiseAnd, {Load(words_, {Get(half_), i}), mask});
}

PrimExpr RadixSort::Word(const PrimExpr& order, const PrimExpr& place) const {
  return is_packed_ ? ir::Cast(DataType::Int(64), order) * (int64_t{1} << kPlaceBits) + place : order;
}

PrimExpr RadixSort::Digit(const PrimExpr& word, const PrimExpr& digit) const {
  const PrimExpr shift = digit * kDigitBits + (is_packed_ ? kPlaceBits : 0);
  const PrimExpr bits = ir::CallIntrinsic(Intrinsic::kShiftRight, {word, shift});
  const PrimExpr value = ir::CallIntrinsic(Intrinsic::kBitwiseAnd, {bits, ir::Int64(kValues - 1)});
  const int64_t all = descending_ ? kValues - 1 : 0;
  const PrimExpr sign = ir::Int64(all ^ (HasSign(dtype_) ? kValues / 2 : 0));
  const PrimExpr turned = ir::Select(ir::Equal(digit, ir::Int64(num_digits_ - 1)), sign, ir::Int64(all));
  return ir::CallIntrinsic(Intrinsic::kBitwiseXor, {value, turned});
}

Stmt RadixSort::CountDigits(const Elements& element) const {
  const Stmt clear = Loops({ir::Int64(num_digits_), ir::Int64(kValues)},
                           [&](const Places& i) { return Store(counts_, ir::MakeConst(counts_->dtype, 0), i); });
  const Stmt count = Loop(n_, [&](const PrimExpr& i) {
    return Let("word", Word(OrderOf(element(i)), i), [&](const PrimExpr& word) {
      std::vector<Stmt> steps = {Store(words_, word, {ir::Int64(0), i})};
      if (!is_packed_) steps.push_back(Store(places_, i, {ir::Int64(0), i}));
      for (int64_t digit = 0; digit < num_digits_; ++digit) {
        steps.push_back(Let("value", Digit(word, ir::Int64(digit)), [&](const PrimExpr& value) {
          return Store(counts_, Count(ir::Int64(digit), value) + 1, {ir::Int64(digit), value});
        }));
      }
      return ir::MakeSeq(std::move(steps));
    });
  });
  return ir::MakeSeq({clear, count, Set(half_, ir::Int64(0))});
}

// The counts of a digit's values become the places of the first elements that have them.
Stmt RadixSort::StartPlaces(const PrimExpr& digit) const {
  return ir::MakeSeq(
      {Set(total_, ir::MakeConst(total_->dtype, 0)), Loop(ir::Int64(kValues), [&](const PrimExpr& i) {
         return Let("count", Count(digit, i), [&](const PrimExpr& count) {
           return ir::MakeSeq({Store(counts_, Get(total_), {digit, i}), Set(total_, Get(total_) + count)});
         });
       })});
}

Stmt RadixSort::Move(const PrimExpr& digit) const {
  const auto move = [&](const PrimExpr& from, const PrimExpr& i) {
    return Let("word", Load(words_, {from, i}), [&](const PrimExpr& word) {
      return Let("value", Digit(word, digit), [&](const PrimExpr& value) {
        return Let("next", Count(digit, value), [&](const PrimExpr& next) {
          const Places to = {ir::Int64(1) - from, ir::Cast(DataType::Int(64), next)};
          std::vector<Stmt> steps = {Store(words_, word, to), Store(counts_, next + 1, {digit, value})};
          if (!is_packed_) steps.push_back(Store(places_, Load(places_, {from, i}), to));
          return ir::MakeSeq(std::move(steps));
        });
      });
    });
  };
  return Let("from", Get(half_), [&](const PrimExpr& from) {
    return ir::MakeSeq({Loop(n_, [&](const PrimExpr& i) { return move(from, i); }), Set(half_, ir::Int64(1) - from)});
  });
}

Stmt RadixSort::Sort(const Elements& element) const {
  const Stmt passes = Loop(ir::Int64(num_digits_), [&](const PrimExpr& digit) {
    const PrimExpr of_first = Digit(Load(words_, {Get(half_), ir::Int64(0)}), digit);
    const PrimExpr all = ir::Cast(counts_->dtype, n_);
    return If(ir::NotEqual(Count(digit, of_first), all), ir::MakeSeq({StartPlaces(digit), Move(digit)}));
  });
  return ir::MakeSeq({CountDigits(element), passes});
}

}  // namespace ingot::op
