// SPDX-License-Identifier: GPL-2.0-only
/*
 * The balance of a listening socket. Workers wait for it exclusively, each at a fixed
 * place of its wait queue, and a wakeup looks for the first that sleeps: so a few workers
 * accept nearly all connections. A balance moves a worker that is the first for a second
 * time to the end of the queue. docs/balance.md says why that may be done there.
 *
 * All members change under the lock of the socket's wait queue.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/in.h>
#include <linux/magic.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "abi.h"
#include "balance.h"
#include "closing.h"
#include "compat.h"
#include "flowfd.h"

/* A turn looks at so many entries for the first exclusive one; the walk calls all. */
#define BALANCE_LOOK 256

/**
 * struct balance_entries - what a balance has in a wait queue
 * @turn: its function changes the order of the entries behind @stop
 * @stop: the next entry after @turn: the walk has noted it before it calls @turn
 * @head: the wait queue
 * @last: first exclusive entry at the last turn; compared, never followed
 */
struct balance_entries {
	wait_queue_entry_t turn;
	wait_queue_entry_t stop;
	wait_queue_head_t *head;
	wait_queue_entry_t *last;
};

/**
 * struct flowfd_balance_file - what is behind the descriptor of a balance
 * @entries: in the socket's wait queue
 * @closing: hook into the socket
 */
struct flowfd_balance_file {
	struct balance_entries entries;
	struct flowfd_closing_hook closing;
};

/* Whether wait queues are walked as a balance expects. */
static bool walk_is_known __ro_after_init;

static int balance_stop(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	return 0;
}

/*
 * Only an entry that the last wakeup left where it was is moved. A task that blocks in
 * accept(2) leaves the queue when it is woken, and joins it at the end by itself.
 */
static void balance_move(struct balance_entries *b, wait_queue_entry_t *first)
{
	struct list_head *next = first->entry.next;

	if (first == b->last && next != &b->head->head) {
		list_move_tail(&first->entry, &b->head->head);
		first = list_entry(next, wait_queue_entry_t, entry);
	}
	b->last = first;
}

/* Called by the walk, which goes on with @stop: what is behind that may be moved. */
static int balance_turn(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct balance_entries *b = container_of(entry, struct balance_entries, turn);
	wait_queue_entry_t *e = &b->stop;
	unsigned int looks = 0;

	if (!(key_to_poll(key) & EPOLLIN))
		return 0;
	list_for_each_entry_continue(e, &b->head->head, entry) {
		if (++looks > BALANCE_LOOK)
			break;
		if (e->flags & WQ_FLAG_EXCLUSIVE) {
			balance_move(b, e);
			break;
		}
	}
	return 0;
}

static void balance_join(struct balance_entries *b, wait_queue_head_t *head)
{
	init_waitqueue_func_entry(&b->stop, balance_stop);
	init_waitqueue_func_entry(&b->turn, balance_turn);
	b->head = head;
	spin_lock_irq(&head->lock);
	__add_wait_queue(head, &b->stop);
	/* Whatever joins later does so at the beginning of the queue or at its end. */
	list_add_tail(&b->turn.entry, &b->stop.entry);
	spin_unlock_irq(&head->lock);
}

static void balance_leave(struct balance_entries *b)
{
	unsigned long flags;

	spin_lock_irqsave(&b->head->lock, flags);
	list_del(&b->turn.entry);
	list_del(&b->stop.entry);
	spin_unlock_irqrestore(&b->head->lock, flags);
}

/* A socket has one balance. */
static void balance_socket_leave(struct flowfd_closing_hook **hooks, unsigned int count)
{
	struct flowfd_balance_file *b =
		container_of(*hooks, struct flowfd_balance_file, closing);

	balance_leave(&b->entries);
}

static const struct flowfd_closing_ops balance_closing_ops = {
	.leave = balance_socket_leave,
	.alone = true,
};

static int balance_release(struct inode *inode, struct file *file)
{
	struct flowfd_balance_file *b = file->private_data;

	flowfd_closing_remove(&b->closing);
	kfree(b);
	return 0;
}

static const struct file_operations balance_fops = {
	.owner = THIS_MODULE,
	.release = balance_release,
	.llseek = noop_llseek,
};

/* Only sockets whose wait queue is known, and has known waiters. */
static bool balance_may_have(const struct socket *sock)
{
	const struct sock *sk = sock->sk;

	if (!sk || READ_ONCE(sk->sk_state) != TCP_LISTEN)
		return false;
	if (sk->sk_family == PF_UNIX)
		return true;
	return (sk->sk_family == PF_INET || sk->sk_family == PF_INET6) &&
	       sk->sk_protocol == IPPROTO_TCP;
}

