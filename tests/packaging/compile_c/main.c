/* Compiles a model of one float32 input "image" [batch, 1, 8, 8] in this process, opens the result from memory, writes
 * it in every form, signed and with a golden case, and looks at what failures say.
 *
 *   consumer MODEL OUT [KEY]    KEY: a secret key, the public one in KEY.pub; without it nothing is signed */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ingot/compiler.h"

static int failures = 0;
static void expect(int holds, const char* what) {
  if (!holds) fprintf(stderr, "not so: %s\n", what), ++failures;
}
static ingot_status_code code_of(ingot_status* status, const char* says) {
  ingot_status_code code = ingot_status_get_code(status);
  if (strstr(ingot_status_message(status), says) == NULL) {
    fprintf(stderr, "expected \"%s\" in: %s\n", says, ingot_status_message(status));
    ++failures;
  }
  ingot_status_release(status);
  return code;
}
static void count(void* user, const char* step, int64_t done, int64_t total) {
  (void)step;
  if (done <= total) ++*(int*)user;
}
static void note_cache(void* user, const char* message) {
  if (strstr(message, "cached") != NULL) ++*(int*)user;
}
static int is_there(const char* path) {
  FILE* file = fopen(path, "r");
  if (file != NULL) fclose(file);
  return file != NULL;
}

/* A .safetensors of two images: a call to keep. */
static void write_images(const char* path) {
  static const char header[] = "{\"image\":{\"dtype\":\"F32\",\"shape\":[2,1,8,8],\"data_offsets\":[0,512]}}";
  const uint64_t length = sizeof header - 1;
  float images[128];
  FILE* file = fopen(path, "wb");
  expect(file != NULL, "a file of tensors");
  if (file == NULL) return;
  for (int i = 0; i < 128; ++i) images[i] = (float)(i * 7 % 17);
  fwrite(&length, sizeof length, 1, file);
  fwrite(header, 1, length, file);
  fwrite(images, sizeof images, 1, file);
  fclose(file);
}

/* What the file keeps is what its own code computes: the self-test, by hand. */
static void run_golden_case(ingot_executable* executable) {
  ingot_golden_case golden = INGOT_GOLDEN_CASE_INIT;
  const ingot_function* function = NULL;
  ingot_context* context = NULL;
  ingot_value argument = {INGOT_KIND_TENSOR, {0}}, result = {INGOT_KIND_INT, {0}};
  size_t cases = 0;
  expect(code_of(ingot_executable_golden_case_count(executable, &cases), "") == INGOT_OK && cases == 1, "one case");
  if (cases != 1 || code_of(ingot_executable_golden_case(executable, 0, &golden), "") != INGOT_OK) return;
  expect(strcmp(golden.function, "main") == 0 && strcmp(golden.origin, "reference") == 0, "evaluated by reference");
  expect(golden.relative_tolerance == 1e-3 && golden.absolute_tolerance == 1e-6, "tolerances");
  expect(golden.num_inputs == 1 && golden.num_outputs == 1, "inputs and outputs");
  expect(code_of(ingot_executable_find_function(executable, golden.function, &function), "") == INGOT_OK, "main");
  expect(code_of(ingot_context_create(executable, NULL, &context), "") == INGOT_OK, "a context");
  argument.as.tensor = &golden.inputs[0].tensor;
  expect(code_of(ingot_invoke(context, function, &argument, 1, &result, 1), "") == INGOT_OK, "runs");
  if (result.kind == INGOT_KIND_TENSOR) {
    const ingot_dl_tensor *got = &result.as.owned_tensor->dl_tensor, *wanted = &golden.outputs[0].tensor;
    expect(wanted->ndim == 2 && wanted->shape[0] == 2 && wanted->shape[1] == got->shape[1], "the shape of the outputs");
    for (int64_t i = 0; i < wanted->shape[0] * wanted->shape[1]; ++i) {
      const double value = ((const float*)wanted->data)[i], error = fabs(((const float*)got->data)[i] - value);
      expect(error <= golden.absolute_tolerance + golden.relative_tolerance * fabs(value), "equal elements");
    }
  }
  ingot_value_clear(&result);
  ingot_context_release(context);
}

