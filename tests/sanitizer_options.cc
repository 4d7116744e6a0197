// Out of memory is a status here, so the sanitizers' allocators must give null rather than abort.
#define INGOT_EXPORTED extern "C" __attribute__((visibility("default")))
INGOT_EXPORTED const char* __asan_default_options() { return "allocator_may_return_null=1"; }
INGOT_EXPORTED const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
