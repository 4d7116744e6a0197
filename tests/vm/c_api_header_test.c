/* The public headers compile as C11 and the options initialise. */
#include "ingot/dlpack.h"
#include "ingot/ingot.h"

const char* ingot_test_version_from_c(void);
const char* ingot_test_version_from_c(void) {
  ingot_instance_options instance = INGOT_INSTANCE_OPTIONS_INIT;
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  ingot_context_options context = INGOT_CONTEXT_OPTIONS_INIT;
  return instance.struct_size > 0 && open.struct_size > 0 && context.struct_size > 0 ? ingot_version() : "";
}
