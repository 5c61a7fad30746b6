/*
 * Connect, request, response, close: the reference that the native generator's tcp-crr is measured
 * against.
 *
 *   tcp_crr server ADDRESS PORT CPU                     answers until it is killed
 *   tcp_crr client ADDRESS PORT CPU WARMUP_MS WINDOW_MS prints "RATE P50_NS P99_NS"
 *
 * Closing is the same as in the generator: no SO_LINGER, the server closes after its response, the
 * client reads the end and closes too, so that TIME_WAIT is the server's. What a request carries
 * differs by the generator's 24 bytes of token.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(1); }

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin(int cpu) {
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static int compare(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static void serve(struct sockaddr_in *a) {
	int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
	char b;
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(l, (struct sockaddr *)a, sizeof *a) || listen(l, 4096)) die("listen");
	for (;;) {
		int fd = accept(l, NULL, NULL);
		if (fd < 0) die("accept");
		if (recv(fd, &b, 1, 0) == 1) send(fd, &b, 1, MSG_NOSIGNAL);
		close(fd);
	}
}

/* one cycle; 0 or an errno */
static int cycle(struct sockaddr_in *a) {
	char b = 0;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0) return errno;
	if (connect(fd, (struct sockaddr *)a, sizeof *a) || send(fd, &b, 1, MSG_NOSIGNAL) != 1 ||
	    recv(fd, &b, 1, 0) != 1 || recv(fd, &b, 1, 0) != 0) {
		int e = errno ? errno : EPROTO;
		close(fd);
		return e;
	}
	close(fd);
	return 0;
}

static void ask(struct sockaddr_in *a, int64_t warmup, int64_t window) {
	size_t max = window / 1000, n = 0;
	uint32_t *latency = malloc(max * sizeof *latency);
	memset(latency, 0, max * sizeof *latency);
	for (int i = 0; i < 4000 && cycle(a) == ECONNREFUSED; i++) usleep(1000);
	int64_t start = now(), begin = start;
	for (;;) {
		errno = cycle(a);
		if (errno) die("cycle");
		int64_t end = now();
		if (end - start >= warmup + window) break;
		if (end - start >= warmup && n < max) latency[n++] = end - begin;
		begin = end;
	}
	if (n == 0) { fprintf(stderr, "no cycle in the window\n"); exit(1); }
	qsort(latency, n, sizeof *latency, compare);
	printf("%.1f %u %u\n", n * 1e9 / window, latency[n / 2], latency[n * 99 / 100]);
}

int main(int argc, char **argv) {
	struct sockaddr_in a = {.sin_family = AF_INET};
	if (argc < 5 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1) return 2;
	a.sin_port = htons(atoi(argv[3]));
	pin(atoi(argv[4]));
	if (!strcmp(argv[1], "server"))
		serve(&a);
	else if (argc == 7)
		ask(&a, atoll(argv[5]) * 1000000, atoll(argv[6]) * 1000000);
	else
		return 2;
	return 0;
}
