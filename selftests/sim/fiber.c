// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switching stacks. swapcontext(3) makes two system calls for it, which would be most of
 * the time of a history, so x86 has a switch of its own.
 */
#include "fiber.h"

#include <stdint.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(start, size)
#define __sanitizer_start_switch_fiber(fake, stack, size)
#define __sanitizer_finish_switch_fiber(fake, stack, size)
#endif

#ifdef __x86_64__
void fiber_exchange_stacks(void **save, void *to);
asm(".text\n"
    ".globl fiber_exchange_stacks\n"
    "fiber_exchange_stacks:\n"
    "	push %rbp\n	push %rbx\n	push %r12\n"
    "	push %r13\n	push %r14\n	push %r15\n"
    "	mov %rsp, (%rdi)\n"
    "	mov %rsi, %rsp\n"
    "	pop %r15\n	pop %r14\n	pop %r13\n"
    "	pop %r12\n	pop %rbx\n	pop %rbp\n"
    "	ret\n");
#endif

void fiber_init(struct fiber *f, char *stack, void (*entry)(void))
{
	memset(f, 0, sizeof(*f));
	f->stack = stack;
	f->size = FIBER_STACK;
	/* Frames that were left without a return. */
	ASAN_UNPOISON_MEMORY_REGION(stack, FIBER_STACK);
#ifdef __x86_64__
	uintptr_t *top = (uintptr_t *)(stack + FIBER_STACK - 64);

	/* Six registers, the function, and a place to which it would return. */
	memset(top - 8, 0, 8 * sizeof(*top));
	top[-2] = (uintptr_t)entry;
	f->sp = top - 8;
#else
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = stack;
	f->context.uc_stack.ss_size = FIBER_STACK;
	makecontext(&f->context, entry, 0);
#endif
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	__sanitizer_start_switch_fiber(&from->fake, to->stack, to->size);
#ifdef __x86_64__
	fiber_exchange_stacks(&from->sp, to->sp);
#else
	swapcontext(&from->context, &to->context);
#endif
	__sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
}

void fiber_entered(struct fiber *program)
{
	const void *stack;
	size_t size;

	(void)stack;
	(void)size;
	__sanitizer_finish_switch_fiber(NULL, &stack, &size);
#ifdef __SANITIZE_ADDRESS__
	/* The first fiber of all was entered from there. */
	if (!program->stack) {
		program->stack = stack;
		program->size = size;
	}
#else
	(void)program;
#endif
}
