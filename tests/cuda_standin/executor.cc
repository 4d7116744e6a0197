// Blocks, warps and their paths: which lanes run which instruction next. Lanes that take different ways of a branch
// run one after the other up to its immediate post-dominator, as a stack of paths. A return takes its lanes out of all
// paths of its frame, an exit out of all frames.
#include "tests/cuda_standin/executor.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ingot::ptx {

const char* WarpOrderName(WarpOrder order) {
  constexpr const char* kNames[] = {"lowest warp first", "highest warp first", "warps in turns", "random warps"};
  return kNames[static_cast<size_t>(order)];
}

Launch& Warp::launch() { return block_.launch; }
uint32_t Warp::ThreadId(int lane) const {
  return static_cast<uint32_t>(block_.linear) << 10 | static_cast<uint32_t>(index_ * kLanes + lane);
}

void Warp::Fail(int lane, const std::string& what) {
  Launch& launch = block_.launch;
  if (launch.failed) return;
  launch.failed = true;
  const int64_t* block = launch.config.block;
  const int64_t thread = index_ * kLanes + (lane < 0 ? std::countr_zero(alive_) : lane);
  const Statement* statement = current_ == nullptr ? nullptr : current_->statement;
  launch.error = StrCat({"kernel \"",   launch.program->function->name,
                         "\", line ",   statement == nullptr ? 0 : statement->line,
                         ", \"",        statement == nullptr ? "" : statement->text,
                         "\", block (", block_.index[0],
                         ", ",          block_.index[1],
                         ", ",          block_.index[2],
                         "), thread (", thread % block[0],
                         ", ",          thread / block[0] % block[1],
                         ", ",          thread / block[0] / block[1],
                         "): ",         what});
}

// ---- frames

void Warp::Enter(const Program& program, uint32_t mask) {
  Frame frame;
  frame.program = &program;
  frame.mask = mask;
  frame.local_base = frames_.empty() ? 0 : frames_.back().local_base + frames_.back().program->local_bytes;
  frame.file.assign(static_cast<size_t>(program.register_file_bytes / 8 + 8), 0);
  frame.registers = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(frame.file.data()) + 31) / 32 * 32);
  frame.params.assign(static_cast<size_t>(program.param_bytes * kLanes), 0);
  frame.params_written.assign(frame.params.size(), 0);
  frame.paths.push_back({0, static_cast<int32_t>(program.instructions.size()), mask});
  const int64_t needed = frame.local_base + program.local_bytes;
  if (needed > local_stride_) {  // lanes move apart
    std::vector<uint8_t> data(static_cast<size_t>(needed * kLanes), 0xcd), written(data.size(), 0);
    for (int64_t lane = 0; lane < kLanes && local_stride_ > 0; ++lane) {
      std::copy_n(local_.begin() + lane * local_stride_, local_stride_, data.begin() + lane * needed);
      std::copy_n(local_written_.begin() + lane * local_stride_, local_stride_, written.begin() + lane * needed);
    }
    local_ = std::move(data), local_written_ = std::move(written), local_stride_ = needed;
  }
  // What an earlier call left there is nobody's.
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    std::fill_n(local_written_.begin() + lane * local_stride_ + frame.local_base, program.local_bytes, uint8_t{0});
  }
  registers_ = frame.registers;
  Fill(frame);
  frames_.push_back(std::move(frame));
  registers_ = frames_.back().registers;
}

void Warp::Fill(Frame& frame) {
  for (const Filling& filling : frame.program->fillings) {
    for (int lane = 0; lane < kLanes; ++lane) {
      uint64_t value = filling.value;
      if (filling.kind == Filling::Kind::kSpecial) value = SpecialLane(static_cast<int>(filling.value), lane);
      if (filling.kind == Filling::Kind::kLocalAddress) value += static_cast<uint64_t>(frame.local_base);
      if (filling.bytes == 0) {
        Predicate(filling.place) = value != 0 ? kAllLanes : 0;
      } else {
        std::memcpy(frame.registers + filling.place + lane * filling.bytes, &value, filling.bytes);
      }
    }
    Computed(filling.place) = kAllLanes;
  }
}