/* golden.ingot: signed where there is a key, and then opened by a policy that asks for that key alone. */
static void write_golden(const ingot_compiled* compiled, ingot_instance* instance, const char* secret_key) {
  static const char* const calls[] = {"images.safetensors"};
  ingot_write_options write = INGOT_WRITE_OPTIONS_INIT;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  ingot_executable* executable = NULL;
  char path[512], key[65] = "";
  const char* const keys[] = {key};
  FILE* file;
  write_images(calls[0]);
  write.golden_cases = calls;
  write.num_golden_cases = 1;
  write.golden_relative_tolerance = 1e-3;
  write.golden_absolute_tolerance = 1e-6;
  write.secret_key = secret_key;
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "golden.ingot", &write), "") == INGOT_OK,
         "writes a golden case");
  open.trust = INGOT_TRUST_FILE;
  if (secret_key != NULL) {
    snprintf(path, sizeof path, "%s.pub", secret_key);
    file = fopen(path, "r");
    expect(file != NULL && fscanf(file, "%64s", key) == 1, "a public key");
    if (file != NULL) fclose(file);
    open.trust = INGOT_TRUST_SIGNED;
    open.trusted_keys = keys;
    open.num_trusted_keys = 1;
  }
  expect(code_of(ingot_executable_open(instance, "golden.ingot", &open, &executable), "") == INGOT_OK, "opens");
  if (executable != NULL) run_golden_case(executable);
  ingot_executable_release(executable);
  executable = NULL;
  if (secret_key == NULL) return;
  key[0] = key[0] == '0' ? '1' : '0';
  expect(code_of(ingot_executable_open(instance, "golden.ingot", &open, &executable), "none of the trusted keys") ==
             INGOT_NOT_TRUSTED,
         "another key");
}

/* The executable is the same with a cold and a warm cache as without one; the second time nothing is compiled anew. */
static void compile_cached(const char* model, ingot_compile_options options) {
  ingot_compiled *without = NULL, *with = NULL;
  int notes = 0;
  options.log = note_cache;
  options.user = &notes;
  expect(code_of(ingot_compile(model, &options, &without), "") == INGOT_OK, "compiles without a cache");
  expect(!is_there("kernels"), "no folder that nobody asked for");
  options.cache = "kernels";
  for (int i = 0; i < 2; ++i) {
    expect(code_of(ingot_compile(model, &options, &with), "") == INGOT_OK, "compiles with a cache");
    expect(ingot_compiled_size(with) == ingot_compiled_size(without) &&
               memcmp(ingot_compiled_data(with), ingot_compiled_data(without), ingot_compiled_size(with)) == 0,
           "the same bytes");
    ingot_compiled_release(with);
    with = NULL;
  }
  expect(is_there("kernels"), "the folder");
  expect(notes == 0, "nothing to complain of");
  options.cache = "/";
  expect(code_of(ingot_compile(model, &options, &with), "") == INGOT_OK, "compiles with a cache that is refused");
  expect(notes == 1, "which is said");
  ingot_compiled_release(with);
  ingot_compiled_release(without);
  options.cache_max_bytes = -1;
  expect(code_of(ingot_compile(model, &options, &with), "cache_max_bytes") == INGOT_INVALID_ARGUMENT, "bounds");
}

