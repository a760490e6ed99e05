// `kiln`: the command line client, which shows and controls a daemon.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "clients/cli/command.h"

int main(int argc, char** argv) {
  // gRPC's log of a failed handshake would repeat the error's message.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  return kiln::cli::Main(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
