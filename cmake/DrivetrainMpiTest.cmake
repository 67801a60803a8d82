# drivetrain_mpi_test(NAME RANKS n... SOURCES a.cpp... LIBS libs... [ARGS args...]): one GoogleTest program and, for each
# number of ranks, one ctest NAME_np<n> that runs it under mpirun. The main() comes from tests/mpi: it opens the world
# and hands it out as mpi_test_world().
function(drivetrain_mpi_test name)
  cmake_parse_arguments(arg "" "" "RANKS;SOURCES;LIBS;ARGS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE drivetrain_mpi_test_main ${arg_LIBS} GTest::gtest)
  drivetrain_mpi_run(${name} PROGRAM ${name} RANKS ${arg_RANKS} ARGS ${arg_ARGS})
endfunction()

# drivetrain_mpi_run(NAME PROGRAM target RANKS n... [ARGS args...]): the same program once more, with other arguments.
function(drivetrain_mpi_run name)
  cmake_parse_arguments(arg "" "PROGRAM" "RANKS;ARGS" ${ARGN})
  foreach(ranks ${arg_RANKS})
    # As root in containers, more ranks than cores, no search for fabrics.
    add_test(NAME ${name}_np${ranks}
      COMMAND ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none
              --mca pml ob1 --mca btl self,vader,tcp -np ${ranks} $<TARGET_FILE:${arg_PROGRAM}> ${arg_ARGS})
    set_tests_properties(${name}_np${ranks} PROPERTIES LABELS mpi TIMEOUT 120 ENVIRONMENT "OMP_NUM_THREADS=1")
  endforeach()
endfunction()