void Warp::Leave(uint32_t mask, bool whole_thread) {
  for (size_t f = whole_thread ? 0 : frames_.size() - 1; f < frames_.size(); ++f) {
    for (Frame::Path& path : frames_[f].paths) path.mask &= ~mask;
    if (whole_thread) frames_[f].mask &= ~mask;
  }
  if (whole_thread || frames_.size() == 1) alive_ &= ~mask;
}

void Warp::Call(const Instruction& instruction, uint32_t mask) {
  const Program& callee = (*block_.launch.programs)[static_cast<size_t>(instruction.target)];
  if (frames_.size() >= 64) return Fail(-1, "calls are more than 64 deep");
  Enter(callee, mask);
  Frame& frame = frames_.back();
  const Frame& caller = frames_[frames_.size() - 2];
  frame.call = &instruction;
  const auto num_returns = static_cast<size_t>(callee.function->num_returns);
  for (size_t k = 0; k < instruction.arguments.size(); ++k) {
    const int64_t to = callee.variable_offsets[num_returns + k], from = instruction.arguments[k];
    const int64_t size = callee.function->variables[num_returns + k].size_bytes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto source = caller.program->param_bytes * lane + from, target = callee.param_bytes * lane + to;
      std::copy_n(caller.params.begin() + source, size, frame.params.begin() + target);
      std::copy_n(caller.params_written.begin() + source, size, frame.params_written.begin() + target);
    }
  }
}

// ---- steps

// Makes the innermost path one that has something to run; false when the warp has ended.
static bool Settle(std::vector<Frame::Path>& paths) {
  while (!paths.empty() && (paths.back().mask == 0 || paths.back().at == paths.back().meet)) {
    // The path below holds the lanes of those above it, and stands where they meet.
    paths.pop_back();
  }
  return !paths.empty();
}

void Warp::TakeBranch(const Instruction& instruction, int32_t at, uint32_t taken, uint32_t mask) {
  std::vector<Frame::Path>& paths = frames_.back().paths;
  const uint32_t stayed = mask & ~taken;
  if (taken == 0 || stayed == 0) {
    paths.back().at = taken != 0 ? instruction.target : at + 1;
    return;
  }
  const int32_t meet = instruction.reconverge;
  paths.back().at = meet;
  if (at + 1 != meet) paths.push_back({at + 1, meet, stayed});
  if (instruction.target != meet) paths.push_back({instruction.target, meet, taken});
}

void Warp::TakeIndexedBranch(const Instruction& instruction, int32_t at, uint32_t mask) {
  const uint32_t* index = Lanes<uint32_t>(instruction.r[0]);
  std::vector<Frame::Path>& paths = frames_.back().paths;
  const int32_t meet = instruction.reconverge;
  if (mask != paths.back().mask) return Fail(-1, "a guarded brx.idx is not supported");
  if ((Computed(instruction.r[0]) & mask) != mask) return Fail(-1, "the index of a branch was never computed");
  paths.back().at = meet;
  for (size_t k = 0; k < instruction.targets.size(); ++k) {
    uint32_t lanes = 0;
    for (int lane = 0; lane < kLanes; ++lane) lanes |= (mask >> lane & 1) != 0 && index[lane] == k ? 1u << lane : 0;
    if (lanes != 0 && instruction.targets[k] != meet) paths.push_back({instruction.targets[k], meet, lanes});
    mask &= ~lanes;
  }
  static_cast<void>(at);
  if (mask != 0) Fail(std::countr_zero(mask), "the index of a branch is above its targets");
}

