# Flags and helpers that every target of the project shares.
add_library(drivetrain_flags INTERFACE)
target_compile_options(drivetrain_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-math-errno -ffp-contract=off
  # GCC 12 warns falsely on "literal" + std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(drivetrain_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(DRIVETRAIN_SANITIZE)
  target_compile_options(drivetrain_flags INTERFACE -fsanitize=${DRIVETRAIN_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(drivetrain_flags INTERFACE -fsanitize=${DRIVETRAIN_SANITIZE})
endif()

# drivetrain_library(NAME [PUBLIC libs...]): an empty static library; folders add their sources with target_sources().
function(drivetrain_library name)
  cmake_parse_arguments(arg "" "" "PUBLIC" ${ARGN})
  add_library(${name} STATIC)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC drivetrain_flags ${arg_PUBLIC})
endfunction()

# drivetrain_test(NAME SOURCES a.cpp... LIBS libs... [LABELS l...]): one GoogleTest program, each case a ctest.
function(drivetrain_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)  # CMake drops an empty value, and with it the pairing of all that follow
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1" LABELS "${arg_LABELS}")
endfunction()
