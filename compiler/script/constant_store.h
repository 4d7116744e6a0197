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
  // The hash under which the constant is found again: 16 hexadecimal digits, "-2" and so on after a collision.
  std::string Add(const std::shared_ptr<const ir::ConstantData>& data);
  // Null when there is none.
  std::shared_ptr<const ir::ConstantData> Find(std::string_view hash) const;
  const std::map<std::string, std::shared_ptr<const ir::ConstantData>, std::less<>>& constants() const {
    return constants_;
  }

 private:
  std::map<std::string, std::shared_ptr<const ir::ConstantData>, std::less<>> constants_;
};

// "HASH" as the printer names a constant that stands in no store.
std::string HashName(const ir::ConstantData& data);

}  // namespace ingot::script
