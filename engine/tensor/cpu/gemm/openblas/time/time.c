/* Times one product of dense matrices by OpenBLAS, which it loads by name, so that
   neither headers nor a link library are needed. Row-major, without gaps.
   Arguments: library, m, n, k, lda, ldb, transpose a, transpose b, threads, seconds.
   Prints the median of the seconds that a product took. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*product)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *x, const void *y) {
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static float *matrix(size_t n) {
	float *m = aligned_alloc(64, (n * 4 + 63) / 64 * 64);
	if (!m) {
		fprintf(stderr, "not enough memory for a matrix of %zu numbers\n", n);
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		m[i] = (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
	return m;
}

enum { MOST = 10000 };

int main(int argc, char **argv) {
	if (argc != 11) {
		fprintf(stderr, "10 arguments are wanted\n");
		return 2;
	}
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	product multiply = (product)dlsym(library, "cblas_sgemm");
	void (*threads)(int) = (void (*)(int))dlsym(library, "openblas_set_num_threads");
	if (!multiply || !threads) {
		fprintf(stderr, "%s has no cblas_sgemm\n", argv[1]);
		return 1;
	}
	int m = atoi(argv[2]), n = atoi(argv[3]), k = atoi(argv[4]), lda = atoi(argv[5]), ldb = atoi(argv[6]);
	int ta = atoi(argv[7]) ? 112 : 111, tb = atoi(argv[8]) ? 112 : 111;
	threads(atoi(argv[9]));
	double enough = atof(argv[10]);

	float *a = matrix((size_t)m * k), *b = matrix((size_t)n * k), *c = matrix((size_t)m * n);
	static double took[MOST];
	multiply(101, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n);
	int rounds = 0;
	for (double start = now(); rounds < MOST && (rounds < 3 || now() - start < enough); rounds++) {
		double before = now();
		multiply(101, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n);
		took[rounds] = now() - before;
	}
	qsort(took, rounds, sizeof *took, ascending);
	printf("%.9f\n", took[rounds / 2]);
	return 0;
}
