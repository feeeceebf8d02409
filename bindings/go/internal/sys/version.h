/* SPDX-License-Identifier: MIT */
/* The version of the library; a test compares it with that of everything else. */
#define FLOWFD_VERSION "0.2.0"
