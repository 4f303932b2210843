# The bundled models, tokenizer and reference outputs: compressed in assets/, unpacked once for all presets.
set(BRIAR_ASSETS_DIR ${PROJECT_SOURCE_DIR}/build/assets)
file(GLOB BRIAR_ASSET_ARCHIVES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/assets/*.tar.xz)
set(stamps)
foreach(archive IN LISTS BRIAR_ASSET_ARCHIVES)
  get_filename_component(name ${archive} NAME)
  set(stamp ${BRIAR_ASSETS_DIR}/.${name}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/unpack_asset.sh ${archive} ${BRIAR_ASSETS_DIR} ${stamp}
    DEPENDS ${archive}
    COMMENT "Unpacking ${name}")
  list(APPEND stamps ${stamp})
endforeach()
add_custom_target(briar_assets ALL DEPENDS ${stamps})
