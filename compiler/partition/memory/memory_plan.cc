#include "compiler/partition/memory/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::partition {

namespace {

// Bound on the tensors that are placed by size; smaller ones are placed by time.
constexpr size_t kPlacedBySizeMax = 1024;

// A tensor in the arena: its lifetime in groups, [first, last], and its bytes.
struct Life {
  int tensor = 0;
  int first = 0;
  int last = 0;
  int64_t bytes = 0;
};

int64_t AlignedBytes(const Tensor& tensor, int64_t alignment) {
  const int64_t bytes = ir::BytesOf(tensor.dtype, tensor.shape);
  return (bytes + alignment - 1) / alignment * alignment;
}

std::vector<Life> FindLives(const Partition& partition, int64_t alignment) {
  const int end = static_cast<int>(partition.groups.size());
  std::vector<Life> by_tensor(partition.tensors.size());
  for (size_t i = 0; i < by_tensor.size(); ++i) {
    by_tensor[i] = {static_cast<int>(i), end, -1, AlignedBytes(partition.tensors[i], alignment)};
  }
  auto use = [&](int tensor, int time) {
    by_tensor[tensor].first = std::min(by_tensor[tensor].first, time);
    by_tensor[tensor].last = std::max(by_tensor[tensor].last, time);
  };
  for (int time = 0; time < end; ++time) {
    for (const int tensor : partition.groups[time].writes) use(tensor, time);
    for (const int tensor : partition.groups[time].updates) use(tensor, time);
    for (const int tensor : partition.groups[time].reads) use(tensor, time);
  }
  for (const Copy& copy : partition.copies) use(copy.tensor, end);
  std::vector<Life> lives;
  for (const Life& life : by_tensor) {
    const bool arena = partition.tensors[life.tensor].kind == Tensor::Kind::kIntermediate;
    if (arena && life.last >= 0) lives.push_back(life);
  }
  return lives;
}

// The placed tensors, found by time: those that start within a lifetime, and those alive at its
// start, which are kept in a segment tree.
class Placed {
 public:
  explicit Placed(size_t times) : starting_(times) {
    while (leaves_ < times) leaves_ *= 2;
    living_.resize(2 * leaves_);
  }

  void Add(const Life& life) {
    KILN_CHECK(life.first >= 0 && life.first <= life.last) << "tensor " << life.tensor;
    KILN_CHECK_LT(life.last, starting_.size());
    starting_[life.first].push_back(life);
    // Bottom up: the few nodes whose intervals together are the lifetime.
    size_t low = leaves_ + life.first;
    size_t high = leaves_ + life.last + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) living_[low++].push_back(life);
      if (high % 2 == 1) living_[--high].push_back(life);
    }
  }

  template <typename Visit>
  void ForEachMeeting(const Life& life, Visit visit) const {
    // First the tensors alive at the start of this lifetime, which are in nodes between that time's
    // leaf and the root; then those that start later within it. No tensor is visited twice.
    for (size_t node = leaves_ + life.first; node > 0; node /= 2) {
      for (const Life& other : living_[node]) visit(other);
    }
    for (int time = life.first + 1; time <= life.last; ++time) {
      for (const Life& other : starting_[time]) visit(other);
    }
  }

 private:
  size_t leaves_ = 1;
  std::vector<std::vector<Life>> living_;    // by node; children of n are 2n and 2n + 1
  std::vector<std::vector<Life>> starting_;  // by time
};

// Returns the lowest offset at which `life` fits between the placed tensors.
int64_t FindOffset(const Life& life, const Placed& placed, const std::vector<int64_t>& offsets) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  placed.ForEachMeeting(life, [&](const Life& other) {
    taken.emplace_back(offsets[other.tensor], offsets[other.tensor] + other.bytes);
  });
  std::sort(taken.begin(), taken.end());
  int64_t offset = 0;
  // In order of their begins: takes the first gap that is large enough.
  for (const auto& [begin, end] : taken) {
    if (begin - offset >= life.bytes) break;
    offset = std::max(offset, end);
  }
  return offset;
}

