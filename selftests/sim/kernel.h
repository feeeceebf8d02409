/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module's files need of the kernel's headers, in user space: every <linux/...h>
 * that they include is this file. Each lock, atomic operation and READ_ONCE() is a point
 * where another task may run (sim_step()), so a history is an order of these.
 *
 * Memory is in order: barriers are such points, and no more. herd7 has their proofs.
 */
#ifndef FLOWFD_SIM_KERNEL_H
#define FLOWFD_SIM_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <linux/ioctl.h>
#include <linux/types.h>

#include "sched.h"

typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef unsigned int gfp_t;
#define __poll_t unsigned int

/* compiler.h, kernel.h */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define static_assert _Static_assert
#define __user
#define __percpu
#define __force
#define __must_hold(lock)
#define __releases(lock)
#define ____cacheline_aligned_in_smp
#define THIS_MODULE NULL
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define ERESTARTSYS 512
#define CONFIG_64BIT 1
#define CONFIG_PARISC 0
#define CONFIG_PREEMPT_RT 0
#define IS_ENABLED(option) (option)
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))
#define min(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define ERR_PTR(error) ((void *)(intptr_t)(error))
#define PTR_ERR(p) ((long)(intptr_t)(p))
#define IS_ERR(p) ((uintptr_t)(p) >= (uintptr_t)-4095)
#define ERR_CAST(p) ((void *)(p))
#define WARN_ON_ONCE(x) ({ bool x_ = (x); if (x_) sim_fail("WARN_ON: " #x); x_; })

#define clamp(v, low, high) min(max(v, low), high)
#define ALIGN(x, a) (((x) + (a) - 1) / (a) * (a))
#define BITS_TO_LONGS(n) (((n) + 63) / 64)
#define roundup_pow_of_two(n) ((u32)1 << order_base_2(n))
static inline u32 order_base_2(u32 n) { return n > 1 ? 32 - __builtin_clz(n - 1) : 0; }
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define per_cpu_ptr(p, cpu) (p)
#define __module_get(module) ((void)(module))
#define module_put(module) ((void)(module))

/* Shared words. */
#define READ_ONCE(x) ({ sim_step(); *(volatile typeof(x) *)&(x); })
#define WRITE_ONCE(x, v) ({ sim_step(); *(volatile typeof(x) *)&(x) = (v); })
#define smp_load_acquire(p) ({ sim_step(); *(volatile typeof(*(p)) *)(p); })
#define smp_store_release(p, v) ({ sim_step(); *(volatile typeof(*(p)) *)(p) = (v); })
#define smp_store_mb(x, v) ({ WRITE_ONCE(x, v); sim_step(); })
#define xchg(p, v) ({ sim_step(); typeof(*(p)) x_ = *(p); *(p) = (v); x_; })
#define cmpxchg(p, old, new) ({ sim_step(); typeof(*(p)) x_ = *(p); \
	if (x_ == (old)) *(p) = (new); x_; })
#define smp_mb() sim_step()
#define smp_rmb() sim_step()
#define smp_mb__before_atomic() ((void)0)
#define smp_mb__after_atomic() sim_step()
#define barrier() ((void)0)
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)

