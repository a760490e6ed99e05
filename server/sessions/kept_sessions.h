// The folder of sessions that a daemon has kept for the next one: a file each.
#ifndef KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_
#define KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cache/secret.h"
#include "server/sessions/image.h"
#include "server/sessions/sealed_file.h"

namespace kiln::sessions {

// Read and Remove are thread-safe; the rest is for one thread at a time.
class KeptSessions {
 public:
  struct Options {
    std::string folder;       // made, with those above it, if it is not there; of this user alone
    int64_t limit_bytes = 0;  // of all files
    // Of a user's files; 0, or no function: no other limit.
    std::function<int64_t(const std::string& user)> user_limit_bytes{};
  };
  struct Kept {
    std::string path;
    SessionImage image;  // without the bytes
  };

  // Holds the folder until it is destroyed. FAILED_PRECONDITION: another daemon holds it, or others
  // can reach it. UNAVAILABLE: it cannot be made.
  static absl::StatusOr<std::unique_ptr<KeptSessions>> Open(Options options);
  ~KeptSessions();

  // What is there. What cannot be read is removed, but for what a newer daemon has written; the log
  // has a line for each.
  std::vector<Kept> List();
  // The bytes of one. The errors of SealedReader.
  absl::StatusOr<std::unique_ptr<SealedReader>> Read(const Kept& kept) const;
  // It does not come back, whatever happens.
  absl::Status Remove(const Kept& kept) { return RemoveForGood(kept.path); }

  // On the disk for good, or an error: RESOURCE_EXHAUSTED if the files, or the user's, would take
  // more than they may; DEADLINE_EXCEEDED if a device hangs.
  absl::Status Save(const SessionImage& image, Patience& patience);
  // What a user's files take. Thread-safe.
  int64_t BytesOf(const std::string& user) const;

 private:
  KeptSessions(Options options, cache::Secret secret, int lock)
      : options_(std::move(options)), secret_(std::move(secret)), lock_(lock) {}
  // Of the files whose names begin so; a file of the name `except` does not count.
  int64_t BytesOnDisk(const std::string& prefix, const std::string& except) const;
  absl::Status CheckRoom(const SessionImage& image, const std::string& name, int64_t bytes) const;

  const Options options_;
  const cache::Secret secret_;
  const int lock_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_
