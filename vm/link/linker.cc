// FunctionLinker turns one function into linked code: it finds fixed registers, resolves operands to frame offsets, and
// keeps the checks that are not proved (vm/verify/facts.h). ProgramLinker chooses a variant of each kernel for this CPU
// and loads the images.
#include <algorithm>

#include "runtime/check.h"
#include "runtime/cpu_features.h"
#include "vm/link/linked_program.h"
#include "vm/program/builtins.h"
#include "vm/program/kernel_image.h"
#include "vm/program/limits.h"
#include "vm/verify/facts.h"
#include "vm/verify/type_rules.h"
#include "vm/verify/zeroed_memory.h"

namespace ingot::vm {
namespace {

constexpr uint32_t kNotFixed = UINT32_MAX;

// By a device that this build has.
bool IsLaunched(const Program& program, const Kernel& kernel) {
#ifdef INGOT_CUDA
  const Result<DeviceId> id = DeviceId::Parse(program.devices[kernel.device].kind);  // as the device is made from it
  return id.ok() && id->kind == DeviceKind::kCuda;
#else
  static_cast<void>(program), static_cast<void>(kernel);
  return false;
#endif
}

// Links one function; relies on what the verifier proved.
class FunctionLinker {
 public:
  FunctionLinker(const Program& program, uint32_t id, const std::vector<IngotKernelFn>& kernels)
      : program_(program),
        function_(program.functions[id]),
        kernels_(kernels),
        facts_(function_),
        linked_(std::make_unique<LinkedFunction>()) {
    linked_->function = &function_;
    linked_->id = id;
  }

  std::unique_ptr<LinkedFunction> Run(bool zeroes_all) {
    linked_->frame = LayOutFrame(function_.registers);
    for (size_t i = 0; i < function_.registers.size(); ++i) {
      const Type& type = function_.registers[i];
      if (IsCountedKind(type.kind)) linked_->counted.push_back(linked_->frame.offsets[i]);
      if (type.is_tensor() && type.storage == Storage::kOwned)
        linked_->tensor_owners.push_back(linked_->frame.offsets[i] + 1);
    }
    FindUses();
    FindFixed();
    FindAligned();
    EmitCode();
    MakeParameterRules();
    FindZeroed(zeroes_all);
    linked_->shared_outputs = FindSharedOutputs(program_, function_);
    linked_->needs_activation = !function_.plan.arenas.empty() || !linked_->kernel_calls.empty();
    return std::move(linked_);
  }

 private:
  const Type& TypeOf(RegisterId id) const { return function_.TypeOf(id); }
  uint32_t OffsetOf(RegisterId id) const { return linked_->frame.offsets[id.value]; }

  // ---- writes and reads of registers

  void FindUses() {
    writes_.assign(function_.registers.size(), 0);
    other_uses_ = std::vector<bool>(function_.registers.size());
    const size_t num_given = function_.signature.symbols.size() + function_.signature.params.size();
    for (size_t i = 0; i < num_given; ++i) writes_[i] = 1;
    for (const Instruction& instruction : function_.code) {
      if (instruction.opcode == Opcode::kCallKernel) {
        for (const RegisterId id : instruction.As<op::CallKernel>().ints()) other_uses_[id.value] = true;
        continue;
      }
      const bool drops = InfoOf(instruction.opcode).uses == Uses::kDrop;  // which does nothing to an arena tensor
      ForEachRegister(instruction, [&](RegisterId id, bool is_written) {
        if (is_written) ++writes_[id.value];
        if (!is_written && !drops) other_uses_[id.value] = true;
      });
    }
  }

  // ---- fixed registers

  void FindFixed() {
    fixed_of_.assign(function_.registers.size(), kNotFixed);
    for (const Instruction& in : function_.code) {
      std::optional<FixedRegister> fixed = FixedBy(in);
      if (!fixed || writes_[ResultOf(in).value] != 1) continue;
      fixed_of_[ResultOf(in).value] = static_cast<uint32_t>(linked_->fixed.size());
      linked_->fixed.push_back(*std::move(fixed));
    }
  }

  // The place of the tensor that the instruction makes, where it is fixed.
  std::optional<FixedRegister> FixedBy(const Instruction& in) const {
    FixedRegister fixed;
    switch (in.opcode) {
      case Opcode::kPlanView:
        fixed.source = FixedSource::kArena;
        fixed.index = in.As<op::PlanView>().entry().value;
        return SetPlanCheck(in.As<op::PlanView>(), fixed) ? std::optional(std::move(fixed)) : std::nullopt;
      case Opcode::kConstTensor:
        fixed.source = FixedSource::kConstant;
        fixed.index = in.As<op::ConstTensor>().constant().value;
        fixed.device = TypeOf(ResultOf(in)).device;
        return fixed;
      case Opcode::kState:
        fixed.source = FixedSource::kState;
        fixed.index = in.As<op::State>().state().value;
        return fixed;
      case Opcode::kView:
        return FixedView(in.As<op::View>());
      default:
        return std::nullopt;
    }
  }

