// Matrix products for tests of the rules for CUDA: their functions and arguments, what they give, and kernels of them that
// mistakes are made in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/schedule/choices.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen::testing {

// out[.., m, n], or [.., n, m], = sum over k of a * b, with a bias for each column, cast and clipped from below.
struct Product {
  int64_t batch, m, n, k;  // batch 0: there is none
  DataType dtype = DataType::Float(32), sum_dtype = DataType::Float(32);
  bool a_turned = false, b_turned = false, out_turned = false;
  bool b_shared = false;  // by all batches
  bool b_panels = false;  // b[n / 16, k, n % 16], shared; n is fixed
  bool has_epilogue = false;
  bool rounds = false;    // factors of float32 may be rounded to tf32
  unsigned symbolic = 0;  // bits: batch, m, n, k
  std::string Text() const;
};

const DataType kF16 = DataType::Float(16), kF32 = DataType::Float(32), kF64 = DataType::Float(64),
               kBf16 = DataType::Bfloat16();

// Of these sizes, and nothing else.
Product Plain(int64_t m, int64_t n, int64_t k);
SizedFunction Build(const Product& product);
// Small integers, or factors that become those where they are rounded to 11 bits, halves away from zero: up and down.
op::KernelArguments ArgumentsOf(const Product& product, const SizedFunction& built, uint64_t seed);
// The result of the function as it is. Its sum of nothing is what no loop starts: there, it is one of a single 0.
Result<op::Bytes> Expected(const Product& product, uint64_t seed);

using Dtypes = std::vector<std::pair<DataType, DataType>>;  // of factors and sums

// A fixed size below `least` is a symbolic one: the rule would decline it.
Product RandomProduct(std::mt19937_64& generator, const Dtypes& dtypes, const std::vector<int64_t>& sizes,
                      int64_t least);
// Products that the rule takes are those of the interpreter.
void CheckProducts(const std::string& rule, const Dtypes& dtypes, const std::vector<int64_t>& sizes, int64_t least,
                   size_t count = 30);
// Rows of memory that are aligned, and others; no, one, a few and many iterations of the loop over tiles.
const std::vector<int64_t> kMmaSizes = {0,  1,  2,  7,  8,  15,  16,  24,  31,  32,  33, 40,
                                        63, 64, 65, 72, 96, 100, 128, 129, 160, 200, 256};

// A kernel with runs that tell it from mistaken ones.
struct Judged {
  KernelSource source;
  PtxImage image;
  struct Run {
    op::KernelArguments arguments;
    op::Bytes expected;
  };
  std::vector<Run> runs;

  bool IsRight(const std::string& ptx) const {
    PtxImage mutant = image;
    mutant.ptx = ptx;
    return std::ranges::all_of(runs, [&](const Run& run) {
      op::KernelArguments own = run.arguments;
      return RunImage(source, mutant, own).ok() && std::ranges::equal(own.bytes.back(), run.expected);
    });
  }
  // Whether the mistake shows: `from` is `to` in the line that starts there.
  bool IsCaught(size_t line, std::string_view from, const std::string& to) const {
    const size_t at = image.ptx.find(from, line);
    return !IsRight(std::string(image.ptx).replace(at, from.size(), to));
  }
};

// Of products of symbolic sizes.
Judged Judge(Product product, const std::vector<std::vector<int64_t>>& sizes, const schedule::Chosen& chosen = {});

// Calls with the place and the text of each line.
void ForLines(const std::string& text, const std::function<void(size_t, const std::string&)>& visit);

// How many mistakes of a kind there are, and how many do not show.
struct Mistakes {
  int made = 0, unseen = 0;
  void Count(bool is_caught) {
    ++made;
    unseen += is_caught ? 0 : 1;
  }
};

}  // namespace ingot::codegen::testing
