// Two walks over each function: Sharing finds what memory each register shows and who uses it, for all functions first,
// since a state has one place in all of them; Placement gives registers, plan and states their devices and inserts the
// copies.
#include "compiler/lower/place_on_device.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/lower/insert_instructions.h"
#include "compiler/lower/release.h"
#include "vm/program/builtins.h"

namespace ingot::lower {
namespace {

constexpr uint8_t kHost = 0, kDevice = 1;

vm::Instruction Make(vm::Opcode opcode, std::vector<vm::Operand> operands) { return {opcode, std::move(operands)}; }
vm::Operand Word(vm::RegisterId id) { return int64_t{id.value}; }

// Registers, plan entries and states of a function in sets that show the same memory.
class Sharing {
 public:
  Sharing(const vm::Program& program, const vm::Function& function, bool is_called)
      : program_(program),
        function_(function),
        is_called_(is_called),
        first_entry_(function.registers.size()),
        first_state_(first_entry_ + function.plan.entries.size()),
        first_result_(first_state_ + program.states.size()),
        parents_(first_result_ + function.signature.results.size()),
        on_host_(parents_.size(), false),
        in_kernel_(parents_.size(), false) {
    std::iota(parents_.begin(), parents_.end(), size_t{0});
    const size_t num_symbols = function.signature.symbols.size();
    for (size_t i = 0; is_called && i < function.signature.params.size(); ++i) on_host_[num_symbols + i] = true;
    for (const vm::Symbol& symbol : function.signature.symbols) {
      if (symbol.state) KeepOnHost(OfState(*symbol.state));
    }
    for (size_t i = 0; i < function.plan.entries.size(); ++i) {
      if (const auto root = function.plan.entries[i].alias_of) Join(OfEntry(i), OfEntry(root->value));
    }
    for (const vm::Instruction& in : function.code) Visit(in);
  }

  size_t OfState(vm::StateId id) const { return first_state_ + id.value; }
  size_t OfEntry(size_t entry) const { return first_entry_ + entry; }
  size_t OfResult(size_t result) const { return first_result_ + result; }
  void KeepOnHost(size_t member) { on_host_[Root(member)] = true; }
  bool is_on_host(size_t member) const { return on_host_[Root(member)]; }
  bool is_in_kernel(size_t member) const { return in_kernel_[Root(member)]; }
  size_t Root(size_t member) const {
    for (; parents_[member] != member; member = parents_[member]) parents_[member] = parents_[parents_[member]];
    return member;
  }

 private:
  bool IsTensor(vm::RegisterId id) const { return function_.TypeOf(id).is_tensor(); }

  void Join(size_t a, size_t b) {
    const size_t from = Root(a), to = Root(b);
    if (from == to) return;
    parents_[from] = to;
    on_host_[to] = on_host_[to] || on_host_[from];
    in_kernel_[to] = in_kernel_[to] || in_kernel_[from];
  }

  void Visit(const vm::Instruction& in) {
    switch (in.opcode) {
      case vm::Opcode::kCallKernel: {
        const auto call = in.As<vm::op::CallKernel>();
        const bool is_launched = program_.kernels[call.kernel().value].device == kDevice;
        for (const vm::RegisterId id : call.buffers()) (is_launched ? in_kernel_ : on_host_)[Root(id.value)] = true;
        return;
      }
      case vm::Opcode::kPlanView:
        return Join(in.As<vm::op::PlanView>().dst().value, OfEntry(in.As<vm::op::PlanView>().entry().value));
      case vm::Opcode::kState:
        return Join(in.As<vm::op::State>().dst().value, OfState(in.As<vm::op::State>().state()));
      case vm::Opcode::kView:
      case vm::Opcode::kMove:
      case vm::Opcode::kMatch:
        if (IsTensor(vm::ResultOf(in)) && IsTensor(vm::AliasedBy(in))) {
          return Join(vm::ResultOf(in).value, vm::AliasedBy(in).value);
        }
        break;
      case vm::Opcode::kReturn: {
        if (is_called_) break;
        const auto values = in.As<vm::op::Return>().values();
        for (size_t i = 0; i < values.size(); ++i) {
          if (IsTensor(values[i])) Join(values[i].value, OfResult(i));
        }
        return;
      }
      case vm::Opcode::kAllocOutput:  // the result's memory, whatever register returns it
        if (is_called_) break;
        return Join(vm::ResultOf(in).value, OfResult(static_cast<size_t>(in.As<vm::op::AllocOutput>().result())));
      case vm::Opcode::kAlloc:
      case vm::Opcode::kConstTensor:
      case vm::Opcode::kTensorDim:
      case vm::Opcode::kRelease:
      case vm::Opcode::kCopy:
      case vm::Opcode::kCopyInto:
        return;  // on any device, between any two of them
      default:
        break;
    }
    vm::ForEachRegister(in, [&](vm::RegisterId id, bool) {
      if (IsTensor(id)) KeepOnHost(id.value);
    });
  }

