// TvmMetadata: the constants that TVM writes above a module which it prints with show_meta=True, as metadata =
// tvm.ir.load_json("""..."""), and that the text names as metadata["ir.GenericConst"][0] (0.27) or
// metadata["relax.expr.Constant"][0] (before). In: that JSON, a graph of objects, in either of two layouts: the one
// with "root_index" (0.21 and later) and the one with "b64ndarrays". Out: tensors by type and index. Of other objects
// in a metadata section only the type is kept, so that a use of one can be refused by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::script {

class TvmMetadata {
 public:
  static Result<TvmMetadata> Parse(std::string_view json);
  // metadata[type][index]
  Result<std::shared_ptr<const ir::ConstantData>> Find(std::string_view type, int64_t index) const;

 private:
  struct Entry {
    std::string type;
    std::shared_ptr<const ir::ConstantData> data;  // null: the object is no constant
  };
  std::map<std::string, std::vector<Entry>, std::less<>> lists_;
};

}  // namespace ingot::script
