#include "tests/sharded/run_sharded.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/pipeline.h"
#include "compiler/shard/testing/simulate.h"
#include "drivers/cpu/driver.h"
#include "tests/numerics/compare.h"

namespace kiln::sharded {
namespace {

using compiler::Argument;
using compiler::CompiledProgram;
using compiler::Slot;
using graph::Mesh;
using graph::Spec;
using ops::HostTensor;

drivers::Device& TheDevice() {
  static drivers::Device& device = *[] {
    drivers::cpu::CpuDriver driver({.devices = 1, .threads_per_device = 2});
    std::string why;
    return driver.Enumerate(&why).value().front().release();
  }();
  return device;
}

// All devices of a mesh, each with its own buffers, simulated on one device of this machine.
class MeshRun {
 public:
  // One program for each device, or one for all.
  MeshRun(const graph::Graph& graph, const std::vector<CompiledProgram>& programs)
      : graph_(graph), programs_(programs), mesh_(graph.sharding->mesh) {}

  absl::Status Load(absl::Span<const HostTensor> inputs) {
    for (const CompiledProgram& program : programs_) {
      if (absl::Status status = LoadKernels(program); !status.ok()) return status;
    }
    buffers_.resize(graph::NumDevices(mesh_));
    for (int64_t device = 0; device < graph::NumDevices(mesh_); ++device) {
      for (const Slot& slot : ProgramOf(device).slots) {
        auto buffer = TheDevice().Allocate(slot.bytes);
        if (!buffer.ok()) return buffer.status();
        const std::string bytes = Content(slot, device, inputs);
        absl::Status status = TheDevice().CopyToDevice(**buffer, 0, bytes);
        if (!status.ok()) return status;
        buffers_[device].push_back(*std::move(buffer));
      }
    }
    return absl::OkStatus();
  }

  // Step i goes from one exchange to the next.
  absl::Status Run(uint64_t seed) {
    std::vector<shard::Meetings> meetings;
    for (const compiler::Exchange& exchange : programs_[0].exchanges) {
      meetings.push_back(
          {static_cast<int>(meetings.size()) + 1, programs_[0].groups[exchange.group].mesh_axes});
    }
    absl::Status run = shard::RunInSomeOrder(mesh_, static_cast<int>(meetings.size()) + 1, meetings,
                                             seed, [&](int64_t device, int step) {
                                               return Calls(device, BeginOf(device, step),
                                                            BeginOf(device, step + 1));
                                             });
    for (int64_t device = 0; run.ok() && device < graph::NumDevices(mesh_); ++device) {
      run = Copies(device);
    }
    return run;
  }

  absl::StatusOr<std::vector<HostTensor>> Results() {
    std::vector<HostTensor> results;
    absl::Status status;
    for (size_t i = 0; i < graph_.outputs.size() && status.ok(); ++i) {
      status = Add(Slot::Kind::kOutput, static_cast<int>(i), graph_.outputs[i],
                   graph_.sharding->outputs[i], &results);
    }
    for (size_t i = 0; i < graph_.updates.size() && status.ok(); ++i) {
      status = Add(Slot::Kind::kUpdate, static_cast<int>(i), graph_.updates[i].value,
                   graph_.sharding->inputs[graph_.updates[i].input], &results);
    }
    if (!status.ok()) return status;
    return results;
  }

 private:
  size_t NumberOf(int64_t device) const { return programs_.size() == 1 ? 0 : device; }
  const CompiledProgram& ProgramOf(int64_t device) const { return programs_[NumberOf(device)]; }

  absl::Status LoadKernels(const CompiledProgram& program) {
    kernels_.emplace_back();
    for (const compiler::CompiledKernel& kernel : program.kernels) {
      if (!kernel.refusal.empty()) {
        return absl::InternalError(
            absl::StrCat(kernel.refusal, "\n", kernel.refused_schedule, kernel.ir));
      }
      auto image = TheDevice().LoadKernel(kernel.image);
      if (!image.ok()) return image.status();
      kernels_.back().push_back(*std::move(image));
    }
    return absl::OkStatus();
  }

  int BeginOf(int64_t device, int step) const {
    const CompiledProgram& program = ProgramOf(device);
    if (step == 0) return 0;
    if (step > static_cast<int>(program.exchanges.size())) {
      return static_cast<int>(program.calls.size());
    }
    return program.exchanges[step - 1].before_call;
  }