  const vm::Program& program_;
  const vm::Function& function_;
  const bool is_called_;
  const size_t first_entry_, first_state_, first_result_;  // among the members, of which registers are first
  mutable std::vector<size_t> parents_;                    // Root shortens the ways
  std::vector<bool> on_host_, in_kernel_;                  // of roots: the host uses it, a launched kernel does
};

class Placement {
 public:
  Placement(const vm::Program& program, vm::Function& function, const Sharing& sharing)
      : program_(program), function_(function), sharing_(sharing), num_registers_(function.registers.size()) {}

  void Run() {
    for (uint32_t i = 0; i < program_.states.size(); ++i) states_[sharing_.Root(sharing_.OfState(vm::StateId(i)))] = i;
    for (uint32_t i = 0; i < num_registers_; ++i) {
      vm::Type& type = function_.registers[i];
      if (type.is_tensor() && IsOnDevice(i)) type.device = kDevice;
    }
    PlaceSignature();
    PlacePlan();
    CountWrites();
    InsertCopies();
    StretchLiveRanges();
    ReleaseAtLastUse(function_, static_cast<uint32_t>(num_registers_));
  }

 private:
  bool IsOnDevice(size_t member) const {
    const auto state = states_.find(sharing_.Root(member));
    if (state != states_.end()) return program_.states[state->second].device == kDevice;
    return sharing_.is_in_kernel(member) && !sharing_.is_on_host(member);
  }

  void PlaceSignature() {
    vm::Signature& signature = function_.signature;
    for (size_t i = 0; i < signature.params.size(); ++i) {
      vm::Type& type = signature.params[i].type;
      if (type.is_tensor()) type.device = function_.registers[signature.symbols.size() + i].device;
    }
    for (size_t i = 0; i < signature.results.size(); ++i) {
      if (signature.results[i].type.is_tensor() && IsOnDevice(sharing_.OfResult(i)))
        signature.results[i].type.device = kDevice;
    }
  }

  // Entries keep their offsets, so that the arena of the device is as large as the plan's one was, and so is the host's
  // where entries stay there.
  void PlacePlan() {
    vm::MemoryPlan& plan = function_.plan;
    if (plan.arenas.empty()) return;
    std::vector<bool> on_device;
    for (size_t i = 0; i < plan.entries.size(); ++i) on_device.push_back(IsOnDevice(sharing_.OfEntry(i)));
    const vm::Arena arena = plan.arenas[0];
    plan.arenas.clear();
    uint32_t of_host = 0, of_device = 0;
    if (std::ranges::find(on_device, false) != on_device.end()) {
      of_device = 1;
      plan.arenas.push_back(arena);
    }
    if (std::ranges::find(on_device, true) != on_device.end()) plan.arenas.push_back({kDevice, arena.size});
    for (size_t i = 0; i < plan.entries.size(); ++i) plan.entries[i].arena = on_device[i] ? of_device : of_host;
  }

  void CountWrites() {
    writes_.assign(num_registers_, 0);
    for (const vm::Instruction& in : function_.code) {
      vm::ForEachRegister(in, [&](vm::RegisterId id, bool is_written) { writes_[id.value] += is_written ? 1 : 0; });
      if (in.opcode == vm::Opcode::kConstTensor) {
        constants_[in.As<vm::op::ConstTensor>().dst()] = in.As<vm::op::ConstTensor>().constant();
      }
    }
  }

