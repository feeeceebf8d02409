/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of flowfdctl balance share. */
#ifndef FLOWFDCTL_BALANCE_H
#define FLOWFDCTL_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "unix:" and a path, of which each byte can become four. */
#define ADDRESS_SIZE 448
/* What a server has more of is not balanced. */
#define LISTENERS_MAX 1024

/**
 * struct listener - a listening socket of a server
 * @number: its descriptor in the server
 * @balance: descriptor of its balance, or the negative errno why it has none; 0 at first
 * @path: O_PATH descriptor of it, if it has a balance; does not keep it open
 * @inode: number of the socket, the same in all processes that have it
 * @address: as text: "127.0.0.1:80", "[::]:80", "unix:/run/server.sock"
 */
struct listener {
	int number;
	int balance;
	int path;
	uint64_t inode;
	char address[ADDRESS_SIZE];
};

/**
 * struct server - a process whose children are workers
 * @pid: its number
 * @pidfd: shows its end
 * @address: only the socket with this address; NULL: all
 * @listeners: its sockets, and those that it had and its children have
 * @count: their number
 */
struct server {
	pid_t pid;
	int pidfd;
	const char *address;
	struct listener *listeners;
	size_t count;
};

/**
 * struct worker - a process that may accept connections
 * @pid: its number
 * @pidfd: shows its end; -1: it has ended, so @accepted is final
 * @counters: descriptors of perf events, two for each thread
 * @count: their number
 * @before: connections that it had accepted at the last table
 * @accepted: connections that it has accepted since
 */
struct worker {
	pid_t pid;
	int pidfd;
	int *counters;
	size_t count;
	uint64_t before;
	uint64_t accepted;
};

struct workers {
	struct worker *worker;
	size_t count;
};

/* listening.c */
struct search;
int listening_dump(const struct server *server, struct search *search);

/* listeners.c */
bool process_has_ended(int pidfd);
ssize_t process_numbers(pid_t pid, const char *directory, int **numbers);
void listener_add(struct server *server, const struct listener *l);
void listener_found(struct search *search, uint64_t inode, const char *address);
int listeners_find(struct server *server);
int listener_open(const struct server *server, const struct listener *l);
bool process_has_listener(pid_t pid, const struct server *server);

/* balances.c */
int balances_update(struct server *server, bool say);

/* workers.c */
bool workers_open(void);
void workers_find(struct workers *workers, const struct server *server);
void workers_count(struct workers *workers);
void workers_reset(struct workers *workers);

#endif /* FLOWFDCTL_BALANCE_H */
