// Random loads for the simulator.
#ifndef KILN_SERVER_FAIRNESS_TESTING_RANDOM_H_
#define KILN_SERVER_FAIRNESS_TESTING_RANDOM_H_

#include <algorithm>
#include <cmath>
#include <random>

#include "server/fairness/testing/simulator.h"

namespace kiln::fairness {

class Random {
 public:
  explicit Random(int seed) : engine_(seed) {}
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  // Log-uniform: every order of magnitude is equally likely.
  double Scale(double low, double high) { return std::exp(Between(std::log(low), std::log(high))); }
  int Below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(engine_); }
  // Runs of 0.2 to 200 ms, in kernels of up to `longest` seconds.
  SimulatedProgram Program(double longest = 0.004) {
    SimulatedProgram program;
    const double total = Scale(2e-4, 0.2);
    double left = total;
    while (left > 0) {
      const double seconds = std::min(left, Scale(std::max(1e-5, total / 1000), longest));
      program.commands.push_back(seconds);
      left -= seconds;
    }
    return program;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_TESTING_RANDOM_H_
