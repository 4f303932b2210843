# Third-party libraries; scripts/setup.sh installs them, docs/dependencies.md says why each is here.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(CLI11 REQUIRED)
if(BRIAR_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(BRIAR_BENCHMARKS)
  find_package(benchmark REQUIRED)
  find_library(DNNL_LIBRARY dnnl)  # the comparison line of the linear benchmark; optional
endif()
