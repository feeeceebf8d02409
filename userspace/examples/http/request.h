/* SPDX-License-Identifier: MIT */
/* The head of an HTTP request: where it ends, and what the client wants. */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct request - what a request says
 * @keep_alive: another request may follow on this connection
 */
struct request {
	bool keep_alive;
};

/**
 * request_parse - read the head of a request
 * @request: filled in
 * @text: what was received; what follows the first request is left alone
 * @length: of @text
 *
 * Returns the length of the request; 0, if it is not complete; -1, if it is bad:
 * no GET of HTTP/1.0 or 1.1, a line that is not a header field, no or two Hosts,
 * or a body, which a GET does not need.
 */
int request_parse(struct request *request, const char *text, size_t length);

#endif /* REQUEST_H */
