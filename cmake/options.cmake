# One INTERFACE target carries the language, the warnings and the sanitizers; every target links it.
option(ROWTUNE_WERROR "Treat warnings as errors" OFF)
option(ROWTUNE_TESTS "Build the tests" ON)
option(ROWTUNE_BUNDLE "Link so that the program can be copied to a machine without its libraries" OFF)
option(ROWTUNE_CUDA "Offer CUDA devices where a CUDA Toolkit is found" ON)
option(ROWTUNE_FUZZ "Build the fuzz targets with libFuzzer, and nothing else (clang)" OFF)
set(ROWTUNE_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(rowtune_options INTERFACE)
target_include_directories(rowtune_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/include)
# Numerics are a choice here, not an accident: no contraction unless the code says fma, no fast-math.
target_compile_options(rowtune_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                       -Wcast-align -ffp-contract=off)
# GCC 12 sees overlapping copies in assignments to std::string (GCC bug 105329).
target_compile_options(rowtune_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(ROWTUNE_WERROR)
  target_compile_options(rowtune_options INTERFACE -Werror)
endif()
if(ROWTUNE_SANITIZE)
  # Instrumented, GCC 12 takes the standard library's std::function for uninitialised.
  target_compile_options(rowtune_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(rowtune_options INTERFACE -fsanitize=${ROWTUNE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(rowtune_options INTERFACE -fsanitize=${ROWTUNE_SANITIZE})
endif()

# rowtune_test(NAME sources... LIBS targets... [LONG] [THREADS]): a GoogleTest program, its cases known to CTest.
# LONG, or a test whose name begins with Long, runs with `./dev test --all` only. THREADS of our own are at work in it:
# `./dev tsan` builds (target `threads`) and runs it under ThreadSanitizer.
# A test has one label, such as quick.tuner.threads (gtest_discover_tests takes no second one); filters match its words.
function(rowtune_test name)
  if(NOT ROWTUNE_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "LONG;THREADS" "" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" label ".${folder}")
  if(arg_THREADS)
    string(APPEND label .threads)
    if(NOT TARGET threads)
      add_custom_target(threads)
    endif()
    add_dependencies(threads ${name})
  endif()
  target_link_libraries(${name} PRIVATE rowtune_options ${arg_LIBS} GTest::gtest GTest::gtest_main)
  set(how DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)  # 5 s, the default, are few on a busy machine
  if(arg_LONG)
    gtest_discover_tests(${name} ${how} PROPERTIES LABELS long${label} TIMEOUT 1800)
  else()
    gtest_discover_tests(${name} ${how} TEST_FILTER "-*.Long*" PROPERTIES LABELS quick${label} TIMEOUT 600)
    gtest_discover_tests(${name} ${how} TEST_FILTER "*.Long*" PROPERTIES LABELS long${label} TIMEOUT 1800)
  endif()
endfunction()
