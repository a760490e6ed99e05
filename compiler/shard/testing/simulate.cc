#include "compiler/shard/testing/simulate.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/testing/evaluate.h"

namespace kiln::shard {
namespace {

using ops::HostTensor;

// Calls `visit` with the indices of each element in the part and in the whole.
template <typename VisitFn>
void ForEachOfPart(const ir::Shape& whole, const graph::Mesh& mesh, const graph::Spec& spec,
                   int64_t device, VisitFn visit) {
  const ir::Shape part = graph::LocalShape(mesh, spec, whole);
  const std::vector<int64_t> strides = ops::StridesOf(whole);
  int64_t base = 0;
  for (size_t d = 0; d < part.size(); ++d) {
    base += NumberIn(mesh, spec[d], device) * part[d] * strides[d];
  }
  std::vector<int64_t> point(part.size(), 0);
  for (int64_t i = 0, count = ir::NumElements(part); i < count; ++i) {
    int64_t to = base;
    bool is_there = true;  // not padding
    for (size_t d = 0; d < part.size(); ++d) {
      to += point[d] * strides[d];
      is_there = is_there && NumberIn(mesh, spec[d], device) * part[d] + point[d] < whole[d];
    }
    if (is_there) visit(i, to);
    for (size_t d = point.size(); d-- > 0 && ++point[d] == part[d];) point[d] = 0;
  }
}

// The memory of one device.
struct Device {
  std::vector<std::vector<uint8_t>> buffers;  // inputs, outputs, updates and the place, by buffer
  std::vector<uint8_t> own;
  std::vector<uint8_t> published;
};

class Simulator {
 public:
  Simulator(const graph::Graph& graph, const Program& program, absl::Span<const HostTensor> inputs)
      : graph_(graph), program_(program), devices_(graph::NumDevices(program.mesh)) {
    for (size_t i = 0; i < devices_.size(); ++i) Fill(static_cast<int64_t>(i), inputs);
  }