  // A view whose bounds are not proved, or that begins inside of an element, is made and checked when its instruction
  // runs.
  std::optional<FixedRegister> FixedView(const op::View<>& in) const {
    const uint32_t source = fixed_of_[in.src().value];
    const Dim offset = facts_.OverSymbols(in.offset_bytes());
    const bool is_proved =
        offset && offset->is_constant() && TypeOf(in.dst()).has_constant_dims() && TypeOf(in.src()).has_constant_dims();
    if (source == kNotFixed || !is_proved) return std::nullopt;
    const DataType dtype = TypeOf(in.dst()).dtype;
    if (offset->constant() % std::max(1, dtype.total_bits() / 8) != 0) return std::nullopt;
    FixedRegister fixed = linked_->fixed[source];
    fixed.offset_bytes = DimCode::Binary(DimOp::kAdd, fixed.offset_bytes, *offset);
    // What has a fixed place begins at a multiple of kPlanAlignment, and views of it at constants.
    if (fixed.offset_bytes.constant() % std::max(1, dtype.bits / 8) != 0) return std::nullopt;
    fixed.needs_check = false;  // inside the source, which is checked itself
    return fixed.offset_bytes.fits() ? std::optional(std::move(fixed)) : std::nullopt;
  }

  // Notes the comparison of sizes that a plan view still needs; false when its dims are no formulas over the symbols.
  bool SetPlanCheck(const op::PlanView<>& in, FixedRegister& fixed) const {
    fixed.dtype = TypeOf(in.dst()).dtype;
    const PlanEntry& entry = function_.plan.entries[fixed.index];
    bool all_constant = entry.size.is_constant();
    for (const DimCode& code : in.dims()) {
      const Dim dim = facts_.OverSymbols(code);
      if (!dim) return false;
      all_constant &= dim->is_constant();
      fixed.dims.push_back(*dim);
    }
    fixed.needs_check = !all_constant;
    return true;
  }

  // ---- alignment: tensors that do not certainly begin at a multiple of kPlanAlignment bytes

  void FindAligned() {
    unaligned_ = std::vector<bool>(function_.registers.size());
    // Pairs (source, target) of registers of which the target gets the source's address. An unaligned source makes its
    // targets unaligned.
    std::vector<std::pair<RegisterId, RegisterId>> aliases;
    std::vector<RegisterId> found;
    const auto find = [&](RegisterId id) {
      if (unaligned_[id.value]) return;
      unaligned_[id.value] = true;
      found.push_back(id);
    };
    for (const Instruction& in : function_.code) {
      if (InfoOf(in.opcode).result != ResultMemory::kAlias || !TypeOf(ResultOf(in)).is_tensor()) continue;
      aliases.emplace_back(AliasedBy(in), ResultOf(in));
      if (in.opcode != Opcode::kView) continue;
      const Dim offset = facts_.OverSymbols(in.As<op::View>().offset_bytes());
      if (!offset || !offset->is_constant() || offset->constant() % kPlanAlignment != 0) find(ResultOf(in));
    }
    std::sort(aliases.begin(), aliases.end());
    while (!found.empty()) {
      const RegisterId from = found.back();
      found.pop_back();
      for (auto alias = std::lower_bound(aliases.begin(), aliases.end(), std::pair(from, RegisterId(0)));
           alias != aliases.end() && alias->first == from; ++alias) {
        find(alias->second);
      }
    }
  }

  void FindZeroed(bool all) {
    linked_->zeroes = std::vector<bool>(function_.code.size(), all);
    linked_->zeroes_arenas = all;
    if (all) return;
    for (const uint32_t at : FindUnproved(program_, function_)) {
      linked_->zeroes[at] = true;
      if (InfoOf(function_.code[at].opcode).result == ResultMemory::kArena) linked_->zeroes_arenas = true;
    }
  }

