dnl SPDX-License-Identifier: BSD-3-Clause

dnl SHUNT_NEED_LIB(VAR, PKG-CONFIG MODULES, WHAT FOR, DEBIAN)
dnl A library that nothing works without: sets VAR_CFLAGS and VAR_LIBS.
AC_DEFUN([SHUNT_NEED_LIB], [
    PKG_CHECK_MODULES([$1], [$2], [],
        [AC_MSG_ERROR([$2 was not found: it is needed for $3 dnl
(Debian: apt-get install $4)])])
])

dnl SHUNT_WITH_LIB(NAME, PKG-CONFIG MODULE, MIN VERSION, HEADER, FUNCTION,
dnl                LIBS WITHOUT PKG-CONFIG, WHAT FOR, DEBIAN)
dnl --with-NAME=auto|yes|no|DIR. "auto" may leave it out; "yes" and DIR stop
dnl configure when it is not there. Defines HAVE_NAME to 0 or 1, the
dnl conditional HAVE_NAME, NAME_CFLAGS, NAME_LIBS and shunt_have_NAME ("yes"
dnl with the version, or "no" with the reason, for the summary).
AC_DEFUN([SHUNT_WITH_LIB], [
    m4_pushdef([UP], m4_toupper([$1]))
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=auto|yes|no|DIR],
            [$7 (default: auto)])],
        [], [with_$1=auto])
    shunt_have_$1=no
    shunt_why_$1=
    UP[]_CFLAGS=
    UP[]_LIBS=
    AC_MSG_CHECKING([for $1 >= $3])
    AS_CASE([$with_$1],
        [no], [shunt_why_$1="--without-$1"],
        [auto|yes], [SHUNT_LIB_PKG([$1], [$2], [$3], [$PKG_CONFIG_PATH])],
        [SHUNT_LIB_DIR([$1], [$2], [$3], [$4], [$6])])
    AS_IF([test "x$shunt_have_$1" = xyes],
        [SHUNT_LIB_LINK([$1], [$4], [$5])])
    AC_MSG_RESULT([$shunt_have_$1 ${shunt_version_$1}${shunt_why_$1}])
    AS_IF([test "x$shunt_have_$1" = xno],
        [UP[]_CFLAGS=
         UP[]_LIBS=
         AS_CASE([$with_$1], [no|auto], [],
            [AC_MSG_ERROR([--with-$1=$with_$1 was given but $1 cannot be dnl
used: $shunt_why_$1 (Debian: apt-get install $8)])])])
    AS_IF([test "x$shunt_have_$1" = xyes],
        [AC_DEFINE([HAVE_]UP, [1], [Built with $1: 0 or 1])],
        [AC_DEFINE([HAVE_]UP, [0], [Built with $1: 0 or 1])])
    AC_DEFINE_UNQUOTED([SHUNT_BUILD_]UP,
        ["${shunt_version_$1:-no: $shunt_why_$1}"],
        [Version of $1 at build time, or why it was left out])
    AM_CONDITIONAL([HAVE_]UP, [test "x$shunt_have_$1" = xyes])
    AC_SUBST(UP[_CFLAGS])
    AC_SUBST(UP[_LIBS])
    m4_popdef([UP])
])

dnl SHUNT_LIB_PKG(NAME, MODULE, MIN VERSION, PKG_CONFIG_PATH)
AC_DEFUN([SHUNT_LIB_PKG], [
    AS_IF([PKG_CONFIG_PATH="$4" $PKG_CONFIG --exists "$2 >= $3"],
        [shunt_have_$1=yes
         shunt_version_$1=`PKG_CONFIG_PATH="$4" $PKG_CONFIG --modversion $2`
         UP[]_CFLAGS=`PKG_CONFIG_PATH="$4" $PKG_CONFIG --cflags $2`
         UP[]_LIBS=`PKG_CONFIG_PATH="$4" $PKG_CONFIG --libs $2`],
        [shunt_why_$1="pkg-config finds no $2 >= $3"])
])

dnl SHUNT_LIB_DIR(NAME, MODULE, MIN VERSION, HEADER, LIBS): by the .pc file
dnl below DIR, never another one; without one by header and library.
AC_DEFUN([SHUNT_LIB_DIR], [
    shunt_pc=
    shunt_lib=
    for shunt_dir in "$with_$1"/lib "$with_$1"/lib64 "$with_$1"/lib/*-linux-gnu
    do
        AS_IF([test -f "$shunt_dir/pkgconfig/$2.pc"],
            [shunt_pc=$shunt_dir/pkgconfig])
        AS_IF([test -d "$shunt_dir"], [shunt_lib=${shunt_lib:-$shunt_dir}])
    done
    AS_IF([test "x$shunt_pc" != x],
        [SHUNT_LIB_PKG([$1], [$2], [$3],
            [$shunt_pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}])
         UP[]_LIBS="$UP[]_LIBS -R${shunt_pc%/pkgconfig}"],
        [test -f "$with_$1/include/$4" && test "x$shunt_lib" != x],
        [shunt_have_$1=yes
         shunt_version_$1="of unknown version in $with_$1"
         UP[]_CFLAGS="-I$with_$1/include"
         UP[]_LIBS="-L$shunt_lib -R$shunt_lib $5"],
        [shunt_why_$1="neither $2.pc nor include/$4 is below $with_$1"])
])

dnl SHUNT_LIB_LINK(NAME, HEADER, FUNCTION): what was found also works.
AC_DEFUN([SHUNT_LIB_LINK], [
    shunt_save_cppflags=$CPPFLAGS
    shunt_save_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $UP[]_CFLAGS"
    dnl -R is libtool's spelling
    LIBS="`echo "$UP[]_LIBS" | sed 's/-R/-Wl,-rpath,/g'` $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <$2>],
            [return (void *)&$3 == NULL;])],
        [], [shunt_have_$1=no
             shunt_version_$1=
             shunt_why_$1="a program with $2 and $3 does not link"])
    CPPFLAGS=$shunt_save_cppflags
    LIBS=$shunt_save_libs
])
