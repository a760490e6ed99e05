// `kiln`: what a daemon has and does, from the command line.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "clients/cli/command.h"

int main(int argc, char** argv) {
  // What gRPC would log of a failed handshake stands in the error's message, too.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  return kiln::cli::Main(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
