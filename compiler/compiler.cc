#include "compiler/compiler.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/compile_kernels.h"
#include "compiler/machine_codes.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/pipeline.h"
#include "compiler/rehearse.h"
#include "compiler/shard/shard.h"
#include "proto/check/check.h"

namespace kiln::compiler {
namespace {

using BufferKind = shard::Buffer::Kind;

// Numbers the slots and maps buffers to them.
class SlotMap {
 public:
  SlotMap(const shard::Program& program, int device) : buffers_(program.buffers), device_(device) {
    AddAll(BufferKind::kInput, Slot::Kind::kInput);
    AddAll(BufferKind::kOutput, Slot::Kind::kOutput);
    AddAll(BufferKind::kUpdate, Slot::Kind::kUpdate);
    AddAll(BufferKind::kPlace, Slot::Kind::kPlace);
    published_ = static_cast<int>(slots_.size());
    if (program.published_bytes > 0) {
      slots_.push_back({Slot::Kind::kPublished, 0, program.published_bytes});
    }
    arena_ = static_cast<int>(slots_.size());
  }

  int arena() const { return arena_; }

  // The arena is added last, since its size is known last.
  std::vector<Slot> WithArena(int64_t bytes) && {
    if (bytes > 0) slots_.push_back({Slot::Kind::kArena, 0, bytes});
    return std::move(slots_);
  }

  Argument ArgumentOf(const shard::Access& access) const {
    Argument argument = Whole(access.buffer);
    argument.offset += access.offset;
    argument.bytes = access.bytes;
    argument.member = access.member;
    argument.group = access.group;
    argument.stride = access.stride;
    return argument;
  }

  Argument Whole(int buffer) const {
    return {SlotOf(buffer), buffers_[buffer].offset, buffers_[buffer].bytes};
  }

 private:
  int SlotOf(int buffer) const {
    if (buffers_[buffer].kind == BufferKind::kOwn) return arena_;
    if (buffers_[buffer].kind == BufferKind::kPublished) return published_;
    return slot_of_.at(buffer);
  }

  // Adds the buffers of a kind; their slots are ordered by index.
  void AddAll(BufferKind kind, Slot::Kind slot) {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].kind != kind) continue;
      slot_of_[static_cast<int>(i)] = static_cast<int>(slots_.size());
      // Buffers of other devices also get a slot, so that slots are ordered by index on all
      // devices.
      const bool is_here = shard::IsOn(buffers_[i].device, device_);
      slots_.push_back({slot, buffers_[i].index, is_here ? buffers_[i].bytes : 0});
    }
  }

  const std::vector<shard::Buffer>& buffers_;
  const int device_;
  absl::flat_hash_map<int, int> slot_of_;  // by buffer
  std::vector<Slot> slots_;
  int published_ = 0;
  int arena_ = 0;
};

// Merges the reports: one per pass, for any number of graphs that it ran on. `label` precedes
// texts.
void AddReports(const std::string& label, std::vector<PassReport> more,
                std::vector<PassReport>* reports) {
  for (PassReport& report : more) {
    if (!report.text.empty()) report.text.insert(0, label);
    const auto known = std::find_if(reports->begin(), reports->end(),
                                    [&](const PassReport& one) { return one.pass == report.pass; });
    if (known == reports->end()) {
      reports->push_back(std::move(report));
      continue;
    }
    known->seconds += report.seconds;
    known->text += report.text;
    for (PassPart& part : report.parts) {
      const auto same = std::find_if(known->parts.begin(), known->parts.end(),
                                     [&](const PassPart& one) { return one.name == part.name; });
      if (same == known->parts.end()) {
        known->parts.push_back(std::move(part));
      } else {
        same->seconds += part.seconds;
      }
    }
  }
}

