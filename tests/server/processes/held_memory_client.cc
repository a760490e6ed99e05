// Holds a few megabytes on a daemon's device under a lease of two seconds, until it is killed.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <vector>

#include "tests/server/client.h"

int main(int argc, char** argv) {
  using namespace kiln::testing;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves no client behind
  // On a slow machine the lease may end before the stream is attached.
  while (true) {
    Client client(argc > 1 ? argv[1] : "", /*lease_seconds=*/2);
    auto stream = client.Connect();
    if (stream->Call(Write(1, std::vector<float>(1'000'000))).error().code() != -1) pause();
  }
}
