/* SPDX-License-Identifier: GPL-2.0-only */
/* Posts: items of a ring without a file, which programs post in memory. */
#ifndef FLOWFD_POST_H
#define FLOWFD_POST_H

#include "ring.h"

struct seq_file;

int flowfd_post_add(struct flowfd_ring *ring, u64 data);
int flowfd_post_remove(struct flowfd_ring *ring, u32 number);
int flowfd_posts_remove(struct flowfd_ring *ring, u64 data);
void flowfd_posts_show(struct flowfd_ring *ring, struct seq_file *m);

#endif /* FLOWFD_POST_H */