  void MakeParameterRules() {
    const size_t num_symbols = function_.signature.symbols.size();
    std::vector<bool> bound(num_symbols, false);
    for (size_t i = 0; i < num_symbols; ++i) bound[i] = function_.signature.symbols[i].state.has_value();
    std::vector<int64_t> alignments(function_.registers.size(), 1);
    for (size_t i = 0; i < alignments.size(); ++i) {
      if (other_uses_[i]) alignments[i] = kPlanAlignment;
    }
    for (const Instruction& in : function_.code) {
      if (in.opcode != Opcode::kCallKernel) continue;
      const auto call = in.As<op::CallKernel>();
      const Kernel& kernel = program_.kernels[call.kernel().value];
      for (size_t i = 0; i < call.buffers().size(); ++i) {
        int64_t& alignment = alignments[call.buffers()[i].value];
        alignment = std::max(alignment, kernel.params[i].alignment);
      }
    }
    for (size_t p = 0; p < function_.signature.params.size(); ++p) {
      const Type& type = function_.signature.params[p].type;
      ParameterRule& rule = linked_->parameters.emplace_back();
      // Elements lie at multiples of their size at least.
      rule.alignment = std::max<int64_t>(alignments[num_symbols + p], std::min(64, std::max(1, type.dtype.bits / 8)));
      for (const Dim& dim : type.dims) {
        DimRule& out = rule.dims.emplace_back();
        if (!dim) continue;
        const bool is_symbol = dim->steps().size() == 1 && !dim->is_constant();
        if (dim->is_constant()) {
          out = {DimRule::Kind::kConstant, dim->constant(), {}};
        } else if (is_symbol && !bound[static_cast<size_t>(dim->steps()[0].value)]) {
          bound[static_cast<size_t>(dim->steps()[0].value)] = true;
          out = {DimRule::Kind::kBind, dim->steps()[0].value, {}};
        } else {
          out = {DimRule::Kind::kCompare, 0, *dim};
        }
      }
    }
  }

  // ---- code

  void EmitCode() {
    std::vector<uint32_t> positions(function_.code.size() + 1, 0);
    // A register whose address is fixed is written to the frame only if something reads it there.
    std::vector<bool> read_in_frame = other_uses_;
    for (size_t i = 0; i < function_.code.size(); ++i) {
      const Instruction& in = function_.code[i];
      if (in.opcode == Opcode::kCallKernel) LinkKernelCall(in.As<op::CallKernel>(), read_in_frame);
    }
    size_t next_call = 0;
    for (size_t i = 0; i < function_.code.size(); ++i) {
      const Instruction& in = function_.code[i];
      positions[i] = static_cast<uint32_t>(linked_->code.size());
      if (IsDropped(in, read_in_frame)) continue;
      LinkedInstruction out;
      out.source = static_cast<uint32_t>(i);
      if (in.opcode == Opcode::kCallKernel) {
        const KernelCall& call = *linked_->kernel_calls[next_call++];
        const bool prepared = call.pointers.empty() && call.ints.empty() && call.extents.empty() &&
                              call.alignments.empty() && !call.has_dynamic_workspace && call.function != nullptr &&
                              call.kernel->externals.empty();
        out.op = prepared ? LinkedOp::kKernelPrepared : LinkedOp::kKernel;
        out.data = &call;
      } else if (in.opcode == Opcode::kJump) {
        out.target = in.As<op::Jump>().target().value;
        out.op = out.target <= i ? LinkedOp::kJumpBack : LinkedOp::kJump;
      } else {
        out.op = LinkedOp::kInstruction;
        out.data = linked_->instructions.emplace_back(std::make_unique<FrameInstruction>(Resolve(in))).get();
      }
      linked_->code.push_back(out);
    }
    // Labels to positions in the linked code; a dropped instruction's label is the next one that is there.
    for (LinkedInstruction& out : linked_->code) {
      if (out.op == LinkedOp::kJump || out.op == LinkedOp::kJumpBack) out.target = positions[out.target];
    }
    for (const auto& instruction : linked_->instructions) {
      for (const auto& [spec, value] : instruction->operands()) {
        if (spec.kind == OperandKind::kLabel) value = int64_t{positions[static_cast<size_t>(std::get<int64_t>(value))]};
      }
    }
  }

  bool IsDropped(const Instruction& in, const std::vector<bool>& read_in_frame) const {
    const OpcodeInfo& info = InfoOf(in.opcode);
    if (info.uses == Uses::kDrop) {
      bool has_counted = false;
      ForEachRegister(in, [&](RegisterId id, bool) {
        has_counted |= !TypeOf(id).is_tensor() || TypeOf(id).storage == Storage::kOwned;
      });
      return !has_counted;
    }
    if (info.result == ResultMemory::kNone) return false;
    const uint32_t result = ResultOf(in).value;
    return fixed_of_[result] != kNotFixed && !read_in_frame[result];
  }