  std::string Content(const Slot& slot, int64_t device, absl::Span<const HostTensor> inputs) const {
    if (slot.kind == Slot::Kind::kInput && slot.bytes > 0) {
      const HostTensor part =
          shard::PartOf(inputs[slot.index], mesh_, graph_.sharding->inputs[slot.index], device);
      return {part.bytes.begin(), part.bytes.end()};
    }
    if (slot.kind == Slot::Kind::kPlace) {
      const std::vector<int64_t> place = shard::PlaceOf(mesh_, device);
      return {reinterpret_cast<const char*>(place.data()), place.size() * sizeof(int64_t)};
    }
    // Fills with a value that is not a plausible number, so that elements that a kernel does not
    // write show.
    return std::string(static_cast<size_t>(slot.bytes), '\xA5');
  }

  // The slots of a list are the slots of all devices, one device after another.
  drivers::SlotRange Range(int64_t device, const Argument& argument) const {
    int64_t owner = device;
    int64_t offset = argument.offset;
    if (argument.member >= 0) {
      const std::vector<int>& axes = ProgramOf(device).groups[argument.group].mesh_axes;
      owner = shard::MemberOf(mesh_, axes, device, argument.member);
      offset += argument.stride * shard::NumberIn(mesh_, axes, device);
    }
    int64_t first = 0;
    for (int64_t before = 0; before < owner; ++before) {
      first += static_cast<int64_t>(ProgramOf(before).slots.size());
    }
    return {static_cast<int>(first + argument.slot), offset, argument.bytes};
  }

  absl::Status Calls(int64_t device, int first, int end) {
    drivers::CommandList list;
    for (int i = first; i < end; ++i) {
      drivers::LaunchCommand launch;
      const compiler::KernelCall& call = ProgramOf(device).calls[i];
      launch.kernel = kernels_[NumberOf(device)][call.kernel].get();
      for (const Argument& argument : call.arguments) {
        launch.arguments.push_back(Range(device, argument));
      }
      list.commands.emplace_back(std::move(launch));
    }
    return Submit(std::move(list));
  }

  absl::Status Copies(int64_t device) {
    drivers::CommandList list;
    for (const CompiledProgram::Copy& copy : ProgramOf(device).copies) {
      list.commands.emplace_back(
          drivers::CopyCommand{Range(device, copy.source), Range(device, copy.destination)});
    }
    return Submit(std::move(list));
  }

  absl::Status Submit(drivers::CommandList list) {
    if (list.commands.empty()) return absl::OkStatus();
    std::vector<drivers::Buffer*> slots;
    for (const auto& of_device : buffers_) {
      for (const auto& buffer : of_device) slots.push_back(buffer.get());
    }
    list.num_slots = static_cast<int>(slots.size());
    auto prepared = TheDevice().Prepare(std::move(list));
    if (!prepared.ok()) return prepared.status();
    absl::Notification done;
    absl::Status result;
    const absl::Status submitted =
        TheDevice().Submit(**prepared, slots, {}, [&](drivers::SubmitResult finished) {
          result = finished.status;
          done.Notify();
        });
    if (!submitted.ok()) return submitted;
    done.WaitForNotification();
    return result;
  }

  absl::Status Add(Slot::Kind kind, int index, const ir::Node* node, const Spec& spec,
                   std::vector<HostTensor>* results) {
    std::vector<HostTensor> parts;
    for (int64_t device = 0; device < graph::NumDevices(mesh_); ++device) {
      const std::vector<Slot>& slots = ProgramOf(device).slots;
      size_t number = 0;
      while (slots[number].kind != kind || slots[number].index != index) ++number;
      HostTensor part =
          HostTensor::Zeros(node->dtype(), graph::LocalShape(mesh_, spec, node->shape()));
      // In a graph in stages only one device has it.
      if (slots[number].bytes == 0 && !part.bytes.empty()) continue;
      auto* bytes = reinterpret_cast<char*>(part.bytes.data());
      absl::Status read = TheDevice().CopyToHost(*buffers_[device][number], 0,
                                                 absl::MakeSpan(bytes, part.bytes.size()));
      if (!read.ok()) return read;
      parts.push_back(std::move(part));
    }
    auto whole = shard::PutTogether(parts, node->shape(), mesh_, spec);
    if (whole.ok()) results->push_back(*std::move(whole));
    return whole.status();
  }

