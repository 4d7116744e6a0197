// The forms that an image has while convert_layout goes through a block's bindings: plain (its own), blocked [N, C /
// 16, H, W, 16], flat (the blocked one's view [N, C / 16, 1, H * W, 16]) and channels last. A form is made when
// something asks for it, by bindings that are appended; channels are filled up with zeros to whole blocks.
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
inline constexpr int64_t kBlock = 16;

enum class Form : uint8_t { kBlocked, kFlat };

// The channels of an image, when their number is known.
std::optional<int64_t> Channels(const op::Dims& dims);
// Dims with each extent rounded up to the layout's blocks.
op::Dims Filled(const op::Dims& dims, const op::Layout& layout);

class BlockedForms {
 public:
  std::vector<ir::Binding> bindings;  // what was made, in order

  // The form in which x is computed or was asked for; nothing: x is plain alone.
  std::optional<Form> FormOf(const ir::Expr& x) const;
  bool HasPlain(const ir::Expr& x) const;
  // What x's channels beyond the logical ones hold, where that is known.
  std::optional<double> FillingOf(const ir::Expr& x) const;

  // x is computed in this form; its plain one is made by MakePlain.
  void Define(const ir::Var& x, const ir::Expr& value, Form form, std::optional<double> filling);
  // x is a permutation of `value` [N, H, W, C].
  void DefineChannelsLast(const ir::Var& x, const ir::Expr& value);

  Result<ir::Expr> Get(const ir::Expr& x, Form form);
  // One value per channel, [C, 1, 1] or [., C, 1, 1], in blocks [., C / 16, 1, 1, 16], which is its flat form too.
  Result<ir::Expr> GetPerChannel(const ir::Expr& x);
  // A variable that exists in blocks alone gets its own value.
  Status MakePlain(const ir::Expr& x);

  // A plain tensor in a layout: filled up, cut into blocks, axes in their order.
  Result<ir::Expr> LayOut(const ir::Expr& x, const op::Layout& layout);
  Result<ir::Expr> Reshape(const ir::Expr& x, const op::Dims& dims);
  // A new variable for the call; the name and the span are those of `source`, where it is given.
  Result<ir::Expr> Emit(const char* name, std::vector<ir::Expr> args, ir::Attrs attrs, const ir::Binding& source = {});

 private:
  struct Forms {
    ir::Expr blocked, flat;
    bool has_plain = true;
    ir::Expr channels_last;               // [N, H, W, C], of which the plain form is a permutation
    std::optional<double> filling = 0.0;  // what its channels beyond the logical ones hold, where that is known
  };
  std::unordered_map<ir::Expr, Forms, ir::RefHash, ir::RefSame> forms_;
};

}  // namespace ingot::transform