  // The instruction with frame offsets in place of registers, in formulas too. Labels are resolved at the end.
  FrameInstruction Resolve(const Instruction& in) const {
    std::vector<Operand> resolved;
    for (const auto& [spec, value] : in.operands()) resolved.push_back(Resolve(spec.kind, value));
    return FrameInstruction(in.opcode, std::move(resolved));
  }

  Operand Resolve(OperandKind kind, const Operand& value) const {
    switch (kind) {
      case OperandKind::kDef:
      case OperandKind::kUse:
        return int64_t{OffsetOf(OperandReader<RegisterId>::Use(value))};
      case OperandKind::kDefList:
      case OperandKind::kUseList: {
        RegisterList offsets;
        for (const RegisterId id : OperandReader<RegisterId>::UseList(value)) offsets.push_back(OffsetOf(id));
        return offsets;
      }
      case OperandKind::kDim:
        return ResolveFormula(std::get<DimCode>(value));
      case OperandKind::kDimList: {
        std::vector<DimCode> codes;
        for (const DimCode& code : std::get<std::vector<DimCode>>(value)) codes.push_back(ResolveFormula(code));
        return codes;
      }
      case OperandKind::kInt:
      case OperandKind::kFloat:
      case OperandKind::kBool:
      case OperandKind::kText:
      case OperandKind::kDType:
      case OperandKind::kLabel:
      case OperandKind::kKernel:
      case OperandKind::kBuiltin:
      case OperandKind::kFunction:
      case OperandKind::kExternal:
      case OperandKind::kConstant:
      case OperandKind::kState:
      case OperandKind::kPlanEntry:
      case OperandKind::kStream:
        return value;
    }
    INGOT_UNREACHABLE();
  }

  DimCode ResolveFormula(const DimCode& code) const {
    std::vector<DimStep> steps(code.steps().begin(), code.steps().end());
    for (DimStep& step : steps) {
      if (step.op == DimOp::kSlot) step.value = OffsetOf(RegisterId(static_cast<uint32_t>(step.value)));
    }
    return DimCode::FromSteps(std::move(steps), INT64_MAX).value();
  }

  void LinkKernelCall(const op::CallKernel<>& in, std::vector<bool>& read_in_frame) {
    const uint32_t kernel_id = in.kernel().value;
    auto call = std::make_unique<KernelCall>();
    call->kernel = &program_.kernels[kernel_id];
    call->function = kernels_[kernel_id];
    call->first_argument = linked_->num_arguments;
    call->first_int = linked_->num_ints;
    const IdList<RegisterId> buffers = in.buffers(), ints = in.ints();
    const std::vector<std::vector<Dim>> extents = KnownExtents(*call->kernel, ints, facts_);
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      const RegisterId buffer = buffers[i];
      const Type& type = TypeOf(buffer);
      for (uint32_t axis = 0; axis < type.dims.size(); ++axis) {
        if (extents[i][axis] && extents[i][axis] == type.dims[axis]) continue;  // proved
        call->extents.push_back({i, axis, OffsetOf(buffer) + kTensorHeadWords + axis});
        read_in_frame[buffer.value] = true;
      }
      if (unaligned_[buffer.value] && call->kernel->params[i].alignment > 1) call->alignments.push_back({i});
      const uint32_t argument = call->first_argument + i;
      if (fixed_of_[buffer.value] != kNotFixed) {
        linked_->fixed_arguments.push_back({argument, fixed_of_[buffer.value]});
      } else {
        call->pointers.push_back({argument, OffsetOf(buffer)});
      }
    }
    for (uint32_t i = 0; i < ints.size(); ++i) {
      const uint32_t index = call->first_int + i;
      const DataType dtype = call->kernel->ints[i].dtype;
      const Dim& known = facts_.known(ints[i]);
      if (known && dtype == DataType::Int(64)) {
        linked_->fixed_ints.push_back({index, *known});
      } else {
        call->ints.push_back({index, OffsetOf(ints[i]), dtype});
      }
    }
    call->is_launched = IsLaunched(program_, *call->kernel);
    call->has_dynamic_workspace = !call->is_launched && !call->kernel->workspace.is_constant();
    linked_->num_arguments += static_cast<uint32_t>(buffers.size());
    linked_->num_ints += static_cast<uint32_t>(ints.size());
    linked_->kernel_calls.push_back(std::move(call));
  }

