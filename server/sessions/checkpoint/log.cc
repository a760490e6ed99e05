#include "server/sessions/checkpoint/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "proto/coding/coding.h"
#include "server/sessions/encoding.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {
namespace {

constexpr size_t kSizes = 16;
constexpr size_t kTag = cache::Authenticator::kTagBytes;
// The content of a frame of a larger record.
constexpr size_t kFrameBytesMax = 4 << 20;
// The disk room requested at once.
constexpr int64_t kGrant = 1 << 20;
constexpr size_t kPiecesAtOnceMax = 1024;  // IOV_MAX

absl::Status LogFailed(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno)));
}

std::string FrameSizes(uint64_t size) {
  ByteWriter out;
  out.Fixed64(size);
  out.Fixed64(~size);
  return out.Take();
}

std::string FirstTag() { return std::string(kTag, '\0'); }

// The head of a frame's content: whether it is a whole record or which part of one.
enum class Part : uint64_t { kWhole, kFirst, kMiddle, kLast, kEnd };
std::string FrameHead(Part part, uint64_t large_record) {
  Encoder head;
  head.Number(static_cast<uint64_t>(part));
  if (part != Part::kWhole) head.Number(large_record);
  return head.Take();
}

// Takes up to `bytes_max` bytes of pieces from the front.
std::vector<absl::string_view> TakeBytes(size_t bytes_max, std::deque<absl::string_view>* pieces) {
  std::vector<absl::string_view> taken;
  while (!pieces->empty() && bytes_max > 0) {
    absl::string_view& next = pieces->front();
    taken.push_back(next.substr(0, bytes_max));
    bytes_max -= taken.back().size();
    next.remove_prefix(taken.back().size());
    if (next.empty()) pieces->pop_front();
  }
  return taken;
}

std::string TagOf(const cache::Secret& secret, absl::string_view before, absl::string_view sizes,
                  absl::Span<const absl::string_view> record) {
  const auto authenticator = secret.Authenticate();
  authenticator->Update(before);
  authenticator->Update(sizes);
  for (const absl::string_view piece : record) authenticator->Update(piece);
  return authenticator->Finish();
}

absl::Status WriteAllOf(int file, std::vector<iovec> pieces, const std::string& path) {
  iovec* next = pieces.data();
  size_t left = pieces.size();
  while (left > 0) {
    const ssize_t written = writev(file, next, static_cast<int>(std::min(left, kPiecesAtOnceMax)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return LogFailed("write", path);
    auto rest = static_cast<size_t>(written);
    for (; left > 0 && rest >= next->iov_len; ++next, --left) rest -= next->iov_len;
    if (left == 0) break;
    next->iov_base = static_cast<char*>(next->iov_base) + rest;
    next->iov_len -= rest;
  }
  return absl::OkStatus();
}

}  // namespace

std::string SegmentPath(const std::string& stem, uint64_t number) {
  return absl::StrCat(stem, ".", number, ".journal");
}

SessionLog::SessionLog(LogLocation location, const cache::Secret& secret, Room room,
                       uint64_t last_number, std::string last_tag)
    : location_(std::move(location)),
      secret_(secret),
      room_(std::move(room)),
      number_(last_number),
      tag_(last_tag.empty() ? FirstTag() : std::move(last_tag)) {
  KILN_CHECK(room_ != nullptr);
  KILN_CHECK_EQ(tag_.size(), kTag);
}

SessionLog::~SessionLog() {
  absl::MutexLock lock(&mutex_);
  CloseFile();
}

void SessionLog::CloseFile() {
  if (file_ >= 0) close(std::exchange(file_, -1));
}

absl::Status SessionLog::Begin(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (discarded_) return absl::FailedPreconditionError("the session has no operation log any more");
  const std::string path = SegmentPath(location_.stem, number_ + 1);
  unlink(path.c_str());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return LogFailed("make", path);
  CloseFile();
  file_ = file;
  segments_.push_back({++number_, 0});
  KILN_VALIDATE(*this, segments_.size());
  Encoder header;
  header.Number(kLogVersion);
  header.Text(location_.session);
  header.Number(number_);
  header.Text(location_.boot);
  header.Text(name);
  header.Text(tag_);
  tag_ = FirstTag();
  return Write({header.Take()});
}

absl::Status SessionLog::AppendFrame(absl::string_view head,
                                     absl::Span<const absl::string_view> content) {
  std::vector<absl::string_view> all = {head};
  all.insert(all.end(), content.begin(), content.end());
  absl::MutexLock lock(&mutex_);
  if (discarded_ || file_ < 0)
    return absl::FailedPreconditionError("the session has no operation log any more");
  return Write(all);
}

absl::Status SessionLog::Append(absl::Span<const absl::string_view> record) {
  size_t left = 0;
  for (const absl::string_view piece : record) left += piece.size();
  if (left <= kFrameBytesMax) return AppendFrame(FrameHead(Part::kWhole, 0), record);
  uint64_t number;
  {
    absl::MutexLock lock(&mutex_);
    number = ++large_records_;
  }
  std::deque<absl::string_view> pieces(record.begin(), record.end());
  for (Part part = Part::kFirst; left > 0; part = Part::kMiddle) {
    if (left <= kFrameBytesMax) part = Part::kLast;
    const auto content = TakeBytes(kFrameBytesMax, &pieces);
    if (absl::Status status = AppendFrame(FrameHead(part, number), content); !status.ok())
      return status;
    left -= std::min(left, kFrameBytesMax);
  }
  return absl::OkStatus();
}

absl::Status SessionLog::CheckRoom(int64_t bytes) {
  if (bytes <= granted_) return absl::OkStatus();
  // Only as much as is needed, if kGrant is not available.
  for (const int64_t asked : {std::max(bytes, kGrant), bytes}) {
    const absl::Status status = room_(asked);
    if (status.ok()) granted_ = asked;
    KILN_CHECK(!status.ok() || granted_ >= bytes);
    if (status.ok() || asked == bytes) return status;
  }
  return absl::OkStatus();
}

absl::Status SessionLog::Write(absl::Span<const absl::string_view> content) {
  KILN_CHECK(file_ >= 0 && !segments_.empty());
  size_t size = 0;
  for (const absl::string_view piece : content) size += piece.size();
  const auto bytes = static_cast<int64_t>(kSizes + size + kTag);
  if (absl::Status status = CheckRoom(bytes); !status.ok()) return status;
  const std::string sizes = FrameSizes(size);
  const std::string tag = TagOf(secret_, tag_, sizes, content);
  std::vector<iovec> pieces;
  pieces.reserve(content.size() + 2);
  const auto add = [&](absl::string_view piece) {
    if (!piece.empty()) pieces.push_back({const_cast<char*>(piece.data()), piece.size()});
  };
  add(sizes);
  for (const absl::string_view piece : content) add(piece);
  add(tag);
  const std::string path = SegmentPath(location_.stem, number_);
  if (absl::Status status = WriteAllOf(file_, std::move(pieces), path); !status.ok()) return status;
  granted_ -= bytes;
  segments_.back().bytes += bytes;
  tag_ = tag;
  KILN_VALIDATE(*this, segments_.size());
  return absl::OkStatus();
}

void SessionLog::ForgetBefore(uint64_t number) {
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(number > 0 && number <= number_) << number << " of " << number_;
    std::erase_if(segments_, [&](const Segment& segment) { return segment.number < number; });
    KILN_VALIDATE(*this, segments_.size());
  }
  // Includes segments of the previous daemon. Without the lock: they may be large.
  for (uint64_t old = number - 1; old > 0; --old)
    if (unlink(SegmentPath(location_.stem, old).c_str()) != 0) break;
}

