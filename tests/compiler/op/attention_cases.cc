// Cases of nn.attention: every path of the fused kernel (panels and dot products, one block of keys and several, ragged
// tiles), layouts, masks, and queries from which every key is masked.
#include <cmath>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::op {
namespace {

ir::AttrValue Layouts(const char* query, const char* key, const char* value, const char* result) {
  return ir::AttrList{query, key, value, result};
}

ReferenceTensor Filled(IntList dims, double value) {
  ReferenceTensor tensor = NewReference(kF32, std::move(dims));
  for (double& element : tensor.floats) element = value;
  return tensor;
}

}  // namespace

void AttentionCases(CaseBuilder& b) {
  const char* op = "nn.attention";
  for (DataType dtype : {kF32, kF64, kF16, kBF16}) {
    b.Add(op, dtype.ToString(),
          {Data(dtype, {2, 7, 2, 4}), Data(dtype, {2, 5, 2, 4}, 2), Data(dtype, {2, 5, 2, 3}, 3)});
  }
  for (DataType dtype : {kF32, kF16}) {
    b.Add(op, std::string("one_element_") + dtype.ToString(),
          {Data(dtype, {2, 3, 2, 1}), Data(dtype, {2, 5, 2, 1}, 2), Data(dtype, {2, 5, 2, 1}, 3)});
  }
  b.Add(op, "empty", {Data(kF32, {2, 0, 2, 4}), Data(kF32, {2, 5, 2, 4}, 2), Data(kF32, {2, 5, 2, 4}, 3)});
  b.Add(op, "one_query", {Data(kF32, {2, 1, 3, 32}), Data(kF32, {2, 21, 3, 32}, 2), Data(kF32, {2, 21, 3, 32}, 3)});
  b.Add(op, "one_of_each", {Data(kF32, {1, 1, 1, 16}), Data(kF32, {1, 1, 1, 16}, 2), Data(kF32, {1, 1, 1, 16}, 3)});
  b.Add(op, "odd_depths_few_queries",
        {Data(kF32, {1, 3, 2, 10}), Data(kF32, {1, 18, 2, 10}, 2), Data(kF32, {1, 18, 2, 9}, 3)});
  b.Add(op, "squares_and_a_rest_of_keys",
        {Data(kF32, {1, 9, 2, 21}), Data(kF32, {1, 37, 2, 21}, 2), Data(kF32, {1, 37, 2, 24}, 3)});
  b.Add(op, "squares_of_a_sequence_first",
        {Data(kF32, {18, 1, 2, 24}), Data(kF32, {18, 1, 2, 24}, 2), Data(kF32, {18, 1, 2, 17}, 3)},
        {{"layouts", Layouts("SBNH", "SBNH", "SBNH", "SBNH")}});
  b.Add(op, "whole_tiles", {Data(kF32, {1, 12, 2, 16}), Data(kF32, {1, 32, 2, 16}, 2), Data(kF32, {1, 32, 2, 16}, 3)},
        {{"scale", 0.5}});
  b.Add(op, "several_blocks", {Data(kF32, {1, 5, 1, 4}), Data(kF32, {1, 530, 1, 4}, 2), Data(kF32, {1, 530, 1, 4}, 3)});
  b.Add(op, "several_blocks_one_query",
        {Data(kF32, {1, 1, 1, 4}), Data(kF32, {1, 530, 1, 4}, 2), Data(kF32, {1, 530, 1, 4}, 3)});
  b.Add(op, "grouped_heads", {Data(kF32, {2, 4, 6, 8}), Data(kF32, {2, 9, 2, 8}, 2), Data(kF32, {2, 9, 2, 8}, 3)},
        {{"softcap", 2.0}});
  b.Add(op, "heads_first", {Data(kF32, {2, 3, 7, 8}), Data(kF32, {2, 3, 9, 8}, 2), Data(kF32, {2, 3, 9, 8}, 3)},
        {{"layouts", Layouts("BNSH", "BNSH", "BNSH", "BSNH")}});
  b.Add(op, "transposed_keys", {Data(kF32, {2, 3, 7, 8}), Data(kF32, {2, 3, 8, 9}, 2), Data(kF32, {9, 2, 3, 8}, 3)},
        {{"layouts", Layouts("BNSH", "BNHS", "SBNH", "HNSB")}});
  for (const char* mask : {"TopLeft", "BottomRight"}) {
    b.Add(op, mask, {Data(kF32, {1, 9, 2, 4}), Data(kF32, {1, 21, 2, 4}, 2), Data(kF32, {1, 21, 2, 4}, 3)},
          {{"causal_mask", mask}});
    b.Add(op, std::string(mask) + "_more_queries",
          {Data(kF32, {1, 21, 2, 4}), Data(kF32, {1, 9, 2, 4}, 2), Data(kF32, {1, 9, 2, 4}, 3)},
          {{"causal_mask", mask}});
    // With a symbolic first dim, queries and keys have a symbolic number.
    b.Add(op, std::string(mask) + "_sequence_first",
          {Data(kF32, {40, 1, 2, 4}), Data(kF32, {40, 1, 2, 4}, 2), Data(kF32, {1, 40, 2, 4}, 3)},
          {{"causal_mask", mask}, {"layouts", Layouts("SBNH", "SBNH", "BSNH", "BSNH")}});
  }
  b.Add(op, "keys_as_batch", {Data(kF32, {5, 1, 2, 16}), Data(kF32, {5, 5, 2, 16}, 2), Data(kF32, {5, 5, 2, 16}, 3)});
  const auto with_bias = [](IntList dims) {
    return std::vector<ReferenceTensor>{Data(kF32, {2, 7, 3, 4}), Data(kF32, {2, 19, 3, 4}, 2),
                                        Data(kF32, {2, 19, 3, 4}, 3), Data(kF32, std::move(dims), 4)};
  };
  b.Add(op, "bias", with_bias({2, 3, 7, 19}));
  b.Add(op, "bias_of_keys", with_bias({2, 1, 1, 19}));
  b.Add(op, "bias_of_queries", with_bias({7, 1}));
  b.Add(op, "bias_rank0", with_bias({}));
  b.Add(op, "bias_of_one_key",
        {Data(kF32, {1, 9, 2, 4}), Data(kF32, {1, 1, 2, 4}, 2), Data(kF32, {1, 1, 2, 4}, 3), Data(kF32, {9, 1}, 4)});
  b.Add(
      op, "bias_sequence_first",
      {Data(kF32, {19, 1, 2, 4}), Data(kF32, {19, 1, 2, 4}, 2), Data(kF32, {19, 1, 2, 4}, 3), Data(kF32, {19, 19}, 4)},
      {{"layouts", Layouts("SBNH", "SBNH", "SBNH", "SBNH")}});
  // The last queries see no key, the others see two; a NaN affects only the results of its query.
  std::vector<ReferenceTensor> masked = with_bias({7, 19});
  masked[3] = Filled({7, 19}, -kInf);
  for (size_t query = 0; query < 5; ++query) {
    for (size_t key : {3, 18}) masked[3].floats[query * 19 + key] = 0.5;
  }
  b.Add(op, "masked", masked);
  std::vector<ReferenceTensor> specials = with_bias({7, 19});
  specials[0].floats[5] = kNan;
  specials[3].floats[20] = -kInf;
  b.Add(op, "specials", specials);
  // A mask of bool: a hidden key gets the score `hidden`, whatever its elements are, or is left out. The last query
  // sees no key.
  for (int64_t keys : {19, 530}) {
    std::vector<ReferenceTensor> chosen = {Data(kF32, {1, 7, 3, 4}), Data(kF32, {1, keys, 3, 4}, 2),
                                           Data(kF32, {1, keys, 3, 4}, 3), NewReference(DataType::Bool(), {7, keys})};
    for (int64_t i = 0; i < 6 * keys; ++i) chosen[3].ints[static_cast<size_t>(i)] = i % keys % 3 == 1 ? 1 : 0;
    chosen[1].floats[0] = kInf;
    chosen[1].floats[25] = kNan;
    const std::string name = "chosen_" + std::to_string(keys);
    b.Add(op, name, chosen, {{"hidden", -1e4}, {"stepwise", true}});
    b.Add(op, name + "_high", chosen, {{"hidden", 2.0}, {"stepwise", true}});
    b.Add(op, name + "_infinite", chosen, {{"stepwise", true}});
    b.Add(op, name + "_zero", chosen);
    for (size_t i = 0; i < 3; ++i) {
      for (double& element : chosen[i].floats) element = std::isfinite(element) ? element : 0.5;
    }
    chosen.pop_back();
    b.Add(op, name + "_causal", chosen, {{"causal_mask", "BottomRight"}, {"stepwise", true}});
    // A key of NaN or inf behind a causal mask shows in the results, one of -inf does not.
    for (double special : {kNan, kInf, -kInf}) {
      std::vector<ReferenceTensor> shown = chosen;
      for (size_t i = 0; i < 12; ++i) shown[0].floats[i] = std::abs(shown[0].floats[i]) + 0.5;
      for (size_t i = 0; i < 4; ++i) shown[1].floats[static_cast<size_t>(keys - 1) * 12 + i] = special;
      b.Add(op, name + "_causal_" + std::to_string(special), shown, {{"causal_mask", "TopLeft"}, {"stepwise", true}});
    }
  }
  // A query from which the masks hide every key gives 0, even with NaN or infinities in it; a query whose scores are
  // -inf without a mask does not.
  for (int64_t keys : {19, 530}) {
    for (int64_t queries : {2, 7}) {
      const std::vector<ReferenceTensor> plain = {Data(kF32, {1, queries, 1, 4}), Data(kF32, {1, keys, 1, 4}, 2),
                                                  Data(kF32, {1, keys, 1, 4}, 3)};
      const std::string name = "masked_" + std::to_string(queries) + "_" + std::to_string(keys);
      const ir::Attrs attrs = {{"stepwise", true}, {"masked_gives_zero", true}};
      std::vector<ReferenceTensor> wild = plain;
      wild[0].floats[1] = kNan;
      wild[0].floats[4] = -kInf;
      wild[1].floats[8] = kInf;
      ReferenceTensor bias = Filled({queries, keys}, 0.25), seen = NewReference(DataType::Bool(), {queries, keys});
      for (int64_t k = 0; k < keys; ++k) bias.floats[static_cast<size_t>(k)] = -kInf;
      for (int64_t k = keys; k < queries * keys; ++k) seen.ints[static_cast<size_t>(k)] = 1;
      for (const ReferenceTensor& mask : {bias, seen}) {
        const std::string kind = name + (mask.dtype.is_bool() ? "_bool" : "_bias");
        std::vector<ReferenceTensor> args = wild;
        args.push_back(mask);
        b.Add(op, kind, args, attrs);
        b.Add(op, kind + "_causal", args, attrs.With("causal_mask", "TopLeft"));
        args[2].floats[5] = kNan;  // a value that is not finite makes NaN of a share of 0
        b.Add(op, kind + "_value", args, attrs);
      }
      b.Add(op, name + "_unmasked", wild, attrs);
    }
  }
  std::vector<ReferenceTensor> late = {Data(kF32, {1, 9, 1, 4}), Data(kF32, {1, 4, 1, 4}, 2),
                                       Data(kF32, {1, 4, 1, 4}, 3)};
  late[0].floats[2] = kNan;
  // Operands that are scaled first leave only scaled products to store: 128 * 24 * 24 overflows float16, a quarter of it does not.
  ReferenceTensor large = NewReference(kF16, {1, 2, 1, 128});
  std::fill(large.floats.begin(), large.floats.end(), 24.0);
  b.Add(op, "large_products", {large, large, Data(kF16, {1, 2, 1, 4}, 3)},
        {{"scale", 0.25}, {"stepwise", true}, {"scales_operands", true}});
  b.Add(op, "masked_more_queries", late,
        {{"stepwise", true}, {"masked_gives_zero", true}, {"causal_mask", "BottomRight"}});
}

}  // namespace ingot::op
