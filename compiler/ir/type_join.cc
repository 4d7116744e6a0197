// Equal types join to themselves, tuples field by field; of two tensors that differ the dims are dropped.
#include "compiler/ir/type_join.h"

#include "compiler/ir/structural.h"

namespace ingot::ir {

Type JoinTypes(const Type& a, const Type& b) {
  if (StructuralEqual(a, b)) return a;
  const auto* x = As<TensorTypeNode>(a);
  const auto* y = As<TensorTypeNode>(b);
  if (x != nullptr && y != nullptr) {
    return Make<TensorTypeNode>(x->rank == y->rank ? x->rank : -1, x->dtype == y->dtype ? x->dtype : std::nullopt,
                                x->virtual_device == y->virtual_device ? x->virtual_device : "");
  }
  const auto* s = As<TupleTypeNode>(a);
  const auto* t = As<TupleTypeNode>(b);
  if (s != nullptr && t != nullptr && s->fields.size() == t->fields.size()) {
    std::vector<Type> fields;
    for (size_t i = 0; i < s->fields.size(); ++i) fields.push_back(JoinTypes(s->fields[i], t->fields[i]));
    return Make<TupleTypeNode>(std::move(fields));
  }
  return Make<ObjectTypeNode>();
}

}  // namespace ingot::ir
