/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * config.h - what the user can set: defaults, then the configuration file,
 * then the environment (SOFTHCA_*), later ones win.
 *
 * File: $SOFTHCA_CONFIG, else $XDG_CONFIG_HOME/softhca.conf, else
 * ~/.config/softhca.conf, else /etc/softhca.conf; the first that exists. Lines
 * `key = value`, `#` starts a comment; the keys are the variables' names in
 * lower case without the prefix. A bad value is reported in one line on
 * stderr and the value before it stays.
 */
#ifndef SOFTHCA_RT_CONFIG_H
#define SOFTHCA_RT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "rt/umem.h"

#define RT_CONFIG_PATH_MAX 1024
#define RT_CONFIG_DEVICES_MAX 512
#define RT_CONFIG_FAULT_MAX 2048
#define RT_CONFIG_CC_MAX 512

enum rt_link { LINK_RING, LINK_UDP };

struct rt_config {
	bool verbose;
	char stats_path[RT_CONFIG_PATH_MAX];   /* "": off */
	char capture_path[RT_CONFIG_PATH_MAX]; /* "": off */
	enum rt_link link; /* to processes on this host; default ring */
	bool one_sided;	   /* copies on one host; default true */
	bool offload;	   /* UDP_SEGMENT and UDP_GRO; default true */
	bool icrc_strict;  /* default false: relaxed */
	int rcvbuf_bytes;  /* 0: leave the kernel's default (stock) */
	enum umem_mode umem;
	bool has_seed; /* else the seed is from getrandom() */
	uint64_t seed;
	unsigned send_sockets;	    /* 1..64, default 8 */
	uint32_t dest_budget_bytes; /* as the kernel charges; 0: unbounded */
	uint32_t read_budget_bytes;
	char fault[RT_CONFIG_FAULT_MAX]; /* docs/faults.md; "": none */
	char cc[RT_CONFIG_CC_MAX];	 /* dcqcn_parse() takes it; or "none" */
	unsigned empty_polls; /* yield after so many in a row; 0: never */
	/* Interface names to allow, comma separated, or with a leading "!"
	 * to leave out; "": all. */
	char devices[RT_CONFIG_DEVICES_MAX];
};

/* The process's configuration: read at the first call, constant after.
 * Thread-safe. Never NULL. Not from inside the engine (the first call does
 * I/O). */
const struct rt_config *rt_config(void);

/* What rt_config() does, for tests: getenv_fn instead of getenv(), say
 * instead of stderr (one message a call, without newline). Fills *ret. */
void config_load(struct rt_config *ret,
		 const char *(*getenv_fn)(const char *name),
		 void (*say)(const char *text));

/* Does the DEVICES list allow this interface? */
bool config_allows(const struct rt_config *c, const char *ifname);

#endif