  void InsertCopies() {
    std::set<uint32_t> labels;
    for (const vm::Instruction& in : function_.code)
      vm::ForEachLabel(in, [&](uint32_t target) { labels.insert(target); });
    Insertions insertions(function_);
    for (uint32_t pc = 0; pc < function_.code.size(); ++pc) {
      vm::Instruction& in = function_.code[pc];
      if (labels.contains(pc)) copies_.clear();
      if (StoresLength(in)) insertions.before[pc].push_back(Make(vm::Opcode::kSync, {int64_t{kDevice}, int64_t{0}}));
      if (in.opcode == vm::Opcode::kCallKernel) {
        if (program_.kernels[in.As<vm::op::CallKernel>().kernel().value].device == kDevice) {
          CopyAround(in, insertions.before[pc], insertions.behind[pc]);
          continue;
        }
        copies_.clear();
      }
      const vm::OpcodeInfo& info = vm::InfoOf(in.opcode);
      const bool may_write = info.calls != vm::Callee::kNothing || in.opcode == vm::Opcode::kCopyInto;
      if (may_write || info.flow != vm::Flow::kNext) copies_.clear();
      vm::ForEachRegister(in, [&](vm::RegisterId id, bool is_written) {
        if (is_written) copies_.erase(id);
      });
    }
    InsertInstructions(function_, std::move(insertions));
  }

  // Whether a state's length is stored. What was queued before has to have ended well: a call that fails leaves caches as
  // they were.
  static bool StoresLength(const vm::Instruction& in) {
    return in.opcode == vm::Opcode::kCallBuiltin && in.As<vm::op::CallBuiltin>().builtin() == vm::Builtin::kStoreInt;
  }

  // Gives the call the device's copies of what is on the host.
  void CopyAround(vm::Instruction& in, std::vector<vm::Instruction>& before, std::vector<vm::Instruction>& behind) {
    const auto call = in.As<vm::op::CallKernel>();
    const vm::Kernel& kernel = program_.kernels[call.kernel().value];
    vm::RegisterList buffers;
    std::vector<std::pair<vm::RegisterId, vm::RegisterId>> written;  // on the host, its copy
    const auto is_written = [&](vm::RegisterId host) {
      for (size_t i = 0; i < call.buffers().size(); ++i) {
        if (call.buffers()[i] == host && kernel.params[i].role != vm::ParamRole::kIn) return true;
      }
      return false;
    };
    for (size_t i = 0; i < call.buffers().size(); ++i) {
      const vm::RegisterId host = call.buffers()[i];
      if (function_.TypeOf(host).device == kDevice) {
        buffers.push_back(host.value);
        continue;
      }
      const vm::ParamRole role = kernel.params[i].role;
      // Of what had elements before the call a kernel may write a part, or read some. The copy that a kernel writes is
      // another one than the copy that it reads of the same tensor.
      const bool is_fresh = role == vm::ParamRole::kOut && function_.TypeOf(host).storage != vm::Storage::kBorrowedMut;
      const vm::RegisterId copy = is_fresh ? Room(host, before) : Contents(host, is_written(host), before);
      buffers.push_back(copy.value);
      if (role != vm::ParamRole::kIn) written.emplace_back(host, copy);
    }
    auto operands = in.operands();
    operands[1].value = std::move(buffers);
    if (written.empty()) return;
    copies_.clear();  // other registers may show what was written
    for (const auto& [host, copy] : written) {
      behind.push_back(Make(vm::Opcode::kCopyInto, {Word(host), Word(copy), int64_t{0}}));
      copies_[host] = copy;
    }
  }

  // A register of the device with the elements of a tensor of the host.
  vm::RegisterId Contents(vm::RegisterId host, bool is_written, std::vector<vm::Instruction>& before) {
    if (const auto known = copies_.find(host); known != copies_.end() && !is_written) return known->second;
    vm::RegisterId copy;
    if (const auto constant = constants_.find(host); constant != constants_.end() && writes_[host.value] == 1) {
      copy = RegisterOf(read_, host, vm::Storage::kConstant);
      before.push_back(Make(vm::Opcode::kConstTensor, {Word(copy), int64_t{constant->second.value}}));
    } else {
      copy = RegisterOf(read_, host, vm::Storage::kOwned);
      before.push_back(Make(vm::Opcode::kCopy, {Word(copy), Word(host), int64_t{0}}));
    }
    return copies_[host] = copy;
  }

  // A register of the device with memory for a tensor of these dims.
  vm::RegisterId Room(vm::RegisterId host, std::vector<vm::Instruction>& before) {
    const vm::RegisterId room = RegisterOf(written_, host, vm::Storage::kOwned);
    std::vector<DimCode> dims;
    const vm::Type type = function_.TypeOf(host);
    for (size_t axis = 0; axis < type.dims.size(); ++axis) {
      if (type.dims[axis]) {
        dims.push_back(*type.dims[axis]);
        continue;
      }
      const vm::RegisterId extent = AddRegister(vm::Type::Int());
      before.push_back(Make(vm::Opcode::kTensorDim, {Word(extent), Word(host), static_cast<int64_t>(axis)}));
      dims.push_back(DimCode::Slot(extent.value));
    }
    before.push_back(Make(vm::Opcode::kAlloc, {Word(room), std::move(dims)}));
    return room;
  }

