// The tensor pass chunk_tasks: what it makes computes the same, little work is one task, much work is several, and loops
// whose work constants say stay as they are.
#include <doctest/doctest.h>

#include <vector>

#include "compiler/transform/tensor/passes.h"
#include "runtime/thread_pool.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::transform {
namespace {

using codegen::testing::Function;
using codegen::testing::Load;
using codegen::testing::Loop;
using codegen::testing::Store;
using ir::Int64;
using ir::PrimExpr;

const DataType kI64 = DataType::Int(64);

ir::PrimFunc ChunkedOf(const ir::PrimFunc& function) {
  Result<ir::PrimFunc> result = ChunkTasks(function, codegen::testing::TargetNamed("x86-64-v3"));
  REQUIRE(result.ok());
  return *result;
}

struct Matrix {
  ir::PrimVar rows = ir::MakePrimVar("rows", kI64), columns = ir::MakePrimVar("columns", kI64);
  ir::Buffer x = ir::Make<ir::BufferNode>("x", kI64, std::vector<PrimExpr>{rows, columns});
  ir::Buffer y = ir::Make<ir::BufferNode>("y", kI64, std::vector<PrimExpr>{rows, columns});
};

// for i in parallel(rows): for j in range(columns): y[i, j] = 3 x[i, j] + i
ir::PrimFunc Rows(const Matrix& m) {
  const auto row = [&](const PrimExpr& i) {
    return Loop(m.columns, [&](const PrimExpr& j) { return Store(m.y, Load(m.x, {i, j}) * Int64(3) + i, {i, j}); });
  };
  return Function({m.x, m.y}, Loop(m.rows, row, ir::ForKind::kParallel));
}

// The number of tasks of the loops of one call that had more than one; their results are checked, too.
int64_t TasksOf(codegen::testing::Kernel& kernel, int64_t rows, int64_t columns) {
  int64_t tasks = 0;
  ThreadPool::Hook hook;
  hook.num_threads = 4;
  hook.user_data = &tasks;
  hook.parallel_for = [](void* user_data, int64_t num_tasks, void (*task)(void*, int64_t), void* closure) {
    *static_cast<int64_t*>(user_data) += num_tasks;
    for (int64_t t = num_tasks; t-- > 0;) task(closure, t);
  };
  const auto pool = ThreadPool::CreateWithHook(hook).value();
  const auto count = static_cast<size_t>(rows * columns);
  codegen::testing::Tensor<int64_t> x(count + 1), y(count + 1, -1);
  for (size_t i = 0; i < count; ++i) x[i] = static_cast<int64_t>(i);
  REQUIRE(kernel.Run({x.data(), y.data()}, {rows, columns}, pool.get()) == 0);
  bool all = true;
  for (size_t i = 0; i < count; ++i) all &= y[i] == 3 * x[i] + static_cast<int64_t>(i) / columns;
  CHECK(all);
  CHECK(y[count] == -1);
  return tasks;
}

TEST_CASE("a task runs as many iterations as make it worth its start") {
  const Matrix m;
  codegen::testing::Kernel kernel(ChunkedOf(Rows(m)));
  for (const int64_t rows : {0, 1, 2, 3, 7, 64, 1000}) {
    for (const int64_t columns : {0, 1, 2, 5, 33, 1000}) {
      CAPTURE(rows);
      CAPTURE(columns);
      const int64_t tasks = TasksOf(kernel, rows, columns);
      CHECK(tasks <= rows);
      if (rows * columns < 4000) CHECK(tasks == 0);  // one task, which needs no thread
      if (rows == 1000 && columns == 1000) CHECK(tasks >= 4);
      if (rows == 1000 && columns == 33) CHECK(tasks < 100);
    }
  }
  // Few iterations that are much work each are a task each.
  CHECK(TasksOf(kernel, 3, 1 << 18) == 3);
}

TEST_CASE("sizes whose product is no integer make no task of 0 iterations") {
  const Matrix m;
  const ir::PrimVar huge = ir::MakePrimVar("huge", kI64);
  const ir::Buffer much = ir::Make<ir::BufferNode>("much", kI64, std::vector<PrimExpr>{m.rows, huge, huge, huge});
  const auto row = [&](const PrimExpr& i) {
    return Loop(huge, [&](const PrimExpr& j) {
      return Loop(huge, [&](const PrimExpr& k) {
        return Loop(huge, [&](const PrimExpr& l) { return Store(much, Int64(1), {i, j, k, l}); });
      });
    });
  };
  codegen::testing::Kernel kernel(ChunkedOf(Function({much}, Loop(m.rows, row, ir::ForKind::kParallel), {})));
  CHECK(kernel.Run({nullptr}, {0, int64_t{1} << 62}) == 0);
}

TEST_CASE("an extent that may fail is not asked before its loop") {
  const Matrix m;
  const auto row = [&](const PrimExpr& i) {
    return Loop(ir::FloorDiv(m.columns, m.rows), [&](const PrimExpr& j) { return Store(m.y, i, {i, j}); });
  };
  codegen::testing::Kernel kernel(ChunkedOf(Function({m.x, m.y}, Loop(m.rows, row, ir::ForKind::kParallel))));
  CHECK(kernel.Run({nullptr, nullptr}, {0, 5}) == 0);
}

TEST_CASE("loops whose work constants say, and serial ones, stay as they are") {
  const Matrix m;
  const auto row = [&](const PrimExpr& i) {
    return Loop(Int64(8), [&](const PrimExpr& j) { return Store(m.y, i, {i, j}); });
  };
  const ir::PrimFunc fixed = Function({m.x, m.y}, Loop(m.rows, row, ir::ForKind::kParallel));
  CHECK(ChunkedOf(fixed)->body.get() == fixed->body.get());
  const auto symbolic = [&](const PrimExpr& i) {
    return Loop(m.columns, [&](const PrimExpr& j) { return Store(m.y, i, {i, j}); });
  };
  const ir::PrimFunc serial = Function({m.x, m.y}, Loop(m.rows, symbolic));
  CHECK(ChunkedOf(serial)->body.get() == serial->body.get());
}

}  // namespace
}  // namespace ingot::transform
