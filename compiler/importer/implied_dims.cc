// Each operator's function states linear equations between dims of its inputs (Facts::Sum and what is made of it). A dim
// is found where it is the only one of an equation that is not a number, until no equation gives more. An equation
// that contradicts itself gives nothing: the operator's importer refuses what does not fit.
#include "compiler/importer/implied_dims.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "compiler/importer/build.h"
#include "compiler/importer/channel_blocks.h"
#include "compiler/importer/ops/families.h"
#include "compiler/ir/type.h"

namespace ingot::importer {
namespace {

using ir::PrimExpr;

// Dims and factors beyond are left alone, so that sums do not wrap.
constexpr int64_t kMost = int64_t{1} << 28;

// A dim of an input, from the last one on where `axis` is negative.
struct Place {
  size_t input;
  int64_t axis;
};

// A dim times a number.
struct Term {
  Place place;
  int64_t factor = 1;
};

class Facts {
 public:
  explicit Facts(const NodeImporter& node) : node_(node), dims_(node.num_inputs()) {
    for (size_t i = 0; i < dims_.size(); ++i) {
      const auto* type = KnownTensor(node.TypeOf(i));
      if (type == nullptr) continue;
      for (const PrimExpr& dim : *type->dims) dims_[i].push_back(ir::AsConstInt(dim));
      is_known_ = is_known_ && std::ranges::all_of(dims_[i], [](const auto& dim) { return dim.has_value(); });
    }
  }

  const NodeImporter& node() const { return node_; }
  bool HasAll() const { return is_known_; }
  // An integer attribute, or the default where it has none that is usable here (its importer says so).
  int64_t Int(std::string_view name, int64_t default_value) const {
    const Result<int64_t> value = node_.Int(name, default_value);
    return value.ok() && *value >= 0 && *value <= kMost ? *value : default_value;
  }
  std::vector<int64_t> Ints(std::string_view name) const {
    const Result<std::vector<int64_t>> values = node_.Ints(name, {});
    const bool is_usable = values.ok() && std::ranges::all_of(*values, [](int64_t v) { return v >= 0 && v <= kMost; });
    return is_usable ? *values : std::vector<int64_t>();
  }
  size_t Rank(size_t input) const { return input < dims_.size() ? dims_[input].size() : 0; }

  // The sum of the terms and the number is 0; nothing is said where an input, an axis or a factor is missing.
  void Sum(std::vector<Term> terms, int64_t number = 0) {
    const auto is_there = [&](const Term& term) { return term.factor != 0 && Find(term.place) != nullptr; };
    if (std::ranges::all_of(terms, is_there)) equations_.push_back({std::move(terms), number});
  }
  void Is(Place place, int64_t number) { Sum({{place}}, -number); }
  // a * of_a = b * of_b
  void Equal(Place a, Place b, int64_t of_b = 1, int64_t of_a = 1) { Sum({{a, of_a}, {b, -of_b}}); }

  // Dims that are no numbers in the inputs' types, and follow.
  void Solve() {
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (const Equation& equation : equations_) is_new |= Follows(equation);
    }
  }
  std::optional<int64_t> dim(size_t input, size_t axis) const { return dims_[input][axis]; }

 private:
  struct Equation {
    std::vector<Term> terms;
    int64_t number;
  };

  std::optional<int64_t>* Find(Place place) {
    if (place.input >= dims_.size()) return nullptr;
    std::vector<std::optional<int64_t>>& dims = dims_[place.input];
    const int64_t axis = place.axis < 0 ? place.axis + std::ssize(dims) : place.axis;
    return axis >= 0 && axis < std::ssize(dims) ? &dims[static_cast<size_t>(axis)] : nullptr;
  }

  // Sets the only unknown dim of an equation; false if there is none, or no length makes it true.
  bool Follows(const Equation& equation) {
    std::optional<int64_t>* unknown = nullptr;
    int64_t factor = 0, rest = equation.number;
    for (const Term& term : equation.terms) {
      std::optional<int64_t>* const dim = Find(term.place);
      if (dim->has_value()) {
        if (**dim > kMost) return false;
        rest += **dim * term.factor;
      } else if (unknown == nullptr || unknown == dim) {
        unknown = dim;
        factor += term.factor;
      } else {
        return false;
      }
    }
    if (unknown == nullptr || factor == 0 || rest % factor != 0 || -rest / factor < 0) return false;
    *unknown = -rest / factor;
    return true;
  }

