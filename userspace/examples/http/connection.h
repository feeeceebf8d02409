/* SPDX-License-Identifier: MIT */
/*
 * A connection of the HTTP server: requests, answers, and the position in both when
 * the socket would block. It does not depend on the event loop.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/**
 * struct connection - a client
 * @fd: its socket, non-blocking
 * @open: @fd is open
 * @queued: the connection is in the server's queue
 * @next: the next one in that queue
 * @readable: not read until EAGAIN since the last event
 * @writable: not written until EAGAIN since the last event
 * @hung_up: an event announced the client's end or an error: read up to the end
 * @ended: the client has sent everything
 * @last: the last request was answered
 * @abandoned: the connection is over, whatever is unsent
 * @in_length: bytes in @in
 * @out_length: bytes in @out
 * @out_sent: bytes of @out that were sent
 * @in: requests
 * @out: answers
 */
struct connection {
	int fd;
	bool open;
	bool queued;
	STAILQ_ENTRY(connection) next;
	bool readable;
	bool writable;
	bool hung_up;
	bool ended;
	bool last;
	bool abandoned;
	size_t in_length;
	size_t out_length;
	size_t out_sent;
	char in[4096];
	char out[4096];
};

enum connection_state {
	CONNECTION_WAITS,   /* until an event */
	CONNECTION_GOES_ON, /* others may go first */
	CONNECTION_IS_OVER, /* to be closed */
};

/** connection_init - initialize with the socket @fd */
void connection_init(struct connection *c, int fd);

/** connection_note - store the EPOLL* bits of an event */
void connection_note(struct connection *c, uint32_t events);

/** connection_abandon - the next connection_run() ends it, as it gets no events */
void connection_abandon(struct connection *c);

/** connection_run - answer requests, at most for one turn */
enum connection_state connection_run(struct connection *c);

#endif /* CONNECTION_H */
