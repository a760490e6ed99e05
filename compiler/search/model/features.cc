#include "compiler/search/model/features.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/search/contraction/padding.h"
#include "compiler/search/stage/cost.h"
#include "proto/check/check.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;
using schedule::LoopKind;
using schedule::LoopProgram;

constexpr int64_t kFeatureLineBytes = 64;

// Not an enum class, because the values index arrays.
struct Feature {
  enum Number : size_t {
    kVectorOperations,
    kFusedOperations,
    kScalarOperations,
    kExpensiveOperations,
    kWholeLoads,
    kBroadcasts,
    kShuffledLoads,
    kGathers,
    kRegisterAccesses,
    kWholeStores,
    kScalarStores,
    kScatteredStores,
    kMaskedStores,
    kHorizontals,
    kIterations,
    kIndexOperations,
    kCodeSize,
    kRegisters,
    kScratchBytes,
    kChain,
    kTasks,
    kImbalance,
    kLanesUsed,
    kNearTraffic,
    kPrivateTraffic,
    kFarTraffic,
    kStreamedBytes,
    kFetches,
    kFeatures,
  };
};

constexpr std::string_view kFeatureNames[] = {
    "vector operations",  // arithmetic on whole vectors
    "fused operations",   // of these, fused multiply-adds
    "scalar operations",
    "expensive operations",  // divisions, roots and functions
    "whole loads",           // adjacent elements to lanes
    "broadcasts",            // one element to all lanes, or a scalar
    "shuffled loads",
    "gathers",
    "register accesses",
    "whole stores",
    "scalar stores",
    "scattered stores",
    "masked stores",
    "horizontal reductions",
    "iterations",        // of loops that are not unrolled
    "index operations",  // divisions in indices
    "code size",         // of the longest unrolled body
    "registers",         // as a share of those that the target has
    "scratch bytes",
    "chain",  // additions that wait for the one before
    "tasks",
    "imbalance",     // how much longer the busiest unit works than the average
    "lanes used",    // bytes of a vector as a share of the target's
    "near traffic",  // lines that the first cache misses
    "private traffic",
    "far traffic",
    "streamed bytes",
    "prefetches",
};
static_assert(std::size(kFeatureNames) == Feature::kFeatures);

bool IsExpensive(Op op) {
  switch (op) {
    case Op::kReciprocal:
    case Op::kSqrt:
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
    case Op::kDiv:
    case Op::kPow:
      return true;
    default:
      return false;
  }
}

// A loop around a statement, outermost first.
struct Around {
  const Node* range = nullptr;  // null: a branch, taken in a share of the iterations
  double extent = 1;
  LoopKind kind = LoopKind::kSerial;
};

// The elements that an access touches: `bytes` side by side at each of `places`.
struct Footprint {
  double bytes = 0;
  double places = 1;
  double lines() const {
    return places * std::max(1.0, bytes / static_cast<double>(kFeatureLineBytes));
  }
};

struct Access {
  const Node* index = nullptr;
  int buffer = 0;
  int64_t size = 4;  // of an element
  std::vector<Around> loops;
};

// Returns the footprint of the loops from number `first` on.
Footprint FootprintOf(const Access& access, size_t first) {
  Footprint footprint{.bytes = static_cast<double>(access.size)};
  const kernel::Sum sum = kernel::SumOf(access.index);
  std::vector<std::pair<double, double>> steps;  // bytes from one value to the next; values
  for (size_t i = first; i < access.loops.size(); ++i) {
    const Node* range = access.loops[i].range;
    const double extent = access.loops[i].extent;
    const auto step = static_cast<double>(std::abs(sum.Coefficient(range)));
    bool other = false;
    for (const auto& [atom, coefficient] : sum.terms)
      other |= atom != range && kernel::DependsOn(atom, range);
    if (other) {
      footprint.places *= extent;
    } else if (step > 0) {
      steps.emplace_back(step * static_cast<double>(access.size), extent);
    }
  }
  std::sort(steps.begin(), steps.end());
  for (const auto& [step, extent] : steps) {
    if (step <= footprint.bytes + static_cast<double>(kFeatureLineBytes) / 2) {
      footprint.bytes = std::max(footprint.bytes, step) * extent;
    } else {
      footprint.places *= extent;
    }
  }
  return footprint;
}