/* Tasks of tuning, of which nothing is measured, and options that are refused. */
static void list_tasks(const char* model) {
  ingot_tune_options tune = INGOT_TUNE_OPTIONS_INIT;
  ingot_tuned_task task = INGOT_TUNED_TASK_INIT;
  ingot_tuning* tuning = NULL;
  int tunable = 0;
  expect(code_of(ingot_tuning_run(model, NULL, NULL, &tuning), "") == INGOT_OK, "lists tasks");
  for (size_t i = 0; i < ingot_tuning_task_count(tuning); ++i) {
    expect(code_of(ingot_tuning_task(tuning, i, &task), "") == INGOT_OK, "a task");
    expect(task.key != NULL && task.kernel != NULL && task.note[0] == 0, "its texts");
    expect(task.weight > 0 && task.trials == 0 && task.comparison.median == 0, "nothing measured");
    tunable += task.num_schedules > 1;
  }
  expect(tunable > 2, "tasks with choices");
  expect(code_of(ingot_tuning_task(tuning, ingot_tuning_task_count(tuning), &task), "no task") ==
             INGOT_INVALID_ARGUMENT,
         "bounds of tasks");
  expect(ingot_tuning_model(tuning).median == 0 && ingot_tuning_note(tuning)[0] == 0, "no comparison");
  ingot_tuning_release(tuning);
  expect(code_of(ingot_tuning_run(model, NULL, &tune, &tuning), "database") == INGOT_INVALID_ARGUMENT, "no records");
  expect(tuning == NULL, "no result");
}

/* What the options say is in the result: bounds of a dimension under a name of its own, labels, the target. */
static void compile_with_options(const char* model, ingot_instance* instance) {
  static const char* const shapes[] = {"image=images,1,8,8"};
  static const char* const dims[] = {"images=1..4"};
  static const char* const states[] = {"image=none"};
  ingot_compile_options options = INGOT_COMPILE_OPTIONS_INIT;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  ingot_compiled* compiled = NULL;
  ingot_executable* executable = NULL;
  const ingot_function* function = NULL;
  int64_t min = 0, max = 0;
  int found = 0;
  options.target = "cpu:x86-64-v2,x86-64-v3";
  options.opt_level = 1;
  options.num_threads = 1;
  options.input_shapes = shapes;
  options.num_input_shapes = 1;
  options.dims = dims;
  options.num_dims = 1;
  options.labels = "zero\none\n";
  expect(code_of(ingot_compile(model, &options, &compiled), "") == INGOT_OK, "compiles with options");
  open.kernels = INGOT_KERNELS_STUB;
  expect(code_of(ingot_executable_open_memory(instance, ingot_compiled_data(compiled), ingot_compiled_size(compiled),
                                              "compiled", &open, &executable),
                 "") == INGOT_OK,
         "opens");
  for (size_t i = 0; i < ingot_executable_metadata_count(executable); ++i) {
    const char *key = ingot_executable_metadata_key(executable, i),
               *value = ingot_executable_metadata_value(executable, i);
    found += strcmp(key, "labels") == 0 && strcmp(value, options.labels) == 0;
    found += strcmp(key, "target") == 0 && strcmp(value, options.target) == 0;
    found += strcmp(key, "opt_level") == 0 && strcmp(value, "1") == 0;
  }
  expect(found == 3, "metadata");
  expect(code_of(ingot_executable_find_function(executable, "main", &function), "") == INGOT_OK, "main");
  expect(strcmp(ingot_function_symbol(function, 0, &min, &max), "images") == 0 && min == 1 && max == 4, "bounds");
  ingot_executable_release(executable);
  ingot_compiled_release(compiled);
  options.states = states;
  options.num_states = 1;
  expect(code_of(ingot_compile(model, &options, &compiled), "none") != INGOT_OK, "states");
  options.num_states = 0;
  options.fast_math = "reasociate";
  expect(code_of(ingot_compile(model, &options, &compiled), "did you mean \"reassociate\"") == INGOT_INVALID_ARGUMENT,
         "groups of rewrites");
  options.fast_math = "all";
  options.strict_math = 1;
  expect(code_of(ingot_compile(model, &options, &compiled), "exclude each other") == INGOT_INVALID_ARGUMENT,
         "strict and fast math");
  options.fast_math = NULL;
  expect(code_of(ingot_compile(model, &options, &compiled), "") == INGOT_OK, "compiles strictly");
  ingot_compiled_release(compiled);
  compile_cached(model, options);
  list_tasks(model);
  options.opt_level = 4;
  expect(code_of(ingot_compile(model, &options, &compiled), "opt_level") == INGOT_INVALID_ARGUMENT, "levels");
}

