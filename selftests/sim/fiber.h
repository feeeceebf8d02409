/* SPDX-License-Identifier: GPL-2.0-only */
/* A stack of its own for each task. One runs until it switches to another. */
#ifndef FLOWFD_SIM_FIBER_H
#define FLOWFD_SIM_FIBER_H

#include <stddef.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#define FIBER_STACK (64 << 10)

struct fiber {
	void *sp;
	const void *stack; /* of the program itself: AddressSanitizer finds out */
	size_t size;
	void *fake;
#ifndef __x86_64__
	ucontext_t context;
#endif
};

/* @stack: of FIBER_STACK bytes. @entry must not return. */
void fiber_init(struct fiber *f, char *stack, void (*entry)(void));
void fiber_switch(struct fiber *from, struct fiber *to);
/* The first call of each @entry; @program: the fiber that never got a stack here. */
void fiber_entered(struct fiber *program);

#endif /* FLOWFD_SIM_FIBER_H */
