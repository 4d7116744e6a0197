// Defers the renames of OutputFile, and lists temporaries for the handlers of signals (process.h).
#include "apps/common/file_transaction.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
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

Status FileTransaction::Commit() {
  size_t done = 0;
  Status status;
  for (; done < pending_.size() && status.ok(); ++done) {
    const Pending& file = pending_[done];
    if (FileCalls::Rename(file.temporary.c_str(), file.target.c_str()) != 0) {
      status = Status(StatusCode::kIo, {file.target, ": cannot rename: ", std::strerror(errno)});
      break;
    }
    UnlistTemporary(file.temporary.c_str());
    status = formats::SyncDirectoryOf(file.target, *this);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(done));
  return status;
}

}  // namespace ingot::apps
