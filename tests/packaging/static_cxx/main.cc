// The C++ wrapper from an installed package: calls a classifier both ways, passes a result through DLPack, and looks at
// what failures say.
#include <cstdio>
#include <cstring>

#include "ingot/ingot.hpp"

static int failures = 0;
static void Expect(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "not so: %s\n", what), ++failures;
}

template <typename Function>
static ingot_status_code CodeOf(Function function) {
  try {
    function();
  } catch (const ingot::Error& error) {
    return error.code();
  }
  return INGOT_OK;
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: consumer FILE.ingot\n"), 2;
  ingot::Module m(argv[1], {1});
  const ingot::Tensor x(std::vector<float>(64, 8.0f), {1, 1, 8, 8});
  const ingot::Tensor y = m.Forward(x);
  Expect(y.shape() == std::vector<int64_t>{1, 10}, "ten scores");
  float sum = 0;
  for (const float p : y.ToVector<float>()) sum += p;
  Expect(sum > 0.999f && sum < 1.001f, "probabilities");

  m.SetInput("image", x);
  m.Run();
  Expect(std::memcmp(m.GetOutput(0).data<float>(), y.data<float>(), 10 * sizeof(float)) == 0, "the stateful way");
  ingot::Module other = m.NewContext();
  Expect(other.Forward(x).ToVector<float>() == y.ToVector<float>(), "another context");

  const ingot::Tensor back = ingot::Tensor::TakeDLPack(y.ToDLPack());
  const ingot::Tensor legacy = ingot::Tensor::TakeLegacyDLPack(y.ToLegacyDLPack());
  Expect(back.data<float>() == y.data<float>() && legacy.data<float>() == y.data<float>(), "DLPack shares memory");
  const float borrowed[64] = {};
  Expect(m.Forward(ingot::Tensor::Borrow(borrowed, {1, 1, 8, 8})).size() == 10, "borrowed inputs");

  const ingot::Options distrust{1, ingot::Trust::kNothing};
  Expect(CodeOf([&] { ingot::Module refused(argv[1], distrust); }) == INGOT_NOT_TRUSTED, "distrust");
  Expect(CodeOf([] { ingot::Module none("none.ingot"); }) == INGOT_IO, "no such file");
  Expect(CodeOf([&] { m.Call("mian", {x}); }) == INGOT_NOT_FOUND, "no such function");
  Expect(CodeOf([&] { m.Forward(ingot::Tensor(std::vector<double>(64), {1, 1, 8, 8})); }) == INGOT_BAD_INPUT, "dtypes");
  Expect(CodeOf([&] { y.data<int32_t>(); }) == INGOT_INVALID_ARGUMENT, "another element type");
  Expect(CodeOf([] { ingot::Tensor(std::vector<float>(3), {2, 2}); }) == INGOT_INVALID_ARGUMENT, "too few elements");
  std::printf("%s: %d failures\n", m.signature().c_str(), failures);
  return failures == 0 ? 0 : 1;
}