void SessionLog::Discard() {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(discarded_, true)) return;
  CloseFile();
  // The checkpoint first: segments without a checkpoint are ignored, even if this is interrupted.
  unlink(absl::StrCat(location_.stem, ".session").c_str());
  for (uint64_t old = number_; old > 0; --old)
    if (unlink(SegmentPath(location_.stem, old).c_str()) != 0) break;
  segments_.clear();
  KILN_VALIDATE(*this, segments_.size());
}

void SessionLog::Validate() const {
  KILN_CHECK(!discarded_ || (file_ < 0 && segments_.empty()));
  KILN_CHECK_EQ(file_ >= 0, !segments_.empty());
  KILN_CHECK_GE(granted_, 0);
  KILN_CHECK_EQ(tag_.size(), kTag);
  uint64_t expected = number_ + 1 - segments_.size();
  for (const Segment& segment : segments_) {
    KILN_CHECK_EQ(segment.number, expected);
    KILN_CHECK_GE(segment.bytes, 0) << "segment " << segment.number;
    ++expected;
  }
}

uint64_t SessionLog::number() const {
  absl::MutexLock lock(&mutex_);
  return number_;
}

int64_t SessionLog::bytes_since(uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Segment& segment : segments_)
    if (segment.number >= number) bytes += segment.bytes;
  return bytes;
}

SessionLogReader::SessionLogReader(LogLocation location, const cache::Secret& secret,
                                   uint64_t first, std::vector<std::string> paths)
    : location_(std::move(location)),
      secret_(secret),
      paths_(std::move(paths)),
      number_(first - 1) {}

SessionLogReader::~SessionLogReader() {
  if (file_ >= 0) close(file_);
}

absl::Status SessionLogReader::Damaged(absl::string_view how) const {
  KILN_CHECK(next_ > 0 && next_ <= paths_.size());
  return absl::DataLossError(absl::StrCat(paths_[next_ - 1], " ", how));
}

absl::StatusOr<std::optional<std::string>> SessionLogReader::Next() {
  while (true) {
    if (file_ >= 0) {
      auto frame = ReadFrame();
      if (!frame.ok()) return frame;
      if (*frame) {
        auto record = Join(*std::move(*frame));
        if (!record.ok() || *record) return record;
        continue;
      }
      close(std::exchange(file_, -1));
    }
    if (next_ == paths_.size()) return std::nullopt;
    if (absl::Status status = OpenNext(); !status.ok()) return status;
  }
}