bool Warp::Step() {
  for (;;) {
    Frame& frame = frames_.back();
    if (Settle(frame.paths)) break;
    // The function has ended for all lanes that entered it.
    if (frames_.size() > 1) {
      const Program& callee = *frame.program;
      Frame& caller = frames_[frames_.size() - 2];
      for (size_t k = 0; k < frame.call->returns.size(); ++k) {
        const int64_t size = callee.function->variables[k].size_bytes;
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          if ((frame.mask >> lane & 1) == 0) continue;
          const auto to = caller.program->param_bytes * lane + frame.call->returns[k];
          const auto from = callee.param_bytes * lane + callee.variable_offsets[k];
          std::copy_n(frame.params.begin() + from, size, caller.params.begin() + to);
          std::copy_n(frame.params_written.begin() + from, size, caller.params_written.begin() + to);
        }
      }
    }
    frames_.pop_back();
    if (frames_.empty()) {
      alive_ = 0;
      return false;
    }
    registers_ = frames_.back().registers;
  }
  Frame& frame = frames_.back();
  Frame::Path& path = frame.paths.back();
  const int32_t at = path.at;
  const uint32_t active = path.mask;
  const Instruction& instruction = frame.program->instructions[static_cast<size_t>(at)];
  current_ = &instruction;
  uint32_t mask = active;
  if (instruction.guard != 0) {
    if ((Computed(instruction.guard) & active) != active) {
      return Fail(std::countr_zero(active & ~Computed(instruction.guard)), "a guard that was never computed"), false;
    }
    const uint32_t guard = Predicate(instruction.guard);
    mask &= instruction.guard_negated ? ~guard : guard;
  }
  ++instruction.count;
  ++block_.launch.counts.warp_instructions;
  block_.launch.counts.thread_instructions += std::popcount(mask);
  switch (instruction.flow) {
    case Flow::kNext:
      path.at = at + 1;
      if (mask != 0) instruction.handler(*this, instruction, mask);
      break;
    case Flow::kBranch:
      TakeBranch(instruction, at, mask, active);
      break;
    case Flow::kIndexedBranch:
      TakeIndexedBranch(instruction, at, mask);
      break;
    case Flow::kCall:
      path.at = at + 1;
      if (mask != 0) Call(instruction, mask);
      break;
    case Flow::kReturn:
    case Flow::kExit:
      path.at = at + 1;
      Leave(mask, instruction.flow == Flow::kExit);
      break;
    case Flow::kBarrier:
      path.at = at + 1;
      if (mask != 0) ArriveAtBarrier(instruction, mask);
      break;
  }
  return !block_.launch.failed;
}

void Warp::Run(int64_t budget) {
  Launch& launch = block_.launch;
  while (budget-- > 0 && !waiting_ && !frames_.empty()) {
    if (!Step()) return;
    if (launch.counts.warp_instructions > launch.instruction_limit) return Fail(-1, "the launch runs without end");
  }
}

// ---- barriers

void Warp::ArriveAtBarrier(const Instruction& instruction, uint32_t mask) {
  if (mask != alive_) {
    return Fail(std::countr_zero(alive_ & ~mask), "a divergent barrier: this thread of the warp is not at it");
  }
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(mask));
  const auto value_of = [&](uint32_t place, const char* what) -> int64_t {
    if ((Computed(place) & mask) != mask) return Fail(-1, StrCat({what, " was never computed"})), -1;
    const uint32_t* lanes = Lanes<uint32_t>(place);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) != 0 && lanes[lane] != lanes[first])
        return Fail(lane, StrCat({what, " differs in a warp"})), -1;
    }
    return lanes[first];
  };
  // bar.sync: the barrier, threads; bar.red: the result, the barrier, a predicate.
  const bool reduces = instruction.variant != 0;
  const int64_t id = value_of(instruction.r[reduces ? 1 : 0], "the barrier");
  const bool counted = !reduces && instruction.r[1] != 0;
  const int64_t threads = counted ? value_of(instruction.r[1], "the barrier's number of threads") : 0;
  if (id < 0 || id > 15) return Fail(-1, "barriers are 0 to 15");
  if (threads < 0 || threads % kLanes != 0) return Fail(-1, "a barrier's number of threads is a multiple of 32");
  barrier_ = static_cast<int>(id);
  barrier_threads_ = threads;
  at_barrier_ = &instruction;
  waiting_ = true;
  if (reduces) {
    const uint32_t place = instruction.r[2];
    if ((Computed(place) & mask) != mask) return Fail(-1, "the barrier's predicate was never computed");
    barrier_value_ = Predicate(place) & mask;
  }
}