  const graph::Graph& graph_;
  const std::vector<CompiledProgram>& programs_;
  const Mesh& mesh_;
  std::vector<std::vector<std::unique_ptr<drivers::LoadedKernel>>> kernels_;  // by program
  std::vector<std::vector<std::unique_ptr<drivers::Buffer>>> buffers_;        // by device, by slot
};

std::string Compare(const graph::Graph& graph, absl::Span<const HostTensor> inputs,
                    std::vector<double> tolerances,
                    const absl::StatusOr<std::vector<HostTensor>>& actual) {
  if (!actual.ok()) return actual.status().ToString();
  const auto plain = autodiff::Differentiate(graph);
  if (!plain.ok()) return plain.status().ToString();
  const auto expected = ops::Evaluate(graph::Roots(*plain), inputs);
  if (!expected.ok()) return expected.status().ToString();
  if (actual->size() != expected->size()) return "results are missing";
  tolerances.resize(expected->size(), tolerances[0]);
  for (size_t i = 0; i < expected->size(); ++i) {
    const std::string difference =
        numerics::Difference((*actual)[i], (*expected)[i], tolerances[i], tolerances[i]);
    if (!difference.empty()) return absl::StrCat("result ", i, ": ", difference);
  }
  return "";
}

// Puts a graph's values on devices, with sends between them.
class StageMaker {
 public:
  StageMaker(const graph::Graph& graph, int devices, std::mt19937_64& random)
      : graph_(graph), devices_(devices), random_(random), builder_(*graph.context) {}

  graph::Graph Make() && {
    auto sharding = std::make_shared<graph::Sharding>();
    sharding->mesh.axes = {{"stage", devices_}};
    sharding->stages.emplace();
    for (const graph::Input& input : graph_.inputs) {
      sharding->inputs.emplace_back(input.shape.size());
      sharding->stages->inputs.push_back(AnyDevice());
    }
    inputs_ = sharding->stages->inputs;
    for (const ir::Node* node : ir::TopologicalOrder(graph::Roots(graph_))) Put(node);
    graph::Graph result = graph_;
    for (const ir::Node*& output : result.outputs) {
      const int device = AnyDevice();
      sharding->outputs.emplace_back(output->shape().size());
      sharding->stages->outputs.push_back(device);
      output = On(output, device);
    }
    for (graph::Update& update : result.updates) {
      update.value = On(update.value, inputs_[update.input]);
    }
    result.sharding = std::move(sharding);
    return result;
  }

 private:
  struct Placed {
    const ir::Node* node = nullptr;
    int device = -1;  // -1: any device
  };

  int AnyDevice() { return static_cast<int>(random_() % devices_); }

  const ir::Node* On(const ir::Node* node, int device) {
    const Placed& placed = placed_.at(node);
    // A send of a value that may be on any device, or to the same device, has no effect.
    const bool is_needless = (placed.device < 0 || placed.device == device) && random_() % 8 != 0;
    const int from = placed.device < 0 ? AnyDevice() : placed.device;
    return is_needless ? placed.node : builder_.Send(placed.node, from, device);
  }

  void Put(const ir::Node* node) {
    if (node->op() == ir::Op::kInput) {
      placed_[node] = {node, inputs_[node->attr<ir::InputAttr>().index]};
      return;
    }
    // An existing send was not made for these stages.
    if (node->op() == ir::Op::kSend) {
      placed_[node] = placed_.at(node->operand(0));
      return;
    }
    std::vector<const ir::Node*> operands;
    if (node->op() == ir::Op::kGradient && placed_.at(node->operand(1)).device < 0) {
      // Its device is known only after autodiff.
      placed_[node] = {builder_.FullLike(node->operand(1), 0)};
      return;
    }
    if (node->op() == ir::Op::kGradient) {
      // Uses the values themselves, not copies that were sent.
      for (int i = 0; i < 2; ++i) operands.push_back(placed_.at(node->operand(i)).node);
      const int device = placed_.at(node->operand(0)).device;
      for (size_t i = 2; i < node->operands().size(); ++i) {
        operands.push_back(On(node->operand(2), device < 0 ? AnyDevice() : device));
      }
      placed_[node] = {graph_.context->WithOperands(node, std::move(operands)),
                       placed_.at(node->operand(1)).device};
      return;
    }
    int device = -1;
    for (const ir::Node* operand : node->operands()) {
      const int other = placed_.at(operand).device;
      if (other >= 0 && (device < 0 || random_() % 3 == 0)) device = other;
    }
    if (device >= 0 && random_() % 8 == 0) device = AnyDevice();
    for (const ir::Node* operand : node->operands()) {
      operands.push_back(device < 0 ? placed_.at(operand).node : On(operand, device));
    }
    placed_[node] = {graph_.context->WithOperands(node, std::move(operands)), device};
  }

  const graph::Graph& graph_;
  const int devices_;
  std::mt19937_64& random_;
  ops::Builder builder_;
  std::vector<int> inputs_;
  absl::flat_hash_map<const ir::Node*, Placed> placed_;
};

void ExtendSpecs(const Mesh& mesh, const ir::Shape& shape, size_t axis, const Spec& spec,
                 std::vector<Spec>* all) {
  if (axis == mesh.axes.size()) {
    all->push_back(spec);
    return;
  }
  ExtendSpecs(mesh, shape, axis + 1, spec, all);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    // After the axes that already split it, or before them.
    for (const bool front : {false, true}) {
      if (front && spec[dim].empty()) continue;
      Spec more = spec;
      more[dim].insert(front ? more[dim].begin() : more[dim].end(), static_cast<int>(axis));
      ExtendSpecs(mesh, shape, axis + 1, more, all);
    }
  }
}

}  // namespace

