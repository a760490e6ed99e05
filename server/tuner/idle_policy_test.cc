#include "server/tuner/idle_policy.h"

#include "gtest/gtest.h"
#include "server/clock/day_hours.h"

namespace kiln::tuner {
namespace {

constexpr absl::Duration kQuiet = absl::Seconds(60);

IdleState::Device Device(double seconds_of_next = 1) {
  return {.quiet = kQuiet, .seconds_of_next = seconds_of_next};
}
IdleState::Device Busy() {
  IdleState::Device device = Device();
  device.has_users_work = true;
  return device;
}
IdleState::Device Recent() {
  IdleState::Device device = Device();
  device.quiet = kQuiet - absl::Nanoseconds(1);
  return device;
}
IdleDecision Of(IdleState state) { return Decide(state, kQuiet); }

TEST(IdlePolicy, BeginsOnTheQuietDeviceWithTheMostToGain) {
  EXPECT_EQ(Of({.devices = {Device(1), Device(3), Device(2)}}),
            (IdleDecision{IdleStep::kBegin, 1}));
  IdleState::Device busy = Busy(), recent = Recent();
  busy.seconds_of_next = recent.seconds_of_next = 9;
  EXPECT_EQ(Of({.devices = {busy, recent, Device(1)}}), (IdleDecision{IdleStep::kBegin, 2}));
  EXPECT_EQ(Of({.devices = {busy, recent}}), IdleDecision());
  EXPECT_EQ(Of({.devices = {Device(0)}}), IdleDecision());
}

TEST(IdlePolicy, CoresAreQuietIfAllDevicesAre) {
  IdleState::Device cores = Device(5);
  cores.uses_cores = true;
  EXPECT_EQ(Of({.devices = {cores, Recent()}}), IdleDecision());
  EXPECT_EQ(Of({.devices = {cores, Device(1)}}), (IdleDecision{IdleStep::kBegin, 0}));
  // Others need only themselves.
  cores.has_users_work = true;
  EXPECT_EQ(Of({.devices = {cores, Device(1)}}), (IdleDecision{IdleStep::kBegin, 1}));
  cores.has_users_work = false;
  EXPECT_EQ(Of({.devices = {cores, Busy()}, .search = {{.device = 0}}}),
            (IdleDecision{IdleStep::kPause, 0}));
}

TEST(IdlePolicy, WorkOnTheHostCountsForEachDevice) {
  const absl::Duration recent = kQuiet - absl::Nanoseconds(1);
  EXPECT_EQ(Of({.has_host_work = true, .devices = {Device()}}), IdleDecision());
  EXPECT_EQ(Of({.host_quiet = recent, .devices = {Device()}}), IdleDecision());
  EXPECT_EQ(Of({.host_quiet = kQuiet, .devices = {Device()}}), (IdleDecision{IdleStep::kBegin, 0}));
  EXPECT_EQ(Of({.has_host_work = true, .devices = {Device()}, .search = {{}}}),
            (IdleDecision{IdleStep::kPause, 0}));
  EXPECT_EQ(Of({.host_quiet = recent, .devices = {Device()}, .search = {{.is_paused = true}}}),
            IdleDecision());
}

TEST(IdlePolicy, DoesNotBeginWhereItMayNot) {
  IdleState::Device asked = Device(), unusable = Device();
  asked.is_asked = true;
  unusable.is_usable = false;
  EXPECT_EQ(Of({.devices = {asked, unusable}}), IdleDecision());
  EXPECT_EQ(Of({.is_allowed = false, .devices = {Device()}}), IdleDecision());
}

TEST(IdlePolicy, PausesWhileUsersWork) {
  EXPECT_EQ(Of({.devices = {Device()}, .search = {{}}}), IdleDecision());
  EXPECT_EQ(Of({.devices = {Busy()}, .search = {{}}}), (IdleDecision{IdleStep::kPause, 0}));
  // Their work may have ended before anybody looked.
  EXPECT_EQ(Of({.devices = {Recent()}, .search = {{}}}), (IdleDecision{IdleStep::kPause, 0}));
  const IdleState::Search paused{.is_paused = true};
  EXPECT_EQ(Of({.devices = {Busy()}, .search = paused}), IdleDecision());
  EXPECT_EQ(Of({.devices = {Recent()}, .search = paused}), IdleDecision());
  EXPECT_EQ(Of({.devices = {Device()}, .search = paused}), (IdleDecision{IdleStep::kResume, 0}));
  // There is one search at a time.
  EXPECT_EQ(Of({.devices = {Busy(), Device(9)}, .search = paused}), IdleDecision());
}

TEST(IdlePolicy, EndsWhatIsNotAllowedAnyMore) {
  for (const bool is_paused : {false, true}) {
    const IdleState::Search search{.device = 1, .is_paused = is_paused};
    IdleState::Device asked = Device(), unusable = Device();
    asked.is_asked = true;
    unusable.is_usable = false;
    const IdleDecision end{IdleStep::kEnd, 1};
    EXPECT_EQ(Of({.devices = {Device(), asked}, .search = search}), end);
    EXPECT_EQ(Of({.devices = {Device(), unusable}, .search = search}), end);
    EXPECT_EQ(Of({.is_allowed = false, .devices = {Device(), Device()}, .search = search}), end);
  }
}

TEST(DayHours, MayPassMidnight) {
  const absl::TimeZone zone = absl::FixedTimeZone(2 * 3600);
  const auto at = [&](int hour, int minute = 0) {
    return absl::FromCivil(absl::CivilMinute(2026, 1, 31, hour, minute), zone);
  };
  const auto night = ParseDayHours("22-6"), day = ParseDayHours("9-17"),
             late = ParseDayHours("20-24");
  ASSERT_TRUE(night && day && late);
  EXPECT_TRUE(night->Contains(at(22), zone) && night->Contains(at(0), zone) &&
              night->Contains(at(5, 59), zone));
  EXPECT_FALSE(night->Contains(at(6), zone) || night->Contains(at(21, 59), zone));
  EXPECT_TRUE(day->Contains(at(9), zone) && day->Contains(at(16, 59), zone));
  EXPECT_FALSE(day->Contains(at(17), zone) || day->Contains(at(8), zone));
  EXPECT_TRUE(late->Contains(at(23), zone));
  EXPECT_FALSE(late->Contains(at(0), zone));
  EXPECT_TRUE(ParseDayHours("")->Contains(at(3), zone));
  EXPECT_TRUE(ParseDayHours("0-24")->Contains(at(3), zone));
  for (const char* text : {"22", "-6", "22-", "22-25", "a-b", "22-6 ", "+2-6", "22:00-6", "1-2-3"})
    EXPECT_FALSE(ParseDayHours(text)) << text;
}

}  // namespace
}  // namespace kiln::tuner
