// Holds a few megabytes on a daemon's device under a lease of two seconds, until it is killed.
#include <unistd.h>

#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/client.h"

int main(int argc, char** argv) {
  using namespace kiln::testing;
  // On a slow machine the lease may end before the stream is there.
  while (true) {
    Client client(argc > 1 ? argv[1] : "", /*lease_seconds=*/2);
    auto stream = client.Connect();
    if (stream->Call(Write(1, std::vector<float>(1'000'000))).error().code() != -1) pause();
    absl::SleepFor(absl::Milliseconds(50));
  }
}
