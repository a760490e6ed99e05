#include "compiler/shard/meetings.h"

#include <algorithm>
#include <vector>

namespace kiln::shard {
namespace {

// Returns whether each group along the axes `other` is within one group along the axes `group`.
bool Covers(const std::vector<int>& group, const std::vector<int>& other) {
  return std::all_of(other.begin(), other.end(), [&](int axis) {
    return std::find(group.begin(), group.end(), axis) != group.end();
  });
}

class MeetingPlanner {
 public:
  explicit MeetingPlanner(Program* program)
      : program_(*program), end_(static_cast<int>(program->segments.size())) {}

  // Adds a barrier before each segment that reads published data, and one before it is overwritten.
  void Plan() {
    for (int segment = 1; segment < end_; ++segment) {
      for (const int group : Maximal(GroupsOf(segment))) {
        program_.meetings.push_back({segment, group});
      }
    }
    std::vector<int> open;
    for (size_t i = 0; i < program_.groups.size(); ++i) {
      if (ReleaseOf(static_cast<int>(i), LastRead(static_cast<int>(i))) == end_) {
        open.push_back(static_cast<int>(i));
      }
    }
    for (const int group : Maximal(open)) program_.meetings.push_back({end_, group});
    for (const Segment& segment : program_.segments) {
      const auto level = static_cast<int>(&segment - program_.segments.data());
      for (const Access& access : ReadsOf(segment)) {
        Buffer& buffer = program_.buffers[access.buffer];
        buffer.last = std::max(buffer.last, ReleaseOf(access.group, level) - 1);
      }
    }
  }

 private:
  // Returns the reads of published data.
  static std::vector<Access> ReadsOf(const Segment& segment) {
    std::vector<Access> reads;
    for (const Access& access : segment.inputs) {
      if (access.member >= 0) reads.push_back(access);
    }
    for (const Fetch& fetch : segment.fetches) reads.push_back(fetch.source);
    return reads;
  }

  std::vector<int> GroupsOf(int segment) const {
    std::vector<int> groups;
    for (const Access& access : ReadsOf(program_.segments[segment])) {
      if (std::find(groups.begin(), groups.end(), access.group) == groups.end()) {
        groups.push_back(access.group);
      }
    }
    std::sort(groups.begin(), groups.end());
    return groups;
  }

  // Drops groups whose devices are all in another group's barrier.
  std::vector<int> Maximal(const std::vector<int>& groups) const {
    std::vector<int> kept;
    for (const int group : groups) {
      const auto& axes = program_.groups[group];
      const bool is_covered = std::any_of(groups.begin(), groups.end(), [&](int other) {
        const auto& others = program_.groups[other];
        return Covers(others, axes) && (others.size() > axes.size() || other < group);
      });
      if (!is_covered) kept.push_back(group);
    }
    return kept;
  }

  int LastRead(int group) const {
    int last = 0;
    for (const Transfer& transfer : program_.transfers) {
      if (transfer.group == group) last = std::max(last, transfer.segment);
    }
    return last;
  }

  // Returns the first segment before which the devices of a group meet again after they have read
  // in segment `read`.
  int ReleaseOf(int group, int read) const {
    for (const Meeting& meeting : program_.meetings) {
      if (meeting.segment > read &&
          Covers(program_.groups[meeting.group], program_.groups[group])) {
        return meeting.segment;
      }
    }
    return end_;
  }

  Program& program_;
  const int end_;
};

}  // namespace

void PlanMeetings(Program* program) { MeetingPlanner(program).Plan(); }

}  // namespace kiln::shard
