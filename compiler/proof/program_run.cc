#include "compiler/proof/program_run.h"

#include <algorithm>

#include "compiler/ir/str_cat.h"
#include "compiler/kernel/in_place.h"

namespace kiln::proof {

using ir::Node;
using schedule::Branch;
using schedule::Loop;
using schedule::LoopBuffer;
using schedule::LoopKind;
using schedule::Space;
using schedule::Statement;
using schedule::Store;

namespace {

// Bound on the end checks of one copy.
constexpr int kEndChecksMax = 12;

int CountStores(const std::vector<Statement>& body) {
  int stores = 0;
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      stores += CountStores(loop->body);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      stores += CountStores(branch->then_body) + CountStores(branch->else_body);
    } else {
      stores += std::holds_alternative<Store>(statement.node) ? 1 : 0;
    }
  }
  return stores;
}

}  // namespace

ProgramRun::ProgramRun(const kernel::Kernel& kernel, const schedule::Plan& plan,
                       const schedule::LoopProgram& program)
    : kernel_(kernel), plan_(plan), program_(program), replaced_by_(kernel.buffers.size()) {
  for (const schedule::Section& section : program.sections) stores_ += CountStores(section.body);
  // The threads of a block make their accesses at once, so none of their kernels works in place.
  if (program.threads > 1) return;
  for (const kernel::InPlace& pair : kernel::FindInPlace(kernel))
    replaced_by_[pair.read].push_back(pair.written);
}

absl::StatusOr<const Memory*> ProgramRun::Run(const Samples& samples, uint64_t seed,
                                              bool backwards) {
  samples_ = &samples;
  seed_ = seed;
  backwards_ = backwards;
  globals_.clear();
  ClearFailure();
  for (const schedule::Section& section : program_.sections) RunTasks(section, 0);
  if (failed()) return absl::InternalError(failure());
  return &globals_;
}

void ProgramRun::RunTasks(const schedule::Section& section, size_t depth) {
  if (failed()) return;
  if (depth == section.grid.size()) {
    // Reading what another task left in scratch or registers is a fault.
    nearby_.clear();
    copies_.clear();
    return RunBody(section.body);
  }
  const Node* range = section.grid[depth];
  const int axis = AxisOf(range);
  if (axis < 0 || plan_.axes[axis].reduce || plan_.axes[axis].ordered) {
    return Fail("tasks run over an axis that must not be divided among tasks");
  }
  std::vector<int64_t> values = (*samples_)[axis];
  if (backwards_) std::reverse(values.begin(), values.end());
  if (ir::ExtentOf(range) > plan_.axes[axis].extent) return Fail("more tasks than the axis has");
  for (const int64_t value : values) {
    if (value >= ir::ExtentOf(range)) continue;
    SetRange(range, value);
    RunTasks(section, depth + 1);
  }
}

int ProgramRun::AxisOf(const Node* range) const {
  const auto found = program_.axes.find(range);
  return found == program_.axes.end() ? -1 : found->second;
}

std::optional<int> ProgramRun::AxisOf(const Statement& statement) const {
  const auto* loop = std::get_if<Loop>(&statement.node);
  if (loop == nullptr) return std::nullopt;
  const int axis = AxisOf(loop->range);
  return axis < 0 ? std::nullopt : std::optional<int>(axis);
}

void ProgramRun::RunBody(const std::vector<Statement>& body) {
  for (size_t i = 0; i < body.size() && !failed();) {
    const Statement& statement = body[i];
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      const std::optional<int> axis = AxisOf(statement);
      if (!axis.has_value()) {
        i = MeetCopy(body, i);
        continue;
      }
      RunLoop(*loop, *axis);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      RunBody(Evaluate(branch->condition) != 0 ? branch->then_body : branch->else_body);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      RunStore(*store);
    } else if (const auto* reduce = std::get_if<schedule::ThreadReduce>(&statement.node)) {
      Write(reduce->buffer, Evaluate(reduce->index), Evaluate(reduce->value));
    }
    ++i;
  }
}

void ProgramRun::RunLoop(const Loop& loop, int axis) {
  const int64_t extent_max = ir::ExtentOf(loop.range);
  const int64_t extent = loop.extent == nullptr ? extent_max : Evaluate(loop.extent);
  if (extent > extent_max || extent_max > plan_.axes[axis].extent) {
    return Fail(StrCat("a loop of ", std::max(extent, extent_max), " iterations over an axis of ",
                       std::min(extent_max, plan_.axes[axis].extent)));
  }
  std::vector<int64_t> values = (*samples_)[axis];
  const bool threads = loop.kind == LoopKind::kThread;
  if (threads && backwards_) std::reverse(values.begin(), values.end());
  const int64_t thread = thread_;
  for (const int64_t value : values) {
    if (failed()) return;
    if (value >= extent) continue;
    SetRange(loop.range, value);
    if (loop.kind == LoopKind::kVector) lane_ = value;
    if (threads) thread_ = thread + value * loop.stride;
    RunBody(loop.body);
  }
  if (loop.kind == LoopKind::kVector) lane_ = 0;
  thread_ = thread;
}

