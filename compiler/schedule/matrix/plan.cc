#include "compiler/schedule/matrix/plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/directives/words.h"
#include "compiler/schedule/plan_order.h"

namespace kiln::schedule {
namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kGroups = 8;
constexpr int64_t kColumns = 8;
constexpr int64_t kColumnsEach = 2;

class MatrixFinder {
 public:
  MatrixFinder(const Plan& plan, const StagePlan& stage) : plan_(plan), stage_(stage) {}

  // Leaves `out` empty if the order has no matrix axes. Returns an error if it has some in another
  // form.
  absl::Status Find(std::optional<MatrixAxes>* out) const {
    const std::vector<int>& order = stage_.order;
    std::vector<int> matrix, threads;
    for (const int axis : order) {
      if (plan_.axes[axis].binding == Binding::kMatrix) matrix.push_back(axis);
      if (plan_.axes[axis].binding == Binding::kThread) threads.push_back(axis);
    }
    if (matrix.empty()) return absl::OkStatus();
    const bool innermost =
        matrix.size() == 3 && std::equal(matrix.begin(), matrix.end(), order.end() - 3);
    if (!innermost || threads.size() < 2) return Bad("takes the three innermost axes");
    const MatrixAxes axes = {matrix[0], matrix[1], matrix[2], threads[threads.size() - 2],
                             threads.back()};
    if (!AreParts(axes.rows, axes.group, kRows, kGroups)) {
      return Bad("takes 16 rows, split by 8, the inner part in the last threads but one");
    }
    if (!AreParts(axes.member, axes.columns, kColumns, kColumnsEach)) {
      return Bad("takes 8 columns, split by 2, the outer part in the last threads");
    }
    const Axis& terms = plan_.axes[axes.terms];
    if (!terms.reduce || terms.partial || (terms.extent != 16 && terms.extent != 8)) {
      return Bad("adds up 16 or 8 terms");
    }
    for (const int axis : {axes.rows, axes.columns}) {
      if (plan_.axes[axis].reduce) return Bad("takes rows and columns of the result");
    }
    for (const int axis : {axes.rows, axes.columns, axes.terms, axes.group, axes.member}) {
      if (IsPartOfRaggedPiece(plan_, axis)) return Bad("takes whole tiles");
    }
    if (stage_.staged.size() != 2) return Bad("takes factors that are staged");
    *out = axes;
    return absl::OkStatus();
  }

 private:
  absl::Status Bad(const char* why) const {
    return BadDirective(Order{plan_.axes[stage_.order[0]].stage, stage_.order}.Print(),
                        std::string("a matrix unit ") + why);
  }

  bool AreParts(int outer, int inner, int64_t extent, int64_t factor) const {
    const int parent = plan_.axes[outer].parent;
    return parent >= 0 && plan_.axes[parent].outer == outer && plan_.axes[parent].inner == inner &&
           plan_.axes[parent].extent == extent && plan_.axes[parent].factor == factor;
  }

  const Plan& plan_;
  const StagePlan& stage_;
};

}  // namespace

absl::Status FinishMatrices(Plan* plan) {
  for (StagePlan& stage : plan->stages) {
    absl::Status status = MatrixFinder(*plan, stage).Find(&stage.matrix);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < plan->axes.size(); ++i) {
    const Axis& axis = plan->axes[i];
    if (!axis.padded() || !axis.reduce || plan->stages[axis.stage].matrix) continue;
    return BadDirective(Pad{static_cast<int>(i), axis.extent}.Print(),
                        "only sums of matrix units can have terms that are zero");
  }
  return absl::OkStatus();
}

}  // namespace kiln::schedule
