#include "server/buffers/whole.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"

namespace kiln::buffers {
namespace {

// The contiguous runs of a part. All have the same length and the same order in the whole and in
// the part's memory.
class Runs {
 public:
  Runs(const std::vector<int64_t>& shape, int64_t element_bytes, const Part& part)
      : shape_(shape), part_(part), element_bytes_(element_bytes), bytes_(element_bytes) {
    outer_ = shape.size();
    while (outer_ > 0) {
      --outer_;
      bytes_ *= part.shape[outer_];
      if (part.shape[outer_] != shape[outer_] || part.memory[outer_] != shape[outer_]) break;
    }
    if (bytes_ == 0) return;
    count_ = 1;
    for (size_t dim = 0; dim < outer_; ++dim) count_ *= part.shape[dim];
  }

  int64_t bytes() const { return bytes_; }
  int64_t count() const { return count_; }
  // Offset of a run in the whole.
  int64_t Begin(int64_t number) const { return At(number, shape_, part_.begin.data()); }
  // Offset of a run in the part's memory.
  int64_t BeginInPart(int64_t number) const { return At(number, part_.memory, nullptr); }
  // The first run that ends after this byte of the whole; count() if none does.
  int64_t FirstBehind(int64_t byte) const {
    int64_t low = 0;
    int64_t high = count_;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (Begin(middle) + bytes_ > byte) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  int64_t At(int64_t number, const std::vector<int64_t>& sizes, const int64_t* begin) const {
    int64_t at = 0;
    int64_t stride = 1;
    for (size_t dim = sizes.size(); dim-- > 0; stride *= sizes[dim]) {
      int64_t index = begin == nullptr ? 0 : begin[dim];
      if (dim < outer_) {
        index += number % part_.shape[dim];
        number /= part_.shape[dim];
      }
      at += index * stride;
    }
    return at * element_bytes_;
  }

  const std::vector<int64_t>& shape_;
  const Part& part_;
  const int64_t element_bytes_;
  size_t outer_ = 0;  // dimensions before this one index the runs
  int64_t bytes_;
  int64_t count_ = 0;
};

// Joins several copies. When all have ended, calls `done` with the error of the lowest number, if
// any.
class Joined {
 public:
  Joined(size_t copies, Pool::Done done)
      : left_(copies), statuses_(copies), done_(std::move(done)) {}

  void Ended(size_t copy, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status first;
    {
      absl::MutexLock lock(&mutex_);
      KILN_CHECK_LT(copy, statuses_.size());
      KILN_CHECK_GT(left_, 0) << "a copy ended twice";
      statuses_[copy] = status;
      if (--left_ > 0) return;
      for (const absl::Status& each : statuses_) first.Update(each);
    }
    done_(first);
  }

