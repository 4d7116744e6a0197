/* Compiles a model in this process, opens the result from memory, writes it in every form, and looks at what failures
 * say. */
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

int main(int argc, char** argv) {
  ingot_compile_options options = INGOT_COMPILE_OPTIONS_INIT;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  ingot_compiled* compiled = NULL;
  ingot_instance* instance = NULL;
  ingot_executable* executable = NULL;
  int steps = 0;
  if (argc != 3) return fprintf(stderr, "usage: consumer MODEL OUT\n"), 2;
  options.progress = count;
  options.user = &steps;
  options.labels = "zero\none\n";
  expect(code_of(ingot_compile(argv[1], &options, &compiled), "") == INGOT_OK, "compiles");
  expect(steps > 0, "progress is told");
  open.trust = INGOT_TRUST_FILE;
  expect(code_of(ingot_instance_create(NULL, &instance), "") == INGOT_OK, "an instance");
  expect(code_of(ingot_executable_open_memory(instance, ingot_compiled_data(compiled), ingot_compiled_size(compiled),
                                              "compiled", &open, &executable),
                 "") == INGOT_OK,
         "opens from memory");
  expect(ingot_executable_function_count(executable) == 1, "one function");
  expect(code_of(ingot_compiled_write(compiled, INGOT_FORM_PROGRAM, argv[2]), "") == INGOT_OK, "a program");
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
  write.secret_key = "none.key";
  expect(code_of(ingot_compiled_write_with(compiled, INGOT_FORM_EXECUTABLE, "x.ingot", &write), "none.key") != INGOT_OK,
         "no such key");
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
