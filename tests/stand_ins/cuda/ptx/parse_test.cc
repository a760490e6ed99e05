#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/cuda/ptx/syntax.h"
#include "tests/stand_ins/cuda/ptx/testing/run.h"

namespace kiln::stand_ins::ptx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string WhyNotLoaded(const std::string& text) {
  TestMemory memory;
  const auto loaded = LoadTest(text, memory);
  return loaded.ok() ? "" : std::string(loaded.status().message());
}

TEST(Parse, ReadsModules) {
  const auto module = Parse(R"(// a comment
.version 8.7
.target sm_90a, debug
.address_size 64
.file 1 "somewhere.py"
.visible .const .align 8 .b8 table[4] = {1, 0xff, 3};  /* and
another */
.func (.param .b32 result) helper(.param .align 4 .b8 pair[8]) .noreturn;
.visible .entry k(.param .u64 .ptr .global .align 16 k_0)
.reqntid 8, 4, 1
{
  .reg .b32 %r<5>;
  .pragma "nounroll";
$loop:
  @!%p1 bra.uni $loop;
  ld.global.v2.b32 {%r1, _}, [%r2+-8];
  ret;
})");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->version, 87);
  EXPECT_EQ(module->target, "sm_90a");
  EXPECT_THAT(module->variables[0].initial, ElementsAre(1, 255, 3, 0));
  ASSERT_EQ(module->functions.size(), 2u);
  EXPECT_EQ(module->functions[0].parameters[0].bytes, 8);
  const Function& entry = module->functions[1];
  EXPECT_THAT(entry.required_threads, ElementsAre(8, 4, 1));
  ASSERT_EQ(entry.statements.size(), 3u);
  EXPECT_EQ(entry.statements[0].guard, "%p1");
  EXPECT_TRUE(entry.statements[0].guard_negated);
  EXPECT_EQ(entry.statements[1].operands[1].offset, -8);
  EXPECT_EQ(entry.statements[1].line, 16);
}

TEST(Parse, NamesTheLineOfWhatIsWrong) {
  EXPECT_EQ(WhyNotLoaded("int main() {}"), "line 1: a PTX text begins with .version");
  EXPECT_THAT(WhyNotLoaded(Kernel("add.u32 %r1, %r2;")),
              AllOf(HasSubstr("line 10"), HasSubstr("add.u32")));
  EXPECT_THAT(WhyNotLoaded(Kernel("bra nowhere;")), HasSubstr("no label nowhere"));
  EXPECT_THAT(WhyNotLoaded(Kernel("mov.u32 %r1, %r99;")), HasSubstr("%r99"));
  EXPECT_THAT(WhyNotLoaded(Kernel("ld.global.v4.u64 {%d1, %d2, %d3, %d4}, [%in];")),
              HasSubstr("more than 16 bytes"));
  EXPECT_THAT(WhyNotLoaded(Kernel("add.u64 %d1, %r1, %d2;")), HasSubstr("another width"));
  EXPECT_THAT(WhyNotLoaded(".version 8.0 .target sm_80 .address_size 64 .entry k() { "),
              HasSubstr("no end"));
  EXPECT_THAT(WhyNotLoaded(".version 8.0 .target sm_80 \"open"), HasSubstr("does not end"));
}

TEST(Parse, RefusesWhatIsNotInterpreted) {
  for (const char* body :
       {"ex2.approx.f32 %f1, %f2;", "sqrt.approx.f32 %f1, %f2;", "activemask.b32 %r1;",
        "mov.u32 %r1, %smid;", "wgmma.fence.sync.aligned;", "add.wrong.f32 %f1, %f2, %f3;",
        "barrier.cta.arrive 0, 64;", "cp.async.bulk.commit_group;",
        "fma.rn.relu.f16 %h1, %h2, %h3, %h4;"}) {
    EXPECT_THAT(WhyNotLoaded(Kernel(body)),
                AllOf(HasSubstr("line 10"), HasSubstr("not interpreted")))
        << body;
  }
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
