// Nodes of the graph level: their special members, the constructors that set a type, and the contents of constants
// (number of elements, hash, comparison).
#include "compiler/ir/expr.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace ingot::ir {

INGOT_DEFINE_NODE(ExprNode);
#define INGOT_EXPR_NODE(enumerator, Node) INGOT_DEFINE_NODE(Node);
#include "compiler/ir/nodes.def"

ConstantData::ConstantData(DataType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes,
                           std::shared_ptr<const void> owner)
    : dtype_(dtype), dims_(std::move(dims)), bytes_(bytes), owner_(std::move(owner)) {
  const Result<int64_t> size = dtype_.SizeBytes(num_elements());
  INGOT_CHECK(size.ok() && static_cast<size_t>(*size) == bytes_.size(), "the bytes of a constant do not fit its shape");
}

std::shared_ptr<const ConstantData> ConstantData::FromBytes(DataType dtype, std::vector<int64_t> dims,
                                                            std::vector<std::byte> bytes) {
  auto owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return std::make_shared<const ConstantData>(dtype, std::move(dims), std::span<const std::byte>(*owned), owned);
}

int64_t ConstantData::num_elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims_) {
    INGOT_CHECK(dim >= 0 && !__builtin_mul_overflow(count, dim, &count), "dimensions of a constant");
  }
  return count;
}

uint64_t ConstantData::ContentHash() const {
  const uint64_t known = hash_.load(std::memory_order_acquire);
  if (known != 0) return known;
  XXH3_state_t* state = XXH3_createState();
  INGOT_CHECK(state != nullptr, "out of memory");
  XXH3_64bits_reset(state);
  const int64_t head[] = {static_cast<int64_t>(dtype_.code), dtype_.bits, dtype_.lanes,
                          static_cast<int64_t>(dims_.size())};
  XXH3_64bits_update(state, head, sizeof(head));
  XXH3_64bits_update(state, dims_.data(), dims_.size() * sizeof(int64_t));
  XXH3_64bits_update(state, bytes_.data(), bytes_.size());
  const uint64_t hash = std::max<uint64_t>(XXH3_64bits_digest(state), 1);  // 0 means: not computed
  XXH3_freeState(state);
  hash_.store(hash, std::memory_order_release);
  return hash;
}

bool ConstantData::Equals(const ConstantData& other) const {
  if (this == &other) return true;
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  return bytes_.data() == other.bytes_.data() || bytes_.empty() ||
         std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

ConstantNode::ConstantNode(std::shared_ptr<const ConstantData> d, std::string n)
    : ExprNode(kKind), data(std::move(d)), name(std::move(n)) {
  std::vector<PrimExpr> dims;
  for (const int64_t dim : data->dims()) dims.push_back(Int64(dim));
  type = Make<TensorTypeNode>(std::move(dims), data->dtype());
}

ShapeExprNode::ShapeExprNode(std::vector<PrimExpr> d) : ExprNode(kKind, Make<ShapeTypeNode>(d)), dims(std::move(d)) {}
PrimValueNode::PrimValueNode(PrimExpr v) : ExprNode(kKind, Make<PrimTypeNode>(v)), value(std::move(v)) {}
StringValueNode::StringValueNode(std::string v) : ExprNode(kKind, Make<ObjectTypeNode>()), value(std::move(v)) {}
DataTypeValueNode::DataTypeValueNode(DataType v) : ExprNode(kKind, Make<ObjectTypeNode>()), value(v) {}

}  // namespace ingot::ir

template class std::vector<ingot::ir::Expr>;
template class std::vector<ingot::ir::Var>;
template class std::vector<ingot::ir::Binding>;
template class std::vector<ingot::ir::BindingBlock>;
