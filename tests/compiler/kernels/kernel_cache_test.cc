// Kernels out of a cache: the same executable, and a miss for everything that could make another object.
#include "compiler/kernels/kernel_cache.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "tests/compiler/codegen/jit.h"
#include "tests/golden.h"
#include "vm/program/program_codec.h"

namespace ingot::kernels {
namespace {

namespace fs = std::filesystem;

class KernelCacheFolder {
 public:
  KernelCacheFolder() {
    std::string path = (fs::temp_directory_path() / "ingot-kernels-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~KernelCacheFolder() { fs::remove_all(path_); }
  KernelCacheFolder(const KernelCacheFolder&) = delete;
  KernelCacheFolder& operator=(const KernelCacheFolder&) = delete;
  const std::string& path() const { return path_; }
  KernelCache Open(std::string identity) const {
    return {CacheDirectory::Open(path_).value(), std::move(identity)};
  }

 private:
  std::string path_;
};

ir::PrimFunc SumOf(int64_t n, const char* name = "x") {
  const DataType f32 = DataType::Float(32);
  const ir::Buffer in = ir::MakeBuffer(name, f32, {ir::Int64(n)});
  const ir::Buffer out = ir::MakeBuffer("out", f32, {ir::Int64(n)});
  using codegen::testing::Load;
  return codegen::testing::Function({in, out}, codegen::testing::Loop(ir::Int64(n), [&](const ir::PrimExpr& i) {
                                      return codegen::testing::Store(out, Load(in, {i}) + Load(in, {i}), {i});
                                    }));
}

TEST_CASE("a key covers the function, the whole target record, the level and what makes code") {
  const KernelCacheFolder folder;
  const KernelCache cache = folder.Open("this build");
  const Target target = codegen::testing::TargetNamed("x86-64-v3");
  const std::string key = cache.KernelKey(SumOf(16), target, 3);
  CHECK(key == cache.KernelKey(SumOf(16), target, 3));
  CHECK(key != cache.KernelKey(SumOf(17), target, 3));
  CHECK(key != cache.KernelKey(SumOf(16), target, 0));
  CHECK(key != folder.Open("another build").KernelKey(SumOf(16), target, 3));
  const std::function<void(Target&)> changes[] = {
      [](Target& t) { t.kind = Target::Kind::kCuda; },
      [](Target& t) { t.name = "x"; },
      [](Target& t) { t.triple = "aarch64-unknown-linux-gnu"; },
      [](Target& t) { t.llvm_features.push_back("+avx512f"); },
      [](Target& t) { t.required_features ^= 1; },
      [](Target& t) { t.vector_bits *= 2; },
      [](Target& t) { ++t.num_vector_registers; },
      [](Target& t) { ++t.fma_ports; },
      [](Target& t) { ++t.l1_bytes; },
      [](Target& t) { ++t.l2_bytes; },
      [](Target& t) { ++t.l3_bytes; },
      [](Target& t) { ++t.max_stack_bytes; },
  };
  for (const auto& change : changes) {
    Target changed = target;
    change(changed);
    CHECK(key != cache.KernelKey(SumOf(16), changed, 3));
    CHECK(cache.MemoryRoutinesKey(target) != cache.MemoryRoutinesKey(changed));
  }
}

TEST_CASE("an object comes back as it was, and to no other build") {
  const KernelCacheFolder folder;
  KernelCache cache = folder.Open("this build");
  codegen::KernelObject object;
  object.elf = std::string("\0\1\2 elf", 7);
  object.workspace = DimCode::Binary(DimOp::kMul, DimCode::Slot(1), DimCode(-64));
  object.stack_bytes = 1234;
  object.needs_memory_routines = true;
  const Target target = codegen::testing::TargetNamed("x86-64-v3");
  cache.Store(cache.KernelKey(SumOf(16), target, 3), object);
  const auto found = folder.Open("this build").Find(cache.KernelKey(SumOf(16), target, 3));
  REQUIRE(found);
  CHECK(found->elf == object.elf);
  CHECK(found->workspace == object.workspace);
  CHECK(found->stack_bytes == object.stack_bytes);
  CHECK(found->needs_memory_routines);
  KernelCache other = folder.Open("another build");
  CHECK(!other.Find(other.KernelKey(SumOf(16), target, 3)));
  // An entry whose contents are no object.
  for (const char* contents : {"", "x", "\3abc"}) {
    cache.directory().Store("odd", std::as_bytes(std::span(std::string_view(contents))));
    CHECK(!cache.Find("odd"));
  }
}

TEST_CASE("this build has an identity, which names LLVM") {
  const Result<std::string> identity = codegen::CodegenIdentity();
  REQUIRE_MESSAGE(identity.ok(), identity.status().message());
  CHECK(identity->find("LLVM 19") != std::string::npos);
  CHECK(std::ranges::count(*identity, ',') == 3);
}

struct CompiledModel {
  std::vector<std::byte> bytes;
  CacheFigures figures;
  std::vector<std::string> notes;
};

CompiledModel CompileWith(const char* model, std::optional<KernelCacheOptions> cache, int threads = 1) {
  driver::CompileOptions options;
  options.target = ParseTarget("cpu").value();
  options.cache = std::move(cache);
  options.threads = threads;
  CompiledModel compiled;
  driver::CompileObserver observer;
  observer.log = [&](std::string_view note) {
    if (note.find("cached") != std::string_view::npos) compiled.notes.emplace_back(note);
  };
  observer.cached = [&](const CacheFigures& figures) { compiled.figures = figures; };
  const auto module = driver::LoadModel(golden::TestDirectory() + "/data/" + model, options, observer);
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const Result<vm::Program> program = driver::CompileModule(*module, options, observer);
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  compiled.bytes = vm::EncodeProgram(*program).value();
  return compiled;
}

TEST_CASE("an executable is the same with a cold, a warm, a damaged and no cache") {
  for (const char* model : {"digits.onnx", "mlp.py", "onnx/control_flow.onnx"}) {
    CAPTURE(model);
    const KernelCacheFolder folder;
    const KernelCacheOptions options{folder.path(), 1 << 24};
    const CompiledModel without = CompileWith(model, std::nullopt), cold = CompileWith(model, options, 2);
    CHECK(cold.bytes == without.bytes);
    CHECK(cold.figures.hits == 0);
    CHECK(cold.figures.stored == cold.figures.misses);
    CHECK(cold.figures.stored > 0);
    const CompiledModel warm = CompileWith(model, options);
    CHECK(warm.bytes == without.bytes);
    CHECK(warm.figures.hits == cold.figures.stored);
    CHECK(warm.figures.misses == 0);
    int64_t damaged = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename() == BlockLedger::kName) continue;
      if (damaged % 2 == 0) fs::resize_file(entry.path(), entry.file_size() / 2);
      if (damaged % 2 == 1) std::fstream(entry.path(), std::ios::in | std::ios::out).seekp(200) << "damaged";
      ++damaged;
    }
    const CompiledModel mended = CompileWith(model, options);
    CHECK(mended.bytes == without.bytes);
    CHECK(mended.figures.damaged == damaged);
    CHECK(mended.figures.stored == damaged);
    CHECK(CompileWith(model, options).figures.hits == damaged);
    for (const CompiledModel* one : {&without, &cold, &warm, &mended}) CHECK(one->notes.empty());
  }
}

TEST_CASE("a cache that cannot be used is one note, and the executable is the same") {
  const KernelCacheFolder folder;
  const CompiledModel without = CompileWith("digits.onnx", std::nullopt);
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::others_write);
  const CompiledModel open = CompileWith("digits.onnx", KernelCacheOptions{folder.path(), 1 << 24});
  CHECK(open.bytes == without.bytes);
  REQUIRE(open.notes.size() == 1);
  CHECK(open.notes[0].find("open to other users") != std::string::npos);
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace ingot::kernels
