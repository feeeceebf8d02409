// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses counters and rings line by line: those of the kernel's list, which end with an
 * empty line each, and the fdinfo of one. Does no input or output, so that tests can pass
 * any text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/* What the first version of the module shows. An eventfd has the first four, too. */
#define EVENTFD	      (BIT(COUNT) | BIT(COUNTER_ID) | BIT(SEMAPHORE) | BIT(MAXIMUM))
#define COUNTER_NEEDS (EVENTFD | BIT(BURST) | BIT(RATE) | BIT(DEFERRED))
#define RING_NEEDS    (BIT(RING_ID) | BIT(MAX_ITEMS) | BIT(HEAD) | BIT(TAIL))

/* Whether a text is nothing but a number. strtoull() would also accept a sign and 0x. */
static bool parse_number(const char *text, int base, uint64_t *number)
{
	errno = 0;
	*number = strtoull(text, NULL, base);
	return *text &&
	       !text[strspn(text, base == 16 ? "0123456789abcdef" : "0123456789")] &&
	       !errno;
}

/* A policy that a newer module may have is as good as none. */
static bool parse_overflow(struct object *object, const char *name)
{
	for (uint64_t i = 0; i < OVERFLOWS; i++)
		if (!strcmp(overflow_names[i], name))
			object_set(object, OVERFLOW, i);
	return *name;
}

static bool parse_field(struct object *object, enum field field, const char *text)
{
	const struct field_info *info = &field_infos[field];
	uint64_t number;
	bool good;

	/* Once, and all of one kind. */
	if (object_has(object, field) ||
	    (info->kind && object->kind && info->kind != object->kind))
		return false;
	if (info->kind)
		object->kind = info->kind;
	text += strspn(text, " \t");
	if (info->form == POLICY)
		return parse_overflow(object, text);
	if ((field == SOURCE || field == SINK) && !strcmp(text, "none"))
		return true;
	good = parse_number(text, info->form == HEX ? 16 : 10, &number);
	object_set(object, field, number);
	return good;
}

/* The kernel writes a newline and a backslash as \012 and \134. */
static bool parse_command(char *command, const char *text)
{
	size_t length = 0;

	for (text += *text == ' '; *text && length < COMMAND_SIZE - 1; length++) {
		if (*text == '\\' && text[1] && text[2] && text[3]) {
			command[length] = (char)strtoul(
				(char[]){ text[1], text[2], text[3], 0 }, NULL, 8);
			text += 4;
		} else {
			command[length] = *text++;
		}
	}
	command[length] = '\0';
	return !*text;
}

/* parser_line - take the next line, without its end; unknown lines are ignored */
void parser_line(struct parser *parser, const char *line)
{
	struct object *object = &parser->object;
	unsigned int i;

	if (!strncmp(line, "flowfd-comm:", 12)) {
		parser->bad |= *object->command ||
			       !parse_command(object->command, line + 12);
		return;
	}
	for (i = 0; i < FIELDS; i++) {
		enum field field = (parser->next + i) % FIELDS;
		const char *key = field_infos[field].key;
		size_t length = key ? strlen(key) : 0;

		if (!key || strncmp(line, key, length) || line[length] != ':')
			continue;
		parser->bad |= !parse_field(object, field, line + length + 1);
		parser->next = field + 1;
		return;
	}
}

static bool is_complete(const struct object *object)
{
	if (object->kind == COUNTER)
		return !(COUNTER_NEEDS & ~object->known);
	return !(RING_NEEDS & ~object->known) &&
	       object_has(object, WATCHES) != object_has(object, BUSY);
}

/* Adds what follows from other numbers. */
static void derive(struct object *object)
{
	const uint64_t *number = object->number;
	uint32_t pending = number[TAIL] - number[HEAD];

	if (number[MAXIMUM] == UINT64_MAX)
		object->known &= ~BIT(MAXIMUM);
	if (object->kind == COUNTER)
		return;
	/* The consumer can store any head, but an item is in the index once at most. */
	object_set(object, PENDING,
		   pending < number[MAX_ITEMS] ? pending : number[MAX_ITEMS]);
	object_set(object, BUSY, number[BUSY]);
}

/*
 * parser_end - the lines of an object, or of a file that may be another one, are complete
 *
 * Returns what was added to the list; NULL: nothing.
 */
struct object *parser_end(struct parser *parser)
{
	const struct parser found = *parser;
	struct list *list = parser->list;

	*parser = (struct parser){ .list = list };
	/* An eventfd, or another file. */
	if (!(found.object.known & ~EVENTFD))
		return NULL;
	if (found.bad || !is_complete(&found.object)) {
		list->unknown++;
		return NULL;
	}
	list->object = grow(list->object, list->count, sizeof(*list->object));
	list->object[list->count] = found.object;
	derive(&list->object[list->count]);
	return &list->object[list->count++];
}
