// A process that writes results one by one, for the tests that kill it or run two of it.
// usage: writer DATABASE PREFIX COUNT; prints a line after each commit.

#include <fmt/format.h>

#include <cstdio>

#include "db/tests/fixture.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  using namespace rowtune::db;
  auto db = Database::open(argv[1], Database::Mode::read_write);
  const int count = std::atoi(argv[3]);
  for (int i = 0; i < count; ++i) {
    db.record(test::measured(test::softmax(), fmt::format("{}.b{}", argv[2], i), 5 + i));
    std::printf("%d\n", i + 1);
    std::fflush(stdout);
  }
}