  absl::Status RunSegment(int64_t device, int number) {
    const Segment& segment = program_.segments[number];
    if (!IsOn(segment.device, device)) return absl::OkStatus();
    for (const Fetch& fetch : segment.fetches) {
      std::copy_n(At(device, fetch.source), fetch.source.bytes, At(device, fetch.destination));
    }
    std::vector<HostTensor> inputs;
    for (size_t i = 0; i < segment.inputs.size(); ++i) {
      HostTensor input =
          HostTensor::Zeros(segment.graph.inputs[i].dtype, segment.graph.inputs[i].shape);
      const uint8_t* from = At(device, segment.inputs[i]);
      std::copy_n(from, input.bytes.size(), input.bytes.begin());
      inputs.push_back(std::move(input));
    }
    const auto outputs = ops::Evaluate(segment.graph.outputs, inputs);
    if (!outputs.ok()) return outputs.status();
    for (size_t i = 0; i < outputs->size(); ++i) {
      const std::vector<uint8_t>& bytes = (*outputs)[i].bytes;
      std::copy(bytes.begin(), bytes.end(), At(device, segment.results[i]));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<HostTensor>> Results() {
    for (Device& device : devices_) {
      for (const Copy& copy : program_.copies) {
        if (!IsOn(program_.buffers[copy.source].device, &device - devices_.data())) continue;
        device.buffers[copy.destination] = device.buffers[copy.source];
      }
    }
    std::vector<HostTensor> results;
    const auto add = [&](Buffer::Kind kind, int index, const ir::Node* node,
                         const graph::Spec& spec) -> absl::Status {
      std::vector<HostTensor> parts;
      const int buffer = Find(kind, index);
      for (const Device& device : devices_) {
        if (!IsOn(program_.buffers[buffer].device, &device - devices_.data())) continue;
        HostTensor part =
            HostTensor::Zeros(node->dtype(), graph::LocalShape(program_.mesh, spec, node->shape()));
        part.bytes = device.buffers[buffer];
        parts.push_back(std::move(part));
      }
      auto whole = PutTogether(parts, node->shape(), program_.mesh, spec);
      if (whole.ok()) results.push_back(*std::move(whole));
      return whole.status();
    };
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      absl::Status status = add(Buffer::Kind::kOutput, static_cast<int>(i), graph_.outputs[i],
                                graph_.sharding->outputs[i]);
      if (!status.ok()) return status;
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      const graph::Update& update = graph_.updates[i];
      absl::Status status = add(Buffer::Kind::kUpdate, static_cast<int>(i), update.value,
                                graph_.sharding->inputs[update.input]);
      if (!status.ok()) return status;
    }
    return results;
  }

 private:
  // Unwritten bytes have a pattern that makes no plausible number.
  static std::vector<uint8_t> Unwritten(int64_t bytes) {
    return std::vector<uint8_t>(static_cast<size_t>(bytes), 0xA5);
  }

  void Fill(int64_t number, absl::Span<const HostTensor> inputs) {
    Device& device = devices_[number];
    device.own = Unwritten(program_.own_bytes);
    device.published = Unwritten(program_.published_bytes);
    for (const Buffer& buffer : program_.buffers) {
      const bool is_placed =
          buffer.kind == Buffer::Kind::kOwn || buffer.kind == Buffer::Kind::kPublished;
      device.buffers.push_back(Unwritten(is_placed ? 0 : buffer.bytes));
      if (!IsOn(buffer.device, number)) continue;
      if (buffer.kind == Buffer::Kind::kInput) {
        device.buffers.back() = PartOf(inputs[buffer.index], program_.mesh,
                                       graph_.sharding->inputs[buffer.index], number)
                                    .bytes;
      }
      if (buffer.kind == Buffer::Kind::kPlace) {
        const std::vector<int64_t> place = PlaceOf(program_.mesh, number);
        std::memcpy(device.buffers.back().data(), place.data(), place.size() * sizeof(int64_t));
      }
    }
  }

  int Find(Buffer::Kind kind, int index) const {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].kind == kind && program_.buffers[i].index == index) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  uint8_t* At(int64_t device, const Access& access) {
    int64_t owner = device;
    int64_t offset = access.offset;
    if (access.member >= 0) {
      const std::vector<int>& group = program_.groups[access.group];
      owner = MemberOf(program_.mesh, group, device, access.member);
      offset += access.stride * NumberIn(program_.mesh, group, device);
    }
    const Buffer& buffer = program_.buffers[access.buffer];
    if (buffer.kind == Buffer::Kind::kOwn)
      return devices_[owner].own.data() + buffer.offset + offset;
    if (buffer.kind == Buffer::Kind::kPublished) {
      return devices_[owner].published.data() + buffer.offset + offset;
    }
    return devices_[owner].buffers[access.buffer].data() + offset;
  }

