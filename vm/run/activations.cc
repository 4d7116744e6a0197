// Acquire is on the way of every call of a function that has a memory plan or kernel calls. This file is compiled for
// speed; the preparation for new symbol values (memory plan, arenas, addresses of fixed registers) is marked cold.
#include "vm/run/activations.h"

#include <algorithm>

#include "vm/verify/memory_peak.h"

namespace ingot::vm {

Activation::Activation(const LinkedFunction& function, MemoryPool& pool) : memory(&pool), linked(&function) {
  constexpr size_t kBlocks = 10 * 16;  // what the allocator adds, and the pointer to this
  const MemoryPlan& plan = function.function->plan;
  const size_t num_arenas = plan.arenas.size(), num_symbols = function.function->signature.symbols.size();
  const size_t num_words = function.num_arguments + function.num_ints + num_symbols + function.fixed.size() +
                           4 * plan.entries.size() + 2 * num_arenas;  // PlanNumbers may have twice what it needs
  memory.Set(sizeof(Activation) + kBlocks + num_words * sizeof(int64_t) + num_arenas * sizeof(ArenaBlock));
  arguments.resize(function.num_arguments);
  ints.resize(function.num_ints);
  arenas.resize(num_arenas);
  symbols.reserve(num_symbols);
}

Activations::~Activations() {
  for (const auto& of_function : of_functions_) {
    for (const auto& activation : of_function) {
      for (size_t i = 0; i < activation->arenas.size(); ++i) {
        const ArenaBlock& block = activation->arenas[i];
        if (block.data == nullptr) continue;
        devices_.pool(activation->linked->function->plan.arenas[i].device).Free(block.data, block.size);
      }
    }
  }
}

Result<Activation*> Activations::Acquire(const LinkedFunction& linked, const int64_t* symbols) {
  Activation* activation = nullptr;
  for (const auto& candidate : of_functions_[linked.id]) {
    if (!candidate->in_use) {
      activation = candidate.get();
      break;
    }
  }
  if (activation == nullptr) activation = Create(linked);
  const size_t num_symbols = linked.function->signature.symbols.size();
  const bool is_warm =
      activation->prepared && std::equal(activation->symbols.begin(), activation->symbols.end(), symbols);
  if (!is_warm) {
    activation->prepared = false;
    INGOT_RETURN_IF_ERROR(Prepare(*activation, symbols));
    activation->symbols.assign(symbols, symbols + num_symbols);
    activation->prepared = true;
  }
  activation->in_use = true;
  return activation;
}

[[gnu::cold]] Activation* Activations::Create(const LinkedFunction& linked) {
  auto fresh = std::make_unique<Activation>(linked, devices_.pool(0));
  return of_functions_[linked.id].emplace_back(std::move(fresh)).get();
}

// Evaluates the memory plan for these symbols, reserves its arenas, and fills in what stays the same in the kernels'
// argument arrays.
[[gnu::cold]] Status Activations::Prepare(Activation& activation, const int64_t* symbols) {
  const LinkedFunction& linked = *activation.linked;
  const Function& function = *linked.function;
  const std::span<const int64_t> slots(symbols, function.signature.symbols.size());
  if (!activation.planned) {
    INGOT_ASSIGN_OR_RETURN(activation.numbers, EvaluatePlan(function.plan, slots));
    // Where a window is longer than its data, dims computed from the symbols are negative, and so are sizes: the
    // arguments do not fit, and the file is sound.
    for (const int64_t size : activation.numbers.sizes) {
      if (size < 0) return Status(StatusCode::kBadInput, {"a tensor of ", size, " bytes for dims of this length"});
    }
    INGOT_RETURN_IF_ERROR(CheckPlanNumbers(function.plan, activation.numbers, CheckSet::All()).status());
    INGOT_RETURN_IF_ERROR(ReserveArenas(activation));
    activation.planned = IsConstantPlan(function.plan);
  }
  activation.addresses.clear();
  for (const FixedRegister& fixed : linked.fixed) {
    INGOT_ASSIGN_OR_RETURN(std::byte* const address, AddressOf(fixed, activation, slots));
    activation.addresses.push_back(address);
  }
  for (const FixedArgument& argument : linked.fixed_arguments)
    activation.arguments[argument.index] = activation.addresses[argument.fixed];
  for (const FixedInt& value : linked.fixed_ints) {
    INGOT_ASSIGN_OR_RETURN(activation.ints[value.index], value.value.Evaluate(slots));
  }
  return Status();
}

[[gnu::cold]] Result<std::byte*> Activations::AddressOf(const FixedRegister& fixed, const Activation& activation,
                                                        std::span<const int64_t> symbols) const {
  std::byte* base = nullptr;
  if (fixed.source == FixedSource::kConstant) {
    base = ConstantOn(executable_, devices_, fixed.device, fixed.index);
  } else if (fixed.source == FixedSource::kState) {
    base = static_cast<std::byte*>(states_[fixed.index].data());
  } else {
    const uint32_t arena = activation.linked->function->plan.entries[fixed.index].arena;
    base = static_cast<std::byte*>(activation.arenas[arena].data) + activation.numbers.offsets[fixed.index];
    if (fixed.needs_check) {
      int64_t count = 1;
      for (const DimCode& dim : fixed.dims) {
        INGOT_ASSIGN_OR_RETURN(const int64_t extent, dim.Evaluate(symbols));
        if (extent < 0) return Status(StatusCode::kBadInput, {"a tensor with a dimension of ", extent});
        if (__builtin_mul_overflow(count, extent, &count)) count = -1;
        if (count < 0) break;
      }
      const Result<int64_t> bytes = fixed.dtype.SizeBytes(count);
      if (!bytes.ok() || *bytes > activation.numbers.sizes[fixed.index]) {
        return Status(StatusCode::kCorrupt, {"a tensor does not fit into plan entry ", fixed.index, " of ",
                                             activation.numbers.sizes[fixed.index], " bytes"});
      }
    }
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t offset, fixed.offset_bytes.Evaluate(symbols));
  return base + offset;
}

[[gnu::cold]] Status Activations::ReserveArenas(Activation& activation) {
  const MemoryPlan& plan = activation.linked->function->plan;
  for (size_t i = 0; i < plan.arenas.size(); ++i) {
    ArenaBlock& block = activation.arenas[i];
    const int64_t size = activation.numbers.arena_sizes[i];
    MemoryPool& pool = devices_.pool(plan.arenas[i].device);
    if (block.data != nullptr && block.size >= size) continue;
    if (block.data != nullptr) pool.Free(block.data, block.size);
    block = {};
    Result<void*> data = pool.Allocate(size);
    if (!data.ok() && data.status().code() == StatusCode::kOutOfMemory) {
      return Status::OutOfMemory({"an arena of ", size, " bytes, of which the largest tensor at the peak is ",
                                  DominatingTensor(*activation.linked->function, activation.numbers), ": ",
                                  data.status().message()});
    }
    if (!data.ok()) return std::move(data).status();
    block = {*data, size};
    if (activation.linked->zeroes_arenas) {
      INGOT_RETURN_IF_ERROR(devices_.ZeroMemory(plan.arenas[i].device, *data, size));
    }
  }
  return Status();
}

}  // namespace ingot::vm