class FeatureCounter {
 public:
  FeatureCounter(const LoopProgram& program, const drivers::Target& target)
      : program_(program), target_(target), counts_(Feature::kFeatures, 0) {}

  Features Run() {
    double longest = 0, all = 0;
    const int units = std::max(target_.limits.compute_units, 1);
    for (const schedule::Section& section : program_.sections) {
      std::vector<Around> around;
      double tasks = 1;
      for (const Node* range : section.grid) {
        const auto extent = static_cast<double>(ir::ExtentOf(range));
        around.push_back({range, extent, LoopKind::kSerial});
        tasks *= extent;
      }
      VisitAll(section.body, &around, 1);
      counts_[Feature::kTasks] += tasks;
      longest += std::ceil(tasks / units);
      all += tasks / units;
    }
    counts_[Feature::kImbalance] = all > 0 ? longest / all : 1;
    counts_[Feature::kScratchBytes] =
        static_cast<double>(program_.scratch_bytes + program_.shared_bytes);
    CountRegisters();
    const drivers::Limits& limits = target_.limits;
    counts_[Feature::kNearTraffic] = Traffic(limits.near_memory_bytes);
    counts_[Feature::kPrivateTraffic] = Traffic(limits.private_cache_bytes);
    counts_[Feature::kFarTraffic] = Traffic(limits.private_cache_bytes * 16);
    for (double& count : counts_) count = std::log(std::max(count, 0.0) + 1e-3);
    return std::move(counts_);
  }

 private:
  double VectorShare(const Node* node) const {
    const double bytes = lanes_ * std::max(ir::SizeOf(node->dtype()), 1);
    return std::max(1.0, std::ceil(bytes / std::max(target_.limits.vector_bytes, 1)));
  }

  void VisitAll(const std::vector<schedule::Statement>& body, std::vector<Around>* around,
                double copies) {
    for (const schedule::Statement& statement : body) Visit(statement, around, copies);
  }

  void Visit(const schedule::Statement& statement, std::vector<Around>* around, double copies) {
    if (const auto* loop = std::get_if<schedule::Loop>(&statement.node)) {
      VisitLoop(*loop, around, copies);
    } else if (const auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
      // A branch without another way skips padding (schedule/directives/skip.h). Of others, the
      // first way is the usual one: whole tiles.
      const bool skips = branch->else_body.empty();
      const double share = skips ? HeldShare({&branch->condition, 1}) : 1;
      if (share < 1) around->push_back({nullptr, share, LoopKind::kSerial});
      VisitAll(branch->then_body, around, copies);
      if (share < 1) around->pop_back();
    } else if (const auto* store = std::get_if<schedule::Store>(&statement.node)) {
      VisitStore(*store, *around, copies);
    } else if (const auto* reduce = std::get_if<schedule::ThreadReduce>(&statement.node)) {
      counts_[Feature::kHorizontals] += Times(*around, nullptr);
      Count(reduce->value, *around);
    } else if (std::holds_alternative<schedule::Fetch>(statement.node)) {
      counts_[Feature::kFetches] += Times(*around, nullptr);
    }
  }

  void VisitLoop(const schedule::Loop& loop, std::vector<Around>* around, double copies) {
    const auto extent = static_cast<double>(ir::ExtentOf(loop.range));
    around->push_back({loop.range, extent, loop.kind});
    const Node* outer_vector = vector_;
    const double outer_lanes = lanes_;
    if (loop.kind == LoopKind::kVector || loop.kind == LoopKind::kThread) {
      vector_ = loop.range;
      lanes_ *= extent;
    } else if (loop.kind == LoopKind::kSerial) {
      counts_[Feature::kIterations] += Times(*around, nullptr);
    } else {
      copies *= extent;
    }
    VisitAll(loop.body, around, copies);
    vector_ = outer_vector;
    lanes_ = outer_lanes;
    around->pop_back();
  }

