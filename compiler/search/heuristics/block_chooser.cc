#include "compiler/search/heuristics/block_chooser.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/partition/limits.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/threads/synchronize.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/forms/block.h"
#include "compiler/search/forms/block_tile.h"
#include "compiler/search/forms/forms.h"
#include "compiler/search/forms/matrix.h"
#include "compiler/search/write_setting.h"

namespace kiln::search {
namespace {

// The minimum number of points of a row, or terms of a sum, for threads to share it.
constexpr int64_t kSharedMin = 64;
// The same for a sum read across memory, which gains from sharing only if there are few sums.
constexpr int64_t kLongSharedSum = 256;

// Returns whether a point of the grid has work for many threads.
bool RowsAreLong(const kernel::Kernel& kernel, const ScheduleWriter& axes) {
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    const int64_t points =
        axes.Product(axes.ranges(stage)) * axes.Product(axes.reduce_ranges(stage));
    if (points >= kSharedMin) return true;
  }
  return false;
}

// Returns whether neighbours along the axis are adjacent in memory that the stage reads.
bool RunsAlongMemory(const StageView& view, int axis) {
  const std::vector<kernel::Store>& stores = view.stage().stores;
  return std::any_of(stores.begin(), stores.end(), [&](const kernel::Store& store) {
    return StepOf(store.value, view.axes[axis].range) == 1;
  });
}

// Returns whether threads should share each sum of the stage, instead of each computing one.
bool SharesSum(const StageView& view) {
  const int64_t terms = view.axes.Product(view.reduce);
  if (view.reduce.empty() || terms < kSharedMin) return false;
  if (RunsAlongMemory(view, view.reduce.back())) return true;
  const drivers::Limits& limits = view.target.limits;
  const int64_t wanted = int64_t{limits.compute_units} * limits.threads_per_unit;
  return terms >= kLongSharedSum && view.axes.Product(view.parallel) < wanted;
}

Form ChooseForm(const StageView& view) {
  if (view.shared) {
    const bool few = view.axes.Product(view.parallel) < kBlockThreadsMin;
    const bool long_sum = view.axes.Product(view.reduce) >= kBlockThreadsMin;
    return few && long_sum ? Form::kBlockSum : Form::kBlockPoints;
  }
  if (StartMatrixTile(view, nullptr)) return Form::kMatrixTile;
  if (PrefersBlockTile(view)) return Form::kBlockTile;
  return SharesSum(view) ? Form::kBlockSum : Form::kBlockPoints;
}

// Returns the register bytes, over all threads of a block, of the schedule's sums and tiles. The
// rest of the computation needs some registers as well.
int64_t RegisterBytes(const schedule::LoopProgram& program) {
  int64_t bytes = 0;
  for (const schedule::LoopBuffer& buffer : program.buffers) {
    if (buffer.space != schedule::Space::kRegister) continue;
    bytes += buffer.elements * ir::SizeOf(buffer.dtype);
  }
  return bytes * program.threads;
}

bool IsLegal(const StageView& view, const Values& values) {
  const FormRow& row = RowOf(values.form());
  const std::vector<KnobValues> knobs = row.knobs(view, values);
  return std::all_of(knobs.begin(), knobs.end(),
                     [&](const KnobValues& of) { return of.Admits(values[of.knob]); }) &&
         (row.check == nullptr || row.check(view, values).ok());
}

// Halves a tile, along its longer side if that is legal. Returns false if the stage has no tile or
// none is smaller.
bool MakeTileSmaller(const StageView& view, Values* values) {
  if (values->form() != Form::kMatrixTile && values->form() != Form::kBlockTile) return false;
  std::pair<Knob, Knob> sides[] = {{Knob::kRows, Knob::kThreadRows},
                                   {Knob::kColumns, Knob::kThreadColumns}};
  if ((*values)[Knob::kRows] < (*values)[Knob::kColumns]) std::swap(sides[0], sides[1]);
  for (const auto& [places, part] : sides) {
    Values smaller = *values;
    smaller.Set(places, (*values)[places] / 2);
    smaller.Set(part, std::min((*values)[part], smaller[places]));
    if (!IsLegal(view, smaller)) continue;
    *values = std::move(smaller);
    return true;
  }
  return false;
}

}  // namespace

absl::Status CheckBlocks(const kernel::Kernel& kernel, const drivers::Target& target,
                         const schedule::Schedule& schedule) {
  if (target.limits.threads_per_block < partition::kBlockThreadsNeeded) {
    return Unfit("the device has too few threads for blocks");
  }
  auto applied = schedule::Apply(kernel, schedule);
  if (!applied.ok()) return applied.status();
  const schedule::LoopProgram program =
      schedule::Synchronize(*std::move(applied), target.limits.threads_per_shuffle);
  if (program.shared_bytes > partition::SharedBytes(target.limits)) {
    return Unfit("the block needs more shared memory than there is");
  }
  if (program.threads > target.limits.threads_per_block) {
    return Unfit("the block has too many threads");
  }
  if (RegisterBytes(program) > target.limits.register_bytes_per_unit / 2) {
    return Unfit("the block needs too many registers");
  }
  return HasBarrierInBranch(program) ? Unfit("a barrier would be in a branch") : absl::OkStatus();
}

std::optional<Setting> ChooseBlockSetting(const kernel::Kernel& kernel,
                                          const drivers::Target& target) {
  if (target.limits.threads_per_block < partition::kBlockThreadsNeeded) return std::nullopt;
  schedule::Schedule scratch;
  ScheduleWriter axes(kernel, &scratch);
  bool gains = schedule::SharesGrid(kernel) && RowsAreLong(kernel, axes);
  if (schedule::SharesGrid(kernel) && !gains) return std::nullopt;
  Setting setting;
  std::vector<StageView> views;
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    const StageView& view = views.emplace_back(FuseStage(kernel, stage, target, &axes));
    const Form form = ChooseForm(view);
    gains |= form != Form::kBlockPoints;
    setting.parts[stage] = *StartOf(view, form);
  }
  if (!gains) return std::nullopt;
  // Small tiles are better than none, which would read each factor once for each result.
  while (!CheckBlocks(kernel, target, WriteSetting(kernel, target, setting)).ok()) {
    const bool smaller = std::any_of(views.begin(), views.end(), [&](const StageView& view) {
      return MakeTileSmaller(view, &setting.parts[view.number]);
    });
    if (!smaller) return std::nullopt;
  }
  return setting;
}

std::optional<schedule::Schedule> ChooseBlocks(const kernel::Kernel& kernel,
                                               const drivers::Target& target) {
  const std::optional<Setting> setting = ChooseBlockSetting(kernel, target);
  if (!setting) return std::nullopt;
  return WriteSetting(kernel, target, *setting);
}

}  // namespace kiln::search
