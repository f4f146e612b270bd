dnl SPDX-License-Identifier: BSD-3-Clause
dnl SHUNT_LIBTOOL_VERSION: libtool's current:revision:age, from the one version.
dnl MAJOR.MINOR.PATCH becomes libshunt.so.MAJOR.MINOR.PATCH, soname .MAJOR:
dnl a minor release only adds to the interface, a major one may break it.
AC_DEFUN([SHUNT_LIBTOOL_VERSION], [
    shunt_major=`echo "$PACKAGE_VERSION" | cut -d. -f1`
    shunt_minor=`echo "$PACKAGE_VERSION" | cut -d. -f2`
    shunt_patch=`echo "$PACKAGE_VERSION" | cut -d. -f3`
    shunt_current=`expr $shunt_major + $shunt_minor`
    SHUNT_VERSION_INFO=$shunt_current:$shunt_patch:$shunt_minor
    AC_SUBST([SHUNT_VERSION_INFO])
])
