dnl SPDX-License-Identifier: BSD-3-Clause
dnl SHUNT_SANITIZER: --enable-sanitizer=LIST, handed to -fsanitize as it is.
AC_DEFUN([SHUNT_SANITIZER], [
    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=LIST],
            [build with "address,undefined" or "thread"])],
        [shunt_sanitizer=$enableval], [shunt_sanitizer=no])
    AS_CASE([$shunt_sanitizer],
        [no], [],
        [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list: dnl
address,undefined or thread])],
        [SHUNT_SANITIZER_FLAGS])
    AM_CONDITIONAL([SANITIZER], [test "x$shunt_sanitizer" != xno])
    AC_DEFINE_UNQUOTED([SHUNT_BUILD_SANITIZER], ["$shunt_sanitizer"],
        [What the library was instrumented with])
    AC_SUBST([SHUNT_LDFLAGS])
    AC_SUBST([shunt_sanitizer])
])

AC_DEFUN([SHUNT_SANITIZER_FLAGS], [
    shunt_flags="-fsanitize=$shunt_sanitizer -fno-omit-frame-pointer"
    AS_CASE([$shunt_sanitizer], [*undefined*],
        [shunt_flags="$shunt_flags -fno-sanitize-recover=undefined"],
        dnl gcc warns that it knows no order made by fences alone. Ours order
        dnl two atomics of two threads (store, fence, load), and hand no data.
        [thread], [shunt_flags="$shunt_flags -Wno-tsan"])
    AC_MSG_CHECKING([whether programs run with -fsanitize=$shunt_sanitizer])
    shunt_save_cflags=$CFLAGS
    CFLAGS="$CFLAGS $shunt_flags"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--enable-sanitizer=$shunt_sanitizer: the compiler dnl
cannot build or run such programs, see config.log])],
        [AC_MSG_RESULT([not known, cross compiling])])
    CFLAGS=$shunt_save_cflags
    SHUNT_CFLAGS="$SHUNT_CFLAGS $shunt_flags"
    SHUNT_LDFLAGS="$SHUNT_LDFLAGS $shunt_flags"
])
