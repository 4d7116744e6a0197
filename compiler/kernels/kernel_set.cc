// The kernels of a target's records: each record gives an image, and each kernel a variant. A kernel's object comes out
// of the cache, or its function is scheduled, lowered and compiled, on whichever thread is free.
#include "compiler/kernels/kernel_set.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/ptx.h"
#include "compiler/ir/visitor.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/op/topi/byte_products.h"

namespace ingot::kernels {
namespace {

// What a function multiplies for which CPUs have instructions of their own: bytes, or pairs of 16 bits; bytes by a weight
// in panels, which tiles take.
struct ByteProducts {
  bool any = false, of_panels = false;
};
ByteProducts ByteProductsOf(const NamedPrimFunc& function) {
  struct Finder : ir::StmtVisitor {
    ByteProducts found;
    void VisitPrim(const ir::PrimExpr& expr) override {
      const auto* call = ir::As<ir::PrimCallNode>(expr);
      const bool is_dot = call != nullptr && call->op == ir::Intrinsic::kDotBytes;
      found.any |= is_dot || op::topi::IsPairProduct(expr);
      found.of_panels |= is_dot && op::topi::IsPanelProduct(*call);
      ir::StmtVisitor::VisitPrim(expr);
    }
  } finder;
  finder.VisitStmt(function.function->body);
  return finder.found;
}

Result<codegen::KernelObject> ObjectOf(const NamedPrimFunc& function, const Target& target,
                                       const KernelOptions& options) {
  const codegen::CodegenOptions codegen_options = CodegenOptionsOf(options);
  const ir::PrimFunc by_place = WithParamsByPlace(function.function);
  schedule::Chosen chosen;
  if (options.chosen) {
    INGOT_ASSIGN_OR_RETURN(chosen, options.chosen(by_place, target));
  }
  std::string key;
  if (options.cache != nullptr) {
    key = options.cache->KernelKey(by_place, target, codegen_options.opt_level, chosen);
    if (std::optional<codegen::KernelObject> found = options.cache->Find(key)) return *std::move(found);
  }
  const auto compile = [&](const ir::PrimFunc& compiled) -> Result<codegen::KernelObject> {
    INGOT_ASSIGN_OR_RETURN(const codegen::KernelSource source, MakeSource({function.name, compiled}, target, chosen));
    return codegen::CompileKernelObject(source, target, codegen_options);
  };
  Result<codegen::KernelObject> object = compile(by_place);
  if (!object.ok()) return compile(function.function);  // which says the names that the user knows
  if (options.cache != nullptr) options.cache->Store(key, *object);
  return object;
}

Result<std::string> MemoryRoutinesOf(const Target& target, KernelCache* cache) {
  if (cache == nullptr) return codegen::CompileMemoryRoutines(target);
  const std::string key = cache->MemoryRoutinesKey(target);
  if (std::optional<codegen::KernelObject> found = cache->Find(key)) return std::move(found->elf);
  codegen::KernelObject routines;
  INGOT_ASSIGN_OR_RETURN(routines.elf, codegen::CompileMemoryRoutines(target));
  cache->Store(key, routines);
  return std::move(routines.elf);
}

// The objects of one image, linked; names are theirs.
Result<codegen::KernelImage> LinkObjects(std::span<const codegen::KernelObject> objects,
                                         const std::vector<std::string>& names, const Target& target,
                                         const KernelOptions& options) {
  std::vector<const codegen::KernelObject*> inputs;
  for (const codegen::KernelObject& object : objects) inputs.push_back(&object);
  std::string routines;
  if (std::ranges::any_of(objects, &codegen::KernelObject::needs_memory_routines)) {
    INGOT_ASSIGN_OR_RETURN(routines, MemoryRoutinesOf(target, options.cache));
  }
  return codegen::LinkKernels(names, inputs, routines);
}

// The kernels of one more image for GPUs, launched as the image says; workspaces are those of the largest.
void AddCudaImage(const codegen::PtxImage& image, vm::KernelImage stored, KernelSet* result) {
  const auto number = static_cast<uint32_t>(result->images.size());
  for (size_t k = 0; k < image.kernels.size(); ++k) {
    vm::Kernel& kernel = result->kernels[k].kernel;
    const codegen::PtxKernel& compiled = image.kernels[k];
    kernel.device = 1;
    if (number == 0) {
      kernel.workspace = compiled.workspace;
    } else if (!(kernel.workspace == compiled.workspace)) {
      kernel.workspace = DimCode::Binary(DimOp::kMax, kernel.workspace, compiled.workspace);
    }
    for (const codegen::PtxLaunch& launch : compiled.launches) {
      vm::LaunchRecord record{static_cast<uint32_t>(kernel.variants.size()), launch.entry, {}};
      for (const auto& sizes : {launch.grid, launch.block}) {
        record.sizes.insert(record.sizes.end(), sizes.begin(), sizes.end());
      }
      record.sizes.push_back(DimCode(launch.shared_bytes));
      if (launch.rounds) {
        record.sizes.push_back(*launch.rounds);
        record.sizes.push_back(DimCode(launch.number_in_round));
      }
      kernel.launches.push_back(std::move(record));
    }
    kernel.variants.push_back({number, 0, "", 0});
  }
  result->images.push_back(std::move(stored));
}

// One image of PTX for each architecture, the newest first, which a device takes that can run it, and before it the same
// as a cubin where there is an assembler.
Status AddCudaVariants(const std::vector<NamedPrimFunc>& functions, const TargetFamily& family,
                       const KernelOptions& options, KernelSet* result) {
  for (size_t i = family.variants.size(); i-- > 0;) {
    const Target& target = family.variants[i];
    INGOT_ASSIGN_OR_RETURN(const std::vector<codegen::KernelSource> sources, MakeSources(functions, target, options));
    INGOT_ASSIGN_OR_RETURN(const codegen::PtxImage image,
                           codegen::CompilePtx(sources, target, CodegenOptionsOf(options)));
    const auto image_of = [&](vm::ImageFormat format, const std::string& code) {
      const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
      const char* const suffix = format == vm::ImageFormat::kCubin ? " cubin" : "";
      return vm::KernelImage{
          target.name + suffix, format, target.name, 0, SharedBytes::Own({bytes, bytes + code.size()}), {}};
    };
    if (!options.ptxas.empty()) {
      INGOT_ASSIGN_OR_RETURN(const std::string cubin, codegen::AssembleCubin(image.ptx, target.name, options.ptxas));
      AddCudaImage(image, image_of(vm::ImageFormat::kCubin, cubin), result);
    }
    AddCudaImage(image, image_of(vm::ImageFormat::kPtx, image.ptx), result);
  }
  return Status();
}

}  // namespace

Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options) {
  const std::vector<NamedPrimFunc> functions = PrimFuncsOf(module);
  KernelSet result;
  if (functions.empty()) return result;
  for (const NamedPrimFunc& function : functions) {
    Result<codegen::KernelDescription> description = codegen::DescribeKernel(function.name, function.function);
    if (!description.ok()) {
      return std::move(description).status().WithContext("prim function \"" + function.name + "\"");
    }
    result.kernels.push_back(*std::move(description));
  }
  if (family.kind == Target::Kind::kCuda) {
    INGOT_RETURN_IF_ERROR(AddCudaVariants(functions, family, options, &result));
    return result;
  }
  std::vector<std::string> all_names;
  for (const NamedPrimFunc& function : functions) all_names.push_back(function.name);
  INGOT_RETURN_IF_ERROR(codegen::CheckKernelNames(all_names));
  std::vector<size_t> all(functions.size()), of_bytes, of_panels;
  std::iota(all.begin(), all.end(), size_t{0});
  for (const size_t i : all) {
    const ByteProducts products = ByteProductsOf(functions[i]);
    if (products.any) of_bytes.push_back(i);
    if (products.of_panels) of_panels.push_back(i);
  }
  struct Image {
    const Target& target;
    const std::vector<size_t>& kernels;  // by their places among the functions
  };
  std::vector<Image> images;
  for (const Target& target : family.variants) images.push_back({target, all});
  for (const Target& target : family.byte_product_variants) {
    const std::vector<size_t>& kernels = target.has_amx() ? of_panels : of_bytes;
    if (!kernels.empty()) images.push_back({target, kernels});
  }
  // All objects of all images at once: a model of few kernels, too, keeps the threads busy.
  struct Job {
    const Target& target;
    const NamedPrimFunc& function;
  };
  std::vector<Job> jobs;
  for (const auto& [target, kernels] : images) {
    for (const size_t kernel : kernels) jobs.push_back({target, functions[kernel]});
  }
  std::vector<codegen::KernelObject> objects(jobs.size());
  const auto total = static_cast<int64_t>(jobs.size());
  std::atomic<int64_t> num_done{0};
  const std::thread::id caller = std::this_thread::get_id();
  INGOT_RETURN_IF_ERROR(ForEachOnThreads(jobs.size(), options.num_threads, [&](size_t i) -> Status {
    INGOT_ASSIGN_OR_RETURN(objects[i], ObjectOf(jobs[i].function, jobs[i].target, options));
    const int64_t done = ++num_done;
    // The caller's function is called on the caller's thread alone, and told once that all are done.
    const bool tells = options.progress && done < total && std::this_thread::get_id() == caller;
    if (tells) options.progress("kernels", done, total);
    return Status();
  }));
  if (options.progress) options.progress("kernels", total, total);
  std::span<const codegen::KernelObject> rest(objects);
  for (const auto& [target, kernels] : images) {
    std::vector<std::string> names;
    for (const size_t kernel : kernels) names.push_back(functions[kernel].name);
    INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image, LinkObjects(rest.first(kernels.size()), names, target, options));
    rest = rest.subspan(kernels.size());
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
  }
  return result;
}

}  // namespace ingot::kernels
