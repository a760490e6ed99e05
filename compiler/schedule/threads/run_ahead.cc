#include "compiler/schedule/threads/run_ahead.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/threads/loop_ranges.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using Bodies = absl::Span<const Statement>;

class AheadRunner {
 public:
  explicit AheadRunner(LoopProgram& program)
      : program_(program), folder_(*program.context), next_range_(NextRange(program)) {}

  Body Run(Body body) {
    Body result;
    for (Statement& statement : body) {
      if (auto* loop = std::get_if<Loop>(&statement.node)) {
        loop->body = Run(std::move(loop->body));
        if (std::exchange(loop->ahead, false) && Expand(*loop, &result)) continue;
      } else if (auto* branch = std::get_if<Branch>(&statement.node)) {
        branch->then_body = Run(std::move(branch->then_body));
        branch->else_body = Run(std::move(branch->else_body));
      }
      result.push_back(std::move(statement));
    }
    return result;
  }

 private:
  using Values = kernel::ExpressionFolder::Map;
  using Buffers = absl::flat_hash_map<int, int>;

  bool Expand(const Loop& loop, Body* out) {
    const int64_t steps = ir::ExtentOf(loop.range);
    if (loop.extent != nullptr || steps < 2) return false;
    size_t copies = 0;
    // `seen` also gets buffers of the first statement that turns out not to be a copy. In order, so
    // that a kernel always gets the same code.
    std::set<int> staged, seen;
    while (copies < loop.body.size() && IsCopy(loop.body[copies], &seen)) {
      staged = seen;
      ++copies;
    }
    if (copies == 0 || copies == loop.body.size()) return false;
    const Bodies copy = absl::MakeSpan(loop.body).subspan(0, copies);
    const Bodies rest = absl::MakeSpan(loop.body).subspan(copies);
    Buffers second;
    for (const int buffer : staged) second[buffer] = SecondPlace(buffer);
    const auto at = [&](Bodies what, const Node* step, const Buffers& buffers) {
      Values values = {{loop.range, step}};
      return Copy(what, values, buffers, what.data() == copy.data());
    };
    Append(out, at(copy, folder_.Int(0), {}));
    Loop pairs;
    pairs.range = folder_.Range(next_range_++, steps / 2);
    const Node* even = folder_.Mul(pairs.range, 2);
    const Node* odd = folder_.Add(even, folder_.Int(1));
    const Node* next = folder_.Add(even, folder_.Int(2));
    Append(&pairs.body, at(copy, odd, second));
    Append(&pairs.body, at(rest, even, {}));
    Body more;
    if (steps > 2) more = at(copy, next, {});
    if (steps > 2 && steps % 2 == 0) {
      Branch branch;
      branch.condition = folder_.Less(next, folder_.Int(steps));
      branch.then_body = std::move(more);
      pairs.body.push_back(Statement{std::move(branch)});
    } else {
      Append(&pairs.body, std::move(more));
    }
    Append(&pairs.body, at(rest, odd, second));
    out->push_back(Statement{std::move(pairs)});
    if (steps % 2 != 0) Append(out, at(rest, folder_.Int(steps - 1), {}));
    return true;
  }

