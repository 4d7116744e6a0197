// The loop over the records of a target: each gives an image, and each kernel a variant.
#include "compiler/kernels/kernel_set.h"

#include <utility>

namespace ingot::kernels {

Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options) {
  if (family.kind != Target::Kind::kCpu) {
    return Status(StatusCode::kInvalidArgument, "kernels can be compiled for CPU targets alone so far");
  }
  const std::vector<NamedPrimFunc> functions = PrimFuncsOf(module);
  KernelSet result;
  if (functions.empty()) return result;
  for (size_t v = 0; v < family.variants.size(); ++v) {
    const Target& target = family.variants[v];
    INGOT_ASSIGN_OR_RETURN(std::vector<codegen::KernelSource> sources, MakeSources(functions, target, options));
    INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image,
                           codegen::CompileKernels(sources, target, CodegenOptionsOf(options)));
    if (result.kernels.empty()) {
      for (const codegen::KernelSource& source : sources) result.kernels.push_back(source.description);
    }
    for (size_t i = 0; i < result.kernels.size(); ++i) {
      codegen::AddVariant(image.kernels[i], target, static_cast<uint32_t>(v), &result.kernels[i].kernel);
    }
    vm::KernelImage stored;
    stored.name = target.name;
    stored.arch = target.triple.substr(0, target.triple.find('-'));
    stored.features = target.required_features;
    stored.bytes = SharedBytes::Own(std::move(image.elf));
    result.images.push_back(std::move(stored));
    if (options.progress) {
      options.progress("kernels", static_cast<int64_t>(v + 1), static_cast<int64_t>(family.variants.size()));
    }
  }
  return result;
}

}  // namespace ingot::kernels
