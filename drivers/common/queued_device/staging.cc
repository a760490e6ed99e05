#include "drivers/common/queued_device/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

}  // namespace

absl::Status Staging::Place() {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < kPieces; ++i) {
    const auto memory = owner_->AllocateHostMemory(kPieceBytes);
    if (!memory.ok()) return memory.status();
    KILN_CHECK(pieces_[i].memory == nullptr) << "piece " << i << " is placed twice";
    pieces_[i] = {.number = i, .memory = *memory};
  }
  return absl::OkStatus();
}

Staging::~Staging() {
  absl::MutexLock lock(&mutex_);
  for (const Piece& piece : pieces_) {
    if (piece.memory != nullptr) owner_->ReleaseHostMemory(piece.memory);
  }
}

void Staging::Validate() const {
  for (size_t i = 0; i < kPieces; ++i) {
    KILN_CHECK_EQ(pieces_[i].number, i);
    KILN_CHECK(pieces_[i].memory != nullptr) << "piece " << i;
    KILN_CHECK(!pieces_[i].in_flight) << "piece " << i;
    for (size_t before = 0; before < i; ++before)
      KILN_CHECK(pieces_[before].memory != pieces_[i].memory) << "pieces " << before << ", " << i;
  }
}

absl::Status Staging::StartPiece(Piece& piece, Direction direction, char* to, const char* from,
                                 size_t bytes) {
  KILN_CHECK(!piece.in_flight) << "piece " << piece.number;
  KILN_CHECK(bytes > 0 && bytes <= kPieceBytes) << bytes;
  absl::Status status = Start(piece.number, direction, to, from, bytes);
  piece.in_flight = status.ok();
  return status;
}

absl::Status Staging::AwaitPiece(Piece& piece) {
  return std::exchange(piece.in_flight, false) ? Await(piece.number) : absl::OkStatus();
}

absl::Status Staging::End(absl::Status status) {
  for (Piece& piece : pieces_) {
    const absl::Status ended = AwaitPiece(piece);
    if (status.ok()) status = ended;
  }
  KILN_VALIDATE(*this, kPieces);
  return status;
}

absl::Status Staging::ToDevice(char* to, absl::Span<const char> from) {
  absl::MutexLock lock(&mutex_);
  absl::Status status;
  for (size_t begin = 0, i = 0; begin < from.size() && status.ok(); begin += kPieceBytes, ++i) {
    Piece& piece = pieces_[i % kPieces];
    const size_t size = std::min(kPieceBytes, from.size() - begin);
    status = AwaitPiece(piece);
    if (!status.ok()) break;
    std::memcpy(piece.memory, from.data() + begin, size);
    status = StartPiece(piece, Direction::kToDevice, to + begin, piece.memory, size);
  }
  return End(std::move(status));
}

absl::Status Staging::ToHost(absl::Span<char> to, const char* from) {
  absl::MutexLock lock(&mutex_);
  absl::Status status;
  const size_t count = (to.size() + kPieceBytes - 1) / kPieceBytes;
  const auto size_of = [&](size_t i) { return std::min(kPieceBytes, to.size() - i * kPieceBytes); };
  // Piece i is fetched while piece i - 1 is copied out.
  for (size_t i = 0; i <= count && status.ok(); ++i) {
    if (i < count) {
      Piece& piece = pieces_[i % kPieces];
      status =
          StartPiece(piece, Direction::kToHost, piece.memory, from + i * kPieceBytes, size_of(i));
    }
    if (i == 0 || !status.ok()) continue;
    Piece& before = pieces_[(i - 1) % kPieces];
    status = AwaitPiece(before);
    if (status.ok()) std::memcpy(to.data() + (i - 1) * kPieceBytes, before.memory, size_of(i - 1));
  }
  return End(std::move(status));
}

}  // namespace kiln::drivers