 private:
  absl::Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> statuses_ ABSL_GUARDED_BY(mutex_);
  const Pool::Done done_;
};

// A part's share of a byte range of the whole: one range of the part's memory. Its runs are not
// stored, since with one-byte elements they would take many times as much memory as the bytes.
struct Piece {
  size_t place = 0;
  Part part;
  int64_t begin = 0;  // in the part
  int64_t bytes = 0;  // including the padding between runs
  int64_t first = 0;  // offset of the first run in the byte range
  int64_t runs = 0;
};

std::vector<Piece> PiecesOf(const Value& value, const std::vector<size_t>& places, int64_t begin,
                            int64_t end) {
  const TensorType& type = *value.type();
  std::vector<Piece> pieces;
  for (const size_t place : places) {
    Piece piece;
    piece.place = place;
    piece.part = PartOf(*value.placement(), type.shape, static_cast<int64_t>(place));
    ForEachRunWithin(type.shape, ir::SizeOf(type.dtype), piece.part, begin, end,
                     [&](int64_t whole, int64_t at, int64_t bytes) {
                       if (piece.runs++ == 0) {
                         piece.begin = at;
                         piece.first = whole - begin;
                       }
                       piece.bytes = at + bytes - piece.begin;
                     });
    KILN_CHECK_LE(piece.bytes, end - begin);
    if (piece.runs > 0) pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Calls `run` for each run of a piece, with its offsets in the byte range and in the piece.
void ForEachRunOf(const Piece& piece, const TensorType& type, int64_t begin, int64_t end,
                  const std::function<void(size_t whole, size_t at, size_t bytes)>& run) {
  ForEachRunWithin(type.shape, ir::SizeOf(type.dtype), piece.part, begin, end,
                   [&](int64_t whole, int64_t at, int64_t bytes) {
                     run(static_cast<size_t>(whole - begin), static_cast<size_t>(at - piece.begin),
                         static_cast<size_t>(bytes));
                   });
}

std::vector<size_t> AllPlaces(const Value& value) {
  std::vector<size_t> places(value.parts().size());
  for (size_t place = 0; place < places.size(); ++place) places[place] = place;
  return places;
}

}  // namespace

void ForEachRunWithin(const std::vector<int64_t>& shape, int64_t element_bytes, const Part& part,
                      int64_t begin, int64_t end,
                      const std::function<void(int64_t whole, int64_t part, int64_t bytes)>& run) {
  const Runs runs(shape, element_bytes, part);
  for (int64_t number = runs.FirstBehind(begin); number < runs.count(); ++number) {
    const int64_t at = runs.Begin(number);
    if (at >= end) return;
    const int64_t first = std::max(begin - at, int64_t{0});
    const int64_t last = std::min(end - at, runs.bytes());
    KILN_DCHECK_LE(first, last);
    run(at + first, runs.BeginInPart(number) + first, last - first);
  }
}

std::vector<size_t> DifferentParts(const Placement& placement, const std::vector<int64_t>& shape) {
  std::vector<size_t> places;
  std::vector<std::vector<int64_t>> seen;
  for (size_t place = 0; place < placement.devices.size(); ++place) {
    std::vector<int64_t> begin = PartOf(placement, shape, static_cast<int64_t>(place)).begin;
    if (std::find(seen.begin(), seen.end(), begin) != seen.end()) continue;
    seen.push_back(std::move(begin));
    places.push_back(place);
  }
  return places;
}

absl::StatusOr<std::shared_ptr<Value>> AllocateParts(
    std::shared_ptr<const TensorType> type, std::shared_ptr<const Placement> placement,
    const std::function<absl::StatusOr<std::shared_ptr<Value>>(
        size_t place, std::shared_ptr<const TensorType> part)>& allocate) {
  KILN_CHECK_EQ(placement->devices.size(), graph::NumDevices(placement->mesh));
  const auto part_type = std::make_shared<const TensorType>(
      TensorType{type->dtype, PartOf(*placement, type->shape, 0).memory});
  std::vector<std::shared_ptr<Value>> parts;
  for (size_t place = 0; place < placement->devices.size(); ++place) {
    auto part = allocate(place, part_type);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return Value::Sharded(std::move(type), std::move(placement), std::move(parts));
}

void FillWhole(Value& value, int64_t offset, absl::string_view bytes, Pool::Done done) {
  if (value.placement() == nullptr)
    return value.pool()->FillPart(value, offset, bytes, std::move(done));
  const auto end = offset + static_cast<int64_t>(bytes.size());
  const std::vector<Piece> pieces = PiecesOf(value, AllPlaces(value), offset, end);
  if (pieces.empty()) return done(absl::OkStatus());
  const auto joined = std::make_shared<Joined>(pieces.size(), std::move(done));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    Value& part = *value.parts()[piece.place];
    if (piece.runs == 1) {
      part.pool()->FillPart(
          part, piece.begin,
          bytes.substr(static_cast<size_t>(piece.first), static_cast<size_t>(piece.bytes)),
          [joined, i](const absl::Status& status) { joined->Ended(i, status); });
      continue;
    }
    const auto together = std::make_shared<std::string>(static_cast<size_t>(piece.bytes), '\0');
    ForEachRunOf(piece, *value.type(), offset, end, [&](size_t whole, size_t at, size_t size) {
      std::memcpy(together->data() + at, bytes.data() + whole, size);
    });
    part.pool()->FillPart(
        part, piece.begin, *together,
        [joined, i, together](const absl::Status& status) { joined->Ended(i, status); });
  }
}

void ReadWhole(const Value& value, int64_t offset, absl::Span<char> destination, Pool::Done done) {
  if (value.placement() == nullptr)
    return value.pool()->Read(value, offset, destination, std::move(done));
  const auto end = offset + static_cast<int64_t>(destination.size());
  auto pieces = std::make_shared<const std::vector<Piece>>(
      PiecesOf(value, DifferentParts(*value.placement(), value.type()->shape), offset, end));
  if (pieces->empty()) return done(absl::OkStatus());
  const auto joined = std::make_shared<Joined>(pieces->size(), std::move(done));
  for (size_t i = 0; i < pieces->size(); ++i) {
    const Piece& piece = (*pieces)[i];
    const Value& part = *value.parts()[piece.place];
    if (piece.runs == 1) {
      part.pool()->Read(
          part, piece.begin,
          destination.subspan(static_cast<size_t>(piece.first), static_cast<size_t>(piece.bytes)),
          [joined, i](const absl::Status& status) { joined->Ended(i, status); });
      continue;
    }
    const auto together = std::make_shared<std::string>();
    together->resize(static_cast<size_t>(piece.bytes));
    part.pool()->Read(part, piece.begin, absl::MakeSpan(*together),
                      [joined, i, together, pieces, destination, type = value.type(), offset,
                       end](const absl::Status& status) {
                        const auto take = [&](size_t whole, size_t at, size_t bytes) {
                          std::memcpy(destination.data() + whole, together->data() + at, bytes);
                        };
                        if (status.ok()) ForEachRunOf((*pieces)[i], *type, offset, end, take);
                        joined->Ended(i, status);
                      });
  }
}

bool IsAllHostMemory(const Value& value) {
  if (value.placement() == nullptr) return Pool::IsHostMemory(value);
  return std::all_of(value.parts().begin(), value.parts().end(),
                     [](const auto& part) { return Pool::IsHostMemory(*part); });
}

}  // namespace kiln::buffers
