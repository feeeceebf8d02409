// SPDX-License-Identifier: MIT
/*
 * A connection of the HTTP server. Each step receives once, answers all complete
 * requests, and sends. While an answer cannot be sent nothing more is read: a client
 * that does not read its answers gets backpressure.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "connection.h"
#include "request.h"

/* Steps in a turn: a client that never stops sending must not starve the others. */
#define STEPS_MAX 8

#define ANSWER(status, connection, body_length, body) \
	"HTTP/1.1 " status "\r\n"                     \
	"Content-Type: text/plain\r\n"                \
	"Content-Length: " body_length "\r\n"         \
	"Connection: " connection "\r\n\r\n" body

static const char answer_and_stay[] =
	ANSWER("200 OK", "keep-alive", "14", "Hello, world!\n");
static const char answer_and_close[] =
	ANSWER("200 OK", "close", "14", "Hello, world!\n");
static const char answer_bad_request[] =
	ANSWER("400 Bad Request", "close", "12", "Bad request\n");

/* The longest answer. */
#define ANSWER_MAX sizeof(answer_bad_request)

void connection_init(struct connection *c, int fd)
{
	memset(c, 0, offsetof(struct connection, in));
	c->fd = fd;
	c->open = true;
}

void connection_note(struct connection *c, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->hung_up = true;
	if (events & EPOLLIN || c->hung_up)
		c->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		c->writable = true;
}

void connection_abandon(struct connection *c)
{
	c->abandoned = true;
}

/* The following functions return false if the connection is over. */
static bool receive(struct connection *c)
{
	size_t room = sizeof(c->in) - c->in_length;
	ssize_t n;

	if (!c->readable || !room)
		return true;
	n = recv(c->fd, c->in + c->in_length, room, 0);
	if (n < 0) {
		c->readable = false;
		return errno == EAGAIN;
	}
	if (n == 0) {
		c->readable = false;
		c->ended = true;
	}
	/*
	 * A short read: the socket is empty, and new data make another event. But
	 * an end that was already announced makes none.
	 */
	if ((size_t)n < room && !c->hung_up)
		c->readable = false;
	c->in_length += n;
	return true;
}

static void append(struct connection *c, const char *answer, size_t length)
{
	memcpy(c->out + c->out_length, answer, length);
	c->out_length += length;
}

static void append_answer(struct connection *c, const struct request *request)
{
	if (request->keep_alive)
		append(c, answer_and_stay, sizeof(answer_and_stay) - 1);
	else
		append(c, answer_and_close, sizeof(answer_and_close) - 1);
	c->last = !request->keep_alive;
}

/* Returns true if it stopped for lack of room, so that requests may be left. */
static bool answer(struct connection *c)
{
	struct request request;
	size_t taken = 0;
	bool more = false;
	int length;

	while (!c->last && taken < c->in_length) {
		more = sizeof(c->out) - c->out_length < ANSWER_MAX;
		if (more)
			break;
		length = request_parse(&request, c->in + taken,
				       c->in_length - taken);
		if (length < 0 ||
		    (!length && c->in_length - taken == sizeof(c->in))) {
			append(c, answer_bad_request,
			       sizeof(answer_bad_request) - 1);
			c->last = true;
		} else if (length) {
			append_answer(c, &request);
			taken += length;
		} else {
			break;
		}
	}
	/*
	 * Closing with unread data would reset the connection, and the client
	 * could lose the last answer: reads and drops the data.
	 */
	if (c->last)
		taken = c->in_length;
	c->in_length -= taken;
	if (taken)
		memmove(c->in, c->in + taken, c->in_length);
	return more;
}

static bool send_answers(struct connection *c)
{
	ssize_t n;

	while (c->writable && c->out_sent < c->out_length) {
		n = send(c->fd, c->out + c->out_sent,
			 c->out_length - c->out_sent, MSG_NOSIGNAL);
		if (n < 0) {
			c->writable = false;
			return errno == EAGAIN;
		}
		c->out_sent += n;
	}
	if (c->out_sent == c->out_length)
		c->out_sent = c->out_length = 0;
	return true;
}

enum connection_state connection_run(struct connection *c)
{
	bool more;

	if (c->abandoned)
		return CONNECTION_IS_OVER;
	for (int step = 0; step < STEPS_MAX; step++) {
		if (!receive(c))
			return CONNECTION_IS_OVER;
		more = answer(c);
		if (!send_answers(c))
			return CONNECTION_IS_OVER;
		if (c->out_length)
			return CONNECTION_WAITS;
		if (!more && !c->readable)
			return c->last || c->ended ? CONNECTION_IS_OVER :
						     CONNECTION_WAITS;
	}
	return CONNECTION_GOES_ON;
}
