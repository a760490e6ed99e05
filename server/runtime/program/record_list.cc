#include "server/runtime/program/record_list.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {

namespace {

using compiler::Argument;
using compiler::CompiledProgram;
using compiler::DeviceGroup;

class ListRecorder {
 public:
  ListRecorder(const ShardedProgram& sharded, const LoadedProgram& loaded, int member)
      : sharded_(sharded),
        loaded_(loaded.members[member]),
        program_(sharded.compiled(member)),
        member_(member),
        reaches_(loaded.reaches),
        part_bytes_(sharded.part_bytes()) {
    own_slots_ = static_cast<int>(program_.slots.size());
  }

  RecordedList Record() {
    list().num_slots = own_slots_ + (sharded_.is_joint() ? sharded_.size() + 2 : 0);
    if (loaded_.uses_staging) list().host_slots = {staging_slot()};
    size_t exchange = 0;
    for (size_t i = 0; i < program_.calls.size(); ++i) {
      while (IsBefore(exchange, i)) AddExchange(exchange++);
      recorded_.command_of_call.push_back(static_cast<int>(list().commands.size()));
      KILN_CHECK_LT(program_.calls[i].kernel, loaded_.kernels.size());
      drivers::LaunchCommand launch{loaded_.kernels[program_.calls[i].kernel].get(), {}};
      for (const Argument& argument : program_.calls[i].arguments)
        launch.arguments.push_back(RangeOf(argument));
      list().commands.emplace_back(std::move(launch));
    }
    while (exchange < program_.exchanges.size()) AddExchange(exchange++);
    for (const CompiledProgram::Copy& copy : program_.copies) {
      list().commands.emplace_back(
          drivers::CopyCommand{RangeOf(copy.source), RangeOf(copy.destination)});
    }
    KILN_CHECK_EQ(recorded_.command_of_call.size(), program_.calls.size());
    KILN_CHECK_EQ(recorded_.exchange_ends.size(), program_.exchanges.size());
    return std::move(recorded_);
  }

 private:
  struct Range {
    int owner;
    int64_t offset;
    int64_t bytes;
    bool operator<(const Range& other) const {
      return std::tie(owner, offset, bytes) < std::tie(other.owner, other.offset, other.bytes);
    }
  };

  drivers::CommandList& list() { return recorded_.list; }
  int mirror_slot() const { return own_slots_ + sharded_.size(); }
  int staging_slot() const { return mirror_slot() + 1; }
  bool IsBefore(size_t exchange, size_t call) const {
    return exchange < program_.exchanges.size() &&
           program_.exchanges[exchange].before_call <= static_cast<int>(call);
  }
  // Returns whether all members of `group` take part in the exchange.
  static bool Covers(const CompiledProgram& program, size_t exchange, int group) {
    const std::vector<int>& axes = program.groups[program.exchanges[exchange].group].mesh_axes;
    const std::vector<int>& needed = program.groups[group].mesh_axes;
    return std::all_of(needed.begin(), needed.end(), [&](int axis) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    });
  }

  // Returns the ranges of other devices that `reader` reads after this exchange and before the next
  // one of its group. Programs of different targets publish the same data, but their kernels may
  // read different ranges.
  std::set<Range> Reads(int reader, size_t exchange) const {
    const CompiledProgram& program = sharded_.compiled(reader);
    const auto end_of = [&](int group) {
      for (size_t i = exchange + 1; i < program.exchanges.size(); ++i)
        if (Covers(program, i, group)) return static_cast<size_t>(program.exchanges[i].before_call);
      return program.calls.size();
    };
    std::vector<size_t> ends;  // by group; 0: it is not covered, so nothing is read
    for (size_t group = 0; group < program.groups.size(); ++group) {
      const auto number = static_cast<int>(group);
      ends.push_back(Covers(program, exchange, number) ? end_of(number) : 0);
    }
    std::set<Range> ranges;
    for (size_t i = program.exchanges[exchange].before_call; i < program.calls.size(); ++i) {
      for (const Argument& argument : program.calls[i].arguments) {
        if (argument.member < 0 || i >= ends[argument.group]) continue;
        const DeviceGroup& devices = program.groups[argument.group];
        const int owner = sharded_.MemberOf(reader, devices, argument.member);
        if (owner == reader) continue;
        ranges.insert({owner,
                       argument.offset + argument.stride * sharded_.NumberIn(reader, devices),
                       argument.bytes});
      }
    }
    return ranges;
  }

  void AddExchange(size_t exchange) {
    const int group = program_.exchanges[exchange].group;
    const DeviceGroup& devices = program_.groups[group];
    const int size = sharded_.SizeOf(devices);
    std::set<Range> wanted;  // ranges of this device that others need and cannot reach
    for (int number = 0; number < size; ++number) {
      const int other = sharded_.MemberOf(member_, devices, number);
      if (other == member_ || reaches_[other][member_]) continue;
      for (const Range& range : Reads(other, exchange))
        if (range.owner == member_) wanted.insert(range);
    }
    for (const Range& range : wanted) {
      list().commands.emplace_back(drivers::CopyCommand{
          {own_slots_ + member_, range.offset, range.bytes},
          {staging_slot(), member_ * part_bytes_ + range.offset, range.bytes}});
    }
    // Numbered by exchange and device, so that each is signalled once in a run.
    const int first = static_cast<int>(exchange) * sharded_.size();
    list().commands.emplace_back(drivers::SignalCommand{first + member_});
    for (int number = 0; number < size; ++number) {
      const int other = sharded_.MemberOf(member_, devices, number);
      if (other != member_) list().commands.emplace_back(drivers::WaitCommand{first + other});
    }
    for (const Range& range : Reads(member_, exchange)) {
      if (reaches_[member_][range.owner]) continue;
      const int64_t offset = range.owner * part_bytes_ + range.offset;
      list().commands.emplace_back(drivers::CopyCommand{{staging_slot(), offset, range.bytes},
                                                        {mirror_slot(), offset, range.bytes}});
    }
    recorded_.exchange_ends.push_back(static_cast<int>(list().commands.size()));
  }

  drivers::SlotRange RangeOf(const Argument& argument) const {
    const bool is_published =
        program_.slots[argument.slot].kind == compiler::Slot::Kind::kPublished;
    int owner = member_;
    int64_t offset = argument.offset;
    if (argument.member >= 0) {
      const DeviceGroup& devices = program_.groups[argument.group];
      owner = sharded_.MemberOf(member_, devices, argument.member);
      offset += argument.stride * sharded_.NumberIn(member_, devices);
    }
    if (!is_published) return {argument.slot, offset, argument.bytes};
    if (reaches_[member_][owner]) return {own_slots_ + owner, offset, argument.bytes};
    return {mirror_slot(), owner * part_bytes_ + offset, argument.bytes};
  }

  const ShardedProgram& sharded_;
  const LoadedProgram::Member& loaded_;
  const CompiledProgram& program_;
  const int member_;
  const std::vector<std::vector<bool>>& reaches_;
  const int64_t part_bytes_;
  int own_slots_ = 0;
  RecordedList recorded_;
};

}  // namespace

RecordedList RecordList(const ShardedProgram& program, const LoadedProgram& loaded, int member) {
  return ListRecorder(program, loaded, member).Record();
}

}  // namespace kiln::runtime
