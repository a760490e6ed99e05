// Uploads under way, so that idle ones can be ended.
#ifndef KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_
#define KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_

#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/check/check.h"

namespace kiln::rpc {

// Thread-safe.
class OpenUploads {
 public:
  class Upload {
   public:
    virtual ~Upload() = default;
    // Ends it if nothing has arrived since `since`. Called without locks, by any thread.
    virtual void EndIfIdle(absl::Time since) = 0;
  };

  // Requires: the upload was not added before.
  void Add(const std::shared_ptr<Upload>& upload) ABSL_LOCKS_EXCLUDED(mutex_) {
    KILN_CHECK(upload != nullptr);
    absl::MutexLock lock(&mutex_);
    uploads_.push_back(upload);
    KILN_VALIDATE(*this, uploads_.size());
  }
  // Ends uploads from which nothing has arrived since `since`.
  void EndIdle(absl::Time since) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Upload>> open;
    {
      absl::MutexLock lock(&mutex_);
      std::erase_if(uploads_, [](const auto& upload) { return upload.expired(); });
      for (const auto& upload : uploads_)
        if (auto kept = upload.lock()) open.push_back(std::move(kept));
      KILN_VALIDATE(*this, uploads_.size());
    }
    for (const auto& upload : open) upload->EndIfIdle(since);
  }
  // No upload is there twice.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    // Weak pointers are not locked: the last pointer must not end with the lock held.
    std::set<std::weak_ptr<Upload>, std::owner_less<>> seen;
    for (const auto& upload : uploads_) {
      const bool is_new = seen.insert(upload).second;
      KILN_CHECK(is_new) << "an upload was added twice";
    }
  }

 private:
  absl::Mutex mutex_;
  // At most the users' uploads under way, and those that have ended since the last call of EndIdle.
  std::vector<std::weak_ptr<Upload>> uploads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_
