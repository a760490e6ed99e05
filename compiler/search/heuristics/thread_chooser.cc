#include "compiler/search/heuristics/thread_chooser.h"

#include "compiler/search/forms/forms.h"
#include "compiler/search/heuristics/block_chooser.h"
#include "compiler/search/write_setting.h"

namespace kiln::search {

Setting ChooseThreadSetting(const kernel::Kernel& kernel, const drivers::Target& target) {
  if (auto blocks = ChooseBlockSetting(kernel, target)) return *std::move(blocks);
  Setting setting;
  schedule::Schedule scratch;
  ScheduleWriter axes(kernel, &scratch);
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    setting.parts[stage] = *StartOf(FuseStage(kernel, stage, target, &axes), Form::kThread);
  }
  return setting;
}

schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target) {
  return WriteSetting(kernel, target, ChooseThreadSetting(kernel, target));
}

}  // namespace kiln::search
