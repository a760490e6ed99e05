// A file that only this user's daemons can have written: a description, then bytes, each followed
// by a keyed hash (MAC). docs/formats/session-checkpoint.md specifies it.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_SEALED_FILE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_SEALED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cache/secret.h"
#include "server/sessions/checkpoint/checkpoint.h"

namespace kiln::sessions {

// The bytes that a file takes in addition to its description and data.
inline constexpr int64_t kSealBytes = 24 + 2 * int64_t{cache::Authenticator::kTagBytes};

// Writes `path`, which exists complete and flushed to the disk once Commit has returned OK. Until
// then the bytes are in a file with another name, which the destructor removes. Not thread-safe.
class SealedWriter : public ByteSink {
 public:
  // Reserves disk space for the description and `data_bytes` bytes that the caller will write.
  // UNAVAILABLE: the file cannot be created, for example because the disk is full.
  static absl::StatusOr<std::unique_ptr<SealedWriter>> Open(const std::string& path,
                                                            const cache::Secret& secret,
                                                            uint32_t version,
                                                            absl::string_view description,
                                                            int64_t data_bytes);
  ~SealedWriter() override;

  // Requires: Seal was not called.
  absl::Status Write(absl::string_view bytes) override;
  // Called once.
  absl::Status Commit();
  // The two steps of Commit, without flushing, for files that need not survive a reboot: Seal
  // writes the end, Install renames the file to `path`. Install takes no noticeable time, and is
  // called once.
  absl::Status Seal();
  absl::Status Install();

 private:
  SealedWriter(std::string path, const cache::Secret& secret, int file);
  absl::Status WriteAll(absl::string_view bytes);
  // Writes bytes that the hash covers.
  absl::Status Add(absl::string_view bytes);
  absl::Status WriteHead(uint32_t version, absl::string_view description);

  const std::string path_;
  const std::string draft_;
  const cache::Secret& secret_;
  int file_;
  bool is_sealed_ = false;
  int64_t left_ = 0;  // bytes that the caller will still write
  std::unique_ptr<cache::Authenticator> authenticator_;
};

// Not thread-safe.
class SealedReader : public ByteSource {
 public:
  // Opens a file and verifies its description. DATA_LOSS: the file is damaged, truncated or not
  // written by this user's daemons. UNIMPLEMENTED: its version is above `newest`. UNAVAILABLE: it
  // cannot be read.
  static absl::StatusOr<std::unique_ptr<SealedReader>> Open(const std::string& path,
                                                            const cache::Secret& secret,
                                                            uint32_t newest);
  ~SealedReader() override;

  const std::string& description() const { return description_; }
  uint32_t version() const { return version_; }
  // The number of bytes that follow the description.
  int64_t data_bytes() const { return data_bytes_; }
  // DATA_LOSS if fewer bytes are left.
  absl::Status Read(absl::Span<char> bytes) override;
  // DATA_LOSS unless all bytes have been read and match their hash. Before Finish the bytes are not
  // verified.
  absl::Status Finish();

 private:
  SealedReader(std::string path, const cache::Secret& secret, int file);
  absl::Status ReadAll(absl::Span<char> bytes);
  absl::Status ReadHead(uint32_t newest);
  absl::Status Damaged(absl::string_view how) const;

  const std::string path_;
  const cache::Secret& secret_;
  const int file_;
  std::string description_;
  uint32_t version_ = 0;
  int64_t data_bytes_ = 0;
  int64_t left_ = 0;
  std::unique_ptr<cache::Authenticator> authenticator_;
};

// Removes the file durably: it does not come back after a crash.
absl::Status RemoveForGood(const std::string& path);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_SEALED_FILE_H_