// Returns the argument of the call that is all of this slot, if no other is in it.
std::optional<int> FindWhole(const CompiledProgram& program, const KernelCall& call, int slot) {
  std::optional<int> found;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.slot != slot) continue;
    if (found || argument.offset != 0 || argument.bytes != program.slots[slot].bytes)
      return std::nullopt;
    found = static_cast<int>(i);
  }
  return found;
}

// Finds the updates that the last calls of the program may write over their inputs.
class UpdatesInPlace {
 public:
  explicit UpdatesInPlace(const CompiledProgram& program)
      : program_(program), calls_(program.slots.size()), is_copied_(program.slots.size(), false) {
    for (size_t i = 0; i < program.calls.size(); ++i) {
      bool has_update = false;
      for (const Argument& argument : program.calls[i].arguments) {
        std::vector<int>& calls = calls_[argument.slot];
        if (calls.empty() || calls.back() != static_cast<int>(i))
          calls.push_back(static_cast<int>(i));
        has_update |= program.slots[argument.slot].kind == Slot::Kind::kUpdate;
      }
      if (!has_update) begin_ = static_cast<int>(i) + 1;
    }
    for (const CompiledProgram::Copy& copy : program.copies) is_copied_[copy.source.slot] = true;
  }

  // If the update may replace the input in place, returns the call that begins to write it.
  std::optional<int> Find(int input, int update) const {
    const std::vector<int>& readers = calls_[input];
    const std::vector<int>& writers = calls_[update];
    if (readers.empty() || writers.empty() || is_copied_[input]) return std::nullopt;
    const int call = writers.front();
    // The calls that read the input have ended, except the one that replaces it.
    if (call < begin_ || readers.back() != call) return std::nullopt;
    const std::optional<int> read = FindWhole(program_, program_.calls[call], input);
    const std::optional<int> written = FindWhole(program_, program_.calls[call], update);
    if (!read || !written) return std::nullopt;
    const auto& pairs = program_.kernels[program_.calls[call].kernel].in_place;
    const kernel::InPlace pair = {*read, *written};
    if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) return std::nullopt;
    return call;
  }

 private:
  const CompiledProgram& program_;
  std::vector<std::vector<int>> calls_;  // by slot, the calls that use it
  std::vector<bool> is_copied_;          // by slot, at the end of the program
  int begin_ = 0;                        // all calls from here on make or read updates
};

void FindUpdatesInPlace(const graph::Graph& graph, CompiledProgram* program) {
  const UpdatesInPlace in_place(*program);
  const auto slot_of = [&](Slot::Kind kind, int index) {
    const auto found =
        std::find_if(program->slots.begin(), program->slots.end(),
                     [&](const Slot& slot) { return slot.kind == kind && slot.index == index; });
    KILN_CHECK(found != program->slots.end()) << "slot " << index;
    return static_cast<int>(found - program->slots.begin());
  };
  // Slots are ordered by index.
  const int inputs = slot_of(Slot::Kind::kInput, 0);
  const int updates = slot_of(Slot::Kind::kUpdate, 0);
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const auto number = static_cast<int>(i);
    const std::optional<int> call =
        in_place.Find(inputs + graph.updates[i].input, updates + number);
    if (!call) continue;
    program->updates_in_place.push_back(number);
    program->commit = std::min(program->commit, *call);
  }
}

// The target of the kernels, and its code generator.
struct KernelMachine {
  const codegen::MachineCode& code;
  const drivers::Target& target;
  const Options& options;
};

// Compiles the segments of a sharded program one after another, with exchanges between them. A
// graph on one device is one segment without exchanges.
class SegmentCompiler {
 public:
  SegmentCompiler(const shard::Program& sharded, const KernelMachine& machine,
                  CompiledProgram& program)
      : sharded_(sharded),
        machine_(machine),
        program_(program),
        slots_(sharded, machine.options.stage),
        own_bytes_(shard::OwnBytes(sharded, machine.options.stage)),
        arena_bytes_(own_bytes_) {}

