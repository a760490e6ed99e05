// `kiln`: what a daemon has and does, from the command line.
#include <iostream>
#include <string>
#include <vector>

#include "clients/cli/command.h"

int main(int argc, char** argv) {
  return kiln::cli::Main(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
