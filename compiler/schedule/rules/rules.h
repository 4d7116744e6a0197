// The rules of the default schedule: a predicate and an application each; the table is in default_schedule.cc.
#pragma once

#include "compiler/schedule/default_schedule.h"

namespace ingot::schedule {

// phases.cc
// Whether the block is element-wise and its formula has cases by an index.
bool HasPhases(const ScheduleState& state, const BlockSite& block);
Match<> MatchesPhases(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyPhases(Schedule& schedule, const BlockSite& block, const Target& target);
// gathers.cc
// Whether one element-wise stage reads the block's rows at places from tables, and more than once each.
bool IsRowSource(const ScheduleState& state, const BlockSite& site);
Match<> MatchesGathers(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyGathers(Schedule& schedule, const BlockSite& block, const Target& target);
// interleave.cc
Match<> MatchesInterleave(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyInterleave(Schedule& schedule, const BlockSite& block, const Target& target);
// conv.cc
Match<> MatchesConv(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyConv(Schedule& schedule, const BlockSite& block, const Target& target);
// gemm.cc
Match<> MatchesGemm(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyGemm(Schedule& schedule, const BlockSite& block, const Target& target);
// tile.cc
Match<> MatchesTile(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyTile(Schedule& schedule, const BlockSite& block, const Target& target);
// rows.cc
Match<> MatchesRows(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyRows(Schedule& schedule, const BlockSite& block, const Target& target);
// cuda_matmul.cc
Match<> MatchesCudaMatmul(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaMatmul(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_wgmma.cc. MatchesAnyCudaWgmma asks for the form alone, whatever the sizes are.
Match<> MatchesAnyCudaWgmma(const ScheduleState& state, const BlockSite& site, const Target& target);
Match<> MatchesCudaWgmma(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaWgmma(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_mma.cc
Match<> MatchesCudaMma(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaMma(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_mma_rows.cc
Match<> MatchesCudaMmaRows(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaMmaRows(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_vector_product.cc
Match<> MatchesCudaVectorProduct(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaVectorProduct(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_windows.cc
Match<> MatchesCudaWindows(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaWindows(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_rows.cc
Match<> MatchesCudaRows(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaRows(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_threads.cc
Match<> MatchesCudaThreads(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaThreads(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_columns.cc
Match<> MatchesCudaColumns(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaColumns(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_reduction.cc
Match<> MatchesCudaReduction(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaReduction(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_strips.cc
Match<> MatchesCudaStrips(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaStrips(Schedule& schedule, const BlockSite& site, const Target& target);
// cuda_transpose.cc
Match<> MatchesCudaTranspose(const ScheduleState& state, const BlockSite& site, const Target& target);
std::vector<BlockName> ApplyCudaTranspose(Schedule& schedule, const BlockSite& site, const Target& target);
// elementwise.cc
Match<> MatchesInline(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyInline(Schedule& schedule, const BlockSite& block, const Target& target);
Match<> MatchesElementwise(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyElementwise(Schedule& schedule, const BlockSite& block, const Target& target);
// transpose.cc
Match<> MatchesTranspose(const ScheduleState& state, const BlockSite& block, const Target& target);
std::vector<BlockName> ApplyTranspose(Schedule& schedule, const BlockSite& block, const Target& target);

}  // namespace ingot::schedule
