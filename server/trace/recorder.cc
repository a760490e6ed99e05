#include "server/trace/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::trace {
namespace {

constexpr char kOther[] = "other";

void CutTexts(Span* span) {
  for (std::string* text :
       {&span->name, &span->user, &span->session, &span->device, &span->program, &span->detail})
    if (text->size() > kTextBytesMax) text->resize(kTextBytesMax);
}

void MoveInto(const Span& whole, Span* part) {
  const absl::Time end = whole.start + whole.duration;
  const absl::Time part_end = std::clamp(part->start + part->duration, whole.start, end);
  part->start = std::clamp(part->start, whole.start, end);
  part->duration = part_end - part->start;
}

int64_t BytesOf(const Span& span) {
  return static_cast<int64_t>(sizeof(Span) + span.name.size() + span.user.size() +
                              span.session.size() + span.device.size() + span.program.size() +
                              span.detail.size());
}

absl::Status TooMany(int traces_max, const std::string& whose) {
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat("there are ", traces_max, " traces", whose,
                                                " already; try again when one of them has ended")),
      "TOO_MANY_TRACES", {{"limit", absl::StrCat(traces_max)}});
}

}  // namespace

// The spans of one trace. Thread-safe.
class Recorder::Spans {
 public:
  Spans(Viewer viewer, absl::Time began) : viewer_(std::move(viewer)), began_(began) {}

  const Viewer& viewer() const { return viewer_; }
  absl::Time began() const { return began_; }

  void Add(const Span& span) ABSL_LOCKS_EXCLUDED(mutex_) {
    // The daemon's own work has no user, and is not anyone's own.
    const bool is_own = viewer_.sees_all || (!span.user.empty() && span.user == viewer_.user);
    if (is_own) return Keep(span);
    if (span.kind != Kind::kRun) return;
    Keep({.kind = Kind::kRun,
          .start = span.start,
          .duration = span.duration,
          .name = kOther,
          .device = span.device});
  }

  Trace::Taken Take(size_t spans_max) ABSL_LOCKS_EXCLUDED(mutex_) {
    Trace::Taken taken;
    absl::MutexLock lock(&mutex_);
    const size_t count = std::min(spans_max, spans_.size());
    taken.spans.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      bytes_ -= BytesOf(spans_.front());
      taken.spans.push_back(std::move(spans_.front()));
      spans_.pop_front();
    }
    // Spans are dropped after the last one that is held.
    if (spans_.empty()) taken.dropped = std::exchange(dropped_, 0);
    KILN_VALIDATE(*this, 1);
    return taken;
  }

 private:
  void Keep(Span span) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const int64_t bytes = BytesOf(span);
    // Nothing follows a gap until it was reported.
    if (dropped_ > 0 || spans_.size() >= kSpansMax || bytes_ + bytes > kSpanBytesMax) {
      ++dropped_;
      return;
    }
    bytes_ += bytes;
    spans_.push_back(std::move(span));
    KILN_VALIDATE(*this, 1);
  }

  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    KILN_CHECK_LE(spans_.size(), kSpansMax);
    KILN_CHECK(bytes_ >= 0 && bytes_ <= kSpanBytesMax) << bytes_;
    KILN_CHECK_EQ(spans_.empty(), bytes_ == 0) << bytes_;
  }

  const Viewer viewer_;
  const absl::Time began_;
  absl::Mutex mutex_;
  std::deque<Span> spans_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Recorder::Reader : public Trace {
 public:
  Reader(Recorder& recorder, std::shared_ptr<Spans> spans)
      : recorder_(recorder), spans_(std::move(spans)) {}
  ~Reader() override { Reader::Stop(); }

  Taken Take(size_t spans_max) override { return spans_->Take(spans_max); }
  void Stop() override {
    if (!std::exchange(is_stopped_, true)) recorder_.End(*spans_);
  }
  absl::Time began() const override { return spans_->began(); }

 private:
  Recorder& recorder_;
  const std::shared_ptr<Spans> spans_;
  bool is_stopped_ = false;
};

Recorder::~Recorder() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(traces_.empty()) << traces_.size() << " traces have not ended";
}

absl::StatusOr<std::unique_ptr<Trace>> Recorder::Begin(Viewer viewer) {
  absl::MutexLock lock(&mutex_);
  // The last one is for those who see all, so that users cannot keep operators out.
  const int traces_max = viewer.sees_all ? kTracesMax : kTracesMax - 1;
  if (static_cast<int>(traces_.size()) >= traces_max) return TooMany(traces_max, "");
  const auto of_user = std::count_if(traces_.begin(), traces_.end(), [&](const auto& spans) {
    return spans->viewer().user == viewer.user;
  });
  if (of_user >= kTracesOfUserMax) return TooMany(kTracesOfUserMax, " of yours");
  traces_.push_back(std::make_shared<Spans>(std::move(viewer), now_()));
  is_on_.store(true, std::memory_order_relaxed);
  KILN_VALIDATE(*this, 1);
  return std::make_unique<Reader>(*this, traces_.back());
}

void Recorder::End(const Spans& ended) {
  absl::MutexLock lock(&mutex_);
  const auto erased =
      std::erase_if(traces_, [&](const auto& spans) { return spans.get() == &ended; });
  KILN_CHECK_EQ(erased, 1);
  is_on_.store(!traces_.empty(), std::memory_order_relaxed);
  if (traces_.empty()) last_ends_.clear();
  KILN_VALIDATE(*this, 1);
}

void Recorder::FollowLastRun(Span* run) {
  absl::Time& last_end = last_ends_.try_emplace(run->device, absl::InfinitePast()).first->second;
  const absl::Time end = std::max(run->start + run->duration, last_end);
  run->start = std::max(run->start, last_end);
  run->duration = end - run->start;
  last_end = end;
}

void Recorder::Add(Span span, std::vector<Span> parts) {
  KILN_CHECK(parts.empty() || span.kind == Kind::kRun);
  CutTexts(&span);
  absl::MutexLock lock(&mutex_);
  // The last trace may just have ended.
  if (traces_.empty()) return;
  if (span.kind == Kind::kRun) FollowLastRun(&span);
  for (const auto& spans : traces_) spans->Add(span);
  for (Span& part : parts) {
    CutTexts(&part);
    MoveInto(span, &part);
    for (const auto& spans : traces_) spans->Add(part);
  }
}

void Recorder::Validate() const {
  KILN_CHECK_LE(traces_.size(), kTracesMax);
  KILN_CHECK_EQ(is_on(), !traces_.empty());
  KILN_CHECK(!traces_.empty() || last_ends_.empty());
}

}  // namespace kiln::trace
