/* Compiles a model in this process, opens the result from memory, writes it as a program, and looks at what failures say. */
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
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  ingot_compiled_release(compiled);
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