#define SIM_ATOMIC(name, type)							\
	typedef struct { type counter; } name##_t;				\
	static inline type name##_read(const name##_t *a)			\
	{ sim_step(); return a->counter; }					\
	static inline type name##_read_acquire(const name##_t *a)		\
	{ sim_step(); return a->counter; }					\
	static inline void name##_set(name##_t *a, type v)			\
	{ sim_step(); a->counter = v; }						\
	static inline type name##_fetch_add(type v, name##_t *a)		\
	{ sim_step(); type x = a->counter; a->counter = (u64)x + v; return x; }	\
	static inline type name##_fetch_or(type v, name##_t *a)			\
	{ sim_step(); type x = a->counter; a->counter |= v; return x; }		\
	static inline type name##_fetch_andnot(type v, name##_t *a)		\
	{ sim_step(); type x = a->counter; a->counter &= ~v; return x; }	\
	static inline type name##_xchg(name##_t *a, type v)			\
	{ sim_step(); type x = a->counter; a->counter = v; return x; }		\
	static inline type name##_cmpxchg(name##_t *a, type old, type new)	\
	{ sim_step(); type x = a->counter; if (x == old) a->counter = new; return x; } \
	static inline void name##_or(type v, name##_t *a) { name##_fetch_or(v, a); } \
	static inline void name##_and(type v, name##_t *a) { name##_fetch_andnot(~v, a); } \
	static inline void name##_andnot(type v, name##_t *a) { name##_fetch_andnot(v, a); } \
	static inline void name##_add(type v, name##_t *a) { name##_fetch_add(v, a); } \
	static inline void name##_sub(type v, name##_t *a) { name##_fetch_add(-v, a); } \
	static inline type name##_fetch_inc(name##_t *a) { return name##_fetch_add(1, a); } \
	static inline void name##_inc(name##_t *a) { name##_fetch_add(1, a); }	\
	static inline void name##_dec(name##_t *a) { name##_fetch_add(-1, a); }	\
	static inline bool name##_dec_and_test(name##_t *a)			\
	{ return name##_fetch_add(-1, a) == 1; }
SIM_ATOMIC(atomic, int)
SIM_ATOMIC(atomic_long, long)
SIM_ATOMIC(atomic64, s64)

typedef struct { atomic_t refs; } refcount_t;
static inline void refcount_set(refcount_t *r, int n) { atomic_set(&r->refs, n); }
static inline void refcount_inc(refcount_t *r) { atomic_inc(&r->refs); }
static inline bool refcount_dec_and_test(refcount_t *r) { return atomic_dec_and_test(&r->refs); }
static inline void refcount_dec(refcount_t *r) { atomic_dec(&r->refs); }

#define this_cpu_inc(x) ((void)(x)++)

static inline bool test_and_set_bit(long bit, unsigned long *words)
{
	unsigned long mask = 1UL << bit % 64;

	return atomic_long_fetch_or(mask, (atomic_long_t *)words + bit / 64) & mask;
}

/* list.h */
struct list_head {
	struct list_head *next, *prev;
};

#define list_entry(p, type, member) container_of(p, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_last_entry(head, type, member) list_entry((head)->prev, type, member)
#define list_next_entry(p, member) list_entry((p)->member.next, typeof(*(p)), member)
#define list_prev_entry(p, member) list_entry((p)->member.prev, typeof(*(p)), member)
#define list_for_each_entry(p, head, member)				\
	for (p = list_first_entry(head, typeof(*p), member);		\
	     &p->member != (head); p = list_next_entry(p, member))
#define list_for_each_entry_reverse(p, head, member)			\
	for (p = list_last_entry(head, typeof(*p), member);		\
	     &p->member != (head); p = list_prev_entry(p, member))
#define list_for_each_entry_safe(p, n, head, member)			\
	for (p = list_first_entry(head, typeof(*p), member),		\
	     n = list_next_entry(p, member);				\
	     &p->member != (head); p = n, n = list_next_entry(n, member))

static inline void INIT_LIST_HEAD(struct list_head *head) { head->next = head->prev = head; }
static inline void list_add(struct list_head *new, struct list_head *head)
{
	*new = (struct list_head){ head->next, head };
	head->next = head->next->prev = new;
}
static inline void list_add_tail(struct list_head *new, struct list_head *head)
{
	list_add(new, head->prev);
}
static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	/* Poison: used again, it stops the simulator. */
	entry->next = entry->prev = (void *)0x100;
}
static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}
static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add(entry, head);
}
static inline bool list_is_head(const struct list_head *entry, const struct list_head *head)
{
	return entry == head;
}
static inline bool list_empty(const struct list_head *head)
{
	return READ_ONCE(head->next) == head;
}

struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
struct llist_node { struct llist_node *next; };
struct llist_head { struct llist_node *first; };
#define init_llist_head(head) ((void)((head)->first = NULL))