// Lets the warps go on that wait at a barrier that all have reached; false when no barrier opened.
bool Block::OpenBarriers() {
  bool opened = false;
  for (int id = 0; id < 16; ++id) {
    int64_t arrived = 0, expected = 0, threads = 0, set = 0;
    for (const Warp& warp : warps) {
      if (warp.finished()) continue;
      threads += kLanes;
      if (!warp.waiting_ || warp.barrier_ != id) continue;
      arrived += kLanes;
      expected = std::max(expected, warp.barrier_threads_);
      set += std::popcount(warp.barrier_value_);
    }
    if (arrived == 0 || arrived < (expected == 0 ? threads : expected)) continue;
    opened = true;
    uint32_t joined[32] = {};
    for (Warp& warp : warps) {
      if (warp.finished() || !warp.waiting_ || warp.barrier_ != id) continue;
      if (warp.barrier_threads_ != expected) {
        return warp.Fail(-1, "warps name different numbers of threads for one barrier"), false;
      }
      ++warp.clocks_[warp.index_];
      for (int k = 0; k < 32; ++k) joined[k] = std::max(joined[k], warp.clocks_[k]);
    }
    int64_t participants = 0;
    for (const Warp& warp : warps) {
      if (!warp.finished() && warp.waiting_ && warp.barrier_ == id) participants += std::popcount(warp.alive_);
    }
    for (Warp& warp : warps) {
      if (warp.finished() || !warp.waiting_ || warp.barrier_ != id) continue;
      std::copy(joined, joined + 32, warp.clocks_);
      warp.waiting_ = false;
      launch.clock = std::max(launch.clock, warp.clocks_[warp.index_]);
      const Instruction& at = *warp.at_barrier_;
      if (at.variant == 0) continue;
      const uint32_t place = at.r[0], mask = warp.alive_;
      warp.barrier_value_ = 0;
      if (at.variant == 1) {  // popc
        for (int lane = 0; lane < kLanes; ++lane) warp.Lanes<uint32_t>(place)[lane] = static_cast<uint32_t>(set);
      } else {  // and, or
        const bool value = at.variant == 2 ? set == participants : set > 0;
        warp.Predicate(place) = (warp.Predicate(place) & ~mask) | (value ? mask : 0);
      }
      warp.SetComputed(place, mask, kAllLanes);
    }
  }
  return opened;
}

void Block::ReportDeadlock() {
  for (Warp& warp : warps) {
    if (warp.finished()) continue;
    warp.current_ = warp.at_barrier_;
    return warp.Fail(
        -1, StrCat({"waits for ever at barrier ", warp.barrier_, ": other warps wait elsewhere or never come"}));
  }
}

// ---- blocks

Block::Block(Launch& l, const int64_t at[3], int64_t number) : launch(l), index{at[0], at[1], at[2]}, linear(number) {
  const auto extent = static_cast<size_t>(launch.shared_layout->extent + launch.config.shared_bytes);
  shared.assign(extent, 0xcd);
  shared_state.assign(extent, kNoObject);
  shared_records.assign(launch.check_races ? (extent >> launch.granule_shift) + 1 : 0, AccessRecord{});
}

// Of the four warps of a group, each has run the same wgmmas, and waited for them.
void Block::CheckProductsEnded() {
  for (Warp& warp : warps) {
    if (launch.failed) return;
    if (!warp.products_.empty()) return warp.Fail(-1, "ends, and a wgmma is not waited for");
    if (warp.num_products_ != product_keys[static_cast<size_t>(warp.index_) / 4].size()) {
      return warp.Fail(-1, "the other warps of its group of four ran another wgmma");
    }
  }
}

