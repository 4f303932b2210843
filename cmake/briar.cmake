# Helpers that every folder's CMakeLists.txt uses. One folder under src/ is one library target.
include(GNUInstallDirs)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(briar_flags INTERFACE)
target_compile_options(briar_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -fno-strict-aliasing>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-fno-strict-aliasing -Werror=all-warnings>)
# GCC 12 sees overlapping copies in `literal + std::string` (GCC bug 105651).
target_compile_options(briar_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
# Fused multiply-adds only where a kernel asks for them by name: results must not depend on what the
# optimiser found to contract (docs/numerics.md).
target_compile_options(briar_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -lineinfo -Xptxas=-warn-spills --expt-relaxed-constexpr>)
# {fmt} 9 turns constexpr off under nvcc, but not consteval, which needs it.
target_compile_definitions(briar_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
target_include_directories(briar_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(BRIAR_SANITIZE)
  target_compile_options(briar_flags INTERFACE -fsanitize=${BRIAR_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(briar_flags INTERFACE -fsanitize=${BRIAR_SANITIZE})
  if(BRIAR_SANITIZE MATCHES "undefined")
    target_compile_options(briar_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

if(BRIAR_FUZZ)
  target_compile_options(briar_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-include${PROJECT_SOURCE_DIR}/fuzz/source_location.h>)
endif()

# briar_library(NAME SOURCES ... DEPS ...): the library of one folder.
function(briar_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC briar_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# briar_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT s]): one GoogleTest binary; every case is a ctest test.
function(briar_test name)
  if(NOT BRIAR_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} briar_flags GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE BRIAR_ASSETS_DIR="${BRIAR_ASSETS_DIR}"
                                             BRIAR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_dependencies(${name} briar_assets)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# briar_bench(NAME SOURCES ... DEPS ...): one Google Benchmark binary.
function(briar_bench name)
  if(NOT BRIAR_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} briar_flags benchmark::benchmark_main)
endfunction()
