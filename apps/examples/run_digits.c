/* Runs an executable of one image input and one output of scores, such as digits.ingot, on an array, and prints the
 * scores: what an application does with the C API.
 *
 *   cc run_digits.c -I<prefix>/include -lingot && ./a.out digits.ingot
 */
#include <stdio.h>
#include <stdlib.h>

#include "ingot/ingot.h"

static void check(ingot_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "run_digits: %s\n", ingot_status_message(status));
  ingot_status_release(status);
  exit(1);
}

/* A 7 of 8 x 8 pixels, 0 to 16. */
static float image[64] = {0, 0, 9, 14, 16, 16, 6,  0,  0, 0, 6, 8, 8, 16, 8,  0, 0, 0, 0, 0, 6, 15,
                          2, 0, 0, 0,  4,  12, 16, 9,  0, 0, 0, 0, 9, 16, 12, 4, 0, 0, 0, 0, 2, 14,
                          4, 0, 0, 0,  0,  0,  9,  12, 0, 0, 0, 0, 0, 0,  13, 7, 0, 0, 0, 0};

int main(int argc, char** argv) {
  ingot_instance* instance = NULL;
  ingot_executable* executable = NULL;
  ingot_context* context = NULL;
  const ingot_function* function = NULL;
  ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
  if (argc != 2) return fprintf(stderr, "usage: run_digits FILE.ingot\n"), 2;

  options.trust = INGOT_TRUST_FILE;
  check(ingot_instance_create(NULL, &instance));
  check(ingot_executable_open(instance, argv[1], &options, &executable));
  check(ingot_executable_find_function(executable, "main", &function));
  check(ingot_context_create(executable, NULL, &context));
  printf("main%s\n", ingot_function_signature(function));

  int64_t shape[4] = {1, 1, 8, 8};
  ingot_dl_tensor tensor = {image, {INGOT_DL_CPU, 0}, 4, {2, 32, 1}, shape, NULL, 0}; /* float32 */
  ingot_value argument = {INGOT_KIND_TENSOR, {0}}, result;
  argument.as.tensor = &tensor;
  check(ingot_invoke(context, function, &argument, 1, &result, 1));

  const ingot_dl_tensor* scores = &result.as.owned_tensor->dl_tensor;
  const float* values = scores->data;
  int64_t best = 0, count = scores->shape[scores->ndim - 1];
  for (int64_t i = 0; i < count; ++i) {
    printf("%lld: %g\n", (long long)i, values[i]);
    if (values[i] > values[best]) best = i;
  }
  printf("this is a %lld\n", (long long)best);
  ingot_value_clear(&result);
  ingot_context_release(context);
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  return 0;
}
