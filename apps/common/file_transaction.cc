// Defers the renames of OutputFile, and lists temporaries for the handlers of signals (process.h).
#include "apps/common/file_transaction.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "apps/common/process.h"

namespace ingot::apps {

FileTransaction::~FileTransaction() {
  for (const Pending& file : pending_) Unlink(file.temporary.c_str());
}

int FileTransaction::Open(const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0) {
    ListTemporary(path);
    const int fd = FileCalls::Open(path, flags, mode);
    if (fd < 0) {
      const int error = errno;
      UnlistTemporary(path);
      errno = error;
    }
    return fd;
  }
  char resolved[PATH_MAX];
  const std::string_view target = realpath(path, resolved) != nullptr ? resolved : path;
  const auto written =
      std::find_if(pending_.rbegin(), pending_.rend(), [&](const Pending& file) { return file.target == target; });
  return FileCalls::Open(written == pending_.rend() ? path : written->temporary.c_str(), flags, mode);
}

int FileTransaction::Rename(const char* from, const char* to) {
  pending_.push_back({from, to});
  return 0;
}

int FileTransaction::Unlink(const char* path) {
  const int result = FileCalls::Unlink(path);
  UnlistTemporary(path);
  return result;
}

// One file alone replaces its target, which cannot fail half way. Of several, each changes places with its target, so
// that a later failure can undo it; where there is no target, or no exchange, it is renamed.
int FileTransaction::Place(Pending& file) {
  file.is_exchanged = pending_.size() > 1 &&
                      renameat2(AT_FDCWD, file.temporary.c_str(), AT_FDCWD, file.target.c_str(), RENAME_EXCHANGE) == 0;
  return file.is_exchanged ? 0 : FileCalls::Rename(file.temporary.c_str(), file.target.c_str());
}

void FileTransaction::TakeBack(const Pending& file) {
  if (file.is_exchanged) {
    renameat2(AT_FDCWD, file.temporary.c_str(), AT_FDCWD, file.target.c_str(), RENAME_EXCHANGE);
  } else {
    FileCalls::Rename(file.target.c_str(), file.temporary.c_str());
  }
}

Status FileTransaction::Commit() {
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (Place(pending_[i]) == 0) continue;
    Status status(StatusCode::kIo, {pending_[i].target, ": cannot rename: ", std::strerror(errno)});
    while (i-- > 0) TakeBack(pending_[i]);
    return status;
  }
  // From here on all files are there, whatever fails.
  Status status;
  for (const Pending& file : pending_) {
    if (file.is_exchanged) FileCalls::Unlink(file.temporary.c_str());
    UnlistTemporary(file.temporary.c_str());
    const Status synced = formats::SyncDirectoryOf(file.target, *this);
    if (status.ok()) status = synced;
  }
  pending_.clear();
  return status;
}

}  // namespace ingot::apps
