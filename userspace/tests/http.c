// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of the HTTP server in examples/, without an event loop: heads of
 * requests at every length, and that one client does not starve others. guest-http.py
 * tests the server as a whole.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/http/connection.h"
#include "examples/http/request.h"
#include "tests/tap.h"

static const char get[] =
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n";

/* In memory of exactly that length, so that the sanitizer sees reads beyond it. */
static int parse(const char *text, size_t length, struct request *request)
{
	char *copy = malloc(length);
	int result;

	memcpy(copy, text, length);
	result = request_parse(request, copy, length);
	free(copy);
	return result;
}

static void test_lengths(void)
{
	const size_t whole = sizeof(get) - 1;
	struct request request;
	int wrong = 0;

	for (size_t length = 0; length < whole; length++)
		wrong += parse(get, length, &request) != 0;
	tap_is(wrong, 0, "a part is not complete");
	tap_is(parse(get, whole, &request), whole, "the whole is");
	tap_ok(!request.keep_alive, "and what it says is understood");
}

/* Each byte of a good head in turn becomes each other byte. */
static void test_bytes(void)
{
	struct request request;
	char text[sizeof(get)];
	int wrong = 0;

	memcpy(text, get, sizeof(get));
	for (size_t i = 0; i < sizeof(get) - 1; i++) {
		for (int byte = 0; byte < 256; byte++) {
			int result;

			text[i] = byte;
			result = parse(text, sizeof(get) - 1, &request);
			wrong += result < -1 || result > (int)sizeof(get) - 1;
		}
		text[i] = get[i];
	}
	tap_is(wrong, 0, "heads with a wrong byte");
}

/* Data that a client sends behind its last request. */
static void test_fair_share(void)
{
	static char junk[16 * 4096];
	struct connection c;
	int pair[2];
	int runs = 1;

	if (!tap_is(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0,
		    "sockets"))
		return;
	tap_is(write(pair[1], get, sizeof(get) - 1), sizeof(get) - 1, "a request");
	tap_is(write(pair[1], junk, sizeof(junk)), sizeof(junk), "and much more");
	connection_init(&c, pair[0]);
	connection_note(&c, EPOLLIN | EPOLLOUT);
	tap_is(connection_run(&c), CONNECTION_GOES_ON, "others may go first");
	while (runs < 10 && connection_run(&c) == CONNECTION_GOES_ON)
		runs++;
	tap_ok(runs > 1 && runs < 10, "it is over when all was read");
	close(pair[0]);
	close(pair[1]);
}

static void test_abandoned(void)
{
	struct connection c;

	connection_init(&c, -1);
	connection_abandon(&c);
	tap_is(connection_run(&c), CONNECTION_IS_OVER, "abandoned");
}

int main(void)
{
	test_lengths();
	test_bytes();
	test_fair_share();
	test_abandoned();
	return tap_done();
}
