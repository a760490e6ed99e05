// Rows of the ops that affect the graph and not the values.
#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/primitives/gradients.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {

using ir::Node;
using ir::Op;

absl::StatusOr<HostTensor> EvaluateIdentity(const Node* node, HostOperands operands) {
  return *operands[0];
}

constexpr Rule kGradientShape = {"gradient", "y, x, upstream?", R"rule(
  check given(upstream) or len(y) == 0:
    "the gradient's y has shape {y}; it must be a scalar, or an upstream of y's shape must be given"
  check not given(upstream) or upstream == y:
    "the gradient's upstream has shape {upstream}; it must be y's shape {y}"
  -> x
)rule"};

constexpr Rule kUpstreamDTypeRule = {"upstream_dtype", "", R"rule(
  check len(dtypes) < 3 or dtypes[2] == dtypes[0]:
    "an upstream of {dtypes[2].name} for y of {dtypes[0].name}; both must have one dtype, cast one "
    "of them"
)rule"};

constexpr Rule kMeshSpecRule = {"mesh_spec", "x", R"rule(
  spec = attributes["spec"]
  check is_spec(spec, len(x)):
    '"spec" {spec} for shape {x}; it needs for each dimension the number of axes of the mesh that '
    "split it, then these axes, each once"
)rule"};

constexpr Rule kSendRule = {"send", "x", R"rule(
  source = attributes["source"]
  target = attributes["target"]
  check source >= 0 and target >= 0:
    '"source" {source} and "target" {target}; devices have the numbers 0, 1, 2 and so on'
)rule"};

std::vector<OpDef> StructureOps() {
  return {
      {.name = "contiguous",
       .kind = Kind::kStructure,
       .op = Op::kContiguous,
       .operands = {"x"},
       .gradient = ContiguousGradient,
       .evaluate = EvaluateIdentity,
       .doc = "x, computed once and kept in memory instead of fused into its users"},
      {.name = "detach",
       .kind = Kind::kStructure,
       .op = Op::kDetach,
       .operands = {"x"},
       .evaluate = EvaluateIdentity,
       .doc = "x, through which no gradient flows"},
      {.name = "shard",
       .kind = Kind::kStructure,
       .op = Op::kShard,
       .operands = {"x"},
       .attributes = {RequiredInts("spec")},
       .constraints = {kMeshSpecRule},
       .gradient = ShardGradient,
       .evaluate = EvaluateIdentity,
       .doc = "x, split over the graph's mesh by spec: for each dimension the number of the mesh's "
              "axes that split it, then these axes. Without a mesh just x"},
      {.name = "send",
       .kind = Kind::kStructure,
       .op = Op::kSend,
       .operands = {"x"},
       .attributes = {RequiredInt("source"), RequiredInt("target")},
       .constraints = {kSendRule},
       .gradient = SendGradient,
       .evaluate = EvaluateIdentity,
       .doc = "x, sent from one device of a graph in stages to another; both are numbers of the "
              "graph's devices. Its users are computed there. Without stages just x"},
      {.name = "with_derivative",
       .kind = Kind::kStructure,
       .op = Op::kWithDerivative,
       .operands = {"y", "x", "derivative"},
       .shape_rule = kBroadcastShape,
       .dtype_rule = DTypeRule::kPromote,
       .operand_class = DTypeClass::kFloat,
       .gradient = WithDerivativeGradient,
       .evaluate = EvaluateIdentity,
       .doc = "y, whose gradient also flows to x, element by element: upstream * derivative. With "
              "detach around y, derivative is all of it"},
      // Has no evaluation: the compiler replaces it by derivatives first.
      {.name = "gradient",
       .kind = Kind::kStructure,
       .op = Op::kGradient,
       .operands = {"y", "x", "upstream?"},
       .shape_rule = kGradientShape,
       .dtype_rule = DTypeRule::kSecond,
       .operand_class = DTypeClass::kFloat,
       .constraints = {kUpstreamDTypeRule},
       .doc = "dy/dx, summed over y's elements weighted by upstream; without upstream y is a "
              "scalar. Zeros where y does not depend on x. Gradients of gradients are taken"},
  };
}

}  // namespace kiln::ops
