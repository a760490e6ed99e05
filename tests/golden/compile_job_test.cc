// What crosses into a worker process is all that an image is made of.
#include <string>

#include "absl/strings/cord.h"
#include "compiler/compiler.h"
#include "compiler/workers/message.h"
#include "gtest/gtest.h"
#include "tests/golden/graphs.h"
#include "tests/numerics/target.h"

namespace kiln::golden {
namespace {

// There and back again as between processes, in this one.
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

// Refuses all schedules but the plain one.
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

}  // namespace
}  // namespace kiln::golden
