// FunctionLinker turns one function into linked code: it finds fixed registers, resolves operands to frame offsets, and
// keeps the checks that are not proved (vm/verify/facts.h). ProgramLinker chooses a variant of each kernel for this CPU and
// loads the images.
#include <algorithm>

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
    linked_->needs_activation = !function_.plan.arenas.empty() || linked_->num_arguments > 0 || linked_->num_ints > 0;
    return std::move(linked_);
  }

 private:
  const Type& TypeOf(uint32_t index) const { return function_.registers[index]; }
  uint32_t OffsetOf(uint32_t index) const { return linked_->frame.offsets[index]; }

  // ---- writes and reads of registers

  void FindUses() {
    writes_.assign(function_.registers.size(), 0);
    other_uses_.assign(function_.registers.size(), false);
    const size_t num_given = function_.signature.symbols.size() + function_.signature.params.size();
    for (size_t i = 0; i < num_given; ++i) writes_[i] = 1;
    for (const Instruction& instruction : function_.code) {
      const std::span<const OperandSpec> specs = InfoOf(instruction.opcode).operands;
      for (size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].kind == OperandKind::kDef) ++writes_[instruction.reg(i)];
        if (specs[i].kind == OperandKind::kDefList) {
          for (uint32_t index : instruction.registers(i)) ++writes_[index];
        }
        const bool is_buffer = instruction.opcode == Opcode::kCallKernel && i == 1;
        // Releasing an arena tensor does nothing.
        if (specs[i].kind == OperandKind::kUse && instruction.opcode != Opcode::kRelease) {
          other_uses_[instruction.reg(i)] = true;
        }
        if (specs[i].kind == OperandKind::kUseList && !is_buffer) {
          for (uint32_t index : instruction.registers(i)) other_uses_[index] = true;
        }
      }
    }
  }

  // ---- fixed registers

  void FindFixed() {
    fixed_of_.assign(function_.registers.size(), kNotFixed);
    for (const Instruction& in : function_.code) {
      if (in.opcode != Opcode::kPlanView && in.opcode != Opcode::kConstTensor && in.opcode != Opcode::kState &&
          in.opcode != Opcode::kView) {
        continue;
      }
      if (writes_[in.reg(0)] != 1) continue;
      FixedRegister fixed;
      if (in.opcode == Opcode::kView) {
        const uint32_t source = fixed_of_[in.reg(1)];
        const Dim offset = facts_.OverSymbols(in.dim(2));
        // A view whose bounds are not proved is made and checked when its instruction runs.
        if (source == kNotFixed || !offset || !IsProvedView(in)) continue;
        fixed = linked_->fixed[source];
        fixed.offset_bytes = DimCode::Binary(DimOp::kAdd, fixed.offset_bytes, *offset);
        fixed.needs_check = false;  // inside the source, which is checked itself
        if (!fixed.offset_bytes.fits()) continue;
      } else {
        fixed.source = in.opcode == Opcode::kPlanView ? FixedSource::kArena
                       : in.opcode == Opcode::kState  ? FixedSource::kState
                                                      : FixedSource::kConstant;
        fixed.index = static_cast<uint32_t>(in.scalar(1));
        if (in.opcode == Opcode::kPlanView && !SetPlanCheck(in, fixed)) continue;
      }
      fixed_of_[in.reg(0)] = static_cast<uint32_t>(linked_->fixed.size());
      linked_->fixed.push_back(std::move(fixed));
    }
  }

  bool IsProvedView(const Instruction& in) const {
    const Type& source = TypeOf(in.reg(1));
    const Dim offset = facts_.OverSymbols(in.dim(2));
    return TypeOf(in.reg(0)).has_constant_dims() && source.has_constant_dims() && offset && offset->is_constant();
  }

  // Notes the comparison of sizes that a plan view still needs; false when its dims are no formulas over the symbols.
  bool SetPlanCheck(const Instruction& in, FixedRegister& fixed) const {
    fixed.dtype = TypeOf(in.reg(0)).dtype;
    const PlanEntry& entry = function_.plan.entries[fixed.index];
    bool all_constant = entry.size.is_constant();
    for (const DimCode& code : in.dims(2)) {
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
    unaligned_.assign(function_.registers.size(), false);
    // Pairs (source, target) of registers of which the target gets the source's address. An unaligned source makes its
    // targets unaligned.
    std::vector<std::pair<uint32_t, uint32_t>> heirs;
    std::vector<uint32_t> found;
    const auto find = [&](uint32_t index) {
      if (unaligned_[index]) return;
      unaligned_[index] = true;
      found.push_back(index);
    };
    for (const Instruction& in : function_.code) {
      const bool passes_on = in.opcode == Opcode::kView || in.opcode == Opcode::kMove || in.opcode == Opcode::kMatch;
      if (!passes_on || !TypeOf(in.reg(0)).is_tensor()) continue;
      heirs.emplace_back(in.reg(1), in.reg(0));
      if (in.opcode != Opcode::kView) continue;
      const Dim offset = facts_.OverSymbols(in.dim(2));
      if (!offset || !offset->is_constant() || offset->constant() % kPlanAlignment != 0) find(in.reg(0));
    }
    std::sort(heirs.begin(), heirs.end());
    while (!found.empty()) {
      const uint32_t from = found.back();
      found.pop_back();
      for (auto heir = std::lower_bound(heirs.begin(), heirs.end(), std::pair(from, uint32_t{0}));
           heir != heirs.end() && heir->first == from; ++heir) {
        find(heir->second);
      }
    }
  }

  void FindZeroed(bool all) {
    linked_->zeroes.assign(function_.code.size(), all);
    linked_->zeroes_arenas = all;
    if (all) return;
    for (const uint32_t at : FindUnproved(program_, function_)) {
      linked_->zeroes[at] = true;
      if (function_.code[at].opcode == Opcode::kPlanView) linked_->zeroes_arenas = true;
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
      const Kernel& kernel = program_.kernels[static_cast<size_t>(in.scalar(0))];
      for (size_t i = 0; i < in.registers(1).size(); ++i) {
        int64_t& alignment = alignments[in.registers(1)[i]];
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
      if (function_.code[i].opcode == Opcode::kCallKernel) LinkKernelCall(function_.code[i], read_in_frame);
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
        out.target = static_cast<uint32_t>(in.scalar(0));
        out.op = out.target <= i ? LinkedOp::kJumpBack : LinkedOp::kJump;
      } else {
        out.op = LinkedOp::kInstruction;
        out.data = linked_->instructions.emplace_back(std::make_unique<Instruction>(Resolve(in))).get();
      }
      linked_->code.push_back(out);
    }
    // Labels to positions in the linked code; a dropped instruction's label is the next one that is there.
    for (LinkedInstruction& out : linked_->code) {
      if (out.op == LinkedOp::kJump || out.op == LinkedOp::kJumpBack) out.target = positions[out.target];
    }
    for (const auto& instruction : linked_->instructions) {
      const std::span<const OperandSpec> specs = InfoOf(instruction->opcode).operands;
      for (size_t k = 0; k < specs.size(); ++k) {
        if (specs[k].kind == OperandKind::kLabel) {
          instruction->operands[k] = int64_t{positions[static_cast<size_t>(instruction->scalar(k))]};
        }
      }
    }
  }

  bool IsDropped(const Instruction& in, const std::vector<bool>& read_in_frame) const {
    switch (in.opcode) {
      case Opcode::kPlanView:
      case Opcode::kConstTensor:
      case Opcode::kState:
      case Opcode::kView:
        return fixed_of_[in.reg(0)] != kNotFixed && !read_in_frame[in.reg(0)];
      case Opcode::kRelease:
        return TypeOf(in.reg(0)).is_tensor() && TypeOf(in.reg(0)).storage != Storage::kOwned;
      default:
        return false;
    }
  }

  // The instruction with frame offsets in place of registers, in formulas too.
  Instruction Resolve(const Instruction& in) const {
    Instruction out = in;
    const std::span<const OperandSpec> specs = InfoOf(in.opcode).operands;
    for (size_t k = 0; k < specs.size(); ++k) {
      switch (specs[k].kind) {
        case OperandKind::kDef:
        case OperandKind::kUse:
          out.operands[k] = int64_t{OffsetOf(in.reg(k))};
          break;
        case OperandKind::kDefList:
        case OperandKind::kUseList: {
          RegisterList list = in.registers(k);
          for (uint32_t& index : list) index = OffsetOf(index);
          out.operands[k] = std::move(list);
          break;
        }
        case OperandKind::kDim:
          out.operands[k] = ResolveFormula(in.dim(k));
          break;
        case OperandKind::kDimList: {
          std::vector<DimCode> codes;
          for (const DimCode& code : in.dims(k)) codes.push_back(ResolveFormula(code));
          out.operands[k] = std::move(codes);
          break;
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
          break;
      }
    }
    return out;
  }

  DimCode ResolveFormula(const DimCode& code) const {
    std::vector<DimStep> steps(code.steps().begin(), code.steps().end());
    for (DimStep& step : steps) {
      if (step.op == DimOp::kSlot) step.value = OffsetOf(static_cast<uint32_t>(step.value));
    }
    return DimCode::FromSteps(std::move(steps), INT64_MAX).value();
  }

  void LinkKernelCall(const Instruction& in, std::vector<bool>& read_in_frame) {
    const auto kernel_id = static_cast<size_t>(in.scalar(0));
    auto call = std::make_unique<KernelCall>();
    call->kernel = &program_.kernels[kernel_id];
    call->function = kernels_[kernel_id];
    call->first_argument = linked_->num_arguments;
    call->first_int = linked_->num_ints;
    const RegisterList& buffers = in.registers(1);
    const RegisterList& ints = in.registers(2);
    const std::vector<std::vector<Dim>> extents = KnownExtents(*call->kernel, ints, facts_);
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      const uint32_t index = buffers[i];
      const Type& type = TypeOf(index);
      for (uint32_t axis = 0; axis < type.dims.size(); ++axis) {
        if (extents[i][axis] && extents[i][axis] == type.dims[axis]) continue;  // proved
        call->extents.push_back({i, axis, OffsetOf(index) + kTensorHeadWords + axis});
        read_in_frame[index] = true;
      }
      if (unaligned_[index] && call->kernel->params[i].alignment > 1) call->alignments.push_back({i});
      const uint32_t argument = call->first_argument + i;
      if (fixed_of_[index] != kNotFixed) {
        linked_->fixed_arguments.push_back({argument, fixed_of_[index]});
      } else {
        call->pointers.push_back({argument, OffsetOf(index)});
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
    call->has_dynamic_workspace = !call->kernel->workspace.is_constant();
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
      if (!kernel.workspace.is_constant()) continue;
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
      if (features_.Covers(CpuFeatures{variant.required_features})) {
        best = &variant;
        break;
      }
    }
    if (best == nullptr) return NoVariant(kernel);
    if (CpuFeatures{best->required_features}.Has(CpuFeature::kAmxTile)) INGOT_RETURN_IF_ERROR(RequestAmxPermission());
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
  const CpuFeatures features_ = CpuFeatures::Detect();
  LinkedProgram linked_;
};

}  // namespace

Result<LinkedProgram> Link(const Program& program, const LinkOptions& options) {
  return ProgramLinker(program, options).Run();
}

}  // namespace ingot::vm
