// A file that only this user's daemons can have written: a description, then bytes, each behind a
// keyed hash.
//
//   "kilnkeep"  8 bytes
//   version     4 bytes, little-endian as all numbers
//   0           4 bytes
//   size        8 bytes, of the description
//   description
//   tag         32 bytes: HMAC-SHA256 of all that came before
//   bytes
//   tag         32 bytes: HMAC-SHA256 of the first tag and the bytes
#ifndef KILN_SERVER_SESSIONS_SEALED_FILE_H_
#define KILN_SERVER_SESSIONS_SEALED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cache/secret.h"
#include "server/sessions/image.h"

namespace kiln::sessions {

// What a file takes beside its description and its bytes.
inline constexpr int64_t kSealBytes = 24 + 2 * int64_t{cache::Authenticator::kTagBytes};

// Writes `path`, which is there, whole and on the disk, once Commit has returned OK; until then its
// bytes are under another name, and without Commit they go. For one thread at a time.
class SealedWriter : public ByteSink {
 public:
  // `data_bytes` are going to be written. UNAVAILABLE: the file cannot be made, as when the disk is
  // full; it has room for all of them from here on.
  static absl::StatusOr<std::unique_ptr<SealedWriter>> Open(const std::string& path,
                                                            const cache::Secret& secret,
                                                            uint32_t version,
                                                            absl::string_view description,
                                                            int64_t data_bytes);
  ~SealedWriter() override;

  absl::Status Write(absl::string_view bytes) override;
  absl::Status Commit();
  // What Commit does for files that need not outlive the machine, in two steps: the end is written,
  // then the file is there. The second takes no time.
  absl::Status Seal();
  absl::Status Place();

 private:
  SealedWriter(std::string path, const cache::Secret& secret, int file);
  absl::Status WriteAll(absl::string_view bytes);
  absl::Status WriteHead(uint32_t version, absl::string_view description);

  const std::string path_;
  const std::string draft_;
  const cache::Secret& secret_;
  int file_;
  bool is_sealed_ = false;
  std::unique_ptr<cache::Authenticator> authenticator_;
};

// For one thread at a time.
class SealedReader : public ByteSource {
 public:
  // The description is what was written. DATA_LOSS: the file is damaged, cut or not ours.
  // UNIMPLEMENTED: it is of a version above `newest`. UNAVAILABLE: it cannot be read.
  static absl::StatusOr<std::unique_ptr<SealedReader>> Open(const std::string& path,
                                                            const cache::Secret& secret,
                                                            uint32_t newest);
  ~SealedReader() override;

  const std::string& description() const { return description_; }
  uint32_t version() const { return version_; }
  // How many bytes follow it.
  int64_t data_bytes() const { return data_bytes_; }
  // DATA_LOSS if there are not so many.
  absl::Status Read(absl::Span<char> bytes) override;
  // All have been read, and are what was written; DATA_LOSS if not.
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

// What is in the folder under that name is removed for good: it does not come back after a crash.
absl::Status RemoveForGood(const std::string& path);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SEALED_FILE_H_
