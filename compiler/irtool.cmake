# The tool that runs passes on graphs in text form.
kiln_program(irtool SOURCES irtool.cc LIBRARIES kiln_pipeline kiln_graph kiln_kernel)

# irtool_test(NAME REGEX ARGUMENT…): its output must match.
function(irtool_test name regex)
  add_test(NAME irtool_${name} COMMAND irtool ${ARGN})
  set_tests_properties(irtool_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${regex}" LABELS compiler)
endfunction()
set(IRTOOL_EXAMPLE ${CMAKE_CURRENT_SOURCE_DIR}/testdata/loss.txt)
irtool_test(list "differentiate.*simplify  \\(optional\\).*partition.*lower.*schedule  \\(optional\\)" --list)
irtool_test(pass "mul float32\\[4\\] %0 %0.*neg float32" --pass simplify ${IRTOOL_EXAMPLE})
irtool_test(partition "group" --to partition ${IRTOOL_EXAMPLE})
irtool_test(kernels "float32" ${IRTOOL_EXAMPLE})
irtool_test(dump "== after simplify\n.*mul float32.*== after merge_rows\ncluster 0.*arena" --to plan_memory --dump simplify,merge_rows
            ${IRTOOL_EXAMPLE})
irtool_test(times "widen +[0-9.]+ s\nround_factors +[0-9.]+ s\nsimplify +0.000000 s  \\(off\\)" --times --disable simplify ${IRTOOL_EXAMPLE})
irtool_test(unknown_pass "there is no pass \"frobnicate\"; the passes are differentiate, widen" --pass frobnicate ${IRTOOL_EXAMPLE})
irtool_test(required_pass "cannot switch off the pass \"widen\"" --disable widen ${IRTOOL_EXAMPLE})
irtool_test(pass_beyond_graphs "merge_rows does not work on graphs" --pass merge_rows ${IRTOOL_EXAMPLE})
irtool_test(pass_of_kernels "schedule works on one kernel" --to schedule ${IRTOOL_EXAMPLE})
irtool_test(unknown_file "cannot read" ${IRTOOL_EXAMPLE}.missing)
