// Verifies the tables: names, constants, weights, states, externals, images, kernels and signatures. Function bodies
// are left to function_verifier.h and flow_verifier.h.
#include "vm/verify/verifier.h"

#include <algorithm>
#include <bit>
#include <set>

#include "vm/program/foreign_image.h"
#include "vm/program/limits.h"
#include "vm/program/reading_heap.h"
#include "vm/verify/flow_verifier.h"
#include "vm/verify/function_verifier.h"
#include "vm/verify/type_rules.h"

namespace ingot::vm {
namespace {

class Verifier {
 public:
  Verifier(const Program& program, const CheckSet& checks) : program_(program), checks_(checks) {}

  Verdict Run() {
    INGOT_RETURN_UNLESS_PASSED(VerifyCounts());
    INGOT_RETURN_UNLESS_PASSED(VerifyNames("function", program_.functions));
    INGOT_RETURN_UNLESS_PASSED(VerifyNames("kernel", program_.kernels));
    INGOT_RETURN_UNLESS_PASSED(VerifyNames("external", program_.externals));
    INGOT_RETURN_UNLESS_PASSED(VerifyNames("state", program_.states));
    INGOT_RETURN_UNLESS_PASSED(VerifyWeights());
    INGOT_RETURN_UNLESS_PASSED(Each("constant", program_.constants, &Verifier::VerifyConstant));
    INGOT_RETURN_UNLESS_PASSED(Each("state", program_.states, &Verifier::VerifyState));
    INGOT_RETURN_UNLESS_PASSED(VerifyStateBytes());
    INGOT_RETURN_UNLESS_PASSED(Each("external", program_.externals, &Verifier::VerifyExternal));
    INGOT_RETURN_UNLESS_PASSED(Each("image", program_.images, &Verifier::VerifyImage));
    INGOT_RETURN_UNLESS_PASSED(Each("kernel", program_.kernels, &Verifier::VerifyKernel));
    // Calls look at the signatures of any function, so those come first.
    INGOT_RETURN_UNLESS_PASSED(Each("function", program_.functions, &Verifier::VerifyFunctionSignature));
    INGOT_RETURN_UNLESS_PASSED(Each("function", program_.functions, &Verifier::VerifyFunctionBody));
    return Each("constant", program_.constants, &Verifier::VerifyPrepared);
  }

 private:
  Verdict Fail(Check check, Text message) const { return Verdict::Fail(checks_, check, message); }

  template <typename Row>
  Verdict Each(const char* what, const std::vector<Row>& rows, Verdict (Verifier::*verify)(const Row&) const) const {
    for (const Row& row : rows) {
      INGOT_RETURN_UNLESS_PASSED((this->*verify)(row).WithContext({what, " \"", row.name, "\""}));
    }
    return Verdict();
  }

  Verdict VerifyCounts() const {
    const auto num_devices = static_cast<int64_t>(program_.devices.size());
    if (num_devices == 0 || num_devices > kMaxDevices) {
      return Fail(Check::kDeviceId, {num_devices, " virtual devices, expected 1 to ", kMaxDevices});
    }
    for (const VirtualDevice& device : program_.devices) {
      if (device.index < 0)
        return Fail(Check::kDeviceId, {"device \"", device.kind, "\" has the index ", device.index});
    }
    // Constants, workspaces and the tensors of builtins are on device 0.
    if (program_.devices[0].kind != "cpu") return Fail(Check::kDeviceId, "device 0 is not the host");
    if (static_cast<int64_t>(program_.functions.size()) > kMaxFunctions) {
      return Fail(Check::kCountCap, {program_.functions.size(), " functions are too many"});
    }
    return Verdict();
  }

  template <typename Row>
  Verdict VerifyNames(const char* what, const std::vector<Row>& rows) const {
    std::set<std::string_view> names;
    for (const Row& row : rows) {
      if (row.name.empty() || !names.insert(row.name).second) {
        return Fail(Check::kUniqueName, {what, " \"", row.name, "\": the name is empty or stands there twice"});
      }
    }
    return Verdict();
  }

