# What `cmake --install` puts where: the program, and the collective library with its headers and CMake package.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/drivetrain)

set_target_properties(drivetrain_base PROPERTIES EXPORT_NAME base)
set_target_properties(drivetrain_comm PROPERTIES EXPORT_NAME comm)
# Headers keep their paths below include/drivetrain and find each other there; users write <drivetrain/runtime/...>.
target_include_directories(drivetrain_base INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS drivetrain_comm drivetrain_base EXPORT drivetrain
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/drivetrain)
install(EXPORT drivetrain FILE drivetrainTargets.cmake NAMESPACE drivetrain:: DESTINATION ${package_folder})

configure_package_config_file(cmake/drivetrainConfig.cmake.in drivetrainConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may change the headers.
write_basic_package_version_file(drivetrainConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/drivetrainConfig.cmake ${PROJECT_BINARY_DIR}/drivetrainConfigVersion.cmake
  DESTINATION ${package_folder})

install(TARGETS drivetrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
