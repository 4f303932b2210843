# The bundled models, tokenizer and reference outputs: compressed in assets/, unpacked once for all presets.
set(BRIAR_ASSETS_DIR ${PROJECT_SOURCE_DIR}/build/assets)
file(GLOB BRIAR_ASSET_ARCHIVES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/assets/*.tar.xz)
set(stamps)
foreach(archive IN LISTS BRIAR_ASSET_ARCHIVES)
  get_filename_component(name ${archive} NAME)
  set(stamp ${BRIAR_ASSETS_DIR}/.${name}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${BRIAR_ASSETS_DIR}
    COMMAND ${CMAKE_COMMAND} -E chdir ${BRIAR_ASSETS_DIR} ${CMAKE_COMMAND} -E tar xf ${archive}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${archive}
    COMMENT "Unpacking ${name}")
  list(APPEND stamps ${stamp})
endforeach()
add_custom_target(briar_assets ALL DEPENDS ${stamps})