  absl::Status Run() {
    for (const std::vector<int>& axes : sharded_.groups) program_.groups.push_back({axes});
    if (is_on_mesh()) program_.partition_text = shard::Print(sharded_);
    for (const shard::Buffer& buffer : sharded_.buffers) {
      const bool is_counted = buffer.kind == BufferKind::kOwn && IsHere(buffer.device);
      if (is_counted) program_.arena_bytes_without_reuse += buffer.bytes;
    }
    const auto segments = static_cast<int>(sharded_.segments.size());
    for (int i = 0; i < segments; ++i) {
      Meet(i);
      if (!IsHere(sharded_.segments[i].device)) continue;
      if (absl::Status status = AddSegment(i); !status.ok()) return status;
    }
    Meet(segments);
    for (const shard::Copy& copy : sharded_.copies) {
      if (!IsHere(sharded_.buffers[copy.source].device)) continue;
      program_.copies.push_back({slots_.Whole(copy.source), slots_.Whole(copy.destination)});
    }
    program_.slots = std::move(slots_).WithArena(arena_bytes_);
    program_.commit = static_cast<int>(program_.calls.size());
    // Only the segment of a whole program has updates.
    if (updates_in_place_) FindUpdatesInPlace(sharded_.segments.front().graph, &program_);
    return absl::OkStatus();
  }

 private:
  // A segment's graph, and the arguments of its inputs and results (outputs, then updates).
  struct Part {
    int segment = 0;
    const graph::Graph& graph;
    std::vector<Argument> inputs;
    std::vector<Argument> results;
  };

  bool is_on_mesh() const { return !sharded_.mesh.axes.empty(); }
  // In a graph in stages, this program is that of one device.
  bool IsHere(int device) const { return shard::IsOn(device, machine_.options.stage); }

  void Meet(int segment) {
    for (const shard::Meeting& meeting : sharded_.meetings) {
      if (meeting.segment != segment) continue;
      program_.exchanges.push_back({static_cast<int>(program_.calls.size()), meeting.group});
    }
  }

  absl::Status AddSegment(int number) {
    const shard::Segment& segment = sharded_.segments[number];
    for (const shard::Fetch& fetch : segment.fetches) {
      if (absl::Status status = AddFetch(number, fetch); !status.ok()) return status;
    }
    Part part{number, segment.graph, {}, {}};
    for (const shard::Access& access : segment.inputs)
      part.inputs.push_back(slots_.ArgumentOf(access));
    for (const shard::Access& access : segment.results)
      part.results.push_back(slots_.ArgumentOf(access));
    return AddPart(part);
  }

  // Appends the calls that compute the part.
  absl::Status AddPart(const Part& part) {
    if (part.results.empty()) return absl::OkStatus();
    std::vector<PassReport> reports;
    PassState state;
    absl::StatusOr<KernelSet> set = MakeKernels(part, machine_.options, &state, &reports);
    if (!state.choices.text.empty() && IsOfDecision(set.status())) {
      // The partitioner's own decisions always have kernels.
      const std::string refusal(set.status().message());
      Options without = machine_.options;
      without.choices = nullptr;
      GraphChoices refused = std::move(state.choices);
      state = {};
      reports.clear();
      set = MakeKernels(part, without, &state, &reports);
      state.choices = std::move(refused);
      state.choices.refusal = refusal;
    }
    if (!set.ok()) return set.status();
    const std::string label = is_on_mesh() ? absl::StrCat("# segment ", part.segment, "\n") : "";
    AddReports(label, std::move(reports), &program_.passes);
    absl::StrAppend(&program_.partition_text, label, partition::Print(state.partition));
    AddCalls(part, state, *std::move(set));
    updates_in_place_ = state.updates_in_place && !part.graph.updates.empty();
    program_.choices.push_back(state.choices);
    return AddCopies(part, state);
  }

