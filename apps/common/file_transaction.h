// The files that one command writes: each is written to its temporary, and all are renamed when the last one is
// complete. Whoever writes takes it as the FileCalls; a command that fails changes none of its files. What is read
// through it is what was written.
#pragma once

#include <string>
#include <vector>

#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::apps {

// One thread at a time.
class FileTransaction final : public formats::FileCalls {
 public:
  FileTransaction() = default;
  FileTransaction(const FileTransaction&) = delete;
  FileTransaction& operator=(const FileTransaction&) = delete;
  // Removes what Commit did not put in place.
  ~FileTransaction() override;

  int Open(const char* path, int flags, mode_t mode) override;
  // Only remembers it: Commit renames.
  int Rename(const char* from, const char* to) override;
  int Unlink(const char* path) override;

  // Puts all files in place, in the order in which they were completed. When a rename fails, those before it are taken
  // back, and what they replaced is there again where the file system can exchange two files.
  Status Commit();

 private:
  struct Pending {
    std::string temporary, target;
    bool is_exchanged = false;  // what the target was is in the temporary's place
  };
  int Place(Pending& file);
  void TakeBack(const Pending& file);

  std::vector<Pending> pending_;
};

}  // namespace ingot::apps