  bool IsOnHost(uint8_t device) const { return program_.devices[device].kind == "cpu"; }

  Verdict VerifyDevice(uint8_t device) const {
    if (device < program_.devices.size()) return Verdict();
    return Fail(Check::kDeviceId, {"device ", device, " of ", program_.devices.size()});
  }

  // Bytes of a tensor, or the verdict about its dtype and dims.
  Verdict VerifyDims(DataType dtype, const std::vector<int64_t>& dims, int64_t* bytes) const {
    if (!dtype.IsKnown()) return Fail(Check::kKnownDataType, "an unknown element type");
    if (dims.size() > kMaxTensorRank) return Fail(Check::kTensorRank, {"rank ", dims.size(), " is above 8"});
    int64_t volume = 1;  // without zeros, so that the order of dims does not decide
    bool is_empty = false;
    for (int64_t dim : dims) {
      is_empty |= dim == 0;
      if (dim < 0 || (dim > 0 && __builtin_mul_overflow(volume, dim, &volume))) {
        return Fail(Check::kConstantDims, {"a dim of ", dim, ", or too many elements"});
      }
    }
    const Result<int64_t> size = dtype.SizeBytes(is_empty ? 0 : volume);
    if (!size.ok() || *size > kMaxTensorBytes) return Fail(Check::kConstantDims, "too many elements");
    *bytes = *size;
    return Verdict();
  }

  // Each weight refers to another constant, with a name that no other weight has. The constants themselves are verified
  // later, and are not relied on here.
  Verdict VerifyWeights() {
    in_file_.assign(program_.constants.size(), nullptr);
    std::set<std::string_view> names;
    std::optional<ConstantId> before;
    for (const Weight& weight : program_.weights) {
      const uint32_t id = weight.constant.value;
      const auto fail = [&](const char* what) {
        return Fail(Check::kWeightForm, {"weight of constant ", id, ": ", what});
      };
      if (id >= program_.constants.size() || (before && weight.constant <= *before)) {
        return fail("does not exist, or does not ascend");
      }
      before = weight.constant;
      const Constant& constant = program_.constants[id];
      if (constant.prepared_by || constant.name.empty() || !names.insert(constant.name).second) {
        return fail("is prepared, or has no name of its own");
      }
      if (!weight.file) continue;
      if (*weight.file >= program_.weight_files.size()) return fail("its file does not exist");
      in_file_[id] = &weight;
    }
    return Verdict();
  }

  Verdict VerifyConstant(const Constant& constant) const {
    int64_t bytes = 0;
    INGOT_RETURN_UNLESS_PASSED(VerifyDims(constant.dtype, constant.dims, &bytes));
    if (const Weight* weight = in_file_[static_cast<size_t>(&constant - program_.constants.data())]) {
      const uint64_t file_size = program_.weight_files[*weight->file].size;
      if (weight->offset > file_size || static_cast<uint64_t>(bytes) > file_size - weight->offset) {
        return Fail(Check::kWeightForm, "is not inside the file of weights");
      }
      bytes = 0;
    }
    if (constant.prepared_by) bytes = 0;
    if (bytes == static_cast<int64_t>(constant.bytes.size())) return Verdict();
    return Fail(Check::kConstantSize, {"has ", constant.bytes.size(), " bytes, expected ", bytes});
  }

  // Runs after the functions are verified, and relies on their code.
  Verdict VerifyPrepared(const Constant& constant) const {
    if (!constant.prepared_by) return Verdict();
    const PreparedBy& by = *constant.prepared_by;
    if (by.function.value >= program_.functions.size()) {
      return Fail(Check::kPreparedResult, {"function ", by.function.value, " does not exist"});
    }
    const Function& function = program_.functions[by.function.value];
    const Signature& signature = function.signature;
    if (!signature.params.empty() || !signature.symbols.empty() || by.result >= signature.results.size()) {
      return Fail(Check::kPreparedResult,
                  {"function \"", function.name, "\" takes arguments, or has no result ", by.result});
    }
    const Type& type = function.signature.results[by.result].type;
    if (type != Type::Tensor(constant.dtype, {constant.dims.begin(), constant.dims.end()}, Storage::kOwned)) {
      return Fail(Check::kPreparedResult,
                  {"result ", by.result, " of function \"", function.name, "\" is ", type.ToString({})});
    }
    return VerifyPreparingCode(function);
  }

