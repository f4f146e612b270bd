/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control channel in a process of its own, for tests that stop and kill it.
 *   proc_main PORT
 * prints its address and incarnation, then obeys lines:
 *   poll            all notifications that are there: "text,text,..."
 *   wait N          the same when N have come since the start
 *   fetch ADDRESS   the status of a fetch and its sentence
 *   fork            a child that sleeps and holds nothing; its pid
 * and ends when its input ends.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "control/ctl.h"

static void print_polled(ctl_t *ctl)
{
    char text[256];

    while (*ctl_poll(ctl, text) != '\0')
        printf("%s,", text);
    printf("\n");
}

static void wait_for(ctl_t *ctl, unsigned count)
{
    while (atomic_load(&ctl->notified) < count)
        ctl_pause(1);
    print_polled(ctl);
}

static void fetch(ctl_t *ctl, const char *address)
{
    shunt_status_t status = ctl_fetch(ctl, address, 5000);

    printf("%s %s\n", shunt_status_name(status),
           status == SHUNT_OK ? "" : shunt_last_error());
}

static void fork_sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            pause();
    }
    printf("%d\n", (int)pid);
}

static void obey(ctl_t *ctl, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "poll") == 0)
        print_polled(ctl);
    else if (strncmp(line, "wait ", 5) == 0)
        wait_for(ctl, number_of(line + 5));
    else if (strncmp(line, "fetch ", 6) == 0)
        fetch(ctl, line + 6);
    else if (strcmp(line, "fork") == 0)
        fork_sleeper();
    else
        printf("what?\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[512], hex[33];
    ctl_t ctl;
    int i;

    if ((argc != 2) ||
        (ctl_try_open(&ctl, "127.0.0.1", (uint16_t)number_of(argv[1])) !=
         SHUNT_OK)) {
        fprintf(stderr, "proc_main: %s\n", shunt_last_error());
        return 1;
    }
    pthread_atfork(NULL, NULL, shunt_control_atfork_child);
    for (i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", ctl.incarnation.bytes[i]);
    printf("%s %s\n", ctl.address, hex);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL)
        obey(&ctl, line);
    ctl_close(&ctl);
    return 0;
}
