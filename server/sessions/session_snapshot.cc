// Taking images of a running session.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// An image is taken early once the journal is larger than this and than the image.
constexpr int64_t kLongJournal = 256 << 20;
// The time from the first of a run's results to its answer, or until the bytes of a Write are on
// the device.
constexpr absl::Duration kUntilSettled = absl::Seconds(5);
// The time until the next attempt if an image could not be begun, and the minimum between images.
constexpr absl::Duration kSoon = absl::Seconds(1);
// After this number of images failed in a row, the journal and the image are dropped, which bounds
// the number of files.
constexpr uint64_t kSegmentsMax = 256;

}  // namespace

bool Session::IsProtected() const {
  absl::MutexLock lock(&mutex_);
  return protection_.has_image;
}

bool Session::ImageIsDue() const {
  if (!wants_protection() || services_.kept == nullptr) return false;
  absl::MutexLock lock(&mutex_);
  if (closed_ || resumption_ || replaying_) return false;
  if (services_.clock.steady() >= protection_.due) return true;
  return services_.clock.steady() >= protection_.begun + kSoon && protection_.has_image &&
         protection_.journal->bytes_since(protection_.image_number) >
             std::max(kLongJournal, protection_.image_bytes);
}

absl::Status Session::TakeProtectionLoss() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(protection_.lost, absl::OkStatus());
}

absl::StatusOr<Session::Draft> Session::BeginImage() {
  const uint64_t executed = executor_.Pause();
  const auto go_on = absl::MakeCleanup([this] {
    executor_.Unpause();
    ExecuteQueued();
  });
  absl::MutexLock lock(&mutex_);
  if (closed_) return *closed_;
  if (resumption_ || replaying_) return absl::UnavailableError("the session is being restored");
  protection_.begun = services_.clock.steady();
  protection_.due = services_.clock.steady() + std::min(kSoon, identity_.snapshot_interval);
  const auto is_settled = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_.has_value() || IsSettled(executed);
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_settled), kUntilSettled);
  if (closed_) return *closed_;
  auto image = MakeImage(executed);
  if (!image.ok()) return image.status();
  Describe(&*image);
  protection_.due = services_.clock.steady() + identity_.snapshot_interval;
  if (protection_.journal &&
      protection_.journal->number() >= protection_.image_number + kSegmentsMax)
    LoseProtection(absl::AbortedError("too many checkpoints of it have failed"));
  if (!protection_.journal) {
    protection_.journal =
        services_.kept->NewJournal(identity_, user_->name, protection_.last_number, "");
  }
  // Operations executed from here on are not in the image.
  if (absl::Status status = protection_.journal->Begin(detached_ ? detached_->name : "");
      !status.ok()) {
    LoseProtection(status);
    return status;
  }
  protection_.blobs.clear();
  ++protection_.forgotten;
  image->journal = protection_.last_number = protection_.journal->number();
  image->is_live = true;
  return Draft{*std::move(image), protection_.journal};
}

absl::Status Session::TakeImage(Patience& patience) {
  auto begun = BeginImage();
  if (!begun.ok()) return begun.status();
  SessionImage& image = begun->image;
  // Blobs that arrive later are in the journal, too.
  AddBlobs(&image);
  auto writer = services_.kept->Draft(image, patience);
  absl::Status status = writer.status();
  if (status.ok()) status = (*writer)->Seal();
  absl::ReleasableMutexLock lock(&mutex_);
  // If the journal was ended meanwhile, the image is out of date.
  if (closed_ || protection_.journal != begun->journal)
    return absl::CancelledError("the session was closed, or a part of it failed meanwhile");
  if (status.ok()) status = (*writer)->Place();
  if (!status.ok()) {
    // A journal without an image protects nothing.
    if (!protection_.has_image) LoseProtection(status);
    return status;
  }
  protection_.has_image = true;
  protection_.image_number = image.journal;
  protection_.image_bytes = image.data_bytes();
  protection_.image_time = services_.clock.wall();
  lock.Release();
  begun->journal->ForgetBefore(image.journal);
  return absl::OkStatus();
}

void Session::Protect(const SessionImage& image, const JournalReader& journal) {
  absl::MutexLock lock(&mutex_);
  protection_.journal =
      services_.kept->NewJournal(identity_, user_->name, journal.last_number(), journal.last_tag());
  protection_.has_image = true;
  protection_.image_number = image.journal;
  protection_.image_bytes = image.data_bytes();
  protection_.image_time = services_.clock.wall();
  protection_.last_number = journal.last_number() + 1;
  // Takes an image now if there was a journal, so that it need not be replayed once more.
  const bool was_empty = journal.last_number() < image.journal;
  protection_.due =
      was_empty ? services_.clock.steady() + identity_.snapshot_interval : services_.clock.steady();
  const absl::Status begun = protection_.journal->Begin(detached_ ? detached_->name : "");
  if (!begun.ok()) LoseProtection(begun);
}

}  // namespace kiln::sessions
