# Fuzz targets. Every build replays the kept inputs (tests fuzz_NAME); the preset `fuzz` (clang) builds the targets with
# libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, over nothing but these sources.
file(GLOB globbed RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS db/*.cpp tuner/dispatch_*.cpp)
set(fuzzed_sources
  kernels/words.cpp kernels/config.cpp kernels/space.cpp kernels/cpu/algorithms.cpp
  kernels/cuda/algorithms.cpp kernels/cuda/axes.cpp kernels/cuda/known_devices.cpp kernels/cuda/plan.cpp
  tuner/shapes.cpp
  stability/cases_parse.cpp stability/data_file.cpp stability/decimal.cpp stability/formats.cpp stability/npy.cpp
  stability/text_table.cpp
  ${globbed})

if(ROWTUNE_FUZZ)
  add_library(rowtune_fuzzed STATIC ${fuzzed_sources})
  target_compile_options(rowtune_fuzzed PRIVATE -fsanitize=fuzzer-no-link)
  file(REMOVE ${CMAKE_BINARY_DIR}/fuzzers.txt)  # the list that `./dev fuzz` goes through
else()
  # The very objects of these sources: what is missing among them fails to link here, and not in the preset `fuzz` only.
  list(TRANSFORM fuzzed_sources REPLACE "^([a-z]+)/(.*)$" "/\\1/CMakeFiles/[^/]+[.]dir/[./]*\\2[.]o$")
  string(JOIN "|" fuzzed_objects ${fuzzed_sources})
  foreach(library kernels db stability dispatch tuner)
    list(APPEND objects $<FILTER:$<TARGET_OBJECTS:rowtune_${library}>,INCLUDE,${fuzzed_objects}>)
  endforeach()
  add_library(rowtune_fuzzed STATIC EXCLUDE_FROM_ALL ${objects})
  set_target_properties(rowtune_fuzzed PROPERTIES LINKER_LANGUAGE CXX)
  add_custom_target(fuzz_replays)
endif()
target_link_libraries(rowtune_fuzzed PUBLIC rowtune_options fmt::fmt SQLiteCpp SQLite::SQLite3
                      nlohmann_json::nlohmann_json)

# rowtune_fuzzer(NAME target CORPUS folder [VARIANTS n, of each kept input, in the replay])
function(rowtune_fuzzer name target)
  cmake_parse_arguments(arg "" "CORPUS;VARIANTS" "" ${ARGN})
  if(NOT DEFINED arg_VARIANTS)
    set(arg_VARIANTS 60)
  endif()
  if(ROWTUNE_FUZZ)
    add_executable(fuzz_${name} ${target})
    target_link_libraries(fuzz_${name} PRIVATE rowtune_fuzzed)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    file(APPEND ${CMAKE_BINARY_DIR}/fuzzers.txt "fuzz_${name} ${PROJECT_SOURCE_DIR}/${arg_CORPUS}\n")
  elseif(ROWTUNE_TESTS)
    add_executable(fuzz_${name}_replay ${target} kernels/tests/fuzz_replay.cpp)
    target_link_libraries(fuzz_${name}_replay PRIVATE rowtune_fuzzed)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name}_replay ${PROJECT_SOURCE_DIR}/${arg_CORPUS} ${arg_VARIANTS})
    string(REGEX MATCH "^[^/]+" folder ${target})
    set_tests_properties(fuzz_${name} PROPERTIES LABELS quick.${folder} TIMEOUT 300)
    add_dependencies(fuzz_replays fuzz_${name}_replay)
  endif()
endfunction()

rowtune_fuzzer(config kernels/tests/fuzz_config.cpp CORPUS kernels/tests/corpus/config)
rowtune_fuzzer(shapes tuner/tests/fuzz_shapes.cpp CORPUS tuner/tests/corpus/shapes)
rowtune_fuzzer(dispatch tuner/tests/fuzz_dispatch.cpp CORPUS tuner/tests/corpus/dispatch)
rowtune_fuzzer(cases stability/tests/fuzz_cases.cpp CORPUS stability/tests/corpus/cases)
rowtune_fuzzer(data_file stability/tests/fuzz_data_file.cpp CORPUS stability/tests/corpus/data_file)
rowtune_fuzzer(database db/tests/fuzz_database.cpp CORPUS db/tests/corpus/database VARIANTS 3)