  const graph::Graph& graph_;
  const Program& program_;
  std::vector<Device> devices_;
};

}  // namespace

std::vector<int64_t> PlaceOf(const graph::Mesh& mesh, int64_t device) {
  std::vector<int64_t> place(mesh.axes.size());
  for (size_t i = place.size(); i-- > 0;) {
    place[i] = device % mesh.axes[i].size;
    device /= mesh.axes[i].size;
  }
  return place;
}

int64_t MemberOf(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device,
                 int64_t member) {
  std::vector<int64_t> place = PlaceOf(mesh, device);
  for (size_t i = group.size(); i-- > 0;) {
    place[group[i]] = member % mesh.axes[group[i]].size;
    member /= mesh.axes[group[i]].size;
  }
  int64_t number = 0;
  for (size_t i = 0; i < place.size(); ++i) number = number * mesh.axes[i].size + place[i];
  return number;
}

int64_t NumberIn(const graph::Mesh& mesh, const std::vector<int>& group, int64_t device) {
  const std::vector<int64_t> place = PlaceOf(mesh, device);
  int64_t number = 0;
  for (const int axis : group) number = number * mesh.axes[axis].size + place[axis];
  return number;
}

HostTensor PartOf(const HostTensor& whole, const graph::Mesh& mesh, const graph::Spec& spec,
                  int64_t device) {
  HostTensor part = HostTensor::Zeros(whole.dtype, graph::LocalShape(mesh, spec, whole.shape));
  const int size = ir::SizeOf(whole.dtype);
  // Padding may be anything; here it is NaN, and -1.
  std::fill(part.bytes.begin(), part.bytes.end(), 0xFF);
  ForEachOfPart(whole.shape, mesh, spec, device, [&](int64_t to, int64_t from) {
    std::copy_n(whole.bytes.begin() + from * size, size, part.bytes.begin() + to * size);
  });
  return part;
}

absl::StatusOr<HostTensor> PutTogether(const std::vector<HostTensor>& parts, const ir::Shape& shape,
                                       const graph::Mesh& mesh, const graph::Spec& spec) {
  HostTensor whole = HostTensor::Zeros(parts[0].dtype, shape);
  const int size = ir::SizeOf(whole.dtype);
  std::vector<bool> is_written(whole.size(), false);
  bool differs = false;
  for (size_t device = 0; device < parts.size(); ++device) {
    const HostTensor& part = parts[device];
    ForEachOfPart(shape, mesh, spec, static_cast<int64_t>(device), [&](int64_t from, int64_t to) {
      const auto* element = part.bytes.data() + from * size;
      auto* place = whole.bytes.data() + to * size;
      differs = differs || (is_written[to] && std::memcmp(element, place, size) != 0);
      std::copy_n(element, size, place);
      is_written[to] = true;
    });
  }
  if (differs) return absl::InternalError("devices that should have the same have not");
  return whole;
}

absl::Status RunInSomeOrder(const graph::Mesh& mesh, int steps,
                            const std::vector<Meetings>& meetings, uint64_t seed,
                            const std::function<absl::Status(int64_t, int)>& run) {
  const int64_t devices = graph::NumDevices(mesh);
  std::vector<int> done(devices, 0);    // steps
  std::vector<size_t> met(devices, 0);  // barriers
  std::mt19937_64 random(seed);
  // Returns whether the device has reached its next barrier.
  const auto waits = [&](int64_t device) {
    return met[device] < meetings.size() && meetings[met[device]].step <= done[device];
  };
  const auto all_wait = [&](int64_t device) {
    const Meetings& meeting = meetings[met[device]];
    for (int64_t other = 0; other < devices; ++other) {
      const int64_t same =
          MemberOf(mesh, meeting.axes, other, NumberIn(mesh, meeting.axes, device));
      if (same == device && met[other] < met[device]) return false;
      if (same == device && met[other] == met[device] && !waits(other)) return false;
    }
    return true;
  };
  while (true) {
    std::vector<int64_t> ready;
    for (int64_t device = 0; device < devices; ++device) {
      const bool ended = done[device] == steps && met[device] == meetings.size();
      if (!ended && (!waits(device) || all_wait(device))) ready.push_back(device);
    }
    if (ready.empty()) break;
    const int64_t device = ready[random() % ready.size()];
    if (waits(device)) {
      ++met[device];
      continue;
    }
    if (absl::Status status = run(device, done[device]); !status.ok()) return status;
    ++done[device];
  }
  for (int64_t device = 0; device < devices; ++device) {
    if (done[device] != steps || met[device] != meetings.size()) {
      return absl::InternalError("devices wait for each other for good");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTensor>> Simulate(const graph::Graph& graph, const Program& program,
                                                 absl::Span<const HostTensor> inputs,
                                                 uint64_t seed) {
  Simulator simulator(graph, program, inputs);
  std::vector<Meetings> meetings;
  for (const Meeting& meeting : program.meetings) {
    meetings.push_back({meeting.segment, program.groups[meeting.group]});
  }
  const absl::Status run = RunInSomeOrder(
      program.mesh, static_cast<int>(program.segments.size()), meetings, seed,
      [&](int64_t device, int segment) { return simulator.RunSegment(device, segment); });
  if (!run.ok()) return run;
  return simulator.Results();
}

}  // namespace kiln::shard
