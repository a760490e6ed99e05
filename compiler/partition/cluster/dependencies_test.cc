// Compares with the transitive closure, stored as a matrix.
#include "compiler/partition/cluster/dependencies.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

class Closure {
 public:
  explicit Closure(int size) : size_(size), edges_(size, std::vector<bool>(size, false)) {}

  void AddEdge(int from, int to) { edges_[from][to] = true; }
  // Returns whether there is a path of at least `steps` edges.
  bool Reaches(int from, int to, int steps = 1) const {
    for (int next = 0; next < size_; ++next) {
      if (!edges_[from][next]) continue;
      if (next == to && steps <= 1) return true;
      if (next != to && Reaches(next, to)) return true;
    }
    return false;
  }
  void Merge(int from, int into) {
    for (int other = 0; other < size_; ++other) {
      if (edges_[from][other] && other != into) edges_[into][other] = true;
      if (edges_[other][from] && other != into) edges_[other][into] = true;
      edges_[from][other] = edges_[other][from] = false;
    }
  }

 private:
  int size_;
  std::vector<std::vector<bool>> edges_;
};

TEST(Dependencies, AnswersAsTheClosureDoes) {
  constexpr int kSize = 14;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Dependencies dependencies;
    Closure closure(kSize);
    std::vector<int> standing;
    for (int i = 0; i < kSize; ++i) {
      dependencies.AddCluster();
      standing.push_back(i);
    }
    auto pick = [&] { return standing[random() % standing.size()]; };
    for (int step = 0; step < 60; ++step) {
      const int a = pick(), b = pick();
      if (a == b) continue;
      const bool backwards = closure.Reaches(b, a);
      ASSERT_EQ(dependencies.Reaches(b, a), backwards);
      ASSERT_EQ(dependencies.ReachesOverOthers(a, b), closure.Reaches(a, b, 2));
      const bool may_merge = !closure.Reaches(a, b, 2) && !closure.Reaches(b, a, 2);
      if (random() % 6 == 0 && may_merge && standing.size() > 2) {
        dependencies.Merge(a, b);
        closure.Merge(a, b);
        std::erase(standing, a);
      } else if (!backwards) {
        dependencies.AddEdge(a, b);
        closure.AddEdge(a, b);
      }
      for (const int from : standing) {
        for (const int to : standing) {
          if (from == to) continue;
          ASSERT_EQ(dependencies.Reaches(from, to), closure.Reaches(from, to));
        }
      }
    }
  }
}

// Queries about neighbours in a long chain visit only neighbours.
TEST(Dependencies, LooksOnlyBetweenTheTwo) {
  Dependencies dependencies;
  constexpr int kSize = 20000;
  for (int i = 0; i < 3; ++i) dependencies.AddCluster();
  dependencies.AddEdge(1, 0);
  dependencies.AddEdge(2, 1);
  for (int i = 3; i < kSize; ++i) {
    dependencies.AddCluster();
    dependencies.AddEdge(i, i - 1);
    EXPECT_TRUE(dependencies.Reaches(i, i - 3));
    EXPECT_FALSE(dependencies.Reaches(i - 1, i));
  }
  EXPECT_LT(dependencies.visits(), 5 * kSize);
}

TEST(Dependencies, WhatIsFarApartCountsAsDependent) {
  Dependencies dependencies;
  dependencies.AddCluster();
  dependencies.AddCluster();
  for (int i = 2; i < 2 * Dependencies::kVisitsMax; ++i) {
    dependencies.AddCluster();
    if (i > 2) dependencies.AddEdge(i, i - 1);
  }
  EXPECT_FALSE(dependencies.Reaches(100, 1));
  EXPECT_TRUE(dependencies.Reaches(2 * Dependencies::kVisitsMax - 1, 1));
}

}  // namespace
}  // namespace kiln::partition
