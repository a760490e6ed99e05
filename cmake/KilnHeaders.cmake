# What many sources include is parsed once: the most used parts of the standard library and of Abseil, and GoogleTest for
# tests. Nothing of Kiln's own: a change of it would compile everything again.
# A source still includes what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows what it forgot.
set(KILN_COMMON_HEADERS
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set> <string>
    <string_view> <thread> <utility> <variant> <vector>
    <absl/algorithm/container.h> <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/synchronization/mutex.h>
    <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>)

# Optimising a test costs up to as much again as compiling it, and it spends its time in what it tests and in the libraries
# that compute references. Those are optimised.
set(KILN_TEST_OPTIONS -O0)

# GCC reads a precompiled header only with the options that it was made with: one for libraries, one for programs.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
function(kiln_precompiled_headers name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE kiln_options)
endfunction()
kiln_precompiled_headers(kiln_headers ${KILN_COMMON_HEADERS})
set(KILN_HEADERS kiln_headers)
# kiln_precompiled_test_headers(NAME MORE…): those of tests, and more that some folders' tests share.
function(kiln_precompiled_test_headers name)
  kiln_precompiled_headers(${name} ${KILN_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h> ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
  target_compile_options(${name} PRIVATE -fPIE ${KILN_TEST_OPTIONS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()
kiln_precompiled_test_headers(kiln_test_headers)
set(KILN_TEST_HEADERS kiln_test_headers)
if(KILN_COVERAGE)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # the libraries that count what runs are made with options of their own
endif()