// Adds up the bytes. Returns false if the sum overflows: a user's graph may name tensors that no
// memory holds. No offset is larger than the sum.
bool AddUp(const std::vector<Life>& lives, int64_t* bytes) {
  *bytes = 0;
  for (const Life& life : lives)
    if (life.bytes < 0 || __builtin_add_overflow(*bytes, life.bytes, bytes)) return false;
  return true;
}

// The free bytes from `base` on, managed like an allocator: best fit.
class FreeBytes {
 public:
  explicit FreeBytes(int64_t base) : base_(base), end_(base) {}

  // Checks that both indexes have the same blocks, and that these do not touch and are below the
  // end.
  void Validate() const {
    KILN_CHECK_EQ(by_offset_.size(), by_size_.size());
    KILN_CHECK_GE(end_, base_);
    int64_t free = base_ - 1;  // less than the begin of the first block
    for (const auto& [begin, bytes] : by_offset_) {
      KILN_CHECK(by_size_.contains({bytes, begin})) << bytes << " bytes at " << begin;
      KILN_CHECK_GT(bytes, 0) << "at " << begin;
      KILN_CHECK_GT(begin, free) << "free blocks overlap or touch";
      free = begin + bytes;
    }
    KILN_CHECK_LE(free, end_);
  }

  int64_t Take(int64_t bytes) {
    const int64_t begin = FindAndTake(bytes);
    KILN_VALIDATE(*this, by_offset_.size());
    return begin;
  }

  void Return(int64_t begin, int64_t bytes) {
    KILN_CHECK(begin >= base_ && begin + bytes <= end_) << begin;
    Merge(begin, bytes);
    KILN_VALIDATE(*this, by_offset_.size());
  }

  int64_t end() const { return end_; }

 private:
  using Blocks = std::map<int64_t, int64_t>;

  int64_t FindAndTake(int64_t bytes) {
    // The smallest block that is large enough, the lowest among equals.
    auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      // Extends a free block at the end.
      auto last = by_offset_.empty() ? by_offset_.end() : std::prev(by_offset_.end());
      const bool grows = last != by_offset_.end() && last->first + last->second == end_;
      const int64_t begin = grows ? last->first : end_;
      if (grows) Erase(last);
      end_ = begin + bytes;
      return begin;
    }
    const auto [size, begin] = *best;
    Erase(by_offset_.find(begin));
    if (size > bytes) Insert(begin + bytes, size - bytes);
    return begin;
  }

  void Merge(int64_t begin, int64_t bytes) {
    // Merges free neighbours, since otherwise the arena would fragment.
    auto next = by_offset_.lower_bound(begin);
    if (next != by_offset_.end() && next->first == begin + bytes) {
      bytes += next->second;
      next = Erase(next);
    }
    if (next != by_offset_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == begin) {
        begin = previous->first;
        bytes += previous->second;
        Erase(previous);
      }
    }
    Insert(begin, bytes);
  }

  void Insert(int64_t begin, int64_t bytes) {
    by_offset_[begin] = bytes;
    by_size_.emplace(bytes, begin);
  }
  Blocks::iterator Erase(Blocks::iterator block) {
    const size_t erased = by_size_.erase({block->second, block->first});
    KILN_CHECK_EQ(erased, 1U) << block->second << " bytes at " << block->first;
    return by_offset_.erase(block);
  }

  const int64_t base_;
  int64_t end_;
  Blocks by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
};

struct CheckedPlan {
  const MemoryPlan& plan;
  const Partition& partition;

  void Validate() const {
    const absl::Status legal = Verify(plan, partition);
    KILN_CHECK(legal.ok()) << legal.message();
    KILN_CHECK_LE(plan.arena_bytes, plan.arena_bytes_without_reuse);
    for (size_t i = 0; i < plan.offsets.size(); ++i) {
      const bool is_placed = plan.offsets[i] >= 0;
      KILN_CHECK(!is_placed || partition.tensors[i].kind == Tensor::Kind::kIntermediate) << i;
    }
  }
};