  absl::StatusOr<KernelSet> MakeKernels(const Part& part, const Options& options, PassState* state,
                                        std::vector<PassReport>* reports) {
    // Known also if a pass fails because of them.
    GraphChoices choices;
    absl::Status rehearsed;
    Options watched = options;
    if (options.choices) {
      watched.choices = [&](const std::string& graph,
                            const drivers::Target& target) -> std::optional<std::string> {
        std::optional<std::string> text = options.choices(graph, target);
        choices = {.key = graph, .text = text.value_or(""), .refusal = ""};
        rehearsed = RehearseChoices(part, choices, options);
        return rehearsed.ok() ? text : std::nullopt;
      };
    }
    absl::StatusOr<PassState> made =
        RunPasses(part.graph, machine_.target, {.first = "normalize"}, watched, reports);
    state->choices = choices;
    if (!rehearsed.ok() && !IsOfDecision(rehearsed)) return rehearsed;
    if (!made.ok()) return made.status();
    *state = *std::move(made);
    if (!rehearsed.ok()) {
      state->choices = std::move(choices);
      state->choices.refusal = std::string(rehearsed.message());
    }
    return CompileKernels(state->partition, machine_.code, machine_.target, options, reports);
  }

  absl::Status RehearseChoices(const Part& part, const GraphChoices& choices,
                               const Options& options) const {
    if (choices.text.empty() || options.kernel_compiler == nullptr) return absl::OkStatus();
    return options.kernel_compiler
        ->Compile(
            RehearsalOfChoices(part.graph, choices.key, choices.text, machine_.target, options))
        .status();
  }

  void AddCalls(const Part& part, const PassState& state, KernelSet set) {
    std::vector<int> number_of;
    for (CompiledKernel& kernel : set.kernels) number_of.push_back(NumberOf(std::move(kernel)));
    absl::flat_hash_map<const ir::Node*, int> values;
    for (const ir::Node* value : partition::NumberedValues(state.graph))
      values.emplace(value, static_cast<int>(values.size()));
    for (const GroupKernel& group : set.groups) {
      KernelCall call{number_of[group.kernel], {}};
      for (const int tensor : group.tensors) {
        call.arguments.push_back(ArgumentOf(part, state, tensor));
        const auto value = values.find(state.partition.tensors[tensor].node);
        call.values.push_back(value == values.end() ? -1 : value->second);
      }
      program_.calls.push_back(std::move(call));
    }
    // Segments run one after the other, so their intermediate results share the same bytes.
    arena_bytes_ = std::max(arena_bytes_, own_bytes_ + state.memory.arena_bytes);
    program_.arena_bytes_without_reuse += state.memory.arena_bytes_without_reuse;
  }

  // Returns the number of a kernel. Segments share kernels; the text identifies one.
  int NumberOf(CompiledKernel kernel) {
    const auto [known, is_new] =
        kernels_.try_emplace(kernel.ir, static_cast<int>(program_.kernels.size()));
    if (is_new) program_.kernels.push_back(std::move(kernel));
    return known->second;
  }

  Argument ArgumentOf(const Part& part, const PassState& state, int tensor) const {
    const partition::Tensor& t = state.partition.tensors[tensor];
    switch (t.kind) {
      case partition::Tensor::Kind::kInput:
        return part.inputs[t.index];
      case partition::Tensor::Kind::kOutput:
      case partition::Tensor::Kind::kUpdate:
        return ResultOf(part, t.kind, t.index);
      case partition::Tensor::Kind::kIntermediate:
        break;
    }
    return {slots_.arena(), own_bytes_ + state.memory.offsets[tensor],
            ir::BytesOf(t.dtype, t.shape)};
  }

  static const Argument& ResultOf(const Part& part, partition::Tensor::Kind kind, int index) {
    const bool is_output = kind == partition::Tensor::Kind::kOutput;
    return part.results[(is_output ? 0 : part.graph.outputs.size()) + index];
  }

