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

# find_package(rowtune): rowtune::kernels, the kernel headers; rowtune::dispatch, what a generated rowtune_dispatch.cuh
# needs (-fmad=false: the outputs that the tuner verified, bit for bit).
include(CMakePackageConfigHelpers)
add_library(rowtune_kernel_headers INTERFACE)
target_include_directories(rowtune_kernel_headers INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rowtune_kernel_headers INTERFACE cxx_std_17)
set_target_properties(rowtune_kernel_headers PROPERTIES EXPORT_NAME kernels)
add_library(rowtune_dispatch_headers INTERFACE)
target_link_libraries(rowtune_dispatch_headers INTERFACE rowtune_kernel_headers)
target_compile_options(rowtune_dispatch_headers INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
set_target_properties(rowtune_dispatch_headers PROPERTIES EXPORT_NAME dispatch)
install(TARGETS rowtune_kernel_headers rowtune_dispatch_headers EXPORT rowtune-targets)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rowtune)
install(EXPORT rowtune-targets NAMESPACE rowtune:: DESTINATION ${package})
file(WRITE ${CMAKE_BINARY_DIR}/rowtune-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/rowtune-targets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rowtune-config-version.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${CMAKE_BINARY_DIR}/rowtune-config.cmake ${CMAKE_BINARY_DIR}/rowtune-config-version.cmake
        DESTINATION ${package})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tuner/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/rowtune USE_SOURCE_PERMISSIONS
        PATTERN CMakeLists.txt EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/tuner/examples/consumer/CMakeLists.txt
        DESTINATION ${CMAKE_INSTALL_DATADIR}/rowtune/examples/consumer)
