// BlockLedger: how many blocks of the disk the files of a folder take, known without looking at each of them. It is the
// length of a file in the folder, to which every process appends one byte for each block before it writes, so that
// nothing is missing after a crash. Files that are replaced or gone are in it until it is set anew from a count; files
// that are being written while somebody counts may be missing until the next count. Appending is atomic, and nobody
// waits for a lock: what is appended to a ledger that has been replaced meanwhile is appended to the new one, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::kernels {

class BlockLedger {
 public:
  static constexpr const char* kName = "blocks";
  static constexpr int64_t kBlockBytes = 4096;
  static int64_t BlocksOf(int64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

  // folder: a descriptor of the folder, which outlives the ledger; path: what messages call it.
  BlockLedger(int folder, std::string path, formats::FileCalls& calls)
      : folder_(folder), path_(std::move(path)), calls_(calls) {}

  // How many blocks the folder has, the ledger's own included; nothing if no usable ledger is there.
  std::optional<int64_t> Blocks() const;
  // Adds blocks that are about to be written. Returns as Blocks().
  Result<std::optional<int64_t>> Add(int64_t blocks);

  // Puts a counted number into the place of what the ledger said. One process may do so at a time. What other processes
  // add between the construction, which comes before counting, and Finish stays.
  class Recount {
   public:
    explicit Recount(BlockLedger& ledger);
    ~Recount();
    Recount(const Recount&) = delete;
    Recount& operator=(const Recount&) = delete;
    Status Finish(int64_t blocks);

   private:
    BlockLedger& ledger_;
    int replaced_;  // a descriptor, or -1
    int64_t length_ = 0;
  };

 private:
  int OpenUsable() const;
  Status Append(int file, int64_t blocks);
  Status Error(const char* action) const;

  const int folder_;
  const std::string path_;
  formats::FileCalls& calls_;
};

}  // namespace ingot::kernels
