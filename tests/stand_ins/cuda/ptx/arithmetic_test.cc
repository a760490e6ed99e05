// Tests of single instructions against values from PTX's definition.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/stand_ins/cuda/ptx/testing/run.h"

namespace kiln::stand_ins::ptx {
namespace {

constexpr uint32_t kNan = 0x7fc12345;
constexpr uint32_t kCanonicalNan = 0x7fffffff;

uint32_t F(float value) { return std::bit_cast<uint32_t>(value); }
uint32_t Pair(uint32_t low, uint32_t high) { return high << 16 | low; }

TEST(PtxArithmetic, FloatsRoundOnceAndHaveOneNan) {
  EXPECT_EQ(Bits("add.rn.f32", {F(1), F(2)}), F(3));
  EXPECT_EQ(Bits("add.f32", {kNan, F(2)}), kCanonicalNan);
  EXPECT_EQ(Bits("mul.f32", {F(INFINITY), F(0)}), kCanonicalNan);
  const float x = 1 + std::ldexp(1.0f, -12);
  EXPECT_EQ(Bits("fma.rn.f32", {F(x), F(x), F(-1)}), F(std::fma(x, x, -1.0f)));
  EXPECT_EQ(Bits("add.rz.f32", {F(1), F(std::ldexp(1.0f, -24))}), F(1));
  EXPECT_EQ(Bits("add.rp.f32", {F(1), F(std::ldexp(1.0f, -30))}), F(std::nextafter(1.0f, 2.0f)));
  EXPECT_EQ(Bits("add.rm.f32", {F(1), F(-std::ldexp(1.0f, -30))}), F(std::nextafter(1.0f, 0.0f)));
  EXPECT_EQ(Bits("div.rn.f32", {F(1), F(3)}), F(1.0f / 3));
  EXPECT_EQ(Bits("sqrt.rn.f32", {F(2)}), F(std::sqrt(2.0f)));
  EXPECT_EQ(Bits("rcp.rn.f32", {F(7)}), F(1.0f / 7));
}

TEST(PtxArithmetic, FlushesAndSaturates) {
  const uint32_t subnormal = 0x80000001;
  EXPECT_EQ(Bits("add.f32", {subnormal, 0x80000000}), subnormal);
  EXPECT_EQ(Bits("add.ftz.f32", {subnormal, 0x80000000}), 0x80000000u);
  EXPECT_EQ(Bits("mul.ftz.f32", {F(1e-30f), F(-1e-12f)}), 0x80000000u);
  EXPECT_EQ(Bits("add.sat.f32", {F(1), F(1)}), F(1));
  EXPECT_EQ(Bits("add.sat.f32", {kNan, F(1)}), F(0));
}

TEST(PtxArithmetic, ExtremaPreferNumbers) {
  EXPECT_EQ(Bits("min.f32", {kNan, F(2)}), F(2));
  EXPECT_EQ(Bits("max.f32", {F(2), kNan}), F(2));
  EXPECT_EQ(Bits("max.f32", {kNan, kNan}), kCanonicalNan);
  EXPECT_EQ(Bits("max.NaN.f32", {F(2), kNan}), kCanonicalNan);
  EXPECT_EQ(Bits("max.f32", {F(-0.0f), F(0)}), F(0));
  EXPECT_EQ(Bits("min.f32", {F(0), F(-0.0f)}), F(-0.0f));
  EXPECT_EQ(Bits("neg.f32", {F(1)}), F(-1));
  EXPECT_EQ(Bits("abs.f32", {F(-1)}), F(1));
  EXPECT_EQ(Bits("copysign.f32", {F(-1), F(5)}), F(-5));
}

TEST(PtxArithmetic, ShortFloats) {
  EXPECT_EQ(Bits("add.rn.f16x2", {Pair(0x3c00, 0x7c00), Pair(0x3c00, 0xfc00)}),
            Pair(0x4000, 0x7fff));
  // 1 + 2^-11 is a tie, to even.
  EXPECT_EQ(Bits("add.f16x2", {Pair(0x3c00, 0x3c01), Pair(0x1000, 0x1000)}), Pair(0x3c00, 0x3c02));
  // (1 + 2^-10)^2 - (1 + 2^-9) would be lost if the product were rounded.
  EXPECT_EQ(Bits("fma.rn.f16x2", {Pair(0x3c01, 0), Pair(0x3c01, 0), Pair(0xbc02, 0)}),
            Pair(0x0010, 0));
  EXPECT_EQ(
      Bits("fma.rn.bf16x2", {Pair(0x3f80, 0x3f80), Pair(0x3f80, 0x4000), Pair(0x3f80, 0x3f80)}),
      Pair(0x4000, 0x4040));
  EXPECT_EQ(Bits("min.f16x2", {Pair(0x3c00, 0x7e01), Pair(0x4000, 0x4000)}), Pair(0x3c00, 0x4000));
  EXPECT_EQ(Bits("neg.bf16x2", {Pair(0x3f80, 0xbf80)}), Pair(0xbf80, 0x3f80));
}

TEST(PtxArithmetic, Integers) {
  EXPECT_EQ(Bits("add.s32", {0x7fffffff, 1}), 0x80000000u);
  EXPECT_EQ(Bits("add.sat.s32", {0x7fffffff, 1}), 0x7fffffffu);
  EXPECT_EQ(Bits("mul.lo.s32", {0xffffffff, 5}), static_cast<uint32_t>(-5));
  EXPECT_EQ(Bits("mul.hi.s32", {0xffffffff, 5}), 0xffffffffu);
  EXPECT_EQ(Bits("mul.hi.u32", {0xffffffff, 5}), 4u);
  EXPECT_EQ(Bits("mad.lo.s32", {3, 4, 5}), 17u);
  EXPECT_EQ(Bits("div.s32", {0x80000000, 0xffffffff}), 0x80000000u);
  EXPECT_EQ(Bits("rem.s32", {static_cast<uint32_t>(-7), 3}), static_cast<uint32_t>(-1));
  EXPECT_EQ(Bits("div.u32", {7, 0}), 0xffffffffu);
  EXPECT_EQ(Bits("min.s32", {0xffffffff, 0}), 0xffffffffu);
  EXPECT_EQ(Bits("min.u32", {0xffffffff, 0}), 0u);
  EXPECT_EQ(Bits("abs.s32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(Bits("max.s16x2", {Pair(0xffff, 5), Pair(0, 3)}), Pair(0, 5));
}

TEST(PtxArithmetic, Bits) {
  EXPECT_EQ(Bits("shl.b32", {1, 31}), 0x80000000u);
  EXPECT_EQ(Bits("shl.b32", {1, 32}), 0u);
  EXPECT_EQ(Bits("shr.s32", {0x80000000, 99}), 0xffffffffu);
  EXPECT_EQ(Bits("shr.u32", {0x80000000, 31}), 1u);
  EXPECT_EQ(Bits("bfe.u32", {0xabcd1234, 8, 8}), 0x12u);
  EXPECT_EQ(Bits("bfe.s32", {0x0000f000, 12, 4}), 0xffffffffu);
  EXPECT_EQ(Bits("bfi.b32", {0xff, 0, 4, 4}), 0xf0u);
  EXPECT_EQ(Bits("brev.b32", {1}), 0x80000000u);
  EXPECT_EQ(Bits("popc.b32", {0xf0f0}), 8u);
  EXPECT_EQ(Bits("clz.b32", {0x00010000}), 15u);
  EXPECT_EQ(Bits("clz.b32", {0}), 32u);
  EXPECT_EQ(Bits("bfind.u32", {0x00010000}), 16u);
  EXPECT_EQ(Bits("prmt.b32", {0x33221100, 0x77665544, 0x7531}), 0x77553311u);
  EXPECT_EQ(Bits("prmt.b32", {0x00000080, 0, 0x8888}), 0xffffffffu);
  EXPECT_EQ(Bits("shf.l.wrap.b32", {0x80000000, 1, 1}), 3u);
  EXPECT_EQ(Bits("shf.r.clamp.b32", {0x12345678, 0xabcdef01, 40}), 0xabcdef01u);
  EXPECT_EQ(Evaluate<uint32_t>("ld.global.v2.b32 {%r1, %r2}, [%in]; ld.global.b32 %r3, [%in+8];"
                               "lop3.b32 %r9, %r1, %r2, %r3, 0x96; st.global.b32 [%out], %r9;",
                               std::vector<uint32_t>{0xf0, 0xcc, 0xaa})[0],
            0xf0u ^ 0xccu ^ 0xaau);
}

TEST(PtxArithmetic, Carries) {
  const std::vector<uint64_t> sum = Evaluate<uint64_t, uint64_t>(R"(
    ld.global.v2.u64 {%d1, %d2}, [%in];
    add.cc.s64 %d3, %d1, %d1;
    addc.cc.s64 %d4, %d2, %d2;
    addc.s64 %d5, 0, 0;
    sub.cc.s64 %d6, 0, 1;
    subc.s64 %d7, 5, 0;
    st.global.v2.u64 [%out], {%d3, %d4}; st.global.v2.u64 [%out+16], {%d5, %d7};)",
                                                                 {~uint64_t{0}, ~uint64_t{0}}, 4);
  EXPECT_THAT(sum, testing::ElementsAre(~uint64_t{1}, ~uint64_t{0}, 1, 4));
}

TEST(PtxArithmetic, Conversions) {
  EXPECT_EQ(Bits("cvt.rzi.s32.f32", {F(-2.9f)}), static_cast<uint32_t>(-2));
  EXPECT_EQ(Bits("cvt.rni.s32.f32", {F(2.5f)}), 2u);
  EXPECT_EQ(Bits("cvt.rpi.s32.f32", {F(2.1f)}), 3u);
  EXPECT_EQ(Bits("cvt.rzi.s32.f32", {F(1e20f)}), 0x7fffffffu);
  EXPECT_EQ(Bits("cvt.rzi.u32.f32", {F(-5)}), 0u);
  EXPECT_EQ(Bits("cvt.rzi.u32.f32", {kNan}), 0u);
  EXPECT_EQ(Bits("cvt.rzi.s8.f32", {F(1000)}), 127u);
  EXPECT_EQ(Bits("cvt.rn.f32.s32", {0xffffffff}), F(-1));
  EXPECT_EQ(Bits("cvt.rn.f32.u32", {0xffffffff}), F(4294967296.0f));
  EXPECT_EQ(Bits("cvt.rz.f32.u32", {0xffffffff}), F(4294967040.0f));
  EXPECT_EQ(Bits("cvt.rmi.f32.f32", {F(-0.5f)}), F(-1));
  EXPECT_EQ(Bits("cvt.sat.f32.f32", {F(7)}), F(1));
  EXPECT_EQ(Bits("cvt.s32.s8", {0x80}), 0xffffff80u);
  EXPECT_EQ(Bits("cvt.u32.u8", {0x180}), 0x80u);
  EXPECT_EQ(Bits("cvt.sat.u8.s32", {static_cast<uint32_t>(-3)}), 0u);
  EXPECT_EQ(Bits("cvt.rn.f16x2.f32", {F(2), F(1)}), Pair(0x3c00, 0x4000));
  EXPECT_EQ(Bits("cvt.rn.bf16x2.f32", {F(2), kNan}), Pair(0x7fff, 0x4000));
  EXPECT_EQ(Bits("cvt.rna.tf32.f32", {0x3f801000}), 0x3f802000u);
  EXPECT_EQ(Evaluate<float>(R"(ld.global.f64 %g1, [%in]; cvt.rn.f32.f64 %f1, %g1;
                               st.global.f32 [%out], %f1;)",
                            std::vector<double>{0.1})[0],
            0.1f);
  EXPECT_EQ(Evaluate<uint64_t>(R"(ld.global.f32 %f1, [%in]; cvt.rzi.s64.f32 %d1, %f1;
                                  st.global.u64 [%out], %d1;)",
                               std::vector<uint32_t>{kNan})[0],
            uint64_t{1} << 63);
  EXPECT_EQ(
      Evaluate<uint16_t>(R"(ld.global.f64 %g1, [%in]; cvt.rn.f16.f64 %h1, %g1;
                                  st.global.b16 [%out], %h1;)",
                         std::vector<double>{1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)})[0],
      0x3c01);
}