/* rbtree.h: a list in order, as trees here have few nodes. */
struct rb_node { struct list_head in_order; };
struct rb_root { struct list_head nodes; };
struct rb_root_cached { struct rb_root rb_root; };
#define RB_ROOT (struct rb_root){ }
#define RB_ROOT_CACHED (struct rb_root_cached){ }
#define rb_entry(p, type, member) container_of(p, type, member)
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_first_cached(const struct rb_root_cached *root);
void rb_add_cached(struct rb_node *node, struct rb_root_cached *root,
		   bool (*less)(struct rb_node *, const struct rb_node *));
void rb_erase_cached(struct rb_node *node, struct rb_root_cached *root);

/* Locks; a mutex is one with which a task may sleep. */
typedef struct sim_lock spinlock_t;
typedef struct sim_lock raw_spinlock_t;
struct mutex { struct sim_lock lock; };
#define spin_lock_init(l) ((void)(*(l) = (spinlock_t){ }))
#define spin_lock(l) sim_lock(l)
#define spin_unlock(l) sim_unlock(l)
#define spin_lock_irq(l) sim_lock(l)
#define spin_unlock_irq(l) sim_unlock(l)
#define spin_lock_irqsave(l, flags) ((flags) = 0, sim_lock(l))
#define spin_unlock_irqrestore(l, flags) ((void)(flags), sim_unlock(l))
#define mutex_init(m) ((void)((m)->lock = (struct sim_lock){ }))
#define mutex_lock(m) sim_mutex_lock(&(m)->lock)
#define mutex_lock_killable(m) (sim_mutex_lock(&(m)->lock), 0)
#define mutex_unlock(m) sim_mutex_unlock(&(m)->lock)
#define lockdep_assert_held(l) sim_assert_held(SIM_LOCK(l))
#define SIM_LOCK(l) ((struct sim_lock *)(l)) /* a mutex begins with it */

/* sched.h; struct task_struct is in sched.h of the simulator. */
#define current sim_current
#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_NORMAL 3
#define PF_EXITING 4
#define MAX_RT_PRIO 100
#define rt_task(task) ((task)->prio < MAX_RT_PRIO)
#define set_current_state(s) ({ sim_step(); current->__state = (s); sim_step(); })
#define __set_current_state(s) ((void)(current->__state = (s)))
static inline bool fatal_signal_pending(struct task_struct *task) { return task->killed; }
static inline bool signal_pending(struct task_struct *task)
{
	return task->signalled || task->killed;
}
static inline void cond_resched(void) { sim_may_sleep(); sim_step(); }
/* Rings are not asked to change a mask of signals. */
#define set_restore_sigmask() ((void)0)
#define test_and_clear_restore_sigmask() false
#define sigdelsetmask(set, mask) ((void)(set))
#undef sigmask
#define sigmask(signal) 0
#define sigprocmask(how, set, old) ((void)(set))
#define u64_to_user_ptr(value) ((void *)(uintptr_t)(value))

/* Time. */
typedef s64 ktime_t;
#define KTIME_MAX INT64_MAX
#define CLOCK_MONOTONIC 1
#define ktime_add_safe(a, b) ((ktime_t)min((u64)(a) + (u64)(b), (u64)KTIME_MAX))
#define ns_to_ktime(ns) ((ktime_t)(ns))
#define jiffies ((unsigned long)(sim_now / 4000000))
static inline u64 ktime_get_ns(void) { return sim_now; }
static inline ktime_t ktime_get(void) { return sim_now; }
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum hrtimer_mode { HRTIMER_MODE_ABS };
struct hrtimer {
	struct sim_timer timer;
	enum hrtimer_restart (*function)(struct hrtimer *timer);
};
void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
		   clockid_t clock, enum hrtimer_mode mode);
