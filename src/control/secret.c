/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/error.h"

static const char no_secret_key[] = "shunt: no secret";

static shunt_status_t bad_file(const char *file, const char *why)
{
    return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                       "SHUNT_SECRET_FILE %.200s %s", file, why);
}

static shunt_status_t check_file(const char *file, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return bad_file(file, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return bad_file(file, "is not a regular file");
    if ((st.st_uid != geteuid()) && (st.st_uid != 0))
        return bad_file(file, "belongs to another user: make a copy of your "
                              "own");
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return bad_file(file, "is open to others: chmod 600 it");
    if (st.st_size > SHUNT_SECRET_MAX)
        return bad_file(file, "is longer than 4096 bytes");
    return SHUNT_OK;
}

static shunt_status_t read_file(const char *file, int fd,
                                shunt_secret_t *secret)
{
    ssize_t n;

    secret->length = 0;
    while (secret->length < sizeof(secret->bytes)) {
        n = read(fd, secret->bytes + secret->length,
                 sizeof(secret->bytes) - secret->length);
        if ((n < 0) && (errno == EINTR))
            continue;
        if (n < 0)
            return bad_file(file, strerror(errno));
        if (n == 0)
            break;
        secret->length += (size_t)n;
    }
    while ((secret->length > 0) &&
           ((secret->bytes[secret->length - 1] == '\n') ||
            (secret->bytes[secret->length - 1] == '\r')))
        secret->length--;
    if (secret->length == 0)
        return bad_file(file, "is empty");
    secret->set = true;
    return SHUNT_OK;
}

static shunt_status_t load_file(const char *file, shunt_secret_t *secret)
{
    shunt_status_t status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return bad_file(file, strerror(errno));
    status = check_file(file, fd);
    if (status == SHUNT_OK)
        status = read_file(file, fd, secret);
    close(fd);
    return status;
}

shunt_status_t shunt_secret_load(const char *file, const char *text,
                                 shunt_secret_t *secret)
{
    memset(secret, 0, sizeof(*secret));
    if ((file[0] != '\0') && (text[0] != '\0'))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "both SHUNT_SECRET_FILE and SHUNT_SECRET are set: "
                           "unset one");
    if (file[0] != '\0')
        return load_file(file, secret);
    if (strlen(text) > SHUNT_SECRET_MAX)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_SECRET is longer than 4096 bytes");
    secret->length = strlen(text);
    secret->set    = secret->length > 0;
    memcpy(secret->bytes, text, secret->length);
    return SHUNT_OK;
}

void shunt_secret_wipe(shunt_secret_t *secret)
{
    OPENSSL_cleanse(secret, sizeof(*secret));
}

shunt_status_t shunt_secret_mac(const shunt_secret_t *secret,
                                const uint8_t *message, size_t length,
                                uint8_t mac[SHUNT_SECRET_MAC])
{
    const void *key = secret->set ? (const void *)secret->bytes : no_secret_key;
    size_t key_length = secret->set ? secret->length : sizeof(no_secret_key);
    unsigned got      = 0;

    if ((HMAC(EVP_sha256(), key, (int)key_length, message, length, mac, &got) ==
         NULL) ||
        (got != SHUNT_SECRET_MAC))
        return shunt_error(SHUNT_ERR_MEMORY, "HMAC-SHA256 failed in libcrypto");
    return SHUNT_OK;
}

bool shunt_secret_equal(const uint8_t a[SHUNT_SECRET_MAC],
                        const uint8_t b[SHUNT_SECRET_MAC])
{
    return CRYPTO_memcmp(a, b, SHUNT_SECRET_MAC) == 0;
}
