// Builds a graph and looks for a daemon where there is none.
#include <cstdio>

#include "kiln/client.h"
#include "kiln/ops.h"
#include "kiln/optim.h"
#include "kiln/state.h"

int main() {
  kiln::GraphBuilder builder;
  builder.Output(kiln::ops::Sum(2 * builder.Input(kiln::DType::kFloat32, {3})));
  const auto graph = builder.Build();
  const auto client =
      kiln::Client::Connect({.address = "/nowhere.sock", .timeout = absl::Seconds(1)});
  std::printf("%s; %s\n", graph.ok() ? "built" : "not built", client.status().ToString().c_str());
  return graph.ok() && absl::IsUnavailable(client.status()) ? 0 : 1;
}