  // The code ends, and needs neither kernels nor prepared constants.
  Verdict VerifyPreparingCode(const Function& function) const {
    for (const Instruction& instruction : function.code) {
      const OpcodeInfo& info = InfoOf(instruction.opcode);
      const bool calls_none = info.calls == Callee::kNothing || info.calls == Callee::kBuiltin;
      if (!calls_none || info.flow == Flow::kJump || info.result == ResultMemory::kState) {
        return Fail(Check::kPreparedCode, {"function \"", function.name, "\" has the instruction ", info.name});
      }
      if (instruction.opcode != Opcode::kConstTensor) continue;
      if (program_.constants[instruction.As<op::ConstTensor>().constant().value].prepared_by) {
        return Fail(Check::kPreparedCode, {"function \"", function.name, "\" reads a prepared constant"});
      }
    }
    return Verdict();
  }

  Verdict VerifyState(const State& state) const {
    int64_t bytes = 0;
    INGOT_RETURN_UNLESS_PASSED(VerifyDims(state.dtype, state.dims, &bytes));
    INGOT_RETURN_UNLESS_PASSED(VerifyDevice(state.device));
    if (state.growth) {
      INGOT_RETURN_UNLESS_PASSED(VerifyLength(state.growth->length));
      if (state.growth->axis >= state.dims.size()) {
        return Fail(Check::kStateLength, {"grows along axis ", state.growth->axis, " of ", state.dims.size()});
      }
    }
    if (!state.initial) return Verdict();
    if (state.initial->value >= program_.constants.size()) {
      return Fail(Check::kStateInitial, {"constant ", state.initial->value, " does not exist"});
    }
    const Constant& initial = program_.constants[state.initial->value];
    if (initial.prepared_by) return Fail(Check::kStateInitial, "its initial constant is a prepared one");
    if (initial.dtype == state.dtype && initial.dims == state.dims) return Verdict();
    return Fail(Check::kStateInitial, "its initial constant has another type");
  }

  // A context holds all states, so their total size is bounded.
  Verdict VerifyStateBytes() const {
    int64_t total = 0;
    for (const State& state : program_.states) {
      int64_t bytes = 0;
      INGOT_RETURN_UNLESS_PASSED(VerifyDims(state.dtype, state.dims, &bytes));
      if (bytes > kMaxTensorBytes - total) return Fail(Check::kConstantDims, "the states are too large together");
      total += bytes;
    }
    return Verdict();
  }

  // A state that holds one integer which the context reads.
  Verdict VerifyLength(StateId id) const {
    if (id.value >= program_.states.size()) {
      return Fail(Check::kStateLength, {"state ", id.value, " does not exist"});
    }
    const State& length = program_.states[id.value];
    if (length.dtype == DataType::Int(64) && length.dims.empty() && length.device < program_.devices.size() &&
        program_.devices[length.device].kind == "cpu") {
      return Verdict();
    }
    return Fail(Check::kStateLength, {"state \"", length.name, "\" is no int64 of rank 0 on the host"});
  }