Element ProgramRun::ElementOf(int buffer, int64_t index) const {
  // Each thread has its own registers and scratch, and a register slot holds all lanes; each of
  // these is a separate element here.
  const LoopBuffer& of = program_.buffers[buffer];
  if (!IsPrivate(of.space)) return {buffer, index};
  const int64_t slot = index * program_.threads + thread_;
  return {buffer, of.lanes > 1 ? slot * of.lanes + lane_ : slot};
}

// Returns whether the index is in the padding that extends a local to whole vectors. A lane beyond
// a ragged end may read it, and the value is not used.
bool ProgramRun::IsPadding(int buffer, int64_t index) const {
  const LoopBuffer& of = program_.buffers[buffer];
  const bool padded = of.space == Space::kScratch || of.space == Space::kShared;
  if (!padded || index < of.elements) return false;
  const int64_t size = ir::SizeOf(of.dtype);
  return index * size < (of.elements * size + 63) / 64 * 64;
}

bool ProgramRun::IsInside(int buffer, int64_t index, const char* what) {
  const LoopBuffer& of = program_.buffers[buffer];
  if (index >= 0 && index < of.elements) return true;
  Fail(StrCat(what, " element ", index, " of ", of.elements, " of ", of.name));
  return false;
}

bool ProgramRun::IsKernelLocal(int buffer) const {
  return buffer >= program_.num_arguments && buffer < static_cast<int>(kernel_.buffers.size());
}

bool ProgramRun::IsReplaced(int buffer, int64_t index) const {
  const std::vector<int>& by = replaced_by_[buffer];
  return std::any_of(by.begin(), by.end(), [&](int written) {
    return globals_.contains(Element{written, index});
  });
}

void ProgramRun::RunStore(const Store& store) {
  // Evaluated even if it is not stored, as vector lanes are: its loads must be in bounds.
  read_replaced_ = false;
  const Value value = Evaluate(store.value);
  if (store.valid != nullptr && Evaluate(store.valid) == 0) return;
  if (read_replaced_) {
    return Fail(StrCat("reads an element after its replacement was written, for ",
                       program_.buffers[store.buffer].name));
  }
  reached_.insert(&store);
  Write(store.buffer, Evaluate(store.index), value);
}

void ProgramRun::Write(int buffer, int64_t index, Value value) {
  if (!IsInside(buffer, index, "writes")) return;
  if (program_.buffers[buffer].space != Space::kGlobal) {
    // A copy of one element has no loop. It replaces an earlier, longer one.
    copies_.erase(buffer);
    nearby_[ElementOf(buffer, index)] = value;
    return;
  }
  Written& written = globals_[{buffer, index}];
  written.value = value;
  ++written.times;
}

Value ProgramRun::Load(int buffer, ir::DType dtype, int64_t index) {
  if (IsPadding(buffer, index)) return InputElement(seed_, buffer, dtype, index);
  if (!IsInside(buffer, index, "reads")) return 0;
  const LoopBuffer& from = program_.buffers[buffer];
  if (from.space == Space::kGlobal) {
    read_replaced_ = read_replaced_ || IsReplaced(buffer, index);
    if (!from.read_only) {
      if (const auto found = globals_.find({buffer, index}); found != globals_.end()) {
        return found->second.value;
      }
    }
    return InputElement(seed_, buffer, dtype, index);
  }
  if (copies_.contains(buffer)) return LoadCopy(buffer, index);
  if (const auto found = nearby_.find(ElementOf(buffer, index)); found != nearby_.end()) {
    return found->second;
  }
  if (IsKernelLocal(buffer)) return UnwrittenLocal(buffer, dtype);
  Fail(StrCat("reads element ", index, " of ", from.name, ", which was never written"));
  return 0;
}

// Combines lanes or threads, the only reductions of a loop program.
void ProgramRun::ForEachPoint(absl::Span<const Node* const> ranges,
                              absl::FunctionRef<void()> visit) {
  const int axis = ranges.size() == 1 ? AxisOf(ranges[0]) : -1;
  if (axis < 0) return Fail("combines lanes that belong to no axis");
  const int64_t lane = lane_;
  const int64_t thread = thread_;
  const bool threads = plan_.axes[axis].binding == schedule::Binding::kThread;
  for (const int64_t value : (*samples_)[axis]) {
    if (value >= ir::ExtentOf(ranges[0])) break;
    SetRange(ranges[0], value);
    if (threads) {
      thread_ = thread + value * plan_.axes[axis].stride;
    } else {
      lane_ = value;
    }
    visit();
  }
  lane_ = lane;
  thread_ = thread;
}

