# The tool that runs passes on graphs in text form, and prints the settings of kernels.
kiln_program(irtool SOURCES irtool.cc irtool_settings.cc LIBRARIES kiln_pipeline kiln_graph kiln_kernel kiln_partition kiln_search)

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
irtool_test(unknown_pass "unknown pass \"frobnicate\"; the passes are differentiate, widen" --pass frobnicate ${IRTOOL_EXAMPLE})
irtool_test(required_pass "cannot switch off the pass \"widen\"" --disable widen ${IRTOOL_EXAMPLE})
irtool_test(pass_beyond_graphs "merge_rows does not work on graphs" --pass merge_rows ${IRTOOL_EXAMPLE})
irtool_test(pass_of_kernels "schedule works on one kernel" --to schedule ${IRTOOL_EXAMPLE})
irtool_test(unknown_file "cannot read" ${IRTOOL_EXAMPLE}.missing)
set(IRTOOL_RESIDUAL ${CMAKE_CURRENT_SOURCE_DIR}/testdata/residual.txt)
irtool_test(sites "split %7 reduce_sum float32\\[" --sites ${IRTOOL_RESIDUAL})
irtool_test(choices "group.*group" --to partition --choices ${CMAKE_CURRENT_SOURCE_DIR}/testdata/choices.txt ${IRTOOL_RESIDUAL})
irtool_test(choices_refused "line 2: .glue %7. is not a choice" --choices ${CMAKE_CURRENT_SOURCE_DIR}/testdata/illegal_choices.txt ${IRTOOL_RESIDUAL})
set(IRTOOL_MATMUL ${CMAKE_CURRENT_SOURCE_DIR}/testdata/matmul.txt)
set(IRTOOL_CORE "vector_bytes=64 vector_registers=32 compute_units=16")
irtool_test(space "stage 0 form:.*\\[panel\\].*stage 0 lane_axis: r0 \\[r1\\].*\nsetting 1\nstage 0 form=panel lane_axis=r1" --space
            ${IRTOOL_CORE} ${IRTOOL_MATMUL})
irtool_test(space_of_threads "stage 0 form:.*\\[block_tile\\]" --space
            "threads compute_units=16 threads_per_block=1024 threads_per_unit=2048 shared_bytes_per_block=49152" ${IRTOOL_MATMUL})
irtool_test(setting "ignored: 'polish=3': this version has no such knob\n.*split 1 32.*\nstage 0 1 " --space ${IRTOOL_CORE} --setting
            ${CMAKE_CURRENT_SOURCE_DIR}/testdata/setting.txt ${IRTOOL_MATMUL})
irtool_test(setting_refused "stage 0: vectors is 99, not from 1 to 4" --space ${IRTOOL_CORE} --setting
            ${CMAKE_CURRENT_SOURCE_DIR}/testdata/illegal_setting.txt ${IRTOOL_MATMUL})
irtool_test(unknown_field "'wings=2' is not FIELD=NUMBER; the fields are threads, vector_bytes" --space "wings=2" ${IRTOOL_MATMUL})
