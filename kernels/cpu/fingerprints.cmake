# Writes a header with one SHA-256 over the flags and the kernels' sources. Run by CMakeLists.txt as
# cmake -DOUT=header -DFLAGS=... -DFILES=a;b -P fingerprints.cmake
set(hashes "${FLAGS}")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  string(APPEND hashes " ${file} ${hash}")
endforeach()
string(SHA256 all "${hashes}")
string(SUBSTRING ${all} 0 16 all)
file(WRITE ${OUT} "#pragma once\nnamespace rowtune::cpu {\n/// Of the kernels' sources and flags.\n"
                  "inline constexpr char sources_hash[] = \"${all}\";\n}  // namespace rowtune::cpu\n")
