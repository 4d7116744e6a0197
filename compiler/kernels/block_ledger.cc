#include "compiler/kernels/block_ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace ingot::kernels {
namespace {

constexpr const char* kNewName = ".blocks.tmp";
constexpr int64_t kMostBytesAtOnce = 1 << 16;
constexpr int kMostAppends = 4;  // of the same blocks, each to a ledger that replaced the one before

int64_t LengthOf(int file) {
  struct stat info {};
  return fstat(file, &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

}  // namespace

Status BlockLedger::Error(const char* action) const {
  return Status(StatusCode::kIo, {path_, ": cannot ", action, " the number of its blocks: ", std::strerror(errno)});
}

// The user's own file, and nothing that leads elsewhere or waits; or -1.
int BlockLedger::OpenUsable() const {
  const int file = openat(folder_, kName, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info {};
  if (file < 0) return -1;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 0022) == 0) {
    return file;
  }
  calls_.Close(file);
  return -1;
}

std::optional<int64_t> BlockLedger::Blocks() const {
  const int file = OpenUsable();
  if (file < 0) return std::nullopt;
  const int64_t length = LengthOf(file);
  calls_.Close(file);
  return length + BlocksOf(length);
}

Status BlockLedger::Append(int file, int64_t blocks) {
  const std::string bytes(static_cast<size_t>(std::min(blocks, kMostBytesAtOnce)), '.');
  while (blocks > 0) {
    const ssize_t count = calls_.Write(file, bytes.data(), static_cast<size_t>(std::min(blocks, kMostBytesAtOnce)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error("write");
    blocks -= count;
  }
  return Status();
}

Result<std::optional<int64_t>> BlockLedger::Add(int64_t blocks) {
  for (int attempt = 1;; ++attempt) {
    const int file = OpenUsable();
    if (file < 0) return std::optional<int64_t>();
    const Status status = Append(file, blocks);
    struct stat written {};
    struct stat current {};
    const bool is_known = fstat(file, &written) == 0;
    const bool is_current = fstatat(folder_, kName, &current, AT_SYMLINK_NOFOLLOW) == 0 &&
                            written.st_ino == current.st_ino && written.st_dev == current.st_dev;
    calls_.Close(file);  // (as long as it is open, no other file has its inode number)
    INGOT_RETURN_IF_ERROR(status);
    if (!is_known) return Error("read");
    // File systems may number a file anew each time: then what it says is too much, until it is counted.
    if (!is_current && attempt < kMostAppends) continue;
    return std::optional<int64_t>(written.st_size + BlocksOf(written.st_size));
  }
}

BlockLedger::Recount::Recount(BlockLedger& ledger) : ledger_(ledger), replaced_(ledger.OpenUsable()) {
  if (replaced_ >= 0) length_ = LengthOf(replaced_);
}

BlockLedger::Recount::~Recount() {
  if (replaced_ >= 0) ledger_.calls_.Close(replaced_);
}

Status BlockLedger::Recount::Finish(int64_t blocks) {
  const int folder = ledger_.folder_;
  unlinkat(folder, kNewName, 0);  // a killed process's
  const int file = openat(folder, kNewName, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return ledger_.Error("write");
  Status status = ledger_.Append(file, blocks);
  if (ledger_.calls_.Close(file) != 0 && errno != EINTR && status.ok()) status = ledger_.Error("write");
  if (status.ok() && renameat(folder, kNewName, folder, kName) != 0) status = ledger_.Error("rename");
  if (!status.ok()) {
    unlinkat(folder, kNewName, 0);
    return status;
  }
  // Who appended to the replaced one before it was replaced does not know of the new one.
  const int64_t added = replaced_ < 0 ? 0 : LengthOf(replaced_) - length_;
  return added > 0 ? ledger_.Add(added).status() : Status();
}

}  // namespace ingot::kernels
