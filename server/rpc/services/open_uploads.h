// Uploads under way, so that idle ones can be ended.
#ifndef KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_
#define KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

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

  void Add(const std::shared_ptr<Upload>& upload) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    uploads_.push_back(upload);
  }
  // Ends uploads from which nothing has arrived since `since`.
  void EndIdle(absl::Time since) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Upload>> open;
    {
      absl::MutexLock lock(&mutex_);
      std::erase_if(uploads_, [](const auto& upload) { return upload.expired(); });
      for (const auto& upload : uploads_)
        if (auto kept = upload.lock()) open.push_back(std::move(kept));
    }
    for (const auto& upload : open) upload->EndIfIdle(since);
  }

 private:
  absl::Mutex mutex_;
  // At most the users' uploads under way, and those that have ended since the last call of EndIdle.
  std::vector<std::weak_ptr<Upload>> uploads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_OPEN_UPLOADS_H_