  Verdict VerifySignature(const Signature& signature) const {
    std::set<std::string_view> names;
    for (const Symbol& symbol : signature.symbols) {
      if (symbol.name.empty() || !names.insert(symbol.name).second || symbol.min > symbol.max) {
        return Fail(Check::kSymbolRange, {"symbol \"", symbol.name, "\" in ", symbol.min, "..", symbol.max,
                                          " is a second one of its name, or has no value"});
      }
    }
    const auto num_symbols = static_cast<int64_t>(signature.symbols.size());
    std::vector<bool> bound(signature.symbols.size(), false);
    for (const NamedType& param : signature.params) {
      INGOT_RETURN_UNLESS_PASSED(VerifyType(param.type, TypePlace::kParameter, num_symbols, program_, checks_)
                                     .WithContext({"parameter \"", param.name, "\""}));
      for (const Dim& dim : param.type.dims) {
        if (dim && dim->steps().size() == 1 && !dim->is_constant())
          bound[static_cast<size_t>(dim->steps()[0].value)] = true;
      }
    }
    for (const NamedType& result : signature.results) {
      INGOT_RETURN_UNLESS_PASSED(VerifyType(result.type, TypePlace::kResult, num_symbols, program_, checks_)
                                     .WithContext({"result \"", result.name, "\""}));
    }
    for (size_t i = 0; i < signature.symbols.size(); ++i) {
      if (!signature.symbols[i].state) continue;
      INGOT_RETURN_UNLESS_PASSED(
          VerifyLength(*signature.symbols[i].state).WithContext({"symbol \"", signature.symbols[i].name, "\""}));
      bound[i] = true;
    }
    const auto unbound = std::find(bound.begin(), bound.end(), false);
    if (unbound == bound.end()) return Verdict();
    return Fail(Check::kSymbolBound,
                {"no parameter binds symbol \"", signature.symbols[unbound - bound.begin()].name, "\""});
  }

  Verdict VerifyExternal(const External& external) const {
    if ((external.effects & ~kAllEffects) != 0) return Fail(Check::kKernelEffects, "unknown effects");
    for (const Symbol& symbol : external.signature.symbols) {
      if (symbol.state) return Fail(Check::kStateLength, "a symbol is bound by a state, which it cannot see");
    }
    return VerifySignature(external.signature);
  }

  Verdict VerifyFunctionSignature(const Function& function) const { return VerifySignature(function.signature); }

  Verdict VerifyFunctionBody(const Function& function) const {
    INGOT_RETURN_UNLESS_PASSED(VerifyFunction(program_, function, checks_, work_left_));
    return VerifyFlow(function, checks_, work_left_);
  }

  Verdict VerifyImage(const KernelImage& image) const {
    std::optional<ElfImage>& read = elf_images_.emplace_back();  // each is read once, however many variants it has
    if (image.format != ImageFormat::kElf) return Verdict();
    Result<ElfImage> elf = ReadElfImageFor(image.arch, image.bytes.bytes);
    if (!elf.ok()) return Fail(Check::kImageSegments, elf.status().message());
    read = *std::move(elf);
    return Verdict();
  }

  Verdict VerifyKernel(const Kernel& kernel) const {
    INGOT_RETURN_UNLESS_PASSED(VerifyDevice(kernel.device));
    if ((kernel.effects & ~kAllEffects) != 0) return Fail(Check::kKernelEffects, "unknown effects");
    if (static_cast<int64_t>(kernel.params.size()) > kMaxKernelParams ||
        static_cast<int64_t>(kernel.ints.size()) > kMaxKernelParams) {
      return Fail(Check::kKernelParameters, "too many parameters");
    }
    for (const KernelInt& scalar : kernel.ints) {
      const DataType dtype = scalar.dtype;
      const bool is_whole =
          dtype.IsKnown() && dtype.is_scalar() && dtype.bits >= 8 && (dtype.is_integral() || dtype.is_bool());
      if (!is_whole && dtype != DataType::Float(32) && dtype != DataType::Float(64)) {
        return Fail(Check::kKernelParameters,
                    {"integer argument \"", scalar.name, "\" is no integer, bool, float32 or float64"});
      }
    }
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      INGOT_RETURN_UNLESS_PASSED(
          VerifyKernelParam(kernel, i).WithContext({"parameter \"", kernel.params[i].name, "\""}));
    }
    INGOT_RETURN_UNLESS_PASSED(VerifyFormulas(kernel));
    for (ExternalId id : kernel.externals) {
      if (id.value >= program_.externals.size())
        return Fail(Check::kIdRange, {"external ", id.value, " does not exist"});
    }
    for (const KernelVariant& variant : kernel.variants) INGOT_RETURN_UNLESS_PASSED(VerifyVariant(kernel, variant));
    for (const LaunchRecord& launch : kernel.launches) {
      const bool is_of_device = launch.variant < kernel.variants.size() && !IsOnHost(kernel.device);
      const size_t sizes = launch.sizes.size();
      if (!is_of_device || (sizes != kNumLaunchSizes && sizes != kNumLaunchSizesInRounds)) {
        return Fail(Check::kKernelVariants, "a launch of no variant, or without its sizes");
      }
    }
    return Verdict();
  }

