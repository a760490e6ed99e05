#include "server/finishing_compiler.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;

// Returns a preset answer and records its jobs.
class FakeCompiler : public workers::KernelCompiler {
 public:
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override {
    jobs.push_back(job);
    return answer;
  }
  std::vector<workers::KernelJob> jobs;
  absl::StatusOr<drivers::KernelImage> answer = drivers::KernelImage();
};

class FinishingCompilerTest : public ::testing::Test {
 protected:
  FinishingCompilerTest() {
    assembler_.answer->name = "add_64";
    assembler_.answer->code = "source";
    finisher_.answer->code = "something else";
    finisher_.answer->finished = "binary";
    job_.name = "add_64";
    job_.kernel = "loops";
    job_.schedule = "split";
    job_.target.finisher = {"opencl", "a GPU", "1.0"};
  }

  FakeCompiler assembler_, finisher_;
  workers::KernelJob job_;
  std::vector<std::string> unable_;
  FinishingCompiler compiler_{
      {.assembler = &assembler_,
       .finisher = &finisher_,
       .on_unable = [this](const drivers::Finisher& finisher, const absl::Status& why) {
         unable_.push_back(finisher.device + ": " + std::string(why.message()));
       }}};
};

TEST_F(FinishingCompilerTest, FinishesWhatWasAssembled) {
  const auto image = compiler_.Compile(job_);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->finished, "binary");
  // The other fields are the assembler's.
  EXPECT_EQ(image->code, "source");
  ASSERT_EQ(finisher_.jobs.size(), 1u);
  EXPECT_EQ(finisher_.jobs[0].name, "add_64");
  EXPECT_EQ(finisher_.jobs[0].unfinished->code, "source");
  EXPECT_EQ(finisher_.jobs[0].kernel, "");
  EXPECT_EQ(finisher_.jobs[0].target.finisher.device, "a GPU");
}

TEST_F(FinishingCompilerTest, WithoutAFinisherImagesStayAsTheyAre) {
  job_.target.finisher = {};
  EXPECT_EQ(compiler_.Compile(job_)->finished, "");
  EXPECT_TRUE(finisher_.jobs.empty());
}

TEST_F(FinishingCompilerTest, ARehearsalHasNothingToFinish) {
  job_.rehearsal.emplace();
  EXPECT_TRUE(compiler_.Compile(job_).ok());
  EXPECT_TRUE(finisher_.jobs.empty());
}

TEST_F(FinishingCompilerTest, ErrorsAreKept) {
  finisher_.answer = absl::InternalError("it died");
  EXPECT_EQ(compiler_.Compile(job_).status(), absl::InternalError("it died"));
  assembler_.answer = absl::InternalError("no code");
  EXPECT_EQ(compiler_.Compile(job_).status(), absl::InternalError("no code"));
  EXPECT_EQ(finisher_.jobs.size(), 1u);
  EXPECT_TRUE(unable_.empty());
}

TEST_F(FinishingCompilerTest, ADeviceThatCannotDoItIsNotAskedAgain) {
  finisher_.answer = absl::UnimplementedError("no binaries");
  for (int i = 0; i < 3; ++i) {
    const auto image = compiler_.Compile(job_);
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->code, "source");
    EXPECT_EQ(image->finished, "");
  }
  EXPECT_EQ(finisher_.jobs.size(), 1u);
  EXPECT_THAT(unable_, ElementsAre("a GPU: no binaries"));
  job_.target.finisher.device = "another GPU";
  EXPECT_TRUE(compiler_.Compile(job_).ok());
  EXPECT_EQ(finisher_.jobs.size(), 2u);
}

}  // namespace
}  // namespace kiln