  // Returns whether the statement only fills shared memory from arguments that the kernel does not
  // write.
  bool IsCopy(const Statement& statement, std::set<int>* staged) const {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      return ReadsArguments(loop->extent) &&
             std::all_of(loop->body.begin(), loop->body.end(),
                         [&](const Statement& inner) { return IsCopy(inner, staged); });
    }
    const auto* store = std::get_if<Store>(&statement.node);
    if (store == nullptr || program_.buffers[store->buffer].space != Space::kShared) return false;
    staged->insert(store->buffer);
    return ReadsArguments(store->index) && ReadsArguments(store->value) &&
           ReadsArguments(store->valid);
  }
  bool ReadsArguments(const Node* root) const {
    if (root == nullptr) return true;
    const std::vector<const Node*> nodes = ir::TopologicalOrder({&root, 1});
    return std::all_of(nodes.begin(), nodes.end(), [this](const Node* node) {
      return node->op() != ir::Op::kLoad || program_.buffers[BufferOf(node)].read_only;
    });
  }

  static int BufferOf(const Node* load) {
    return static_cast<int>(load->attr<ir::IntAttr>().value);
  }

  int SecondPlace(int buffer) {
    LoopBuffer place = program_.buffers[buffer];
    StrAppend(&place.name, "_next");
    place.offset = program_.shared_bytes;
    program_.shared_bytes += (place.elements * ir::SizeOf(place.dtype) + 63) / 64 * 64;
    program_.buffers.push_back(std::move(place));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  // Copied loops get new ranges, since emitters remember where a range was opened.
  Body Copy(Bodies body, const Values& values, const Buffers& buffers, bool async) {
    Body result;
    for (const Statement& statement : body) {
      result.push_back(Statement{std::visit(
          [&](const auto& node) { return Copy(node, values, buffers, async); }, statement.node)});
    }
    return result;
  }

  using AnyStatement = decltype(Statement::node);
  AnyStatement Copy(const Loop& loop, const Values& values, const Buffers& buffers, bool async) {
    Loop copy{nullptr,    Place(loop.extent, values, buffers), loop.kind, {}, loop.stride,
              loop.places};
    copy.range = folder_.Range(next_range_++, ir::ExtentOf(loop.range));
    Values inner = values;
    inner[loop.range] = copy.range;
    copy.body = Copy(loop.body, inner, buffers, async);
    return copy;
  }
  AnyStatement Copy(const Branch& branch, const Values& values, const Buffers& buffers,
                    bool async) {
    return Branch{Place(branch.condition, values, buffers),
                  Copy(branch.then_body, values, buffers, async),
                  Copy(branch.else_body, values, buffers, async)};
  }
  AnyStatement Copy(const Store& store, const Values& values, const Buffers& buffers, bool async) {
    Store copy = store;
    copy.buffer = BufferIn(buffers, store.buffer);
    copy.index = Place(store.index, values, buffers);
    copy.value = Place(store.value, values, buffers);
    copy.valid = Place(store.valid, values, buffers);
    copy.async = async;
    return copy;
  }
  AnyStatement Copy(const ThreadReduce& reduce, const Values& values, const Buffers& buffers,
                    bool) {
    return ThreadReduce{BufferIn(buffers, reduce.buffer), Place(reduce.index, values, buffers),
                        Place(reduce.value, values, buffers), reduce.stride};
  }
  AnyStatement Copy(const Fetch& fetch, const Values& values, const Buffers& buffers, bool) {
    return Fetch{fetch.buffer, Place(fetch.index, values, buffers)};
  }
  AnyStatement Copy(const Barrier& barrier, const Values&, const Buffers&, bool) { return barrier; }

  static int BufferIn(const Buffers& buffers, int buffer) {
    const auto found = buffers.find(buffer);
    return found == buffers.end() ? buffer : found->second;
  }

  const Node* Place(const Node* root, const Values& values, const Buffers& buffers) {
    if (root == nullptr) return nullptr;
    Values memo = values;
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      if (node->op() != ir::Op::kLoad) continue;
      const int other = BufferIn(buffers, BufferOf(node));
      if (other == BufferOf(node)) continue;
      const Node* valid = node->operands().size() > 1 ? node->operand(1) : nullptr;
      memo[node] = folder_.Load(node->dtype(), other, folder_.Substitute(node->operand(0), &memo),
                                valid == nullptr ? nullptr : folder_.Substitute(valid, &memo));
    }
    return folder_.Substitute(root, &memo);
  }

  LoopProgram& program_;
  kernel::ExpressionFolder folder_;
  int64_t next_range_;
};

}  // namespace

void RunAhead(LoopProgram* program) {
  AheadRunner runner(*program);
  for (Section& section : program->sections) section.body = runner.Run(std::move(section.body));
}

}  // namespace kiln::schedule
