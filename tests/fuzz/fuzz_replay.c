/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fuzz_replay.c - main for a fuzz target without libFuzzer: gives it every file
 * of the directories named, and every prefix of each.
 *
 *   fuzz_replay DIRECTORY...
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#define INPUT_MAX 65536
#define PREFIXES 512 /* of long files only those up to here, and the whole */

/* On the heap and exactly as long as the input, for the sanitizers. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

/* 0, -errno */
static int replay_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	size_t size;
	int err = 0;

	if (!f)
		return -errno;
	size = fread(data, 1, sizeof(data), f);
	if (ferror(f))
		err = -EIO;
	else if (size == sizeof(data))
		err = -EFBIG;
	fclose(f);
	if (err)
		return err;
	for (size_t n = 0; n < size && n <= PREFIXES; n++)
		give(data, n);
	give(data, size);
	return 0;
}

/* Files replayed, or -errno. */
static int replay_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];
	int files = 0, err = 0;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		err = replay_file(path);
		files++;
	}
	closedir(d);
	return err ? err : files;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int files = replay_dir(argv[i]);

		if (files <= 0) {
			fprintf(stderr, "%s: %s\n", argv[i],
				files ? strerror(-files) : "no files");
			return 1;
		}
		printf("%s: %d inputs\n", argv[i], files);
	}
	return argc > 1 ? 0 : 2;
}
