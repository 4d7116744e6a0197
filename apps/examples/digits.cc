// digits: the example that scripts/demo runs. Classifies the held-out images of a test file with the digit classifier,
// in one batch and one by one, through the C API; draws a few images as text with their predictions and prints the
// accuracy. The same images in another order must give the same accuracy, and the labels of other images must give a
// different one: both are computed too.
//
//   digits digits.ingot digits_test.npz

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "formats/tensor_files.h"
#include "ingot/ingot.h"

namespace {

using ingot::Tensor;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "digits: error: %s\n", message.c_str());
  std::exit(1);
}

void Check(ingot_status* status) {
  if (status == nullptr) return;
  const std::string message = ingot_status_message(status);
  ingot_status_release(status);
  Die(message);
}

Tensor Read(const std::string& path, const char* key) {
  ingot::Result<Tensor> tensor = ingot::formats::ReadTensor(path, key);
  if (!tensor.ok()) Die(tensor.status().message());
  return *tensor;
}

constexpr int64_t kPixels = 64, kClasses = 10;

class Classifier {
 public:
  explicit Classifier(const char* path) {
    Check(ingot_instance_create(nullptr, &instance_));
    ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
    options.trust = INGOT_TRUST_FILE;
    Check(ingot_executable_open(instance_, path, &options, &executable_));
    Check(ingot_executable_find_function(executable_, "main", &main_));
    Check(ingot_context_create(executable_, nullptr, &context_));
    std::printf("main%s\n", ingot_function_signature(main_));
  }
  ~Classifier() {
    ingot_context_release(context_);
    ingot_executable_release(executable_);
    ingot_instance_release(instance_);
  }
  Classifier(const Classifier&) = delete;

  // The most probable digit of each of `count` images of 8x8 float32 pixels.
  std::vector<int64_t> Classify(const float* images, int64_t count) {
    std::vector<float> probabilities(static_cast<size_t>(count * kClasses));
    int64_t image_shape[] = {count, 1, 8, 8}, result_shape[] = {count, kClasses};
    const ingot_dl_data_type float32 = {2, 32, 1};
    ingot_dl_tensor input = {const_cast<float*>(images), {INGOT_DL_CPU, 0}, 4, float32, image_shape, nullptr, 0};
    ingot_dl_tensor output = {probabilities.data(), {INGOT_DL_CPU, 0}, 2, float32, result_shape, nullptr, 0};
    const ingot_dl_tensor* inputs[] = {&input};
    ingot_dl_tensor* outputs[] = {&output};
    Check(ingot_invoke_into(context_, main_, inputs, 1, outputs, 1));
    std::vector<int64_t> best;
    for (int64_t i = 0; i < count; ++i) {
      const auto row = probabilities.begin() + i * kClasses;
      best.push_back(std::max_element(row, row + kClasses) - row);
    }
    return best;
  }

 private:
  ingot_instance* instance_ = nullptr;
  ingot_executable* executable_ = nullptr;
  const ingot_function* main_ = nullptr;
  ingot_context* context_ = nullptr;
};

int64_t CountCorrect(const std::vector<int64_t>& predictions, const std::vector<int64_t>& labels) {
  int64_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) correct += predictions[i] == labels[i];
  return correct;
}

// Prints a few images side by side, dark to bright, and below each its prediction.
void Draw(const float* images, const std::vector<int64_t>& predictions, const std::vector<int64_t>& labels,
          int64_t first, int64_t count) {
  const float brightest = *std::max_element(images + first * kPixels, images + (first + count) * kPixels);
  const std::string shades = " .:-=+*#%@";
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t i = first; i < first + count; ++i) {
      for (int column = 0; column < 8; ++column) {
        const float value = brightest > 0 ? images[i * kPixels + row * 8 + column] / brightest : 0;
        const char shade = shades[static_cast<size_t>(std::clamp(value, 0.0F, 1.0F) * 9)];
        std::printf("%c%c", shade, shade);
      }
      std::printf("   ");
    }
    std::printf("\n");
  }
  for (int64_t i = first; i < first + count; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool right = predictions[at] == labels[at];
    std::printf("%-19s",
                (std::to_string(predictions[at]) + (right ? "" : ", but is " + std::to_string(labels[at]))).c_str());
  }
  std::printf("\n\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Die("usage: digits EXECUTABLE TEST.npz");
  const Tensor images = Read(argv[2], "image"), label_tensor = Read(argv[2], "label");
  if (images.dtype() != ingot::DataType::Float(32) || images.num_elements() % kPixels != 0 ||
      label_tensor.dtype() != ingot::DataType::Int(64) ||
      label_tensor.num_elements() * kPixels != images.num_elements()) {
    Die(std::string(argv[2]) + ": expected image float32[n, 1, 8, 8] and label int64[n], got " + images.TypeToString() +
        " and " + label_tensor.TypeToString());
  }
  const float* pixels = images.Elements<float>().data();
  const auto count = static_cast<size_t>(label_tensor.num_elements());
  const std::vector<int64_t> labels(label_tensor.Elements<int64_t>().begin(), label_tensor.Elements<int64_t>().end());

  Classifier classifier(argv[1]);
  const std::vector<int64_t> batch = classifier.Classify(pixels, static_cast<int64_t>(count));
  std::vector<int64_t> single;
  for (size_t i = 0; i < count; ++i) single.push_back(classifier.Classify(pixels + i * kPixels, 1)[0]);

  // The same images in another order, their labels with them; and labels of other images.
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<float> shuffled;
  std::vector<int64_t> shuffled_labels, other_labels(labels);
  for (size_t i : order) {
    shuffled.insert(shuffled.end(), pixels + i * kPixels, pixels + (i + 1) * kPixels);
    shuffled_labels.push_back(labels[i]);
  }
  std::rotate(other_labels.begin(), other_labels.begin() + 1, other_labels.end());

  std::printf("\n");
  const auto wrong = std::mismatch(batch.begin(), batch.end(), labels.begin()).first - batch.begin();
  Draw(pixels, batch, labels, 0, std::min<int64_t>(4, static_cast<int64_t>(count)));
  if (wrong < static_cast<int64_t>(count)) Draw(pixels, batch, labels, wrong, 1);

  const int64_t in_batch = CountCorrect(batch, labels), one_by_one = CountCorrect(single, labels);
  const int64_t in_other_order =
      CountCorrect(classifier.Classify(shuffled.data(), static_cast<int64_t>(count)), shuffled_labels);
  const int64_t with_other_labels = CountCorrect(batch, other_labels);
  auto print = [&](const char* what, int64_t correct) {
    std::printf("%-24s %lld of %zu right (%.1f%%)\n", what, static_cast<long long>(correct), count,
                100.0 * static_cast<double>(correct) / static_cast<double>(count));
  };
  print("one batch:", in_batch);
  print("one by one:", one_by_one);
  print("in another order:", in_other_order);
  print("with others' labels:", with_other_labels);
  if (in_batch != one_by_one || in_batch != in_other_order || in_batch == with_other_labels)
    Die("these do not fit together");
  return 0;
}