  // Returns how often a statement with these loops runs, or a value of it that is computed outside
  // of loops on which it does not depend. Lanes count once.
  double Times(const std::vector<Around>& around, const Node* value) {
    double times = 1, since = 1;
    for (const Around& loop : around) {
      if (loop.kind == LoopKind::kVector || loop.kind == LoopKind::kThread) continue;
      since *= loop.extent;
      if (value != nullptr && !DependsOn(value, loop.range)) continue;
      times *= since;
      since = 1;
    }
    return value == nullptr ? times * since : times;
  }

  bool DependsOn(const Node* node, const Node* range) {
    const auto [at, is_new] = depends_.try_emplace({node, range}, false);
    if (!is_new) return at->second;
    const bool depends = kernel::DependsOn(node, range);
    depends_[{node, range}] = depends;
    return depends;
  }

  void VisitStore(const schedule::Store& store, const std::vector<Around>& around, double copies) {
    const schedule::LoopBuffer& buffer = program_.buffers[static_cast<size_t>(store.buffer)];
    const double times = Times(around, nullptr) * VectorShare(store.value);
    if (buffer.space == schedule::Space::kRegister) {
      counts_[Feature::kRegisterAccesses] += times;
      // Additions to one register wait for each other.
      if (store.value->op() == Op::kAdd) {
        const double independent =
            std::max(1.0, static_cast<double>(buffer.elements) * VectorShare(store.value));
        counts_[Feature::kChain] += times / independent;
      }
    } else {
      AddAccess(store.index, store.buffer, buffer, around);
      const LaneAccess along =
          vector_ == nullptr ? LaneAccess::kUniform : AccessAlong(store.index, vector_);
      (along == LaneAccess::kWhole     ? counts_[Feature::kWholeStores]
       : along == LaneAccess::kUniform ? counts_[Feature::kScalarStores]
                                       : counts_[Feature::kScatteredStores]) += times;
      if (store.valid != nullptr) counts_[Feature::kMaskedStores] += times;
      if (store.streaming)
        counts_[Feature::kStreamedBytes] += times * lanes_ * ir::SizeOf(store.value->dtype());
      if (along == LaneAccess::kWhole)
        counts_[Feature::kLanesUsed] =
            std::max(counts_[Feature::kLanesUsed],
                     lanes_ * ir::SizeOf(buffer.dtype) / target_.limits.vector_bytes);
    }
    seen_.clear();
    statement_size_ = 0;
    Count(store.value, around);
    if (store.valid != nullptr) Count(store.valid, around);
    counts_[Feature::kCodeSize] =
        std::max(counts_[Feature::kCodeSize], copies * (statement_size_ + 1));
  }

  void Count(const Node* node, const std::vector<Around>& around) {
    if (node->op() == Op::kConst || node->op() == Op::kRange) return;
    if (!seen_.insert(node).second) return;
    ++statement_size_;
    if (node->op() == Op::kLoad) {
      CountLoad(node, around);
      return;
    }
    for (const Node* operand : node->operands()) Count(operand, around);
    if (!ir::IsFloat(node->dtype())) {
      if (node->op() == Op::kIDiv || node->op() == Op::kMod)
        counts_[Feature::kIndexOperations] += Times(around, node);
      return;
    }
    const double times = Times(around, node);
    if (node->op() == Op::kReduce) {
      counts_[Feature::kHorizontals] += times;
    } else if (vector_ != nullptr && DependsOn(node, vector_)) {
      const double vectors = times * VectorShare(node);
      counts_[Feature::kVectorOperations] += vectors;
      if (IsExpensive(node->op())) counts_[Feature::kExpensiveOperations] += vectors;
      if (IsFused(node)) counts_[Feature::kFusedOperations] += vectors;
    } else {
      counts_[Feature::kScalarOperations] += times;
      if (IsExpensive(node->op())) counts_[Feature::kExpensiveOperations] += times;
    }
  }

