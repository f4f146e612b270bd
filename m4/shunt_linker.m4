dnl SPDX-License-Identifier: BSD-3-Clause
dnl SHUNT_LINKER: does the linker take an export map? GNU ld and lld do. If
dnl not, libtool exports by name, without symbol versions.
AC_DEFUN([SHUNT_LINKER], [
    AC_MSG_CHECKING([whether the linker takes --version-script])
    echo 'SHUNT_TEST { global: main; local: *; };' > conftest.map
    shunt_save_ldflags=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [shunt_map=yes], [shunt_map=no])
    LDFLAGS=$shunt_save_ldflags
    rm -f conftest.map
    AC_MSG_RESULT([$shunt_map])
    AM_CONDITIONAL([VERSION_SCRIPT], [test "x$shunt_map" = xyes])

    dnl A sanitizer's runtime is found at load time: only plain builds can
    dnl insist that every symbol is known.
    AC_MSG_CHECKING([whether the linker takes -z defs])
    LDFLAGS="$LDFLAGS -Wl,-z,defs"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [shunt_defs=yes], [shunt_defs=no])
    LDFLAGS=$shunt_save_ldflags
    AC_MSG_RESULT([$shunt_defs])
    AS_IF([test "x$shunt_defs$shunt_sanitizer" = xyesno],
        [SHUNT_DEFS_LDFLAGS=-Wl,-z,defs])
    AC_SUBST([SHUNT_DEFS_LDFLAGS])
])
