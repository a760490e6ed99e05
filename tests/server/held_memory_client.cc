// Holds a few megabytes on a daemon's device under a lease of two seconds, until it is killed.
#include <unistd.h>

#include "tests/server/client.h"

int main(int argc, char** argv) {
  using namespace kiln::testing;
  Client client(argc > 1 ? argv[1] : "", /*lease_seconds=*/2);
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(1'000'000)));
  pause();
  return 0;
}
