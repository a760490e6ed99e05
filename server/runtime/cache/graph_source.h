// A graph as a client defined it, before the compiler has seen it. rpc/ implements this interface,
// so that the runtime does not depend on wire messages.
#ifndef KILN_SERVER_RUNTIME_CACHE_GRAPH_SOURCE_H_
#define KILN_SERVER_RUNTIME_CACHE_GRAPH_SOURCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/variable.h"
#include "compiler/ops/form_sizes.h"

namespace kiln::runtime {

// Values of a graph's variables, by name.
using Bindings = std::map<std::string, int64_t>;

using graph::Variable;

// Called with the number of primitives while the graph grows; an error stops building it.
using Grow = std::function<absl::Status(int64_t primitives)>;

// Immutable and thread-safe.
class GraphSource {
 public:
  virtual ~GraphSource() = default;
  // Equal keys mean equal graphs, whatever their names. Hexadecimal.
  virtual const std::string& key() const = 0;
  virtual const std::vector<Variable>& variables() const = 0;
  // Returns a serialized form from which this or another daemon can recreate it; empty if there is
  // none.
  virtual std::string Wire() const { return {}; }
  // Host memory that it takes.
  virtual int64_t bytes() const { return 0; }
  // The number of nodes, as sent.
  virtual int64_t nodes() const { return 0; }
  // Checks the graph and expands it with these bindings. INVALID_ARGUMENT names the node. Other
  // errors are those of `grow`, which may be empty. `sizes` may be null
  // (compiler/ops/form_sizes.h).
  virtual absl::StatusOr<graph::Graph> Build(const Bindings& bindings, const Grow& grow,
                                             ops::FormSizes* sizes) const = 0;
};

// OK if `bindings` name exactly the variables, each within its bounds.
absl::Status CheckBindings(const std::vector<Variable>& variables, const Bindings& bindings);
// Returns the part of the variables' bounds that one program serves for these bindings. Such a
// program does the work of the largest sizes, except for sums, which end early. So bounds with a
// maximum above 1,024 are divided into parts, each eight times as large as the one before.
std::vector<Variable> WorkingBounds(const std::vector<Variable>& variables,
                                    const Bindings& bindings);
// Returns every variable at its smallest value: enough to check a graph before its first run.
Bindings SmallestBindings(const std::vector<Variable>& variables);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_GRAPH_SOURCE_H_