const drivers::Target& ProcessorTarget() { return TheDevice().info().target; }

absl::StatusOr<shard::Program> MakeProgram(const graph::Graph& graph) {
  std::vector<compiler::PassReport> reports;
  auto state = compiler::RunPasses(graph, {}, {.last = "shard"}, {}, &reports);
  if (!state.ok()) return state.status();
  return *std::move(state->sharded);
}

std::string ProgramText(const graph::Graph& graph) {
  const auto program = MakeProgram(graph);
  return program.ok() ? shard::Print(*program) : program.status().ToString();
}

absl::StatusOr<CompiledProgram> CompileStage(const graph::Graph& graph, int stage) {
  compiler::Options options;
  options.stage = stage;
  return compiler::Compile(graph, ProcessorTarget(), options);
}

absl::StatusOr<std::vector<HostTensor>> RunOnMesh(const graph::Graph& graph,
                                                  absl::Span<const HostTensor> inputs,
                                                  uint64_t seed) {
  std::vector<CompiledProgram> programs;
  const int64_t stages = graph.sharding->stages ? graph::NumDevices(graph.sharding->mesh) : 1;
  for (int stage = 0; stage < stages; ++stage) {
    auto program = CompileStage(graph, stage);
    if (!program.ok()) return program.status();
    programs.push_back(*std::move(program));
  }
  MeshRun run(graph, programs);
  if (absl::Status status = run.Load(inputs); !status.ok()) return status;
  if (absl::Status status = run.Run(seed); !status.ok()) return status;
  return run.Results();
}

std::string SimulatedDisagreement(const graph::Graph& graph, absl::Span<const HostTensor> inputs,
                                  std::vector<double> tolerances, uint64_t seed) {
  const auto program = MakeProgram(graph);
  if (!program.ok()) return program.status().ToString();
  return Compare(graph, inputs, std::move(tolerances),
                 shard::Simulate(graph, *program, inputs, seed));
}

std::string CompiledDisagreement(const graph::Graph& graph, absl::Span<const HostTensor> inputs,
                                 std::vector<double> tolerances, uint64_t seed) {
  return Compare(graph, inputs, std::move(tolerances), RunOnMesh(graph, inputs, seed));
}

std::vector<Spec> AllSpecs(const Mesh& mesh, const ir::Shape& shape) {
  std::vector<Spec> all;
  ExtendSpecs(mesh, shape, 0, Spec(shape.size()), &all);
  return all;
}

Spec RandomSpec(const Mesh& mesh, const ir::Shape& shape, std::mt19937_64& random) {
  const std::vector<Spec> all = AllSpecs(mesh, shape);
  return all[random() % all.size()];
}

graph::Graph OnMesh(const graph::Graph& graph, const Mesh& mesh, std::mt19937_64& random,
                    bool with_hints) {
  std::vector<const ir::Node*> roots = graph::Roots(graph);
  absl::flat_hash_map<const ir::Node*, const ir::Node*> became;
  for (const ir::Node* node : ir::TopologicalOrder(roots)) {
    std::vector<const ir::Node*> operands;
    for (const ir::Node* operand : node->operands()) operands.push_back(became.at(operand));
    // An existing hint was not made for this mesh.
    const ir::Node* made = node->op() == ir::Op::kShard
                               ? operands[0]
                               : graph.context->WithOperands(node, std::move(operands));
    const bool hint = with_hints && random() % 6 == 0 && node->op() != ir::Op::kConst;
    if (hint) {
      made =
          graph.context->Get(ir::Op::kShard, made->dtype(), made->shape(), {made},
                             ir::IntsAttr{graph::Encode(RandomSpec(mesh, made->shape(), random))});
    }
    became[node] = made;
  }
  for (const ir::Node*& root : roots) root = became.at(root);
  graph::Graph result = graph::WithRoots(graph, roots);
  auto sharding = std::make_shared<graph::Sharding>();
  sharding->mesh = mesh;
  for (const graph::Input& input : graph.inputs) {
    sharding->inputs.push_back(RandomSpec(mesh, input.shape, random));
  }
  for (const ir::Node* output : graph.outputs) {
    sharding->outputs.push_back(RandomSpec(mesh, output->shape(), random));
  }
  result.sharding = std::move(sharding);
  return result;
}

graph::Graph InStages(const graph::Graph& graph, int devices, std::mt19937_64& random) {
  return StageMaker(graph, devices, random).Make();
}

}  // namespace kiln::sharded
