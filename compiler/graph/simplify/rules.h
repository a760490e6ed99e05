// The families of rules that simplify.cc combines. Internal to graph/simplify.
#ifndef KILN_COMPILER_GRAPH_SIMPLIFY_RULES_H_
#define KILN_COMPILER_GRAPH_SIMPLIFY_RULES_H_

#include <vector>

#include "compiler/ir/rewrite.h"

namespace kiln::graph {

std::vector<ir::Rule> ConstantRules();
std::vector<ir::Rule> ArithmeticRules();
std::vector<ir::Rule> CastRules();
std::vector<ir::Rule> MovementRules();
std::vector<ir::Rule> ReduceRules();

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_SIMPLIFY_RULES_H_
