#include "clients/cpp/pieces.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/digest/sha256.h"

namespace kiln::client {
namespace {

// The daemon is asked at once which of so many pieces it has.
constexpr size_t kAskedTogether = 16;
// Pieces on their way at the same time: over a link of 50 ms each way, one alone would have it
// wait.
constexpr size_t kSenders = 4;

}  // namespace

absl::StatusOr<std::vector<std::string>> PieceUpload::Send(absl::Span<const char> data) {
  const size_t pieces = (data.size() + kPieceBytes - 1) / kPieceBytes;
  std::vector<std::thread> senders;
  for (size_t i = 0; i < std::min(kSenders, pieces); ++i)
    senders.emplace_back([this] { SendSome(); });
  std::vector<std::string> names;
  absl::Status status;
  // A few first, so that sending begins early.
  size_t together = kSenders;
  while (names.size() < pieces && status.ok()) {
    std::vector<Piece> next;
    for (; next.size() < together && names.size() < pieces; names.push_back(next.back().name)) {
      const auto piece = data.subspan(names.size() * kPieceBytes, kPieceBytes);
      next.push_back({absl::StrCat("sha256:", Sha256Hex({piece.data(), piece.size()})), piece});
    }
    status = Offer(std::move(next));
    together = kAskedTogether;
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

absl::Status PieceUpload::Offer(std::vector<Piece> pieces) {
  std::vector<Piece> fresh;
  for (Piece& piece : pieces)
    if (offered_.insert(piece.name).second) fresh.push_back(std::move(piece));
  if (fresh.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const Piece& piece : fresh) names.push_back(piece.name);
  absl::StatusOr<std::set<std::string>> found;
  const absl::Status asked = stream_.ThroughCuts([&] {
    found = blobs_.Find(names, stream_.last_sequence());
    return found.status();
  });
  if (!asked.ok()) return asked;
  for (Piece& piece : fresh) {
    if (found->contains(piece.name)) continue;
    absl::MutexLock lock(&mutex_, absl::Condition(this, &PieceUpload::HasRoom));
    if (!failure_.ok()) return failure_;
    to_send_.push_back(std::move(piece));
  }
  return absl::OkStatus();
}

bool PieceUpload::HasRoom() const { return to_send_.size() < kAskedTogether || !failure_.ok(); }

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
