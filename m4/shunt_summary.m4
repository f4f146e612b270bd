dnl SPDX-License-Identifier: BSD-3-Clause
dnl SHUNT_SUMMARY: what will be built, at the end of configure.
AC_DEFUN([SHUNT_SUMMARY], [
    AC_MSG_NOTICE([Shunt $PACKAGE_VERSION:
    prefix             $prefix
    compiler           $CC $CFLAGS
    warnings as errors $shunt_devel
    data log lines     $shunt_debug
    sanitizer          $shunt_sanitizer
    export map         $shunt_map
    UCX bridge         $shunt_have_ucx ${shunt_version_ucx}${shunt_why_ucx}
    libfabric bridge   $shunt_have_ofi ${shunt_version_ofi}${shunt_why_ofi}
    hwloc topology     $shunt_have_hwloc ${shunt_version_hwloc}${shunt_why_hwloc}
    unit tests         $shunt_have_cmocka ${shunt_version_cmocka}${shunt_why_cmocka}])
    AS_IF([test "x$shunt_have_ucx$shunt_have_ofi" = xnono],
        [AC_MSG_WARN([no UCX bridge ($shunt_why_ucx), no libfabric bridge ($shunt_why_ofi): transfers between hosts are not possible])])
    AS_IF([test "x$shunt_have_cmocka" = xno],
        [AC_MSG_WARN([NO UNIT TESTS ($shunt_why_cmocka): "make check" proves little])])
])