/* The caller keeps the socket's file. */
static struct flowfd_balance_file *balance_alloc(struct file *file, struct socket *sock)
{
	struct flowfd_balance_file *b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);
	int err;

	if (!b)
		return ERR_PTR(-ENOMEM);
	b->closing.file = file;
	b->closing.user = CLOSING_BALANCE;
	err = flowfd_closing_track_file(&b->closing);
	if (err <= 0) {
		kfree(b);
		return ERR_PTR(err ?: -EINVAL);
	}
	/* The socket is not closed meanwhile, so leaving comes later. */
	balance_join(&b->entries, &sock->wq.wait);
	return b;
}

static long balance_install(struct flowfd_balance_file *b, u32 flags)
{
	struct file *file =
		anon_inode_getfile("[flowfd-balance]", &balance_fops, b, O_RDWR);

	if (!IS_ERR(file))
		return flowfd_install_file(file, flags);
	flowfd_closing_remove(&b->closing);
	kfree(b);
	return PTR_ERR(file);
}

/*
 * Returns the socket's own file. The descriptor may be an O_PATH one, which keeps no
 * socket open: its file is another, and the socket may be closed meanwhile.
 */
static struct file *balance_get_file(int fd)
{
	struct file *given = fget_raw(fd), *file = ERR_PTR(-ENOTSOCK);
	struct inode *inode;

	if (!given)
		return ERR_PTR(-EBADF);
	inode = file_inode(given);
	if (inode->i_sb->s_magic == SOCKFS_MAGIC)
		file = get_file_active(&SOCKET_I(inode)->file) ?: ERR_PTR(-EBADF);
	fput(given);
	return file;
}

/* FLOWFD_IOC_BALANCE. Returns a descriptor or a negative errno. */
long flowfd_balance_create(const void __user *argp, size_t size)
{
	struct flowfd_balance_file *b = ERR_PTR(-EINVAL);
	struct flowfd_balance args;
	struct socket *sock;
	struct file *file;
	int err;

	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_BALANCE_SIZE_VER0, argp, size);
	if (err)
		return err;
	if (args.flags & ~FLOWFD_KEEP_ON_EXEC)
		return -EINVAL;
	if (!walk_is_known)
		return -EOPNOTSUPP;
	file = balance_get_file(args.fd);
	if (IS_ERR(file))
		return PTR_ERR(file);
	sock = sock_from_file(file);
	if (balance_may_have(sock))
		b = balance_alloc(file, sock);
	fput(file);
	return IS_ERR(b) ? PTR_ERR(b) : balance_install(b, args.flags);
}

/* An exclusive entry of the check, as of an epoll: it stays when it is woken. */
struct check_entry {
	wait_queue_entry_t wait;
	unsigned int calls;
};

static int check_func(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	/* Stops a walk that would never end. */
	return ++container_of(entry, struct check_entry, wait)->calls > 8 ? -1 : 1;
}

/*
 * Two workers wait. Two wakeups must reach one after the other. A third, of all, must
 * reach both.
 */
static bool __init check_walk(void)
{
	DECLARE_WAIT_QUEUE_HEAD_ONSTACK(head);
	struct check_entry worker[2] = {};
	struct balance_entries b = {};
	unsigned int i;
	bool known;

	for (i = 0; i < ARRAY_SIZE(worker); i++) {
		init_waitqueue_func_entry(&worker[i].wait, check_func);
		add_wait_queue_exclusive(&head, &worker[i].wait);
	}
	balance_join(&b, &head);

	wake_up_interruptible_sync_poll(&head, EPOLLIN);
	known = worker[0].calls == 1 && !worker[1].calls;
	wake_up_interruptible_sync_poll(&head, EPOLLIN);
	known = known && worker[0].calls == 1 && worker[1].calls == 1;
	__wake_up(&head, TASK_NORMAL, 0, poll_to_key(EPOLLIN));
	return known && worker[0].calls == 2 && worker[1].calls == 2;
}

/* Sees whether this kernel walks wait queues as expected. */
void __init flowfd_balance_init(void)
{
	flowfd_closing_ops[CLOSING_BALANCE] = &balance_closing_ops;
	walk_is_known = check_walk();
	if (!walk_is_known)
		pr_notice("flowfd: no balance: this kernel wakes in another way\n");
}
