# Tests of `./dev test --all`: they are built when they are run, so that a plain build does not wait for them.

# A larger sample: every pair of values in two cases, from another seed.
emulated_kernels(emulated_kernels_long STATIC 12 2 4000 2 -)
add_executable(spec_emulated_long_test EXCLUDE_FROM_ALL ${spec})
target_link_libraries(spec_emulated_long_test PRIVATE rowtune_spec rowtune_executor emulated_kernels_long
                      rowtune_emulator GTest::gtest GTest::gtest_main)
add_test(NAME spec_emulated_long_build
         COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target spec_emulated_long_test)
set_tests_properties(spec_emulated_long_build PROPERTIES FIXTURES_SETUP spec_emulated_long LABELS long TIMEOUT 1200
                     RESOURCE_LOCK build)
foreach(shard RANGE 1)
  add_test(NAME spec_emulated_long_${shard} COMMAND spec_emulated_long_test --gtest_brief=1)
  set_tests_properties(spec_emulated_long_${shard} PROPERTIES FIXTURES_REQUIRED spec_emulated_long LABELS long
                       ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}" TIMEOUT 1200)
endforeach()

# Mutations: faults planted in a copy of the headers must make the emulated tests fail. The kernels are a shared
# library, which each fault replaces.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  # Quick: whoever changes a header learns that a fault's text is gone.
  add_test(NAME mutations_can_be_planted
           COMMAND Python3::Interpreter ${tests}/mutations/run.py --root ${PROJECT_SOURCE_DIR} --check)
  set_tests_properties(mutations_can_be_planted PROPERTIES LABELS quick)
  emulated_kernels(mutation_kernels SHARED 4 3 90 1 huge_stride,pytorch_181555,vllm_42862)
  set_target_properties(mutation_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(mutation_kernels PRIVATE -O0)  # only linked: each fault compiles and runs its own
  target_link_options(mutation_kernels PRIVATE -Wl,--unresolved-symbols=ignore-all)  # the program has the emulator
  add_executable(mutation_test EXCLUDE_FROM_ALL ${spec} ${tests}/emulated_huge_test.cpp)
  target_link_libraries(mutation_test PRIVATE rowtune_spec rowtune_executor mutation_kernels rowtune_emulator
                        GTest::gtest GTest::gtest_main)
  target_compile_options(mutation_test PRIVATE -Wno-unknown-pragmas)
  set_target_properties(mutation_test PROPERTIES ENABLE_EXPORTS ON)
  add_test(NAME mutation_build COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target mutation_test)
  set_tests_properties(mutation_build PROPERTIES FIXTURES_SETUP mutation LABELS long TIMEOUT 1200 RESOURCE_LOCK build)
  add_test(NAME mutations
           COMMAND Python3::Interpreter ${tests}/mutations/run.py --root ${PROJECT_SOURCE_DIR}
                   --compiler ${CMAKE_CXX_COMPILER} --flags=-std=c++20\ -ffp-contract=off
                   --program $<TARGET_FILE:mutation_test> --work ${CMAKE_CURRENT_BINARY_DIR} ${mutation_kernels_sources})
  set_tests_properties(mutations PROPERTIES FIXTURES_REQUIRED mutation LABELS long TIMEOUT 3000 PROCESSORS 2
    ENVIRONMENT "GTEST_FILTER=Spec/*:Properties.*:Huge.every*:Huge.pytorch_1*:Huge.vllm*")
endif()