  const Program& program_;
  const Function& function_;
  const std::vector<IngotKernelFn>& kernels_;
  const FunctionFacts facts_;
  std::unique_ptr<LinkedFunction> linked_;
  std::vector<uint32_t> writes_;
  std::vector<bool> other_uses_;  // read by something else than a kernel call as a buffer
  std::vector<uint32_t> fixed_of_;
  std::vector<bool> unaligned_;
};

class ProgramLinker {
 public:
  ProgramLinker(const Program& program, const LinkOptions& options) : program_(program), options_(options) {}

  Result<LinkedProgram> Run() {
    linked_.images.resize(program_.images.size());
    std::vector<IngotKernelFn> kernels;
    for (const Kernel& kernel : program_.kernels) {
      INGOT_ASSIGN_OR_RETURN(const IngotKernelFn function, FindKernel(kernel));
      kernels.push_back(function);
      if (!kernel.workspace.is_constant() || IsLaunched(program_, kernel)) continue;
      const int64_t bytes = kernel.workspace.constant();
      if (bytes < 0 || bytes > kMaxArenaBytes) {
        return Status(StatusCode::kCorrupt, {"kernel \"", kernel.name, "\": a workspace of ", bytes, " bytes"});
      }
      linked_.workspace_bytes = std::max(linked_.workspace_bytes, bytes);
    }
    for (uint32_t i = 0; i < program_.functions.size(); ++i) {
      linked_.functions.push_back(FunctionLinker(program_, i, kernels).Run(options_.zeroes_all));
    }
    return std::move(linked_);
  }

 private:
  // Null: the stub.
  Result<IngotKernelFn> FindKernel(const Kernel& kernel) {
    if (IsLaunched(program_, kernel)) {
      if (!options_.stub_kernels) return nullptr;
      return Status(StatusCode::kUnsupportedFile,
                    {"kernel \"", kernel.name, "\" is for the device \"cuda\"; stubs run on the host alone"});
    }
    if (options_.stub_kernels) return nullptr;
    if (options_.find_kernel) {
      if (const IngotKernelFn function = options_.find_kernel(kernel.name)) return function;
    }
    const std::string& device = program_.devices[kernel.device].kind;
    if (device != "cpu") {
      return Status(StatusCode::kUnsupportedFile,
                    {"kernel \"", kernel.name, "\" is for the device \"", device, "\", which is not supported"});
    }
    if (kernel.variants.empty()) {
      return Status(StatusCode::kUnsupportedFile, {"kernel \"", kernel.name, "\" has no code; it runs as a stub only"});
    }
    const KernelVariant* best = nullptr;
    for (const KernelVariant& variant : kernel.variants) {
      if (program_.images[variant.image].arch != HostArchitecture()) continue;
      const CpuFeatures required{variant.required_features};
      if (required.Has(CpuFeature::kAmxTile) && features_.Has(CpuFeature::kAmxTile) && !RequestAmxPermission().ok()) {
        features_ = features_.Without(CpuFeature::kAmxTile);
      }
      if (features_.Covers(required)) {
        best = &variant;
        break;
      }
    }
    if (best == nullptr) return NoVariant(kernel);
    INGOT_ASSIGN_OR_RETURN(const LoadedImage* image, LoadImage(best->image));
    return reinterpret_cast<IngotKernelFn>(image->Address(best->offset));
  }

  Status NoVariant(const Kernel& kernel) const {
    std::string needs;
    for (const KernelVariant& variant : kernel.variants) {
      const KernelImage& image = program_.images[variant.image];
      StrAppend(needs, {(needs.empty() ? "" : "; or "), image.arch, " with ",
                        CpuFeatures{variant.required_features}.ToString()});
    }
    return Status(StatusCode::kUnsupportedFile, {"kernel \"", kernel.name, "\" needs ", needs, "; this is ",
                                                 HostArchitecture(), " with ", features_.ToString()});
  }

  Result<const LoadedImage*> LoadImage(uint32_t index) {
    std::shared_ptr<const LoadedImage>& image = linked_.images[index];
    if (image == nullptr) {
      const KernelImage& source = program_.images[index];
      std::optional<ImageFile> file;
      if (options_.fd >= 0 && source.file_offset) file = ImageFile{options_.fd, *source.file_offset};
      INGOT_ASSIGN_OR_RETURN(image, LoadedImage::Load(source.bytes.bytes, file));
    }
    return image.get();
  }

  const Program& program_;
  const LinkOptions& options_;
  CpuFeatures features_ = CpuFeatures::Detect();  // without AMX where the kernel does not permit it
  LinkedProgram linked_;
};

}  // namespace

Result<LinkedProgram> Link(const Program& program, const LinkOptions& options) {
  return ProgramLinker(program, options).Run();
}

}  // namespace ingot::vm
