// The loop over the records of a target: each gives an image, and each kernel a variant.
#include "compiler/kernels/kernel_set.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "compiler/ir/visitor.h"

namespace ingot::kernels {
namespace {

bool HasByteProduct(const NamedPrimFunc& function) {
  struct Finder : ir::StmtVisitor {
    bool found = false;
    using ir::StmtVisitor::Visit;
    void Visit(const ir::PrimCallNode& call) override {
      found |= call.op == ir::Intrinsic::kDotBytes;
      ir::StmtVisitor::Visit(call);
    }
  } finder;
  finder.VisitStmt(function.function->body);
  return finder.found;
}

}  // namespace

Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options) {
  if (family.kind != Target::Kind::kCpu) {
    return Status(StatusCode::kInvalidArgument, "kernels can be compiled for CPU targets alone so far");
  }
  const std::vector<NamedPrimFunc> functions = PrimFuncsOf(module);
  KernelSet result;
  if (functions.empty()) return result;
  std::vector<size_t> all(functions.size()), of_bytes;
  std::iota(all.begin(), all.end(), size_t{0});
  std::ranges::copy_if(all, std::back_inserter(of_bytes), [&](size_t i) { return HasByteProduct(functions[i]); });
  struct Image {
    const Target& target;
    const std::vector<size_t>& kernels;  // by their places among the functions
  };
  std::vector<Image> images;
  for (const Target& target : family.variants) images.push_back({target, all});
  if (!of_bytes.empty()) {
    for (const Target& target : family.byte_product_variants) images.push_back({target, of_bytes});
  }
  for (const auto& [target, kernels] : images) {
    std::vector<NamedPrimFunc> chosen;
    for (size_t i : kernels) chosen.push_back(functions[i]);
    INGOT_ASSIGN_OR_RETURN(std::vector<codegen::KernelSource> sources, MakeSources(chosen, target, options));
    INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image,
                           codegen::CompileKernels(sources, target, CodegenOptionsOf(options)));
    if (result.kernels.empty()) {
      for (const codegen::KernelSource& source : sources) result.kernels.push_back(source.description);
    }
    const auto number = static_cast<uint32_t>(result.images.size());
    for (size_t i = 0; i < kernels.size(); ++i) {
      codegen::AddVariant(image.kernels[i], target, number, &result.kernels[kernels[i]].kernel);
    }
    vm::KernelImage stored;
    stored.name = target.name;
    stored.arch = target.triple.substr(0, target.triple.find('-'));
    stored.features = target.required_features;
    stored.bytes = SharedBytes::Own(std::move(image.elf));
    result.images.push_back(std::move(stored));
    if (options.progress) {
      options.progress("kernels", static_cast<int64_t>(result.images.size()), static_cast<int64_t>(images.size()));
    }
  }
  return result;
}

}  // namespace ingot::kernels