  vm::RegisterId RegisterOf(std::map<vm::RegisterId, vm::RegisterId>& made, vm::RegisterId host, vm::Storage storage) {
    const auto [found, is_new] = made.try_emplace(host);
    if (is_new) {
      const vm::Type& type = function_.TypeOf(host);
      found->second = AddRegister(vm::Type::Tensor(type.dtype, type.dims, storage, kDevice));
    }
    return found->second;
  }

  vm::RegisterId AddRegister(vm::Type type) {
    function_.registers.push_back(std::move(type));
    return vm::RegisterId(static_cast<uint32_t>(function_.registers.size() - 1));
  }

  // Copies read and write entries before and behind the calls that used them.
  void StretchLiveRanges() {
    std::map<size_t, std::vector<size_t>> entries;  // by the root of what shows them
    for (size_t i = 0; i < function_.plan.entries.size(); ++i) entries[sharing_.Root(sharing_.OfEntry(i))].push_back(i);
    for (uint32_t pc = 0; pc < function_.code.size(); ++pc) {
      if (function_.code[pc].opcode != vm::Opcode::kCopyInto) continue;
      const vm::RegisterId host = function_.code[pc].As<vm::op::CopyInto>().dst();
      if (host.value >= num_registers_) continue;
      const auto shown = entries.find(sharing_.Root(host.value));
      if (shown == entries.end()) continue;
      for (const size_t i : shown->second) {
        vm::PlanEntry& entry = function_.plan.entries[i];
        // Behind the call that was the last to touch the entry, and directly so.
        if (entry.last < pc && IsCopyBack(entry.last, pc)) entry.last = pc;
      }
    }
  }

  // Whether nothing but copies lies between the kernel call at `call` and the copy at `pc`.
  bool IsCopyBack(uint32_t call, uint32_t pc) const {
    for (uint32_t at = call + 1; at <= pc; ++at) {
      if (function_.code[at].opcode != vm::Opcode::kCopyInto) return false;
    }
    return true;
  }

  const vm::Program& program_;
  vm::Function& function_;
  const Sharing& sharing_;
  const size_t num_registers_;         // before placement
  std::map<size_t, uint32_t> states_;  // by their roots
  std::vector<int> writes_;            // to each register
  std::map<vm::RegisterId, vm::ConstantId> constants_;
  std::map<vm::RegisterId, vm::RegisterId> read_, written_;  // registers for copies, by what is on the host
  std::map<vm::RegisterId, vm::RegisterId> copies_;          // that have the elements of what is on the host now
};

}  // namespace

void PlaceOnDevice(vm::Program& program) {
  // Tensors that callers give and take are on the device where kernels use them. Those of functions that the program
  // calls, too, stay on the host.
  std::vector<bool> is_called(program.functions.size());
  for (size_t i = 0; i < program.functions.size(); ++i) {
    if (!program.functions[i].exported) is_called[i] = true;
    for (const vm::Instruction& in : program.functions[i].code) {
      if (in.opcode == vm::Opcode::kCallFunction) is_called[in.As<vm::op::CallFunction>().function().value] = true;
      if (in.opcode == vm::Opcode::kMakeClosure) is_called[in.As<vm::op::MakeClosure>().function().value] = true;
    }
  }
  std::vector<Sharing> sharings;
  for (size_t i = 0; i < program.functions.size(); ++i) {
    sharings.emplace_back(program, program.functions[i], is_called[i]);
  }
  for (uint32_t i = 0; i < program.states.size(); ++i) {
    bool on_host = false, in_kernel = false;
    for (const Sharing& sharing : sharings) {
      const size_t member = sharing.OfState(vm::StateId(i));
      on_host = on_host || sharing.is_on_host(member);
      in_kernel = in_kernel || sharing.is_in_kernel(member);
    }
    program.states[i].device = in_kernel && !on_host ? kDevice : kHost;
  }
  for (size_t i = 0; i < program.functions.size(); ++i) Placement(program, program.functions[i], sharings[i]).Run();
}

}  // namespace ingot::lower