absl::StatusOr<std::optional<std::string>> SessionLogReader::Join(std::string frame) {
  Decoder in(frame);
  const auto part = static_cast<Part>(in.Below(static_cast<size_t>(Part::kEnd)));
  const uint64_t number = part == Part::kWhole ? 0 : in.Number();
  if (!in.ok()) return Damaged("has an invalid record");
  const std::string_view content = in.Rest();
  if (part == Part::kWhole) {
    frame.erase(0, frame.size() - content.size());
    return frame;
  }
  if (part == Part::kFirst) parts_[number].clear();
  const auto record = parts_.find(number);
  // The record began in a segment before `first`, so it is in the checkpoint.
  if (record == parts_.end()) return std::nullopt;
  record->second.append(content.data(), content.size());
  if (part != Part::kLast) return std::nullopt;
  return std::move(parts_.extract(record).mapped());
}

absl::Status SessionLogReader::OpenNext() {
  KILN_CHECK(file_ < 0 && next_ < paths_.size());
  const std::string& path = paths_[next_++];
  file_ = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file_ < 0) return LogFailed("read", path);
  struct stat found {};
  if (fstat(file_, &found) != 0) return LogFailed("read", path);
  if (!S_ISREG(found.st_mode) || found.st_uid != geteuid())
    return Damaged("is not a regular file that belongs to this user");
  left_ = static_cast<int64_t>(found.st_size);
  ++number_;
  const std::string before = std::exchange(tag_, FirstTag());
  auto header = ReadFrame();
  if (!header.ok()) return header.status();
  if (!*header) {
    // The daemon was killed while it began this segment: it has no records, and the next segment
    // follows the one before it.
    tag_ = before;
    return absl::OkStatus();
  }
  Decoder in(**header);
  if (const uint64_t version = in.Number(); version > kLogVersion) {
    return absl::UnimplementedError(absl::StrCat(path, " has version ", version,
                                                 " but this daemon knows at most ", kLogVersion,
                                                 "; a newer daemon wrote it"));
  }
  const bool is_ours = in.Text() == location_.session && in.Number() == number_;
  const bool is_of_this_boot = in.Text() == location_.boot;
  in.Text();  // the name
  const std::string_view follows = in.Text();
  if (!in.AtEnd() || !is_ours) return Damaged("belongs to another session");
  if (!is_of_this_boot) {
    return Damaged("was written before the machine was restarted, so its end may be missing");
  }
  if (!before.empty() && before != follows)
    return Damaged("does not continue the previous segment, which is truncated");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> SessionLogReader::ReadFrame() {
  const auto read_all = [&](std::string* bytes) -> absl::Status {
    for (size_t done = 0; done < bytes->size();) {
      const ssize_t got = read(file_, bytes->data() + done, bytes->size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return LogFailed("read", paths_[next_ - 1]);
      if (got == 0) return Damaged("is cut");
      done += static_cast<size_t>(got);
    }
    return absl::OkStatus();
  };
  // The end, or a truncated frame.
  if (left_ < static_cast<int64_t>(kSizes)) return std::nullopt;
  std::string sizes(kSizes, '\0');
  if (absl::Status status = read_all(&sizes); !status.ok()) return status;
  ByteReader head(sizes);
  const uint64_t size = head.Fixed64();
  if (head.Fixed64() != ~size) return Damaged("is damaged");
  left_ -= static_cast<int64_t>(kSizes);
  const auto left = static_cast<uint64_t>(left_);
  if (left < kTag || left - kTag < size) return std::nullopt;
  std::string record(size, '\0'), tag(kTag, '\0');
  if (absl::Status status = read_all(&record); !status.ok()) return status;
  if (absl::Status status = read_all(&tag); !status.ok()) return status;
  left_ -= static_cast<int64_t>(size + kTag);
  KILN_CHECK_GE(left_, 0);
  const absl::string_view piece = record;
  if (!cache::SameTag(TagOf(secret_, tag_, sizes, {piece}), tag))
    return Damaged("is damaged or was written with another key");
  tag_ = tag;
  return record;
}

std::string SessionLogReader::NameIn(const std::string& path, const cache::Secret& secret) {
  SessionLogReader reader({}, secret, 1, {path});
  reader.next_ = 1;
  reader.file_ = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat found {};
  if (reader.file_ < 0 || fstat(reader.file_, &found) != 0) return {};
  reader.left_ = static_cast<int64_t>(found.st_size);
  reader.tag_ = FirstTag();
  const auto header = reader.ReadFrame();
  if (!header.ok() || !*header) return {};
  Decoder in(**header);
  in.Number();
  in.Text();
  in.Number();
  in.Text();
  return std::string(in.Text());
}

}  // namespace kiln::sessions