/* What is not there is refused by its name, and the outcome is NULL then. */
static void give_nothing(const char* model, const ingot_compiled* fine, const char* path) {
  static const char* const nothing[1] = {NULL};
  const char* const* const lists[2] = {NULL, nothing};
  ingot_tuning* const no_tuning = NULL;
  ingot_compiled *before = (ingot_compiled*)&failures, *compiled = before;
  ingot_tuning* tuning = (ingot_tuning*)&failures;
  expect(code_of(ingot_compile(model, NULL, NULL), "\"compiled\"") == INGOT_INVALID_ARGUMENT, "no place");
  expect(code_of(ingot_compile(NULL, NULL, &compiled), "\"model_path\"") == INGOT_INVALID_ARGUMENT, "no model");
  expect(compiled == NULL, "nothing is compiled");
  expect(code_of(ingot_tuning_run(model, NULL, NULL, NULL), "\"tuning\"") == INGOT_INVALID_ARGUMENT, "no place");
  expect(code_of(ingot_tuning_run(NULL, NULL, NULL, &tuning), "\"model_path\"") == INGOT_INVALID_ARGUMENT, "no model");
  expect(tuning == NULL, "nothing is tuned");
  for (int i = 0; i < 2; ++i) {
    ingot_compile_options options[3] = {INGOT_COMPILE_OPTIONS_INIT, INGOT_COMPILE_OPTIONS_INIT,
                                        INGOT_COMPILE_OPTIONS_INIT};
    ingot_tune_options tune[2] = {INGOT_TUNE_OPTIONS_INIT, INGOT_TUNE_OPTIONS_INIT};
    ingot_write_options write = INGOT_WRITE_OPTIONS_INIT;
    options[0].input_shapes = options[1].dims = options[2].states = lists[i];
    options[0].num_input_shapes = options[1].num_dims = options[2].num_states = 1;
    for (int k = 0; k < 3; ++k) {
      compiled = before;
      expect(code_of(ingot_compile(model, &options[k], &compiled), "NULL") == INGOT_INVALID_ARGUMENT, "a list");
      expect(compiled == NULL, "nothing is compiled");
    }
    tune[0].sizes = tune[1].runners = lists[i];
    tune[0].num_sizes = tune[1].num_runners = 1;
    for (int k = 0; k < 2; ++k) {
      tune[k].database = path;
      expect(code_of(ingot_tuning_run(model, NULL, &tune[k], &tuning), "NULL") == INGOT_INVALID_ARGUMENT, "a list");
    }
    write.golden_cases = lists[i];
    write.num_golden_cases = 1;
    expect(code_of(ingot_compiled_write_with(fine, INGOT_FORM_EXECUTABLE, path, &write), "NULL") ==
               INGOT_INVALID_ARGUMENT,
           "a list");
  }
  expect(code_of(ingot_compiled_write(NULL, INGOT_FORM_EXECUTABLE, path), "\"compiled\"") == INGOT_INVALID_ARGUMENT,
         "nothing to write");
  expect(code_of(ingot_compiled_write(fine, INGOT_FORM_EXECUTABLE, NULL), "\"path\"") == INGOT_INVALID_ARGUMENT,
         "no path");
  expect(code_of(ingot_tuning_task(NULL, 0, NULL), "\"tuning\"") == INGOT_INVALID_ARGUMENT, "no tasks");
  expect(ingot_compiled_data(NULL) == NULL && ingot_compiled_size(NULL) == 0, "no bytes");
  expect(ingot_tuning_task_count(no_tuning) == 0 && ingot_tuning_model(no_tuning).median == 0, "no tuning");
  expect(strcmp(ingot_tuning_choices(no_tuning), "") == 0 && strcmp(ingot_tuning_note(no_tuning), "") == 0, "no texts");
  expect(!is_there(path), "nothing is written");
  ingot_compiled_release(NULL);
  ingot_tuning_release(NULL);
}

