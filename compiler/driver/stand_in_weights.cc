// All stand-ins are parts of one buffer of noise, so a constant is recognised as a stand-in by its address. Hide,
// Reveal and Restore are three walks over constants.
#include "compiler/driver/stand_in_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/ir/visitor.h"

namespace ingot::driver {

namespace {

// Stand-ins begin a few bytes apart in the noise. Two of few bytes may be equal by chance; then the next place is
// tried, for which spare noise is kept.
constexpr size_t kDistance = 8;
constexpr size_t kSpare = 4096;

bool IsReplaceable(const ir::ConstantNode& constant) {
  const DataType dtype = constant.data->dtype();
  const bool is_weight =
      dtype.is_floating() || dtype.code == TypeCode::kBfloat || (dtype.is_integral() && dtype.bits == 8);
  return !constant.name.empty() && is_weight && constant.data->num_elements() > 1;
}

class Collector : public ir::ExprMutator {
 public:
  // By name; null: several different constants have the name.
  std::map<std::string, std::shared_ptr<const ir::ConstantData>> found;

 protected:
  using ExprMutator::Mutate;
  ir::Expr Mutate(const ir::Constant& constant) override {
    if (!constant->name.empty()) {
      const auto [at, is_new] = found.emplace(constant->name, constant->data);
      if (!is_new && at->second != nullptr && !at->second->Equals(*constant->data)) at->second = nullptr;
    }
    return constant;
  }
};

class Replacer : public ir::ExprMutator {
 public:
  explicit Replacer(const std::map<std::string, std::shared_ptr<const ir::ConstantData>>& stand_ins)
      : stand_ins_(stand_ins) {}

 protected:
  using ExprMutator::Mutate;
  ir::Expr Mutate(const ir::Constant& constant) override {
    const auto found = stand_ins_.find(constant->name);
    return found == stand_ins_.end() ? constant : ir::Make<ir::ConstantNode>(found->second, constant->name);
  }

 private:
  const std::map<std::string, std::shared_ptr<const ir::ConstantData>>& stand_ins_;
};

// Calls fn(variable, function) for the graph functions, in order.
template <typename Fn>
void ForEachGraphFunction(const ir::IRModule& module, Fn fn) {
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function)) fn(entry.var, function);
  }
}

}  // namespace

StandInWeights::ConstantDataPtr StandInWeights::MakeStandIn(const ir::ConstantData& weight) {
  for (;; next_ += kDistance) {
    INGOT_CHECK(weight.bytes().size() <= noise_->size() && next_ <= noise_->size() - weight.bytes().size());
    const std::span<const std::byte> bytes = std::span(*noise_).subspan(next_, weight.bytes().size());
    auto stand_in = std::make_shared<const ir::ConstantData>(weight.dtype(), weight.dims(), bytes, noise_);
    if (!hashes_.emplace(stand_in->ContentHash(), true).second) continue;
    next_ += kDistance;
    return stand_in;
  }
}

ir::IRModule StandInWeights::Hide(const ir::IRModule& module) {
  Collector collector;
  ForEachGraphFunction(module,
                       [&](const ir::GlobalVar&, const ir::Function& function) { collector.MutateFunction(function); });
  std::erase_if(collector.found, [](const auto& entry) {
    return entry.second == nullptr || !IsReplaceable(*ir::Make<ir::ConstantNode>(entry.second, entry.first));
  });
  size_t largest = 0;
  for (const auto& [name, data] : collector.found) largest = std::max(largest, data->bytes().size());
  noise_ =
      std::make_shared<std::vector<std::byte>>((largest + (collector.found.size() + kSpare) * kDistance + 7) / 8 * 8);
  uint64_t state = 0;
  for (size_t i = 0; i < noise_->size(); i += sizeof state) {  // splitmix64 (Steele, Lea, Flood 2014)
    state += 0x9e3779b97f4a7c15u;
    uint64_t word = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    word ^= word >> 31;
    std::memcpy(noise_->data() + i, &word, sizeof word);
  }
  std::map<std::string, ConstantDataPtr> stand_ins;
  for (const auto& [name, data] : collector.found) {
    const ConstantDataPtr stand_in = MakeStandIn(*data);
    weights_.emplace(stand_in->bytes().data(), Weight{name, data});
    stand_ins.emplace(name, stand_in);
  }
  ir::IRModule hidden = module;
  ForEachGraphFunction(module, [&](const ir::GlobalVar& var, const ir::Function& function) {
    hidden.Set(var, Replacer(stand_ins).MutateFunction(function));
  });
  return hidden;
}

class StandInWeights::Revealer : public ir::ExprMutator {
 public:
  explicit Revealer(const std::unordered_map<const std::byte*, Weight>& weights) : weights_(weights) {}

 protected:
  using ExprMutator::Mutate;
  ir::Expr Mutate(const ir::Constant& constant) override {
    const auto found = weights_.find(constant->data->bytes().data());
    if (found == weights_.end()) return constant;
    return ir::Make<ir::ConstantNode>(found->second.data, found->second.name);
  }

 private:
  const std::unordered_map<const std::byte*, Weight>& weights_;
};

ir::IRModule StandInWeights::Reveal(const ir::IRModule& module) const {
  ir::IRModule revealed = module;
  ForEachGraphFunction(module, [&](const ir::GlobalVar& var, const ir::Function& function) {
    revealed.Set(var, Revealer(weights_).MutateFunction(function));
  });
  return revealed;
}

void StandInWeights::Restore(vm::Program& program) const {
  for (uint32_t i = 0; i < program.constants.size(); ++i) {
    vm::Constant& constant = program.constants[i];
    const std::byte* begin = constant.bytes.data();
    if (noise_ == nullptr || constant.bytes.owner.get() != noise_.get()) continue;
    const auto found = weights_.find(begin);
    INGOT_CHECK(found != weights_.end() && found->second.data->dtype() == constant.dtype &&
                    found->second.data->dims() == constant.dims,
                "a pass looked into a weight that may be replaced");
    constant.name = found->second.name;
    constant.bytes = SharedBytes(found->second.data->owner(), found->second.data->bytes());
    program.weights.push_back({vm::ConstantId(i), std::nullopt, 0});
  }
}

}  // namespace ingot::driver