static inline void hrtimer_start(struct hrtimer *timer, ktime_t end, enum hrtimer_mode mode)
{
	sim_step();
	sim_timer_start(&timer->timer, end);
}
static inline int hrtimer_cancel(struct hrtimer *timer)
{
	return sim_timer_cancel(&timer->timer);
}
/* 0 if the time has come, as the kernel's. */
static inline int schedule_hrtimeout_range(ktime_t *end, u64 slack, enum hrtimer_mode mode)
{
	return sim_sleep(end ? (u64)*end : UINT64_MAX) ? 0 : -EINTR;
}
static inline void schedule(void)
{
	sim_sleep(UINT64_MAX);
}

/* wait.h, poll.h */
typedef struct wait_queue_entry wait_queue_entry_t;
typedef struct wait_queue_head {
	spinlock_t lock;
	struct list_head head;
} wait_queue_head_t;
typedef int (*wait_queue_func_t)(wait_queue_entry_t *entry, unsigned int mode, int flags,
				 void *key);
struct wait_queue_entry {
	unsigned int flags;
	void *private;
	wait_queue_func_t func;
	struct list_head entry;
};
#define WQ_FLAG_EXCLUSIVE 1
static inline bool waitqueue_active(wait_queue_head_t *q) { return !list_empty(&q->head); }
static inline void init_waitqueue_head(wait_queue_head_t *q)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->head);
}
static inline void init_waitqueue_func_entry(wait_queue_entry_t *entry, wait_queue_func_t func)
{
	entry->flags = 0;
	entry->private = NULL;
	entry->func = func;
}
static inline void __add_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	list_add(&entry->entry, &q->head);
}
static inline void __add_wait_queue_entry_tail(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	list_add_tail(&entry->entry, &q->head);
}
static inline void __remove_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry)
{
	list_del(&entry->entry);
}
void add_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry);
void add_wait_queue_exclusive(wait_queue_head_t *q, wait_queue_entry_t *entry);
void remove_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *entry);
#define wake_up_locked_poll(q, events) \
	__wake_up_locked_key(q, TASK_NORMAL, poll_to_key(events))
void __wake_up_locked_key(wait_queue_head_t *q, unsigned int mode, void *key);
int default_wake_function(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key);

#define EPOLLIN 0x1U
#define EPOLLPRI 0x2U
#define EPOLLOUT 0x4U
#define EPOLLERR 0x8U
#define EPOLLHUP 0x10U
#define EPOLLRDNORM 0x40U
#define EPOLLRDBAND 0x80U
#define EPOLLWRNORM 0x100U
#define EPOLLWRBAND 0x200U
#define EPOLLMSG 0x400U
#define EPOLLRDHUP 0x2000U
#define POLLFREE 0x4000U
#define EPOLLEXCLUSIVE (1U << 28)
#define EPOLLONESHOT (1U << 30)
#define EPOLLET (1U << 31)
#define poll_to_key(events) ((void *)(uintptr_t)(events))
#define key_to_poll(key) ((__poll_t)(uintptr_t)(key))
struct file;
typedef struct poll_table_struct {
	void (*_qproc)(struct file *file, wait_queue_head_t *q, struct poll_table_struct *p);
	__poll_t _key;
} poll_table;
static inline __poll_t poll_requested_events(const poll_table *p) { return p ? p->_key : ~0U; }
static inline void init_poll_funcptr(poll_table *p, void (*proc)(struct file *,
				      wait_queue_head_t *, struct poll_table_struct *))
{
	*p = (poll_table){ proc, ~0U };
}
static inline void poll_wait(struct file *file, wait_queue_head_t *q, poll_table *p)
{
	if (p && p->_qproc)
		p->_qproc(file, q, p);
	sim_step();
}

/* workqueue.h */
struct workqueue_struct;
struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);
struct work_struct {
	work_func_t func;
	struct list_head entry; /* in its queue */
	bool pending;
	struct workqueue_struct *queue;
};
#define WQ_MEM_RECLAIM 2
#define WQ_CPU_INTENSIVE 4
#define WQ_HIGHPRI 8
#define WQ_PERCPU 16
#define INIT_WORK(work, function) ((void)(*(work) = (struct work_struct){ .func = (function) }))
#define alloc_ordered_workqueue(format, flags, ...) alloc_workqueue(format, flags, 1)
struct workqueue_struct *alloc_workqueue(const char *format, unsigned int flags, int max, ...);
void destroy_workqueue(struct workqueue_struct *queue);
bool queue_work(struct workqueue_struct *queue, struct work_struct *work);
bool cancel_work_sync(struct work_struct *work);

