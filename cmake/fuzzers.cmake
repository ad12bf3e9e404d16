# Fuzz targets. Every build replays the kept inputs (tests fuzz_NAME); the preset `fuzz` (clang) builds the targets with
# libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, over nothing but the sources each of them needs.

# rowtune_fuzzer(NAME target CORPUS folder SOURCES for the fuzz build... LIBS for it and for the replay...
#                TESTED targets that hold SOURCES in other builds... [VARIANTS n, of each kept input, in the replay])
function(rowtune_fuzzer name target)
  cmake_parse_arguments(arg "" "CORPUS;VARIANTS" "SOURCES;LIBS;TESTED" ${ARGN})
  if(NOT DEFINED arg_VARIANTS)
    set(arg_VARIANTS 60)
  endif()
  if(ROWTUNE_FUZZ)
    add_executable(fuzz_${name} ${target} ${arg_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE rowtune_options fmt::fmt ${arg_LIBS})
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    file(APPEND ${CMAKE_BINARY_DIR}/fuzzers.txt "fuzz_${name} ${PROJECT_SOURCE_DIR}/${arg_CORPUS}\n")
  elseif(ROWTUNE_TESTS)
    add_executable(fuzz_${name}_replay ${target} kernels/tests/fuzz_replay.cpp)
    target_link_libraries(fuzz_${name}_replay PRIVATE rowtune_options ${arg_LIBS} ${arg_TESTED})
    add_test(NAME fuzz_${name} COMMAND fuzz_${name}_replay ${PROJECT_SOURCE_DIR}/${arg_CORPUS} ${arg_VARIANTS})
    set_tests_properties(fuzz_${name} PROPERTIES LABELS quick TIMEOUT 300)
  endif()
endfunction()

file(REMOVE ${CMAKE_BINARY_DIR}/fuzzers.txt)  # the list that `./dev fuzz` goes through
set(words kernels/words.cpp kernels/config.cpp)
set(numbers stability/decimal.cpp stability/formats.cpp)
file(GLOB db_sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS db/*.cpp)

rowtune_fuzzer(config kernels/tests/fuzz_config.cpp CORPUS kernels/tests/corpus/config
               SOURCES ${words} kernels/space.cpp kernels/cpu/algorithms.cpp kernels/cuda/algorithms.cpp
                       kernels/cuda/known_devices.cpp kernels/cuda/plan.cpp
               TESTED rowtune_kernels)
rowtune_fuzzer(shapes tuner/tests/fuzz_shapes.cpp CORPUS tuner/tests/corpus/shapes
               SOURCES ${words} tuner/shapes.cpp TESTED rowtune_tuner)
rowtune_fuzzer(dispatch tuner/tests/fuzz_dispatch.cpp CORPUS tuner/tests/corpus/dispatch
               SOURCES ${words} tuner/dispatch_json.cpp LIBS nlohmann_json::nlohmann_json TESTED rowtune_dispatch)
rowtune_fuzzer(cases stability/tests/fuzz_cases.cpp CORPUS stability/tests/corpus/cases
               SOURCES ${words} ${numbers} stability/cases_parse.cpp LIBS nlohmann_json::nlohmann_json
               TESTED rowtune_stability)
rowtune_fuzzer(data_file stability/tests/fuzz_data_file.cpp CORPUS stability/tests/corpus/data_file
               SOURCES ${words} ${numbers} stability/data_file.cpp stability/npy.cpp stability/text_table.cpp
               TESTED rowtune_stability)
rowtune_fuzzer(database db/tests/fuzz_database.cpp CORPUS db/tests/corpus/database VARIANTS 3
               SOURCES ${words} ${db_sources} LIBS SQLiteCpp SQLite::SQLite3 nlohmann_json::nlohmann_json
               TESTED rowtune_db)
