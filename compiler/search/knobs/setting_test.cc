// The text of settings, and what becomes of stored ones that do not fit.
#include "compiler/search/knobs/setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/search/space.h"

namespace kiln::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

drivers::Target Core() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.limits.vector_bytes = 64;
  target.limits.vector_registers = 32;
  target.limits.compute_units = 16;
  return target;
}

TEST(Setting, RowsOfKnobsAreInTheOrderOfTheirNumbers) {
  for (size_t i = 0; i < KnobRows().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(KnobRows()[i].knob), i);
    EXPECT_EQ(FindKnob(KnobRows()[i].name), &KnobRows()[i]);
  }
  for (size_t i = 0; i < FormRows().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(FormRows()[i].form), i);
    const std::string name = PrintValue(Knob::kForm, static_cast<int64_t>(i));
    EXPECT_EQ(*ParseValue(Knob::kForm, name), static_cast<int64_t>(i));
  }
}

// The text of the first format: stored settings are read forever.
constexpr char kStored[] =
    "setting 1\n"
    "kernel lane_axis=none tasks=64 prefetch=1\n"
    "stage 0 form=sum_lanes lane_axis=r1 vectors=4\n";

TEST(Setting, PrintsAndReadsItsText) {
  const auto parsed = ParseSetting(kStored);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->ignored.empty());
  EXPECT_EQ(parsed->setting.parts.at(kKernelPart)[Knob::kLaneAxis], -1);
  EXPECT_EQ(parsed->setting.parts.at(0).form(), Form::kSumLanes);
  EXPECT_EQ(parsed->setting.parts.at(0)[Knob::kLaneAxis], 1);
  EXPECT_EQ(Print(parsed->setting), kStored);
}

TEST(Setting, CommentsAreIgnored) {
  const auto parsed = ParseSetting(std::string("# cost by the model: 672\n") + kStored + "# end\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(parsed->setting), kStored);
}

TEST(Setting, UnknownKnobsAreIgnoredWithAReason) {
  const auto parsed = ParseSetting("setting 1\nstage 0 rows=3 polish=1 columns=many lanes\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->setting.parts.at(0), (Values{{Knob::kRows, 3}}));
  EXPECT_THAT(parsed->ignored,
              ElementsAre("'polish=1': this version has no such knob",
                          "'columns=many': 'many' is not an integer", "'lanes': it has no value"));
}

TEST(Setting, OtherTextsAreRefused) {
  for (const char* text :
       {"", "setting 2\n", "stage 0 rows=3\n", "setting 1\nrows=3\n", "setting 1\nstage x rows=3\n",
        "setting 1\nstage\n", "setting 1\nstage -1 rows=3\n"}) {
    EXPECT_EQ(ParseSetting(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Space, CompletesStoredSettings) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 512, 512, 512);
  const drivers::Target target = Core();
  const Space space(kernel, target, Machine::kLanes);
  Setting stored;
  stored.parts[0] = space.heuristic().parts.at(0);
  std::vector<std::string> ignored;
  EXPECT_EQ(space.Complete({}, &ignored), space.heuristic());
  EXPECT_TRUE(ignored.empty());

  stored.parts[0] = {
      {Knob::kForm, static_cast<int64_t>(Form::kPanel)}, {Knob::kRows, 1}, {Knob::kThreads, 64}};
  stored.parts[3] = {};
  const Setting complete = space.Complete(stored, &ignored);
  EXPECT_EQ(complete.parts.at(0)[Knob::kRows], 1);
  EXPECT_EQ(complete.parts.at(0).all().size(), space.heuristic().parts.at(0).all().size());
  EXPECT_THAT(ignored, ElementsAre("stage 0: threads=64: the form has no such knob",
                                   "stage 3: the kernel has no such part"));

  ignored.clear();
  stored.parts = {{0, {{Knob::kForm, static_cast<int64_t>(Form::kSquares)}}}};
  EXPECT_EQ(space.Complete(stored, &ignored), space.heuristic());
  EXPECT_THAT(ignored, ElementsAre(HasSubstr("stage 0: form=squares: the loops do not have")));
}

TEST(Space, SaysWhySettingsAreNotLegal) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 512, 512, 512);
  const drivers::Target target = Core();
  const Space space(kernel, target, Machine::kLanes);
  const auto why = [&space](Knob knob, int64_t value) {
    Setting setting = space.heuristic();
    setting.parts[0].Set(knob, value);
    return std::string(space.Write(setting).status().message());
  };
  EXPECT_THAT(why(Knob::kVectors, 99), HasSubstr("stage 0: vectors is 99, not from 1 to 4"));
  EXPECT_THAT(why(Knob::kLanes, 12), HasSubstr("lanes is 12, not a power of two from 8 to 16"));
  EXPECT_THAT(why(Knob::kRowAxis, 1), HasSubstr("row_axis is r1, not r0"));
  EXPECT_THAT(why(Knob::kLaneAxis, 2), HasSubstr("leading axis"));
  EXPECT_THAT(why(Knob::kThreads, 2), HasSubstr("knobs of another form"));
  EXPECT_THAT(why(Knob::kMoreRows, 2), HasSubstr("no second loop gives rows"));
  EXPECT_THAT(std::string(space.Write({}).status().message()), HasSubstr("other parts"));
}

// A search may have found values in another version, whose heuristic started elsewhere.
TEST(Space, NumbersBetweenTriedOnesAreLegal) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::ChainKernel(context, 1 << 22);
  const drivers::Target target = Core();
  const Space space(kernel, target, Machine::kLanes);
  Setting setting = space.heuristic();
  setting.parts[0].Set(Knob::kTasks, setting.parts[0][Knob::kTasks] + 1);
  EXPECT_TRUE(space.Write(setting).ok()) << space.Write(setting).status();
  std::vector<int64_t> near;
  for (const Setting& neighbour : space.Neighbours(setting)) {
    const int64_t tasks = neighbour.parts.at(0)[Knob::kTasks];
    if (tasks != setting.parts[0][Knob::kTasks]) near.push_back(tasks);
  }
  EXPECT_THAT(near, testing::IsSupersetOf({space.heuristic().parts.at(0)[Knob::kTasks]}));
}

TEST(Space, WiderTilesCostLessByTheModel) {
  ir::Context context;
  const kernel::Kernel kernel = codegen::MatmulKernel(context, 512, 512, 512);
  const drivers::Target target = Core();
  const Space space(kernel, target, Machine::kLanes);
  Setting narrow = space.heuristic();
  narrow.parts[0].Set(Knob::kRows, 1);
  ASSERT_TRUE(space.Write(narrow).ok()) << space.Write(narrow).status();
  EXPECT_LT(*space.Estimate(space.heuristic()), *space.Estimate(narrow));
}

}  // namespace
}  // namespace kiln::search
