/*
 * Memory loops of Knotmeter in C: copy, triad and chase over a working set, on one CPU.
 *
 *     compute copy|memcpy|triad|chase CPU BYTES SECONDS SEED
 *
 * It prints bytes read and written per second, or the seconds of one load, after a warm-up of 0.1 s. The working set is in
 * huge pages if the kernel gives them. The seed, which is not 0, is that of the order of the chase.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHUNK (64 << 10) /* bytes of each array in one operation */
#define HUGE_PAGE (2UL << 20)
#define LINE 64

struct node {
	struct node *next;
	uint64_t ordinal;
	char rest[LINE - 16];
};

static char *memory;
static size_t size, at;
static double *a, *b, *c;
static size_t length;
static struct node *position;
static uint64_t steps, nodes, random_state;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void map_memory(void)
{
	char *mapped = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		fail("mmap");
	memory = (char *)(((uintptr_t)mapped + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	madvise(mapped, size + HUGE_PAGE, MADV_HUGEPAGE);
	memset(memory, 0, size);
}

static void divide(int arrays)
{
	length = size / arrays / CHUNK * CHUNK / sizeof(double);
	a = (double *)memory;
	b = a + length;
	c = arrays == 3 ? b + length : NULL;
	for (size_t i = 0; i < length; i++) {
		a[i] = -1;
		b[i] = i;
		if (c)
			c[i] = 2.0 * i;
	}
}

/* Without the attribute, compilers replace the loop by a call of memcpy. */
__attribute__((optimize("no-tree-loop-distribute-patterns")))
static void copy_chunk(double *restrict x, const double *restrict y)
{
	for (size_t i = 0; i < CHUNK / sizeof(double); i++)
		x[i] = y[i];
}

static void copy(long n)
{
	while (n--) {
		copy_chunk(a + at, b + at);
		at += CHUNK / sizeof(double);
		if (at == length)
			at = 0;
	}
}

static void copy_by_library(long n)
{
	while (n--) {
		memcpy(a + at, b + at, CHUNK);
		at += CHUNK / sizeof(double);
		if (at == length)
			at = 0;
	}
}

static void triad_chunk(double *restrict x, const double *restrict y, const double *restrict z)
{
	for (size_t i = 0; i < CHUNK / sizeof(double); i++)
		x[i] = y[i] + 3.0 * z[i];
}

static void triad(long n)
{
	while (n--) {
		triad_chunk(a + at, b + at, c + at);
		at += CHUNK / sizeof(double);
		if (at == length)
			at = 0;
	}
}

static void link_nodes(void)
{
	struct node *all = (struct node *)memory;
	nodes = size / LINE;
	uint32_t *order = malloc(nodes * sizeof *order);
	if (!order)
		fail("malloc");
	for (uint64_t i = 0; i < nodes; i++)
		order[i] = i;
	for (uint64_t i = nodes - 1; i > 0; i--) {
		random_state ^= random_state << 13;
		random_state ^= random_state >> 7;
		random_state ^= random_state << 17;
		uint64_t k = random_state % (i + 1);
		uint32_t other = order[i];
		order[i] = order[k];
		order[k] = other;
	}
	for (uint64_t k = 0; k < nodes; k++) {
		all[order[k]].next = &all[order[(k + 1) % nodes]];
		all[order[k]].ordinal = k;
	}
	position = &all[order[0]];
	free(order);
}

static void chase(long n)
{
	struct node *p = position;
	for (long i = 0; i < n; i++)
		p = p->next;
	position = p;
	steps += n;
	if (p->ordinal != steps % nodes) {
		fprintf(stderr, "the chain did not lead where it has to\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[2]), &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("sched_setaffinity");
	size = strtoul(argv[3], NULL, 10);
	random_state = strtoull(argv[5], NULL, 10);
	map_memory();
	void (*loop)(long) = copy;
	double counts = 2.0 * CHUNK;
	if (!strcmp(argv[1], "copy")) {
		divide(2);
	} else if (!strcmp(argv[1], "memcpy")) {
		divide(2);
		loop = copy_by_library;
	} else if (!strcmp(argv[1], "triad")) {
		divide(3);
		loop = triad;
		counts = 3.0 * CHUNK;
	} else {
		link_nodes();
		loop = chase;
		counts = 1;
	}
	long batch = 1;
	double begin = now(), from, to, start = 0, operations = 0;
	double end = begin + 0.1 + atof(argv[4]);
	for (from = begin; from < end; from = to) {
		loop(batch);
		to = now();
		if (from < begin + 0.1) {
			double want = batch * 1e-3 / (to - from);
			batch = want < 1 ? 1 : want > 10.0 * batch ? 10 * batch : (long)want;
			continue;
		}
		if (start == 0)
			start = from;
		operations += batch;
	}
	double rate = operations * counts / (from - start);
	printf("%.9g\n", loop == chase ? 1 / rate : rate);
	return 0;
}