size_t ProgramRun::MeetCopy(const std::vector<Statement>& body, size_t begin) {
  // The copying statements are found once and memoised.
  std::unique_ptr<std::vector<CopyStore>>& known = copy_stores_[&body[begin]];
  const bool is_new = known == nullptr;
  if (is_new) known = std::make_unique<std::vector<CopyStore>>();
  std::vector<CopyStore>& stores = *known;
  size_t end = begin;
  std::vector<const Statement*> statements;
  for (; end < body.size(); ++end) {
    if (!std::holds_alternative<Loop>(body[end].node) || AxisOf(body[end]).has_value()) break;
    statements.push_back(&body[end]);
  }
  if (is_new && !FindCopyStores(statements, &stores)) {
    Fail("loops that are not an axis do more than copy");
    return end;
  }
  for (const CopyStore& store : stores) copies_[store.store->buffer].stores = nullptr;
  for (const CopyStore& store : stores) {
    Copy& copy = copies_[store.store->buffer];
    if (copy.stores != nullptr) continue;
    copy.stores = &stores;
    copy.environment = environment();
    copy.known.clear();
  }
  for (const CopyStore& store : stores) {
    if (checks_[store.store]++ < kEndChecksMax) CheckEnds(store);
  }
  return end;
}

void ProgramRun::CheckEnds(const CopyStore& store) {
  std::vector<int64_t> values(store.loops.size());
  ++turn_;
  // All loops at their last iterations, all one before (the border of a window masks the last
  // ones), and mixed.
  for (const uint64_t ends : {~uint64_t{0}, uint64_t{0x5555555555555555}, Mix(turn_, 0)}) {
    for (size_t i = 0; i < values.size(); ++i) {
      const Loop& loop = *store.loops[i];
      const int64_t extent =
          loop.extent == nullptr ? ir::ExtentOf(loop.range) : Evaluate(loop.extent);
      const int64_t places[] = {0, std::max<int64_t>(0, extent - 2), 0, extent - 1};
      // Two bits choose the iteration of each loop.
      values[i] = places[ends >> (2 * i % 64) & 3];
      if (extent < 1) return;
    }
    // Lanes are the innermost loop. All are checked, since masks begin anywhere.
    for (int64_t lane = ir::ExtentOf(store.loops.back()->range); lane-- > 0 && !failed();) {
      values.back() = lane;
      if (!ValueAt(store, values).has_value()) continue;
      IsInside(store.store->buffer, Evaluate(store.store->index), "writes");
    }
  }
}

// Returns nothing if the iteration does not exist or writes nothing.
std::optional<Value> ProgramRun::ValueAt(const CopyStore& store, absl::Span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) SetRange(store.loops[i]->range, values[i]);
  for (size_t i = 0; i < values.size(); ++i) {
    const Node* extent = store.loops[i]->extent;
    if (extent != nullptr && values[i] >= Evaluate(extent)) return std::nullopt;
  }
  if (store.store->valid != nullptr && Evaluate(store.store->valid) == 0) return std::nullopt;
  return Evaluate(store.store->value);
}

Value ProgramRun::LoadCopy(int buffer, int64_t index) {
  Copy& copy = copies_[buffer];
  if (const auto known = copy.known.find(index); known != copy.known.end()) return known->second;
  // The copy ran with other values of the ranges, perhaps before some of them had slots.
  Environment here = copy.environment;
  here.resize(environment().size());
  std::swap(here, environment());
  std::optional<Value> value;
  for (const CopyStore& store : *copy.stores) {
    if (store.store->buffer != buffer) continue;
    for (const Loop* loop : store.loops) SetRange(loop->range, 0);
    const int64_t constant = Evaluate(store.store->index);
    ForEachSource(store, index, constant, [&](absl::Span<const int64_t> values) {
      const std::optional<Value> found = ValueAt(store, values);
      if (!found.has_value()) return;
      reached_.insert(store.store);
      if (value.has_value() && *value != *found) Fail("copies two values to one element");
      value = found;
    });
  }
  here.resize(environment().size());
  std::swap(here, environment());
  if (!value.has_value()) {
    Fail(StrCat("reads element ", index, " of ", program_.buffers[buffer].name,
                ", which the copy does not write"));
  }
  copy.known[index] = value.value_or(0);
  return copy.known[index];
}

}  // namespace kiln::proof