  const NodeImporter& node_;
  std::vector<std::vector<std::optional<int64_t>>> dims_;  // of each input; empty where its rank is unknown
  std::vector<Equation> equations_;
  bool is_known_ = true;
};

// ---- convolutions

// Weights [O, I, ...], whose extents kernel_shape repeats.
template <size_t kWeight>
void OfKernel(Facts& facts) {
  const std::vector<int64_t> kernel = facts.Ints("kernel_shape");
  if (kernel.size() + 2 != facts.Rank(kWeight)) return;
  for (size_t i = 0; i < kernel.size(); ++i) facts.Is({kWeight, static_cast<int64_t>(i) + 2}, kernel[i]);
}

void OfDeformConv(Facts& facts) {
  OfKernel<1>(facts);
  facts.Equal({0, 1}, {1, 1}, facts.Int("group", 1));
  facts.Equal({1, 0}, {3, 0});
}

void OfBlockedConv(Facts& facts) {
  OfKernel<1>(facts);
  facts.Equal({0, 1}, {1, 1}, facts.Int("group", 1));
  facts.Equal({1, 0}, {2, 0});
  facts.Equal({1, 0}, {3, 1});
}

void OfReorderOutput(Facts& facts) {
  const int64_t channels = facts.Int("channels", 0), block = std::max<int64_t>(facts.Int(kChannelBlockAttr, 16), 1);
  if (channels > 0) facts.Is({0, 1}, (channels + block - 1) / block * block);
}

void OfCausalConv(Facts& facts) {
  const bool is_last = facts.Int("channels_last", 0) != 0;
  if (!is_last || facts.Rank(0) == 3) facts.Equal({0, is_last ? 2 : 1}, {1, 0});
  facts.Equal({1, 0}, {2, 0});
  const int64_t dilation = facts.Int("dilation", 1);
  if (!is_last || facts.Rank(3) == 3) facts.Equal({3, is_last ? 2 : 1}, {1, 0});
  facts.Sum({{{3, is_last ? 1 : 2}}, {{1, 2}, -dilation}}, dilation);
}

// ---- recurrent layers

// W [D, G * H, I], R [D, G * H, H], B [D, 2 * G * H], states [.., H] and P [D, 3 * H].
template <int64_t kGates>
void OfRecurrent(Facts& facts) {
  const Place hidden = {2, 2};
  if (const int64_t stated = facts.Int("hidden_size", 0); stated > 0) facts.Is(hidden, stated);
  facts.Equal({2, 1}, hidden, kGates);
  facts.Equal({1, 1}, hidden, kGates);
  facts.Equal({1, 2}, {0, 2});
  facts.Equal({3, 1}, hidden, 2 * kGates);
  facts.Equal({5, 2}, hidden);
  if (kGates == 4) {
    facts.Equal({6, 2}, hidden);
    facts.Equal({7, 1}, hidden, 3);
  }
}

// The same, of which W and R are [D, I, G * H] and [D, H, G * H].
void OfLstmOfColumns(Facts& facts) {
  const Place hidden = {2, 1};
  if (const int64_t stated = facts.Int("hidden_size", 0); stated > 0) facts.Is(hidden, stated);
  facts.Equal({2, 2}, hidden, 4);
  facts.Equal({1, 2}, hidden, 4);
  facts.Equal({1, 1}, {0, 2});
  facts.Equal({3, 1}, hidden, 8);
  facts.Equal({5, 2}, hidden);
  facts.Equal({6, 2}, hidden);
  facts.Equal({7, 1}, hidden, 3);
}

// ---- attention

// How many times the last dim holds the depth of a head: an operand of rank 4 has an axis of heads.
int64_t HeadsIn(const Facts& facts, size_t input, int64_t heads) { return facts.Rank(input) == 3 ? heads : 1; }

// The last dims of two operands of heads, of one depth.
void EqualDepth(Facts& facts, size_t a, int64_t heads_of_a, size_t b, int64_t heads_of_b) {
  facts.Equal({a, -1}, {b, -1}, HeadsIn(facts, a, heads_of_a), HeadsIn(facts, b, heads_of_b));
}

// Inputs: queries, keys, values, ..., and at `past` keys and values of rank 4.
void OfHeads(Facts& facts, int64_t heads, int64_t key_heads, size_t past) {
  if ((heads == 0 && facts.Rank(0) == 3) || (key_heads == 0 && facts.Rank(1) == 3)) return;
  EqualDepth(facts, 0, heads, 1, key_heads);
  EqualDepth(facts, 0, heads, past, 1);
  EqualDepth(facts, 1, key_heads, past, 1);
  EqualDepth(facts, 2, key_heads, past + 1, 1);
  if (facts.Rank(1) == 4 && facts.Rank(2) == 4) facts.Equal({1, 1}, {2, 1});
  for (size_t i : {1, 2}) {
    if (facts.Rank(i) == 4) facts.Equal({i, 1}, {past + i - 1, 1});
  }
}

void OfAttention(Facts& facts) { OfHeads(facts, facts.Int("q_num_heads", 0), facts.Int("kv_num_heads", 0), 4); }

void OfFlexAttention(Facts& facts) {
  facts.Equal({0, 3}, {1, 3});
  facts.Equal({1, 1}, {2, 1});
}

// Weights and bias of queries, keys and values in one, of `weight` and behind it `bias`.
template <size_t kPast>
void OfJoinedAttention(Facts& facts) {
  const Place width = {1, 1};
  facts.Equal(width, {2, 0});
  const std::vector<int64_t> sizes = facts.Ints("qkv_hidden_sizes");
  if (!sizes.empty()) {
    facts.Is(width, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  } else {
    facts.Equal(width, {kPast, 4}, 3 * facts.Int("num_heads", 0));
  }
}

void OfMultiHeadAttention(Facts& facts) {
  const int64_t heads = facts.Int("num_heads", 0);
  if (facts.Rank(0) == 5) facts.Is({0, 3}, 3);  // queries, keys and values in one, or keys and values
  if (facts.Rank(1) == 5) facts.Is({1, 3}, 2);
  if (facts.Rank(0) != 3 || facts.Rank(2) == 0) return;
  OfHeads(facts, heads, heads, 6);
  facts.Sum({{{3, 0}}, {{0, 2}, -2}, {{2, -1}, facts.Rank(2) == 4 ? -heads : -1}});
}

void OfGroupQueryAttention(Facts& facts) {
  const int64_t heads = facts.Int("num_heads", 0), key_heads = facts.Int("kv_num_heads", 0);
  if (facts.Rank(0) != 3) return;
  const bool is_joined = !facts.node().HasInput(1);
  const int64_t in_query = is_joined ? heads + 2 * key_heads : heads;
  const bool has_bytes = facts.node().HasAttr("kv_cache_bit_width");  // whose depth may be packed
  if (!is_joined) {
    facts.Equal({0, 2}, {1, 2}, heads, key_heads);
    facts.Equal({1, 2}, {2, 2});
  }
  if (!has_bytes) facts.Equal({0, 2}, {3, 3}, in_query);
  facts.Equal({0, 2}, {14, 0}, in_query);  // norms of heads
  facts.Equal({0, 2}, {15, 0}, in_query);
  facts.Equal({7, 1}, {8, 1});
}

// Cosines and sines [..., half of what is rotated].
void OfRotation(Facts& facts) {
  facts.Equal({1, -1}, {2, -1});
  const int64_t heads = facts.Rank(0) == 3 ? facts.Int("num_heads", 0) : 1;
  if (facts.Int("rotary_embedding_dim", 0) == 0 && heads > 0) facts.Equal({0, -1}, {1, -1}, 2 * heads);
}

void OfMsRotation(Facts& facts) {
  facts.Equal({2, -1}, {3, -1});
  const int64_t heads = facts.Rank(0) == 3 ? facts.Int("num_heads", 0) : 1;
  if (facts.Int("rotary_embedding_dim", 0) == 0 && heads > 0) facts.Equal({0, -1}, {2, -1}, 2 * heads);
}

void OfRotationOfThree(Facts& facts) {
  const std::vector<int64_t> sections = facts.Ints("mrope_section");
  if (!sections.empty()) facts.Is({2, 1}, std::accumulate(sections.begin(), sections.end(), int64_t{0}));
  OfMsRotation(facts);
}

void OfLinearAttention(Facts& facts) {
  const int64_t heads = facts.Int("q_num_heads", 0), key_heads = facts.Int("kv_num_heads", 0);
  if (heads == 0 || key_heads == 0) return;
  facts.Equal({0, 2}, {3, 2}, heads);
  facts.Equal({2, 2}, {3, 3}, key_heads);
}

void OfRelativeBias(Facts& facts) {
  facts.Equal({0, 2}, {1, 0});
  facts.Equal({0, 2}, {3, 0}, facts.Int("num_heads", 0));
  facts.Equal({3, 1}, {4, 0});
}

// ---- the rest

// Layers of experts: weights [experts, outputs, inputs], each followed by its bias (behind the scales, if kStep is 3).
template <size_t kStep>
void OfExperts(Facts& facts) {
  for (size_t layer : {0, 1, 2}) {
    const size_t weight = 2 + kStep * layer, bias = weight + kStep - 1;
    facts.Equal({1, 1}, {weight, 0});
    facts.Equal({1, 1}, {bias, 0});
    facts.Equal({weight, 1}, {bias, 1});
    if (layer == 1) facts.Equal({0, -1}, {weight, 1});
    if (layer != 1 && kStep == 2) facts.Equal({0, -1}, {weight, 2});
  }
}

// theta [N, rank, rank + 1], and the size, of two numbers more than there are axes.
void OfAffineGrid(Facts& facts) {
  facts.Sum({{{0, 2}}, {{0, 1}, -1}}, -1);
  facts.Sum({{{1, 0}}, {{0, 1}, -1}}, -2);
}

// Starts, ends, axes and steps are as many.
void OfSlice(Facts& facts) {
  for (size_t i : {2, 3, 4}) facts.Equal({i, 0}, {1, 0});
}

struct Row {
  std::string_view op_type, domain;
  void (*state)(Facts& facts);
};

constexpr Row kRows[] = {
    {"AffineGrid", "", OfAffineGrid},
    {"Attention", "", OfAttention},
    {"CausalConvWithState", "", OfCausalConv},
    {"Conv", "", OfKernel<1>},
    {"ConvInteger", "", OfKernel<1>},
    {"ConvTranspose", "", OfKernel<1>},
    {"DeformConv", "", OfDeformConv},
    {"FlexAttention", "ai.onnx.preview", OfFlexAttention},
    {"GRU", "", OfRecurrent<3>},
    {"LSTM", "", OfRecurrent<4>},
    {"LinearAttention", "", OfLinearAttention},
    {"QLinearConv", "", OfKernel<3>},
    {"RNN", "", OfRecurrent<1>},
    {"RotaryEmbedding", "", OfRotation},
    {"Slice", "", OfSlice},
    {"Attention", kMicrosoft, OfJoinedAttention<4>},
    {"CausalConvWithState", kMicrosoft, OfCausalConv},
    {"DynamicQuantizeLSTM", kMicrosoft, OfLstmOfColumns},
    {"GatedRelativePositionBias", kMicrosoft, OfRelativeBias},
    {"GroupQueryAttention", kMicrosoft, OfGroupQueryAttention},
    {"LinearAttention", kMicrosoft, OfLinearAttention},
    {"MRotaryEmbedding", kMicrosoft, OfRotationOfThree},
    {"MoE", kMicrosoft, OfExperts<2>},
    {"MultiHeadAttention", kMicrosoft, OfMultiHeadAttention},
    {"QAttention", kMicrosoft, OfJoinedAttention<8>},
    {"QMoE", kMicrosoft, OfExperts<3>},
    {"RotaryEmbedding", kMicrosoft, OfMsRotation},
    {"Conv", kChannelBlocks, OfBlockedConv},
    {"ReorderOutput", kChannelBlocks, OfReorderOutput},
};

}  // namespace

Result<ImpliedInputs> ImpliedInputs::Of(std::string_view op_type, std::string_view domain, const NodeImporter& node) {
  ImpliedInputs inputs;
  inputs.given_ = node.inputs();
  const auto row =
      std::ranges::find_if(kRows, [&](const Row& r) { return r.op_type == op_type && r.domain == domain; });
  if (row == std::end(kRows)) return inputs;
  Facts facts(node);
  if (facts.HasAll()) return inputs;
  row->state(facts);
  facts.Solve();
  inputs.changed_.resize(inputs.given_.size());
  for (size_t i = 0; i < inputs.given_.size(); ++i) {
    const ImportedValue* given = inputs.given_[i];
    if (facts.Rank(i) == 0 || given->expr == nullptr)
      continue;  // (values known by their elements have numbers as dims)
    std::vector<PrimExpr> dims = *KnownTensor(given->type)->dims;
    bool is_changed = false;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (ir::AsConstInt(dims[axis]) || !facts.dim(i, axis)) continue;
      dims[axis] = ir::Int64(*facts.dim(i, axis));
      is_changed = true;
    }
    if (!is_changed) continue;
    ImportedValue value = *given;
    value.type = TensorType(std::move(dims), *KnownTensor(given->type)->dtype);
    value.expr = node.Match(value.expr, value.type);
    inputs.changed_[i] = std::move(value);
  }
  return inputs;
}

std::vector<ImportedValue*> ImpliedInputs::pointers() {
  std::vector<ImportedValue*> pointers = given_;
  for (size_t i = 0; i < changed_.size(); ++i) {
    if (changed_[i]) pointers[i] = &*changed_[i];
  }
  return pointers;
}

}  // namespace ingot::importer
