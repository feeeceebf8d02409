/* SPDX-License-Identifier: MIT */
/*
 * A connection of the HTTP server: requests in, answers out, and where it stopped
 * when the socket had no more. It knows nothing of the event loop.
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
 * @open: there is one
 * @queued: in the server's queue
 * @next: in that queue
 * @readable: not read until EAGAIN since the last event
 * @writable: not written until EAGAIN since the last event
 * @hung_up: an event said that the client ends, or an error: read to the end
 * @ended: the client has sent all
 * @last: no request is answered any more
 * @abandoned: it is over, whatever is left
 * @in_length: bytes in @in
 * @out_length: bytes in @out
 * @out_sent: how many of them were sent
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
	CONNECTION_WAITS,	/* for an event */
	CONNECTION_GOES_ON,	/* others may go first */
	CONNECTION_IS_OVER,	/* to be closed */
};

/** connection_init - begin with the socket @fd */
void connection_init(struct connection *c, int fd);

/** connection_note - remember EPOLL* bits */
void connection_note(struct connection *c, uint32_t events);

/** connection_abandon - there will be no events: it is over when it runs */
void connection_abandon(struct connection *c);

/** connection_run - answer what has come, for a while */
enum connection_state connection_run(struct connection *c);

#endif /* CONNECTION_H */