TEST(PtxArithmetic, ComparisonsAndSelections) {
  const auto compare = [](const std::string& how, uint32_t a, uint32_t b) {
    return Evaluate<uint32_t>(absl::StrCat("ld.global.v2.b32 {%r1, %r2}, [%in]; setp.", how,
                                           " %p1|%p2, %r1, %r2; selp.b32 %r3, 1, 0, %p1;"
                                           "selp.b32 %r4, 2, 0, %p2; or.b32 %r3, %r3, %r4;"
                                           "st.global.u32 [%out], %r3;"),
                              std::vector<uint32_t>{a, b})[0];
  };
  EXPECT_EQ(compare("lt.s32", 0xffffffff, 0), 1u);
  EXPECT_EQ(compare("lt.u32", 0xffffffff, 0), 2u);
  EXPECT_EQ(compare("hs.u32", 3, 3), 1u);
  EXPECT_EQ(compare("ne.f32", kNan, kNan), 2u);
  EXPECT_EQ(compare("neu.f32", kNan, kNan), 1u);
  EXPECT_EQ(compare("num.f32", F(1), kNan), 2u);
  EXPECT_EQ(compare("nan.f32", F(1), kNan), 1u);
  EXPECT_EQ(compare("eq.ftz.f32", 1, 0), 1u);
  const auto has = [](const std::string& property, uint32_t value) {
    return Evaluate<uint32_t>(absl::StrCat("ld.global.f32 %f1, [%in]; testp.", property,
                                           ".f32 %p1, %f1; selp.u32 %r1, 1, 0, %p1;"
                                           "st.global.u32 [%out], %r1;"),
                              std::vector<uint32_t>{value})[0];
  };
  EXPECT_EQ(has("normal", F(0)), 1u);
  EXPECT_EQ(has("normal", 1), 0u);
  EXPECT_EQ(has("subnormal", 1), 1u);
  EXPECT_EQ(has("infinite", F(INFINITY)), 1u);
  EXPECT_EQ(has("notanumber", kNan), 1u);
  EXPECT_EQ(Bits("set.lt.u32.s32", {1, 2}), 0xffffffffu);
  EXPECT_EQ(Bits("set.lt.f32.s32", {1, 2}), F(1));
}

}  // namespace
}  // namespace kiln::stand_ins::ptx
