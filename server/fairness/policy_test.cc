// Tests of the bounds stated in fair_queue.h and device_queue.h, on thousands of random workloads.
// A failure names its seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/fairness/device_queue.h"
#include "server/fairness/slices.h"
#include "server/fairness/testing/random.h"
#include "server/fairness/testing/simulator.h"

namespace kiln::fairness {
namespace {

constexpr double kRounding = 1e-9;

struct Flow {
  FairQueue::FlowId id = 0;
  double weight = 1;
};

TEST(Cut, EveryCommandIsInOneSliceOfBoundedTime) {
  for (int seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    std::vector<double> commands(random.Below(200));
    for (double& seconds : commands) seconds = random.Scale(1e-6, 0.02);
    int next = 0;
    for (const Slice& slice : Cut(commands, 0.005)) {
      EXPECT_EQ(slice.begin, next);
      EXPECT_GT(slice.end, slice.begin);
      next = slice.end;
      const double seconds =
          std::accumulate(commands.begin() + slice.begin, commands.begin() + slice.end, 0.0);
      EXPECT_NEAR(slice.seconds, seconds, kRounding);
      EXPECT_TRUE(slice.end - slice.begin == 1 || slice.seconds <= 0.005 + kRounding);
    }
    EXPECT_EQ(next, static_cast<int>(commands.size()));
  }
}

TEST(Split, EveryPointIsInOnePartOfBoundedTime) {
  for (int seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    std::vector<CommandCost> commands(1 + random.Below(20));
    for (CommandCost& command : commands)
      command = {random.Scale(1e-6, 1), static_cast<int64_t>(random.Scale(1, 1e12))};
    constexpr double kSecondsMax = 0.005;
    const std::vector<CommandPart> parts = Split(commands, kSecondsMax);
    EXPECT_LE(parts.size(), kSlicesMax + commands.size());
    size_t part = 0;
    for (size_t i = 0; i < commands.size(); ++i) {
      int64_t next = 0;
      double seconds = 0;
      for (; part < parts.size() && parts[part].command == static_cast<int>(i); ++part) {
        ASSERT_EQ(parts[part].begin, next);
        ASSERT_GT(parts[part].end, next);
        next = parts[part].end;
        seconds += parts[part].seconds;
        // At most a point more than an even share.
        const double point = commands[i].seconds / static_cast<double>(commands[i].points);
        EXPECT_LE(parts[part].seconds, kSecondsMax + point + 1e-6);
      }
      EXPECT_EQ(next, commands[i].points);
      EXPECT_NEAR(seconds, commands[i].seconds, kRounding);
    }
    EXPECT_EQ(part, parts.size());
    const std::vector<CommandPart> joined = Join(parts);
    EXPECT_EQ(joined.size(), commands.size());
    for (size_t i = 0; i < joined.size(); ++i) EXPECT_EQ(joined[i].end, commands[i].points);
  }
}

TEST(Split, MakesABoundedNumberOfParts) {
  const std::vector<CommandCost> commands = {{60, 1'000'000'000}, {1e6, 1'000'000'000}, {60, 1}};
  const size_t parts = Split(commands, 0.005).size();
  EXPECT_LE(parts, kSlicesMax + 3);
  EXPECT_GT(parts, kSlicesMax / 4);
}

// Their sum is then less than that of the others.
TEST(Split, MakesABoundedNumberOfPartsOfNegativeTimes) {
  std::vector<CommandCost> commands(10, {60, 1'000'000'000});
  commands.push_back({-600, 1'000'000'000});
  EXPECT_LE(Split(commands, 0.005).size(), kSlicesMax + commands.size());
}

TEST(Cut, MakesABoundedNumberOfSlices) {
  const std::vector<double> commands(100'000, 0.005);
  const auto slices = Cut(commands, 0.005);
  EXPECT_LE(slices.size(), kSlicesMax);
  EXPECT_GT(slices.size(), kSlicesMax / 4);
}

// A slice takes as long as the longest part of any of the programs.
TEST(Cut, MakesABoundedNumberOfJointSlicesOfUnlikePrograms) {
  const std::vector<std::vector<double>> one(2047, {1e-6, 1 - 5e-7, 1e-6});
  const std::vector<std::vector<double>> other(2047, {1.0});
  EXPECT_LE(CutTogether({{one, other}}, 1.0).size(), kSlicesMax);
}

// A program's commands in a slice, which may span several stretches.
std::vector<double> InSlice(const std::vector<std::vector<double>>& program, int begin, int end) {
  std::vector<double> all;
  for (const std::vector<double>& stretch : program)
    all.insert(all.end(), stretch.begin(), stretch.end());
  return {all.begin() + begin, all.begin() + end};
}

int CommandsBefore(const std::vector<std::vector<double>>& program, int stretch) {
  int count = 0;
  for (int i = 0; i < stretch; ++i) count += static_cast<int>(program[i].size());
  return count;
}

TEST(Cut, ProgramsThatMeetAreCutInTheSameStretches) {
  for (int seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const int stretches = 1 + random.Below(8);
    std::vector<std::vector<std::vector<double>>> programs(1 + random.Below(4));
    for (auto& program : programs) {
      program.resize(stretches);
      for (auto& stretch : program) {
        stretch.resize(random.Below(12));
        for (double& seconds : stretch) seconds = random.Scale(1e-6, 0.02);
      }
    }
    std::vector<int> begins(programs.size());
    int last_stretch = 0;
    for (const JointSlice& slice : CutTogether(programs, 0.005)) {
      EXPECT_GE(slice.stretch, last_stretch);
      last_stretch = slice.stretch;
      int commands = 0;
      for (size_t i = 0; i < programs.size(); ++i) {
        EXPECT_GE(slice.ends[i], CommandsBefore(programs[i], slice.stretch));
        EXPECT_LE(slice.ends[i], CommandsBefore(programs[i], slice.stretch + 1));
        ASSERT_GE(slice.ends[i], begins[i]);
        const std::vector<double> own = InSlice(programs[i], begins[i], slice.ends[i]);
        const double seconds = std::accumulate(own.begin(), own.end(), 0.0);
        EXPECT_LE(seconds, slice.seconds + kRounding);
        EXPECT_TRUE(own.size() <= 1 || seconds <= 0.005 + kRounding);
        commands += slice.ends[i] - begins[i];
      }
      EXPECT_GT(commands, 0);
      begins = slice.ends;
    }
    for (size_t i = 0; i < programs.size(); ++i)
      EXPECT_EQ(begins[i], CommandsBefore(programs[i], stretches));
  }
}

TEST(Cut, MakesABoundedNumberOfJointSlices) {
  const std::vector<std::vector<double>> program(1000, std::vector<double>(100, 0.005));
  const auto slices = CutTogether({{program, program}}, 0.005);
  EXPECT_LE(slices.size(), kSlicesMax);
  EXPECT_GT(slices.size(), kSlicesMax / 4);
}

// The bound of start-time fair queueing, checked at many moments. It counts only ended lists, so
// each flow may lack its lists in flight, and predictions are wrong, so each may have one list too
// many.
TEST(Policy, SharesAreInProportionToWeightsAtEveryMoment) {
  for (int seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    Simulator simulator;
    std::vector<Flow> flows;
    const int users = 2 + random.Below(5);
    for (int user = 0; user < users; ++user) {
      const double weight = random.Scale(0.2, 5);
      flows.push_back({simulator.flows().AddFlow(absl::StrCat("user", user), weight), weight});
      SimulatedProgram program = random.Program();
      program.prediction = random.Scale(0.5, 2);
      simulator.KeepBusy(flows.back().id, program);
    }
    for (int moment = 1; moment <= 20; ++moment) {
      simulator.RunUntil(0.1 * moment);
      for (const Flow& a : flows) {
        for (const Flow& b : flows) {
          const double difference = simulator.Got(a.id) / a.weight - simulator.Got(b.id) / b.weight;
          const double bound = 3 * simulator.LongestList(a.id) / a.weight +
                               3 * simulator.LongestList(b.id) / b.weight;
          ASSERT_LE(difference, std::max(bound, 3 * 0.01 / std::min(a.weight, b.weight)));
        }
      }
    }
    EXPECT_EQ(simulator.idle_seconds(), 0);
  }
}

TEST(Policy, JainsIndexAndWeightsOfVeryDifferentPrograms) {
  const std::vector<SimulatedProgram> programs = {
      {{1e-5}}, {{1e-3}}, {std::vector<double>(30, 1e-3)}, {std::vector<double>(50, 4e-3)}};
  for (const bool equal : {true, false}) {
    Simulator simulator;
    std::vector<Flow> flows;
    for (size_t user = 0; user < programs.size(); ++user) {
      const double weight = equal ? 1 : std::exp2(static_cast<double>(user));
      flows.push_back({simulator.flows().AddFlow(absl::StrCat("user", user), weight), weight});
      simulator.KeepBusy(flows.back().id, programs[user]);
    }
    simulator.RunUntil(30);
    double sum = 0, squares = 0;
    for (const Flow& flow : flows) {
      const double normalised = simulator.Got(flow.id) / flow.weight;
      sum += normalised;
      squares += normalised * normalised;
    }
    EXPECT_GT(sum * sum / (4 * squares), 0.9999);
    for (const Flow& flow : flows)
      EXPECT_NEAR(simulator.Got(flow.id) / flow.weight, sum / 4, 0.01 * sum / 4);
  }
}

TEST(Policy, ProgramsThatAreNotCutDoNotWaitOnTheDevice) {
  DeviceQueue queue(QueueLimits{.slice_seconds = std::numeric_limits<double>::infinity()});
  const auto flow = queue.flows().AddFlow("ann", 1);
  for (int item = 0; item < 3; ++item) queue.flows().Push(flow, item, /*cost=*/0.2);
  ASSERT_TRUE(queue.Next());
  EXPECT_FALSE(queue.Next());
}

// If no one else has work, one user gets everything; a user who was idle gets no extra share.
TEST(Policy, IdleSharesAreUsed) {
  for (int seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    Simulator simulator;
    const auto idle = simulator.flows().AddFlow("idle", random.Scale(0.1, 10));
    const auto busy = simulator.flows().AddFlow(
        "busy", 1, random.Below(2) ? Priority::kBatch : Priority::kInteractive);
    simulator.KeepBusy(busy, random.Program());
    simulator.RunUntil(1);
    EXPECT_GT(simulator.Got(busy), 1 - 0.2);
    simulator.Submit(idle, {{0.001}});
    simulator.RunUntil(2);
    EXPECT_GT(simulator.Got(busy), 2 - 0.2);
    EXPECT_EQ(simulator.idle_seconds(), 0);
  }
}

TEST(Policy, BatchIsNeverStarvedAndHardlyHoldsUpTheOthers) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    Simulator simulator;
    std::vector<Flow> interactive, batch;
    const int users = 1 + random.Below(4);
    for (int user = 0; user < users; ++user) {
      interactive.push_back({simulator.flows().AddFlow(absl::StrCat("now", user), 1)});
      simulator.KeepBusy(interactive.back().id, random.Program());
    }
    const int later = 1 + random.Below(3);
    for (int user = 0; user < later; ++user) {
      const auto name = absl::StrCat("later", user);
      batch.push_back({simulator.flows().AddFlow(name, 1, Priority::kBatch)});
      simulator.KeepBusy(batch.back().id, random.Program());
    }
    simulator.RunUntil(5);
    double got = 0;
    for (const Flow& flow : batch) {
      got += simulator.Got(flow.id);
      EXPECT_NEAR(simulator.Got(flow.id), 5.0 / 17 / later, 0.05);
    }
    EXPECT_NEAR(got, 5.0 / 17, 0.05);
  }
}

// Flows come and go, predictions are wild, and work is put back: nothing is lost, duplicated or
// reordered, and the items left at the end are those that were not popped.
TEST(Policy, NothingIsLostOrReordered) {
  for (int seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    DeviceQueue queue((QueueLimits()));
    struct Client {
      FairQueue::FlowId id = 0;
      std::deque<FairQueue::Item> waiting;
    };
    std::vector<Client> clients;
    std::vector<int64_t> tickets;
    FairQueue::Item next = 1;
    const auto client_of = [&](FairQueue::FlowId id) {
      return std::find_if(clients.begin(), clients.end(),
                          [id](const Client& client) { return client.id == id; });
    };
    for (int step = 0; step < 300; ++step) {
      const int action = random.Below(10);
      if (clients.empty() || (action == 0 && clients.size() < 8)) {
        const auto priority = random.Below(2) ? Priority::kBatch : Priority::kInteractive;
        const auto user = absl::StrCat("user", random.Below(3));
        clients.push_back({queue.flows().AddFlow(user, random.Scale(0.1, 10), priority), {}});
      } else if (action == 1) {
        auto gone = clients.begin() + random.Below(static_cast<int>(clients.size()));
        const auto left = queue.flows().RemoveFlow(gone->id);
        EXPECT_TRUE(
            std::equal(left.begin(), left.end(), gone->waiting.begin(), gone->waiting.end()));
        clients.erase(gone);
      } else if (action < 5) {
        Client& client = clients[random.Below(static_cast<int>(clients.size()))];
        client.waiting.push_back(next);
        EXPECT_TRUE(queue.flows().Push(client.id, next++, random.Scale(1e-6, 1)));
      } else if (action < 8 && !tickets.empty()) {
        const int which = random.Below(static_cast<int>(tickets.size()));
        EXPECT_TRUE(queue.Finished(tickets[which], random.Scale(1e-6, 1)));
        tickets.erase(tickets.begin() + which);
      } else if (const auto start = queue.Next()) {
        const auto client = client_of(start->flow);
        ASSERT_NE(client, clients.end());
        ASSERT_EQ(start->item, client->waiting.front());
        const int outcome = random.Below(4);
        if (outcome == 0) {
          EXPECT_TRUE(queue.PutBack(*start, queue.in_flight() > 1));
          continue;
        }
        tickets.push_back(start->ticket);
        if (outcome == 1) {
          EXPECT_TRUE(queue.Continue(*start, random.Scale(1e-6, 1)));
        } else {
          client->waiting.pop_front();
        }
      }
    }
    for (const int64_t ticket : tickets) EXPECT_TRUE(queue.Finished(ticket, 1));
    size_t waiting = 0;
    for (const Client& client : clients) waiting += client.waiting.size();
    EXPECT_EQ(queue.flows().size(), static_cast<int64_t>(waiting));
    while (const auto start = queue.Next()) {
      const auto client = client_of(start->flow);
      ASSERT_EQ(start->item, client->waiting.front());
      client->waiting.pop_front();
      EXPECT_TRUE(queue.Finished(start->ticket, 1));
      --waiting;
    }
    EXPECT_EQ(waiting, 0u);
  }
}

}  // namespace
}  // namespace kiln::fairness
