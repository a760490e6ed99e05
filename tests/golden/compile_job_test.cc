// Checks that the messages to and from a worker process contain everything that an image is made
// of.
#include <string>

#include "absl/strings/cord.h"
#include "compiler/compiler.h"
#include "compiler/workers/message.h"
#include "gtest/gtest.h"
#include "tests/golden/graphs.h"
#include "tests/numerics/target.h"

namespace kiln::golden {
namespace {

// Encodes and decodes the messages as between processes, within this process.
class Messages : public workers::KernelCompiler {
 public:
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override {
    uint64_t number = 0;
    workers::KernelJob arrived;
    absl::StatusOr<drivers::KernelImage> image = absl::UnknownError("no answer");
    if (!workers::DecodeJob(workers::EncodeJob(7, job), &number, &arrived)) return image;
    const std::string answer = workers::EncodeAnswer(number, Make(arrived));
    workers::DecodeAnswer(answer, 7, job, &image);
    return image;
  }

 private:
  virtual absl::StatusOr<drivers::KernelImage> Make(const workers::KernelJob& job) {
    return compiler::CompileJob(job);
  }
};

// Refuses all schedules except the plain one.
class Disproofs : public Messages {
  absl::StatusOr<drivers::KernelImage> Make(const workers::KernelJob& job) override {
    if (job.schedule.empty()) return compiler::CompileJob(job);
    absl::Status status = absl::InternalError("not the kernel");
    status.SetPayload("kiln.disproof", absl::Cord());
    return status;
  }
};

TEST(CompileJob, MakesWhatTheCompilerMakes) {
  for (const KnownGraph& known : KnownGraphs()) {
    Messages messages;
    compiler::Options options;
    const auto here = compiler::Compile(known.graph, numerics::HostTarget(), options);
    options.kernel_compiler = &messages;
    const auto there = compiler::Compile(known.graph, numerics::HostTarget(), options);
    ASSERT_TRUE(here.ok() && there.ok()) << known.name << here.status() << there.status();
    ASSERT_EQ(here->kernels.size(), there->kernels.size());
    for (size_t i = 0; i < here->kernels.size(); ++i) {
      EXPECT_EQ(here->kernels[i].schedule, there->kernels[i].schedule);
      EXPECT_EQ(here->kernels[i].image.Serialize(), there->kernels[i].image.Serialize())
          << known.name << " " << here->kernels[i].ir;
    }
  }
}

TEST(CompileJob, ADisproofElsewhereIsOne) {
  Disproofs disproofs;
  compiler::Options options;
  options.kernel_compiler = &disproofs;
  const KnownGraph softmax = KnownGraphs().front();
  const auto program = compiler::Compile(softmax.graph, numerics::HostTarget(), options);
  ASSERT_TRUE(program.ok()) << program.status();
  for (const compiler::CompiledKernel& kernel : program->kernels) {
    EXPECT_EQ(kernel.refusal, "not the kernel");
    EXPECT_NE(kernel.refused_schedule, "");
    EXPECT_EQ(kernel.schedule, "");
  }
}

// A worker that has a waiting time and a working time, on its own clock.
class SlowMessages : public Messages {
 public:
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override {
    time_ += absl::Seconds(2);
    job.on_begin();
    time_ += absl::Seconds(1);
    return Messages::Compile(job);
  }
  absl::Time now() const { return absl::UnixEpoch() + time_; }

 private:
  absl::Duration time_ = absl::ZeroDuration();
};

TEST(CompileJob, ItsTimeIsDividedAndItsKernelsAreCounted) {
  SlowMessages slow;
  compiler::Options options;
  options.kernel_compiler = &slow;
  options.now = [&slow] { return slow.now(); };
  std::vector<std::pair<int, int>> told;
  options.on_kernels = [&told](int found, int made) { told.emplace_back(found, made); };
  const KnownGraph softmax = KnownGraphs().front();
  const auto program = compiler::Compile(softmax.graph, numerics::HostTarget(), options);
  ASSERT_TRUE(program.ok()) << program.status();
  const int kernels = static_cast<int>(program->kernels.size());
  std::vector<std::pair<int, int>> expected(1 + kernels, {0, 1});
  expected[0] = {kernels, 0};
  EXPECT_EQ(told, expected);
  const compiler::PassReport& emit = program->passes.back();
  ASSERT_EQ(emit.pass, "emit");
  ASSERT_EQ(emit.parts.size(), 2u);  // nothing was written to a cache
  EXPECT_EQ(emit.parts[0].name, "wait_for_worker");
  EXPECT_DOUBLE_EQ(emit.parts[0].seconds, 2 * kernels);
  EXPECT_EQ(emit.parts[1].name, "compile");
  EXPECT_DOUBLE_EQ(emit.parts[1].seconds, kernels);
  EXPECT_DOUBLE_EQ(emit.seconds, 3 * kernels);
}

}  // namespace
}  // namespace kiln::golden
