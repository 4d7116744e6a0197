// Products of matrices of any number of rows by the rule cuda_mma_rows on the GPU that is not there, beside the
// interpreter: each version of them at its ends, rows of one axis and of several, for sm_80 and with wgmma; which versions
// there are; what ptxas says of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/rules/cuda_mma.h"
#include "tests/compiler/codegen/ptx_product.h"

namespace ingot::codegen {
namespace {

using namespace testing;  // NOLINT
using schedule::ChooseMmaForm, schedule::ChooseMmaVersions, schedule::MmaForm, schedule::MmaMicroseconds,
    schedule::MmaSizes, schedule::MmaVersion;

// Of an inner layer of a small network.
Product OfAnyRows(int64_t n, int64_t k) {
  Product p = Plain(1, n, k);
  p.dtype = kF16;
  p.symbolic = 2;
  return p;
}

TEST_CASE("products of any number of rows by matrix instructions are those of the interpreter") {
  for (const char* sm : {"sm_80", "sm_90a"}) {
    for (int form = 0; form < 4; ++form) {
      Product p = OfAnyRows(form == 2 ? 192 : 1024, form == 3 ? 1000 : 96);
      if (form == 3) p.n = 64;
      p.b_panels = form == 0 || form == 2;
      p.b_turned = form == 3;
      p.has_epilogue = form % 2 == 0;
      p.b_shared = true;
      if (form == 1) p.dtype = kBf16, p.batch = 1, p.symbolic = 3;  // rows of two axes
      const Target target = Sm(sm);
      const Result<KernelSource> source = SourceOf(Build(p).function, target);
      REQUIRE_MESSAGE(source.ok(), source.status().message());
      const Result<PtxImage> image = CompilePtx({&*source, 1}, target);
      REQUIRE_MESSAGE(image.ok(), image.status().message());
      const MmaSizes sizes{
          .columns = p.n, .summands = p.k, .allows_groups = std::string(sm) == "sm_90a", .has_whole_tiles = true};
      const std::vector<MmaVersion> versions = ChooseMmaVersions(sizes);
      CHECK(image->kernels[0].launches.size() == versions.size());
      std::vector<std::vector<int64_t>> rows = {{1, 1}, {1, 7}};
      for (const MmaVersion& version : versions) {
        if (!version.most_rows || *version.most_rows > 600) continue;
        rows.push_back({1, *version.most_rows});
        rows.push_back({*version.most_rows + 1, 1});
      }
      rows.push_back({3, 43});
      for (const std::vector<int64_t>& size : rows) {
        Product sized = p;
        sized.batch = form == 1 ? size[0] : 0;
        sized.m = form == 1 ? size[1] : size[0] * size[1];
        CAPTURE(std::string(sm) + " " + sized.Text());
        const SizedFunction built = Build(sized);
        op::KernelArguments arguments = ArgumentsOf(sized, built, 1);
        const Result<op::Bytes> expected = Expected(sized, 1);
        REQUIRE(expected.ok());
        const ptx::MachineOptions options = {.sm = std::string(sm) == "sm_80" ? 80 : 90,
                                             .orders = {ptx::WarpOrder::kLowestFirst, ptx::WarpOrder::kRandom}};
        const Result<ptx::LaunchCounts> counts = RunImage(*source, *image, arguments, options);
        REQUIRE_MESSAGE(counts.ok(), counts.status().message());
        CHECK(std::ranges::equal(arguments.bytes.back(), *expected));
      }
      if (!HasPtxas()) continue;
      const Assembled assembled = Assemble(image->ptx, sm);
      CHECK_MESSAGE(assembled.is_ok, assembled.errors);
      CHECK(assembled.most_spilled == 0);
      CHECK(assembled.remarks == "");
    }
  }
}

TEST_CASE("rows of several axes that are known are one axis, whose sum may be in parts") {
  std::vector<KernelSource> sources;
  for (const int64_t k : {96, 6144}) {
    Product p = Plain(5, 64, k);
    p.dtype = kF16;
    p.batch = 3;
    p.b_panels = true;
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    CHECK(KeepsAway(built.function, "cuda_mma_rows", "matmul") == "");
    CHECK(Wrong(built, SmallIntegers(built, 1), *Expected(p, 1), sources) == "");
    const Result<PtxImage> image = CompilePtx({&sources.back(), 1}, Sm("sm_80"));
    REQUIRE(image.ok());
    CHECK(image->kernels[0].launches.size() == (k == 96 ? 1 : 2));
  }
  CompileForLater(sources);
}

TEST_CASE("each number of rows has a version that is not much slower than its own form") {
  for (const bool allows_groups : {false, true}) {
    for (const int64_t n : {256, 768, 4096, 14336}) {
      for (const int64_t k : {64, 768, 4096, 14336}) {
        MmaSizes sizes{.columns = n, .summands = k, .allows_groups = allows_groups, .allows_parts = false};
        const std::vector<MmaVersion> versions = ChooseMmaVersions(sizes);
        CHECK(versions.size() <= 4);
        CHECK(!versions.back().most_rows);
        for (sizes.rows = 16; sizes.rows <= 8192; sizes.rows *= 2) {
          const auto version = std::ranges::find_if(
              versions, [&](const MmaVersion& each) { return !each.most_rows || sizes.rows <= *each.most_rows; });
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(sizes.rows);
          CHECK(MmaMicroseconds(sizes, version->form) <= 1.5 * MmaMicroseconds(sizes, ChooseMmaForm(sizes)));
        }
      }
    }
  }
}

TEST_CASE("what a rule for any number of rows does not take") {
  const auto why = [](const Product& p) { return KeepsAway(Build(p).function, "cuda_mma_rows", "matmul"); };
  Product p = OfAnyRows(256, 256);
  CHECK(why(p) == "");
  p.symbolic = 0;
  p.m = 40;
  CHECK(why(p) == "its rows are known");
  p.symbolic = 6;
  CHECK(why(p) == "its columns or summands are not known");
  p = OfAnyRows(255, 256);
  CHECK(why(p) == "its columns make no whole tiles");
  p = OfAnyRows(256, 255);
  CHECK(why(p) == "rows of one of its factors are not aligned");
  p = OfAnyRows(256, 256);
  p.a_turned = true;
  CHECK(why(p) == "its summands are not next to each other");
  p = OfAnyRows(256, 256);
  p.batch = 2;
  CHECK(why(p) == "both of its factors have a batch, or it has other columns");
}

}  // namespace
}  // namespace ingot::codegen
