// What a test tells the stand-in driver, and asks of it; found by dlsym in the loaded libcuda.so.1.
#pragma once

#include <cstdint>

extern "C" {
// Counts calls from now on; the call-th returns the error, and all later ones too where for_ever is set. Errors that
// lose the context lose it. Zero or less: none.
void standin_fail_call(int64_t call, int error, int for_ever);
int64_t standin_calls();
// Whether what can run in streams that do not wait for the default one does at once, or when somebody waits for it.
void standin_run_ahead(int on);
// Streams, events, modules, pools, pinned and device memory, references of the context.
int64_t standin_live_objects();
// How many modules were PTX that this process had loaded before: a GPU's driver keeps what it compiles, in files, and does
// not compile the same text again.
int64_t standin_known_modules();
// What the last fault of a kernel or copy was.
const char* standin_last_fault();
}
