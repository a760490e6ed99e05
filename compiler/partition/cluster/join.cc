#include "compiler/partition/cluster/join.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"

namespace kiln::partition {

namespace {

// Returns the loops of the reduced axes, or of the kept axes.
absl::flat_hash_set<int> LoopsOf(const Member& member, bool reduced) {
  absl::flat_hash_set<int> loops;
  for (size_t i = 0; i < member.axes.size(); ++i) {
    if (member.reduced[i] != reduced) continue;
    for (const Digit& digit : member.axes[i]) loops.insert(digit.loop);
  }
  return loops;
}

bool Overlap(const Digit& a, const Digit& b) {
  return a.loop == b.loop && a.stride < b.stride * b.extent && b.stride < a.stride * a.extent;
}

}  // namespace

bool JoinPlanner::InCluster(const Read& read) const {
  auto found = all_.member_of.find(read.leaf);
  return found != all_.member_of.end() && all_.members[found->second].cluster == number_;
}

const Member& JoinPlanner::MemberOf(const Read& read) const {
  return all_.members[all_.member_of.at(read.leaf)];
}

void JoinPlanner::AddPieces(const Access& own, const std::vector<Digits>& loops,
                            std::vector<Piece>* pieces) const {
  for (size_t i = 0; i < own.axes.size(); ++i) {
    if (!own.axes[i].has_value()) continue;
    // An axis unknown in one read may be known in another.
    auto pairs = Align(*own.axes[i], loops[i]);
    if (!pairs.has_value()) continue;
    for (const auto& [digit, loop] : *pairs) {
      if (digit.loop == kUnknownLoop || loop.loop == kUnknownLoop) continue;
      pieces->push_back({digit, loop});
    }
  }
}

// If both read the same leaf, its dimensions show which of their axes correspond.
void JoinPlanner::AddSharedReads(const Member& other, std::vector<Piece>* pieces) const {
  for (const Read& own : member_.reads) {
    for (const Read& theirs : other.reads) {
      if (own.leaf != theirs.leaf) continue;
      Access known = own.access;
      std::vector<Digits> loops(known.axes.size());
      for (size_t i = 0; i < known.axes.size(); ++i) {
        std::optional<Digits> digits;
        if (theirs.access.axes[i].has_value())
          digits = Substitute(*theirs.access.axes[i], other.axes);
        if (digits.has_value()) {
          loops[i] = *std::move(digits);
        } else {
          known.axes[i] = std::nullopt;
        }
      }
      AddPieces(known, loops, pieces);
    }
  }
}

// If pieces contradict each other, on either side, the first one wins.
std::vector<JoinPlanner::Piece> JoinPlanner::KeepDistinct(std::vector<Piece> pieces) const {
  std::vector<Piece> kept;
  for (const Piece& piece : pieces) {
    const bool clash = absl::c_any_of(kept, [&](const Piece& other) {
      return Overlap(piece.own, other.own) || Overlap(piece.loop, other.loop);
    });
    if (!clash) kept.push_back(piece);
  }
  return kept;
}

bool JoinPlanner::Covers(const std::vector<Piece>& pieces, int loop) const {
  int64_t covered = 1;
  for (const Piece& piece : pieces) {
    if (piece.loop.loop == loop) covered *= piece.loop.extent;
  }
  return covered == cluster_.loops[loop];
}

std::optional<std::vector<Digits>> JoinPlanner::Assemble(const std::vector<Piece>& pieces,
                                                         std::vector<int64_t>* fresh) const {
  std::vector<Digits> axes(member_.space.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    std::vector<Piece> mine;
    for (const Piece& piece : pieces) {
      if (piece.own.loop == static_cast<int>(axis)) mine.push_back(piece);
    }
    // From the least significant piece up; the part between two pieces is a gap.
    absl::c_sort(mine, [](const Piece& a, const Piece& b) { return a.own.stride < b.own.stride; });
    int64_t stride = 1;
    Digits low_first;
    auto fill = [&](int64_t until) {
      if (until == stride) return true;
      if (fresh == nullptr || until % stride != 0) return false;
      const int loop = static_cast<int>(cluster_.loops.size() + fresh->size());
      fresh->push_back(until / stride);
      low_first.push_back({loop, 1, until / stride});
      stride = until;
      return true;
    };
    for (const Piece& piece : mine) {
      if (!fill(piece.own.stride)) return std::nullopt;
      low_first.push_back(piece.loop);
      stride *= piece.own.extent;
    }
    if (!fill(member_.space[axis])) return std::nullopt;
    axes[axis] = Normalized(Digits(low_first.rbegin(), low_first.rend()));
  }
  return axes;
}

bool JoinPlanner::SamePoint(const Read& read, const std::vector<Digits>& axes) const {
  // A guarded read may give zero instead of the value at its point.
  if (read.access.conditional) return false;
  const std::vector<Digits> theirs = ValueAxes(MemberOf(read));
  for (size_t i = 0; i < theirs.size(); ++i) {
    if (!read.access.axes[i].has_value()) return false;
    std::optional<Digits> own = Substitute(*read.access.axes[i], axes);
    if (!own.has_value() || *own != theirs[i]) return false;
  }
  return true;
}

std::vector<int> JoinPlanner::Strays(const Read& read, const std::vector<Digits>& axes,
                                     const std::vector<int>& grid) const {
  const std::vector<Digits> theirs = ValueAxes(MemberOf(read));
  std::vector<int> strays;
  for (size_t i = 0; i < theirs.size(); ++i) {
    std::optional<Digits> own;
    if (read.access.axes[i].has_value()) own = Substitute(*read.access.axes[i], axes);
    auto pairs = own.has_value() ? Align(*own, theirs[i]) : std::nullopt;
    if (!pairs.has_value()) {
      for (const Digit& digit : theirs[i]) {
        if (absl::c_linear_search(grid, digit.loop)) strays.push_back(digit.loop);
      }
      continue;
    }
    for (const auto& [mine, digit] : *pairs) {
      if (absl::c_linear_search(grid, digit.loop) && !(mine == digit)) strays.push_back(digit.loop);
    }
  }
  return strays;
}

std::optional<Join> JoinPlanner::PlanSameStage(int stage) const {
  const Member* guide = nullptr;
  for (const int i : cluster_.stages[stage]) {
    const Member& other = all_.members[i];
    // A reduction must run over the same reduced loops as an existing one.
    if (guide == nullptr || (member_.reduction && other.reduction)) guide = &other;
  }
  // A stage without a reduction has no loops to reduce over.
  if (member_.reduction && !guide->reduction) return std::nullopt;
  const absl::flat_hash_set<int> kept = LoopsOf(*guide, false);
  const absl::flat_hash_set<int> reduced = LoopsOf(*guide, true);

  std::vector<Piece> pieces;
  for (const Read& read : member_.reads) {
    if (InCluster(read)) AddPieces(read.access, ValueAxes(MemberOf(read)), &pieces);
  }
  for (const int i : cluster_.stages[stage]) {
    const Member& other = all_.members[i];
    AddSharedReads(other, &pieces);
    // Equal spaces correspond axis by axis, even without common reads.
    if (other.space == member_.space && other.reduced == member_.reduced) {
      AddPieces(Identity(member_.space), other.axes, &pieces);
    }
  }
  // Reduced axes correspond to reduced loops and kept axes to kept ones.
  std::erase_if(pieces, [&](const Piece& piece) {
    const auto& loops = member_.reduced[piece.own.loop] ? reduced : kept;
    return !loops.contains(piece.loop.loop);
  });
  pieces = KeepDistinct(std::move(pieces));
  // The member would be recomputed at each point of a loop that it does not have.
  auto covered = [&](int loop) { return Covers(pieces, loop); };
  if (!absl::c_all_of(kept, covered)) return std::nullopt;
  if (member_.reduction && !absl::c_all_of(reduced, covered)) return std::nullopt;
  std::optional<std::vector<Digits>> axes = Assemble(pieces, nullptr);
  if (!axes.has_value()) return std::nullopt;
  for (const Read& read : member_.reads) {
    if (!InCluster(read)) continue;
    // A later stage has not run yet. An earlier one passes its values through locals, which hold
    // one point of the grid.
    const int source = MemberOf(read).stage;
    if (source > stage || (source == stage && member_.reduction)) return std::nullopt;
    if (source == stage && !SamePoint(read, *axes)) return std::nullopt;
    if (source < stage && !Strays(read, *axes, cluster_.grid).empty()) return std::nullopt;
  }
  return Join{stage, *std::move(axes), {}, cluster_.grid};
}

std::optional<Join> JoinPlanner::PlanNewStage() const {
  std::vector<Piece> all;
  for (const Read& read : member_.reads) {
    if (InCluster(read)) AddPieces(read.access, ValueAxes(MemberOf(read)), &all);
  }
  // A grid's points run in parallel, so no reduction may be distributed over them.
  std::erase_if(all, [&](const Piece& piece) { return member_.reduced[piece.own.loop]; });
  std::vector<int> grid = cluster_.grid;
  // Removes loops from the grid that the member cannot share, until every read stays at its own
  // point. The grid shrinks in each round but the last, so this ends.
  while (true) {
    auto outside = [&](const Piece& piece) {
      return !absl::c_linear_search(grid, piece.loop.loop);
    };
    std::vector<Piece> pieces = all;
    std::erase_if(pieces, outside);
    pieces = KeepDistinct(std::move(pieces));
    std::erase_if(grid, [&](int loop) { return !Covers(pieces, loop); });
    std::erase_if(pieces, outside);
    Join join{-1, {}, {}, grid};
    std::optional<std::vector<Digits>> axes = Assemble(pieces, &join.fresh);
    if (!axes.has_value()) return std::nullopt;
    std::vector<int> strays;
    for (const Read& read : member_.reads) {
      if (!InCluster(read)) continue;
      const std::vector<int> more = Strays(read, *axes, grid);
      strays.insert(strays.end(), more.begin(), more.end());
    }
    if (strays.empty()) {
      join.axes = *std::move(axes);
      return join;
    }
    std::erase_if(grid, [&](int loop) { return absl::c_linear_search(strays, loop); });
  }
}

}  // namespace kiln::partition
