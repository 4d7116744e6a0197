// Match: what a rule finds when it looks at a block: the facts that it needs, or why the block is not for it. The
// reason stands where it is found, so that vm-compile --explain can say what kept a rule away. It is a phrase about the
// block, such as "its result has one column".
#pragma once

#include <optional>
#include <utility>

namespace ingot::schedule {

struct Declined {
  const char* why;
  bool is_of_other_kind = false;  // no block of this kind is for the rule: nothing to tell of a slow one
};
struct Taken {
  const char* layout = "plain";  // how the tensors lie, for a rule that asks for it
};

template <typename Facts = Taken>
class [[nodiscard]] Match {
 public:
  Match(Facts facts) : facts_(std::move(facts)) {}        // NOLINT: a return statement gives either
  Match(Declined declined) : declined_(declined) {}       // NOLINT
  template <typename Other>
  Match<Other> As(Other facts) const {  // the same answer of another kind
    return *this ? Match<Other>(std::move(facts)) : Match<Other>(declined_);
  }
  explicit operator bool() const { return facts_.has_value(); }
  const Facts& operator*() const { return *facts_; }
  const Facts* operator->() const { return &*facts_; }
  Declined declined() const { return declined_; }  // why is null where the block is taken

 private:
  std::optional<Facts> facts_;
  Declined declined_{nullptr};
};

}  // namespace ingot::schedule
