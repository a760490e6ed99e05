#include "compiler/graph/wire/label.h"

#include "compiler/graph/error.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {
std::string Label(const v1::Graph& proto, int index) {
  const v1::Node& node = proto.nodes(index);
  std::string label = StrCat("node ", index, " ", Quoted(node.op()));
  return node.source().empty() ? label : StrCat(label, " (", Shown(node.source()), ")");
}

absl::Status NodeError(const v1::Graph& proto, int index, std::string_view reason,
                       std::string_view message) {
  return AboutNode(proto, index, reason, absl::InvalidArgumentError(View(message)));
}

absl::Status AboutNode(const v1::Graph& proto, int index, std::string_view reason,
                       const absl::Status& status) {
  const v1::Node& node = proto.nodes(index);
  std::vector<Detail> details = {{"node", StrCat(index)}, {"op", Shown(node.op())}};
  if (!node.source().empty()) details.emplace_back("source", Shown(node.source()));
  std::string variable = ErrorDetail(status, "variable");
  if (!variable.empty()) details.emplace_back("variable", variable);
  // The reason set closest to the mistake is the most precise.
  std::string own = ErrorDetail(status, "reason");
  return MakeError(own.empty() ? reason : std::string_view(own), details,
                   StrCat(Label(proto, index), ": ", status.message()), status.code());
}

}  // namespace kiln::graph
