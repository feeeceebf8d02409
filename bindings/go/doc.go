// SPDX-License-Identifier: MIT

/*
Package flowfd has counters between goroutines, processes and event loops, in memory.

A counter is an eventfd(2) that is added to and taken from in memory, and makes system calls
only if somebody sleeps or polls. It can have a maximum, so that a fast producer waits. It
runs with the kernel module of flowfd, and without it.

	counter, err := flowfd.New(flowfd.Options{Maximum: 65})
	...
	err = counter.Add(ctx, 1)       // waits while there is no room
	count, err := counter.Take(ctx) // waits while there is no count

Between goroutines alone, a channel or a sync.Cond is what to use. A counter is for other
processes, for threads of C, and for what polls a descriptor.

# Waiting

A goroutine that waits in Add or Take holds no thread: it waits for a descriptor, as one that
reads from a socket does. Any number of goroutines may call all methods at the same time.
Those that wait proceed in their order. Close ends the wait of all, with os.ErrClosed.

For the kernel, each Counter in which goroutines wait to take is one that polls, and likewise
for those that wait to add. It has 500 of these for what is one counter in all processes
(Import, OpenShared); a call that would be one more fails with ENOSPC.

An add or a take is a call of C that does not sleep, so it takes no processor from other
goroutines.

# Errors

What the library refuses is an [*Error], which says what to do and wraps a syscall.Errno:

	errors.Is(err, syscall.EINVAL)

A context that ends while Add or Take wait makes them fail with its error. If that is
context.DeadlineExceeded, it is os.ErrDeadlineExceeded as well. Nothing was added or taken. A
call that need not wait does not look at its context.

# Building

The package has the C library inside, so it needs cgo and a C compiler.
*/
package flowfd
