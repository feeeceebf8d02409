// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions behind kernel.h: wait queues, work items, memory, descriptors; and, as
 * they are not the subject, the memory that programs map and what is left out.
 */
#include <stdarg.h>
#include <stdio.h>

#include "kernel.h"

#include "memory.h"

struct user_namespace init_user_ns;

/* Trees. */
static struct list_head *rb_nodes(const struct rb_root *root)
{
	struct list_head *nodes = (struct list_head *)&root->nodes;

	if (!nodes->next)
		INIT_LIST_HEAD(nodes);
	return nodes;
}

struct rb_node *rb_first(const struct rb_root *root)
{
	struct list_head *nodes = rb_nodes(root);

	/* A node knows its root by the end of the list. */
	return nodes->next == nodes ? NULL : (struct rb_node *)nodes->next;
}

struct rb_node *rb_first_cached(const struct rb_root_cached *root)
{
	return rb_first(&root->rb_root);
}

void rb_add_cached(struct rb_node *node, struct rb_root_cached *root,
		   bool (*less)(struct rb_node *, const struct rb_node *))
{
	struct list_head *at, *nodes = rb_nodes(&root->rb_root);

	for (at = nodes->next; at != nodes; at = at->next)
		if (less(node, (struct rb_node *)at))
			break;
	list_add_tail(&node->in_order, at);
}

void rb_erase_cached(struct rb_node *node, struct rb_root_cached *root)
{
	(void)root;
	list_del(&node->in_order);
}

/* Wait queues. */
void add_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	sim_lock(&q->lock);
	__add_wait_queue(q, entry);
	sim_unlock(&q->lock);
}

void add_wait_queue_exclusive(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	entry->flags |= WQ_FLAG_EXCLUSIVE;
	sim_lock(&q->lock);
	__add_wait_queue_entry_tail(q, entry);
	sim_unlock(&q->lock);
}

void remove_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	sim_lock(&q->lock);
	__remove_wait_queue(q, entry);
	sim_unlock(&q->lock);
}

void __wake_up_locked_key(wait_queue_head_t *q, unsigned int mode, void *key)
{
	wait_queue_entry_t *entry, *next;
	int woken;

	list_for_each_entry_safe(entry, next, &q->head, entry) {
		bool exclusive = entry->flags & WQ_FLAG_EXCLUSIVE;

		woken = entry->func(entry, mode, 0, key);
		if (woken < 0 || (woken && exclusive))
			break;
	}
}

int default_wake_function(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	return wake_up_process(entry->private);
}

/* Timers. */
static void expire(struct sim_timer *timer)
{
	struct hrtimer *h = container_of(timer, struct hrtimer, timer);

	h->function(h);
}

void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
		   clockid_t clock, enum hrtimer_mode mode)
{
	timer->timer = (struct sim_timer){ .function = expire };
	timer->function = function;
}

/* A queue has one worker, which each history makes when the queue is first used. */
struct workqueue_struct {
	struct list_head items;
	struct work_struct *running;
	struct task_struct *worker;
	unsigned int history;
};

static unsigned int history;

struct workqueue_struct *alloc_workqueue(const char *format, unsigned int flags, int max, ...)
{
	return calloc(1, sizeof(struct workqueue_struct));
}

void destroy_workqueue(struct workqueue_struct *queue)
{
	free(queue);
}

static bool has_items(void *queue)
{
	struct workqueue_struct *q = queue;

	return q->items.next != &q->items;
}

static void work(void *queue)
{
	struct workqueue_struct *q = queue;

	for (;;) {
		if (has_items(q)) {
			q->running = list_first_entry(&q->items, struct work_struct, entry);
			list_del(&q->running->entry);
			q->worker->ready = NULL;
			q->running->pending = false;
			q->running->func(q->running);
			q->running = NULL;
			q->worker->ready = has_items;
		}
		sim_step();
	}
}

bool queue_work(struct workqueue_struct *queue, struct work_struct *item)
{
	sim_step();
	if (item->pending)
		return false;
	if (queue->history != history) {
		*queue = (struct workqueue_struct){ .history = history };
		INIT_LIST_HEAD(&queue->items);
		queue->worker = sim_spawn("kworker", work, queue);
		queue->worker->ready = has_items;
	}
	item->pending = true;
	item->queue = queue;
	list_add_tail(&item->entry, &queue->items);
	return true;
}

bool cancel_work_sync(struct work_struct *item)
{
	bool pending = item->pending;

	sim_may_sleep();
	if (pending)
		list_del(&item->entry);
	item->pending = false;
	while (item->queue && item->queue->history == history &&
	       item->queue->running == item && !sim_failed)
		sim_pause(1000);
	return pending;
}

/* Caches of objects; each object is constructed anew, so that its size is checked. */
struct kmem_cache {
	size_t size;
	void (*construct)(void *object);
};

struct kmem_cache *kmem_cache_create(const char *name, size_t size, size_t align,
				     unsigned int flags, void (*construct)(void *))
{
	struct kmem_cache *cache = malloc(sizeof(*cache));

	*cache = (struct kmem_cache){ size, construct };
	return cache;
}

void kmem_cache_destroy(struct kmem_cache *cache)
{
	free(cache);
}

void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags)
{
	void *object = malloc(cache->size);

	/* What nobody sets is not 0. */
	memset(object, 0xa5, cache->size);
	if (cache->construct)
		cache->construct(object);
	return object;
}

/* Descriptors; a history has few, and closes none but at its end. */
#define FILES 16

static struct file *files[FILES];
static int file_count_;

void sim_kernel_begin(void)
{
	history++;
	while (file_count_) {
		file_count_--;
		if (files[file_count_]->allocated)
			free(files[file_count_]);
	}
}

struct file *anon_inode_getfile(const char *name, const struct file_operations *ops,
				void *data, int flags)
{
	struct file *file = calloc(1, sizeof(*file));

	file->f_op = ops;
	file->private_data = data;
	file->f_flags = flags;
	file->f_mode = FMODE_READ | FMODE_WRITE;
	file->allocated = true;
	return file;
}

int get_unused_fd_flags(unsigned int flags)
{
	return file_count_ < FILES ? file_count_ : -EMFILE;
}

void fd_install(int fd, struct file *file)
{
	files[fd] = file;
	file_count_ = fd + 1;
}

struct file *fget(unsigned int fd)
{
	return fd < (unsigned int)file_count_ ? files[fd] : NULL;
}

void fput(struct file *file)
{
}

void seq_printf(struct seq_file *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	m->count += vsnprintf(m->buf + m->count, m->size - m->count, format, args);
	va_end(args);
}

/* Memory that programs map: pages, charge and mmap(2) are not the subject. */
int flowfd_memory_alloc(struct flowfd_memory *m, unsigned long pages)
{
	m->pages = pages;
	m->start = aligned_alloc(PAGE_SIZE, pages * PAGE_SIZE);
	memset(m->start, 0, pages * PAGE_SIZE);
	return 0;
}

void flowfd_memory_free(struct flowfd_memory *m)
{
	free(m->start);
}

int flowfd_memory_map(const struct flowfd_memory *m, struct vm_area_struct *vma)
{
	vma->address = (char *)m->start + vma->vm_pgoff * PAGE_SIZE;
	return 0;
}

int flowfd_memory_charge(struct flowfd_memory *m, unsigned long pages)
{
	return 0;
}

void flowfd_memory_uncharge(struct flowfd_memory *m)
{
}
