# Flags and helpers that every target of the project shares.
add_library(drivetrain_flags INTERFACE)
target_compile_options(drivetrain_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-math-errno -ffp-contract=off
  # GCC 12 warns falsely on "literal" + std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(drivetrain_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(DRIVETRAIN_SANITIZE)
  # GCC's flow analysis loses its way in instrumented library code.
  target_compile_options(drivetrain_flags INTERFACE
    -fsanitize=${DRIVETRAIN_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(drivetrain_flags INTERFACE -fsanitize=${DRIVETRAIN_SANITIZE})
endif()

# drivetrain_library(NAME [PUBLIC libs...]): an empty static library; folders add their sources with target_sources().
function(drivetrain_library name)
  cmake_parse_arguments(arg "" "" "PUBLIC" ${ARGN})
  add_library(${name} STATIC)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  # Our warnings are not for the projects that use an installed library.
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:drivetrain_flags> ${arg_PUBLIC})
endfunction()

# The programs that run ranks or workers as threads: built and run under the thread sanitizer.
add_custom_target(thread_tests)

# drivetrain_test(NAME [SERIAL] SOURCES a.cpp... LIBS libs... [LABELS label]): one GoogleTest program, each case a ctest
# (SERIAL: beside no other); under a
# sanitizer the program is one ctest, since starting it costs more than most cases.
function(drivetrain_test name)
  cmake_parse_arguments(arg "SERIAL" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)  # CMake drops an empty value, and with it the pairing of all that follow
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
  if(DRIVETRAIN_SANITIZE)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 900 ENVIRONMENT "OMP_NUM_THREADS=1")
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1" LABELS "${arg_LABELS}" RUN_SERIAL ${arg_SERIAL})
  endif()
endfunction()
