/*
 * Lets a native module that is compiled on a newer Linux load on glibc 2.28 (RHEL 8). The compiler includes it before
 * every source file (build-native in package.mjs, which refuses a module that needs a later symbol).
 */
#ifndef _GNU_SOURCE
#error "compile with -D_GNU_SOURCE: this file fixes the feature macros"
#endif
#include <sys/stat.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#define STAT_VERSION 0
#else
#error "no symbol versions for this processor"
#endif

/* Later releases of glibc give these a new version; the old one is still there, also at run time. */
#define BIND(name) __asm__(".symver " #name "," #name "@" OLDEST)
BIND(dlclose);
BIND(dlerror);
BIND(dlopen);
BIND(dlsym);
BIND(exp);
BIND(log);
BIND(log2);
BIND(pow);
BIND(pthread_create);
BIND(pthread_join);
BIND(pthread_mutex_trylock);
BIND(pthread_mutexattr_destroy);
BIND(pthread_mutexattr_init);
BIND(pthread_mutexattr_settype);
BIND(pthread_once);

/* Functions since glibc 2.33. Before, the header made each a call of the function with a version. */
#define LOCAL __attribute__((weak, visibility("hidden")))
#ifdef __cplusplus
#define UNWIND noexcept
extern "C" {
#else
#define UNWIND
#endif
extern int __xstat64(int version, const char *path, struct stat64 *status);
extern int __lxstat64(int version, const char *path, struct stat64 *status);
extern int __fxstat64(int version, int descriptor, struct stat64 *status);
BIND(__xstat64);
BIND(__lxstat64);
BIND(__fxstat64);
LOCAL int stat64(const char *path, struct stat64 *status) UNWIND { return __xstat64(STAT_VERSION, path, status); }
LOCAL int lstat64(const char *path, struct stat64 *status) UNWIND { return __lxstat64(STAT_VERSION, path, status); }
LOCAL int fstat64(int descriptor, struct stat64 *status) UNWIND { return __fxstat64(STAT_VERSION, descriptor, status); }
#ifdef __cplusplus
}

/* Since the libstdc++ of GCC 11. These modules are compiled without exceptions. */
namespace std {
LOCAL void __throw_bad_array_new_length() { __builtin_abort(); }
}
#endif
