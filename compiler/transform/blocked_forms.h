// The forms that an image has while convert_layout goes through a block's bindings: plain (its own), blocked [N, C /
// 16, H, W, 16], flat (the blocked form viewed as [N, C / 16, 1, H * W, 16]), plain row (the plain one viewed as
// [N, C, 1, H * W]) and channels last. A volume [N, C, D, H, W] is planes, each of which is an image: its blocked form is
// [N, D, C / 16, H, W, 16], its flat one [N, D, C / 16, 1, H * W, 16]. A form is computed when it is asked for, by
// bindings that are appended; channels are padded with zeros to whole blocks.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/op/infer.h"
#include "compiler/op/layout.h"
#include "runtime/status.h"

namespace ingot::transform {

inline constexpr const char* kPlainLayout = "NCHW";
inline constexpr const char* kBlockedLayout = "NCHW16c";
inline constexpr const char* kBlockedVolume = "NDCHW16c";
inline constexpr int64_t kBlock = 16;
inline constexpr size_t kImageRank = 4, kVolumeRank = 5;  // of plain tensors

enum class Form : uint8_t { kBlocked, kFlat };

// The layout of images, or of volumes, in blocks.
const char* BlockedLayoutName(size_t rank);
op::Layout BlockedLayout(size_t rank);
// The axis of the channels' blocks there.
inline size_t BlocksAxis(size_t rank) { return rank - 3; }
// Whether a plain image or volume is a single place.
bool IsPoint(const op::Dims& dims);
// Returns the number of channels of an image or a volume, if it is known.
std::optional<int64_t> Channels(const op::Dims& dims);
// Returns the dims with each extent rounded up to the layout's blocks.
op::Dims Filled(const op::Dims& dims, const op::Layout& layout);
// An argument of integers.
ir::Expr IntTuple(const std::vector<int64_t>& values);

class BlockedForms {
 public:
  std::vector<ir::Binding> bindings;  // bindings that were added, in order

  // Returns the form in which x is computed or was asked for; nothing if x exists in its plain form only.
  std::optional<Form> FormOf(const ir::Expr& x) const;
  bool HasPlain(const ir::Expr& x) const;
  // Returns the value in x's channels beyond the logical ones, if it is known.
  std::optional<double> FillingOf(const ir::Expr& x) const;

  // Defines x as computed in this form; MakePlain computes its plain form on demand.
  void Define(const ir::Var& x, const ir::Expr& value, Form form, std::optional<double> filling);
  // Defines x as computed in the plain form viewed as one row.
  void DefineRow(const ir::Var& x, const ir::Expr& value);
  // Defines x as a permutation of `value` [N, H, W, C].
  void DefineChannelsLast(const ir::Var& x, const ir::Expr& value);

  Result<ir::Expr> Get(const ir::Expr& x, Form form);
  // Whether x is computed as one row; its plain form viewed so.
  bool IsRow(const ir::Expr& x) const;
  Result<ir::Expr> GetRow(const ir::Expr& x);
  // Returns one value per channel of images or volumes of this rank, [C, 1, 1] or [., C, 1, 1] of images, in blocks
  // [., C / 16, 1, 1, 16], which is its flat form too.
  Result<ir::Expr> GetPerChannel(const ir::Expr& x, size_t rank);
  // Computes x's plain form, under x itself, if x exists in blocks only.
  Status MakePlain(const ir::Expr& x);

  // Returns a plain tensor in a layout: padded, cut into blocks, axes permuted.
  Result<ir::Expr> LayOut(const ir::Expr& x, const op::Layout& layout);
  Result<ir::Expr> Reshape(const ir::Expr& x, const op::Dims& dims);
  // Binds the call to a new variable; its name and span are those of `source`, if it is given.
  Result<ir::Expr> Emit(const char* name, std::vector<ir::Expr> args, ir::Attrs attrs, const ir::Binding& source = {});

 private:
  struct Forms {
    ir::Expr blocked, flat, row;
    bool has_plain = true;
    ir::Expr channels_last;               // [N, H, W, C], permuted in the plain form
    ir::Expr per_channel;                 // of images of one more axis
    std::optional<double> filling = 0.0;  // the value in its channels beyond the logical ones, if known
  };
  std::unordered_map<ir::Expr, Forms, ir::RefHash, ir::RefSame> forms_;
};

}  // namespace ingot::transform