/* Memory. */
#define PAGE_SIZE 4096UL
#define PAGE_SHIFT 12
#define GFP_KERNEL_ACCOUNT 0
#define SLAB_HWCACHE_ALIGN 0
#define SLAB_ACCOUNT 0
struct kmem_cache;
struct kmem_cache *kmem_cache_create(const char *name, size_t size, size_t align,
				     unsigned int flags, void (*construct)(void *));
void kmem_cache_destroy(struct kmem_cache *cache);
void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags);
#define kmem_cache_free(cache, p) free(p)
#define kzalloc(size, flags) calloc(1, size)
#define kfree(p) free((void *)(p))
#define kvfree kfree
#define kvcalloc(n, size, flags) calloc(n, size)
#define kvmalloc_array(n, size, flags) calloc(n, size)
#define alloc_percpu_gfp(type, flags) ((type *)calloc(1, sizeof(type)))
#define free_percpu kfree
#define PAGE_ALIGN(x) ALIGN(x, PAGE_SIZE)
#define TASK_COMM_LEN 16
#define xa_erase(xa, id) ((void)(xa), (void)(id))
struct xarray { void *entry; };
#define VM_WRITE 2
#define VM_SHARED 8
#define VM_MAYWRITE 0x20
struct mm_struct { atomic_t mm_users; };
struct vm_area_struct;
struct vm_operations_struct { void (*close)(struct vm_area_struct *vma); };
struct vm_area_struct {
	unsigned long vm_pgoff, vm_flags;
	struct mm_struct *vm_mm;
	void *vm_private_data;
	const struct vm_operations_struct *vm_ops;
	struct file *vm_file;
	void *address; /* set by flowfd_memory_map() */
};
static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}

/* uaccess.h: programs have no bad pointers here; selftests have. */
#define pagefault_disable() (current->faults_off++)
#define pagefault_enable() (current->faults_off--)
static inline void might_fault(void)
{
	if (!current->faults_off)
		sim_may_sleep();
}
#define get_user(v, p) ({ might_fault(); (v) = *(p); 0; })
#define put_user(v, p) ({ might_fault(); *(p) = (v); 0; })
#define copy_from_user(to, from, n) ({ might_fault(); memcpy(to, from, n); 0; })
#define copy_to_user(to, from, n) ({ might_fault(); memcpy(to, from, n); 0; })
#define clear_user(to, n) ({ memset(to, 0, n); 0; })
static inline int copy_struct_from_user(void *to, size_t known, const void *from, size_t size)
{
	memset(to, 0, known);
	memcpy(to, from, min(known, size));
	return 0;
}
struct iov_iter { u64 value; size_t left; };
#define iov_iter_count(iter) ((iter)->left)
#define iov_iter_single_seg_count(iter) ((iter)->left)
#define iter_is_iovec(iter) false
#define iov_iter_advance(iter, n) ((void)(iter))
#define iov_iter_revert(iter, n) ((iter)->left += (n))
#define fault_in_iov_iter_writeable(iter, n) ((size_t)0)
static inline size_t copy_from_iter(void *to, size_t n, struct iov_iter *iter)
{
	memcpy(to, &iter->value, n);
	iter->left -= n;
	return n;
}
static inline size_t copy_to_iter(const void *from, size_t n, struct iov_iter *iter)
{
	memcpy(&iter->value, from, n);
	iter->left -= n;
	return n;
}

