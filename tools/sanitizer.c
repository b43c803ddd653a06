/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sanitizer.c - the sanitizer runtime that a program needs, from its ELF file.
 *
 * Such a runtime wants to be the first library of the process, and the one for
 * addresses ends the program if it is not. What LD_PRELOAD names comes before
 * what the program needs, so the runtime has to be named there as well.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"

struct image {
	const char *at;
	size_t len;
};

static bool is_runtime(const char *soname)
{
	static const char *const stems[] = {
		"libasan.so",	    "libtsan.so",	  "liblsan.so",
		"libhwasan.so",	    "libclang_rt.asan",	  "libclang_rt.tsan",
		"libclang_rt.lsan", "libclang_rt.hwasan",
	};

	for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++)
		if (strncmp(soname, stems[i], strlen(stems[i])) == 0)
			return true;
	return false;
}

/* n bytes at off of the file, or NULL. */
static const void *part(const struct image *m, uint64_t off, uint64_t n)
{
	return off <= m->len && n <= m->len - off ? m->at + off : NULL;
}

/* A section's string, with its end inside the file; or NULL. */
static const char *string(const struct image *m, const Elf64_Shdr *strtab,
			  uint64_t at)
{
	const char *s;

	if (at >= strtab->sh_size)
		return NULL;
	s = part(m, strtab->sh_offset, strtab->sh_size);
	return s && memchr(s + at, 0, strtab->sh_size - at) ? s + at : NULL;
}

/* The runtime among the needed libraries of one dynamic section. */
static const char *find_needed(const struct image *m, const Elf64_Shdr *dyn,
			       const Elf64_Shdr *strtab)
{
	size_t n = dyn->sh_size / sizeof(Elf64_Dyn);
	const Elf64_Dyn *d = part(m, dyn->sh_offset, n * sizeof(*d));

	for (size_t i = 0; d && i < n; i++) {
		const char *s = d[i].d_tag == DT_NEEDED
					? string(m, strtab, d[i].d_un.d_val)
					: NULL;

		if (s && is_runtime(s))
			return s;
	}
	return NULL;
}

static const char *find_runtime(const struct image *m)
{
	const Elf64_Ehdr *e = part(m, 0, sizeof(*e));
	const Elf64_Shdr *s;

	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
	    e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_shoff % 8 ||
	    e->e_shentsize != sizeof(*s))
		return NULL;
	s = part(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof(*s));
	for (unsigned i = 0; s && i < e->e_shnum; i++)
		if (s[i].sh_type == SHT_DYNAMIC && s[i].sh_link < e->e_shnum &&
		    s[i].sh_offset % 8 == 0)
			return find_needed(m, &s[i], &s[s[i].sh_link]);
	return NULL;
}

static bool map(const char *path, struct image *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
			 0);
	close(fd);
	if (p == MAP_FAILED)
		return false;
	*ret = (struct image){ p, (size_t)st.st_size };
	return true;
}

/* As execvp() looks for it. */
static bool find_program(const char *name, char ret[CMD_PATH_MAX])
{
	const char *p = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(ret, CMD_PATH_MAX, "%s", name) < CMD_PATH_MAX;
	while (p && *p) {
		size_t n = strcspn(p, ":");

		if (snprintf(ret, CMD_PATH_MAX, "%.*s/%s", n ? (int)n : 1,
			     n ? p : ".", name) < CMD_PATH_MAX &&
		    access(ret, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

bool sanitizer_runtime(const char *program, char ret[CMD_PATH_MAX])
{
	char path[CMD_PATH_MAX];
	const char *name;
	struct image m;

	if (!find_program(program, path) || !map(path, &m))
		return false;
	name = find_runtime(&m);
	if (name && snprintf(ret, CMD_PATH_MAX, "%s", name) >= CMD_PATH_MAX)
		name = NULL;
	munmap((void *)(uintptr_t)m.at, m.len);
	return name != NULL;
}
