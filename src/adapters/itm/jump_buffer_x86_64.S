// _ITM_beginTransaction and the return to its caller, for x86-64 (System V ABI). See jump_buffer.h.
//
// The floating-point control words are not saved, and a shadow stack is not unwound. So a block that changes the control words, or
// a process that enforces a shadow stack, is not supported. Another processor needs its own file.
#if !defined(__x86_64__)
#error "libstele_itm saves registers in assembly, and has it for x86-64 only; write jump_buffer_<processor>.S for this one"
#endif

        .text
        .globl  _ITM_beginTransaction
        .type   _ITM_beginTransaction, @function
_ITM_beginTransaction:
        .cfi_startproc
        endbr64
        leaq    8(%rsp), %rax
        subq    $72, %rsp
        .cfi_adjust_cfa_offset 72
        movq    %rax, (%rsp)
        movq    %rbx, 8(%rsp)
        movq    %rbp, 16(%rsp)
        movq    %r12, 24(%rsp)
        movq    %r13, 32(%rsp)
        movq    %r14, 40(%rsp)
        movq    %r15, 48(%rsp)
        movq    72(%rsp), %rax
        movq    %rax, 56(%rsp)
        movq    %rsp, %rsi
        call    stele_itm_begin
        addq    $72, %rsp
        .cfi_adjust_cfa_offset -72
        ret
        .cfi_endproc
        .size   _ITM_beginTransaction, . - _ITM_beginTransaction

        .globl  stele_itm_resume
        .type   stele_itm_resume, @function
stele_itm_resume:
        .cfi_startproc
        endbr64
        movl    %edi, %eax
        movq    8(%rsi), %rbx
        movq    16(%rsi), %rbp
        movq    24(%rsi), %r12
        movq    32(%rsi), %r13
        movq    40(%rsi), %r14
        movq    48(%rsi), %r15
        movq    56(%rsi), %rdx
        movq    (%rsi), %rsp
        jmp     *%rdx
        .cfi_endproc
        .size   stele_itm_resume, . - stele_itm_resume

        .section .note.GNU-stack, "", @progbits
