// Which tiles a product of matrix instructions takes. What their blocks read of both factors comes through the second-level
// cache, and that is what most products wait for: large tiles read least of it, small ones keep all multiprocessors at work
// where there are few rows or columns. The numbers are those of an H200, where most of 249 products of 16 to 512 rows, each
// by several forms, took what this says within a fifth; older GPUs differ in all of them by about the same factor.
#include <algorithm>
#include <limits>

#include "compiler/schedule/rules/cuda_mma.h"

namespace ingot::schedule {

namespace {

// Small tiles have more stages, of which as many as fit are on their way.
constexpr MmaForm kForms[] = {
    {false, 16, 32, kMmaDepthBytes, 8},  {false, 32, 32, kMmaDepthBytes, 8},  {false, 32, 64, kMmaDepthBytes, 8},
    {false, 64, 32, kMmaDepthBytes, 8},  {false, 64, 64, kMmaDepthBytes, 4},  {false, 64, 128, kMmaDepthBytes, 4},
    {false, 128, 64, kMmaDepthBytes, 4}, {true, 128, 128, kMmaDepthBytes, 6}, {false, 128, 128, kMmaDepthBytes, 3},
    {true, 256, 128, kMmaDepthBytes, 4}, {true, 128, 256, kMmaDepthBytes, 4}, {true, 128, 192, kMmaDepthBytes, 4},
};
constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kMostPartsOfMma = 32, kLeastStepsOfPart = 4;
constexpr size_t kMostVersions = 4;
constexpr double kLittleLoss = 1.1;
// Of unknown numbers of rows, those that are tried.
constexpr int64_t kFewestRows = 16, kManyRows = 8192;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What is copied ahead is several tiles, and half of the rows at least are no padding.
bool Allows(const MmaSizes& sizes, const MmaForm& form) {
  if (!form.by_groups) return !sizes.has_whole_tiles || sizes.columns % form.columns == 0;
  return sizes.allows_groups && sizes.element_bytes == 2 && sizes.summands * sizes.element_bytes > form.depth &&
         sizes.rows * 2 > form.rows;
}

}  // namespace

double MmaMicroseconds(const MmaSizes& sizes, const MmaForm& form) {
  // Bytes and operations in a microsecond.
  constexpr double kOfCache = 6.5e6, kOfMultiprocessor = 6e4, kOfMemory = 3.9e6, kOfSums = 4e6;
  constexpr double kOperations = 5e8, kOperationsAlone = 3.7e8, kOperationsOfGroups = 7e8;
  constexpr double kLaunch = 2.3, kRound = 0.7, kSecondLaunch = 3.5;
  const int64_t steps = CeilDiv(CeilDiv(sizes.summands * sizes.element_bytes, form.depth), form.parts);
  const int64_t blocks =
      sizes.batch * CeilDiv(sizes.rows, form.rows) * CeilDiv(sizes.columns, form.columns) * form.parts;
  const auto of_block = static_cast<double>(steps * form.depth * (form.rows + form.columns));
  const auto rounds = static_cast<double>(CeilDiv(blocks, kMultiprocessors));
  const auto bytes =
      static_cast<double>((sizes.batch * sizes.rows + sizes.columns) * sizes.summands * sizes.element_bytes);
  const double operations =
      static_cast<double>(2 * form.rows * form.columns * steps * form.depth) / static_cast<double>(sizes.element_bytes);
  // Blocks of single warps wait less for their instructions where a multiprocessor has two of them.
  const double all = form.by_groups ? kOperationsOfGroups : rounds > 1 ? kOperations : kOperationsAlone;
  const double rate = all * 2 / static_cast<double>(sizes.element_bytes * kMultiprocessors);
  const double time = std::max({static_cast<double>(blocks) * of_block / kOfCache,
                                rounds * of_block / kOfMultiprocessor, bytes / kOfMemory, rounds * operations / rate});
  const double alone = kLaunch + rounds * kRound + time;
  if (form.parts == 1) return alone;
  const auto sums = static_cast<double>(form.parts * sizes.batch * sizes.rows * sizes.columns * 4);
  return alone + kSecondLaunch + 2 * sums / kOfSums;
}

MmaForm ChooseMmaForm(const MmaSizes& sizes) {
  MmaForm best;
  double least = std::numeric_limits<double>::infinity();
  for (MmaForm form : kForms) {
    if (!Allows(sizes, form)) continue;
    const int64_t steps = CeilDiv(sizes.summands * sizes.element_bytes, form.depth);
    for (int64_t parts = 1; parts <= (sizes.allows_parts ? kMostPartsOfMma : 1); parts *= 2) {
      if (parts > 1 && steps / parts < kLeastStepsOfPart) break;
      form.parts = parts;
      const double time = MmaMicroseconds(sizes, form);
      if (time >= least) continue;
      best = form;
      least = time;
    }
  }
  return best;
}

std::vector<MmaVersion> ChooseMmaVersions(MmaSizes sizes) {
  sizes.allows_parts = false;  // there would be memory for those of all rows, whatever version runs
  const auto time = [&](int64_t rows, const MmaForm& form) {
    sizes.rows = rows;
    return MmaMicroseconds(sizes, form);
  };
  std::vector<MmaVersion> versions;
  for (int64_t rows = kFewestRows; rows <= kManyRows; rows *= 2) {
    sizes.rows = rows;
    const MmaForm form = ChooseMmaForm(sizes);
    if (!versions.empty() && versions.back().form == form) {
      versions.back().most_rows = rows;
    } else {
      versions.push_back({form, rows});
    }
  }
  // The version goes whose rows the next one takes with the least loss, while there are many or it is little.
  while (versions.size() > 1) {
    const auto loss = [&](size_t i) {
      const int64_t rows = *versions[i].most_rows;
      return time(rows, versions[i + 1].form) / time(rows, versions[i].form);
    };
    size_t least = 0;
    for (size_t i = 1; i + 1 < versions.size(); ++i) {
      if (loss(i) < loss(least)) least = i;
    }
    if (versions.size() <= kMostVersions && loss(least) > kLittleLoss) break;
    versions.erase(versions.begin() + static_cast<std::ptrdiff_t>(least));
  }
  versions.back().most_rows.reset();
  return versions;
}

}  // namespace ingot::schedule
