/* A preload library with which the K-th allocation of a process fails, counted from the start of main:
 *   INGOT_FAIL_AT=K        that one fails
 *   INGOT_FAIL_FOR_EVER=1  and so do all after it
 *   INGOT_FAIL_COUNT=FILE  how many there were is written there when the process ends
 * Loaders and static constructors come before main: no program can report what fails there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static atomic_long count;
static long failing;
static int fails_for_ever;
static atomic_int is_in_main;
static int (*real_main)(int, char**, char**);

static int Fails(void) {
  if (!atomic_load(&is_in_main)) return 0;
  const long k = atomic_fetch_add(&count, 1) + 1;
  if (failing == 0 || (k != failing && !(fails_for_ever && k > failing))) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return Fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t number, size_t size) { return Fails() ? NULL : __libc_calloc(number, size); }
void* realloc(void* memory, size_t size) { return Fails() ? NULL : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) { return Fails() ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* made = memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *memory = made;
  return 0;
}

static int Main(int argc, char** argv, char** environment) {
  atomic_store(&is_in_main, 1);
  const int code = real_main(argc, argv, environment);
  atomic_store(&is_in_main, 0);
  const char* file = getenv("INGOT_FAIL_COUNT");
  if (file != NULL) {
    char text[24];
    const int size = snprintf(text, sizeof text, "%ld", atomic_load(&count));
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, text, (size_t)size) != size) abort();
    close(fd);
  }
  return code;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*end)(void), void* stack) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
                       void*);
  Start start;
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  const char* text = getenv("INGOT_FAIL_AT");
  if (text != NULL) failing = atol(text);
  fails_for_ever = getenv("INGOT_FAIL_FOR_EVER") != NULL;
  real_main = main;
  return start(Main, argc, argv, init, fini, end, stack);
}
