/* Make one write fail: preloaded, it counts what writes below a folder, in all processes together, and lets one fail,
   or kills the process group before it.

   Closing files and renaming them count, too, and opening them for writing, and deleting. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static volatile long *count;
static long fail_at;
static int error_of;
static char prefix[PATH_MAX];

/* Count from now on, and let the write with a number fail, or, if the error is 0, be the last of all; processes that are forked from this one share the count. */
void faults_begin(const char *folder, long at, int error) {
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *count = 0;
    fail_at = at;
    error_of = error;
    snprintf(prefix, sizeof prefix, "%s/", folder);
}

long faults_count(void) { return count ? *count : 0; }

static int fails(const char *path) {
    char whole[2 * PATH_MAX], folder[PATH_MAX];
    if (!count) return 0;
    if (path[0] != '/' && getcwd(folder, sizeof folder)) {
        snprintf(whole, sizeof whole, "%s/%s", folder, path);
        path = whole;
    }
    if (strncmp(path, prefix, strlen(prefix))) return 0;
    if (__sync_add_and_fetch(count, 1) != fail_at) return 0;
    if (!error_of) {
        kill(0, SIGKILL);
        pause();
    }
    errno = error_of;
    return 1;
}

static int file_fails(int file) {
    char link[64], path[PATH_MAX];
    if (!count) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 1) return 0;
    path[length] = 0;
    /* Closing what was only read is no write. */
    return (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY && fails(path);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define MODE(flags) int mode = 0; va_list list; va_start(list, flags); \
    if (flags & (O_CREAT | O_TMPFILE)) { mode = va_arg(list, int); } va_end(list)
#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || (flags) & O_CREAT)

int open(const char *path, int flags, ...) {
    REAL(open); MODE(flags);
    return WRITES(flags) && fails(path) ? -1 : real(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    REAL(open64); MODE(flags);
    return WRITES(flags) && fails(path) ? -1 : real(path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
    REAL(openat); MODE(flags);
    return WRITES(flags) && fails(path) ? -1 : real(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    REAL(openat64); MODE(flags);
    return WRITES(flags) && fails(path) ? -1 : real(at, path, flags, mode);
}
ssize_t write(int file, const void *bytes, size_t size) {
    REAL(write);
    return file_fails(file) ? -1 : real(file, bytes, size);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    REAL(pwrite64);
    return file_fails(file) ? -1 : real(file, bytes, size, at);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t size);
ssize_t sendfile64(int out, int in, off64_t *at, size_t size) {
    REAL(sendfile64);
    return file_fails(out) ? -1 : real(out, in, at, size);
}
ssize_t sendfile(int out, int in, off_t *at, size_t size);
ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    REAL(sendfile);
    return file_fails(out) ? -1 : real(out, in, at, size);
}
int ftruncate64(int file, off64_t size) {
    REAL(ftruncate64);
    return file_fails(file) ? -1 : real(file, size);
}
int fsync(int file) {
    REAL(fsync);
    return file_fails(file) ? -1 : real(file);
}
int close(int file) {
    REAL(close);
    int failed = file_fails(file), error = errno, result = real(file);
    errno = failed ? error : errno;
    return failed ? -1 : result;
}
int rename(const char *from, const char *to) {
    REAL(rename);
    return fails(to) ? -1 : real(from, to);
}
int renameat2(int in, const char *from, int out, const char *to, unsigned flags);
int renameat2(int in, const char *from, int out, const char *to, unsigned flags) {
    REAL(renameat2);
    return fails(to) ? -1 : real(in, from, out, to, flags);
}
int renameat(int in, const char *from, int out, const char *to) {
    REAL(renameat);
    return fails(to) ? -1 : real(in, from, out, to);
}
int unlink(const char *path) {
    REAL(unlink);
    return fails(path) ? -1 : real(path);
}
int link(const char *from, const char *to) {
    REAL(link);
    return fails(to) ? -1 : real(from, to);
}
int linkat(int in, const char *from, int out, const char *to, int flags) {
    REAL(linkat);
    return fails(to) ? -1 : real(in, from, out, to, flags);
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return fails(path) ? -1 : real(path, mode);
}