int main(int argc, char** argv) {
  ingot_compile_options options = INGOT_COMPILE_OPTIONS_INIT;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  ingot_compiled* compiled = NULL;
  ingot_instance* instance = NULL;
  ingot_executable* executable = NULL;
  int steps = 0;
  if (argc != 3 && argc != 4) return fprintf(stderr, "usage: consumer MODEL OUT [KEY]\n"), 2;
  options.progress = count;
  options.user = &steps;
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "") == INGOT_OK, "compiles");
  give_nothing(argv[1], compiled, argv[2]);
  expect(steps > 0, "progress is told");
  open.trust = INGOT_TRUST_FILE;
  expect(code_of(ingot_instance_create(NULL, &instance), "") == INGOT_OK, "an instance");
  expect(code_of(ingot_executable_open_memory(instance, ingot_compiled_data(compiled), ingot_compiled_size(compiled),
                                              "compiled", &open, &executable),
                 "") == INGOT_OK,
         "opens from memory");
  expect(ingot_executable_function_count(executable) == 1, "one function");
  expect(code_of(ingot_compiled_write(compiled, INGOT_FORM_PROGRAM, argv[2]), "") == INGOT_OK, "a program");
  expect(code_of(ingot_compiled_write(compiled, INGOT_FORM_OBJECT, "embedded.o"), "") == INGOT_OK, "an object");
  expect(is_there("embedded.o") && is_there("embedded.h"), "an object and its header");
  expect(code_of(ingot_compiled_write(compiled, INGOT_FORM_SHARED, "embedded.so"), "") == INGOT_OK, "a library");
  write_golden(compiled, instance, argc == 4 ? argv[3] : NULL);
  compile_with_options(argv[1], instance);
  expect(code_of(ingot_compiled_write(compiled, (ingot_form)9, argv[2]), "unknown form") == INGOT_INVALID_ARGUMENT,
         "unknown forms");
  ingot_write_options write = INGOT_WRITE_OPTIONS_INIT;
  write.compress = "zstd:99";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "x.ingot", &write), "zstd:1..19") ==
             INGOT_INVALID_ARGUMENT,
         "levels of compression");
  write.compress = "zstd:3";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "zstd.ingot", &write), "") == INGOT_OK,
         "a compressed executable");
  write.external_weights = "w.safetensors";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "x.ingot", &write), "keep_prepare") ==
             INGOT_INVALID_ARGUMENT,
         "weights that were packed");
  write.external_weights = NULL;
  write.launcher = "none.launcher";
  expect(
      code_of(ingot_compiled_write_with(compiled, INGOT_FORM_PROGRAM, "x.ingot", &write), "none.launcher") == INGOT_IO,
      "no such launcher");
  write.launcher = NULL;
  write.secret_key = "none.key";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "x.ingot", &write), "none.key") != INGOT_OK,
         "no such key");
  expect(!is_there("x.ingot"), "nothing is written by what fails");
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  ingot_compiled_release(compiled);
  options.keep_prepare = 1;
  options.softmax_output = "score";
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "there is no output \"score\"") == INGOT_NOT_FOUND,
         "outputs for softmax");
  options.softmax_output = NULL;
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "") == INGOT_OK, "keeps weights");
  write = (ingot_write_options)INGOT_WRITE_OPTIONS_INIT;
  write.external_weights = "w.safetensors";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "outside.ingot", &write), "") == INGOT_OK,
         "weights outside");
  ingot_compiled_release(compiled);
  options.keep_prepare = 0;
  options.target = "cpu:x86-64-v33";
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "x86-64-v3") == INGOT_INVALID_ARGUMENT, "targets");
  expect(compiled == NULL, "nothing was made");
  options.target = NULL;
  expect(code_of(ingot_compile("none.onnx", &options, &compiled), "none.onnx") == INGOT_IO, "no such model");
  options.struct_size = 1;
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "struct_size") == INGOT_INVALID_ARGUMENT, "struct_size");
  expect(code_of(ingot_compile(NULL, NULL, &compiled), "model_path") == INGOT_INVALID_ARGUMENT, "NULL");
  return failures == 0 ? 0 : 1;
}
