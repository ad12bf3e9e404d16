# Writes a C++ file that holds text files as string literals: cmake -DOUT=... -DNAME=... -DFILES=a;b -P embed_headers.cmake
set(text "// Made by cmake/embed_headers.cmake.\n#include \"kernels/cuda/sources.hpp\"\n\nnamespace rowtune::cuda {\n\nconst std::vector<Source>& embedded_sources() {\n  static const std::vector<Source> sources{\n")
foreach(file IN LISTS FILES)
  file(READ ${file} content)
  get_filename_component(name ${file} NAME)
  string(APPEND text "      {\"rowtune/${name}\", R\"rowtune(${content})rowtune\"},\n")
endforeach()
string(APPEND text "  };\n  return sources;\n}\n\n}  // namespace rowtune::cuda\n")
file(WRITE ${OUT} "${text}")