  // Bytes of any dtype are copied as words, so that fetches of one size share a kernel.
  absl::Status AddFetch(int segment, const shard::Fetch& fetch) {
    return AddCopy(segment, ir::DType::kInt32, {fetch.source.bytes / ir::SizeOf(ir::DType::kInt32)},
                   slots_.ArgumentOf(fetch.source), slots_.ArgumentOf(fetch.destination));
  }

  absl::Status AddCopy(int segment, ir::DType dtype, const ir::Shape& shape, const Argument& source,
                       const Argument& destination) {
    graph::Graph graph;
    graph.context = std::make_shared<ir::Context>();
    graph.inputs = {{dtype, shape}};
    const ir::Node* input = graph.context->Get(ir::Op::kInput, dtype, shape, {}, ir::InputAttr{0});
    graph.outputs = {graph.context->Get(ir::Op::kContiguous, dtype, shape, {input})};
    return AddPart({segment, graph, {source}, {destination}});
  }

  absl::Status AddCopies(const Part& part, const PassState& state) {
    for (const partition::Copy& copy : state.partition.copies) {
      const partition::Tensor& tensor = state.partition.tensors[copy.tensor];
      const Argument source = ArgumentOf(part, state, copy.tensor);
      const Argument& destination = ResultOf(part, copy.destination, copy.index);
      if (IsLast(part.segment)) {
        program_.copies.push_back({source, destination});
        continue;
      }
      absl::Status status = AddCopy(part.segment, tensor.dtype, tensor.shape, source, destination);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Returns whether nothing follows the segment. A program's copies run at its end, but a later
  // segment may read an earlier one's results and overwrites its arena, so copies between segments
  // are kernels.
  bool IsLast(int segment) const {
    const auto end = static_cast<int>(sharded_.segments.size());
    return segment + 1 == end &&
           (sharded_.meetings.empty() || sharded_.meetings.back().segment < end);
  }

  const shard::Program& sharded_;
  const KernelMachine machine_;
  CompiledProgram& program_;
  SlotMap slots_;
  const int64_t own_bytes_;
  int64_t arena_bytes_ = 0;
  bool updates_in_place_ = false;
  absl::flat_hash_map<std::string, int> kernels_;  // by text
};

absl::Status CheckAlignment(const drivers::Target& target) {
  if (target.limits.buffer_alignment <= shard::kPublishedAlignment) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a graph on a mesh cannot use a device that aligns buffers to ",
                   target.limits.buffer_alignment, " bytes; at most ", shard::kPublishedAlignment,
                   " are allowed"));
}

}  // namespace

absl::StatusOr<CompiledProgram> Compile(const graph::Graph& graph, const drivers::Target& target,
                                        const Options& options) {
  const absl::StatusOr<const codegen::MachineCode*> machine = FindMachineCode(target.architecture);
  if (!machine.ok()) return machine.status();
  if (graph.sharding != nullptr) {
    if (absl::Status status = CheckAlignment(target); !status.ok()) return status;
  }
  CompiledProgram program;
  // The graph as given, before any pass.
  program.graph_text = graph::Print(graph);
  absl::StatusOr<PassState> state =
      RunPasses(graph, target, {.last = "shard"}, options, &program.passes);
  if (!state.ok()) return state.status();
  if (!state->sharded) state->sharded = shard::OnOneDevice(state->graph);
  absl::Status status =
      SegmentCompiler(*state->sharded, {**machine, target, options}, program).Run();
  if (!status.ok()) return status;
  return program;
}

absl::StatusOr<std::string> Disassemble(const drivers::KernelImage& image,
                                        const drivers::Target& target) {
  if (image.code.empty()) return "";
  const absl::StatusOr<const codegen::MachineCode*> machine = FindMachineCode(image.architecture);
  if (!machine.ok()) return machine.status();
  return (*machine)->disassemble(image, target);
}

}  // namespace kiln::compiler
