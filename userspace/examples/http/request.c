// SPDX-License-Identifier: MIT
/*
 * The head of an HTTP request (RFC 9112). Every address gets the same answer, so only
 * fields that decide about the connection are parsed. A head that comes in pieces is
 * parsed again from its start, as it is short.
 */
#include <string.h>
#include <strings.h>

#include "request.h"

struct line {
	const char *text;
	size_t length;
};

struct head {
	struct request *request;
	bool http_1_0;
	bool has_host;
};

static bool line_is(struct line line, const char *text)
{
	return line.length == strlen(text) &&
	       !strncasecmp(line.text, text, line.length);
}

static struct line trim(struct line line)
{
	while (line.length && strchr(" \t", line.text[0])) {
		line.text++;
		line.length--;
	}
	while (line.length && strchr(" \t", line.text[line.length - 1]))
		line.length--;
	return line;
}

/* Takes the text before the separator, or all of it; false at the end. */
static bool next_part(struct line *rest, char separator, struct line *part)
{
	const char *end;

	if (!rest->text)
		return false;
	*part = *rest;
	end = memchr(rest->text, separator, rest->length);
	if (end) {
		part->length = end - rest->text;
		rest->length -= part->length + 1;
		rest->text = end + 1;
	} else {
		rest->text = NULL;
	}
	return true;
}

static bool parse_request_line(struct head *head, struct line line)
{
	struct line method, target, version;

	if (!next_part(&line, ' ', &method) ||
	    !next_part(&line, ' ', &target) ||
	    !next_part(&line, ' ', &version) || line.text)
		return false;
	head->http_1_0 = line_is(version, "HTTP/1.0");
	head->request->keep_alive = !head->http_1_0;
	return line_is(method, "GET") && target.length &&
	       (head->http_1_0 || line_is(version, "HTTP/1.1"));
}

static void parse_connection(struct request *request, struct line value)
{
	struct line option;

	while (next_part(&value, ',', &option)) {
		option = trim(option);
		if (line_is(option, "close"))
			request->keep_alive = false;
		else if (line_is(option, "keep-alive"))
			request->keep_alive = true;
	}
}

static bool parse_field(struct head *head, struct line line)
{
	struct line name;
	bool second_host;

	/* Blanks in a name or before it have led to security bugs. */
	if (!next_part(&line, ':', &name) || !line.text || !name.length ||
	    memchr(name.text, ' ', name.length) ||
	    memchr(name.text, '\t', name.length))
		return false;
	if (line_is(name, "Connection")) {
		parse_connection(head->request, line);
	} else if (line_is(name, "Host")) {
		second_host = head->has_host;
		head->has_host = true;
		return !second_host;
	} else if (line_is(name, "Content-Length")) {
		return line_is(trim(line), "0");
	}
	return !line_is(name, "Transfer-Encoding");
}

int request_parse(struct request *request, const char *text, size_t length)
{
	struct head head = { .request = request };
	struct line rest = { text, length }, line;
	bool first = true;

	while (next_part(&rest, '\n', &line) && rest.text) {
		if (line.length && line.text[line.length - 1] == '\r')
			line.length--;
		if (!first && !line.length)
			return head.has_host || head.http_1_0 ?
				       rest.text - text :
				       -1;
		if (!(first ? parse_request_line(&head, line) :
			      parse_field(&head, line)))
			return -1;
		first = false;
	}
	return 0;
}
