# Dispatch tables, apart from the tuner: a program that only looks shapes up needs no measuring.
add_library(rowtune_dispatch STATIC
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_build.cpp     # from the leaderboard to tables
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_compact.cpp   # the fewest kernels that serve all tuned shapes
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_evaluate.cpp  # regret on shapes that were not tuned
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_header.cpp    # as a CUDA header
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_json.cpp      # JSON in and out
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_plane.cpp     # how it is cut into pieces
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_predict.cpp   # how slow each config is on shapes in between
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_refine.cpp    # what to measure off the grid
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_regions.cpp   # which kernel for shapes in between
  ${CMAKE_CURRENT_LIST_DIR}/dispatch_table.cpp)    # looking up
target_link_libraries(rowtune_dispatch PUBLIC rowtune_options rowtune_kernels rowtune_db
                      PRIVATE nlohmann_json::nlohmann_json fmt::fmt Threads::Threads)
rowtune_test(tuner_dispatch_table_test ${CMAKE_CURRENT_LIST_DIR}/tests/dispatch_table_test.cpp
             ${CMAKE_CURRENT_LIST_DIR}/tests/dispatch_unseen_test.cpp
             LIBS rowtune_dispatch fmt::fmt)
