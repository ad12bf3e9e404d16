# Dispatch tables, apart from the tuner: a program that only looks shapes up needs no measuring.
add_library(rowtune_dispatch STATIC
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_json.cpp    # JSON in and out
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_table.cpp)  # building, looking up
target_link_libraries(rowtune_dispatch PUBLIC rowtune_options rowtune_kernels rowtune_db
                      PRIVATE nlohmann_json::nlohmann_json fmt::fmt)
rowtune_test(tuner_dispatch_table_test ${CMAKE_CURRENT_LIST_DIR}/tests/dispatch_table_test.cpp
             LIBS rowtune_dispatch fmt::fmt)
