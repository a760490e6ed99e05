#include "server/runtime/program/loaded_program.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "proto/check/check.h"
#include "server/runtime/program/record_list.h"

namespace kiln::runtime {
namespace {

absl::StatusOr<std::unique_ptr<drivers::Buffer>> MakePlace(const ShardedProgram& program,
                                                           int member) {
  std::vector<int64_t> place = program.PlaceOf(member);
  if (place.empty()) return nullptr;
  ManagedDevice& device = program.device(member);
  const auto bytes = static_cast<int64_t>(place.size() * sizeof(int64_t));
  auto buffer = device.pool()->AllocateBytes(bytes);
  if (!buffer.ok()) return buffer.status();
  // The buffer has not been used before, so the copy does not wait for work on the device.
  absl::Notification ended;
  absl::Status copied;
  const absl::Status started = device.device().StartCopyToDevice(
      **buffer, 0, {reinterpret_cast<const char*>(place.data()), static_cast<size_t>(bytes)},
      [&](const absl::Status& status) {
        copied = status;
        ended.Notify();
      });
  if (started.ok()) ended.WaitForNotification();
  if (started.ok() && copied.ok()) return buffer;
  device.pool()->Free(*std::move(buffer));
  return started.ok() ? copied : started;
}

absl::Status LoadMember(const ShardedProgram& program, int number, bool finishes_images,
                        LoadedProgram::Member* member) {
  ManagedDevice& device = program.device(number);
  member->pool = device.pool();
  member->life = member->pool->life();
  auto place = MakePlace(program, number);
  if (!place.ok()) return place.status();
  member->place = *std::move(place);
  // Equal kernels are loaded once: calls refer to them by number.
  for (const compiler::CompiledKernel& kernel : program.compiled(number).kernels) {
    drivers::KernelImage image = kernel.image;
    if (finishes_images) image.finished.clear();
    auto loaded = device.device().LoadKernel(image);
    if (!loaded.ok()) return loaded.status();
    member->kernels.push_back(*std::move(loaded));
  }
  return absl::OkStatus();
}

void FindReach(const ShardedProgram& program, LoadedProgram* loaded) {
  const int size = program.size();
  loaded->reaches.assign(size, std::vector<bool>(size, true));
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to) continue;
      // A device that reaches this small buffer reaches all memory of the other device.
      const bool reaches = program.device(from).device().CanReach(*loaded->members[to].place);
      loaded->reaches[from][to] = reaches;
      if (reaches || program.published_bytes() == 0) continue;
      loaded->members[from].mirror_bytes = loaded->staging_bytes = size * program.part_bytes();
      loaded->members[from].uses_staging = loaded->members[to].uses_staging = true;
    }
  }
}

}  // namespace

int64_t LoadedProgram::host_bytes() const {
  int64_t bytes = staging_bytes;
  for (const Member& member : members) bytes += member.list->host_bytes();
  return bytes;
}

bool LoadedProgram::lost() const {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& member) { return member.life != member.pool->life(); });
}

absl::StatusOr<std::shared_ptr<const LoadedProgram>> LoadProgram(const ShardedProgram& program,
                                                                 bool finishes_images) {
  auto result = std::make_shared<LoadedProgram>();
  for (int i = 0; i < program.size(); ++i) {
    LoadedProgram::Member& member = result->members.emplace_back();
    const absl::Status status = LoadMember(program, i, finishes_images, &member);
    if (!status.ok()) return program.device(i).AfterFailure(status);
  }
  FindReach(program, result.get());
  for (int i = 0; i < program.size(); ++i) {
    LoadedProgram::Member& member = result->members[i];
    KILN_CHECK_EQ(member.kernels.size(), program.compiled(i).kernels.size());
    RecordedList recorded = RecordList(program, *result, i);
    member.command_of_call = std::move(recorded.command_of_call);
    const compiler::CompiledProgram& compiled = program.compiled(i);
    if (!compiled.updates_in_place.empty()) member.commit = member.command_of_call[compiled.commit];
    auto list = program.device(i).device().Prepare(std::move(recorded.list));
    if (!list.ok()) return program.device(i).AfterFailure(list.status());
    member.list = *std::move(list);
  }
  if (program.is_joint()) {
    const size_t exchanges = program.compiled(0).exchanges.size();
    result->signals = std::make_shared<drivers::Signals>(
        std::max(static_cast<int>(exchanges) * program.size(), 1));
  }
  return result;
}

}  // namespace kiln::runtime
