/* libpostroom: the queues of a room for programs in C, COBOL and whatever else calls C.
 *
 * The library has no logic. Each call goes to a session, a process that the library starts with the first call
 * (`postroom cobol session`), or over the socket that $POSTROOM_SESSION names. The session works on the room of
 * $POSTROOM_URL, else on ./postroom.db: the working directory chooses the queues, and no program is compiled anew.
 *
 * A message that was received is final with the next send that ends a message and is taken by a destination, or the
 * next receive, in the same commit, or when the program ends with exit status 0. If the program dies or ends with another status, the message is back in its place, locks are
 * freed, and partial messages are gone.
 *
 * Areas are those of COBOL: an input CD has 87 characters, an I-O CD 33, an output CD 10 and 13 for each destination.
 * Every call fills in the status key of its CD. Results are 0; 1 for a receive without data; -1 if there is no session
 * (and then the status key is 99). The call after that begins a new session: what was received and not final is back,
 * and segments that were sent without an end are gone.
 */
#ifndef POSTROOM_H
#define POSTROOM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of postroom_receive. */
#define POSTROOM_SEGMENT 1 /* the next segment; else the rest of the message */
#define POSTROOM_NO_WAIT 2 /* answer 1 if there is nothing */
#define POSTROOM_IO 4      /* the CD is an I-O CD; for postroom_send, too */

/* A bit of postroom_send: the text takes the place of the line before (REPLACING LINE). */
#define POSTROOM_REPLACING 8

/* What postroom_enable and postroom_disable are about. */
#define POSTROOM_INPUT 0
#define POSTROOM_INPUT_TERMINAL 1
#define POSTROOM_OUTPUT 2
#define POSTROOM_IO_TERMINAL 3

/* Lines of postroom_send. */
#define POSTROOM_PAGE (-1)
#define POSTROOM_NO_LINES (-2)

/* Receive the next portion of a message into an area. No more than the text length of the CD is written. */
int postroom_receive(void *cd, int cd_size, void *area, int area_size, int bits);

/* Send a portion to the destinations of a CD. `area` may be null. `end` is one character: 0 for a part of a segment,
 * 1 at the end of a segment (ESI), 2 of a message (EMI), 3 of a group (EGI); any other is a 0. `when` is A or B
 * (after, before advancing so many lines) or blank. */
int postroom_send(void *cd, int cd_size, const void *area, int area_size, const char *end, int bits, const char *when,
                  int lines);

/* Forget what was sent to the destinations of an output CD, or the terminal of an I-O CD, and is no message yet. */
int postroom_purge(void *cd, int cd_size);

/* Put back what was received and is not final yet; a message that is received in portions begins anew.
 * Results are 0, or 1 if that was not possible (the session's standard error says why), or -1 without a session. */
int postroom_give_back(void);

int postroom_enable(void *cd, int cd_size, int what, const void *key, int key_size);
int postroom_disable(void *cd, int cd_size, int what, const void *key, int key_size);

/* ACCEPT … MESSAGE COUNT: fill in the message count of an input CD. */
int postroom_count(void *cd, int cd_size);

/* Fill in the names of an input CD, or the terminal of an I-O CD whose input queue it is, if the program was started by
 * a queue; `words` is its command line. */
int postroom_initial(void *cd, int cd_size, const void *words, int size);

/* End the session now; the program may begin another with its next call. `orderly`: what was received is final. */
int postroom_end(int orderly);

/* --- the calls of the Multics text (section 4) --- */

struct input_CD {
    char symbolic_queue[12];
    char symbolic_sub_queue_1[12];
    char symbolic_sub_queue_2[12];
    char symbolic_sub_queue_3[12];
    char message_date[6];
    char message_time[8];
    char symbolic_source[12];
    char text_length[4];
    char end_key[1];
    char status_key[2];
    char message_count[6];
};

struct destination {
    char error_key[1];
    char symbolic_destination[12];
};

struct Output_CD {
    char destination_count[4];
    char text_length[4];
    char status_key[2];
    struct destination destination_table[1]; /* as many as the caller has */
};

/* Where the results of a receive go beside the CD; each may be null. The last three say where the text goes: the text
 * has no place for them. */
struct OPI_input_CD {
    char *q_ptr;          /* 48 characters: the four names */
    char *date_ptr;       /* 6 */
    char *time_ptr;       /* 8 */
    char *source_ptr;     /* 12 */
    char *length_ptr;     /* 4 */
    char *end_key_ptr;    /* 1 */
    char *status_key_ptr; /* 2 */
    char *count_ptr;      /* 6 */
    void *area_ptr;
    int area_size;
    int bits;
};

/* What a send, an enable or a disable needs beside the CD. */
struct OPI_output_CD {
    char *status_key_ptr; /* 2; may be null */
    const void *area_ptr;
    int area_size;
    int destinations; /* that the table has */
    char end_key;
};

struct OPI_key {
    int what; /* POSTROOM_INPUT … */
    int destinations; /* of an output CD */
    const char *password;
};

/* `code` is 0 if the status key is 00, else the status key as a number; -1 if there is no session, 1 without data. */
void RECEIVE(struct input_CD *CD_ptr, struct OPI_input_CD *OPI_ptr, int *code);
void SEND(struct Output_CD *CD_ptr, struct OPI_output_CD *OPI_ptr, int *code);
void ACCEPT(struct input_CD *CD_ptr, struct OPI_input_CD *OPI_ptr, int *code);
void ENABLE(void *CD_ptr, struct OPI_key *OPI_ptr, int *code);
void DISABLE(void *CD_ptr, struct OPI_key *OPI_ptr, int *code);

#ifdef __cplusplus
}
#endif
#endif