// Places in the order of time, above all placed tensors.
void PlaceByTime(std::vector<Life> lives, MemoryPlan* plan) {
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return a.first != b.first ? a.first < b.first : a.tensor < b.tensor;
  });
  FreeBytes free(plan->arena_bytes);
  std::set<std::pair<int, size_t>> living;  // by the last use
  for (size_t i = 0; i < lives.size(); ++i) {
    while (!living.empty() && living.begin()->first < lives[i].first) {
      const Life& dead = lives[living.begin()->second];
      free.Return(plan->offsets[dead.tensor], dead.bytes);
      living.erase(living.begin());
    }
    plan->offsets[lives[i].tensor] = free.Take(lives[i].bytes);
    if (lives[i].bytes > 0) living.emplace(lives[i].last, i);
  }
  plan->arena_bytes = free.end();
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const Partition& partition, const drivers::Target& target) {
  MemoryPlan plan;
  plan.alignment = std::max(target.limits.buffer_alignment, drivers::kBufferAlignmentMin);
  plan.offsets.assign(partition.tensors.size(), -1);
  std::vector<Life> lives = FindLives(partition, plan.alignment);
  KILN_CHECK_LE(lives.size(), partition.tensors.size());
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
  });
  if (!AddUp(lives, &plan.arena_bytes_without_reuse)) {
    return absl::ResourceExhaustedError(
        "the intermediate results of the graph have more than 2^63 bytes; use smaller tensors");
  }
  // Placing by size compares each tensor with all that are alive at the same time, which is too
  // slow for many.
  std::vector<Life> small;
  if (lives.size() > kPlacedBySizeMax) {
    small.assign(lives.begin() + kPlacedBySizeMax, lives.end());
    lives.resize(kPlacedBySizeMax);
  }
  // Copies read at the time after the last group, and a lifetime's end is exclusive there.
  Placed placed(partition.groups.size() + 2);
  for (const Life& life : lives) {
    const int64_t offset = FindOffset(life, placed, plan.offsets);
    plan.offsets[life.tensor] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + life.bytes);
    placed.Add(life);
  }
  PlaceByTime(std::move(small), &plan);
  const CheckedPlan checked{plan, partition};
  KILN_VALIDATE(checked, 1);  // as much work as building it
  return plan;
}

// Checks in the order of time: a new tensor's bytes must be free.
absl::Status Verify(const MemoryPlan& plan, const Partition& partition) {
  std::vector<Life> lives = FindLives(partition, plan.alignment);
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.first < b.first; });
  std::map<int64_t, Life> living;              // by offset
  std::set<std::pair<int, int64_t>> last_use;  // of the live ones, with their offsets
  for (const Life& life : lives) {
    const int64_t begin = plan.offsets[life.tensor];
    const int64_t end = begin + life.bytes;
    if (begin < 0 || begin % plan.alignment != 0 || end > plan.arena_bytes) {
      return absl::InternalError(
          absl::StrCat("tensor t", life.tensor, " has no legal place in the arena"));
    }
    while (!last_use.empty() && last_use.begin()->first < life.first) {
      living.erase(last_use.begin()->second);
      last_use.erase(last_use.begin());
    }
    if (life.bytes == 0) continue;
    // Live tensors do not overlap, so only the one below `end` can overlap with this tensor.
    auto next = living.lower_bound(end);
    if (next != living.begin()) {
      const auto& [other, neighbour] = *std::prev(next);
      if (other + neighbour.bytes > begin) {
        return absl::InternalError(absl::StrCat("tensors t", neighbour.tensor, " and t",
                                                life.tensor, " overlap in the arena"));
      }
    }
    living.emplace(begin, life);
    last_use.emplace(life.last, begin);
  }
  return absl::OkStatus();
}

std::string Print(const MemoryPlan& plan) {
  std::string text = absl::StrCat("arena ", plan.arena_bytes, " bytes, ",
                                  plan.arena_bytes_without_reuse, " without reuse\n");
  for (size_t i = 0; i < plan.offsets.size(); ++i) {
    if (plan.offsets[i] >= 0) absl::StrAppend(&text, "t", i, " at ", plan.offsets[i], "\n");
  }
  return text;
}

}  // namespace kiln::partition
