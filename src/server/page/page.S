// The files of the web page, part of the program.
    .section .rodata
    .macro file name path
    .global briar_page_\name\()_begin
    .global briar_page_\name\()_end
briar_page_\name\()_begin:
    .incbin "\path"
briar_page_\name\()_end:
    .endm
    file html BRIAR_PAGE_HTML
    file css BRIAR_PAGE_CSS
    file js BRIAR_PAGE_JS
    .section .note.GNU-stack,"",@progbits