/* fs.h, file.h */
#define FMODE_READ 1
#define FMODE_WRITE 2
#define FMODE_PREAD 8
#define FMODE_PWRITE 16
#define FMODE_STREAM 32
#define FMODE_NOWAIT 64
#define FMODE_NONOTIFY 128
#define IOCB_NOWAIT 8
#define IOCSIZE_MASK (_IOC_SIZEMASK << _IOC_SIZESHIFT)
typedef void *fl_owner_t;
struct file_lock;
struct inode;
struct seq_file { char *buf; size_t size, count; };
void seq_printf(struct seq_file *m, const char *format, ...);
struct kiocb { struct file *ki_filp; int ki_flags; };
struct file_operations {
	void *owner;
	int (*release)(struct inode *inode, struct file *file);
	ssize_t (*read)(struct file *file, char *buf, size_t size, loff_t *pos);
	ssize_t (*write)(struct file *file, const char *buf, size_t size, loff_t *pos);
	ssize_t (*read_iter)(struct kiocb *iocb, struct iov_iter *to);
	ssize_t (*write_iter)(struct kiocb *iocb, struct iov_iter *from);
	__poll_t (*poll)(struct file *file, poll_table *wait);
	long (*unlocked_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	long (*compat_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	int (*mmap)(struct file *file, struct vm_area_struct *vma);
	int (*flush)(struct file *file, fl_owner_t id);
	loff_t (*llseek)(struct file *file, loff_t offset, int whence);
	int (*lock)(struct file *file, int cmd, struct file_lock *lock);
	int (*flock)(struct file *file, int cmd, struct file_lock *lock);
	void (*show_fdinfo)(struct seq_file *m, struct file *file);
};
struct file {
	unsigned int f_flags, f_mode;
	const struct file_operations *f_op;
	void *private_data;
	bool allocated;
};
#define vfs_poll(file, table) ((file)->f_op->poll(file, table))
#define compat_ptr_ioctl NULL
#define noop_llseek NULL
struct file *anon_inode_getfile(const char *name, const struct file_operations *ops,
				void *data, int flags);
int get_unused_fd_flags(unsigned int flags);
void fd_install(int fd, struct file *file);
struct file *fget(unsigned int fd);
void fput(struct file *file);
/* Begins a history. */
void sim_kernel_begin(void);

/* Users. */
typedef struct { unsigned int val; } kuid_t;
#define __kuid_val(uid) ((uid).val)
struct user_namespace { struct user_namespace *parent; kuid_t owner; };
extern struct user_namespace init_user_ns;
struct cred { kuid_t uid; const struct user_namespace *user_ns; };
#define current_cred() (&(const struct cred){ { 1000 }, &init_user_ns })
#define hash_32(value, bits) ((u32)((value) * 0x61C88647U) >> (32 - (bits)))

/* tracepoint.h: a line of the history. */
void sim_trace(const char *name);
#define TP_PROTO(...) __VA_ARGS__
#define TP_ARGS(...)
#define DECLARE_EVENT_CLASS(...)
#define SIM_TRACE(name, ...)						\
	static inline void trace_##name(__VA_ARGS__) { sim_trace(#name); } \
	static inline bool trace_##name##_enabled(void) { return false; }
#define TRACE_EVENT(name, proto, ...) SIM_TRACE(name, proto)
#define DEFINE_EVENT(class, name, proto, ...) SIM_TRACE(name, proto)

/* For compat.h of the module, which adds what older kernels do not have. */
#define HAVE_hrtimer_setup 1
#define HAVE_vm_flags_clear 1
#define HAVE_fsnotify_find_inode_mark 1
#define HAVE_WQ_PERCPU 1
#define HAVE_get_file_active 1
#define HAVE_receive_fd_to_user 1
/* Nobody shares anything here. */
struct file;
int receive_fd(struct file *file, int __user *to, unsigned int flags);
struct class;
struct class *class_create(const char *name);

/* eventfd.h: of kernels before 6.8, whose signals have a count. */
struct eventfd_ctx;
u64 eventfd_signal(struct eventfd_ctx *eventfd, u64 count);
void eventfd_ctx_do_read(struct eventfd_ctx *eventfd, u64 *value);
struct eventfd_ctx *eventfd_ctx_fileget(struct file *file);
struct file *eventfd_fget(int fd);
void eventfd_ctx_put(struct eventfd_ctx *eventfd);

#endif /* FLOWFD_SIM_KERNEL_H */
