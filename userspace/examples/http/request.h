/* SPDX-License-Identifier: MIT */
/* The head of an HTTP request: its end, and what the client asks for. */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct request - a parsed request
 * @keep_alive: another request may follow on this connection
 */
struct request {
	bool keep_alive;
};

/**
 * request_parse - parse the head of a request
 * @request: filled in
 * @text: received bytes; those behind the first request are ignored
 * @length: of @text, in bytes
 *
 * Returns the length of the request; 0: it is not complete; -1: it is bad: not a GET of
 * HTTP/1.0 or 1.1, a line that is not a header field, no or two Hosts, or a body, which
 * a GET does not need.
 */
int request_parse(struct request *request, const char *text, size_t length);

#endif /* REQUEST_H */
