dnl SPDX-License-Identifier: BSD-3-Clause
dnl SHUNT_TRY_CFLAG(FLAG): append FLAG to SHUNT_CFLAGS if the compiler has it.
AC_DEFUN([SHUNT_TRY_CFLAG], [
    AC_MSG_CHECKING([whether $CC accepts $1])
    shunt_save_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])
         SHUNT_CFLAGS="$SHUNT_CFLAGS $1"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$shunt_save_cflags
])

dnl SHUNT_DEVEL: warnings always, as errors with --enable-devel (the default
dnl in a git checkout, so that a release builds with tomorrow's compiler).
AC_DEFUN([SHUNT_DEVEL], [
    AC_ARG_ENABLE([devel],
        [AS_HELP_STRING([--enable-devel],
            [warnings are errors (default: in a git checkout)])],
        [shunt_devel=$enableval],
        [AS_IF([test -e "$srcdir/.git"], [shunt_devel=yes], [shunt_devel=no])])
    SHUNT_CFLAGS=-fvisibility=hidden
    m4_foreach_w([shunt_flag],
        [-Wall -Wextra -Wshadow -Wundef -Wmissing-prototypes
         -Wstrict-prototypes -Wvla -Wpointer-arith
         -fno-semantic-interposition],
        [SHUNT_TRY_CFLAG(shunt_flag)])
    AS_IF([test "x$shunt_devel" = xyes], [SHUNT_TRY_CFLAG([-Werror])])
    AC_SUBST([SHUNT_CFLAGS])
])

dnl SHUNT_DEBUG: --enable-debug compiles the per-operation log lines in.
AC_DEFUN([SHUNT_DEBUG], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug],
            [compile in log lines per operation (level "data")])],
        [shunt_debug=$enableval], [shunt_debug=no])
    AS_IF([test "x$shunt_debug" = xyes],
        [AC_DEFINE([SHUNT_LOG_CEILING], [5],
            [Log lines above this level are not compiled])])
])
