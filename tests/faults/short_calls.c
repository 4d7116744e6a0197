/* A preload library with which every read and write of a process moves few bytes, and every second one is interrupted
 * before it moves any: what the kernel may do at any time, and does on pipes, full disks and network file systems.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long count;

/* 0: the call is interrupted; else the most that it moves. */
static size_t Most(size_t size) {
  const long k = atomic_fetch_add(&count, 1);
  if (k % 2 == 0) {
    errno = EINTR;
    return 0;
  }
  const size_t most = 1 + (size_t)k % 61;
  return size < most ? size : most;
}

ssize_t read(int fd, void* data, size_t size) {
  const size_t most = Most(size);
  return most == 0 && size > 0 ? -1 : syscall(SYS_read, fd, data, most);
}
ssize_t write(int fd, const void* data, size_t size) {
  const size_t most = Most(size);
  return most == 0 && size > 0 ? -1 : syscall(SYS_write, fd, data, most);
}
ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  const size_t most = Most(size);
  return most == 0 && size > 0 ? -1 : syscall(SYS_pread64, fd, data, most, offset);
}
ssize_t pread64(int fd, void* data, size_t size, off_t offset) { return pread(fd, data, size, offset); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const size_t most = Most(size);
  return most == 0 && size > 0 ? -1 : syscall(SYS_pwrite64, fd, data, most, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t offset) { return pwrite(fd, data, size, offset); }