  static bool IsFused(const Node* node) {
    return node->op() == Op::kAdd && node->operand(0)->op() == Op::kLoad &&
           node->operand(1)->op() == Op::kMul;
  }

  void CountLoad(const Node* load, const std::vector<Around>& around) {
    const auto number = static_cast<int>(load->attr<ir::IntAttr>().value);
    const schedule::LoopBuffer& buffer = program_.buffers[static_cast<size_t>(number)];
    const double times = Times(around, load);
    if (buffer.space == schedule::Space::kRegister) {
      counts_[Feature::kRegisterAccesses] += times * VectorShare(load);
      return;
    }
    const Node* index = load->operand(0);
    AddAccess(index, number, buffer, around);
    if (load->operands().size() > 1) Count(load->operand(1), around);
    const LaneAccess along =
        vector_ == nullptr ? LaneAccess::kUniform : AccessAlong(index, vector_);
    switch (along) {
      case LaneAccess::kUniform:
        counts_[Feature::kBroadcasts] += times;
        return;
      case LaneAccess::kWhole:
        counts_[Feature::kWholeLoads] += times * VectorShare(load);
        return;
      case LaneAccess::kShuffled:
        counts_[Feature::kShuffledLoads] += times * VectorShare(load);
        return;
      case LaneAccess::kScattered:
        counts_[Feature::kGathers] += times * VectorShare(load);
        return;
    }
  }

  void AddAccess(const Node* index, int number, const schedule::LoopBuffer& buffer,
                 const std::vector<Around>& around) {
    accesses_.push_back({index, number, std::max(ir::SizeOf(buffer.dtype), 1), around});
  }

  void CountRegisters() {
    double bytes = 0;
    for (const schedule::LoopBuffer& buffer : program_.buffers) {
      if (buffer.space == schedule::Space::kRegister)
        bytes += static_cast<double>(buffer.elements * buffer.lanes * ir::SizeOf(buffer.dtype));
    }
    counts_[Feature::kRegisters] =
        bytes / std::max(1, target_.limits.vector_bytes * target_.limits.vector_registers);
  }

  // Returns the lines that a cache of this size does not have. Accesses share it equally: each
  // finds again what its inner loops touch if that fits its part.
  double Traffic(int64_t capacity) const {
    const double part =
        static_cast<double>(capacity) / std::max<double>(1, static_cast<double>(accesses_.size()));
    double lines = 0;
    for (const Access& access : accesses_) {
      size_t first = access.loops.size();
      Footprint inside = FootprintOf(access, first);
      while (first > 0) {
        const Footprint more = FootprintOf(access, first - 1);
        if (more.lines() * static_cast<double>(kFeatureLineBytes) > part) break;
        inside = more;
        --first;
      }
      double misses = inside.lines();
      for (size_t i = 0; i < first; ++i) {
        // A loop around that does not move the access finds it again only if it is the next one.
        const bool is_next = i + 1 == first;
        if (is_next && !kernel::DependsOn(access.index, access.loops[i].range)) continue;
        misses *= access.loops[i].extent;
      }
      lines += misses;
    }
    return lines;
  }

  const LoopProgram& program_;
  const drivers::Target& target_;
  std::vector<double> counts_;
  std::vector<Access> accesses_;
  const Node* vector_ = nullptr;
  double lanes_ = 1;
  double statement_size_ = 0;
  absl::flat_hash_set<const Node*> seen_;
  absl::flat_hash_map<std::pair<const Node*, const Node*>, bool> depends_;
};

}  // namespace

absl::Span<const std::string_view> FeatureNames() { return kFeatureNames; }

absl::StatusOr<Features> FeaturesOf(const kernel::Kernel& kernel,
                                    const schedule::Schedule& schedule,
                                    const drivers::Target& target) {
  const auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  return FeatureCounter(*program, target).Run();
}

}  // namespace kiln::search
