// Writes the file that tests/fixtures keeps of each schema version: run once, when a version is new.
// usage: db_make_fixture FILE

#include "db/tests/measurements.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rowtune::db::test::make_sound_file(argv[1]);
}
