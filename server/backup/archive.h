// A file that contains files, encrypted and authenticated with a key. docs/formats/state-archive.md
// specifies it.
#ifndef KILN_SERVER_BACKUP_ARCHIVE_H_
#define KILN_SERVER_BACKUP_ARCHIVE_H_

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::backup {

struct ArchivedFile {
  std::string name;
  int64_t bytes = 0;
};

// Writes an archive in order. Used by one thread.
class ArchiveWriter {
 public:
  // Creates `path`.new with mode 0600. `key`: 32 bytes. UNAVAILABLE: it cannot be created.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Create(const std::string& path,
                                                               absl::string_view key);
  // Removes what was written unless Finish has succeeded.
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  // Adds the next `bytes` bytes of a stream. UNAVAILABLE: it has fewer, or writing failed.
  absl::Status Add(const std::string& name, std::istream& from, int64_t bytes);
  // Ends the archive, and gives it its name when it is on disk.
  absl::Status Finish();
  const std::vector<ArchivedFile>& files() const { return files_; }

 private:
  struct Cipher;
  ArchiveWriter(std::string path, int file);
  absl::Status Put(absl::string_view data);  // plain
  absl::Status WriteChunk(bool is_last);
  absl::Status WriteAll(absl::string_view data);

  const std::string path_;
  const int file_;
  const std::unique_ptr<Cipher> cipher_;
  std::string chunk_;  // plain, not yet written
  bool is_finished_ = false;
  std::vector<ArchivedFile> files_;
};

// Writes the files of an archive to `folder`, which exists; a name may have one folder, which is
// created. INVALID_ARGUMENT: it is no archive, is of a later version, was changed or cut, or has
// another key: files may have been written then, and must not be used. The errors of
// state::OpenRegularFile. UNAVAILABLE: it cannot be read, or a file not written. `is_name` decides
// which names are allowed.
absl::StatusOr<std::vector<ArchivedFile>> Extract(const std::string& path, absl::string_view key,
                                                  const std::string& folder,
                                                  bool (*is_name)(absl::string_view name));

}  // namespace kiln::backup

#endif  // KILN_SERVER_BACKUP_ARCHIVE_H_
