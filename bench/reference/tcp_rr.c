/*
 * A blocking TCP ping-pong, the reference that the native generator's tcp-rr is measured against.
 *
 *   tcp_rr server ADDRESS PORT CPU                     answers one connection, then ends
 *   tcp_rr client ADDRESS PORT CPU WARMUP_MS WINDOW_MS prints "RATE P50_NS P99_NS"
 *
 * One byte each way, TCP_NODELAY, one clock reading per transaction, as in the generator. Every
 * latency is kept in an array that is allocated and touched before the run, and sorted after it.
 *
 * With SECOND_THREAD the process has a thread that sleeps: system calls then count references to the
 * files that both threads share, as those of any program with threads do.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#ifdef SECOND_THREAD
#include <pthread.h>
#endif
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

static void nodelay(int fd) {
	int one = 1;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("TCP_NODELAY");
}

static int compare(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static void serve(struct sockaddr_in *a) {
	int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
	char b;
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(l, (struct sockaddr *)a, sizeof *a) || listen(l, 16)) die("listen");
	int fd = accept(l, NULL, NULL);
	if (fd < 0) die("accept");
	nodelay(fd);
	while (recv(fd, &b, 1, 0) == 1)
		if (send(fd, &b, 1, MSG_NOSIGNAL) != 1) break;
}

static int dial(struct sockaddr_in *a) {
	for (int i = 0; i < 4000; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)a, sizeof *a) == 0) return fd;
		close(fd);
		usleep(1000);
	}
	die("connect");
	return -1;
}

static void ask(struct sockaddr_in *a, int64_t warmup, int64_t window) {
	size_t max = window / 1000, n = 0;
	uint32_t *latency = malloc(max * sizeof *latency);
	char b = 0;
	memset(latency, 0, max * sizeof *latency);
	int fd = dial(a);
	nodelay(fd);
	int64_t start = now(), begin = start;
	for (;;) {
		if (send(fd, &b, 1, MSG_NOSIGNAL) != 1 || recv(fd, &b, 1, 0) != 1) die("transaction");
		int64_t end = now();
		if (end - start >= warmup + window) break;
		if (end - start >= warmup && n < max) latency[n++] = end - begin;
		begin = end;
	}
	if (n == 0) { fprintf(stderr, "no transaction in the window\n"); exit(1); }
	qsort(latency, n, sizeof *latency, compare);
	printf("%.1f %u %u\n", n * 1e9 / window, latency[n / 2], latency[n * 99 / 100]);
}

#ifdef SECOND_THREAD
static void *rest(void *unused) {
	for (;;) pause();
	return unused;
}
#endif

int main(int argc, char **argv) {
#ifdef SECOND_THREAD
	pthread_t second;
	if (pthread_create(&second, NULL, rest, NULL)) die("pthread_create");
#endif
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