  Verdict VerifyKernelParam(const Kernel& kernel, size_t index) const {
    const KernelParam& param = kernel.params[index];
    if (!param.dtype.IsKnown()) return Fail(Check::kKnownDataType, "an unknown element type");
    if (param.extents.size() > kMaxTensorRank) return Fail(Check::kTensorRank, "a rank above 8");
    if (param.alignment < 1 || param.alignment > kPlanAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(param.alignment))) {
      return Fail(Check::kKernelParameters, {"an alignment of ", param.alignment});
    }
    if (!param.in_place) return Verdict();
    const bool good = param.role == ParamRole::kOut && *param.in_place < kernel.params.size() &&
                      kernel.params[*param.in_place].role == ParamRole::kIn &&
                      kernel.params[*param.in_place].dtype == param.dtype;
    return good ? Verdict() : Fail(Check::kKernelParameters, "its in-place partner is no input of its type");
  }

  Verdict VerifyFormulas(const Kernel& kernel) const {
    const auto num_ints = static_cast<int64_t>(kernel.ints.size());
    std::vector<const DimCode*> formulas = {&kernel.workspace, &kernel.flops, &kernel.bytes};
    for (const KernelParam& param : kernel.params) {
      for (const DimCode& extent : param.extents) formulas.push_back(&extent);
    }
    for (const LaunchRecord& launch : kernel.launches) {
      for (const DimCode& size : launch.sizes) formulas.push_back(&size);
    }
    for (const DimCode* formula : formulas) {
      if (formula->num_slots() > num_ints)
        return Fail(Check::kDimSlots, "a formula names an integer argument that does not exist");
    }
    return Verdict();
  }

  Verdict VerifyVariant(const Kernel& kernel, const KernelVariant& variant) const {
    if (variant.image >= program_.images.size()) {
      return Fail(Check::kKernelVariants, {"image ", variant.image, " does not exist"});
    }
    const KernelImage& image = program_.images[variant.image];
    const bool wants_elf = IsOnHost(kernel.device);
    if (wants_elf != (image.format == ImageFormat::kElf))
      return Fail(Check::kKernelVariants, "its image is of another kind");
    if (!wants_elf) return Verdict();
    const bool was_read = variant.image < elf_images_.size() && elf_images_[variant.image];
    if (was_read && elf_images_[variant.image]->ContainsCode(variant.offset)) return Verdict();
    return Fail(Check::kKernelVariants, {"offset ", variant.offset, " is outside the image's code"});
  }

  const Program& program_;
  const CheckSet& checks_;
  std::vector<const Weight*> in_file_;                       // by constant
  mutable std::vector<std::optional<ElfImage>> elf_images_;  // by image; null: for a GPU
  // Words of bits and instructions that the flow analysis may look at, and formulas at calls, of all functions
  // together: about a second.
  mutable int64_t work_left_ = int64_t{1} << 30;
};

}  // namespace

Status Verify(const Program& program, const CheckSet& checks) { return Verifier(program, checks).Run().status(); }

Status Verify(const Program& program, const formats::Container& file) {
  return WithinReadingHeap(CheckSet::All(), "", file.bytes().size(), [&] { return Verify(program); });
}

}  // namespace ingot::vm