void Block::Run() {
  const int64_t threads = launch.config.block[0] * launch.config.block[1] * launch.config.block[2];
  const auto num_warps = static_cast<int>((threads + kLanes - 1) / kLanes);
  const uint32_t base = ++launch.clock;
  warps.reserve(static_cast<size_t>(num_warps));
  for (int w = 0; w < num_warps; ++w) {
    const int64_t lanes = std::min<int64_t>(kLanes, threads - int64_t{w} * kLanes);
    Warp& warp = warps.emplace_back(*this, w, lanes == kLanes ? kAllLanes : (1u << lanes) - 1);
    std::fill(warp.clocks_, warp.clocks_ + 32, base);
    warp.Enter(*launch.program, warp.lanes_);
    Frame& frame = warp.frames_.back();
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t at = frame.program->param_bytes * lane;
      std::copy(launch.params.begin(), launch.params.end(), frame.params.begin() + at);
      std::fill_n(frame.params_written.begin() + at, launch.params.size(), uint8_t{1});
    }
  }
  const bool has_products = std::ranges::any_of(launch.program->instructions, [](const Instruction& i) {
    return i.statement->opcode.starts_with("wgmma.mma_async");
  });
  if (has_products) {
    hidden_writes.assign(shared.size(), 0);
    product_reads.assign(shared.size() / 16 + 1, 0);
    product_keys.resize(static_cast<size_t>(num_warps + 3) / 4);
  }
  std::vector<int> ready;
  while (!launch.failed) {
    ready.clear();
    bool all_finished = true;
    for (int w = 0; w < num_warps; ++w) {
      const Warp& warp = warps[static_cast<size_t>(w)];
      all_finished &= warp.finished();
      if (!warp.finished() && !warp.waiting()) ready.push_back(w);
    }
    if (all_finished) break;
    if (ready.empty()) {
      if (!OpenBarriers() && !launch.failed) ReportDeadlock();
      continue;
    }
    constexpr int64_t kToTheBarrier = int64_t{1} << 60;
    switch (launch.order) {
      case WarpOrder::kLowestFirst:
        warps[static_cast<size_t>(ready.front())].Run(kToTheBarrier);
        break;
      case WarpOrder::kHighestFirst:
        warps[static_cast<size_t>(ready.back())].Run(kToTheBarrier);
        break;
      case WarpOrder::kInTurns:
        for (const int w : ready) warps[static_cast<size_t>(w)].Run(1);
        break;
      case WarpOrder::kRandom: {
        const uint64_t random = launch.NextRandom();
        warps[static_cast<size_t>(ready[random % ready.size()])].Run(static_cast<int64_t>(1 + (random >> 32) % 64));
        break;
      }
    }
    // A barrier of part of the block opens as soon as that part is there.
    if (!launch.failed) OpenBarriers();
  }
  if (has_products) CheckProductsEnded();
}

void Launch::Run() {
  const int64_t blocks = config.grid[0] * config.grid[1] * config.grid[2];
  first_clock = ++clock;
  for (int64_t k = 0; k < blocks && !failed; ++k) {
    int64_t linear = order == WarpOrder::kHighestFirst ? blocks - 1 - k : k;
    if (order == WarpOrder::kRandom) linear = (k * 7919 + static_cast<int64_t>(first_clock)) % blocks;
    if (order == WarpOrder::kRandom && blocks % 7919 == 0) linear = k;
    const int64_t at[3] = {linear % config.grid[0], linear / config.grid[0] % config.grid[1],
                           linear / config.grid[0] / config.grid[1]};
    Block block(*this, at, linear);
    // Every byte of a variable is one of an object; what lies between variables is none.
    for (const auto& [offset, size] : shared_layout->objects) {
      std::fill_n(block.shared_state.begin() + offset, size, kUnwritten);
    }
    std::fill_n(block.shared_state.begin() + shared_layout->extent, config.shared_bytes, kUnwritten);
    block.Run();
  }
}

}  // namespace ingot::ptx
