// The ranks of o200k_base, part of the program.
    .section .rodata
    .global briar_o200k_begin
    .global briar_o200k_end
    .balign 16
briar_o200k_begin:
    .incbin BRIAR_O200K_FILE
briar_o200k_end:
    .section .note.GNU-stack,"",@progbits
