#include "clients/cpp/pieces.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/digest/sha256.h"

namespace kiln::client {
namespace {

// The most pieces that may wait between the thread that names them and the sending threads.
constexpr size_t kWaitingMax = 16;
// The number of names in one question to the daemon. A sum takes a tenth of a digest's time.
constexpr size_t kSumsAtOnce = 64;
constexpr size_t kDigestsAtOnce = 16;
// Pieces that are sent at the same time: with a latency of 50 ms each way, a single one would leave
// the link idle.
constexpr size_t kSenders = 4;

constexpr absl::string_view kDigest = "sha256:";

std::string DigestName(absl::Span<const char> data) {
  return absl::StrCat(kDigest, Sha256Hex({data.data(), data.size()}));
}

}  // namespace

std::string SumName(absl::Span<const char> data) {
  uint64_t sum = 0;
  for (size_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;  // little-endian, as are all hosts that Kiln runs on
    std::memcpy(&word, data.data() + at, std::min(sizeof(word), data.size() - at));
    sum += word;
  }
  return absl::StrCat("sum64:", absl::Hex(sum, absl::kZeroPad16));
}

absl::StatusOr<std::vector<std::string>> PieceUpload::Send(absl::Span<const char> data) {
  Spans pieces;
  for (size_t at = 0; at < data.size(); at += kPieceBytes)
    pieces.push_back(data.subspan(at, kPieceBytes));
  std::vector<std::thread> senders;
  for (size_t i = 0; i < std::min(kSenders, pieces.size()); ++i)
    senders.emplace_back([this] { SendSome(); });
  std::vector<std::string> names;
  absl::Status status;
  // Names a few first, then twice as many each time, so that sending begins early and does not
  // stop.
  size_t together = kSenders;
  while (names.size() < pieces.size() && status.ok()) {
    const auto next = absl::MakeConstSpan(pieces).subspan(names.size(), together);
    const auto named = Names(next);
    status = named.ok() ? Offer(*named, next) : named.status();
    if (named.ok()) names.insert(names.end(), named->begin(), named->end());
    together = std::min(2 * together, knows_sums_ ? kSumsAtOnce : kDigestsAtOnce);
  }
  {
    absl::MutexLock lock(&mutex_);
    failure_.Update(status);
    complete_ = true;
  }
  for (std::thread& sender : senders) sender.join();
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  return names;
}

absl::StatusOr<std::vector<std::string>> PieceUpload::Names(
    absl::Span<const absl::Span<const char>> pieces) {
  std::vector<std::string> sums;
  std::vector<std::string> asked;
  for (const auto piece : pieces) {
    if (!knows_sums_) break;
    sums.push_back(SumName(piece));
    if (sums_.try_emplace(sums.back()).second) asked.push_back(sums.back());
  }
  if (!asked.empty()) {
    const auto found = Find(asked);
    if (!found.ok()) return found.status();
    knows_sums_ = found->knows_sums;
    for (const std::string& sum : found->names) sums_[sum].may_be_there = true;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < pieces.size(); ++i)
    names.push_back(knows_sums_ ? Name(sums[i], pieces[i]) : DigestName(pieces[i]));
  return names;
}

std::string PieceUpload::Name(const std::string& sum, absl::Span<const char> data) {
  Sum& known = sums_[sum];
  if (known.last.data != data) {
    const std::string unique =
        known.may_be_there ? DigestName(data) : absl::StrCat(prefix_, "-", ++named_);
    known.last = {absl::StrCat(sum, ":", unique), data};
  }
  return known.last.name;
}

absl::StatusOr<Blobs::Found> PieceUpload::Find(const std::vector<std::string>& names) {
  absl::StatusOr<Blobs::Found> found;
  const absl::Status asked = stream_.ThroughCuts([&] {
    found = blobs_.Find(names, stream_.last_sequence());
    return found.status();
  });
  if (!asked.ok()) return asked;
  return found;
}

absl::Status PieceUpload::Offer(const std::vector<std::string>& names,
                                absl::Span<const absl::Span<const char>> pieces) {
  std::vector<Piece> fresh;
  std::vector<std::string> asked;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!offered_.insert(names[i]).second) continue;
    fresh.push_back({names[i], pieces[i]});
    if (absl::StrContains(names[i], kDigest)) asked.push_back(names[i]);
  }
  std::set<std::string> there;
  if (!asked.empty()) {
    auto found = Find(asked);
    if (!found.ok()) return found.status();
    there = std::move(found->names);
  }
  for (Piece& piece : fresh) {
    if (there.contains(piece.name)) continue;
    absl::MutexLock lock(&mutex_, absl::Condition(this, &PieceUpload::HasRoom));
    if (!failure_.ok()) return failure_;
    to_send_.push_back(std::move(piece));
  }
  return absl::OkStatus();
}

bool PieceUpload::HasRoom() const { return to_send_.size() < kWaitingMax || !failure_.ok(); }

bool PieceUpload::HasWork() const { return !to_send_.empty() || complete_ || !failure_.ok(); }

void PieceUpload::SendSome() {
  while (true) {
    Piece piece;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(this, &PieceUpload::HasWork));
      if (to_send_.empty() || !failure_.ok()) return;
      piece = std::move(to_send_.front());
      to_send_.pop_front();
    }
    const absl::Status sent =
        stream_.ThroughCuts([&] { return blobs_.Upload(piece.name, piece.data); });
    absl::MutexLock lock(&mutex_);
    failure_.Update(sent);
  }
}

}  // namespace kiln::client
