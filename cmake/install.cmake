# `cmake --install`: the program, the kernel headers, shell completion.
include(GNUInstallDirs)
if(ROWTUNE_BUNDLE)
  set_target_properties(rowtune PROPERTIES BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  # What exists in Debian as shared libraries only travels beside the program.
  set(bundle ${CMAKE_BINARY_DIR}/bundle)
  set(bundled_programs rowtune)
  foreach(test spec_gpu_test tuner_faults_test)  # those that have something to say of a GPU
    if(ROWTUNE_TESTS AND TARGET ${test})
      list(APPEND bundled_programs ${test})
      set_target_properties(${test} PROPERTIES BUILD_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
    endif()
  endforeach()
  set(copies)
  foreach(program ${bundled_programs})
    list(APPEND copies COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${program}> ${bundle})
  endforeach()
  add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND} -E make_directory ${bundle}
    ${copies}
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_SONAME_FILE:fmt::fmt> $<TARGET_SONAME_FILE:hwy::hwy> ${bundle}
    DEPENDS ${bundled_programs} COMMENT "Gathering the program and its libraries in ${bundle}" VERBATIM)
endif()

install(TARGETS rowtune RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/include/rowtune DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.cuh")
