/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A memory that reorders, for ring.pml and poller.pml.
 *
 * Each processor (cpu) has a buffer of stores that the others do not see yet. A
 * separate process moves them to memory, at any time and in any order, except that
 * stores to one place stay in order, and a release store follows everything that
 * was stored before it. With -DTSO all stores stay in order, and an atomic operation
 * waits for an empty buffer: that is x86.
 *
 * An atomic operation without a result (atomic_or) is buffered like a store; one with
 * a result (exchange) acts on memory at once, before what is in the buffer. So the
 * others can see both in another order than the program order, as on arm64.
 *
 * Loads stay in order, which hides nothing here: each depends on the load before it,
 * follows a full barrier, or is repeated after one. The load that needs an acquire,
 * of an item's data, is in data.litmus.
 *
 * A store reaches all others at once. POWER does not guarantee that: the litmus
 * tests, which use the kernel's memory model, cover it.
 *
 * A file that includes this must define PLACES, CPUS, OR_PLACE(place),
 * RELEASE(place, value), and stored(cpu, place, value): what to do when a store is
 * about to reach memory.
 */

#define DEPTH 3

typedef store_buffer {
	byte length;
	byte place[DEPTH];
	byte value[DEPTH]
};

byte memory[PLACES];
store_buffer buffer[CPUS];

/* A full barrier waits for this. */
#define drained(cpu) (buffer[cpu].length == 0)

#ifdef TSO
#define atomic_may_run(cpu) drained(cpu)
#define OVERTAKES(cpu, a, b) false
#else
#define atomic_may_run(cpu) true
#define OVERTAKES(cpu, a, b) \
	(buffer[cpu].place[a] != buffer[cpu].place[b] && \
	 !RELEASE(buffer[cpu].place[a], buffer[cpu].value[a]))
#endif

/* Only inside atomic. A full buffer blocks, as every processor's buffer is finite. */
inline store(cpu, where, what)
{
	buffer[cpu].length < DEPTH;
	buffer[cpu].place[buffer[cpu].length] = where;
	buffer[cpu].value[buffer[cpu].length] = what;
	buffer[cpu].length++
}

/* A processor sees its own stores. */
#define own(cpu, n, where) \
	(buffer[cpu].length > (n) && buffer[cpu].place[n] == (where))
#define load(cpu, where) \
	(own(cpu, 2, where) -> buffer[cpu].value[2] : \
	 (own(cpu, 1, where) -> buffer[cpu].value[1] : \
	  (own(cpu, 0, where) -> buffer[cpu].value[0] : memory[where])))

/* Moves store n to memory. Unused entries are zero, for fewer states. */
inline drain(cpu, n)
{
	stored(cpu, buffer[cpu].place[n], buffer[cpu].value[n]);
	if
	:: OR_PLACE(buffer[cpu].place[n]) ->
		memory[buffer[cpu].place[n]] =
			memory[buffer[cpu].place[n]] | buffer[cpu].value[n]
	:: else ->
		memory[buffer[cpu].place[n]] = buffer[cpu].value[n]
	fi;
	if
	:: n < 1 ->
		buffer[cpu].place[0] = buffer[cpu].place[1];
		buffer[cpu].value[0] = buffer[cpu].value[1]
	:: else
	fi;
	if
	:: n < 2 ->
		buffer[cpu].place[1] = buffer[cpu].place[2];
		buffer[cpu].value[1] = buffer[cpu].value[2]
	:: else
	fi;
	buffer[cpu].place[2] = 0;
	buffer[cpu].value[2] = 0;
	buffer[cpu].length--
}

proctype drainer(byte cpu)
{
end:
	do
	:: d_step { !drained(cpu) -> drain(cpu, 0) }
	:: d_step {
		buffer[cpu].length > 1 && OVERTAKES(cpu, 1, 0) -> drain(cpu, 1)
	   }
	:: d_step {
		buffer[cpu].length > 2 && OVERTAKES(cpu, 2, 1) &&
		OVERTAKES(cpu, 2, 0) -> drain(cpu, 2)
	   }
	od
}
