# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
meta_tests =
meta_tests += %D%/test_base64
meta_tests += %D%/test_descriptor
meta_tests += %D%/test_store

check_PROGRAMS += $(meta_tests)
TESTS          += $(meta_tests)

meta_test_libs = libmeta.la libbase.la $(CMOCKA_LIBS) $(JANSSON_LIBS) \
	$(CRYPTO_LIBS)

%C%_test_base64_SOURCES  = %D%/test_base64.c
%C%_test_base64_CPPFLAGS = $(test_cppflags)
%C%_test_base64_LDADD    = $(meta_test_libs)
%C%_test_descriptor_SOURCES  = %D%/test_descriptor.c
%C%_test_descriptor_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
%C%_test_descriptor_LDADD    = $(meta_test_libs)
%C%_test_store_SOURCES  = %D%/test_store.c
%C%_test_store_CPPFLAGS = $(test_cppflags)
%C%_test_store_LDADD    = $(meta_test_libs)
endif
