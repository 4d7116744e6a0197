// ConstantStore: the side file of a text: constants of more than kMaxInlineElements elements by the hash that the text
// names as metadata["HASH"]. The printer adds to it, the parser looks up. Bytes are shared, never copied, until the
// store is written. Two contents with one hash get two names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::script {

inline constexpr int64_t kMaxInlineElements = 16;

class ConstantStore {
 public:
  // Adds the constant, and returns the name under which it is found again: its hash as 16 hexadecimal digits, with "-2"
  // and so on behind them after a collision.
  std::string Add(const std::shared_ptr<const ir::ConstantData>& data);
  // Returns null if there is none.
  std::shared_ptr<const ir::ConstantData> Find(std::string_view hash) const;
  const std::map<std::string, std::shared_ptr<const ir::ConstantData>, std::less<>>& constants() const {
    return constants_;
  }

 private:
  std::map<std::string, std::shared_ptr<const ir::ConstantData>, std::less<>> constants_;
};

// Returns the "HASH" by which the printer names a constant that is in no store.
std::string HashName(const ir::ConstantData& data);

}  // namespace ingot::script
