/* libpostroom: see postroom.h. Calls are written to the session of this program, answers are copied. */
#define _GNU_SOURCE
#include "postroom.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_MAX (256 * 1024)
#define SENT_MAX 10000 /* of an area: more than a text length can say */
#define PAUSE 100000 /* microseconds */
#define INPUT_SIZE 87
#define IO_SIZE 33
#define OUTPUT_HEAD 10
#define DESTINATION_SIZE 13

static int session = -1;
static pid_t process = -1, owner = -1;
static int registered = 0;
static unsigned char frame[FRAME_MAX];
static size_t used;

static void put_number(int32_t number) {
    uint32_t n = (uint32_t)number;
    frame[used++] = n >> 24, frame[used++] = n >> 16, frame[used++] = n >> 8, frame[used++] = n;
}

static uint32_t number_at(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_field(const void *data, int size) {
    if (size < 0 || used + 4 + (size_t)size > FRAME_MAX) size = 0;
    put_number(size);
    if (size > 0) memcpy(frame + used, data, (size_t)size);
    used += (size_t)size;
}

static int write_all(const unsigned char *data, size_t size) {
    while (size > 0) {
        ssize_t done = send(session, data, size, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        data += done, size -= (size_t)done;
    }
    return 0;
}

/* Read one answer, which is all that comes: its size, then so many bytes; mostly at once. */
static int read_answer(void) {
    unsigned char size[4];
    size_t have = 0, whole = 4;
    struct iovec parts[2];
    while (have < whole) {
        ssize_t done;
        parts[0].iov_base = size + (have < 4 ? have : 4), parts[0].iov_len = have < 4 ? 4 - have : 0;
        parts[1].iov_base = frame + (have < 4 ? 0 : have - 4), parts[1].iov_len = FRAME_MAX - (have < 4 ? 0 : have - 4);
        done = readv(session, parts, 2);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        have += (size_t)done;
        if (have >= 4 && (used = number_at(size)) <= FRAME_MAX) whole = 4 + used;
        else if (have >= 4) return -1;
    }
    return used < 4 || have > whole ? -1 : 0;
}

static void drop_session(void) {
    if (session >= 0) close(session);
    if (process > 0) waitpid(process, NULL, 0);
    session = -1, process = -1;
}

static int exchange(void) {
    uint32_t size = (uint32_t)(used - 4);
    frame[0] = size >> 24, frame[1] = size >> 16, frame[2] = size >> 8, frame[3] = size;
    if (write_all(frame, used) < 0 || read_answer() < 0) return -1;
    return (int)(int32_t)number_at(frame);
}

static void at_end(int status, void *unused) {
    (void)unused;
    if (getpid() == owner) postroom_end(status == 0);
}

static void head(char verb, int a, int b, int c) {
    used = 4;
    frame[used++] = (unsigned char)verb;
    put_number(a), put_number(b), put_number(c);
}

static int start_process(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return -1;
    fflush(NULL);
    process = fork();
    if (process == 0) {
        const char *python = getenv("POSTROOM_PYTHON");
        int end = dup(pair[1]); /* without close-on-exec */
        char number[16];
        snprintf(number, sizeof number, "%d", end);
        setsid(); /* Ctrl-C ends the program; the session sees that and tidies up */
        if (python && *python) execl(python, python, "-m", "postroom", "cobol", "session", number, (char *)NULL);
        execlp("postroom", "postroom", "cobol", "session", number, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    session = pair[0];
    return process < 0 ? -1 : 0;
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    session = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return session < 0 ? -1 : connect(session, (struct sockaddr *)&address, sizeof address);
}

static const char *said(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

/* The server has another environment: it is told what counts here. The frame has the first call already. */
static int introduce(void) {
    unsigned char kept[FRAME_MAX];
    size_t size = used;
    int result;
    memcpy(kept, frame, used);
    head('B', 0, 0, 0);
    put_field(said("POSTROOM_ENCODING"), (int)strlen(said("POSTROOM_ENCODING")));
    put_field(said("POSTROOM_SOURCE"), (int)strlen(said("POSTROOM_SOURCE")));
    result = exchange();
    memcpy(frame, kept, size);
    used = size;
    return result;
}

static int begin(void) {
    const char *path = getenv("POSTROOM_SESSION");
    if (session >= 0 && owner == getpid()) return 0;
    if (session >= 0) close(session), session = -1; /* a fork has no share in the session of its parent */
    process = -1, owner = getpid();
    if (path && *path ? connect_to(path) < 0 || introduce() < 0 : start_process() < 0) {
        drop_session();
        usleep(PAUSE); /* a program that tries again and again leaves time for others */
        return -1;
    }
    if (!registered) on_exit(at_end, NULL), registered = 1;
    return 0;
}

static void fail(void *cd, int cd_size) {
    int at = cd_size == INPUT_SIZE ? 79 : cd_size == IO_SIZE ? 31 : 8;
    if (cd && cd_size >= at + 2) memcpy((char *)cd + at, "99", 2);
    fprintf(stderr, "postroom: there is no session; is postroom on the PATH, and is there a room?\n");
    drop_session();
}

/* Make the call that is in the frame, and copy its answer: the CD, and what was received. */
static int call(void *cd, int cd_size, void *area, int area_size) {
    size_t at = 4;
    int result = begin() < 0 ? -1 : exchange();
    void *places[2] = {cd, area};
    int sizes[2] = {cd_size, area_size};
    if (result < 0) {
        fail(cd, cd_size);
        return -1;
    }
    for (int i = 0; i < 2 && at + 4 <= used; i++) {
        uint32_t size = number_at(frame + at);
        if (size > used - at - 4) break;
        if (places[i] && (int64_t)size <= sizes[i]) memcpy(places[i], frame + at + 4, size);
        at += 4 + size;
    }
    return result;
}

int postroom_receive(void *cd, int cd_size, void *area, int area_size, int bits) {
    head('R', (bits & POSTROOM_IO) != 0, bits & ~POSTROOM_IO, area_size);
    put_field(cd, cd_size);
    return call(cd, cd_size, area, area_size);
}

int postroom_send(void *cd, int cd_size, const void *area, int area_size, const char *end, int bits, const char *when,
                  int lines) {
    head('S', ((bits & POSTROOM_IO) != 0) | ((bits & POSTROOM_REPLACING) != 0) << 1, area ? area_size : -1, lines);
    put_field(cd, cd_size);
    put_field(area, !area ? 0 : area_size > SENT_MAX ? SENT_MAX : area_size);
    put_field(end, 1);
    put_field(when, when ? 1 : 0);
    return call(cd, cd_size, NULL, 0);
}

int postroom_purge(void *cd, int cd_size) {
    head('P', cd_size == IO_SIZE, 0, 0);
    put_field(cd, cd_size);
    return call(cd, cd_size, NULL, 0);
}

int postroom_give_back(void) {
    if (session < 0 || owner != getpid()) return 0;
    head('G', 0, 0, 0);
    return call(NULL, 0, NULL, 0);
}

static int switch_to(char verb, void *cd, int cd_size, int what, const void *key, int key_size) {
    head(verb, what, 0, 0);
    put_field(cd, cd_size);
    put_field(key, key_size);
    return call(cd, cd_size, NULL, 0);
}

int postroom_enable(void *cd, int cd_size, int what, const void *key, int key_size) {
    return switch_to('E', cd, cd_size, what, key, key_size);
}

int postroom_disable(void *cd, int cd_size, int what, const void *key, int key_size) {
    return switch_to('D', cd, cd_size, what, key, key_size);
}

int postroom_count(void *cd, int cd_size) {
    head('C', 0, 0, 0);
    put_field(cd, cd_size);
    return call(cd, cd_size, NULL, 0);
}

int postroom_initial(void *cd, int cd_size, const void *words, int size) {
    head('I', cd_size == IO_SIZE, 0, 0);
    put_field(cd, cd_size);
    put_field(words, size);
    return call(cd, cd_size, NULL, 0);
}

int postroom_end(int orderly) {
    int result = 0;
    if (session >= 0 && owner == getpid()) {
        if (orderly) {
            head('Q', 0, 0, 0);
            result = exchange();
        }
        drop_session();
    }
    return result < 0 ? -1 : 0;
}

static void copy(char *to, const char *from, size_t size) {
    if (to) memcpy(to, from, size);
}

static int code_of(int result, const char *key) {
    return result != 0 ? result : (key[0] - '0') * 10 + (key[1] - '0');
}

static void copy_out(const struct input_CD *cd, const struct OPI_input_CD *to) {
    if (!to) return;
    copy(to->q_ptr, cd->symbolic_queue, 48);
    copy(to->date_ptr, cd->message_date, 6);
    copy(to->time_ptr, cd->message_time, 8);
    copy(to->source_ptr, cd->symbolic_source, 12);
    copy(to->length_ptr, cd->text_length, 4);
    copy(to->end_key_ptr, cd->end_key, 1);
    copy(to->status_key_ptr, cd->status_key, 2);
    copy(to->count_ptr, cd->message_count, 6);
}

void RECEIVE(struct input_CD *CD_ptr, struct OPI_input_CD *OPI_ptr, int *code) {
    int result = postroom_receive(CD_ptr, INPUT_SIZE, OPI_ptr->area_ptr, OPI_ptr->area_size, OPI_ptr->bits);
    copy_out(CD_ptr, OPI_ptr);
    *code = code_of(result, CD_ptr->status_key);
}

void ACCEPT(struct input_CD *CD_ptr, struct OPI_input_CD *OPI_ptr, int *code) {
    int result = postroom_count(CD_ptr, INPUT_SIZE);
    copy_out(CD_ptr, OPI_ptr);
    *code = code_of(result, CD_ptr->status_key);
}

void SEND(struct Output_CD *CD_ptr, struct OPI_output_CD *OPI_ptr, int *code) {
    int size = OUTPUT_HEAD + DESTINATION_SIZE * OPI_ptr->destinations;
    int result = postroom_send(CD_ptr, size, OPI_ptr->area_ptr, OPI_ptr->area_size, &OPI_ptr->end_key, 0, NULL,
                               POSTROOM_NO_LINES);
    copy(OPI_ptr->status_key_ptr, CD_ptr->status_key, 2);
    *code = code_of(result, CD_ptr->status_key);
}

static void switch_by(char verb, void *cd, struct OPI_key *key, int *code) {
    int output = key->what == POSTROOM_OUTPUT, io = key->what == POSTROOM_IO_TERMINAL;
    int size = output ? OUTPUT_HEAD + DESTINATION_SIZE * key->destinations : io ? IO_SIZE : INPUT_SIZE;
    int result = switch_to(verb, cd, size, key->what, key->password, (int)strlen(key->password));
    *code = code_of(result, (char *)cd + (output ? 8 : io ? 31 : 79));
}

void ENABLE(void *CD_ptr, struct OPI_key *OPI_ptr, int *code) { switch_by('E', CD_ptr, OPI_ptr, code); }

void DISABLE(void *CD_ptr, struct OPI_key *OPI_ptr, int *code) { switch_by('D', CD_ptr, OPI_ptr, code); }
